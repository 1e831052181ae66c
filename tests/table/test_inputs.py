"""Rows as callers have them, and rows that a write reads again after a conflict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from pyhudi import ConfigError, HudiTable, SchemaMismatch, WriteConflict, write_hudi
from pyhudi.engine.local_frame import LocalFrame
from pyhudi.table.input import rows_to_write

ROWS = pa.table({"id": ["a", "b", "c"], "n": [1, 2, 3]})


def _batches() -> Iterator[pa.RecordBatch]:
    yield from ROWS.to_batches(max_chunksize=1)


def _polars(lazy: bool) -> Any:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(ROWS)
    return frame.lazy() if lazy else frame


def _duckdb() -> Any:
    duckdb = pytest.importorskip("duckdb")
    return duckdb.connect().from_arrow(ROWS).filter("n > 0")


def _ibis() -> Any:
    return pytest.importorskip("ibis", reason="Ibis is not installed").memtable(ROWS)


SOURCES: dict[str, Callable[[], Any]] = {
    "polars": lambda: _polars(lazy=False),
    "polars, lazy": lambda: _polars(lazy=True),
    "DuckDB": _duckdb,
    "Ibis": _ibis,
    "dataset": lambda: ds.dataset(ROWS),
    "function that gives batches": lambda: _batches,
    "function that gives a reader": lambda: lambda: ROWS.to_reader(),
    "function that gives a table": lambda: lambda: ROWS,
    "dict of lists": lambda: ROWS.to_pydict(),
    "dict of arrays": lambda: {"id": ROWS["id"], "n": np.array([1, 2, 3])},
    "list of dicts": lambda: ROWS.to_pylist(),
    "list of batches": lambda: list(_batches()),
    "iterator of batches": _batches,
    "iterator of tables": lambda: iter([ROWS.slice(0, 1), ROWS.slice(1)]),
    "reader": lambda: ROWS.to_reader(),
    "pandas": lambda: ROWS.to_pandas(),
}
ONCE = ("iterator of batches", "iterator of tables", "reader")


@pytest.mark.parametrize("source", SOURCES)
def test_rows_of_every_kind_are_written(source: str, tmp_path: Path) -> None:
    write_hudi(tmp_path / "t", SOURCES[source](), record_key="id")
    table = HudiTable.open(tmp_path / "t")
    table.upsert(SOURCES[source]())
    assert sorted(map(tuple, (row.values() for row in table.to_arrow(["id", "n"]).to_pylist()))) == [
        ("a", 1),
        ("b", 2),
        ("c", 3),
    ]


@pytest.mark.parametrize("source", SOURCES)
def test_a_write_that_gave_way_reads_its_rows_again(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streams that can be read once are kept up to a limit, which is no byte here."""
    import pyhudi.table.write as module

    monkeypatch.setattr(module, "KEPT_BYTES", 1)
    write_hudi(tmp_path / "t", [{"id": "z", "n": 0}], record_key="id")
    run, conflicts = module.run, [WriteConflict("another was faster")]

    def gives_way_once(action: Any, context: Any, undone: Any) -> Any:
        result = run(action, context, undone)
        if conflicts:
            raise conflicts.pop()
        return result

    monkeypatch.setattr(module, "run", gives_way_once)
    options = {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.num.retries.on.conflict.failures": "2",
        "hoodie.clean.failed.writes.policy": "LAZY",
    }

    def write() -> Any:
        return HudiTable.open(tmp_path / "t").upsert(SOURCES[source](), options=options)

    if source in ONCE:
        with pytest.raises(WriteConflict, match="a function that returns the rows"):
            write()
        return
    assert write().retries == 1
    assert HudiTable.open(tmp_path / "t").scan().count() == 4


def test_a_source_that_is_asked_again_gives_all_rows_each_time() -> None:
    asked = []

    def rows() -> Iterator[pa.RecordBatch]:
        asked.append(1)
        return _batches()

    frame = LocalFrame.of(rows_to_write(rows))
    assert len(asked) == 1
    (part,) = frame.parts
    next(part())
    assert pa.Table.from_batches(part()) == ROWS
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (iter(()), "has none"),
        (iter([{"id": "a"}]), "go into a list"),
        (lambda: 7, "int can't be read"),
        ({"id": "abc"}, "list of values for each name"),
        ({"id": ["a"], "n": [1, 2]}, "different numbers of values"),
        ({7: ["a"]}, "named by text"),
    ],
)
def test_rows_that_are_none_are_refused_before_there_is_a_table(data: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises((ConfigError, SchemaMismatch), match=says):
        write_hudi(tmp_path / "t", data, record_key="id")
    assert not (tmp_path / "t").exists()


@pytest.mark.thorough
def test_unsigned_numbers_of_64_bits_are_decimals_or_the_tables_integers(tmp_path: Path) -> None:
    largest = 2**64 - 1
    numbers = pa.table({"id": ["a", "b"], "n": pa.array([largest, None], pa.uint64())})
    write_hudi(tmp_path / "t", numbers, record_key="id")
    table = HudiTable.open(tmp_path / "t")
    assert table.schema().field("n").type == pa.decimal128(20, 0)
    table.upsert(numbers.to_reader())
    assert set(table.to_arrow(["n"])["n"].to_pylist()) == {Decimal(largest), None}

    write_hudi(tmp_path / "signed", ROWS, record_key="id")
    signed = HudiTable.open(tmp_path / "signed")
    signed.upsert(pa.table({"id": ["a"], "n": pa.array([7], pa.uint64())}))
    assert signed.to_arrow(["n"], "id = 'a'")["n"].to_pylist() == [7]
    with pytest.raises(SchemaMismatch, match="n"):
        signed.upsert(numbers)
    assert signed.schema().field("n").type == pa.int64()


def test_a_pandas_index_that_is_called_like_a_column_is_one(tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": [1, 2]}, index=pd.MultiIndex.from_tuples([("a", "x"), ("b", "y")], names=["id", "day"]))
    write_hudi(tmp_path / "t", frame, record_key="id", partition_by=["day"])
    table = HudiTable.open(tmp_path / "t")
    assert set(table.schema().names) == {"id", "day", "n"}
    table.upsert(frame.assign(n=[3, 4]))
    assert sorted(table.to_arrow(["id", "day", "n"]).to_pylist(), key=str) == [
        {"id": "a", "day": "x", "n": 3},
        {"id": "b", "day": "y", "n": 4},
    ]
    table.delete(frame.iloc[:1])
    assert table.to_arrow(["id"])["id"].to_pylist() == ["b"]


def test_a_pandas_index_of_another_name_is_left_out(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": ["a"], "n": [1]}, index=pd.Index([9], name="row"))
    write_hudi(tmp_path / "t", frame, record_key="id")
    assert HudiTable.open(tmp_path / "t").schema().names == ["id", "n"]
