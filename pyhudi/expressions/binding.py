"""Binding a predicate to a schema: names are resolved, and literals get the column's type.

A literal is converted to the column's type, never the column to the literal's. So the filter, the partition pruning and
the row-group pruning compare the same values. A text is read as a date, time or number if the column is one. A time
without a zone that is compared with a column of moments is in the caller's zone: UTC by default; None refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timezone, tzinfo
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.expressions.column_functions import FUNCTIONS
from pyhudi.expressions.columns import resolve, resolve_operand
from pyhudi.expressions.engines import implied_by, passes, zone_name
from pyhudi.expressions.filters import to_arrow
from pyhudi.expressions.foreign import arrow_predicate
from pyhudi.expressions.limits import check_depth, check_terms
from pyhudi.expressions.literals import (
    comparison_with_number,
    fitted,
    fitted_list,
    in_zone,
    is_naive_time,
    merged_lists,
)
from pyhudi.expressions.predicates import (
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
    SqlText,
    Value,
    calls_of,
    conjunction,
)
from pyhudi.expressions.terms import check_repeatable, sql_condition
from pyhudi.expressions.where_text import to_sql
from pyhudi.redaction import brief

__all__ = ["Where", "bind"]

# The forms in which a user may pass a condition; see `parse_where`.
Where: TypeAlias = "str | Predicate | pc.Expression | tuple[str, str] | tuple[str, str, Value] | Sequence[Where] | None"


def bind(predicate: Predicate, schema: pa.Schema, zone: tzinfo | None = timezone.utc) -> Predicate:
    """Check every column of a predicate against `schema`, and convert every literal to its column's type.

    Many comparisons of one column with values become one list of values.

    Args: zone: the zone of times without one that are compared with moments; None: such times are refused.

    Raises ConfigError for an unknown column, a literal that cannot be compared with its column, more comparisons than
    MAX_TERMS, or what Arrow can't compute with these columns.
    """
    import pyarrow.acero as acero  # loads pyarrow.dataset, which a small write does not need

    bound = _bound(predicate, schema, zone)
    check_terms(bound)
    try:
        # Like Table.filter, but without threads, whose start takes longer than this.
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
    if isinstance(predicate, _COMPARISONS) and zone not in (None, timezone.utc) and _is_of_a_zone(predicate, schema):
        return _bound_text(to_sql(predicate), schema, zone)
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


_COMPARISONS = (Compare, CompareColumns, In, IsNull, Like)


def _is_of_a_zone(predicate: Predicate, schema: pa.Schema) -> bool:
    """True if the predicate compares a function of moments whose values depend on the zone."""
    return any(
        FUNCTIONS[call.function].depends_on_zone and (pa.types.is_integer(kind) or _is_moment(kind))
        for call in calls_of(predicate)
        if call.function in FUNCTIONS
        for kind in (resolve(call.column, schema)[1],)
    )


def _transparent(opaque: Opaque, schema: pa.Schema, zone: tzinfo | None) -> Predicate:
    """Convert an Arrow expression to an equivalent predicate. If there is none, keep the expression and add a predicate
    that skips files.
    """

    def kind_of(column: Column) -> pa.DataType | None:
        try:
            return resolve(column, schema)[1]
        except ConfigError:
            return None

    predicate = arrow_predicate(opaque.expression, kind_of)
    try:
        check_depth(predicate.when_true)
        bound = _bound(predicate.when_true, schema, zone)
    except ConfigError:
        return opaque
    if predicate.is_exact:
        return bound
    return opaque if bound == Constant(True) else conjunction((bound, opaque))


def _bound_text(text: str, schema: pa.Schema, zone: tzinfo | None) -> SqlText:
    """Bind a condition that an SQL engine evaluates; the engine checks it. Raises ConfigError, MissingLibrary."""
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
    try:
        return replace(condition, implied=_bound(implied_by(condition, schema), schema, zone))
    except ConfigError:  # a literal can't be compared with its column's values
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
