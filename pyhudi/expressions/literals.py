"""Literals of a filter as values of the column that they are compared with, one by one and as lists.

A literal is converted to the column's type, never the column to the literal's. A time without a zone that is compared
with a column of moments is in the caller's zone: UTC by default; None refuses it. If no value fits (1.5 with an integer
column), the comparison is replaced by an equivalent one.

`IN` compares a column with a list. `merged_lists` turns many comparisons into an equivalent list. A list of any length
costs one hash look-up per row; each comparison costs a pass over all rows.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from datetime import date, datetime, time, timezone, tzinfo
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation, localcontext

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.expressions.predicates import Compare, In, Not, Operand, Predicate, Value
from pyhudi.expressions.where_text import has_too_many_digits
from pyhudi.redaction import brief

__all__ = [
    "comparison_with_number",
    "fits_exactly",
    "fitted",
    "fitted_list",
    "in_zone",
    "is_naive_time",
    "list_values",
    "merged_lists",
]


_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_DOUBLE_DIGITS = 15  # decimal digits that a double always keeps


def fitted(value: Value, kind: pa.DataType, column: Operand, zone: tzinfo | None = timezone.utc) -> Value:
    """Convert `value` to the Python value that a column of this type is compared with. For `zone` see `in_zone`."""
    value = in_zone(_plain(value), kind, zone, f"where compares the column {column} with")
    result = None
    with contextlib.suppress(ValueError, TypeError, InvalidOperation, OverflowError, pa.ArrowException):
        result = _of_type(value, kind)
    if result is None:
        raise ConfigError(
            f"where compares the column {column} of type {kind} with {brief(value)} ({type(value).__name__}), which "
            "is no value of that type. Write a literal that fits, e.g. DATE '2024-01-31' or "
            "TIMESTAMP '2024-01-31 12:00:00'."
        )
    return result


def fitted_list(
    values: tuple[Value, ...], kind: pa.DataType, column: Operand, zone: tzinfo | None = timezone.utc
) -> tuple[Value, ...]:
    """Convert the values of a list as `fitted` does, leaving out numbers that a column of this type can't hold."""
    if _all_fit(values, kind):
        return values
    fitting = tuple(fitted(value, kind, column, zone) for value in values)
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        fitting = tuple(value for value in fitting if fits_exactly(value, kind))
    return fitting


def _all_fit(values: tuple[Value, ...], kind: pa.DataType) -> bool:
    """True if a quick test shows that all values fit unchanged. Lists of a hundred thousand values are common."""
    types = set(map(type, values))
    if types == {int} and pa.types.is_integer(kind):
        return fits_exactly(min(values), kind) and fits_exactly(max(values), kind)
    if types == {str} and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        with contextlib.suppress(UnicodeEncodeError):  # a lone surrogate is not text
            "".join(values).encode()
            return True
    return False


def _plain(value: Value) -> Value:
    if hasattr(value, "item") and type(value).__module__ == "numpy":
        value = value.item()
    return value.as_py() if isinstance(value, pa.Scalar) else value


def in_zone(value: Value, kind: pa.DataType, zone: tzinfo | None, subject: str) -> Value:
    """Convert a date, or a time without a zone, to a moment in this zone if the column has moments. Other values are
    returned unchanged.

    Args:   subject: of the error's sentence.
    Raises: ConfigError if `zone` is None: a statement that changes rows must not guess which ones are meant.
    """
    if not pa.types.is_timestamp(kind) or kind.tz is None or not is_naive_time(value):
        return value
    if zone is None:
        raise ConfigError(
            f"{subject} {brief(value)}, which says no time zone, and the column holds moments ({kind}). Nothing was "
            "changed. Write the offset: '2024-01-31 12:30:00+00:00' or '…Z'. With a Spark session "
            "(HudiTable.open(path, spark)) such times are in the session's zone."
        )
    return _moment_of(value).replace(tzinfo=zone)


def is_naive_time(value: Value) -> bool:
    """True if the value is a date or a time without a zone, or the text of one."""
    with contextlib.suppress(ValueError):
        return isinstance(value, str | date) and _moment_of(value).tzinfo is None
    return False


def _moment_of(value: str | date) -> datetime:
    if isinstance(value, str):
        text = value.strip()
        value = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text)
    return value if isinstance(value, datetime) else datetime.combine(value, time())


def _of_type(value: Value, kind: pa.DataType) -> Value:
    types = pa.types
    if types.is_boolean(kind):
        if isinstance(value, str) and value.strip().lower() in ("true", "false"):
            return value.strip().lower() == "true"
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if types.is_integer(kind) or types.is_decimal(kind):
        return _number(value) if _is_compared_exactly(value, kind) else None
    if types.is_floating(kind):
        return _double(value)
    if types.is_string(kind) or types.is_large_string(kind):
        return _text(value)
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else None
    if types.is_date(kind):
        return _as_date(value)
    if types.is_timestamp(kind):
        return _as_timestamp(value, with_zone=kind.tz is not None)
    return None  # nested: only IS NULL


def _is_compared_exactly(value: Value, kind: pa.DataType) -> bool:
    """True if comparing with the exact number means the same as in Spark. Spark compares an integer with a text as
    integers, and an integer of 64 bits with a double as doubles, which hold 53 bits.
    """
    if isinstance(value, str) and pa.types.is_integer(kind):
        return _WHOLE.fullmatch(value.strip()) is not None and -(1 << 63) <= int(value) < 1 << 63
    highest = _grid(kind)[2]
    is_wide = kind.bit_width == 64 if pa.types.is_integer(kind) else highest >= 10**_DOUBLE_DIGITS
    # Twice the highest value exceeds it as a double, too.
    return not (isinstance(value, float) and is_wide and 2**53 <= abs(value) <= 2 * float(highest))


def _text(value: Value) -> str | None:
    if not isinstance(value, str):
        return None
    value.encode()  # a lone surrogate is not text; its error is a ValueError
    return value


def _double(value: Value) -> float | None:
    if isinstance(value, int):
        value = Decimal(value)  # one that no double holds is infinite
    return float(value) if isinstance(value, float | Decimal | str) else None


def _number(value: Value) -> int | float | Decimal | None:
    if isinstance(value, str):
        value = Decimal(value.strip())
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return value
        value = Decimal(repr(value))
    if isinstance(value, int | Decimal) and has_too_many_digits(value):
        return None
    if isinstance(value, Decimal):
        if not value.is_finite():
            return float(value)
        return int(value) if value == value.to_integral_value() else value
    return value if isinstance(value, int) else None


def _as_date(value: Value) -> date | None:
    if isinstance(value, str):
        return date.fromisoformat(value.strip())
    if isinstance(value, datetime):
        return value.date() if value.time() == time() and value.tzinfo is None else None
    return value if isinstance(value, date) else None


def _as_timestamp(value: Value, *, with_zone: bool) -> datetime | None:
    if not isinstance(value, str | date):
        return None
    moment = _moment_of(value)
    if with_zone:
        return moment.astimezone(timezone.utc)
    return None if moment.tzinfo is not None else moment


def _grid(kind: pa.DataType) -> tuple[int, Decimal, Decimal]:
    """The digits after the point, the lowest and the highest value of an integer or decimal type."""
    if pa.types.is_integer(kind):
        bits = kind.bit_width
        signed = pa.types.is_signed_integer(kind)
        return 0, Decimal(-(2 ** (bits - 1)) if signed else 0), Decimal(2 ** (bits - 1 if signed else bits) - 1)
    assert isinstance(kind, pa.Decimal128Type | pa.Decimal256Type), kind
    highest = Decimal((0, (9,) * kind.precision, -kind.scale))
    return kind.scale, highest.copy_negate(), highest


def fits_exactly(value: Value, kind: pa.DataType) -> bool:
    """True if an integer or decimal type can hold a number unchanged."""
    if isinstance(value, int) and pa.types.is_integer(kind):  # lists of a million integers are common
        bits = kind.bit_width
        return -(1 << bits - 1) <= value < 1 << bits - 1 if pa.types.is_signed_integer(kind) else 0 <= value < 1 << bits
    digits, lowest, highest = _grid(kind)
    exact = Decimal(value)
    return exact.is_finite() and lowest <= exact <= highest and _rounded(exact, digits, ROUND_FLOOR) == exact


def comparison_with_number(column: Operand, op: str, value: Value, kind: pa.DataType) -> Predicate:
    """Compare a column with a number that it may be unable to hold: 1.5 or 2 ** 70 with an integer column."""
    if fits_exactly(value, kind):
        return Compare(column, op, value)
    never, always = In(column, ()), Not(In(column, ()))  # false and true, but unknown if the column is null
    exact = Decimal(value)
    digits, lowest, highest = _grid(kind)
    if op in ("=", "<>"):
        return always if op == "<>" else never
    if exact.is_nan() or exact > highest:  # NaN is greater than every other number
        return always if op in ("<", "<=") else never
    if exact < lowest:
        return always if op in (">", ">=") else never
    if op in ("<", "<="):
        return Compare(column, "<=", _number(_rounded(exact, digits, ROUND_FLOOR)))
    return Compare(column, ">=", _number(_rounded(exact, digits, ROUND_CEILING)))


def _rounded(value: Decimal, digits: int, rounding: str) -> Decimal:
    with localcontext() as context:
        context.prec = 400  # a double has up to 309 digits before its point
        return value.quantize(Decimal((0, (1,), -digits)), rounding=rounding)


_FEWEST_MERGED = 16  # comparisons of one column; fewer are as fast unmerged


def merged_lists(children: tuple[Predicate, ...], negated: bool) -> tuple[Predicate, ...]:
    """Merge terms of an OR, `a = 1`, `a = 2`, `a IN (3)`, into one `a IN (1, 2, 3)`; if `negated`, terms of an AND like
    `a <> 1`.

    The list replaces its first term.
    """
    lists: dict[Operand, list[In]] = {}
    for child in children:
        terms = _as_list(child, negated)
        if terms is not None:
            lists.setdefault(terms.column, []).append(terms)
    merged = {column: _merged(parts) for column, parts in lists.items() if len(parts) >= _FEWEST_MERGED}
    if not merged:
        return children
    out: list[Predicate] = []
    for child in children:
        terms = _as_list(child, negated)
        if terms is None or terms.column not in lists or len(lists[terms.column]) < _FEWEST_MERGED:
            out.append(child)
        elif terms.column in merged:
            whole = merged.pop(terms.column)
            out.append(Not(whole) if negated else whole)
    return tuple(out)


def _as_list(term: Predicate, negated: bool) -> In | None:
    match term:
        case Compare(column, op, value) if op == ("<>" if negated else "="):
            return In(column, (value,))
        case In() if not negated:
            return term
        case Not(In() as inner) if negated:
            return inner
    return None


def _merged(parts: Sequence[In]) -> In:
    values = tuple(value for part in parts for value in part.values)
    return In(parts[0].column, values, any(part.has_null for part in parts))


def list_values(values: Sequence[Value], kind: pa.DataType) -> pa.Array:
    """Convert the values to an array of the column's type, for `isin`; values that no row can have are left out.

    Args:    values: from `bind`, without null and not-a-number.
    """
    if pa.types.is_floating(kind):
        # The kernel distinguishes -0.0 from 0.0.
        zeros = [-0.0, 0.0] if any(value == 0 for value in values) else []
        return _exact(pa.array([*values, *zeros], pa.float64()), kind)
    if pa.types.is_timestamp(kind):
        return _exact(pa.array(list(values), pa.timestamp("us", kind.tz)), kind)
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(value) for value in values], kind)
    if pa.types.is_fixed_size_binary(kind):
        return pa.array([value for value in values if len(value) == kind.byte_width], kind)
    return pa.array(list(values), kind)


def _exact(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values that the type can hold unchanged."""
    if values.type == kind:
        return values
    narrow = values.cast(kind, safe=False)
    return narrow.filter(pc.equal(narrow.cast(values.type, safe=False), values))
