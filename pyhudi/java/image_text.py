"""Rows as JSON texts, a column of objects: what queries of changes return as the row before and after.

Strings, booleans and numbers are JSON's; dates and times are the whole numbers that Avro stores; numbers that are none
are `"NaN"` and `"Infinity"` in quotes, decimals numbers with all their digits, bytes Base64. Change logs have a blank
behind `:` and `,`, as Avro prints records; rows from other files have none.
Source: docs/formats/incremental.md, "Changes".
"""

from __future__ import annotations

import base64
import json
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.kinds import LIST_ARRAYS, is_list, is_text
from pyhudi.java.text import float_text

__all__ = ["image_texts"]

_NULL = pa.scalar("null")
_CONTROLS = [chr(code) for code in range(0x20)]
_ANY_CONTROL = r"[\x00-\x1f]"


def image_texts(rows: pa.StructArray, *, spaced: bool) -> pa.Array:
    """A string array with a JSON object for each row; null where the row is.

    Args:    spaced: blanks behind `:` and `,`.
    """
    blank = " " if spaced else ""
    texts = _struct(rows, blank)
    return pc.if_else(rows.is_valid(), texts, pa.scalar(None, pa.string())) if rows.null_count else texts


def _texts(values: pa.Array, blank: str) -> pa.Array:
    """A JSON text for each value, `null` for nulls."""
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
        found = cast("list[bytes | None]", values.to_pylist())
        return _in_quotes(
            pa.array([None if v is None else base64.b64encode(v).decode("ascii") for v in found], pa.string())
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
    return _joined(_texts(values.flatten(), blank), pc.list_value_length(values), "[]", blank)


def _map(values: pa.Array, blank: str) -> pa.Array:
    entries = values.cast(pa.list_(pa.struct([("key", values.type.key_type), ("value", values.type.item_type)])))
    assert isinstance(entries, pa.ListArray)
    keys, items = cast("pa.StructArray", entries.flatten()).flatten()
    pairs = pc.binary_join_element_wise(_texts(keys, blank), pa.scalar(f":{blank}"), _texts(items, blank), "")
    return _joined(pairs, pc.list_value_length(entries), "{}", blank)


def _joined(texts: pa.Array, lengths: pa.Array, brackets: str, blank: str) -> pa.Array:
    """The texts of each list's values between brackets."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False), out=offsets[1:])
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), texts), f",{blank}")
    return pc.binary_join_element_wise(pa.scalar(brackets[0]), joined, pa.scalar(brackets[1]), pa.scalar(""))
