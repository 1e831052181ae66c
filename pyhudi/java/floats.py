"""Texts of floating-point numbers as Java before 19 prints them (`Double.toString`, `Float.toString`).

Java prints plain notation for 0.001 <= |x| < 10,000,000, with at least one digit after the point (`1.0`), else
scientific notation (`1.0E10`). Most values have their shortest text.

`float_text` prints whole columns. Nearly every number of the plain range has its shortest text in Java too, and Arrow
prints that. The others go through `double_texts` or `float_texts`, each distinct number once.

Those two play back the digit generation of older Java with whole numbers. Older Java misses the shortest text of some
values (2e23 is `1.9999999999999998E23`), and Hudi tables have such texts in keys. Digits of value = B / S are taken one
by one until the rest is within half a unit in the last place, M. The texts were checked against Java 17.

Source: docs/formats/keys.md, "Text of values".
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["double_texts", "float_text", "float_texts"]


_DOUBLE_BITS, _FLOAT_BITS = 53, 24
_LOW_PLAIN, _HIGH_PLAIN = -3, 8  # decimal exponents between which Java needs no E


def double_texts(bits: Iterable[int]) -> list[str]:
    """Return texts of doubles given by their bits as signed 64-bit integers."""
    return [_double_text(value) for value in bits]


def float_texts(bits: Iterable[int]) -> list[str]:
    """Return texts of floats given by their bits as signed 32-bit integers."""
    return [_float_text(value) for value in bits]


def _double_text(bits: int) -> str:
    exponent, fraction = (bits >> 52) & 0x7FF, bits & ((1 << 52) - 1)
    if exponent == 0x7FF:
        return _not_finite(bits < 0, fraction)
    if exponent == 0:
        return _text(bits < 0, fraction, -1074, fraction.bit_length())
    return _text(bits < 0, fraction | 1 << 52, exponent - 1075, _DOUBLE_BITS)


def _float_text(bits: int) -> str:
    exponent, fraction = (bits >> 23) & 0xFF, bits & ((1 << 23) - 1)
    if exponent == 0xFF:
        return _not_finite(bits < 0, fraction)
    if exponent == 0:
        return _text(bits < 0, fraction, -149, fraction.bit_length())
    return _text(bits < 0, fraction | 1 << 23, exponent - 150, _FLOAT_BITS)


def _not_finite(negative: bool, fraction: int) -> str:
    if fraction:
        return "NaN"
    return "-Infinity" if negative else "Infinity"


def _text(negative: bool, mantissa: int, exponent: int, significant_bits: int) -> str:
    """Return the text of mantissa * 2 ** exponent, of which the top `significant_bits` bits are known."""
    sign = "-" if negative else ""
    if mantissa == 0:
        return sign + "0.0"
    top_bit = mantissa.bit_length() - 1 + exponent  # the value is in [2 ** top_bit, 2 ** (top_bit + 1))
    trailing = (mantissa & -mantissa).bit_length() - 1
    if exponent + trailing >= 0 and top_bit <= 62:
        digits, point = _whole_number_digits(
            mantissa << exponent if exponent >= 0 else mantissa >> -exponent, top_bit - significant_bits - 1
        )
    else:
        digits, point = _digits(mantissa >> trailing, exponent + trailing, top_bit, significant_bits)
    return sign + _layout(digits, point)


def _whole_number_digits(value: int, unknown_bits: int) -> tuple[str, int]:
    """Return the digits (without trailing zeros) and decimal exponent of a whole number below 2 ** 63."""
    dropped = len(str(1 << unknown_bits)) - 1 if unknown_bits > 1 else 0
    if dropped:
        value, rest = divmod(value, 10**dropped)
        value += rest >= 10**dropped // 2
    text = str(value)
    return text.rstrip("0") or "0", len(text) + dropped


def _estimate_exponent(mantissa: int, top_bit: int) -> int:
    """Return the decimal exponent by a linear estimate of the logarithm, sometimes one too high, as in Java."""
    scaled = mantissa / (1 << (mantissa.bit_length() - 1))  # in [1, 2)
    return math.floor((scaled - 1.5) * 0.289529654 + 0.176091259 + top_bit * 0.301029995663981)


def _digits(mantissa: int, exponent: int, top_bit: int, significant_bits: int) -> tuple[str, int]:
    """Return the digits and decimal exponent of mantissa * 2 ** exponent; the mantissa is odd."""
    estimate = _estimate_exponent(mantissa, top_bit)
    b, s, m, width = _scale(mantissa, exponent, top_bit - significant_bits, estimate)
    ten_s = 10 * s
    digits: list[int] = []
    first = True
    while True:
        quotient, rest = divmod(b, s)
        b, m = rest * 10, _wrap(m * 10, width)
        low = b < m
        # Java's small and large arithmetic disagree about a tie, and the small one can overflow.
        high = _wrap(b + m, width) > ten_s if width else b + m >= ten_s
        if m <= 0:
            low = high = True
        if first:
            first = False
            if quotient == 0 and not high:
                estimate -= 1
            else:
                digits.append(quotient)
            if estimate < _LOW_PLAIN or estimate >= _HIGH_PLAIN:
                low = high = False  # the E form needs two digits
        else:
            digits.append(quotient)
        if low or high:
            break
    if high:
        beyond_half = _wrap(2 * b - ten_s, width)
        if not low or beyond_half > 0 or (beyond_half == 0 and digits[-1] % 2):
            estimate += _round_up(digits)
    return "".join(map(str, digits)), estimate + 1


def _scale(mantissa: int, exponent: int, half_unit: int, estimate: int) -> tuple[int, int, int, int]:
    """B, S, M and the width in bits of the numbers that Java counts with, 0 when they have no bound.

    B / S is the value over 10 ** estimate, M / S half a unit (2 ** half_unit) in the last known place. Powers of two
    common to B and S are cancelled, as in Java, because the width depends on it.
    """
    lift, power, below_point = max(-estimate, 0), max(estimate, 0), max(-exponent, 0)
    b2, s2, m2 = lift + below_point + exponent, power + below_point, lift + below_point + half_unit
    common = min(b2, s2)
    b2, s2, m2 = b2 - common, s2 - common, m2 - common
    if mantissa == 1:
        m2 -= 1  # below a power of two the next number is only half as far away
    if m2 < 0:
        b2, s2, m2 = b2 - m2, s2 - m2, 0
    bits = max(mantissa.bit_length() + b2 + _bits_of_power(lift), s2 + 1 + _bits_of_power(power + 1))
    width = 32 if bits < 32 else 64 if bits < 64 else 0
    return (mantissa * 5**lift) << b2, 5**power << s2, 5**lift << m2, width


def _wrap(number: int, width: int) -> int:
    """Return the number as a signed integer of this width; 0 means unbounded."""
    if not width:
        return number
    half = 1 << (width - 1)
    return (number + half) % (2 * half) - half


def _bits_of_power(n: int) -> int:
    """Return the number of bits that Java assumes for 5 ** n."""
    if n == 0:
        return 0
    return (5**n).bit_length() if n < 27 else 3 * n


def _round_up(digits: list[int]) -> int:
    """Add one to the last digit. Returns 1 if that adds a power of ten, else 0."""
    at = len(digits) - 1
    while at >= 0 and digits[at] == 9:
        digits[at] = 0
        at -= 1
    if at >= 0:
        digits[at] += 1
        return 0
    digits[0] = 1
    return 1


def _layout(digits: str, point: int) -> str:
    """Return digits with the decimal point after `point` of them, in Java's plain or E form."""
    if 0 < point < 8:
        if point >= len(digits):
            return digits + "0" * (point - len(digits)) + ".0"
        return f"{digits[:point]}.{digits[point:]}"
    if -3 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    return f"{digits[0]}.{digits[1:] or '0'}E{point - 1}"


_LOW, _HIGH = 1e-3, 1e7


def float_text(numbers: pa.Array) -> pa.Array:
    """Return Java's text of each number.

    Args:    numbers: float16, float32 or float64 array; nulls stay null.
    Returns: string array of the same length.
    """
    if pa.types.is_float16(numbers.type):
        numbers = numbers.cast(pa.float32())
    if len(numbers) == numbers.null_count:
        return pa.nulls(len(numbers), pa.string())
    shortest = numbers.cast(pa.string())
    plain = pc.if_else(pc.match_substring(shortest, "."), shortest, pc.binary_join_element_wise(shortest, "0", "."))
    odd = _needs_java(pc.fill_null(numbers, 1.5).to_numpy(zero_copy_only=False), shortest)
    if not odd.any():
        return plain
    at = pa.array(np.flatnonzero(odd))
    # Distinct by bits: 0.0 and -0.0 are equal but have different texts.
    single = pa.types.is_float32(numbers.type)
    bits = numbers.take(at).view(pa.int32() if single else pa.int64()).dictionary_encode()
    texts = pa.array(
        (float_texts if single else double_texts)(cast("list[int]", bits.dictionary.to_pylist())), pa.string()
    )
    return pc.replace_with_mask(plain, pa.array(odd), texts.take(bits.indices))


def _needs_java(values: npt.NDArray[np.floating], shortest: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which numbers Java may print differently from the shortest digits in plain notation.

    Java's digit generation is off where the gaps to the two neighbours differ (powers of two) and where a bound of the
    interval that rounds to the number is itself a short decimal. In the plain range, doubles have no such bound: theirs
    have more than 17 digits.
    """
    size = np.abs(values)
    plain = (size >= _LOW) & (size < _HIGH)
    mantissa, _ = np.frexp(values)
    odd = ~plain | (np.abs(mantissa) == 0.5)
    if values.dtype == np.float32 and not odd.all():
        printed = pc.fill_null(shortest, "1.5").cast(pa.float64()).to_numpy(zero_copy_only=False)
        with np.errstate(invalid="ignore", over="ignore"):  # only at numbers that are odd already
            exact = values.astype(np.float64)
            above = (exact + np.nextafter(values, np.float32(np.inf)).astype(np.float64)) / 2
            below = (exact + np.nextafter(values, np.float32(-np.inf)).astype(np.float64)) / 2
        odd |= (printed == above) | (printed == below)
    return np.asarray(odd, np.bool_)
