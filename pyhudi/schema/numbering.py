"""Ids for columns that have none yet: for the schema of a table before its first change, and for new columns.

The columns of one record get theirs before those inside of them, in the order of the schema.
Source: docs/formats/schema.md, "Schema history".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.arrow.kinds import is_list
from pyhudi.formats.avro.schema import DOC_KEY, storable
from pyhudi.model.keys import META_COLUMNS
from pyhudi.schema.internal import InternalSchema, ListType, MapType, SchemaColumn, StructType

__all__ = ["numbered_column", "numbered_schema", "renumbered"]


def numbered_schema(columns: pa.Schema, *, with_meta: bool) -> InternalSchema:
    """The schema of a table without history, as version 0. `columns`: its data columns; `with_meta`: rows have the five
    meta columns, which come first.
    """
    meta = [pa.field(name, pa.string()) for name in META_COLUMNS] if with_meta else []
    ids = count()
    numbered = _record([*meta, *storable(columns)], ids)
    return InternalSchema(0, next(ids) - 1, numbered)


def numbered_column(column: pa.Field, max_column_id: int) -> tuple[SchemaColumn, int]:
    """A new column of a schema whose greatest id is given; with the greatest one that there is then."""
    ids = count(max_column_id + 1)
    (numbered,) = _record([storable(pa.schema([column])).field(0)], ids)
    return numbered, next(ids) - 1


def renumbered(newest: InternalSchema, columns: pa.Schema) -> InternalSchema:
    """The schema of these columns after the newest one of a history: those with names that it has keep their ids.

    Args:    columns: the data columns of rows that were fitted to the table (`evolve`); meta columns stay as they are.
    """
    meta = tuple(column for column in newest.columns if column.name in META_COLUMNS)
    ids = count(newest.max_column_id + 1)
    known = {column.name: column for column in newest.columns}
    data = _known_or_new(list(storable(columns)), known, ids)
    return InternalSchema(newest.version_id, next(ids) - 1, (*meta, *data))


def _known_or_new(
    fields: list[pa.Field], known: Mapping[str, SchemaColumn], ids: Iterator[int]
) -> tuple[SchemaColumn, ...]:
    new = {field.name: next(ids) for field in fields if field.name not in known}
    return tuple(
        _column(new[field.name], field, ids) if field.name in new else _with_type(known[field.name], field, ids)
        for field in fields
    )


def _with_type(column: SchemaColumn, field: pa.Field, ids: Iterator[int]) -> SchemaColumn:
    return replace(column, type=_retyped(column.type, field.type, ids), nullable=column.nullable or field.nullable)


def _retyped(
    old: pa.DataType | StructType | ListType | MapType, new: pa.DataType, ids: Iterator[int]
) -> pa.DataType | StructType | ListType | MapType:
    if isinstance(old, StructType) and isinstance(new, pa.StructType):
        return StructType(_known_or_new(list(new.fields), {column.name: column for column in old.columns}, ids))
    if isinstance(old, ListType) and isinstance(new, pa.ListType):
        return ListType(_with_type(old.element, new.value_field, ids))
    if isinstance(old, MapType) and isinstance(new, pa.MapType):
        return replace(old, value=_with_type(old.value, new.item_field, ids))
    return new


def _record(fields: list[pa.Field], ids: Iterator[int]) -> tuple[SchemaColumn, ...]:
    own = [next(ids) for _ in fields]
    return tuple(_column(number, field, ids) for number, field in zip(own, fields, strict=True))


def _column(number: int, field: pa.Field, ids: Iterator[int]) -> SchemaColumn:
    doc = (field.metadata or {}).get(DOC_KEY, b"").decode()
    return SchemaColumn(number, field.name, _typed(field.type, ids), field.nullable, doc)


def _typed(data_type: pa.DataType, ids: Iterator[int]) -> pa.DataType | StructType | ListType | MapType:
    if pt.is_struct(data_type):
        return StructType(_record(list(data_type.fields), ids))
    if is_list(data_type):
        element = next(ids)
        return ListType(_part(element, "element", data_type.value_field, ids))
    if pt.is_map(data_type):
        key, value = next(ids), next(ids)
        inside = SchemaColumn(key, "key", data_type.key_type, nullable=False)
        return MapType(inside, _part(value, "value", data_type.item_field, ids))
    return data_type


def _part(number: int, name: str, field: pa.Field, ids: Iterator[int]) -> SchemaColumn:
    return SchemaColumn(number, name, _typed(field.type, ids), field.nullable)
