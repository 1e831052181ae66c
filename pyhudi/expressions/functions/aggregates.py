"""Aggregate functions, window functions and generators.

Source: Spark's SQL reference, "Aggregate Functions", "Window Functions", "Generator Functions".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.casts import cast
from pyhudi.expressions.functions.conditions import condition
from pyhudi.expressions.functions.numbers import divided_exactly
from pyhudi.expressions.functions.registry import (
    NUMBER,
    Arguments,
    Row,
    Rule,
    call,
    constant_whole,
    is_ordered_alike,
    same_type,
)
from pyhudi.expressions.tree import Expression, Form, Kind, TypedCall, TypedLiteral
from pyhudi.expressions.types import (
    BOOLEAN,
    BYTE,
    DOUBLE,
    INT,
    LONG,
    NOTHING,
    STRING,
    bounded_decimal,
    duckdb_type,
    is_integral,
    is_number,
    name_of,
)

__all__ = ["AGGREGATES", "GENERATORS", "WINDOWS", "distinct", "over", "without_nulls"]


_NO_NULLS = " FILTER ({0} IS NOT NULL)"


def _aggregate(text: str, result: pa.DataType, *parameters: pa.DataType) -> Row:
    return Row(text, result, parameters, kind="aggregate")


def _number(name: str, arguments: Arguments) -> Expression:
    if len(arguments) != 1:
        raise ConfigError(f"{name} takes 1 argument, found {len(arguments)}.")
    value = NUMBER(arguments[0])
    if value is None:
        raise ConfigError(f"{name} takes numbers, found {name_of(arguments[0].type)}.")
    return value


def _count(name: str, arguments: Arguments) -> Expression:
    if not arguments:
        raise ConfigError(f"{name} takes at least 1 argument, found 0.")
    if len(arguments) == 1:
        return call(name, "count({d}{0}){w}", LONG, arguments[0], kind="aggregate")
    places = [f"{{{at}}}" for at in range(len(arguments))]
    known = " AND ".join(f"{place} IS NOT NULL" for place in places)
    text = f"count({{d}}CASE WHEN {known} THEN row({', '.join(places)}) END){{w}}"
    return call(name, text, LONG, *arguments, kind="aggregate")


def _sum(name: str, arguments: Arguments) -> Expression:
    value = _number(name, arguments)
    if is_integral(value.type):
        return call(name, "CAST(sum({d}{0}){w} AS BIGINT)", LONG, cast(value, LONG), kind="aggregate")
    if pa.types.is_decimal(value.type):
        kind = bounded_decimal(value.type.precision + 10, value.type.scale)
        return call(name, f"CAST(sum({{d}}{{0}}){{w}} AS {duckdb_type(kind)})", kind, value, kind="aggregate")
    return call(name, "sum({d}{0}){w}", DOUBLE, cast(value, DOUBLE), kind="aggregate")


def _average(name: str, arguments: Arguments) -> Expression:
    value = _number(name, arguments)
    if not pa.types.is_decimal(value.type):
        return call(name, "avg({d}{0}){w}", DOUBLE, cast(value, DOUBLE), kind="aggregate")
    of = value.type
    kind = bounded_decimal(of.precision + 4, of.scale + 4)
    sums, counts = bounded_decimal(of.precision + 10, of.scale), pa.decimal128(20, 0)
    quotient = divided_exactly(sums, counts, kind)
    quotient = quotient.replace("{0}", f"CAST(sum({{d}}{{9}}){{w}} AS {duckdb_type(sums)})").replace(
        "{1}", "count({d}{9}){w}"
    )
    text = f"CASE WHEN count({{0}}){{w}} > 0 THEN {quotient.replace('{9}', '{0}')} END"
    return call(name, text, kind, value, kind="aggregate")


def _extreme(function: str) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        if len(arguments) != 1 or not is_ordered_alike(arguments[0].type):
            raise ConfigError(f"{name} of {', '.join(name_of(value.type) for value in arguments)} needs Spark.")
        return call(name, f"{function}({{d}}{{0}}){{w}}", arguments[0].type, arguments[0], kind="aggregate")

    return rule


def _at_extreme(function: str) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        if len(arguments) != 2 or not is_ordered_alike(arguments[1].type):
            raise ConfigError(f"{name} takes a value and what orders it.")
        return call(name, f"{function}({{0}}, {{1}}){{w}}", arguments[0].type, *arguments, kind="aggregate")

    return rule


def _list(form: str) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        [value] = arguments
        kind = pa.list_(value.type)
        if name == "collect_set" and pa.types.is_map(value.type):
            raise ConfigError(f"{name} of maps is refused by Spark.")
        values = f"list({form or '{d}'}{{0}}){{w}}"
        text = f"coalesce(list_filter({values}, lambda e: e IS NOT NULL), CAST([] AS {duckdb_type(kind)}))"
        return call(name, text, kind, value, kind="aggregate")

    return rule


def _position(function: str) -> Rule:
    """The rule for the first, the last or any value; if the second argument is true, nulls are skipped."""

    def rule(name: str, arguments: Arguments) -> Expression:
        if not 1 <= len(arguments) <= 2:
            raise ConfigError(f"{name} takes 1 or 2 arguments, found {len(arguments)}.")
        value = arguments[0]
        plain = call(name, f"{function}({{0}}){{w}}", value.type, value, kind="aggregate")
        if len(arguments) == 1:
            return plain
        leaves_out = arguments[1]
        if not isinstance(leaves_out, TypedLiteral) or not isinstance(leaves_out.value, bool):
            raise ConfigError(f"{name} takes true or false second.")
        return without_nulls(plain) if leaves_out.value else plain

    return rule


def without_nulls(expression: Expression) -> Expression:
    """Add IGNORE NULLS, as in first(x) IGNORE NULLS. Raises ConfigError."""
    if not isinstance(expression, TypedCall):
        raise ConfigError("IGNORE NULLS is for functions such as first and last.")
    form = expression.form
    if form.name not in ("first", "first_value", "last", "last_value", "any_value", "lag", "lead", "nth_value"):
        raise ConfigError(f"IGNORE NULLS is not for {form.name}.")
    text = form.duckdb.replace("){w}", " IGNORE NULLS){w}")
    if form.kind == "aggregate":
        text = form.duckdb.replace("{w}", f"{_NO_NULLS}{{w}}")
    return TypedCall(Form(f"{form.name} ignoring nulls", text, None, form.kind), expression.arguments, expression.type)


def _statistic(text: str, arguments: int = 1) -> Row:
    return _aggregate(f"{text}{{w}}", DOUBLE, *[DOUBLE] * arguments)


def _bits(function: str) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        [value] = arguments
        if not is_integral(value.type):
            raise ConfigError(f"{name} takes whole numbers, found {name_of(value.type)}.")
        return call(name, f"{function}({{0}}){{w}}", value.type, value, kind="aggregate")

    return rule


def _conditions(function: str) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        if len(arguments) != 1:
            raise ConfigError(f"{name} takes 1 argument, found {len(arguments)}.")
        return call(name, f"{function}({{0}}){{w}}", BOOLEAN, condition(name, arguments[0]), kind="aggregate")

    return rule


def _count_if(name: str, arguments: Arguments) -> Expression:
    if len(arguments) != 1:
        raise ConfigError(f"{name} takes 1 argument, found {len(arguments)}.")
    return call(name, "count(CASE WHEN {0} THEN 1 END){w}", LONG, condition(name, arguments[0]), kind="aggregate")


def _string_agg(name: str, arguments: Arguments) -> Expression:
    if not 1 <= len(arguments) <= 2:
        raise ConfigError(f"{name} takes 1 or 2 arguments, found {len(arguments)}.")
    separator = arguments[1] if len(arguments) == 2 else TypedLiteral("", STRING)
    if not isinstance(separator, TypedLiteral):
        raise ConfigError(f"{name} takes the separator as a constant text.")
    return _aggregate("string_agg({d}{0}, {1}){w}", STRING, STRING, STRING)(name, [arguments[0], separator])


def _mode(name: str, arguments: Arguments) -> Expression:
    [value] = arguments
    return call(name, "mode({0}){w}", value.type, value, kind="aggregate")


def _quantile(function: str) -> Rule:
    """The rule for percentile_cont and others WITHIN GROUP (ORDER BY x): arguments are the share, then x."""

    def rule(name: str, arguments: Arguments) -> Expression:
        if len(arguments) != 2:
            raise ConfigError(f"{name} takes a share WITHIN GROUP (ORDER BY a number).")
        share, value = arguments
        if not isinstance(share, TypedLiteral) or not is_number(share.type) or not 0 <= float(str(share.value)) <= 1:
            raise ConfigError(f"{name} takes one constant share from 0 to 1.")
        text = f"CAST({function}({{1}}, {{0}}){{w}} AS DOUBLE)"
        return call(name, text, DOUBLE, cast(share, DOUBLE), cast(value, DOUBLE), kind="aggregate")

    return rule


def _median(name: str, arguments: Arguments) -> Expression:
    return call(name, "quantile_cont({0}, 0.5){w}", DOUBLE, cast(_number(name, arguments), DOUBLE), kind="aggregate")


def _approximate(name: str, arguments: Arguments) -> Expression:
    [value] = arguments[:1]
    return call(name, "count(DISTINCT {0}){w}", LONG, value, kind="aggregate")


def _grouping(name: str, arguments: Arguments) -> Expression:
    [value] = arguments
    return call(name, "CAST(grouping({0}) AS TINYINT)", BYTE, value, kind="aggregate")


AGGREGATES: Mapping[str, Rule] = {
    "count": _count,
    "sum": _sum,
    "avg": _average,
    "mean": _average,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "min_by": _at_extreme("arg_min_null"),
    "max_by": _at_extreme("arg_max_null"),
    "first": _position("first"),
    "first_value": _position("first"),
    "any_value": _position("first"),
    "last": _position("last"),
    "last_value": _position("last"),
    "collect_list": _list(""),
    "array_agg": _list(""),
    "collect_set": _list("DISTINCT "),
    "stddev": _statistic("stddev_samp({0})"),
    "std": _statistic("stddev_samp({0})"),
    "stddev_samp": _statistic("stddev_samp({0})"),
    "stddev_pop": _statistic("stddev_pop({0})"),
    "variance": _statistic("var_samp({0})"),
    "var_samp": _statistic("var_samp({0})"),
    "var_pop": _statistic("var_pop({0})"),
    "corr": _statistic("corr({0}, {1})", 2),
    "covar_samp": _statistic("covar_samp({0}, {1})", 2),
    "covar_pop": _statistic("covar_pop({0}, {1})", 2),
    "regr_slope": _statistic("regr_slope({0}, {1})", 2),
    "kurtosis": _statistic("kurtosis_pop({0})"),
    "median": _median,
    "mode": _mode,
    "percentile_cont": _quantile("quantile_cont"),
    "percentile_disc": _quantile("quantile_disc"),
    "approx_count_distinct": _approximate,
    "count_if": _count_if,
    "bool_and": _conditions("bool_and"),
    "every": _conditions("bool_and"),
    "bool_or": _conditions("bool_or"),
    "some": _conditions("bool_or"),
    "any": _conditions("bool_or"),
    "bit_and": _bits("bit_and"),
    "bit_or": _bits("bit_or"),
    "bit_xor": _bits("bit_xor"),
    "string_agg": _string_agg,
    "listagg": _string_agg,
    "grouping": _grouping,
}


def distinct(expression: Expression) -> Expression:
    """Add DISTINCT, as in count(DISTINCT x). Raises ConfigError for an aggregate that does not allow it."""
    assert isinstance(expression, TypedCall), expression
    form = expression.form
    if "{d}" not in form.duckdb:
        raise ConfigError(f"{form.name} of DISTINCT values needs Spark.")
    if any(pa.types.is_map(value.type) for value in expression.arguments):
        raise ConfigError(f"{form.name} of DISTINCT maps is refused by Spark.")
    text = form.duckdb.replace("{d}", "DISTINCT ")
    return TypedCall(Form(form.name, text, None, form.kind), expression.arguments, expression.type)


def over(expression: Expression, clause: str) -> Expression:
    """Add a FILTER or an OVER. Raises ConfigError for other than aggregates and window functions."""
    if not isinstance(expression, TypedCall) or expression.form.kind == "value":
        raise ConfigError(f"{clause.split()[0]} needs an aggregate before it.")
    form = expression.form
    kind: Kind = "window" if clause.startswith("OVER") else form.kind
    if kind == "window":  # DuckDB allows no FILTER here for these
        form = replace(form, duckdb=form.duckdb.replace(f"){_NO_NULLS}", " IGNORE NULLS)"))
    marker = "" if kind == "window" else "{w}"
    # The clause is already DuckDB's text: its braces are no argument places.
    text = form.duckdb.replace("{w}", f" {clause.replace('{', '{{')}{marker}")
    return TypedCall(Form(form.name, text, None, kind), expression.arguments, expression.type)


def _window(text: str, result: pa.DataType) -> Row:
    return Row(f"CAST({text} AS {duckdb_type(result)})", result, (), kind="window")


def _neighbour(function: str) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        if not 1 <= len(arguments) <= 3:
            raise ConfigError(f"{name} takes 1 to 3 arguments, found {len(arguments)}.")
        distance = constant_whole(name, arguments[1], "the distance") if len(arguments) > 1 else 1
        value = arguments[0]
        if len(arguments) < 3:
            return call(name, f"{function}({{0}}, {distance}){{w}}", value.type, value, kind="window")
        (value, default), kind = same_type(name, [value, arguments[2]])
        if value.type == NOTHING:
            raise ConfigError(f"{name} of NULL needs Spark.")
        return call(name, f"{function}({{0}}, {distance}, {{1}}){{w}}", kind, value, default, kind="window")

    return rule


def _nth(name: str, arguments: Arguments) -> Expression:
    value, place = arguments
    number = constant_whole(name, place, "the place")
    return call(name, f"nth_value({{0}}, {number}){{w}}", value.type, value, kind="window")


def _ntile(name: str, arguments: Arguments) -> Expression:
    number = constant_whole(name, arguments[0], "the number of parts") if arguments else 1
    return call(name, f"CAST(ntile({number}){{w}} AS INTEGER)", INT, kind="window")


WINDOWS: Mapping[str, Rule] = {
    "row_number": _window("row_number(){w}", INT),
    "rank": _window("rank(){w}", INT),
    "dense_rank": _window("dense_rank(){w}", INT),
    "percent_rank": _window("percent_rank(){w}", DOUBLE),
    "cume_dist": _window("cume_dist(){w}", DOUBLE),
    "ntile": _ntile,
    "lag": _neighbour("lag"),
    "lead": _neighbour("lead"),
    "nth_value": _nth,
}

# Functions that make rows from one value; `query/generators.py` makes their columns.
GENERATORS = ("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer")
