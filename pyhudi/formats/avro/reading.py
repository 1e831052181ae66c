"""Avro schema → Arrow types.

Every Avro type has one Arrow type; what Spark and Hudi can't hold either (recursive records, real unions) is refused.
Nullable is the union of a type with null, in either order. A field's `doc` travels as Arrow field metadata `doc`.
Records of Hudi's own (the metadata table) have real unions: on request such a union is a struct with a nullable member
for each of its types, `member0` and so on, as Hudi's table function `hudi_metadata` shows it.
Source: docs/formats/base-files.md, "Avro schema of a table"; Avro specification 1.11, "Schema declaration" and
"Logical types".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache

import pyarrow as pa

from pyhudi.errors import CorruptFile, UnsupportedTable
from pyhudi.formats.bodies import AvroType, Body

__all__ = ["DOC_KEY", "arrow_from_avro", "nullable_branch"]

DOC_KEY = b"doc"  # key of an Arrow field's metadata that holds the column's comment

MAX_SCHEMA_CHARS = 64 * 1024 * 1024
MAX_DEPTH = 100  # of nesting; deeper schemas are an attack or a mistake

_PRIMITIVES: Mapping[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}

# Keyed by (Avro type, logical type). A logical type on another base type means nothing, as Avro says.
_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", tz="UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", tz="UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}


@lru_cache(maxsize=256)
def arrow_from_avro(text: str, *, unions: bool = False) -> pa.Schema:
    """The Arrow schema of an Avro record schema, all fields in order, meta columns too when it has them.

    Args:    text: the schema as JSON; unions: a union of several types is a struct, instead of an error.
    Returns: list items are named `element`, map entries `key` and `value`; enums and UUIDs are strings.
    Raises:  CorruptFile when the text is no Avro record schema; UnsupportedTable for recursive records, for unions
             of several types and for decimals of more than 38 digits.
    """
    if len(text) > MAX_SCHEMA_CHARS:
        raise CorruptFile(f"An Avro schema of {len(text)} characters; at most {MAX_SCHEMA_CHARS} are read.")
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(f"Not an Avro schema, the JSON can't be read ({error}): {text[:200]!r}.") from error
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise CorruptFile(f"Expected an Avro record schema, found {text[:200]!r}.")
    return pa.schema(_Reader(unions).record_fields(parsed, "", ""))


def nullable_branch(union: Sequence[AvroType]) -> tuple[AvroType | None, bool]:
    """A union's one type that is not null (None when there are several or none), and whether null is in it."""
    types = [branch for branch in union if branch != "null" and branch != {"type": "null"}]
    return (types[0] if len(types) == 1 else None), len(types) < len(union)


class _Reader:
    """Walks one schema; keeps the named types seen, so that later references resolve."""

    def __init__(self, unions: bool) -> None:
        self._unions = unions
        self._named: dict[str, pa.DataType] = {}
        self._open: set[str] = set()
        self._depth = 0

    def record_fields(self, record: Body, namespace: str, path: str) -> list[pa.Field]:
        name, inner = _full_name(record, namespace)
        fields = record.get("fields")
        if not isinstance(fields, list):
            raise CorruptFile(f"Avro record {name!r} has no list of fields.")
        self._open.add(name)
        arrow = [self._field(field, inner, path) for field in fields]
        self._open.discard(name)
        self._named[name] = pa.struct(arrow)
        return arrow

    def _field(self, field: object, namespace: str, path: str) -> pa.Field:
        if not isinstance(field, dict) or not isinstance(field.get("name"), str) or "type" not in field:
            raise CorruptFile(f"Avro schema: a field of {path or 'the record'} lacks name or type: {str(field)[:200]}.")
        where = f"{path}.{field['name']}" if path else field["name"]
        data_type, nullable = self._type(field["type"], namespace, where)
        doc = field.get("doc")
        metadata = {DOC_KEY: doc.encode()} if isinstance(doc, str) and doc else None
        return pa.field(field["name"], data_type, nullable=nullable, metadata=metadata)

    def _type(self, avro: object, namespace: str, path: str) -> tuple[pa.DataType, bool]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnsupportedTable(f"Column {path!r} is nested more than {MAX_DEPTH} levels deep.")
        try:
            if isinstance(avro, list):
                branch, nullable = nullable_branch(avro)
                if branch is None and self._unions:
                    return self._members(avro, namespace, path), nullable
                if branch is None:
                    raise UnsupportedTable(
                        f"Column {path!r} is the Avro union {json.dumps(avro)[:200]}; only a union of null and one "
                        f"type is a column type."
                    )
                return self._plain(branch, namespace, path), nullable
            return self._plain(avro, namespace, path), False
        finally:
            self._depth -= 1

    def _members(self, union: Sequence[AvroType], namespace: str, path: str) -> pa.DataType:
        branches = [branch for branch in union if branch != "null"]
        types = [self._plain(branch, namespace, path) for branch in branches]
        return pa.struct([pa.field(f"member{number}", data_type) for number, data_type in enumerate(types)])

    def _plain(self, avro: object, namespace: str, path: str) -> pa.DataType:
        if isinstance(avro, str):
            return self._reference(avro, namespace, path)
        if isinstance(avro, list):
            raise CorruptFile(f"Avro schema: a union directly inside a union at {path!r}.")
        if not isinstance(avro, dict) or "type" not in avro:
            raise CorruptFile(f"Avro schema: no type at {path!r}, found {str(avro)[:200]}.")
        kind = avro["type"]
        if not isinstance(kind, str):
            return self._type(kind, namespace, path)[0]
        if kind in ("record", "error"):
            return pa.struct(self.record_fields(avro, namespace, path))
        if kind == "array":
            data_type, nullable = self._type(avro.get("items"), namespace, f"{path}.element")
            return pa.list_(pa.field("element", data_type, nullable=nullable))
        if kind == "map":
            data_type, nullable = self._type(avro.get("values"), namespace, f"{path}.value")
            return pa.map_(pa.string(), pa.field("value", data_type, nullable=nullable))
        if kind in ("enum", "fixed"):
            data_type = pa.string() if kind == "enum" else _fixed(avro, path)
            self._named[_full_name(avro, namespace)[0]] = data_type
            return data_type
        if kind == "bytes" and avro.get("logicalType") == "decimal":
            return _decimal(avro, path)
        logical = avro.get("logicalType")
        if isinstance(logical, str) and (kind, logical) in _LOGICAL:
            return _LOGICAL[kind, logical]
        return self._reference(kind, namespace, path)

    def _reference(self, name: str, namespace: str, path: str) -> pa.DataType:
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        for full in (name, f"{namespace}.{name}"):
            if full in self._named:
                return self._named[full]
            if full in self._open:
                raise UnsupportedTable(f"Column {path!r} is of the recursive Avro record {full!r}; no column type is.")
        raise CorruptFile(f"Avro schema: unknown type {name!r} at {path!r}.")


def _full_name(named: Body, namespace: str) -> tuple[str, str]:
    """Full name of a record, enum or fixed, and the namespace that its inner names stand in."""
    name = named.get("name")
    if not isinstance(name, str) or not name:
        raise CorruptFile(f"Avro schema: a {named.get('type')} without a name.")
    if "." in name:
        return name, name.rpartition(".")[0]
    inner = named.get("namespace", namespace)
    inner = inner if isinstance(inner, str) else namespace
    return (f"{inner}.{name}" if inner else name), inner


def _fixed(avro: Body, path: str) -> pa.DataType:
    size = avro.get("size")
    if not isinstance(size, int) or not 0 < size < 2**31:
        raise CorruptFile(f"Avro schema: fixed of size {size!r} at {path!r}.")
    if avro.get("logicalType") == "decimal":
        return _decimal(avro, path)
    return pa.binary(size)


def _decimal(avro: Body, path: str) -> pa.DataType:
    precision, scale = avro.get("precision"), avro.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or precision < 1 or not 0 <= scale <= precision:
        raise CorruptFile(f"Avro schema: decimal({precision}, {scale}) at {path!r}.")
    if precision > 38:
        raise UnsupportedTable(f"Column {path!r} is decimal({precision}, {scale}); at most 38 digits are supported.")
    return pa.decimal128(precision, scale)
