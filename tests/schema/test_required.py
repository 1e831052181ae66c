"""Columns that can't be null: the first null in rows is found, at any depth and in any form of column."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyhudi.errors import SchemaMismatch
from pyhudi.schema.required import check_required, first_null, required_columns

X = pa.struct([pa.field("x", pa.int64(), nullable=False), ("y", pa.string())])


def required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


CASES: list[tuple[pa.Field, list[Any], tuple[str, int] | None]] = [
    (required("c", pa.int64()), [1, 2, None], ("c", 2)),
    (required("c", pa.int64()), [1, 2], None),
    (pa.field("c", X), [None, {"x": 1}, {"x": None}], ("c.x", 2)),
    (pa.field("c", X), [None, {"x": 1, "y": None}], None),
    (required("c", X), [{"x": 1}, None], ("c", 1)),
    (pa.field("c", pa.list_(required("item", pa.int64()))), [[], None, [1], [2, None]], ("c.element", 3)),
    (pa.field("c", pa.list_(required("item", pa.int64()))), [[], None, [1]], None),
    (pa.field("c", pa.map_(pa.string(), required("v", X))), [[], [("k", {"x": 1})], [("k", None)]], ("c.value", 2)),
    (pa.field("c", pa.map_(pa.string(), pa.field("v", X))), [None, [("k", {"y": "z"})]], ("c.value.x", 1)),
    (pa.field("c", pa.list_(pa.field("element", X))), [[None], [{"x": 1}, {"y": "a"}]], ("c.element.x", 1)),
]


def loose(kind: pa.DataType, of_lists: Any = pa.list_) -> pa.DataType:
    """The type as callers have it: everything may be null."""
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, loose(field.type, of_lists)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, loose(kind.item_type, of_lists))
    return of_lists(loose(kind.value_type, of_lists)) if pa.types.is_list(kind) else kind


@pytest.mark.parametrize(("field", "values", "expected"), CASES)
@pytest.mark.parametrize("of_lists", [pa.list_, pa.large_list])
def test_the_first_null_that_is_not_allowed_is_found(
    field: pa.Field, values: list[Any], expected: tuple[str, int] | None, of_lists: Any
) -> None:
    schema = pa.schema([("other", pa.int64()), field])
    array = pa.array(values, loose(field.type, of_lists))
    assert first_null(pa.table({"c": array}), schema) == expected

    before = pa.array([values[0]] * 2, array.type)
    sliced = pa.concat_arrays([before, array]).slice(2)
    assert first_null(pa.table({"c": sliced}), schema) == expected, "the rows before a slice are not its own"
    if expected is not None:
        chunks = pa.chunked_array([array.slice(0, 1), array.slice(1)])
        assert first_null(pa.table({"c": chunks}), required_columns(schema)) == expected


def test_nulls_of_dictionaries_are_found_in_codes_and_in_values() -> None:
    schema = pa.schema([required("c", pa.string())])
    in_codes = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), pa.array(["a"]))
    in_values = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["a", None]))
    for column in (in_codes, in_values):
        assert first_null(pa.table({"c": column}), schema) == ("c", 1)
    assert first_null(pa.table({"c": in_values.slice(0, 1)}), schema) is None


def test_a_column_that_is_missing_is_null_in_each_row_and_no_rows_have_no_nulls() -> None:
    schema = pa.schema([required("c", pa.string())])
    assert first_null(pa.table({"d": ["x"]}), schema) == ("c", 0)
    assert first_null(pa.table({"d": pa.array([], pa.string())}), schema) is None


def test_the_error_names_the_column_the_key_and_the_way_out() -> None:
    rows, keys = pa.table({"c": pa.array([1, None])}), pa.array(["k1", "k2"])
    with pytest.raises(SchemaMismatch, match=r"'c' is NOT NULL.*'k2'.*DropNotNull\('c'\).*DROP NOT NULL"):
        check_required(rows, pa.schema([required("c", pa.int64())]), keys)
