"""Comparisons, logic, CASE and null functions.

Source: Spark's SQL reference, "ANSI Compliance" (type promotion), "NULL Semantics".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.casts import cast, implicit_cast
from pyhudi.expressions.functions.registry import ANY, Arguments, Row, Rule, call, is_ordered_alike, same_type
from pyhudi.expressions.tree import Expression, TypedLiteral
from pyhudi.expressions.types import BOOLEAN, INT, NOTHING, is_integral, is_number, name_of

__all__ = ["ROWS", "case", "compared", "condition", "is_in"]


def condition(name: str, value: Expression) -> Expression:
    """Check that a value is boolean (true, false or unknown). Raises ConfigError."""
    fitted = None if value.type != NOTHING and is_number(value.type) else implicit_cast(value, BOOLEAN)
    if fitted is None:
        raise ConfigError(f"{name} takes what is true or false, found {name_of(value.type)}.")
    return fitted


_KERNELS = {"=": "equal", "<>": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}
_FORMS = {"<=>": "({0} IS NOT DISTINCT FROM {1})", "IS DISTINCT FROM": "({0} IS DISTINCT FROM {1})"}


def compared(sign: str, left: Expression, right: Expression) -> Expression:
    """Compare two values as one type. Raises ConfigError."""
    (left, right), kind = same_type(sign, [left, right])
    if pa.types.is_map(kind) or (sign not in ("=", "<>", "<=>", "IS DISTINCT FROM") and not is_ordered_alike(kind)):
        raise ConfigError(f"{sign} of {name_of(kind)} needs Spark.")
    arrow = _KERNELS.get(sign) if is_ordered_alike(kind) else None
    return call(sign, _FORMS.get(sign, f"({{0}} {sign} {{1}})"), BOOLEAN, left, right, arrow=arrow)


def is_in(value: Expression, items: Sequence[Expression]) -> Expression:
    """Make value IN (items). Raises ConfigError."""
    values, kind = same_type("IN", [value, *items])
    if pa.types.is_map(kind):
        raise ConfigError("IN of maps is refused by Spark.")
    places = ", ".join(f"{{{at}}}" for at in range(1, len(values)))
    return call("IN", f"({{0}} IN ({places}))", BOOLEAN, *values)


def case(branches: Sequence[tuple[Expression, Expression]], otherwise: Expression | None) -> Expression:
    """Make CASE WHEN … THEN … ELSE … END. Raises ConfigError."""
    if any(when.type == NOTHING for when, _ in branches):
        raise ConfigError("CASE WHEN NULL is refused by Spark.")
    values, kind = same_type("CASE", [value for _, value in branches] + ([otherwise] if otherwise is not None else []))
    arguments, parts = list[Expression](), []
    for at, (when, _) in enumerate(branches):
        arguments += [condition("CASE WHEN", when), values[at]]
        parts.append(f"WHEN {{{2 * at}}} THEN {{{2 * at + 1}}}")
    if otherwise is not None:
        arguments.append(values[-1])
        parts.append(f"ELSE {{{len(arguments) - 1}}}")
    return call("case", f"CASE {' '.join(parts)} END", kind, *arguments, arrow="case")


def _if(name: str, arguments: Arguments) -> Expression:
    if len(arguments) != 3:
        raise ConfigError(f"{name} takes 3 arguments, found {len(arguments)}.")
    when = condition(name, arguments[0])
    return case([(when, arguments[1])], arguments[2])


def _coalesce(name: str, arguments: Arguments) -> Expression:
    if not arguments:
        raise ConfigError(f"{name} takes at least 1 argument, found 0.")
    values, kind = same_type(name, arguments)
    places = ", ".join(f"{{{at}}}" for at in range(len(values)))
    return call(name, f"coalesce({places})", kind, *values, arrow="coalesce")


def _two(rule: Rule) -> Rule:
    def checked(name: str, arguments: Arguments) -> Expression:
        if len(arguments) != 2:
            raise ConfigError(f"{name} takes 2 arguments, found {len(arguments)}.")
        return rule(name, arguments)

    return checked


def _nvl2(name: str, arguments: Arguments) -> Expression:
    if len(arguments) != 3:
        raise ConfigError(f"{name} takes 3 arguments, found {len(arguments)}.")
    return case([(ROWS["isnotnull"](name, arguments[:1]), arguments[1])], arguments[2])


def _nullif(name: str, arguments: Arguments) -> Expression:
    left, right = arguments
    if left.type == NOTHING:
        return left
    same = compared("=", left, right)
    return call(name, "CASE WHEN {0} THEN NULL ELSE {1} END", left.type, same, left)


def _zero_if_null(name: str, arguments: Arguments) -> Expression:
    return _coalesce(name, [*arguments, TypedLiteral(0, INT)])


def _null_if_zero(name: str, arguments: Arguments) -> Expression:
    return _nullif(name, [*arguments, TypedLiteral(0, INT)])


def _is(text: str, arrow: str | None = None) -> Row:
    return Row(text, BOOLEAN, (ANY,), arrow)


def _joined(word: str, kernel: str) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        left, right = (condition(word, value) for value in arguments)
        return call(word, f"({{0}} {word} {{1}})", BOOLEAN, left, right, arrow=kernel)

    return rule


def _not(name: str, arguments: Arguments) -> Expression:
    return call("NOT", "(NOT {0})", BOOLEAN, condition("NOT", arguments[0]), arrow="invert")


ROWS: Mapping[str, Rule] = {
    "and": _joined("AND", "and_kleene"),
    "or": _joined("OR", "or_kleene"),
    "not": _not,
    "if": _if,
    "coalesce": _coalesce,
    "nvl": _two(_coalesce),
    "ifnull": _two(_coalesce),
    "nvl2": _nvl2,
    "nullif": _two(_nullif),
    "zeroifnull": _zero_if_null,
    "nullifzero": _null_if_zero,
    "isnull": _is("({0} IS NULL)", "is_null"),
    "isnotnull": _is("({0} IS NOT NULL)", "is_valid"),
    "equal_null": _two(lambda name, arguments: compared("<=>", arguments[0], arguments[1])),
}


def converted(to: pa.DataType) -> Rule:
    """The rule for a cast by a type's name: int('7')."""

    def rule(name: str, arguments: Arguments) -> Expression:
        if len(arguments) != 1:
            raise ConfigError(f"{name} takes 1 argument, found {len(arguments)}.")
        if isinstance(arguments[0], TypedLiteral) and isinstance(arguments[0].value, int) and is_integral(to):
            return call("cast", "{0}", to, cast(arguments[0], to), arrow="cast")
        return cast(arguments[0], to)

    return rule
