"""Ranges of values, and tests whether one can hold a row that passes a predicate.

A range bounds a column in a partition, a file or a row group. It comes from partition values, Parquet statistics or
column statistics. If `may_match` answers no, or `must_match` yes, the answer is certain.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain

from pyhudi.expressions.predicates import (
    OPPOSITE,
    And,
    Column,
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

__all__ = ["Ranges", "ValueRange", "exact_values", "may_match", "must_match"]


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The bounds of a column in a partition, file or row group.

    `low` and `high` bound the values that are not null (None: no bound known). `may_be_null`: a null may occur;
    `only_null`: nothing else does. `may_be_nan`: NaN, which is outside the bounds, may occur.
    """

    low: Value = None
    high: Value = None
    may_be_null: bool = True
    only_null: bool = False
    may_be_nan: bool = False


Ranges = Callable[[Operand], "ValueRange | None"]


def may_match(predicate: Predicate, ranges: Ranges | Mapping[Column, ValueRange]) -> bool:
    """False only when no row within these ranges can make the predicate true.

    Args:    ranges: the range of each column; a column without one (None or absent) may hold anything.
    """
    lookup: Ranges = _by_column(ranges) if isinstance(ranges, Mapping) else ranges
    return _may_match(without_not(predicate), lookup)


def must_match(predicate: Predicate, ranges: Ranges) -> bool:
    """True only when every row within these ranges makes the predicate true. Arguments as for `may_match`."""
    return _must_match(without_not(predicate), ranges)


def _by_column(ranges: Mapping[Column, ValueRange]) -> Ranges:
    return lambda operand: ranges.get(operand) if isinstance(operand, Column) else None


def _may_match(predicate: Predicate, ranges: Ranges) -> bool:
    match predicate:
        case And(children):
            return all(_may_match(child, ranges) for child in children)
        case Or(children):
            return any(_may_match(child, ranges) for child in children)
        case Constant(value):
            return value is True
        case Compare(column, op, value):
            return _range_allows(ranges(column), lambda r: _compare_possible(r, op, value))
        case In(column) as values:
            return _range_allows(ranges(column), lambda r: _one_possible(r, values))
        case Not(In(column, _, has_null) as values):
            if has_null:
                return False
            return _range_allows(ranges(column), lambda r: not _is_one_of(r, values))
        case IsNull(column):
            value_range = ranges(column)
            return value_range is None or value_range.may_be_null or value_range.only_null
        case Not(IsNull(column)):
            value_range = ranges(column)
            return value_range is None or not value_range.only_null
        case Like(column, _) as like:
            return _range_allows(ranges(column), lambda r: _prefix_possible(r, like.prefix))
        case SqlText() as text:
            return _may_match(without_not(text.implied), ranges)
    return True  # Opaque, comparisons of two columns, NOT LIKE: nothing is known


def _must_match(predicate: Predicate, ranges: Ranges) -> bool:
    match predicate:
        case And(children):
            return all(_must_match(child, ranges) for child in children)
        case Or(children):
            return any(_must_match(child, ranges) for child in children)
        case Constant(value):
            return value is True
        case Compare(column, op, value):
            return _range_ensures(ranges(column), lambda r: not _compare_possible(r, OPPOSITE[op], value))
        case In(column) as values:
            return _range_ensures(ranges(column), lambda r: _is_one_of(r, values))
        case Not(In(column, _, has_null) as values):
            if has_null:
                return False
            return _range_ensures(ranges(column), lambda r: not _one_possible(r, values))
        case IsNull(column):
            value_range = ranges(column)
            return value_range is not None and value_range.only_null
        case Not(IsNull(column)):
            return _range_ensures(ranges(column), lambda _: True)
    return False


def _range_ensures(value_range: ValueRange | None, test: Callable[[ValueRange], bool]) -> bool:
    if value_range is None or value_range.may_be_null or value_range.only_null:
        return False
    try:
        return test(value_range)
    except TypeError:
        return False


def _range_allows(value_range: ValueRange | None, test: Callable[[ValueRange], bool]) -> bool:
    if value_range is None:
        return True
    if value_range.only_null:
        return False
    try:
        return test(value_range)
    except TypeError:  # bounds and value can't be compared (other types): no pruning
        return True


def _compare_possible(r: ValueRange, op: str, value: Value) -> bool:
    low, high = r.low, r.high
    if value != value:  # NaN: equal to itself, greater than all others
        return r.may_be_nan if op in ("=", ">=") else op != ">"
    if r.may_be_nan and op in ("<>", ">", ">="):
        return True
    match op:
        case "=":
            return (low is None or low <= value) and (high is None or high >= value)
        case "<>":
            return low is None or high is None or not (low == high == value)
        case "<":
            return low is None or low < value
        case "<=":
            return low is None or low <= value
        case ">":
            return high is None or high > value
        case _:
            return high is None or high >= value


def _one_possible(r: ValueRange, values: In) -> bool:
    """True if a row within the range can have one of the values."""
    ordered = values.ordered
    at = 0 if r.low is None else bisect_left(ordered, r.low)
    return (at < len(ordered) and (r.high is None or ordered[at] <= r.high)) or (r.may_be_nan and values.has_nan)


def _is_one_of(r: ValueRange, values: In) -> bool:
    """True if each row within the range has one of the values."""
    one_value = r.low is not None and r.low == r.high and not r.may_be_nan
    return one_value and _one_possible(r, values)


def _prefix_possible(r: ValueRange, prefix: str) -> bool:
    if not prefix:
        return True
    if r.high is not None and r.high < prefix:
        return False
    return r.low is None or r.low <= prefix or r.low.startswith(prefix)


def exact_values(predicate: Predicate, column: Operand) -> tuple[Value, ...] | None:
    """The only values of a column with which a row can pass; None if there may be others."""
    match predicate:
        case Compare(operand, "=", value) if operand == column:
            return (value,)
        case In(operand, values) if operand == column:
            return tuple(value for value in values if value is not None)
        case And(children):
            each = [exact_values(child, column) for child in children]
            return min((values for values in each if values is not None), key=len, default=None)
        case Or(children):
            each = [exact_values(child, column) for child in children]
            lists = [values for values in each if values is not None]
            return tuple(dict.fromkeys(chain(*lists))) if len(lists) == len(each) else None
        case SqlText() as text:
            return exact_values(text.implied, column)
    return None
