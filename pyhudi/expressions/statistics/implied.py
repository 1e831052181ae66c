"""The predicates on single columns that a typed condition implies, so that statistics and indexes can decide them.

A predicate is implied if it is true for every row for which the condition is true: `n = 1 OR m + 1 = 2 AND k = 3`
implies `n = 1 OR k = 3`. A term other than `column op constants` implies nothing.
"""

from __future__ import annotations

from collections.abc import Callable

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
    Or,
    Predicate,
)
from pyhudi.expressions.tree import Expression, TypedCall, TypedColumn, TypedLiteral
from pyhudi.expressions.types import BOOLEAN, is_integral

__all__ = ["implied_predicate"]

_ANYTHING, _NEVER = Constant(True), Constant(False)
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


def implied_predicate(condition: Expression, truth: bool = True) -> Predicate:
    """A predicate that is true for every row for which a condition is true (or, with `truth=False`, false)."""
    match condition:
        case TypedColumn(path, kind) if kind == BOOLEAN:
            return Compare(Column(path), "=", truth)
        case TypedLiteral(value, kind) if kind == BOOLEAN:
            return Constant(value is truth)
        case TypedCall(form, (left, right)) if form.name in ("AND", "OR"):
            sides = (implied_predicate(left, truth), implied_predicate(right, truth))
            return _all_of(sides) if (form.name == "AND") is truth else _any_of(sides)
        case TypedCall(form, (part,)) if form.name == "NOT":
            return implied_predicate(part, not truth)
        case TypedCall(form, (part,)) if form.name in ("isnull", "isnotnull"):
            is_null = (form.name == "isnull") is truth
            return _of(part, lambda column: IsNull(column) if is_null else Not(IsNull(column)))
        case TypedCall(form, (left, right)) if form.name in OPPOSITE:
            op = form.name if truth else OPPOSITE[form.name]
            if isinstance(right, TypedLiteral):
                return _compared(left, op, right)
            return _compared(right, _MIRRORED[op], left) if isinstance(left, TypedLiteral) else _ANYTHING
        case TypedCall(form, (part, TypedLiteral(str(pattern)))) if form.name == "like" and form.arrow and truth:
            return _of(part, lambda column: Like(column, pattern))
        case TypedCall(form, (part, *items)) if form.name == "IN":
            values = [item.value for item in items if isinstance(item, TypedLiteral)]
            return _listed(part, values, truth) if len(values) == len(items) else _ANYTHING
    return _ANYTHING


def _compared(part: Expression, op: str, literal: TypedLiteral) -> Predicate:
    return _NEVER if literal.value is None else _of(part, lambda column: Compare(column, op, literal.value))


def _listed(part: Expression, values: list[object], truth: bool) -> Predicate:
    plain = tuple(value for value in values if value is not None)
    has_null = len(plain) < len(values)
    return _of(part, lambda column: In(column, plain, has_null) if truth else Not(In(column, plain, has_null)))


def _of(part: Expression, predicate: Callable[[Column], Predicate]) -> Predicate:
    """The predicate on a column, also if the part is the column cast to a wider integer."""
    match part:
        case TypedColumn(path):
            return predicate(Column(path))
        case TypedCall(form, (TypedColumn(path, kind),), wider) if form.name == "cast":
            if is_integral(kind) and is_integral(wider) and wider.bit_width >= kind.bit_width:
                return predicate(Column(path))
    return _ANYTHING


def _all_of(sides: tuple[Predicate, ...]) -> Predicate:
    known = tuple(side for side in sides if side != _ANYTHING)
    return And(known) if len(known) > 1 else known[0] if known else _ANYTHING


def _any_of(sides: tuple[Predicate, ...]) -> Predicate:
    return _ANYTHING if _ANYTHING in sides else Or(sides)
