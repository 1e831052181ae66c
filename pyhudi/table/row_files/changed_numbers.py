"""Numbers of text that would be others in their columns: 2**53 + 1 in a column of doubles, 99999 in decimal(6, 2).

Arrow's parsers take them. A number with a point is the nearest double, as everywhere.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pyhudi.schema.exact import COUNTS_TO

__all__ = ["changed_text", "check_numbers", "is_changed", "part_type"]

_DIGITS_MAX = 38  # of a decimal
_LONG_NUMBER = rb'[:,\[]\s*"?[+-]?(?:\d{%d}|[\d.]+[eE])'  # before the point; one with an exponent may be long, too
_HEXADECIMAL = r"^[+-]?0[xX]"  # Arrow reads it as an integer
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)


def changed_text(texts: pa.Array, numbers: pa.Array) -> str | None:
    """The first text that is another number in its column than it says: `0x1F`, an integer that a float does not hold,
    one beyond all floats. None if there is none.
    """
    kind = numbers.type
    if pt.is_integer(kind):
        at = pc.index(pc.match_substring_regex(texts, _HEXADECIMAL), True).as_py()
        return None if at < 0 else str(texts[at])
    if kind not in COUNTS_TO:
        return None
    is_large = _doubtful(numbers)
    large_texts = cast("list[str]", texts.filter(is_large).to_pylist())
    large_numbers = cast("list[float]", numbers.filter(is_large).to_pylist())
    for text, number in zip(large_texts, large_numbers, strict=True):
        if math.isinf(number):
            is_another = any(map(str.isdecimal, text))
        else:
            is_another = _INTEGER.fullmatch(text) is not None and int(text) != int(number)
        if is_another:
            return text
    return None


def check_numbers(table: pa.Table, messages: Sequence[bytes], value_of: Callable[[bytes], object]) -> None:
    """Raise ValueError for a number of JSON that its column would change. Only messages with large ones are looked at.

    Args:    table: the messages as Arrow's parser or `column_of_json` read them. value_of: a message's value, with
             decimals for numbers with a point.
    """
    for name, column in zip(table.schema.names, table.columns, strict=True):
        kind = column.type
        if any(map(_has_doubtful, column.chunks)):
            numbers = np.flatnonzero(_doubtful(column)).tolist() if pt.is_floating(kind) else range(len(messages))
        elif scale := _wrapping_scale(kind):
            is_long = re.compile(_LONG_NUMBER % (_DIGITS_MAX + 1 - scale)).search
            numbers = [number for number, message in enumerate(messages) if is_long(message)]
        else:
            continue
        for number in numbers:
            row = cast("dict[str, object]", value_of(messages[number]))
            if is_changed(row.get(name), kind):
                raise ValueError(
                    f"Column {name!r} is of type {kind} and would change {json.dumps(row[name], default=str):.100}. "
                    "Give it a decimal of enough digits, or text, by a schema provider"
                )


def _wrapping_scale(kind: pa.DataType) -> int:
    """The greatest scale of decimals, at any depth, of which Arrow's parser may make another valid number; else 0."""
    if pt.is_decimal(kind):
        return kind.scale if kind.precision + kind.scale > _DIGITS_MAX else 0
    inner = [kind.field(at).type for at in range(kind.num_fields)] if pt.is_nested(kind) else []
    return max(map(_wrapping_scale, inner), default=0)


def _doubtful(numbers: Any) -> Any:
    """Which numbers of a column of floats may have lost digits?"""
    limit = COUNTS_TO[numbers.type]
    return pc.fill_null(pc.or_(pc.greater_equal(numbers, limit), pc.less_equal(numbers, -limit)), False)


def _has_doubtful(array: Any) -> bool:
    """Is there such a number, at any depth?"""
    if array.type in COUNTS_TO:
        return bool(pc.any(_doubtful(array)).as_py())
    if pt.is_decimal(array.type):
        return not _is_valid(array)
    if pt.is_struct(array.type):
        return any(map(_has_doubtful, array.flatten()))
    if pt.is_map(array.type):
        return _has_doubtful(array.items)
    return pt.is_list(array.type) and _has_doubtful(array.flatten())


def _is_valid(decimals: pa.Array) -> bool:
    """Has each decimal no more digits than its type?"""
    try:
        decimals.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def is_changed(value: object, kind: pa.DataType | None) -> bool:
    """Would the type change a number of JSON, at any depth?"""
    if isinstance(value, dict):
        inner = kind.item_type if kind is not None and pt.is_map(kind) else None
        return any(is_changed(one, inner or part_type(kind, name)) for name, one in value.items())
    if isinstance(value, list):
        return kind is not None and pt.is_list(kind) and any(is_changed(one, kind.value_type) for one in value)
    if kind is not None and pt.is_decimal(kind):
        has_digits = type(value) in (int, Decimal, str)
        return has_digits and abs(Decimal(cast("str", value))) >= 10 ** (kind.precision - kind.scale)
    if kind not in COUNTS_TO or type(value) not in (int, Decimal):
        return False
    number = cast("Decimal", value)
    try:
        with np.errstate(over="ignore"):
            held = float(np.float32(float(number)) if pt.is_float32(kind) else number)
    except OverflowError:
        return True
    return math.isinf(held) or (type(value) is int and int(held) != value)


def part_type(kind: pa.DataType | None, name: str) -> pa.DataType | None:
    """The type of a field; None if there is none."""
    at = -1 if kind is None or not pt.is_struct(kind) else kind.get_field_index(name)
    return None if kind is None or at < 0 else kind.field(at).type
