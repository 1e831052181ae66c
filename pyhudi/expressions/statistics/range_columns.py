"""The test of many files' ranges at once: which files can hold a row that passes a predicate.

    ranges.may_match, in columns: one comparison for all files instead of one for each

The answers are those of `ranges.py`, row by row. A comparison that Arrow can't do raises, and the caller falls back to
that module. A null row is a file of which nothing is known. Source: docs/reading.md, "The metadata table".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.expressions.predicates import (
    And,
    Compare,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Operand,
    Or,
    Predicate,
    SqlText,
    Value,
    without_not,
)
from pyhudi.expressions.statistics.ranges import ValueRange

__all__ = ["NOT_COMPARABLE", "RangeColumns", "python_values", "which_may_match"]

# Raised by Arrow for a literal that the column's type can't hold, and for types that it does not compare.
NOT_COMPARABLE = (pa.ArrowException, TypeError, ValueError, OverflowError)
_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RangeColumns:
    """The `ValueRange`s of one column, as columns. `may_be_null` and `only_null` are null where nothing is known; a
    null `low` or `high` is no bound. `may_be_nan` is for all ranges.
    """

    low: pa.Array
    high: pa.Array
    may_be_null: pa.Array
    only_null: pa.Array
    may_be_nan: bool = False

    def __len__(self) -> int:
        return len(self.low)

    def take(self, rows: pa.Array) -> RangeColumns:
        """The ranges of these rows; null where the row number is null."""
        flags = (self.may_be_null.take(rows), self.only_null.take(rows))
        return RangeColumns(self.low.take(rows), self.high.take(rows), *flags, may_be_nan=self.may_be_nan)

    @classmethod
    def nothing(cls, data_type: pa.DataType) -> RangeColumns:
        """No ranges."""
        flags = pa.nulls(0, pa.bool_())
        return cls(pa.nulls(0, data_type), pa.nulls(0, data_type), flags, flags)

    def with_each(self, change: Callable[[ValueRange], ValueRange]) -> RangeColumns:
        """Change each range separately."""
        changed = [None if one is None else change(one) for one in self.to_ranges()]

        def column(name: str, kind: pa.DataType) -> pa.Array:
            values: pa.Array = pa.array([None if one is None else getattr(one, name) for one in changed], kind)
            return values

        flags = (column("may_be_null", pa.bool_()), column("only_null", pa.bool_()))
        return RangeColumns(
            column("low", self.low.type), column("high", self.high.type), *flags, may_be_nan=self.may_be_nan
        )

    def unknown_where(self, hidden: _Flags) -> RangeColumns:
        """The same ranges, but unknown for the hidden rows."""
        return self.take(pa.array(np.arange(len(self)), mask=hidden))

    def to_ranges(self) -> Sequence[ValueRange | None]:
        """A `ValueRange` for each row, None where nothing is known."""
        flags = zip(self.may_be_null.to_pylist(), self.only_null.to_pylist(), strict=True)
        return [
            None if may_be_null is None else ValueRange(low, high, may_be_null, bool(only_null), self.may_be_nan)
            for low, high, (may_be_null, only_null) in zip(
                python_values(self.low), python_values(self.high), flags, strict=True
            )
        ]


def python_values(bounds: pa.Array) -> Sequence[Value]:
    """The bounds as Python values; all None if Python can't hold one of these moments."""
    try:
        return bounds.to_pylist()
    except (ValueError, OverflowError):
        return [None] * len(bounds)


def which_may_match(predicate: Predicate, ranges: Mapping[Operand, RangeColumns], rows: int) -> _Flags:
    """Flags of the files that may match: False only if no row within the ranges can make the predicate true.

    Args:    ranges: by operand, a range for each of `rows` files; an absent operand may hold anything.
    Raises:  one of NOT_COMPARABLE.
    """
    return _Files(ranges, rows).may_match(without_not(predicate))


@dataclass(frozen=True, slots=True)
class _Files:
    ranges: Mapping[Operand, RangeColumns]
    rows: int

    def may_match(self, predicate: Predicate) -> _Flags:
        match predicate:
            case And(children):
                return reduce(np.logical_and, map(self.may_match, children), np.ones(self.rows, np.bool_))
            case Or(children):
                return reduce(np.logical_or, map(self.may_match, children), np.zeros(self.rows, np.bool_))
            case Constant(value):
                return np.full(self.rows, value is True)
            case Compare(column, op, value):
                return self._allowed(column, lambda r: _possible(r, op, value))
            case In(column) as values:
                return self._allowed(column, lambda r: _one_possible(r, values))
            case Not(In(column, _, has_null) as values):
                if has_null:
                    return np.zeros(self.rows, np.bool_)
                return self._allowed(column, lambda r: ~_is_one_of(r, values))
            case IsNull(column):
                return self._unless(column, lambda r: ~(_flags(r.may_be_null, True) | _flags(r.only_null, True)))
            case Not(IsNull(column)):
                return self._unless(column, lambda r: _flags(r.only_null, False))
            case Like(column, _) as like:
                return self._allowed(column, lambda r: _prefix_possible(r, like.prefix))
            case SqlText() as text:
                return self.may_match(without_not(text.implied))
        return np.ones(self.rows, np.bool_)  # nothing is known

    def _allowed(self, column: Operand, possible: Callable[[RangeColumns], _Flags]) -> _Flags:
        def never(ranges: RangeColumns) -> _Flags:
            return ranges.only_null.is_valid().to_numpy(zero_copy_only=False) & (
                _flags(ranges.only_null, False) | ~possible(ranges)
            )

        return self._unless(column, never)

    def _unless(self, column: Operand, never: Callable[[RangeColumns], _Flags]) -> _Flags:
        ranges = self.ranges.get(column)
        return np.ones(self.rows, np.bool_) if ranges is None else ~never(ranges)


def _possible(r: RangeColumns, op: str, value: Value) -> _Flags:
    """Like `_compare_possible` in `ranges.py`, for many ranges."""
    if value != value:  # NaN: equal to itself, greater than all others
        return np.full(len(r), r.may_be_nan if op in ("=", ">=") else op != ">")
    if r.may_be_nan and op in ("<>", ">", ">="):
        return np.ones(len(r), np.bool_)
    low, high, literal = _comparable(r.low), _comparable(r.high), _literal(value, r.low.type)
    match op:
        case "=":
            return _flags(pc.less_equal(low, literal), True) & _flags(pc.greater_equal(high, literal), True)
        case "<>":
            return ~(_flags(pc.equal(low, literal), False) & _flags(pc.equal(high, literal), False))
        case "<":
            return _flags(pc.less(low, literal), True)
        case "<=":
            return _flags(pc.less_equal(low, literal), True)
        case ">":
            return _flags(pc.greater(high, literal), True)
        case _:
            return _flags(pc.greater_equal(high, literal), True)


def _one_possible(r: RangeColumns, values: In) -> _Flags:
    """Like the single-range case: one search per file, for any number of values."""
    possible = np.full(len(r), r.may_be_nan and values.has_nan)
    if not values.ordered:
        return possible
    literals = _literals(values.ordered, r.low.type)
    low = pc.fill_null(r.low.cast(literals.type), literals[0])
    high = pc.fill_null(r.high.cast(literals.type), literals[-1])
    ordered, lows, highs = (column.to_numpy(zero_copy_only=False) for column in (literals, low, high))
    lowest = np.searchsorted(ordered, lows)  # the first value that is not below the range
    exists = lowest < len(ordered)
    possible[exists] |= (ordered[lowest[exists]] <= highs[exists]).astype(np.bool_)
    return possible


def _is_one_of(r: RangeColumns, values: In) -> _Flags:
    """Like the single-range case."""
    if r.may_be_nan:
        return np.zeros(len(r), np.bool_)
    return _flags(pc.equal(r.low, r.high), False) & _one_possible(r, values)


def _prefix_possible(r: RangeColumns, prefix: str) -> _Flags:
    if not prefix:
        return np.ones(len(r), np.bool_)
    literal = _literal(prefix, r.low.type)
    begins = _flags(pc.less_equal(r.low, literal), True) | _flags(pc.starts_with(r.low, prefix), True)
    return _flags(pc.greater_equal(r.high, literal), True) & begins


def _comparable(bounds: pa.Array) -> pa.Array:
    """Convert floats to doubles, the type of literals."""
    return bounds.cast(pa.float64()) if pa.types.is_floating(bounds.type) else bounds


def _literal(value: Value, kind: pa.DataType) -> pa.Scalar:
    """Convert exactly this value: Arrow would truncate a fraction for an integer type. Raises one of NOT_COMPARABLE."""
    literal = pa.scalar(value, _literal_type(kind))
    if literal.as_py() != value:
        raise TypeError(f"{value!r} is no {kind}")
    return literal


def _literals(values: list[Value], kind: pa.DataType) -> pa.Array:
    """Convert exactly these values, to a type that also holds the bounds. Raises one of NOT_COMPARABLE."""
    literals = pa.array(values, _literal_type(kind))
    if literals.to_pylist() != values:
        raise TypeError(f"one of {len(values)} values is no {kind}")
    return literals.cast(kind) if pa.types.is_timestamp(kind) and kind.unit == "ns" else literals


def _literal_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_floating(kind):
        return pa.float64()
    # Microseconds, Python's resolution of moments.
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind


def _flags(answers: pa.Array, missing: bool) -> _Flags:
    flags: _Flags = pc.fill_null(answers, missing).to_numpy(zero_copy_only=False)
    return flags
