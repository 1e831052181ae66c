"""Spark's functions and operators in DuckDB's words, wherever sqlglot or DuckDB would answer differently.

Most are macros of the session. A macro is called `spark_…` where DuckDB has a function of the same name. A function
without a counterpart is refused by name. tests/sql/test_duckdb_functions.py compares them with answers of Spark.

Source: Spark's SQL reference, "Built-in Functions", "ANSI Compliance"; DuckDB's documentation, "Functions".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.generator import Generator

    Translation: TypeAlias = Callable[..., str | None]

__all__ = ["MACROS", "duckdb_query"]

_IS_DOUBLE = "typeof(v) IN ('DOUBLE', 'FLOAT')"
_DAY = "CAST(d AS DATE)"

# Calls → their DuckDB equivalents. A macro's arguments may occur several times, and are evaluated once.
_MACROS: Mapping[str, str] = {
    # numbers
    "bround(x, n := 0)": "round_even(x, n)",
    "e()": "exp(1)",
    "expm1(x)": "exp(x) - 1",
    "hypot(x, y)": "sqrt(CAST(x AS DOUBLE) * x + CAST(y AS DOUBLE) * y)",
    "log1p(x)": "ln(1 + x)",
    "nanvl(x, y)": "CASE WHEN isnan(x) THEN y ELSE x END",
    "negative(x)": "-x",
    "pmod(x, y)": "((x % y) + y) % y",
    "rint(x)": "round_even(x, 0)",
    "spark_divide(x, y)": (
        "CASE WHEN y = 0 THEN error('Division by zero; try_divide(x, y) is NULL then.') ELSE x / y END"
    ),
    # texts
    "btrim(x)": "trim(x)",
    "spark_octets(x)": (
        "CASE WHEN typeof(x) = 'BLOB' THEN octet_length(TRY_CAST(x AS BLOB)) ELSE strlen(TRY_CAST(x AS VARCHAR)) END"
    ),
    "spark_start(n)": "CASE WHEN n = 0 THEN 1 ELSE n END",
    "substring_index(x, y, n)": (
        "CASE WHEN n = 0 OR y = '' THEN '' WHEN n > 0 THEN array_to_string(string_split(x, y)[1:n], y) "
        "ELSE array_to_string(string_split(x, y)[n:], y) END"
    ),
    "spark_url_encode(x)": "replace(replace(replace(url_encode(x), '%20', '+'), '%2A', '*'), '~', '%7E')",
    "spark_url_decode(x)": "url_decode(replace(x, '+', ' '))",
    # conditions
    "isnotnull(x)": "x IS NOT NULL",
    "spark_isnull(x)": "x IS NULL",
    "spark_every(x)": "bool_and(x)",
    "spark_some(x)": "bool_or(x)",
    # lists
    "spark_distinct(x)": "list_filter(x, lambda i, n : list_position(x, i) = n)",
    "array_repeat(x, n)": "list_transform(range(n), lambda i : x)",
    "array_union(x, y)": "spark_distinct(list_concat(x, y))",
    "spark_any(x)": (
        "CASE WHEN x IS NULL THEN NULL WHEN list_contains(x, true) THEN true "
        "WHEN list_position(x, NULL) IS NOT NULL THEN NULL ELSE false END"
    ),
    "spark_all(x)": "NOT spark_any(list_transform(x, lambda i : NOT i))",
    "arrays_overlap(x, y)": (
        "CASE WHEN x IS NULL OR y IS NULL THEN NULL WHEN list_has_any(x, y) THEN true WHEN len(x) > 0 AND len(y) > 0 "
        "AND coalesce(list_position(x, NULL), list_position(y, NULL)) IS NOT NULL THEN NULL ELSE false END"
    ),
    "spark_except(x, y)": (
        "CASE WHEN y IS NULL THEN NULL ELSE list_filter(spark_distinct(x), lambda i : list_position(y, i) IS NULL) END"
    ),
    "spark_position(x, y)": "CASE WHEN x IS NULL OR y IS NULL THEN NULL ELSE coalesce(list_position(x, y), 0) END",
    # times
    "spark_day(d, n)": f"{_DAY} + CAST(n AS INT)",
    "spark_trunc(d, unit)": (
        f"CAST(CASE WHEN upper(unit) IN ('YEAR', 'YYYY', 'YY') THEN date_trunc('year', {_DAY}) "
        f"WHEN upper(unit) = 'QUARTER' THEN date_trunc('quarter', {_DAY}) "
        f"WHEN upper(unit) IN ('MONTH', 'MM', 'MON') THEN date_trunc('month', {_DAY}) "
        f"WHEN upper(unit) = 'WEEK' THEN date_trunc('week', {_DAY}) END AS DATE)"
    ),
    "spark_weekday(d)": f"isodow({_DAY}) - 1",
    "timestamp_micros(n)": "CAST(make_timestamp(n) AS TIMESTAMPTZ)",
    "timestamp_millis(n)": "CAST(make_timestamp(n * 1000) AS TIMESTAMPTZ)",
    "timestamp_seconds(n)": "CAST(make_timestamp(CAST(n * 1000000 AS BIGINT)) AS TIMESTAMPTZ)",
    # aggregates
    "std(x)": "stddev_samp(x)",
    # casts: numbers are cut, not rounded; texts are whole numbers or an error; texts are what Java makes of values
    "spark_whole(v)": (
        f"CASE WHEN {_IS_DOUBLE} THEN CAST(trunc(TRY_CAST(v AS DOUBLE)) AS HUGEINT) WHEN starts_with(typeof(v), "
        "'DECIMAL') THEN CAST(trunc(TRY_CAST(v AS DECIMAL(38, 18))) AS HUGEINT) WHEN typeof(v) = 'VARCHAR' AND NOT "
        "regexp_full_match(trim(TRY_CAST(v AS VARCHAR)), '[+-]?[0-9]+') THEN error('Could not convert ''' || "
        "TRY_CAST(v AS VARCHAR) || ''' to a whole number') ELSE CAST(v AS HUGEINT) END"
    ),
    "spark_try_whole(v)": (
        f"CASE WHEN {_IS_DOUBLE} THEN TRY_CAST(trunc(TRY_CAST(v AS DOUBLE)) AS HUGEINT) WHEN starts_with(typeof(v), "
        "'DECIMAL') THEN TRY_CAST(trunc(TRY_CAST(v AS DECIMAL(38, 18))) AS HUGEINT) WHEN typeof(v) = 'VARCHAR' AND NOT "
        "regexp_full_match(trim(TRY_CAST(v AS VARCHAR)), '[+-]?[0-9]+') THEN NULL ELSE TRY_CAST(v AS HUGEINT) END"
    ),
    "spark_digits(s)": "rtrim(ltrim(replace(ltrim(split_part(s, 'e', 1), '-'), '.', ''), '0'), '0')",
    "spark_exponent(s)": (
        "CASE WHEN contains(s, 'e') THEN TRY_CAST(split_part(s, 'e', 2) AS INT) WHEN abs(TRY_CAST(s AS DOUBLE)) >= 1 "
        "THEN strlen(ltrim(split_part(s, '.', 1), '-')) - 1 "
        "ELSE strlen(ltrim(split_part(s, '.', 2), '0')) - strlen(split_part(s, '.', 2)) - 1 END"
    ),
    "spark_double_text(s)": (
        "CASE WHEN s = 'nan' THEN 'NaN' WHEN s = 'inf' THEN 'Infinity' WHEN s = '-inf' THEN '-Infinity' "
        "WHEN TRY_CAST(s AS DOUBLE) <> 0 AND spark_exponent(s) NOT BETWEEN -3 AND 6 "
        "THEN (CASE WHEN starts_with(s, '-') THEN '-' ELSE '' END) || spark_digits(s)[1:1] || '.' || "
        "coalesce(nullif(spark_digits(s)[2:], ''), '0') || 'E' || CAST(spark_exponent(s) AS VARCHAR) ELSE s END"
    ),
    "spark_text(v)": (
        "CASE WHEN typeof(v) = 'TIMESTAMP WITH TIME ZONE' THEN regexp_replace(CAST(v AS VARCHAR), '[+]00$', '') "
        f"WHEN {_IS_DOUBLE} THEN spark_double_text(CAST(v AS VARCHAR)) ELSE CAST(v AS VARCHAR) END"
    ),
}
MACROS = ";\n".join(f"CREATE TEMP MACRO {call} AS {body}" for call, body in _MACROS.items())

# sqlglot's nodes, and calls that it does not know → DuckDB's text, with the node's parts by their names.
_NODES: Mapping[str, str] = {
    "ArrayDistinct": "spark_distinct({this})",
    "ArrayExcept": "spark_except({this}, {expression})",
    "ArrayPosition": "spark_position({this}, {expression})",
    "DateFromUnixDate": "spark_day('1970-01-01', {this})",
    "DateTrunc": "spark_trunc({this}, {unit})",
    "DayOfWeek": "(dayofweek({this}) + 1)",
    "Dayname": "strftime({this}, '%a')",
    "Format": "printf({this}, {expressions})",
    "Kurtosis": "kurtosis_pop({this})",
    "Monthname": "strftime({this}, '%b')",
    "Rint": "rint({this})",
    "TimestampTrunc": "CAST(date_trunc('{unit}', {this}) AS TIMESTAMPTZ)",
}
_CALLS: Mapping[str, str] = {
    "every": "spark_every({0})",
    "forall": "spark_all(list_transform({0}, {1}))",
    "isnull": "spark_isnull({0})",
    "octet_length": "spark_octets({0})",
    "some": "spark_some({0})",
    "url_decode": "spark_url_decode({0})",
    "url_encode": "spark_url_encode({0})",
    "weekday": "spark_weekday({0})",
}
# Of the same name as functions of DuckDB's that answer something else.
_REFUSED_NODES = ("ArraysZip", "Skewness", "Typeof")
_REFUSED_CALLS = ("hash",)


def duckdb_query(tree: exp.Expr) -> str:
    """A tree of Spark's dialect as DuckDB's text. Raises UnsupportedError for what DuckDB has not."""
    from sqlglot import exp
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import ErrorLevel, UnsupportedError, concat_messages

    generator = DuckDB().generator(unsupported_level=ErrorLevel.RAISE, normalize_functions="lower", comments=False)
    tree = tree.copy()
    for node in reversed(list(tree.dfs())):  # the parts of a node before it: they are text when its turn comes
        translate = _translations().get(type(node))
        text = None if translate is None else translate(generator, node)
        if text is not None:
            is_operator = isinstance(node, exp.Binary) and isinstance(node.parent, exp.Func)
            node.replace(_as_text(f"({text})" if is_operator else text))
    if generator.unsupported_messages:
        raise UnsupportedError(concat_messages(generator.unsupported_messages, generator.max_unsupported))
    return generator.generate(tree, copy=False)


@cache
def _translations() -> Mapping[type[exp.Expr], Translation]:
    """How a node becomes DuckDB's text; None for what sqlglot makes of it."""
    from sqlglot import exp

    return {
        **{getattr(exp, name): partial(_from_template, text) for name, text in _NODES.items()},
        **dict.fromkeys((getattr(exp, name) for name in _REFUSED_NODES), _refuse),
        exp.Anonymous: _call,
        exp.Cast: _cast,
        exp.TryCast: _cast,
        exp.Div: _division,
        exp.Exists: _exists,
        exp.ILike: _like,
        exp.Like: _like,
        exp.Substring: _substring,
        exp.TsOrDsAdd: _day_after,
    }


def _as_text(text: str) -> exp.Expr:
    """A node that is written as the text, and is for the generator what depends on a row."""
    from sqlglot import exp

    return exp.Column(this=exp.Var(this=text))


def _from_template(text: str, generator: Generator, node: exp.Expr) -> str:
    parts = {name: generator.sql(node, name) for name in node.arg_types if name != "expressions"}
    return text.format(**parts, expressions=generator.expressions(node, flat=True))


def _refuse(generator: Generator, node: exp.Expr) -> str:
    name = node.name if isinstance(node.this, str) else node.key
    generator.unsupported(f"the function {name} has another meaning in DuckDB")
    return ""


def _call(generator: Generator, node: exp.Anonymous) -> str | None:
    """A function that sqlglot does not know."""
    name = node.name.lower()
    if name in _REFUSED_CALLS:
        return _refuse(generator, node)
    if name in _CALLS:
        return _CALLS[name].format(*(generator.sql(argument) for argument in node.expressions))
    return None


def _cast(generator: Generator, node: exp.Cast) -> None:
    from sqlglot import exp

    to = node.to.this
    macro = ""
    if to in exp.DataType.INTEGER_TYPES and not (isinstance(node.this, exp.Literal) and node.this.is_int):
        macro = "spark_try_whole" if isinstance(node, exp.TryCast) else "spark_whole"
    elif to in exp.DataType.TEXT_TYPES and not node.is_type("json"):
        macro = "spark_text"
    if macro:  # it stays a cast, whose type the generator knows
        node.set("this", _as_text(f"{macro}({generator.sql(node, 'this')})"))


def _division(generator: Generator, node: exp.Div) -> str:
    from sqlglot import exp

    divisor = node.expression.unnest()
    if isinstance(divisor, exp.Literal) and not divisor.is_string and float(divisor.name):
        return generator.binary(node, "/")
    return f"spark_divide({generator.sql(node, 'this')}, {generator.sql(node, 'expression')})"


def _exists(generator: Generator, node: exp.Exists) -> str | None:
    """EXISTS (query), and `exists(list, x -> …)`."""
    if node.args.get("expression") is None:
        return None
    return f"spark_any(list_transform({generator.sql(node, 'this')}, {generator.sql(node, 'expression')}))"


def _like(generator: Generator, node: exp.Like | exp.ILike) -> str | None:
    """LIKE, where a backslash takes the next character as it is, as Spark has it without ESCAPE."""
    from sqlglot import exp

    is_plain = isinstance(node.expression, exp.Literal) and "\\" not in node.expression.name
    return None if is_plain or isinstance(node.parent, exp.Escape) else f"{generator.sql(node)} ESCAPE '\\'"


def _substring(generator: Generator, node: exp.Substring) -> None:
    """A text from its first character for 0, and an empty one for a negative length."""
    start, length = generator.sql(node, "start"), generator.sql(node, "length")
    if not start.isdigit() or int(start) == 0:
        node.set("start", _as_text(f"spark_start({start})"))
    if length and not length.isdigit():
        node.set("length", _as_text(f"greatest({length}, 0)"))


def _day_after(generator: Generator, node: exp.TsOrDsAdd) -> str:
    if node.text("unit").upper() not in ("", "DAY"):
        generator.unsupported(f"adding {node.text('unit')} to a date")
    return f"spark_day({generator.sql(node, 'this')}, {generator.sql(node, 'expression')})"
