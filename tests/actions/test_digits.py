"""Digits and zones of values that the table's columns can't hold."""

from __future__ import annotations

import datetime as dt
import warnings
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from pyhudi import HudiTable, SchemaMismatch, write_hudi

COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
        ("ms", pa.timestamp("ms", tz="UTC")),
        ("time", pa.time64("us")),
        ("f", pa.float64()),
        ("s", pa.struct([("at", pa.timestamp("us"))])),
    ]
)
NANOS = 1_700_000_000_123_456_789
OPTIONS = {"hoodie.metadata.enable": "false"}


def made(**more: Any) -> HudiTable:
    path = f"memory://digits-{next(NUMBERS)}"
    return HudiTable.create(path, COLUMNS, record_key="id", options=OPTIONS, **more)


NUMBERS = iter(range(1000))


def whole(name: str, values: pa.Array) -> pa.Table:
    others = [pa.nulls(1, field.type) for field in COLUMNS if field.name not in ("id", name)]
    names = ["id", name, *(field.name for field in COLUMNS if field.name not in ("id", name))]
    return pa.Table.from_arrays([pa.array([1]), values, *others], names=names)


LOST = {
    "at": pa.array([NANOS], pa.timestamp("ns", tz="Europe/Rome")),
    "local": pa.array([NANOS], pa.timestamp("ns")),
    "time": pa.array([NANOS % 10**12], pa.time64("ns")),
    "f": pa.array([2**53 + 1]),
    "s": pa.array([{"at": NANOS}], pa.struct([("at", pa.timestamp("ns"))])),
}


@pytest.mark.parametrize("name", LOST)
@pytest.mark.parametrize("operation", ["upsert", "bulk_insert", "overwrite"])
@pytest.mark.parametrize("is_stream", [False, True], ids=["table", "stream"])
def test_a_value_with_more_digits_than_its_column_is_refused(name: str, operation: str, is_stream: bool) -> None:
    table, rows = made(), whole(name, LOST[name])
    data = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches()) if is_stream else rows
    with pytest.raises(SchemaMismatch, match=rf"'{name}(\.at)?' is of type .* with all its digits\. (Round|Cast)"):
        getattr(table, operation)(data)
    assert table.count() == 0
    assert not table.state().timeline.commits()


def test_upserts_of_some_columns_and_updates_refuse_them_too() -> None:
    table = made()
    table.upsert(whole("f", pa.array([1.0])))
    for name, values in LOST.items():
        with pytest.raises(SchemaMismatch, match=name):
            table.upsert(pa.table({"id": [1], name: values}))
        with pytest.raises(SchemaMismatch, match=name):
            table.update("id = 1", set={name: lambda rows, values=values: values})
    assert table.to_arrow(["f", "at", "s"]).to_pylist() == [{"f": 1.0, "at": None, "s": None}]


def test_a_new_table_refuses_nanoseconds_too_and_takes_round_ones() -> None:
    with pytest.raises(SchemaMismatch, match="floor"):
        write_hudi("memory://digits-new", pa.table({"id": [1], "local": LOST["local"]}), record_key="id")
    frame = pd.DataFrame({"id": [1], "local": pd.to_datetime([NANOS]).floor("us")})
    write_hudi("memory://digits-new", frame, record_key="id", options=OPTIONS)
    assert HudiTable("memory://digits-new").schema().field("local").type == pa.timestamp("us")


def test_whole_values_of_finer_types_are_taken() -> None:
    table = made()
    table.upsert(whole("at", pa.array([NANOS // 1000 * 1000], pa.timestamp("ns", tz="UTC"))))
    table.upsert(whole("f", pa.array([2**62])))
    assert table.to_arrow(["f"]).to_pylist() == [{"f": float(2**62)}]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("at", pd.Timestamp(NANOS, tz="UTC")),
        ("local", pd.Timestamp(NANOS)),
        ("ms", dt.datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=dt.timezone.utc)),
        ("local", dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2)))),
    ],
    ids=["pandas", "local pandas", "microseconds", "zone in local times"],
)
def test_python_values_that_a_column_would_cut_or_turn_are_refused(name: str, value: object) -> None:
    table = made()
    with pytest.raises(SchemaMismatch, match=f"'{name}'.*(digits behind the point|it is a moment)"):
        table.upsert([{"id": 1, name: value}])
    assert table.count() == 0


@pytest.mark.parametrize("is_stream", [False, True], ids=["table", "stream"])
def test_microseconds_become_milliseconds_with_a_warning(is_stream: bool) -> None:
    table, rows = made(), whole("ms", pa.array([1_001], pa.timestamp("us", tz="UTC")))
    data = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches()) if is_stream else rows
    with pytest.warns(UserWarning, match="'ms' holds milliseconds: the microseconds of its new values are cut"):
        table.upsert(data)
    assert table.to_arrow(["ms"]).column("ms").cast(pa.int64()).to_pylist() == [1]


def test_whole_milliseconds_make_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made().upsert(whole("ms", pa.array([2_000], pa.timestamp("us", tz="UTC"))))
