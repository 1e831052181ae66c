"""The conversions between column types that Hudi makes when it reads an older file, value for value as Java does.

int → long, float, double, decimal, string     long → float, double, decimal, string     float → double, decimal, string
double → decimal, string     decimal → wider decimal, string     date → string     string → date, decimal, binary
binary → string     timestamps between units (coarser ones round down) and between UTC and local

Arrow's other forms of the same types (large_string, dictionary, int8, decimal64, ...) convert too.
Source: docs/formats/schema.md, "Reading older files", "Schema history"; docs/formats/keys.md, "Text of values".
"""

from __future__ import annotations

import typing
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pyhudi.arrow.kinds import is_bytes, is_text
from pyhudi.java.floats import float_text

__all__ = ["can_cast", "cast", "first_inexact", "may_be_inexact"]

# Order of widening: a type can become any type to its right.
_NUMBERS = (
    (pa.int8(), pa.uint8()),
    (pa.int16(),),
    (pa.int32(), pa.uint16()),
    (pa.int64(), pa.uint32()),
    (pa.float16(),),
    (pa.float32(),),
    (pa.float64(),),
)
_EXACT = Context(prec=76)  # digits; more than any decimal type has
_RANK = {data_type: rank for rank, same in enumerate(_NUMBERS) for data_type in same}


def can_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """True if `cast` supports these two types, neither of them nested."""
    if source.equals(target) or pt.is_null(source):
        return True
    if pt.is_dictionary(source):
        return can_cast(source.value_type, target)
    if source in _RANK and target in _RANK:
        return _RANK[source] <= _RANK[target] and not pt.is_unsigned_integer(target)
    if is_text(target):
        return is_text(source) or is_bytes(source) or source in _RANK or pt.is_decimal(source) or pt.is_date(source)
    if is_bytes(target):
        return is_text(source) or is_bytes(source)
    if pt.is_decimal(target):
        return _becomes_decimal(source, target)
    if pt.is_timestamp(target):
        return bool(pt.is_timestamp(source))
    if pt.is_date(target):
        return is_text(source) or pt.is_date(source)
    if pt.is_time(target):
        return bool(pt.is_time(source))
    return False


def cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return the array as `target`; the caller has checked `can_cast`.

    Raises pa.ArrowInvalid when a value can't be converted (text that is not a date, bytes that are not UTF-8).
    """
    source = array.type
    if isinstance(array, pa.DictionaryArray):
        return cast(array.dictionary_decode(), target)
    if is_text(target) and pt.is_floating(source):
        return float_text(array).cast(target)
    if pt.is_float32(source) and pt.is_float64(target):
        # Hudi goes through the text, so that 0.1 stays 0.1 and does not become 0.10000000149011612.
        return float_text(array).cast(target)
    if pt.is_floating(target):
        # Large integers lose digits here, in Java as in Arrow.
        return array.cast(target, safe=False)
    if pt.is_decimal(target):
        return _to_decimal(array, target, target.scale)
    if pt.is_timestamp(target) and pt.is_timestamp(source):
        return _to_timestamp(array, source, target)
    if pt.is_date(source) and pt.is_date32(target):
        return array.cast(target, safe=False)
    if pt.is_time(target):
        return array.cast(target, safe=False)
    return array.cast(target)


def may_be_inexact(source: pa.DataType, target: pa.DataType) -> bool:
    """True if `cast` can lose digits of a value: times to a coarser unit, large integers to floating point."""
    if (pt.is_timestamp(source) and pt.is_timestamp(target)) or (pt.is_time(source) and pt.is_time(target)):
        return _nanos(source) < _nanos(target)
    return pt.is_integer(source) and pt.is_floating(target)


def first_inexact(array: pa.Array, target: pa.DataType) -> str | None:
    """Return, as text, the first value that would lose digits in `cast`; None without one."""
    source = array.type
    if not may_be_inexact(source, target):
        return None
    if pt.is_integer(source):
        limit = 1 << (24 if pt.is_float32(target) else 53)
        size = pc.min_max(array)
        if not size["min"].is_valid or (-limit <= size["min"].as_py() and size["max"].as_py() <= limit):
            return None
        whole = pa.decimal128(38, 0)
        same = pc.equal(array.cast(target, safe=False).cast(pa.float64()).cast(whole), array.cast(whole))
    else:
        ticks = array.cast(pa.int32() if pt.is_time32(source) else pa.int64()).cast(pa.int64())
        factor = _nanos(target) // _nanos(source)
        same = pc.equal(pc.multiply(pc.divide(ticks, factor), factor), ticks)
    if pc.all(same).as_py() is not False:
        return None
    return str(array.filter(pc.invert(same))[0].cast(pa.string()))


def _nanos(kind: pa.DataType) -> int:
    """Return the nanoseconds in the unit of a timestamp or time."""
    return _NANOS[typing.cast("pa.TimestampType", kind).unit]


def _becomes_decimal(source: pa.DataType, target: pa.DataType) -> bool:
    if pt.is_decimal(source) and pt.is_decimal(target):
        # No digits may be lost, before or after the point.
        return bool(source.scale <= target.scale and source.precision - source.scale <= target.precision - target.scale)
    return bool(source in _RANK or is_text(source))


def _to_decimal(array: pa.Array, target: pa.DataType, scale: int) -> pa.Array:
    if pt.is_integer(array.type):
        # Arrow requires room for every value of the integer type, whatever the actual values.
        return array.cast(pa.decimal128(19 + scale if scale < 19 else 38, scale)).cast(target)
    if pt.is_decimal(array.type):
        return array.cast(target)
    text = float_text(array) if pt.is_floating(array.type) else array.cast(pa.string())
    # No kernel rounds as Java does (half up, in decimal), so each distinct text is rounded once.
    words = text.dictionary_encode()
    unit = Decimal(1).scaleb(-scale)
    rounded = [_round(str(word), unit) for word in words.dictionary.to_pylist()]
    return pa.array(rounded, target).take(words.indices)


def _round(word: str, unit: Decimal) -> Decimal:
    try:
        return Decimal(word.strip()).quantize(unit, ROUND_HALF_UP, _EXACT)
    except InvalidOperation as error:
        raise pa.ArrowInvalid(f"{word!r} is not a decimal of this size") from error


def _to_timestamp(array: pa.Array, source: pa.TimestampType, target: pa.TimestampType) -> pa.Array:
    if _NANOS[target.unit] > _NANOS[source.unit]:
        # Round down, as Java does, also before 1970, where division would round up.
        ticks = array.cast(pa.int64())
        factor = _NANOS[target.unit] // _NANOS[source.unit]
        whole = pc.divide(ticks, factor)
        below = pc.less(ticks, pc.multiply(whole, factor))
        return pc.subtract(whole, below.cast(pa.int64())).cast(pa.timestamp(target.unit)).cast(pa.int64()).cast(target)
    return array.cast(pa.timestamp(target.unit, source.tz)).cast(pa.int64()).cast(target)


_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
