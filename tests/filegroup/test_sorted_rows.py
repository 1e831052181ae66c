"""Rows are sorted within bounded memory: what is given out is the same, whether it was spilled or not."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import ConfigError
from pyhudi.filegroup.rewrite.sort import RowOrder, SortedRows, joined
from tests.support.sweeps import examples

CELLS = st.lists(st.tuples(st.integers(-9, 9) | st.none(), st.sampled_from("abcä") | st.none()), max_size=40)


def tables(chunks: list[list[Any]], *, coded: bool = False) -> list[pa.Table]:
    made, number = [], 0
    for cells in chunks:
        text = pa.array([cell[1] for cell in cells], pa.string())
        columns = {
            "number": pa.array(range(number, number + len(cells)), pa.int64()),
            "a": pa.array([cell[0] for cell in cells], pa.int32()),
            "text": text.dictionary_encode() if coded and len(made) % 2 else text,
        }
        made.append(pa.table(columns))
        number += len(cells)
    return made


def out(given: list[pa.Table], order: RowOrder, memory_bytes: int, piece_rows: int = 7) -> list[Any]:
    with SortedRows(order, memory_bytes) as rows:
        for table in given:
            rows.add(table)
        assert rows.rows == sum(map(len, given))
        pieces = list(rows.pieces(piece_rows))
    assert all(0 < len(piece) <= piece_rows for piece in pieces)
    return [row for piece in pieces for row in piece.to_pylist()]


ORDERS = [
    RowOrder(),
    RowOrder(("a",)),
    RowOrder(("text", "a")),
    RowOrder(("a", "text"), "ZORDER"),
    RowOrder(("a", "text"), "HILBERT", 10),
]


@settings(max_examples=examples(25), deadline=None)
@given(chunks=st.lists(CELLS, max_size=5), order=st.sampled_from(ORDERS), memory=st.sampled_from([1, 300, 1 << 20]))
def test_all_rows_come_out_once_and_in_order(chunks: list[list[Any]], order: RowOrder, memory: int) -> None:
    given_rows = [row for table in tables(chunks) for row in table.to_pylist()]
    found = out(tables(chunks, coded=True), order, memory)
    assert sorted(row["number"] for row in found) == list(range(len(given_rows)))
    assert all(given_rows[row["number"]] == row for row in found)
    assert found == out(tables(chunks), order, 1 << 30), "memory does not matter"
    if not order.columns:
        assert found == given_rows
    elif order.layout == "LINEAR":
        keys = [tuple((row[name] is None, row[name]) for name in order.columns) for row in found]
        assert keys == sorted(keys)


def test_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with SortedRows(RowOrder(("a",)), 1) as rows:
        for table in tables([[(1, "a")] * 10] * 3):
            rows.add(table)
        pieces = rows.pieces(5)
        next(pieces)
        assert list(tmp_path.rglob("run*"))
    assert not list(tmp_path.iterdir())


def test_nested_columns_are_named_with_dots() -> None:
    table = pa.table({"s": pa.array([{"x": 2}, {"x": 1}, None])})
    order = RowOrder(("s.x",))
    assert order.positions(order.keys(table)).tolist() == [1, 0, 2]
    with pytest.raises(ConfigError, match="no field 'y'"):
        RowOrder(("s.y",)).check(table.schema)


@pytest.mark.parametrize("layout", ["LINEAR", "ZORDER"])
def test_columns_that_have_no_order_are_refused(layout: str) -> None:
    schema = pa.schema([("l", pa.list_(pa.int32())), ("a", pa.int32())])
    with pytest.raises(ConfigError, match=r"sorted by|laid out by"):
        RowOrder(("l", "a"), layout).check(schema)


def test_columns_stay_coded_where_all_tables_have_them_so() -> None:
    coded = pa.table({"text": pa.array(["a", "b"]).dictionary_encode()})
    plain = pa.table({"text": ["c"]})

    assert joined([coded, coded]).schema == coded.schema
    assert joined([coded, plain]).column("text").to_pylist() == ["a", "b", "c"]
    assert joined([coded, plain]).schema == plain.schema
