"""Columns that can't be null (NOT NULL): no written row may lack a value, at any depth.

In Spark and pandas nearly every column is nullable, so the rows are checked instead of the types, and the table's
schema stays as it is. Source: docs/formats/schema.md, "Evolution on write".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pyhudi.arrow.kinds import is_list
from pyhudi.errors import SchemaMismatch

__all__ = ["check_required", "first_null", "null_refused", "required_columns"]

_Rows = npt.NDArray[np.int64]


def required_columns(schema: pa.Schema) -> pa.Schema:
    """Return the columns that can't be null, or have a nested field that can't."""
    return pa.schema([field for field in schema if _has_required(field)])


def check_required(rows: pa.Table | pa.RecordBatch, required: pa.Schema, keys: pa.Array | pa.ChunkedArray) -> None:
    """Raise the SchemaMismatch of `null_refused` for the first forbidden null. `keys`: of the rows; the others as for
    `first_null`.
    """
    first = first_null(rows, required)
    if first is not None:
        raise null_refused(first[0], keys[first[1]].as_py())


def first_null(rows: pa.Table | pa.RecordBatch, required: pa.Schema) -> tuple[str, int] | None:
    """Return the position of the first forbidden null: the column's path and the row; None without one.

    Args:
        rows: columns of any physical form; missing ones are null in each row.
        required: the table's columns, or their `required_columns`.
    """
    for field in required if rows.num_rows else ():
        at = rows.schema.get_field_index(field.name)
        first = 0
        for chunk in [pa.nulls(1)] if at < 0 else _chunks(rows.column(at)):
            position = _first_null(chunk, field, field.name)
            if position is not None:
                return position[0], first + position[1]
            first += len(chunk)
    return None


def null_refused(path: str, key: object) -> SchemaMismatch:
    """Return the error for a row that lacks a value."""
    return SchemaMismatch(
        f"Null-value for required field: the column {path!r} is NOT NULL, and the row with the key {key!r} has no "
        f"value in it. Nothing was written. Give it one, or let the column take nulls: "
        f"table.alter(DropNotNull({path!r})), in SQL ALTER TABLE ... ALTER COLUMN {path} DROP NOT NULL."
    )


def _chunks(column: pa.Array | pa.ChunkedArray) -> Iterable[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _has_required(field: pa.Field) -> bool:
    return not field.nullable or any(map(_has_required, _inner(field.type)))


def _inner(kind: pa.DataType) -> list[pa.Field]:
    """Return the nested fields of a type that can be null; keys of maps never are."""
    if pt.is_struct(kind):
        return kind.fields
    if pt.is_map(kind):
        return [kind.item_field]
    return [kind.value_field] if is_list(kind) else []


def _first_null(array: pa.Array, field: pa.Field, path: str) -> tuple[str, int] | None:
    """Return the position of the first null that `field` forbids: the column's path and the row."""
    array = _plain(array)
    if not field.nullable and array.null_count:
        return path, int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])
    for inner, values, rows in _children(array, field.type, path):
        name = f"{path}.{'element' if is_list(field.type) else 'value' if pt.is_map(field.type) else inner.name}"
        position = _first_null(values, inner, name) if _has_required(inner) else None
        if position is not None:
            return position[0], int(rows[position[1]])
    return None


def _children(array: pa.Array, kind: pa.DataType, path: str) -> Iterable[tuple[pa.Field, pa.Array, _Rows]]:
    """Yield the nested values of non-null values: field, values, and the row of each value."""
    if isinstance(array, pa.StructArray) and pt.is_struct(kind):
        rows = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
        valid = array.drop_null() if array.null_count else array
        for field in kind.fields:
            at = array.type.get_field_index(field.name)
            yield field, pa.nulls(len(valid)) if at < 0 else valid.field(at), rows
        return
    if isinstance(array, pa.MapArray) and pt.is_map(kind):
        entries = pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])
        array = array.cast(pa.list_(entries))
        inner, values = kind.item_field, cast("pa.StructArray", cast("pa.ListArray", array).flatten()).field(1)
    elif is_list(array.type) and is_list(kind):
        inner, values = kind.value_field, cast("pa.ListArray", array).flatten()
    else:
        return
    yield inner, values, pc.list_parent_indices(array).to_numpy(zero_copy_only=False)


def _plain(array: pa.Array) -> pa.Array:
    """Return the values of an array whose own bitmap does not mark the nulls."""
    if isinstance(array, pa.DictionaryArray):
        return array.dictionary_decode() if array.dictionary.null_count else array.indices
    return array
