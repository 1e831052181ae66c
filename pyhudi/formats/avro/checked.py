"""Check Avro schemas: the only way from a schema's text to its types, for every schema of a table.

A schema of a few hundred bytes can be recursive, or double its types at each level by references: decoders follow these
until the stack or the memory ends. So types are counted here through all references, and recursive, too deep or too
large schemas are refused before anything is decoded.
Source: Avro specification 1.11, "Schema declaration", "Names"; docs/formats/base-files.md, "Avro schema of a table".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

from pyhudi.errors import CorruptFile, UnsupportedTable
from pyhudi.formats.timeline.bodies import AvroObject, AvroType, Body

__all__ = ["PRIMITIVES", "CheckedSchema", "checked_schema"]

PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))

MAX_SCHEMA_CHARS = 16 * 1024 * 1024  # 100,000 columns with a comment each; parsed JSON takes twenty times its text
MAX_DEPTH = 100  # levels; deeper schemas are an attack or a mistake
MAX_TYPES = 100_000  # counted through references; Spark and Java fail with fewer columns
MAX_SYMBOL_CHARS = 255  # of an enum: a row's single byte decodes to this many
MAX_FIXED_BYTES = 2**31 - 1  # Java's arrays hold no more
_CACHED_SCHEMAS_MAX = 64
_CACHED_CHARS_MAX = 256 * 1024  # longer schemas are not cached, so that the cache stays small


@dataclass(frozen=True, slots=True)
class CheckedSchema:
    """A record schema that is safe for decoding.

    `name`: the record's full name. `written`: the original JSON. `record`: the JSON with references replaced by their
    definitions; definitions are shared, so it is not larger than the text.
    """

    name: str
    written: AvroObject
    record: AvroObject


@dataclass(frozen=True, slots=True)
class _Type:
    """A type without references. `count`: number of types in it, itself included; `depth`: levels below it."""

    avro: AvroType
    count: int = 1
    depth: int = 0


def checked_schema(text: str) -> CheckedSchema:
    """Return the record schema in a text.

    Args:    text: the schema as JSON.
    Raises:  CorruptFile when the text is not an Avro record schema; UnsupportedTable for recursive records, for more
             than MAX_DEPTH levels and for more than MAX_TYPES types.
    """
    return _check_cached(text) if len(text) <= _CACHED_CHARS_MAX else _check(text)


def _check(text: str) -> CheckedSchema:
    parsed = _parsed(text)
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise CorruptFile(f"Expected an Avro record schema, found {text[:200]!r}.")
    record = _Resolver().record(parsed, "", "", 0).avro
    assert isinstance(record, dict)
    return CheckedSchema(_full_name(parsed, "")[0], parsed, record)


_check_cached = lru_cache(maxsize=_CACHED_SCHEMAS_MAX)(_check)


def _parsed(text: str) -> object:
    if len(text) > MAX_SCHEMA_CHARS:
        raise CorruptFile(f"An Avro schema of {len(text)} characters; at most {MAX_SCHEMA_CHARS} are read.")
    try:
        parsed: object = json.loads(text)
        if "\\u" in text or not text.isascii():
            # Half a surrogate pair is a character in JSON, but not text in Arrow.
            json.dumps(parsed, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise CorruptFile(
            f"Not an Avro schema, the JSON can't be read ({str(error)[:200]!a}): {text[:200]!a}."
        ) from error
    return parsed


class _Resolver:
    """Walks one schema and stores its named types, so that later references resolve."""

    def __init__(self) -> None:
        self._types: dict[str, _Type] = {}
        self._open: frozenset[str] = frozenset()

    def record(self, avro: AvroObject, namespace: str, path: str, level: int) -> _Type:
        name, inner = _full_name(avro, namespace)
        listed = avro.get("fields")
        if not isinstance(listed, list):
            raise CorruptFile(f"Avro record {name!r} has no list of fields.")
        outer = self._open
        self._open = outer | {name}
        fields: list[AvroObject] = []
        names: set[str] = set()
        count, depth = 1, 0
        for field in listed:
            if not isinstance(field, dict) or not isinstance(field.get("name"), str) or "type" not in field:
                raise CorruptFile(
                    f"Avro schema: a field of {path or 'the record'} lacks name or type: {str(field)[:200]}."
                )
            where = f"{path}.{field['name']}" if path else field["name"]
            if field["name"] in names:
                raise CorruptFile(f"Avro schema: the field {where!r} occurs twice.")
            names.add(field["name"])
            kind = self.type(field["type"], inner, where, level + 1)
            fields.append({**field, "type": kind.avro})
            count, depth = _more(count, kind, where), max(depth, kind.depth + 1)
        self._open = outer
        return self._remember(name, _Type({**avro, "fields": fields}, count, depth))

    def type(self, avro: object, namespace: str, path: str, level: int) -> _Type:
        """Return the type at a place. Raises CorruptFile, UnsupportedTable."""
        if level > MAX_DEPTH:
            raise UnsupportedTable(f"Column {path!r} is nested more than {MAX_DEPTH} levels deep.")
        if isinstance(avro, str):
            referenced = self._reference(avro, namespace, path)
            if level + referenced.depth > MAX_DEPTH:
                raise UnsupportedTable(f"Column {path!r} is nested more than {MAX_DEPTH} levels deep.")
            return referenced
        if isinstance(avro, list):
            return self._union(avro, namespace, path, level)
        if not isinstance(avro, dict) or "type" not in avro:
            raise CorruptFile(f"Avro schema: no type at {path!r}, found {str(avro)[:200]}.")
        return self._object(avro, namespace, path, level)

    def _object(self, avro: AvroObject, namespace: str, path: str, level: int) -> _Type:
        kind = avro["type"]
        if not isinstance(kind, str):
            inner = self.type(kind, namespace, path, level + 1)
            avro_type = inner.avro if inner.avro == "null" else {"type": inner.avro}
            return _Type(avro_type, inner.count, inner.depth + 1)
        if kind in ("record", "error"):
            return self.record(avro, namespace, path, level)
        if kind in ("enum", "fixed"):
            (_check_symbols if kind == "enum" else _check_size)(avro, path)
            return self._remember(_full_name(avro, namespace)[0], _Type(avro))
        if kind in ("array", "map"):
            key, part = ("items", "element") if kind == "array" else ("values", "value")
            inner = self.type(avro.get(key), namespace, f"{path}.{part}", level + 1)
            return _Type({**avro, key: inner.avro}, _more(1, inner, path), inner.depth + 1)
        if kind == "null":
            return _Type("null")
        return _Type(avro) if kind in PRIMITIVES else self.type(kind, namespace, path, level + 1)

    def _union(self, avro: list[object], namespace: str, path: str, level: int) -> _Type:
        branches: list[AvroType] = []
        count, depth = 0, 0
        for branch in avro:
            if isinstance(branch, list):
                raise CorruptFile(f"Avro schema: a union directly inside a union at {path!r}.")
            kind = self.type(branch, namespace, path, level)
            if kind.avro == "null" and "null" in branches:
                raise CorruptFile(f"Avro schema: a union with null twice at {path!r}.")
            branches.append(kind.avro)
            count, depth = _more(count, kind, path), max(depth, kind.depth)
        return _Type(branches, count, depth)

    def _reference(self, name: str, namespace: str, path: str) -> _Type:
        if name in PRIMITIVES:
            return _Type(name)
        near = f"{namespace}.{name}"
        for full in (name, near) if "." in name or not namespace else (near, name):
            if full in self._open:
                raise UnsupportedTable(f"Column {path!r} is of the recursive Avro record {full!r}; no column type is.")
            if full in self._types:
                return self._types[full]
        raise CorruptFile(f"Avro schema: unknown type {name[:200]!r} at {path!r}.")

    def _remember(self, name: str, kind: _Type) -> _Type:
        self._types[name] = kind
        return kind


def _more(count: int, inner: _Type, path: str) -> int:
    total = count + inner.count
    if total > MAX_TYPES:
        raise UnsupportedTable(
            f"Column {path!r}: the Avro schema has more than {MAX_TYPES} types with it, each counted wherever it is "
            "named; that is the limit."
        )
    return total


def _full_name(named: Body, namespace: str) -> tuple[str, str]:
    """Return the full name of a record, enum or fixed, and the namespace that its inner names are in."""
    name = named.get("name")
    if not isinstance(name, str) or not name:
        raise CorruptFile(f"Avro schema: a {named.get('type')} without a name.")
    if "." in name:
        return name, name.rpartition(".")[0]
    inner = named.get("namespace", namespace)
    if not isinstance(inner, str):
        raise CorruptFile(f"Avro schema: the namespace of {name[:200]!r} is not text, found {str(inner)[:200]}.")
    return (f"{inner}.{name}" if inner else name), inner


def _check_symbols(avro: Body, path: str) -> None:
    symbols = avro.get("symbols")
    if not isinstance(symbols, list) or not all(isinstance(s, str) and len(s) <= MAX_SYMBOL_CHARS for s in symbols):
        raise CorruptFile(
            f"Avro schema: expected an enum with a list of symbols of at most {MAX_SYMBOL_CHARS} characters at "
            f"{path!r}, found {str(symbols)[:200]}."
        )


def _check_size(avro: Body, path: str) -> None:
    size = avro.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= MAX_FIXED_BYTES:
        raise CorruptFile(f"Avro schema: fixed of size {size!r} at {path!r}.")
