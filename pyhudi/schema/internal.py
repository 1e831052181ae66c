"""Schema on read: schemas whose columns have ids, their history, and their JSON.

Ids make a file readable after a rename, drop or re-add of columns. A column's id never changes; a column that is
dropped and added again is another column.

The history is one JSON file, `{"schemas": [newest, ..., oldest]}`, under `.hoodie/.schema`. The `version_id` of a
schema is the instant of the change that made it, 0 for the schema before the first change. `decode_history` and
`encode_history` read and write the JSON like Apache Hudi. `changes.py` changes schemas.
Source: docs/formats/schema.md, "Schema history".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.errors import CorruptFile, SchemaMismatch
from pyhudi.formats.avro.schema import DOC_KEY
from pyhudi.formats.json_text import parse_json
from pyhudi.formats.timeline.bodies import LONG_MAX, Body, shown
from pyhudi.model.filenames import SCHEMA_FOLDER
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.table_config import TableConfig
from pyhudi.model.timeline import Timeline
from pyhudi.storage.base import Storage

__all__ = [
    "PRIMITIVES",
    "InternalSchema",
    "ListType",
    "MapType",
    "SchemaColumn",
    "StructType",
    "decode_history",
    "decode_internal_schema",
    "encode_history",
    "encode_internal_schema",
    "history_texts",
    "load_schema_history",
    "schema_as_of",
    "schema_json_as_of",
]


_COMPLETED = re.compile(r"(\d+)(?:_\d+)?\.schemacommit", re.ASCII)
_MAX_DEPTH = 100

PRIMITIVES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "time-millis": pa.time32("ms"),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp-millis": pa.timestamp("ms", tz="UTC"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "string": pa.string(),
    "uuid": pa.string(),
    "binary": pa.binary(),
}
_FIXED = re.compile(r"fixed\[(\d{1,10})\]", re.ASCII)
_DECIMAL = re.compile(r"decimal\w*\(\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\).*", re.ASCII)


@dataclass(frozen=True, slots=True)
class SchemaColumn:
    """One column, or one part of a nested one, with its permanent id."""

    id: int
    name: str
    type: pa.DataType | StructType | ListType | MapType
    nullable: bool = True
    doc: str = ""

    def to_arrow(self) -> pa.Field:
        """Return the name, type, nullability and comment, without ids."""
        metadata = {DOC_KEY: self.doc.encode()} if self.doc else None
        return pa.field(self.name, _arrow_type(self.type), nullable=self.nullable, metadata=metadata)


@dataclass(frozen=True, slots=True)
class StructType:
    """A record inside a column."""

    columns: tuple[SchemaColumn, ...]


@dataclass(frozen=True, slots=True)
class ListType:
    """An array."""

    element: SchemaColumn  # named "element"


@dataclass(frozen=True, slots=True)
class MapType:
    """A map."""

    key: SchemaColumn  # named "key"
    value: SchemaColumn  # named "value"


@dataclass(frozen=True, slots=True)
class InternalSchema:
    """A table's schema as of one change. The columns include meta columns, if any (ids 0 to 4)."""

    version_id: int
    max_column_id: int
    columns: tuple[SchemaColumn, ...]

    def to_arrow(self) -> pa.Schema:
        """Return all columns, meta columns included, with their Arrow types."""
        return pa.schema([column.to_arrow() for column in self.columns])


def load_schema_history(storage: Storage, config: TableConfig, timeline: Timeline) -> tuple[InternalSchema, ...]:
    """Load the table's schemas, newest first; () when no schema-on-read change was ever committed.

    Of the history files, the newest one of a committed instant counts; others are left by failed or later writers.
    Raises CorruptFile when that file can't be read.
    """
    path = _newest_file(storage, timeline)
    return () if path is None else decode_history(storage.read(path), path)


def _newest_file(storage: Storage, timeline: Timeline) -> str | None:
    versions = []
    for info in storage.list(SCHEMA_FOLDER):
        match = _COMPLETED.fullmatch(info.name)
        if match and timeline.is_visible(match.group(1)):
            versions.append((match.group(1), info.path))
    return max(versions)[1] if versions else None


def history_texts(storage: Storage, timeline: Timeline) -> list[str]:
    """Return the history's schemas, newest first, as texts of the file; [] without a history. Raises CorruptFile."""
    path = _newest_file(storage, timeline)
    if path is None:
        return []
    data = storage.read(path)
    decode_history(data, path)
    schemas = cast("Body", _json(data, path))["schemas"]
    ordered = sorted(schemas, key=lambda schema: cast("int", schema["version_id"]), reverse=True)
    return [json.dumps(schema, separators=(",", ":"), ensure_ascii=False) for schema in ordered]


def schema_json_as_of(storage: Storage, timeline: Timeline, instant_time: str) -> str | None:
    """Return the schema valid at an instant, in the form of commits' `latest_schema`; None without one.

    It is copied unchanged from the history, which has entries that are not parsed here. Raises CorruptFile.
    """
    path = _newest_file(storage, timeline)
    if path is None:
        return None
    data = storage.read(path)
    valid = [schema.version_id for schema in decode_history(data, path) if schema.version_id <= int(instant_time)]
    texts = {schema["version_id"]: schema for schema in cast("Body", _json(data, path))["schemas"]}
    return json.dumps(texts[max(valid)], separators=(",", ":"), ensure_ascii=False) if valid else None


def schema_as_of(history: Sequence[InternalSchema], instant_time: str) -> InternalSchema | None:
    """Return the schema valid when a file of `instant_time` was written: the greatest version up to it.

    None when the history is empty or begins later (then columns match by name).
    """
    valid = [schema for schema in history if schema.version_id <= int(instant_time)]
    return max(valid, key=lambda schema: schema.version_id, default=None)


def decode_history(data: bytes, where: str = "schema history") -> tuple[InternalSchema, ...]:
    """Decode the schemas of a history file, newest first. Raises CorruptFile; `where` is the file's path."""
    body = _json(data, where)
    schemas = body.get("schemas") if isinstance(body, dict) else None
    if not isinstance(schemas, list):
        raise CorruptFile(f"{where}: expected an object with a list of schemas, found {shown(body)}.")
    decoded = (_schema(schema, where) for schema in schemas)
    return tuple(sorted(decoded, key=lambda schema: schema.version_id, reverse=True))


def decode_internal_schema(text: str, where: str = "latest_schema") -> InternalSchema:
    """Decode one schema from the form of commits' `latest_schema`. Raises CorruptFile."""
    return _schema(_json(text.encode(errors="surrogatepass"), where), where)


def _json(data: bytes, where: str) -> object:
    return parse_json(data, where, "the JSON of a schema history")


def _schema(body: object, where: str) -> InternalSchema:
    if not isinstance(body, dict):
        raise CorruptFile(f"{where}: expected a schema, found {shown(body)}.")
    columns = _columns(body, where, 0)
    version, max_id = _long(body.get("version_id")), _long(body.get("max_column_id", -1))
    if version is None or max_id is None:
        raise CorruptFile(f"{where}: a schema without version or greatest column id, which are numbers of 64 bits.")
    return InternalSchema(version, max_id, columns)


def _long(value: object) -> int | None:
    return value if isinstance(value, int) and -LONG_MAX <= value <= LONG_MAX else None


def _columns(body: Body, where: str, depth: int) -> tuple[SchemaColumn, ...]:
    fields = body.get("fields")
    if not isinstance(fields, list):
        raise CorruptFile(f"{where}: a record without a list of fields.")
    return tuple(_column(field, where, depth) for field in fields)


def _column(field: object, where: str, depth: int) -> SchemaColumn:
    if not isinstance(field, dict) or _long(field.get("id")) is None or not isinstance(field.get("name"), str):
        raise CorruptFile(f"{where}: a column without id or name: {shown(field)}.")
    doc = field.get("doc")
    data_type = _type(field.get("type"), where, depth)
    return SchemaColumn(
        field["id"], field["name"], data_type, bool(field.get("optional", True)), doc if isinstance(doc, str) else ""
    )


def _type(body: object, where: str, depth: int) -> pa.DataType | StructType | ListType | MapType:
    if depth > _MAX_DEPTH:
        raise CorruptFile(f"{where}: types nested more than {_MAX_DEPTH} levels deep.")
    if isinstance(body, str):
        return _primitive(body, where)
    if isinstance(body, dict) and body.get("type") == "record":
        return StructType(_columns(body, where, depth + 1))
    if isinstance(body, dict) and body.get("type") == "array":
        return ListType(_part(body, "element", "element_optional", where, depth))
    if isinstance(body, dict) and body.get("type") == "map":
        return MapType(_part(body, "key", "", where, depth), _part(body, "value", "value_optional", where, depth))
    raise CorruptFile(f"{where}: unknown column type {shown(body)}.")


def _part(body: Body, name: str, optional_key: str, where: str, depth: int) -> SchemaColumn:
    part_id = _long(body.get(f"{name}_id"))
    if part_id is None:
        raise CorruptFile(f"{where}: {body.get('type')} without {name}_id.")
    nullable = bool(body.get(optional_key, True)) if optional_key else False
    return SchemaColumn(part_id, name, _type(body.get(name), where, depth + 1), nullable)


def _primitive(text: str, where: str) -> pa.DataType:
    word = text.strip().lower()
    if word in PRIMITIVES:
        return PRIMITIVES[word]
    fixed = _FIXED.fullmatch(word)
    if fixed and 0 < int(fixed.group(1)) < 2**31:
        return pa.binary(int(fixed.group(1)))
    decimal = _DECIMAL.fullmatch(word)
    if decimal and int(decimal.group(2)) <= int(decimal.group(1)) <= 38 and int(decimal.group(1)) > 0:
        return pa.decimal128(int(decimal.group(1)), int(decimal.group(2)))
    raise CorruptFile(f"{where}: unknown column type {text[:200]!r}.")


def _arrow_type(data_type: pa.DataType | StructType | ListType | MapType) -> pa.DataType:
    if isinstance(data_type, StructType):
        return pa.struct([column.to_arrow() for column in data_type.columns])
    if isinstance(data_type, ListType):
        return pa.list_(data_type.element.to_arrow())
    if isinstance(data_type, MapType):
        return pa.map_(_arrow_type(data_type.key.type), data_type.value.to_arrow())
    return data_type


_WORDS: Mapping[pa.DataType, str] = {
    data_type: word for word, data_type in reversed(tuple(PRIMITIVES.items()))
}  # the first of two words for a type


def encode_internal_schema(schema: InternalSchema) -> str:
    """Encode one schema in the form of commits' `latest_schema`."""
    body = {
        "max_column_id": schema.max_column_id,
        "version_id": schema.version_id,
        "type": "record",
        "fields": [_field(column) for column in schema.columns],
    }
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def encode_history(schemas: Iterable[str]) -> bytes:
    """Encode a history file of encoded schemas, newest first."""
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
