"""Bringing rows of one schema into another."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import SchemaMismatch
from pyhudi.schema.projection import project
from tests.support.values.strategies import RELAXED, SCHEMAS, tables

UTC = dt.timezone.utc


def one(array: pa.Array, target: pa.DataType) -> list[Any]:
    """A column of one type read as another; the result is valid and of exactly that type."""
    out = project(pa.RecordBatch.from_arrays([array], ["c"]), pa.schema([("c", target)]))
    out.validate(full=True)
    assert out.schema.field("c").type == target
    return out.column(0).to_pylist()


def test_equal_schemas_cost_nothing() -> None:
    batch = pa.RecordBatch.from_pydict({"a": [1], "b": ["x"]})
    table = pa.Table.from_batches([batch])

    assert project(batch, batch.schema) is batch
    assert project(table, table.schema) is table


def test_columns_match_by_name_in_the_order_of_the_target() -> None:
    batch = pa.RecordBatch.from_pydict({"b": ["x", "y"], "gone": [1, 2], "a": [1, 2]})
    out = project(batch, pa.schema([("a", pa.int64()), ("new", pa.list_(pa.int32())), ("b", pa.string())]))

    assert out.to_pydict() == {"a": [1, 2], "new": [None, None], "b": ["x", "y"]}


def test_a_column_that_only_moves_is_not_copied() -> None:
    batch = pa.RecordBatch.from_pydict({"b": ["x"], "a": [1]})
    out = project(batch, pa.schema([("a", pa.int64()), ("b", pa.string())]))

    assert out.column(0).buffers()[1].address == batch.column(1).buffers()[1].address


@pytest.mark.parametrize(
    ("source", "values", "target", "expected"),
    [
        (pa.int8(), [-1, None], pa.int32(), [-1, None]),
        (pa.int32(), [5, None], pa.int64(), [5, None]),
        (pa.int64(), [2**53 + 1, 8589934592], pa.float64(), [2.0**53, 8589934592.0]),
        (pa.int64(), [2**24 + 1], pa.float32(), [2.0**24]),
        (pa.int32(), [1, None], pa.string(), ["1", None]),
        (pa.int64(), [8589934592], pa.string(), ["8589934592"]),
        (pa.float32(), [8589934592.0, 1.0, 0.5], pa.string(), ["8.5899346E9", "1.0", "0.5"]),
        (pa.float64(), [1e10, 3.25, -0.0], pa.string(), ["1.0E10", "3.25", "-0.0"]),
        (pa.float32(), [8589934592.0, 0.25], pa.float64(), [8589934600.0, 0.25]),
        (pa.string(), ["é", None], pa.binary(), ["é".encode(), None]),
        (pa.binary(), ["é".encode()], pa.string(), ["é"]),
        (pa.large_string(), ["x"], pa.string(), ["x"]),
        (pa.string_view(), ["x"], pa.string(), ["x"]),
        (pa.date32(), [dt.date(1969, 7, 20)], pa.string(), ["1969-07-20"]),
        (pa.string(), ["1969-07-20"], pa.date32(), [dt.date(1969, 7, 20)]),
        (pa.decimal128(5, 2), [Decimal("1.50")], pa.decimal128(9, 4), [Decimal("1.5000")]),
        (pa.decimal128(5, 2), [Decimal("1.50")], pa.string(), ["1.50"]),
        (pa.int32(), [7], pa.decimal128(5, 2), [Decimal("7.00")]),
        (pa.float32(), [0.1], pa.decimal128(5, 2), [Decimal("0.10")]),
        (pa.string(), ["1.005", " 2 "], pa.decimal128(5, 2), [Decimal("1.01"), Decimal("2.00")]),
        (pa.null(), [None], pa.struct([("x", pa.int32())]), [None]),
    ],
)
def test_types_become_wider_as_in_hudi(source: Any, values: list[Any], target: Any, expected: list[Any]) -> None:
    assert one(pa.array(values, source), target) == expected


@pytest.mark.parametrize(
    ("source", "ticks", "target", "expected"),
    [
        (pa.timestamp("ms", "UTC"), [-1], pa.timestamp("us", "UTC"), [-1000]),
        (pa.timestamp("us", "UTC"), [-1, 1999], pa.timestamp("ms", "UTC"), [-1, 1]),
        (pa.timestamp("ns"), [-1, 1001, None], pa.timestamp("us"), [-1, 1, None]),
        (pa.timestamp("us", "Asia/Tokyo"), [5], pa.timestamp("us", "UTC"), [5]),
        (pa.timestamp("us"), [5], pa.timestamp("us", "UTC"), [5]),
        (pa.timestamp("s", "UTC"), [-2], pa.timestamp("us", "UTC"), [-2_000_000]),
    ],
)
def test_timestamps_change_units_downwards_also_before_1970(
    source: Any, ticks: list[int | None], target: Any, expected: list[int | None]
) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(ticks, source)], ["c"])
    out = project(batch, pa.schema([("c", target)]))

    assert out.column(0).cast(pa.int64()).to_pylist() == expected


def test_nested_fields_are_added_widened_and_reordered() -> None:
    source = pa.array([{"x": 1, "y": "a", "gone": 0}, None, {"x": None, "y": "b", "gone": 0}])
    target = pa.struct([("y", pa.string()), ("x", pa.string()), ("z", pa.int32())])

    expected = [{"y": "a", "x": "1", "z": None}, None, {"y": "b", "x": None, "z": None}]
    assert one(source, target) == expected
    assert one(source.slice(1), target) == expected[1:]
    assert one(pa.array([[value] for value in source.to_pylist()]), pa.list_(target)) == [[row] for row in expected]


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list, lambda item: pa.list_(item, 2), pa.list_view])
def test_lists_of_every_kind_are_read(kind: Any) -> None:
    source = pa.array([[9, 9], [1, 2], None, [3, 4]], kind(pa.field("array", pa.int32()))).slice(1)

    assert one(source, pa.list_(pa.field("element", pa.int64()))) == [[1, 2], None, [3, 4]]


def test_lists_that_differ_in_names_only_are_not_copied() -> None:
    source = pa.array([[1, 2], None, [3]], pa.list_(pa.field("array", pa.int32(), nullable=False)))
    target = pa.list_(pa.field("element", pa.int32()))
    out = project(pa.RecordBatch.from_arrays([source], ["c"]), pa.schema([("c", target)])).column(0)

    assert out.type.value_field.name == "element"
    assert out.type.value_field.nullable
    assert out.values.buffers()[1].address == source.values.buffers()[1].address


def test_values_of_maps_are_converted() -> None:
    source = pa.array([[("z", 9)], [("a", 1), ("b", None)], None, []], pa.map_(pa.string(), pa.int32())).slice(1)

    assert one(source, pa.map_(pa.string(), pa.string())) == [[("a", "1"), ("b", None)], None, []]


def test_dictionaries_are_decoded_also_inside() -> None:
    words = pa.array(["a", "b", "a"]).dictionary_encode()

    assert one(words, pa.string()) == ["a", "b", "a"]
    inside = pa.StructArray.from_arrays([words], ["w"])
    assert one(inside, pa.struct([("w", pa.string())])) == [{"w": "a"}, {"w": "b"}, {"w": "a"}]


def test_a_struct_without_a_known_field_keeps_its_nulls() -> None:
    assert one(pa.array([{"x": 1}, None]), pa.struct([("y", pa.int32())])) == [{"y": None}, None]


def test_a_table_keeps_its_chunks() -> None:
    table = pa.table({"a": pa.chunked_array([[1], [2, 3]])})
    out = project(table, pa.schema([("a", pa.string()), ("n", pa.int32())]))

    assert out.to_pydict() == {"a": ["1", "2", "3"], "n": [None, None, None]}


def test_no_columns_are_wanted_and_rows_are_still_counted() -> None:
    batch = pa.RecordBatch.from_pydict({"a": [1, 2]})

    for data in (batch, pa.Table.from_batches([batch])):
        out = project(data, pa.schema([]))
        assert (out.num_columns, out.num_rows) == (0, 2)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.int64(), pa.int32()),
        (pa.string(), pa.int32()),
        (pa.float64(), pa.float32()),
        (pa.bool_(), pa.string()),
        (pa.decimal128(9, 2), pa.decimal128(9, 4)),
        (pa.timestamp("us"), pa.date32()),
        (pa.int32(), pa.list_(pa.int32())),
        (pa.list_(pa.int32()), pa.struct([("x", pa.int32())])),
        (pa.uint64(), pa.int64()),
    ],
)
def test_what_is_no_widening_is_refused_by_column(source: pa.DataType, target: pa.DataType) -> None:
    batch = pa.RecordBatch.from_arrays([pa.nulls(1, source)], ["c"])
    with pytest.raises(SchemaMismatch, match="'c'"):
        project(batch, pa.schema([("c", target)]))


def test_values_that_do_not_convert_are_refused_by_column() -> None:
    with pytest.raises(SchemaMismatch, match=r"'c\.d'"):
        one(pa.array([{"d": "no date"}]), pa.struct([("d", pa.date32())]))
    with pytest.raises(SchemaMismatch, match="'c'"):
        one(pa.array([b"\xff"]), pa.string())


@RELAXED
@given(tables(), SCHEMAS)
def test_projecting_twice_is_projecting_once(table: pa.Table, target: pa.Schema) -> None:
    try:
        once = project(table, target)
    except SchemaMismatch:
        return
    once.validate(full=True)
    assert project(once, target) is once


@RELAXED
@given(tables(), st.data())
def test_slices_project_like_wholes(table: pa.Table, data: st.DataObject) -> None:
    nullable = pa.schema([field.with_nullable(True) for field in reversed(list(table.schema))])
    start = data.draw(st.integers(0, table.num_rows))
    renamed = pa.schema([pa.field(f.name, _relaxed(f.type)) for f in nullable])

    assert project(table.slice(start), renamed).to_pylist() == project(table, renamed).to_pylist()[start:]


def _relaxed(data_type: pa.DataType) -> pa.DataType:
    """The type with everything inside nullable and one more field in every struct."""
    if pa.types.is_struct(data_type):
        fields = [pa.field(f.name, _relaxed(f.type)) for f in data_type.fields]
        return pa.struct([*fields, pa.field("one_more", pa.int32())])
    if pa.types.is_map(data_type):
        return pa.map_(pa.string(), _relaxed(data_type.item_type))
    if pa.types.is_list(data_type):
        return pa.list_(_relaxed(data_type.value_type))
    return data_type
