"""A predicate meets a schema: names are resolved, literals get the column's type, Arrow gets its expression.

Literals are made to fit the column, not the other way round, so that the filter, the partition pruning and the
row-group pruning compare the same values. A text is read as date, time or number where the column is one; a time
without a zone is UTC.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timezone
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation, localcontext
from difflib import get_close_matches
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.model.predicate import (
    And,
    Column,
    Compare,
    CompareColumns,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Opaque,
    Or,
    Predicate,
)

__all__ = ["bind", "resolve", "to_arrow", "top_level_columns"]


def resolve(column: Column, schema: pa.Schema) -> tuple[tuple[str, ...], pa.DataType]:
    """Where a column is in a schema: the path of names, and its type.

    A top-level column whose name has dots in it wins over a nested path. Raises ConfigError naming the nearest column.
    """
    whole = ".".join(column.path)
    if schema.get_field_index(whole) >= 0:
        return (whole,), schema.field(whole).type
    fields: dict[str, pa.DataType] = {field.name: field.type for field in schema}
    kind: pa.DataType | None = None
    for name in column.path:
        if name not in fields:
            near = get_close_matches(name, list(fields), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ConfigError(
                f"where names the column {whole!r}, which the table has not.{hint} Columns: "
                f"{', '.join(fields) or 'none'}."
            )
        kind = fields[name]
        fields = {f.name: f.type for f in kind} if pa.types.is_struct(kind) else {}
    return column.path, kind


def bind(predicate: Predicate, schema: pa.Schema) -> Predicate:
    """The predicate with every column checked against `schema` and every literal made its column's type.

    Raises ConfigError for an unknown column, or a literal that cannot be compared with its column.
    """
    match predicate:
        case And(children):
            return And(tuple(bind(child, schema) for child in children))
        case Or(children):
            return Or(tuple(bind(child, schema) for child in children))
        case Not(child):
            return Not(bind(child, schema))
        case Compare(column, op, value):
            path, kind = resolve(column, schema)
            if pa.types.is_null(kind):
                return Constant(None)
            fitted = _fit(value, kind, column)
            if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
                return _compare_on_grid(Column(path), op, fitted, kind)
            return Compare(Column(path), op, fitted)
        case In(column, values, has_null):
            path, kind = resolve(column, schema)
            if pa.types.is_null(kind):
                return Constant(None)
            fitting = tuple(_fit(value, kind, column) for value in values)
            if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
                fitting = tuple(value for value in fitting if _is_on_grid(value, kind))
            return In(Column(path), fitting, has_null)
        case IsNull(column):
            return IsNull(Column(resolve(column, schema)[0]))
        case Like(column, pattern):
            path, kind = resolve(column, schema)
            if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                raise ConfigError(f"where uses LIKE on the column {column}, whose type is {kind}; LIKE needs text.")
            return Like(Column(path), pattern)
        case CompareColumns(left, op, right):
            return CompareColumns(Column(resolve(left, schema)[0]), op, Column(resolve(right, schema)[0]))
    return predicate


def _grid(kind: pa.DataType) -> tuple[int, Decimal, Decimal]:
    """Digits after the point, lowest and highest value of an integer or decimal type."""
    if pa.types.is_integer(kind):
        bits = kind.bit_width
        signed = pa.types.is_signed_integer(kind)
        return 0, Decimal(-(2 ** (bits - 1)) if signed else 0), Decimal(2 ** (bits - 1 if signed else bits) - 1)
    highest = Decimal((0, (9,) * kind.precision, -kind.scale))
    return kind.scale, highest.copy_negate(), highest


def _is_on_grid(value: Any, kind: pa.DataType) -> bool:
    digits, lowest, highest = _grid(kind)
    exact = Decimal(value)
    return exact.is_finite() and lowest <= exact <= highest and _rounded(exact, digits, ROUND_FLOOR) == exact


def _compare_on_grid(column: Column, op: str, value: Any, kind: pa.DataType) -> Predicate:
    """A comparison with a number that the column may be unable to hold: 1.5 or 2 ** 70 with an integer column."""
    if _is_on_grid(value, kind):
        return Compare(column, op, value)
    never, always = In(column, ()), Not(In(column, ()))  # false and true where the column is not null
    exact = Decimal(value)
    digits, lowest, highest = _grid(kind)
    if op in ("=", "<>") or exact.is_nan():
        return always if op == "<>" else never
    if exact > highest:
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


def top_level_columns(predicate: Predicate, schema: pa.Schema) -> set[str]:
    """Names of the top-level columns that evaluating a bound predicate needs.

    An Arrow expression does not tell its fields; every column whose name occurs in its text is taken.
    """
    match predicate:
        case And(children) | Or(children):
            return set().union(*(top_level_columns(child, schema) for child in children))
        case Not(child):
            return top_level_columns(child, schema)
        case CompareColumns(left, _, right):
            return {left.path[0], right.path[0]}
        case Compare(column, _, _) | In(column, _, _) | IsNull(column) | Like(column, _):
            return {column.path[0]}
        case Opaque(expression):
            text = str(expression)
            return {name for name in schema.names if name in text}
    return set()


_KERNELS: dict[str, Callable[[Any, Any], pc.Expression]] = {
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def to_arrow(predicate: Predicate, schema: pa.Schema) -> pc.Expression:
    """A bound predicate as an Arrow expression with the same three-valued answers (Kleene logic)."""
    match predicate:
        case And(children):
            return _fold(children, schema, lambda left, right: left & right, True)
        case Or(children):
            return _fold(children, schema, lambda left, right: left | right, False)
        case Not(child):
            return ~to_arrow(child, schema)
        case Constant(value):
            return pc.scalar(pa.scalar(value, pa.bool_()))
        case Compare(column, op, value):
            kind = resolve(column, schema)[1]
            if pa.types.is_floating(kind):
                return _compare_float(pc.field(*column.path), op, value)
            return _KERNELS[op](pc.field(*column.path), _literal(value, kind))
        case CompareColumns(left, op, right):
            kinds = [resolve(column, schema)[1] for column in (left, right)]
            return _compare_columns(pc.field(*left.path), op, pc.field(*right.path), kinds)
        case In(column, values, has_null):
            # One comparison per value instead of is_in, which has no unknown.
            equal = tuple(Compare(column, "=", value) for value in values)
            unknown = (Constant(None),) if has_null else ()
            missing = (And((IsNull(column), Constant(None))),)  # null IN (...) is unknown, also for an empty list
            return to_arrow(Or(equal + unknown + missing), schema)
        case IsNull(column):
            return pc.field(*column.path).is_null()
        case Like(column, _) as like:
            return pc.match_substring_regex(pc.field(*column.path), like.regex())
        case Opaque(expression):
            return expression
    raise AssertionError(predicate)


def _compare_float(column: pc.Expression, op: str, value: float) -> pc.Expression:
    """Spark's order: NaN equals itself and is greater than every other number; Arrow's kernels know neither."""
    nan = pc.is_nan(column)
    if value != value:
        never = nan & ~nan  # false, and unknown where the column is null
        return {"=": nan, ">=": nan, "<>": ~nan, "<": ~nan, ">": never, "<=": ~never}[op]
    plain = _KERNELS[op](column, pa.scalar(value, pa.float64()))
    return plain | nan if op in (">", ">=") else plain


def _compare_columns(left: pc.Expression, op: str, right: pc.Expression, kinds: Sequence[pa.DataType]) -> pc.Expression:
    plain = _KERNELS[op](left, right)
    if not any(pa.types.is_floating(kind) for kind in kinds):
        return plain
    unknown = pc.scalar(pa.scalar(None, pa.bool_()))
    left_nan, right_nan = (
        pc.is_nan(column) if pa.types.is_floating(kind) else column.is_null() & unknown
        for column, kind in zip((left, right), kinds, strict=True)
    )
    match op:
        case "=":
            return plain | (left_nan & right_nan)
        case "<>":
            return plain & ~(left_nan & right_nan)
        case "<":
            return plain | (right_nan & ~left_nan)
        case "<=":
            return plain | (right_nan & (left_nan | ~left_nan))
        case ">":
            return plain | (left_nan & ~right_nan)
        case _:
            return plain | (left_nan & (right_nan | ~right_nan))


def _fold(
    children: tuple[Predicate, ...], schema: pa.Schema, join: Callable[[Any, Any], pc.Expression], empty: bool
) -> pc.Expression:
    expressions = [to_arrow(child, schema) for child in children]
    if not expressions:
        return pc.scalar(empty)
    # Joined in pairs: a chain of a thousand terms would nest a thousand deep.
    while len(expressions) > 1:
        pairs = [join(*expressions[i : i + 2]) for i in range(0, len(expressions) - 1, 2)]
        expressions = pairs + expressions[len(pairs) * 2 :]
    return expressions[0]


def _literal(value: Any, kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_timestamp(kind):
        return pa.scalar(value, pa.timestamp("us", kind.tz))
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(value), kind)
    return pa.scalar(value, kind)


# ---- literals --------------------------------------------------------------------------------------------------------


def _fit(value: Any, kind: pa.DataType, column: Column) -> Any:
    """`value` as the Python value that a column of this type is compared with."""
    fitted = None
    with contextlib.suppress(ValueError, InvalidOperation, OverflowError):
        fitted = _fitted(value, kind)
    if fitted is None:
        raise ConfigError(
            f"where compares the column {column} of type {kind} with {value!r} ({type(value).__name__}), which is no "
            f"value of that type. Write a literal that fits, e.g. DATE '2024-01-31' or TIMESTAMP '2024-01-31 12:00:00'."
        )
    return fitted


def _fitted(value: Any, kind: pa.DataType) -> Any:
    if hasattr(value, "item") and type(value).__module__ == "numpy":
        value = value.item()
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    types = pa.types
    if types.is_boolean(kind):
        if isinstance(value, str) and value.strip().lower() in ("true", "false"):
            return value.strip().lower() == "true"
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if types.is_integer(kind) or types.is_decimal(kind):
        return _number(value)
    if types.is_floating(kind):
        return float(value) if isinstance(value, int | float | Decimal | str) else None
    if types.is_string(kind) or types.is_large_string(kind):
        return value if isinstance(value, str) else None
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else None
    if types.is_date(kind):
        return _as_date(value)
    if types.is_timestamp(kind):
        return _as_timestamp(value, with_zone=kind.tz is not None)
    return None  # nested: only IS NULL


def _number(value: Any) -> int | float | Decimal | None:
    if isinstance(value, str):
        value = Decimal(value.strip())
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return value
        value = Decimal(repr(value))
    if isinstance(value, Decimal):
        if not value.is_finite():
            return float(value)
        return int(value) if value == value.to_integral_value() else value
    return value if isinstance(value, int) else None


def _as_date(value: Any) -> date | None:
    if isinstance(value, str):
        return date.fromisoformat(value.strip())
    if isinstance(value, datetime):
        return value.date() if value.time() == time() and value.tzinfo is None else None
    return value if isinstance(value, date) else None


def _as_timestamp(value: Any, *, with_zone: bool) -> datetime | None:
    if isinstance(value, str):
        text = value.strip()
        value = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text)
    if not isinstance(value, date):
        return None
    moment: datetime = value if isinstance(value, datetime) else datetime.combine(value, time())
    if with_zone:
        return moment.astimezone(timezone.utc) if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    return None if moment.tzinfo is not None else moment
