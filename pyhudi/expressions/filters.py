"""A predicate meets a schema: names are resolved, literals get the column's type, Arrow gets its expression.

A literal is made to fit the column, never the column to fit the literal. So the filter, the partition pruning and the
row-group pruning compare the same values. A text is read as date, time or number where the column is one. A time
without a zone, compared with a column of moments, is in the caller's zone: UTC by default; with None it is refused.

`call_expression` makes Arrow expressions of functions of columns, so that Arrow filters by them as it does by its own.
Arrow has no kernels with Spark's meaning. When a filter first names a function with its arguments and the type of its
column, this combination is registered as a new function of Arrow.

Source: docs/formats/metadata-table.md, "Expression index".
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timezone, tzinfo
from decimal import Decimal
from difflib import get_close_matches
from functools import reduce
from itertools import islice
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.expressions.column_functions import compute, result_type, why_not
from pyhudi.expressions.engines import condition_expression, passes, zone_name
from pyhudi.expressions.foreign import arrow_predicate, columns_of_expression
from pyhudi.expressions.limits import check_depth, check_terms
from pyhudi.expressions.literals import (
    comparison_with_number,
    fitted,
    fitted_list,
    in_zone,
    is_naive_time,
    list_values,
    merged_lists,
)
from pyhudi.expressions.predicates import (
    And,
    Call,
    Column,
    Compare,
    CompareColumns,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Opaque,
    Operand,
    Or,
    Predicate,
    SqlText,
    Value,
    column_of,
    conjunction,
)
from pyhudi.expressions.terms import check_repeatable, sql_condition
from pyhudi.shown_text import brief

__all__ = [
    "MAX_CALLS",
    "Where",
    "bind",
    "call_expression",
    "resolve",
    "resolve_operand",
    "to_arrow",
    "top_level_columns",
]


# Functions with different arguments that one process filters by: Arrow never forgets one.
MAX_CALLS = 10_000
_ANY_COLUMN = Column(("values",))
_names: dict[tuple[Call, pa.DataType], str] = {}
_lock = threading.Lock()


def call_expression(call: Call, column_type: pa.DataType) -> pc.Expression:
    """The function of its column, for a call that `why_not` of the functions says nothing of.

    Raises ConfigError for more than MAX_CALLS different ones in one process.
    """
    field = pc.field(*call.column.path)
    name = _registered(Call(call.function, _ANY_COLUMN, call.options), column_type)
    # Arrow's own way to call a function that is not among its kernels; the stubs do not know it.
    expression: pc.Expression = pc.Expression._call(name, [field])  # type: ignore[attr-defined]
    return expression


def _registered(call: Call, column_type: pa.DataType) -> str:
    with _lock:
        name = _names.get((call, column_type))
        if name is not None:
            return name
        if len(_names) >= MAX_CALLS:
            raise ConfigError(
                f"where: {call.function} comes with more than {MAX_CALLS} different arguments in one process; "
                f"expected at most as many."
            )
        name = f"pyhudi_{call.function}_{len(_names)}"

        def computed(context: pc.UdfContext, values: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
            if isinstance(values, pa.Scalar):
                one: pa.Scalar = compute(call, pa.array([values.as_py()], column_type))[0]
                return one
            return compute(call, values)

        doc = {"summary": f"Spark's {call.function}", "description": str(call)}
        pc.register_scalar_function(computed, name, doc, {"values": column_type}, result_type(call, column_type))
        _names[(call, column_type)] = name
        return name


_COLUMNS_NAMED = 100  # in a message; more say nothing

# What a user may hand in to say which rows are meant; see `parse_where`.
Where: TypeAlias = "str | Predicate | pc.Expression | tuple[str, str] | tuple[str, str, Value] | Sequence[Where] | None"


def resolve(column: Column, schema: pa.Schema) -> tuple[tuple[str, ...], pa.DataType]:
    """Where a column is in a schema: the path of names, and its type.

    A top-level column whose name has dots in it wins over a nested path. A name in another case means the only column
    that it fits, as in Spark; where there is one in just that case, this one. Raises ConfigError naming the nearest
    column.
    """
    whole = ".".join(column.path)
    if _is_text(whole) and schema.get_field_index(whole) >= 0:
        return (whole,), schema.field(whole).type
    fields: dict[str, pa.DataType] = {field.name: field.type for field in schema}
    kind: pa.DataType | None = None
    path = []
    for name in column.path:
        name = name if name in fields else _in_another_case(name, fields)
        if name not in fields:
            near = get_close_matches(name, list(fields), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else " A text is written in single quotes."
            columns = ", ".join([*islice(fields, _COLUMNS_NAMED), *(["..."] if len(fields) > _COLUMNS_NAMED else [])])
            raise ConfigError(
                f"where names the column {brief(whole)}, which the table does not have.{hint} Columns: "
                f"{columns or 'none'}."
            )
        kind = fields[name]
        path.append(name)
        fields = {f.name: f.type for f in kind} if pa.types.is_struct(kind) else {}
    assert kind is not None, column
    return tuple(path), kind


def _in_another_case(name: str, fields: Iterable[str]) -> str:
    """The one of these names that differs in its case alone; the name itself where none does, or several do."""
    matches = [field for field in fields if field.lower() == name.lower()]
    return matches[0] if len(matches) == 1 else name


def _is_text(name: str) -> bool:
    """False for a name with half a character in it, which no column has."""
    return name.isascii() or name.encode(errors="replace").decode() == name


def resolve_operand(operand: Operand, schema: pa.Schema) -> tuple[Operand, pa.DataType]:
    """A column, or a function of one, with the path as the schema has it; and the type of its values.

    Raises ConfigError for an unknown column, and a function that can't be computed of it.
    """
    if isinstance(operand, Column):
        path, kind = resolve(operand, schema)
        return Column(path), kind
    path, kind = resolve(operand.column, schema)
    call = replace(operand, column=Column(path))
    why = why_not(call, kind)
    if why is not None:
        raise ConfigError(f"where: {why}.")
    return call, result_type(call, kind)


def bind(predicate: Predicate, schema: pa.Schema, zone: tzinfo | None = timezone.utc) -> Predicate:
    """The predicate with every column checked against `schema` and every literal made its column's type.

    Many comparisons of one column with values become one list of values.

    Args: zone: that of times which name none, compared with moments; None: such are refused.

    Raises ConfigError for an unknown column, a literal that cannot be compared with its column, more comparisons than
    MAX_TERMS, or what Arrow can't compute with these columns.
    """
    import pyarrow.acero as acero  # loads pyarrow.dataset, which a small write needs not

    bound = _bound(predicate, schema, zone)
    check_terms(bound)
    try:
        # As Table.filter does it, without threads, which take longer to begin than this.
        rows = acero.Declaration("table_source", acero.TableSourceNodeOptions(schema.empty_table()))
        chosen = acero.Declaration("filter", acero.FilterNodeOptions(to_arrow(bound, schema)))
        acero.Declaration.from_sequence([rows, chosen]).to_table(use_threads=False)
    except (pa.ArrowException, ValueError) as error:
        raise ConfigError(
            "where can't be evaluated on the table's columns; expected what is true or false for each row, found: "
            f"{' '.join(str(error).split())[:500]}."
        ) from error
    return bound


def _bound(predicate: Predicate, schema: pa.Schema, zone: tzinfo | None) -> Predicate:
    match predicate:
        case And(children):
            return And(merged_lists(tuple(_bound(child, schema, zone) for child in children), negated=True))
        case Or(children):
            return Or(merged_lists(tuple(_bound(child, schema, zone) for child in children), negated=False))
        case Not(child):
            return Not(_bound(child, schema, zone))
        case Compare(column, op, value):
            operand, kind = resolve_operand(column, schema)
            if pa.types.is_null(kind):
                return Constant(None)
            literal = fitted(value, kind, column, zone)
            if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
                return comparison_with_number(operand, op, literal, kind)
            return Compare(operand, op, literal)
        case In(column, values, has_null):
            operand, kind = resolve_operand(column, schema)
            if pa.types.is_null(kind):
                return Constant(None)
            return In(operand, fitted_list(values, kind, column, zone), has_null)
        case IsNull(column):
            return IsNull(resolve_operand(column, schema)[0])
        case Like(column, pattern):
            operand, kind = resolve_operand(column, schema)
            if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                raise ConfigError(f"where uses LIKE on the column {column}, whose type is {kind}; LIKE needs text.")
            return _checked_like(Like(operand, fitted(pattern, kind, column)))
        case CompareColumns(left, op, right):
            return CompareColumns(resolve_operand(left, schema)[0], op, resolve_operand(right, schema)[0])
        case SqlText(text):
            return _bound_text(text, schema, zone)
        case Opaque():
            return _transparent(predicate, schema, zone)
    return predicate


def _transparent(opaque: Opaque, schema: pa.Schema, zone: tzinfo | None) -> Predicate:
    """An Arrow expression as a predicate that means the same, else both of them: files are skipped by the predicate."""

    def kind_of(column: Column) -> pa.DataType | None:
        try:
            return resolve(column, schema)[1]
        except ConfigError:
            return None

    said = arrow_predicate(opaque.expression, kind_of)
    try:
        check_depth(said.when_true)
        bound = _bound(said.when_true, schema, zone)
    except ConfigError:
        return opaque
    if said.is_exact:
        return bound
    return opaque if bound == Constant(True) else conjunction((bound, opaque))


def _bound_text(text: str, schema: pa.Schema, zone: tzinfo | None) -> SqlText:
    """A condition for an engine of SQL, which has looked at it. Raises ConfigError, MissingLibrary."""
    from sqlglot import exp

    tree = sql_condition(text)
    assert tree is not None, text
    check_repeatable(text, "where")
    names = dict[str, None]()
    bound = {name.name for function in tree.find_all(exp.Lambda) for name in function.expressions}
    for column in tree.find_all(exp.Column):
        parts = tuple(part.name for part in column.parts)
        if parts[0] not in bound:
            names[resolve(Column(parts), schema)[0][0]] = None
    if zone is None and any(_is_moment(schema.field(name).type) for name in names):
        texts = (literal.name for literal in tree.find_all(exp.Literal) if literal.is_string)
        in_zone(next(filter(is_naive_time, texts), None), pa.timestamp("us", "UTC"), None, f"where: {brief(text)} has")
    condition = SqlText(text, tuple(names), zone_name(zone))
    passes(condition, schema.empty_table())
    return condition


def _is_moment(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _checked_like(like: Like) -> Like:
    try:
        pc.match_substring_regex(pa.array([""]), like.regex())
    except pa.ArrowInvalid as error:
        raise ConfigError(
            f"where uses LIKE on the column {like.column} with {brief(like.pattern)}, a pattern of {len(like.pattern)} "
            f"characters: {error}. Expected a shorter one."
        ) from error
    return like


def top_level_columns(predicate: Predicate, schema: pa.Schema) -> set[str]:
    """Names of the top-level columns that evaluating a bound predicate needs.

    Where an Arrow expression does not tell its columns, every column whose name occurs in its text is taken.
    """
    match predicate:
        case And(children) | Or(children):
            return set().union(*(top_level_columns(child, schema) for child in children))
        case Not(child):
            return top_level_columns(child, schema)
        case CompareColumns(left, _, right):
            return {column_of(left).path[0], column_of(right).path[0]}
        case Compare(column, _, _) | In(column, _, _) | IsNull(column) | Like(column, _):
            return {column_of(column).path[0]}
        case SqlText() as condition:
            return set(condition.columns)
        case Opaque(expression):
            names, text = columns_of_expression(expression), str(expression)
            return {name for name in schema.names if (name in text if names is None else name in names)}
    return set()


_CHAIN_TERMS = 64
_ANY_INTEGER = pa.decimal128(20, 0)  # signed and unsigned ones of 64 bits
_KERNELS: dict[str, Callable[[pc.Expression, pc.Expression | pa.Scalar], pc.Expression]] = {
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
            return _combined(children, schema, lambda left, right: left & right, True)
        case Or(children):
            return _combined(children, schema, lambda left, right: left | right, False)
        case Not(child):
            return ~to_arrow(child, schema)
        case Constant(value):
            return pc.scalar(pa.scalar(value, pa.bool_()))
        case Compare(column, op, value):
            kind = resolve_operand(column, schema)[1]
            if pa.types.is_floating(kind):
                return _compare_float(_field(column, schema), op, value)
            return _KERNELS[op](_field(column, schema), _literal(value, kind))
        case CompareColumns(left, op, right):
            kinds = [resolve_operand(column, schema)[1] for column in (left, right)]
            return _compare_columns(_field(left, schema), op, _field(right, schema), kinds)
        case In(column, values, has_null):
            unknown = (Constant(None),) if has_null else ()
            missing = And((IsNull(column), Constant(None)))  # null IN (...) is unknown, also for an empty list
            return _is_in(column, values, schema) | to_arrow(Or((*unknown, missing)), schema)
        case IsNull(column):
            return _field(column, schema).is_null()
        case Like(column, _) as like:
            return pc.match_substring_regex(_field(column, schema), like.regex())
        case Opaque(expression):
            return expression
        case SqlText() as condition:
            return condition_expression(condition, schema)
    raise AssertionError(predicate)


def _field(operand: Operand, schema: pa.Schema) -> pc.Expression:
    if isinstance(operand, Call):
        return call_expression(operand, resolve(operand.column, schema)[1])
    return pc.field(*operand.path)


def _is_in(column: Operand, values: tuple[Value, ...], schema: pa.Schema) -> pc.Expression:
    """Is the column's value one of these? False for null."""
    kind, field = resolve_operand(column, schema)[1], _field(column, schema)
    if not pa.types.is_floating(kind):
        return field.isin(list_values(values, kind))
    is_listed = field.isin(list_values([value for value in values if value == value], kind))
    has_nan = any(value != value for value in values)
    return is_listed | (pc.is_nan(field) & field.is_valid()) if has_nan else is_listed


def _compare_float(column: pc.Expression, op: str, value: float) -> pc.Expression:
    """Spark's order: NaN equals itself and is greater than every other number; Arrow's kernels know neither."""
    nan = pc.is_nan(column)
    if value != value:
        never = nan & ~nan  # false, and unknown where the column is null
        return {"=": nan, ">=": nan, "<>": ~nan, "<": ~nan, ">": never, "<=": ~never}[op]
    plain = _KERNELS[op](column, pa.scalar(value, pa.float64()))
    return plain | nan if op in (">", ">=") else plain


def _compare_columns(left: pc.Expression, op: str, right: pc.Expression, kinds: Sequence[pa.DataType]) -> pc.Expression:
    if pa.uint64() in kinds and any(pa.types.is_signed_integer(kind) for kind in kinds):
        left, right = left.cast(_ANY_INTEGER), right.cast(_ANY_INTEGER)  # pyarrow would make both int64
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


def _combined(
    children: tuple[Predicate, ...],
    schema: pa.Schema,
    join: Callable[[pc.Expression, pc.Expression], pc.Expression],
    empty: bool,
) -> pc.Expression:
    expressions = [to_arrow(child, schema) for child in children]
    if not expressions:
        return pc.scalar(empty)
    # Arrow takes all that is joined by one word, in whatever pairs, for one chain, and calls itself for each term of
    # it. A chain of few terms under two NOTs is a term of the next one.
    while len(expressions) > _CHAIN_TERMS:
        chains = [expressions[i : i + _CHAIN_TERMS] for i in range(0, len(expressions), _CHAIN_TERMS)]
        expressions = [~~reduce(join, chain) for chain in chains]
    return reduce(join, expressions)


def _literal(value: Value, kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_timestamp(kind):
        return pa.scalar(value, pa.timestamp("us", kind.tz))
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(value), kind)
    return pa.scalar(value, kind)
