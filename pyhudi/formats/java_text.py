"""Text of numbers as Java's `Float.toString` and `Double.toString` print them.

The shortest digits that read back as the same number; plain notation for 0.001 <= |x| < 10,000,000 with at least one
digit after the point (`1.0`), else scientific (`1.0E10`, `8.5899346E9`, `4.9E-324`); `NaN`, `Infinity`, `-0.0`.
Source: spec, files and records 4.7; the rule itself is in the Javadoc of Double.toString (JDK 19 and later: older ones
print a few numbers with more digits).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["float_text"]


def float_text(numbers: pa.Array) -> pa.Array:
    """Java's text of each number.

    Args:    numbers: float32 or float64 array; nulls stay null.
    Returns: string array of the same length.
    """
    if len(numbers) == 0 or numbers.null_count == len(numbers):
        return pa.nulls(len(numbers), pa.string())
    values = numbers.to_numpy(zero_copy_only=False)
    magnitude = np.abs(values)
    plain = ((magnitude >= values.dtype.type(1e-3)) & (magnitude < values.dtype.type(1e7))) | (magnitude == 0)
    text = pc.cast(numbers, pa.string())
    with_point = pc.if_else(pc.match_substring(text, "."), text, pc.binary_join_element_wise(text, "0", "."))
    if plain.all():
        return with_point
    # No kernel prints Java's scientific notation, so these are printed one by one, each distinct number once.
    others = pc.if_else(pa.array(plain), pa.scalar(None, numbers.type), numbers).dictionary_encode()
    words = pa.array([_scientific(x) for x in others.dictionary.to_numpy(zero_copy_only=False)], pa.string())
    return pc.coalesce(words.take(others.indices), with_point)


def _scientific(number: np.floating) -> str:
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    text = np.format_float_scientific(number, unique=True, trim="0", exp_digits=1)
    mantissa, _, exponent = text.partition("e")
    if len(mantissa.lstrip("-")) == 3:  # one digit: Java takes the nearest of two digits, which differs near zero
        nearer = np.format_float_scientific(number, unique=False, precision=1, exp_digits=1)
        if type(number)(nearer) == number:
            mantissa, _, exponent = nearer.partition("e")
    return f"{mantissa}E{int(exponent)}"
