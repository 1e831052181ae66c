"""Text of floating-point columns as Java 17 prints them (`Float.toString`, `Double.toString`).

Plain notation for 0.001 <= |x| < 10,000,000 with at least one digit after the point (`1.0`), else scientific
(`1.0E10`). Nearly every number of the plain range has its shortest text in Java too, and Arrow prints that for whole
columns; the others go through `java_float`, each distinct number once. Source: docs/formats/keys.md, "Text of values".
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.java.floats import double_texts, float_texts

__all__ = ["float_text"]

_LOW, _HIGH = 1e-3, 1e7


def float_text(numbers: pa.Array) -> pa.Array:
    """Java's text of each number.

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
    """Which numbers Java may print otherwise than with the shortest digits in plain notation.

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
