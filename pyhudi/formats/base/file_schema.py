"""The Arrow schema that a base file stores for a table schema.

Types are those that a Hudi table can hold (Avro knows no byte and no short); every column may be null, and so may every
list item, map value and struct field. Source: docs/formats/base-files.md, "Parquet layouts".
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from pyhudi.errors import SchemaMismatch
from pyhudi.formats.avro.schema import storable
from pyhudi.model.keys import META_COLUMNS

__all__ = ["file_schema", "fit"]


@lru_cache(maxsize=64)  # each new file asks for it; metadata, which Arrow does not compare, has no part in it
def file_schema(schema: pa.Schema) -> pa.Schema:
    """`schema` with the types that a base file stores, all nullable, without metadata; meta columns come first.

    Raises SchemaMismatch naming every column that can't be stored.
    """
    meta = [pa.field(name, pa.string()) for name in META_COLUMNS if name in schema.names]
    return pa.schema(meta + [pa.field(field.name, _optional(field.type)) for field in storable(schema)])


def _optional(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _optional(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(
            pa.field("key", _optional(kind.key_type), nullable=False), pa.field("value", _optional(kind.item_type))
        )
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(child.name, _optional(child.type)) for child in kind])
    return kind


def fit(column: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    """`column` as `kind`, unchanged when it has that type. Raises SchemaMismatch when a value does not fit."""
    if column.type == kind:
        return column
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatch(f"Column {name!r}: {column.type} can't be stored as {kind}: {error}") from error
