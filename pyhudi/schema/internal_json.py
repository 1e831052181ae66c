"""Schemas with ids of columns as JSON, as real Hudi writes them; `internal.py` reads them.

Source: docs/formats/schema.md, "Schema history".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.errors import SchemaMismatch
from pyhudi.formats.timeline.bodies import Body
from pyhudi.model.keys import META_COLUMNS
from pyhudi.schema.internal import PRIMITIVES, InternalSchema, ListType, MapType, SchemaColumn, StructType

__all__ = ["encode_history", "encode_internal_schema"]

_WORDS: Mapping[pa.DataType, str] = {
    data_type: word for word, data_type in reversed(tuple(PRIMITIVES.items()))
}  # of two words for a type, the first


def encode_internal_schema(schema: InternalSchema) -> str:
    """One schema, as commits carry it under `latest_schema`."""
    body = {
        "max_column_id": schema.max_column_id,
        "version_id": schema.version_id,
        "type": "record",
        "fields": [_field(column) for column in schema.columns],
    }
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def encode_history(schemas: Iterable[str]) -> bytes:
    """A history file of schemas, newest first, each encoded already."""
    return ('{"schemas":[' + ",".join(schemas) + "]}").encode()


def _field(column: SchemaColumn) -> Body:
    field: Body = {
        "id": column.id,
        "name": column.name,
        "optional": column.nullable,
        "type": _type_of_json(column.type),
    }
    has_doc = column.doc or column.name in META_COLUMNS
    return {**field, "doc": column.doc} if has_doc else field


def _type_of_json(data_type: pa.DataType | StructType | ListType | MapType) -> str | Body:
    if isinstance(data_type, StructType):
        return {"type": "record", "fields": [_field(column) for column in data_type.columns]}
    if isinstance(data_type, ListType):
        item = data_type.element
        return {
            "type": "array",
            "element_id": item.id,
            "element": _type_of_json(item.type),
            "element_optional": item.nullable,
        }
    if isinstance(data_type, MapType):
        key, value = data_type.key, data_type.value
        return {
            "type": "map",
            "key_id": key.id,
            "key": _type_of_json(key.type),
            "value_id": value.id,
            "value": _type_of_json(value.type),
            "value_optional": value.nullable,
        }
    return _word(data_type)


def _word(data_type: pa.DataType) -> str:
    if data_type in _WORDS:
        return _WORDS[data_type]
    if pt.is_decimal(data_type):
        return f"decimal({data_type.precision}, {data_type.scale})"
    if pt.is_fixed_size_binary(data_type):
        return f"fixed[{data_type.byte_width}]"
    raise SchemaMismatch(f"A schema history has no word for the type {data_type}; give the column another type.")
