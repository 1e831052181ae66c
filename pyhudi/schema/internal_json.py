"""A schema with ids as the JSON of a schema history and of commits.

Source: docs/formats/schema.md, "Schema history".
"""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.types as at

from pyhudi.arrow.kinds import is_text
from pyhudi.errors import SchemaMismatch
from pyhudi.schema.internal import InternalSchema, ListType, MapType, SchemaColumn, StructType

__all__ = ["history_json", "schema_body", "schema_json"]

Body = dict[str, object]
_WORDS: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.time64("us"): "time",
    pa.time32("ms"): "time-millis",
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.timestamp("ms", tz="UTC"): "timestamp-millis",
    pa.timestamp("us"): "local-timestamp-micros",
    pa.timestamp("ms"): "local-timestamp-millis",
}


def schema_body(schema: InternalSchema) -> Body:
    """The schema as an object. Raises SchemaMismatch for a type that histories have no word for."""
    return {
        "max_column_id": schema.max_column_id,
        "version_id": schema.version_id,
        "type": "record",
        "fields": [_column(column) for column in schema.columns],
    }


def schema_json(schema: InternalSchema) -> str:
    """The schema as commits carry it under `latest_schema`."""
    return _text(schema_body(schema))


def history_json(newest: InternalSchema, older: list[object]) -> str:
    """A history file: a new schema before those that were there, which stay word for word."""
    return _text({"schemas": [schema_body(newest), *older]})


def _text(body: object) -> str:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def _column(column: SchemaColumn) -> Body:
    body: Body = {"id": column.id, "name": column.name, "optional": column.nullable, "type": _type(column.type)}
    if column.doc:
        body["doc"] = column.doc
    return body


def _type(kind: pa.DataType | StructType | ListType | MapType) -> object:
    if isinstance(kind, StructType):
        return {"type": "record", "fields": [_column(column) for column in kind.columns]}
    if isinstance(kind, ListType):
        part = kind.element
        return {
            "type": "array",
            "element_id": part.id,
            "element": _type(part.type),
            "element_optional": part.nullable,
        }
    if isinstance(kind, MapType):
        return {
            "type": "map",
            "key_id": kind.key.id,
            "key": _type(kind.key.type),
            "value_id": kind.value.id,
            "value": _type(kind.value.type),
            "value_optional": kind.value.nullable,
        }
    return _word(kind)


def _word(kind: pa.DataType) -> str:
    word = _WORDS.get(kind)
    if word is not None:
        return word
    if is_text(kind):
        return "string"
    if at.is_fixed_size_binary(kind):
        return f"fixed[{kind.byte_width}]"
    if at.is_binary(kind) or at.is_large_binary(kind):
        return "binary"
    if at.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    raise SchemaMismatch(f"A schema history has no word for the type {kind}.")
