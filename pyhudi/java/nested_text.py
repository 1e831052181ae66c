"""Text of structs, lists and maps as Avro's and Java's `toString` print them. Row by row: such keys are rare.

At the top a list is `[a, b]` and a map `{a=1}` (Java collections), a struct is JSON-like (`{"x": 1, "y": "z"}`), and
so is everything within a struct. Values whose text depends on Java's internals are refused by name.
Source: docs/formats/keys.md, "Text of values".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from pyhudi.arrow.kinds import is_list
from pyhudi.errors import KeyGenError

__all__ = ["nested_texts"]

Writer = Callable[[Any], str]  # of values of one type
Entries = list[tuple[str, object]]

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}


def nested_texts(column: pa.Array, field: str) -> list[str | None]:
    """Texts of a struct, list or map column. Raises KeyGenError for types within that have no defined text."""
    write = _collection_writer(column.type, field)
    return [None if value is None else write(value) for value in column.to_pylist()]


def _collection_writer(kind: pa.DataType, field: str) -> Writer:
    if pa.types.is_struct(kind):
        return _json_writer(kind, field)
    if pa.types.is_map(kind):
        key, item = _plain_writer(kind.key_type, field), _plain_writer(kind.item_type, field)
        return lambda pairs: "{" + ", ".join(f"{key(k)}={item(v)}" for k, v in _single(pairs, field)) + "}"
    assert is_list(kind), kind
    element = _plain_writer(kind.value_type, field)
    return lambda values: "[" + ", ".join(map(element, values)) + "]"


def _plain_writer(kind: pa.DataType, field: str) -> Writer:
    """Within a Java collection: strings have no quotes."""
    if pa.types.is_struct(kind) or pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = _collection_writer(kind, field)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        inner = str
    else:
        inner = _scalar_writer(kind, field)
    return lambda value: "null" if value is None else inner(value)


def _json_writer(kind: pa.DataType, field: str) -> Writer:
    """Within an Avro record: JSON with a blank after commas and colons."""
    inner: Writer
    if pa.types.is_struct(kind):
        members = [(child.name, _json_writer(child.type, field)) for child in kind]

        def inner(value: Mapping[str, object]) -> str:
            return "{" + ", ".join(f"{_quoted(name)}: {write(value[name])}" for name, write in members) + "}"

    elif pa.types.is_map(kind):
        item = _json_writer(kind.item_type, field)

        def inner(value: Entries) -> str:
            return "{" + ", ".join(f"{_quoted(k)}: {item(v)}" for k, v in _single(value, field)) + "}"

    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = _json_writer(kind.value_type, field)

        def inner(value: Iterable[object]) -> str:
            return "[" + ", ".join(map(element, value)) + "]"

    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        inner = _quoted
    else:
        inner = _scalar_writer(kind, field)
    return lambda value: "null" if value is None else inner(value)


def _scalar_writer(kind: pa.DataType, field: str) -> Writer:
    if pa.types.is_boolean(kind):
        return lambda value: "true" if value else "false"
    if pa.types.is_integer(kind):
        return str
    raise KeyGenError(
        f"Field {field!r} holds values of type {kind} inside a struct, list or map, whose text in Hudi's keys is not "
        f"defined. Use the inner field itself (dotted name) as key or partition field."
    )


def _single(pairs: Entries, field: str) -> Entries:
    """Entries of a map, which must be at most one: Java prints them in the order of its hash table."""
    if len(pairs) > 1:
        raise KeyGenError(
            f"Field {field!r} is a map with {len(pairs)} entries; their order in a key is not defined. "
            f"Use a string, number or date column as key or partition field."
        )
    return pairs


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(c, c) if c >= " " else _ESCAPES.get(c, f"\\u{ord(c):04X}") for c in text) + '"'
