"""Rows whose key and partition columns get the table's types, before a key or a path is made of them.

Every write and every change passes its rows through `with_key_types`, so all entry points follow one rule:
`pyhudi.schema.exact` says which values the column's type can hold, and the others are refused. Of a nested
field, such as `addr.city`, only that field changes.
Source: docs/formats/keys.md, "Text of values"; docs/compatibility.md, "Sides taken".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.engine.base import Engine, Frame, TaskContext
from pyhudi.meta_client import MetaClient
from pyhudi.schema.exact import can_be_exact, exactly

__all__ = ["with_key_types"]

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)


def with_key_types(frame: Frame, engine: Engine, meta: MetaClient) -> Frame:
    """The rows with the table's types in the columns of keys and partitions; the same frame where they have them.

    Rows in memory are converted now, others as they are read.

    Raises: SchemaMismatch for types that have no common values, and for values that would change.
    """
    table, rows = meta.table_schema(), engine.schema(frame)
    types = _types(rows, table, (*meta.config.record_key_fields, *meta.config.partition_fields))
    if not types:
        return frame
    data: object = frame
    if isinstance(data, pa.Table):
        return Frame(_typed(data, types))
    if isinstance(data, pa.RecordBatch):
        return Frame(_typed(data, types))
    fields = [field.with_type(types[field.name]) if field.name in types else field for field in rows]
    return engine.map(frame, _TypeKeys(types), pa.schema(fields))


def _types(rows: pa.Schema, table: pa.Schema, fields: Sequence[str]) -> dict[str, pa.DataType]:
    """Column of the rows → the type that it gets, for columns that have another one. Raises SchemaMismatch."""
    types: dict[str, pa.DataType] = {}
    for field in fields:
        top, *path = field.split(".") if field not in table.names else [field]
        if rows.get_field_index(top) < 0 or table.get_field_index(top) < 0:
            continue
        source = types.get(top, rows.field(top).type)
        typed = _typed_at(source, table.field(top).type, path, field)
        if not typed.equals(source):
            types[top] = typed
    return types


def _typed_at(source: pa.DataType, target: pa.DataType, path: Sequence[str], field: str) -> pa.DataType:
    """`source` with the type of the field at `path` as in `target`."""
    if path:
        if not (pt.is_struct(source) and pt.is_struct(target)):
            return source  # the key generator reports the missing field
        if source.get_field_index(path[0]) < 0 or target.get_field_index(path[0]) < 0:
            return source
        inner = _typed_at(source.field(path[0]).type, target.field(path[0]).type, path[1:], field)
        return pa.struct([part.with_type(inner) if part.name == path[0] else part for part in source.fields])
    if not pt.is_nested(source) and not can_be_exact(source, target):
        exactly(pa.array([], source), target, field)  # raises
    return source if pt.is_nested(source) or pt.is_nested(target) else target


@dataclass(frozen=True, slots=True)
class _TypeKeys:
    """Stream work: the rows with these types in some columns."""

    types: Mapping[str, pa.DataType]

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _typed(batch, self.types)


def _typed(rows: Rows, types: Mapping[str, pa.DataType]) -> Rows:
    for name, target in types.items():
        at = rows.schema.get_field_index(name)
        column = rows.column(at)
        if isinstance(column, pa.ChunkedArray):
            typed = pa.chunked_array([_column(chunk, target, name) for chunk in column.chunks], target)
        else:
            typed = _column(column, target, name)
        rows = rows.set_column(at, rows.schema.field(at).with_type(target), typed)
    return rows


def _column(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    if not (isinstance(array, pa.StructArray) and pt.is_struct(target)):
        return exactly(array, target, path)
    parts = target.fields
    columns = [array.field(number) for number in range(len(parts))]
    typed = [
        column if column.type.equals(part.type) else _column(column, part.type, f"{path}.{part.name}")
        for column, part in zip(columns, parts, strict=True)
    ]
    return pa.StructArray.from_arrays(typed, fields=parts, mask=array.is_null() if array.null_count else None)
