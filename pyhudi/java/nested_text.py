"""Texts of nested values as Java prints them in keys, and JSON texts of whole rows for queries of changes.

`nested_texts` prints structs, lists and maps as the `toString` of Avro and Java does. It goes row by row, because such
keys are rare. At the top a list is `[a, b]` and a map `{a=1}` (Java collections). A struct is JSON-like
(`{"x": 1, "y": "z"}`), and so is everything within a struct. Values whose text depends on Java's internals are refused
by name.

`image_texts` prints a column of rows as JSON objects: queries of changes return them as the row before and after.

    strings, booleans, numbers    as in JSON
    not a number, infinity        `"NaN"` and `"Infinity"`, in quotes
    decimals                      numbers with all their digits
    dates and times               the whole numbers that Avro stores
    bytes                         Base64

Change logs have a blank behind `:` and `,`, as Avro prints records; rows from other files have none.

Source: docs/formats/keys.md, "Text of values"; docs/formats/incremental.md, "Changes".
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.kinds import LIST_ARRAYS, is_list, is_text
from pyhudi.errors import KeyGenError
from pyhudi.java.floats import float_text

__all__ = ["image_texts", "nested_texts"]


Writer = Callable[[Any], str]  # of values of one type
Entries = list[tuple[str, object]]

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}


def nested_texts(column: pa.Array, field: str) -> list[str | None]:
    """Return texts of a struct, list or map column. Raises KeyGenError for types within that have no defined text."""
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
            return "{" + ", ".join(f"{_quote(name)}: {write(value[name])}" for name, write in members) + "}"

    elif pa.types.is_map(kind):
        item = _json_writer(kind.item_type, field)

        def inner(value: Entries) -> str:
            return "{" + ", ".join(f"{_quote(k)}: {item(v)}" for k, v in _single(value, field)) + "}"

    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = _json_writer(kind.value_type, field)

        def inner(value: Iterable[object]) -> str:
            return "[" + ", ".join(map(element, value)) + "]"

    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        inner = _quote
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
    """Return entries of a map, which must be at most one: Java prints them in the order of its hash table."""
    if len(pairs) > 1:
        raise KeyGenError(
            f"Field {field!r} is a map with {len(pairs)} entries; their order in a key is not defined. "
            f"Use a string, number or date column as key or partition field."
        )
    return pairs


def _quote(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(c, c) if c >= " " else _ESCAPES.get(c, f"\\u{ord(c):04X}") for c in text) + '"'


_NULL = "null"
_CONTROLS = [chr(code) for code in range(0x20)]
_ANY_CONTROL = r"[\x00-\x1f]"


def image_texts(rows: pa.StructArray, *, spaced: bool) -> pa.Array:
    """Return a string array with a JSON object for each row; null where the row is.

    Args:    spaced: blanks behind `:` and `,`.
    """
    blank = " " if spaced else ""
    texts = _struct(rows, blank)
    return pc.if_else(rows.is_valid(), texts, pa.scalar(None, pa.string())) if rows.null_count else texts


def _texts(values: pa.Array, blank: str) -> pa.Array:
    """Return a JSON text for each value, `null` for nulls."""
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_struct(kind):
        texts = _struct(values, blank)
    elif pa.types.is_map(kind):
        texts = _map(values, blank)
    elif is_list(kind):
        texts = _list(values, blank)
    else:
        texts = _scalar(values)
    if not values.null_count:
        return texts
    return pc.if_else(values.is_valid(), texts, _NULL)


def _scalar(values: pa.Array) -> pa.Array:
    kind = values.type
    if is_text(kind):
        return _quoted_texts(values.cast(pa.string()))
    if pa.types.is_floating(kind):
        texts = float_text(values)
        return pc.if_else(pc.match_substring_regex(texts, "[yN]"), _in_quotes(texts), texts)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return values.cast(pa.int32()).cast(pa.string())
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return values.cast(pa.int64()).cast(pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        # Row by row: Arrow has no kernel for Base64.
        byte_values = cast("list[bytes | None]", values.to_pylist())
        return _in_quotes(
            pa.array([None if v is None else base64.b64encode(v).decode("ascii") for v in byte_values], pa.string())
        )
    return values.cast(pa.string())


def _in_quotes(texts: pa.Array) -> pa.Array:
    quote = pa.scalar('"')
    return pc.binary_join_element_wise(quote, texts, quote, pa.scalar(""))


def _quoted_texts(texts: pa.Array) -> pa.Array:
    texts = pc.replace_substring(texts, "\\", "\\\\")
    texts = pc.replace_substring(texts, '"', '\\"')
    if pc.any(pc.match_substring_regex(texts, _ANY_CONTROL)).as_py():
        for control in _CONTROLS:
            texts = pc.replace_substring(texts, control, json.dumps(control)[1:-1])
    return _in_quotes(texts)


def _struct(rows: pa.Array, blank: str) -> pa.Array:
    assert isinstance(rows, pa.StructArray)
    pieces: list[pa.Array | pa.Scalar] = [pa.repeat(pa.scalar("{"), len(rows))]
    for position, (field, column) in enumerate(zip(rows.type, rows.flatten(), strict=True)):
        separator = f",{blank}" if position else ""
        pieces += [pa.scalar(f"{separator}{json.dumps(field.name, ensure_ascii=False)}:{blank}"), _texts(column, blank)]
    return pc.binary_join_element_wise(*pieces, pa.scalar("}"), pa.scalar(""))


def _list(values: pa.Array, blank: str) -> pa.Array:
    assert isinstance(values, LIST_ARRAYS)
    return _join(_texts(values.flatten(), blank), pc.list_value_length(values), "[]", blank)


def _map(values: pa.Array, blank: str) -> pa.Array:
    entries = values.cast(pa.list_(pa.struct([("key", values.type.key_type), ("value", values.type.item_type)])))
    assert isinstance(entries, pa.ListArray)
    keys, items = cast("pa.StructArray", entries.flatten()).flatten()
    pairs = pc.binary_join_element_wise(_texts(keys, blank), pa.scalar(f":{blank}"), _texts(items, blank), "")
    return _join(pairs, pc.list_value_length(entries), "{}", blank)


def _join(texts: pa.Array, lengths: pa.Array, brackets: str, blank: str) -> pa.Array:
    """Return the texts of each list's values between brackets."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False), out=offsets[1:])
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), texts), f",{blank}")
    return pc.binary_join_element_wise(pa.scalar(brackets[0]), joined, pa.scalar(brackets[1]), pa.scalar(""))
