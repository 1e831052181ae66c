"""Projecting data into a schema: by name, at every level of nesting.

A file keeps the schema of its writer. Readers and rewriting writers convert its rows to the table's schema with
`project`. A missing column or struct field becomes null, columns outside the target are left out, and types are widened
as in Hudi (`casts.py`). List items and map entries match under any name that Parquet gives them (`element`, `array`,
`key_value`).

`as_type` reads an array's buffers as another type with the same layout, without a copy. Files disagree on names and
nullability inside nested types (`list<array: int not null>`, `list<element: int>`), while the bytes are the same.
Arrow's own cast refuses some of these types or copies the data.
Source: docs/formats/schema.md, "Reading older files"; Arrow columnar format, C data interface.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.kinds import LIST_ARRAYS, AnyList, is_list, plain_type
from pyhudi.errors import SchemaMismatch
from pyhudi.schema.casts import can_cast, cast, first_inexact

__all__ = ["as_type", "project", "same_layout"]


def same_layout(source: pa.DataType, target: pa.DataType) -> bool:
    """True if the types differ at most in names of list items and map entries, nullability and field metadata."""
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        return source.num_fields == target.num_fields and all(
            ours.name == theirs.name and same_layout(ours.type, theirs.type)
            for ours, theirs in zip(source.fields, target.fields, strict=True)
        )
    if pa.types.is_map(source) and pa.types.is_map(target):
        return same_layout(source.key_type, target.key_type) and same_layout(source.item_type, target.item_type)
    if pa.types.is_list(source) and pa.types.is_list(target):
        return same_layout(source.value_type, target.value_type)
    return bool(source.equals(target))


def as_type(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return the array's buffers under another type, which the caller knows to have the same layout."""
    if array.type.equals(target, check_metadata=True):
        return array
    return pa.array(_Retyped(array, target))


class _Retyped:
    """An exporter of the C data interface with another type than its array's."""

    def __init__(self, array: pa.Array, target: pa.DataType) -> None:
        self._array = array
        self._target = target

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._target.__arrow_c_schema__(), self._array.__arrow_c_array__()[1]


Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)
ColumnData = TypeVar("ColumnData", pa.Array, pa.ChunkedArray)


def project(data: Rows, target: pa.Schema, *, exact: bool = False) -> Rows:
    """Return the rows with the columns and types of `target`.

    Args:
        data: a record batch or a table.
        target: the columns of the result, in order.
        exact: refuse values that would lose digits, for rows of a caller. Microseconds are still truncated to
            milliseconds: Spark has no other timestamps. Hudi reads older files without these checks.
    Returns: the same kind; the same object if it already has these columns and types.
    Raises:  SchemaMismatch naming the column, when a value or a type can't be converted.
    """
    if data.schema.equals(target):
        return data
    positions = {name: index for index, name in reversed(list(enumerate(data.schema.names)))}
    columns = [
        _column(data.column(positions[field.name]), field, exact) if field.name in positions else None
        for field in target
    ]
    if isinstance(data, pa.RecordBatch):
        arrays = [
            pa.nulls(data.num_rows, field.type) if column is None else column
            for field, column in zip(target, columns, strict=True)
        ]
        if not arrays:
            return data.select([])
        return pa.RecordBatch.from_arrays(arrays, schema=target)
    chunks = [
        pa.chunked_array([pa.nulls(data.num_rows, field.type)], field.type) if column is None else column
        for field, column in zip(target, columns, strict=True)
    ]
    if not chunks:
        return data.select([])
    return pa.Table.from_arrays(chunks, schema=target)


def _column(column: ColumnData, field: pa.Field, exact: bool) -> ColumnData:
    if column.type.equals(field.type):
        return column
    if isinstance(column, pa.ChunkedArray):
        chunks = [_convert(chunk, field.type, field.name, exact) for chunk in column.chunks]
        return pa.chunked_array(chunks, field.type)
    return _convert(column, field.type, field.name, exact)


def _convert(array: pa.Array, target: pa.DataType, path: str, exact: bool = False) -> pa.Array:
    source = array.type
    if source.equals(target):
        return array
    if pa.types.is_null(source):
        return pa.nulls(len(array), target)
    if isinstance(array, pa.DictionaryArray):
        return _convert(_decode(array), target, path, exact)
    if isinstance(array, pa.RunEndEncodedArray):
        return _convert(_unroll(array), target, path, exact)
    if same_layout(source, target):
        return as_type(array, target)
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        assert isinstance(array, pa.StructArray)
        return _convert_struct(array, target, path, exact)
    if pa.types.is_map(source) and pa.types.is_map(target):
        assert isinstance(array, pa.MapArray)
        return _convert_map(array, target, path, exact)
    if is_list(source) and is_list(target):
        return _convert_list(array, target, path, exact)
    if not can_cast(source, target):
        raise SchemaMismatch(
            f"Column {path!r} is {source}, expected {target}: this conversion is not a widening one. "
            f"Cast the column to {target} yourself if that is what you mean."
        )
    if exact and not (pa.types.is_timestamp(source) and source.unit == "us"):
        value = first_inexact(array, target)
        if value is not None:
            raise SchemaMismatch(
                f"Column {path!r} is of type {target} and can't hold {value} ({source}) with all its digits. "
                f"{_way_out(path, source, target)} Nothing was written."
            )
    try:
        return cast(array, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatch(f"Column {path!r}: not every value of {source} can become {target} ({error}).") from error


def _way_out(path: str, source: pa.DataType, target: pa.DataType) -> str:
    """Return advice for values with too many digits."""
    if pa.types.is_integer(source):
        return (
            f"Cast the values to {target} yourself, or let the column be text or a decimal: ChangeType({path!r}, ...)."
        )
    if isinstance(source, pa.TimestampType) and isinstance(target, pa.TimestampType):
        return f"Round the values: .dt.floor({target.unit!r}) in pandas, pyarrow.compute.floor_temporal in Arrow."
    return f"Cast the values to {target} yourself."


def _decode(array: pa.DictionaryArray) -> pa.Array:
    """Decode the values of the codes; no kernel accepts a dictionary of views."""
    words = array.dictionary
    plain = plain_type(words.type)
    return array.dictionary_decode() if plain.equals(words.type) else words.cast(plain).take(array.indices)


def _unroll(array: pa.RunEndEncodedArray) -> pa.Array:
    """Return the value of each row, for runs of any type."""
    ends = array.run_ends.to_numpy()
    rows = np.searchsorted(ends, np.arange(len(array)) + array.offset, side="right")
    values = array.values
    if isinstance(values, pa.DictionaryArray):
        values = _decode(values)
    return _convert(values, plain_type(values.type), "").take(pa.array(rows))


def _convert_struct(array: pa.StructArray, target: pa.StructType, path: str, exact: bool) -> pa.Array:
    children = []
    for field in target.fields:
        index = array.type.get_field_index(field.name)
        if index < 0:
            children.append(pa.nulls(len(array), field.type))
        else:
            children.append(_convert(array.field(index), field.type, f"{path}.{field.name}", exact))
    mask = array.is_null() if array.null_count else None
    if not children:
        return as_type(pa.StructArray.from_arrays([pa.nulls(len(array))], names=["_"], mask=mask), target)
    return pa.StructArray.from_arrays(children, fields=target.fields, mask=mask)


def _convert_list(array: pa.Array, target: AnyList, path: str, exact: bool) -> pa.Array:
    assert isinstance(array, LIST_ARRAYS)
    values = _convert(array.flatten(), target.value_type, f"{path}.element", exact)
    offsets = _offsets(pc.list_value_length(array))
    assert isinstance(offsets, pa.Int32Array)
    mask = array.is_null() if array.null_count else None
    return as_type(pa.ListArray.from_arrays(offsets, values, mask=mask), target)


def _convert_map(array: pa.MapArray, target: pa.MapType, path: str, exact: bool) -> pa.Array:
    # A map is a list of entries; as a list, flatten and the length kernel handle its slices and nulls correctly.
    entries = as_type(array, pa.list_(pa.field("entries", _entry_type(array.type), nullable=False)))
    inner = pa.list_(pa.field("entries", _entry_type(target), nullable=False))
    converted = _convert_list(entries, inner, path, exact)
    return as_type(converted, target)


def _entry_type(map_type: pa.MapType) -> pa.DataType:
    return pa.struct(
        [
            pa.field("key", map_type.key_type, nullable=False),
            pa.field("value", map_type.item_type, nullable=map_type.item_field.nullable),
        ]
    )


def _offsets(lengths: pa.Array) -> pa.Array:
    ends = pc.cumulative_sum_checked(pc.fill_null(lengths.cast(pa.int32()), 0))
    return pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])
