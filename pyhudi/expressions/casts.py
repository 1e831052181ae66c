"""Casts between Spark's types, in ANSI mode: a value that does not fit is an error, or NULL with `try_cast`.

Source: Spark's SQL reference, "ANSI Compliance", "Cast"; java.lang.Double.toString.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.tree import Expression, Form, TypedCall, TypedLiteral
from pyhudi.expressions.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LOCAL_TIME,
    LONG,
    MOMENT,
    NOTHING,
    SHORT,
    STRING,
    decimal_of,
    duckdb_type,
    is_integral,
    is_nested,
    is_number,
    name_of,
)

__all__ = ["CAST_MACROS", "cast", "implicit_cast"]

# To fail for a value that does not fit, these cast a text that says why: DuckDB's error() can't be inside TRY.
_DAY = r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})"
_TIME = r"(?:[T ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?)?"
_ZONE = r"(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?|[A-Za-z_]+/[A-Za-z_/]+)"
_MOMENT_PATTERN = f"{_DAY}{_TIME}{_ZONE}?)?)?)?"

CAST_MACROS: Mapping[str, str] = {
    "spark_trim(s)": r"regexp_replace(s, '^[\x00-\x20\x7F]+|[\x00-\x20\x7F]+$', '', 'g')",
    "spark_text_to_whole(s)": (
        "CASE WHEN regexp_full_match(spark_trim(s), '[+-]?[0-9]{1,38}') THEN CAST(ltrim(spark_trim(s), '+') "
        "AS HUGEINT) "
        "ELSE CAST('no whole number: ''' || s || '''' AS HUGEINT) END"
    ),
    "spark_text_to_double(s)": (
        r"CASE WHEN regexp_full_match(spark_trim(s), '[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?') "
        "THEN CAST(rtrim(ltrim(spark_trim(s), '+'), 'dDfF') AS DOUBLE) "
        "WHEN lower(spark_trim(s)) IN ('nan', '+nan', '-nan') THEN CAST('nan' AS DOUBLE) "
        "WHEN lower(spark_trim(s)) IN ('inf', '+inf', 'infinity', '+infinity') THEN CAST('inf' AS DOUBLE) "
        "WHEN lower(spark_trim(s)) IN ('-inf', '-infinity') THEN CAST('-inf' AS DOUBLE) "
        "ELSE CAST('no number: ''' || s || '''' AS DOUBLE) END"
    ),
    "spark_pointed(digits, n)": (
        "CASE WHEN n <= 0 THEN '0.' || repeat('0', -n) || digits WHEN n >= strlen(digits) "
        "THEN rpad(digits, CAST(n AS INTEGER), '0') ELSE digits[1:n] || '.' || digits[n + 1:] END"
    ),
    "spark_scientific(s, sign, whole, fraction, e)": (
        "sign || spark_pointed(whole || fraction, CAST(strlen(whole) + CAST(e AS INT) AS INT))"
    ),
    "spark_text_to_exact(s)": (
        r"CASE WHEN regexp_full_match(spark_trim(s), '[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)') THEN ltrim(spark_trim(s), '+') "
        r"WHEN regexp_full_match(spark_trim(s), '[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]{1,3}') "
        r"THEN spark_scientific(s, regexp_extract(spark_trim(s), '^-'), regexp_extract(spark_trim(s), "
        r"'^[+-]?([0-9]*)', 1), "
        r"regexp_extract(spark_trim(s), '^[+-]?[0-9]*\.([0-9]*)', 1), "
        r"ltrim(regexp_extract(spark_trim(s), '[eE](.*)$', 1), '+')) "
        "ELSE 'no number: ' || s END"
    ),
    "spark_text_to_boolean(s)": (
        "CASE WHEN lower(spark_trim(s)) IN ('t', 'true', 'y', 'yes', '1') THEN true "
        "WHEN lower(spark_trim(s)) IN ('f', 'false', 'n', 'no', '0') THEN false "
        "ELSE CAST('neither true nor false: ''' || s || '''' AS BOOLEAN) END"
    ),
    "spark_part(s, pattern, n)": "nullif(regexp_extract(s, pattern, n), '')",
    "spark_day_of(s, pattern)": (
        "make_date(CAST(spark_part(s, pattern, 1) AS INT), CAST(coalesce(spark_part(s, pattern, 2), '1') AS INT), "
        "CAST(coalesce(spark_part(s, pattern, 3), '1') AS INT))"
    ),
    "spark_text_to_date(s)": (
        rf"CASE WHEN regexp_full_match(spark_trim(s), '(?s){_DAY}([ T].*)?)?)?') "
        rf"THEN spark_day_of(spark_trim(s), '^{_DAY})?)?') ELSE CAST('no date: ''' || s || '''' AS DATE) END"
    ),
    "spark_local_time(s, pattern)": (
        "spark_day_of(s, pattern) + make_time(CAST(coalesce(spark_part(s, pattern, 4), '0') AS INT), "
        "CAST(coalesce(spark_part(s, pattern, 5), '0') AS INT), CAST(coalesce(spark_part(s, pattern, 6), "
        "'0') || '.' || "
        "rpad(coalesce(spark_part(s, pattern, 7), '0'), 6, '0')[1:6] AS DOUBLE))"
    ),
    "spark_text_to_local_time(s)": (
        f"CASE WHEN regexp_full_match(spark_trim(s), '{_MOMENT_PATTERN}') "
        f"THEN spark_local_time(spark_trim(s), '^{_MOMENT_PATTERN}') "
        "ELSE CAST('no time: ''' || s || '''' AS TIMESTAMP) END"
    ),
    "spark_zone(z)": (
        "CASE WHEN z IN ('Z', 'UTC', 'GMT') THEN INTERVAL 0 HOUR ELSE to_minutes((CASE WHEN z[1:1] = '-' "
        "THEN -1 ELSE 1 "
        r"END) * (60 * CAST(regexp_extract(z, '^[+-](\d{1,2})', 1) AS INT) + "
        r"CAST(coalesce(nullif(regexp_extract(z, '^[+-]\d{1,2}:?(\d{2})$', 1), ''), '0') AS INT))) END"
    ),
    "spark_in_zone(t, z)": (
        "CASE WHEN z IS NULL THEN CAST(t AS TIMESTAMPTZ) WHEN contains(z, '/') THEN timezone(z, t) "
        "ELSE timezone('UTC', t - spark_zone(z)) END"
    ),
    "spark_text_to_moment(s)": (
        "spark_in_zone(spark_text_to_local_time(s), "
        f"CASE WHEN regexp_full_match(spark_trim(s), '{_MOMENT_PATTERN}') "
        f"THEN spark_part(spark_trim(s), '^{_MOMENT_PATTERN}$', 8) END)"
    ),
    "spark_is_double(s)": (
        r"regexp_full_match(spark_trim(s), '[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?') "
        "OR lower(ltrim(spark_trim(s), '+-')) IN ('nan', 'inf', 'infinity')"
    ),
    "spark_try_text_to_double(s)": (
        "CASE WHEN regexp_matches(s, '0[xX]') THEN error('hexadecimal numbers need Spark') "
        "WHEN spark_is_double(s) THEN spark_text_to_double(s) END"
    ),
    "spark_is_time(s)": f"regexp_full_match(spark_trim(s), '{_MOMENT_PATTERN}')",
    "spark_is_other_time(s)": r"regexp_matches(s, "
    "'^[^0-9T+-]*(T?[0-9]{1,2}:|[+-]?[0-9]{4,6}(-[0-9]{1,2}(-[0-9]{1,2}[ T].*)?)?)')",
    "spark_try_text_to_local_time(s)": (
        "CASE WHEN spark_is_time(s) THEN TRY(spark_text_to_local_time(s)) "
        "WHEN spark_is_other_time(s) THEN error('this form of a time needs Spark: ' || s) END"
    ),
    "spark_try_text_to_moment(s)": (
        "CASE WHEN spark_is_time(s) THEN TRY(spark_text_to_moment(s)) "
        "WHEN spark_is_other_time(s) THEN error('this form of a time needs Spark: ' || s) END"
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
    "spark_time_text(t)": (
        "CASE WHEN year(t) < 1 THEN error('a time before the year 1 as text needs Spark') "
        "WHEN year(t) > 9999 THEN '+' || CAST(t AS VARCHAR) ELSE CAST(t AS VARCHAR) END"
    ),
    "spark_floor_divide(a, b)": "(a - ((a % b) + b) % b) // b",
    "spark_plain(s)": (
        "CASE WHEN NOT contains(s, 'e') THEN s ELSE (CASE WHEN starts_with(s, '-') THEN '-' ELSE '' END) || "
        "(CASE WHEN spark_exponent(s) < 0 THEN '0.' || repeat('0', -spark_exponent(s) - 1) || spark_digits(s) "
        "ELSE rpad(spark_digits(s), CAST(spark_exponent(s) + 1 AS INTEGER), '0') END) END"
    ),
    "spark_double_to_exact(x)": "CASE WHEN isfinite(x) THEN spark_plain(CAST(x AS VARCHAR)) END",
    "spark_digits_to_exact(n, scale)": (
        "(CASE WHEN n < 0 THEN '-' ELSE '' END) || lpad(CAST(abs(n) AS VARCHAR), greatest(scale + 1, "
        "CAST(length(CAST(abs(n) AS VARCHAR)) AS INTEGER)), '0')[1:-scale - 1] || '.' || "
        "right(lpad(CAST(abs(n) AS VARCHAR), greatest(scale + 1, CAST(length(CAST(abs(n) AS VARCHAR)) AS "
        "INTEGER)), '0'), scale)"
    ),
}

_TEXT_TO: Mapping[pa.DataType, str] = {
    BOOLEAN: "spark_text_to_boolean({0})",
    DOUBLE: "spark_text_to_double({0})",
    FLOAT: "CAST(spark_text_to_double({0}) AS FLOAT)",
    DATE: "spark_text_to_date({0})",
    MOMENT: "spark_text_to_moment({0})",
    LOCAL_TIME: "spark_text_to_local_time({0})",
    BINARY: "encode({0})",
}
# Texts that Spark may accept but this release can't read are errors in TRY_CAST, too.
_TRY_TEXT_TO: Mapping[pa.DataType, str] = {
    DOUBLE: "spark_try_text_to_double({0})",
    FLOAT: "CAST(spark_try_text_to_double({0}) AS FLOAT)",
    MOMENT: "spark_try_text_to_moment({0})",
    LOCAL_TIME: "spark_try_text_to_local_time({0})",
}
_TIMES: Mapping[tuple[pa.DataType, pa.DataType], str] = {
    (DATE, MOMENT): "CAST({0} AS TIMESTAMPTZ)",
    (DATE, LOCAL_TIME): "CAST({0} AS TIMESTAMP)",
    (MOMENT, DATE): "CAST({0} AS DATE)",
    (MOMENT, LOCAL_TIME): "CAST({0} AS TIMESTAMP)",
    (LOCAL_TIME, DATE): "CAST({0} AS DATE)",
    (LOCAL_TIME, MOMENT): "CAST({0} AS TIMESTAMPTZ)",
    (MOMENT, DOUBLE): "(epoch_us({0}) / 1000000)",
    (MOMENT, FLOAT): "CAST(epoch_us({0}) / 1000000 AS FLOAT)",
    (BINARY, STRING): "decode({0})",
}
# Casts that can't fail, and that Arrow does as Spark does.
_WIDER = [(BYTE, SHORT), (SHORT, INT), (INT, LONG), (BYTE, INT), (BYTE, LONG), (SHORT, LONG), (FLOAT, DOUBLE)]


def cast(value: Expression, to: pa.DataType, *, tries: bool = False) -> Expression:
    """Cast a value to a type, as CAST does.

    Args:   tries: a value that does not fit becomes NULL, as with TRY_CAST.
    Raises: ConfigError for types between which Spark, or this release, has no cast.
    """
    kind = value.type
    if kind == to:
        return value
    if kind == NOTHING:
        return TypedLiteral(None, to)
    if isinstance(value, TypedLiteral):
        constant = _constant(value, to)
        if constant is not None:
            return constant
    text = _template(kind, to)
    if text is None:
        raise ConfigError(f"a value of type {name_of(kind)} is not cast to {name_of(to)} without Spark.")
    if tries and kind == STRING and to in _TRY_TEXT_TO:
        return TypedCall(Form("try_cast", _TRY_TEXT_TO[to]), (value,), to)
    if tries and (to != STRING or kind == BINARY):
        # The value itself is computed outside of TRY: its own errors stay errors.
        text = f"list_transform([{{0}}], lambda v: TRY({text.replace('{0}', 'v')}))[1]"
    return TypedCall(Form("try_cast" if tries else "cast", text, None if tries else _kernel(kind, to)), (value,), to)


def _constant(value: TypedLiteral, to: pa.DataType) -> TypedLiteral | None:
    """Cast an integer to a wider number, or a text to a date or time, at once: only constants can skip files."""
    if isinstance(value.value, str) and to in (DATE, MOMENT, LOCAL_TIME):
        return _time_of_text(value.value, to)
    number = value.value
    if isinstance(number, bool) or not isinstance(number, int):
        return None
    if is_integral(to) and -(2 ** (to.bit_width - 1)) <= number < 2 ** (to.bit_width - 1):
        return TypedLiteral(number, to)
    if to == DOUBLE and abs(number) <= 2**53:
        return TypedLiteral(float(number), to)
    if pa.types.is_decimal(to) and len(str(abs(number))) <= to.precision - to.scale:
        return TypedLiteral(Decimal(number), to)
    return None


_PLAIN_TIME = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?)?")


def _time_of_text(text: str, to: pa.DataType) -> TypedLiteral | None:
    """The constant in a text without a zone; None for other forms. A moment without a zone is in the session's zone."""
    match = _PLAIN_TIME.fullmatch(text)
    if match is None:
        return None
    numbers = [int(part or 0) for part in match.groups()[:6]]
    try:
        time = datetime(*numbers, int((match[7] or "").ljust(6, "0")))  # type: ignore[arg-type, misc]
    except ValueError:
        return None
    return TypedLiteral(time.date() if to == DATE else time, to)


def _kernel(kind: pa.DataType, to: pa.DataType) -> str | None:
    if (kind, to) in _WIDER or (is_integral(kind) and (is_integral(to) or to in (DOUBLE, STRING))):
        return "cast"
    if is_integral(kind) and pa.types.is_decimal(to):
        return "cast"
    return "truncate" if kind in (FLOAT, DOUBLE) and is_integral(to) else None


def _template(kind: pa.DataType, to: pa.DataType) -> str | None:
    """DuckDB's text of a cast; None if there is no such cast."""
    if to == STRING:
        return _as_text(kind)
    if kind == STRING:
        return _of_text(to)
    if (kind, to) in _TIMES:
        return _TIMES[kind, to]
    if is_number(kind) or kind == BOOLEAN:
        return _of_number(kind, to)
    if kind == MOMENT and is_integral(to):
        return f"CAST(spark_floor_divide(epoch_us({{0}}), 1000000) AS {duckdb_type(to)})"
    return _of_nested(kind, to) if is_nested(kind) and is_nested(to) else None


def _of_text(to: pa.DataType) -> str | None:
    if is_integral(to):
        return f"CAST(spark_text_to_whole({{0}}) AS {duckdb_type(to)})"
    if pa.types.is_decimal(to):
        return f"CAST(spark_text_to_exact({{0}}) AS {duckdb_type(to)})"
    return _TEXT_TO.get(to)


def _of_number(kind: pa.DataType, to: pa.DataType) -> str | None:
    plain = f"CAST({{0}} AS {duckdb_type(to)})" if is_number(to) else ""
    if to == BOOLEAN:
        return "({0} <> 0)"
    if kind == BOOLEAN:
        return plain or None
    if to == MOMENT:
        if is_integral(kind):
            return "make_timestamptz(CAST({0} AS BIGINT) * 1000000)"
        return "make_timestamptz(CAST(trunc({0} * 1000000) AS BIGINT))"
    if not is_number(to):
        return None
    if is_integral(to) and not is_integral(kind):
        return f"CAST(trunc({{0}}) AS {duckdb_type(to)})"
    if pa.types.is_decimal(to) and kind in (FLOAT, DOUBLE):
        return f"CAST(spark_double_to_exact(CAST({{0}} AS DOUBLE)) AS {duckdb_type(to)})"
    if pa.types.is_decimal(kind) and to in (FLOAT, DOUBLE):
        return f"CAST(CAST({{0}} AS VARCHAR) AS {duckdb_type(to)})"
    return plain


def _as_text(kind: pa.DataType) -> str | None:
    """DuckDB's text that formats a value as Spark does; None if there is none."""
    t = pa.types
    if kind in (FLOAT, DOUBLE):
        return "spark_double_text(CAST({0} AS VARCHAR))"
    if kind in (DATE, MOMENT, LOCAL_TIME):
        return f"spark_time_text({'CAST({0} AS TIMESTAMP)' if kind == MOMENT else '{0}'})"
    if kind == BINARY:
        return "decode({0})"
    if isinstance(kind, pa.Decimal128Type) and kind.precision == kind.scale:  # DuckDB writes .5
        return r"regexp_replace(CAST({0} AS VARCHAR), '^(-?)\.', '\1' || '0.')"
    if kind == BOOLEAN or is_number(kind):
        return "CAST({0} AS VARCHAR)"
    if t.is_list(kind):
        element = _part_as_text(kind.value_type, "e")
        return element and f"('[' || array_to_string(list_transform({{0}}, lambda e: {element}), ', ') || ']')"
    if t.is_map(kind):
        key, value = _part_as_text(kind.key_type, "e.key"), _part_as_text(kind.item_type, "e.value")
        pairs = f"list_transform(map_entries({{0}}), lambda e: {key} || ' -> ' || {value})"
        return key and value and f"('{{' || array_to_string({pairs}, ', ') || '}}')"
    if t.is_struct(kind):
        parts = [_part_as_text(field.type, f"struct_extract_at({{0}}, {at + 1})") for at, field in enumerate(kind)]
        if any(part is None for part in parts):
            return None
        return (
            f"CASE WHEN {{0}} IS NOT NULL THEN '{{' || {' || chr(44) || chr(32) || '.join(map(str, parts))} || '}}' END"
        )
    return None


def _part_as_text(kind: pa.DataType, value: str) -> str | None:
    if is_nested(kind):
        return None  # nested lambdas would need distinct names
    text = "'null'" if kind == NOTHING else _as_text(kind)
    return text and f"coalesce({text.replace('{0}', value)}, 'null')"


def _of_nested(kind: pa.DataType, to: pa.DataType) -> str | None:
    """Cast nested values part by part. DuckDB matches fields of structs by name, Spark by position."""
    t = pa.types
    if t.is_list(kind) and t.is_list(to):
        inner = _inner(kind.value_type, to.value_type, "e")
        return inner and f"list_transform({{0}}, lambda e: {inner})"
    if t.is_map(kind) and t.is_map(to):
        key, value = _inner(kind.key_type, to.key_type, "e.key"), _inner(kind.item_type, to.item_type, "e.value")
        pair = f"struct_pack(k := {key}, v := {value})"
        entries = f"map_from_entries(list_transform(map_entries({{0}}), lambda e: {pair}))"
        return key and value and f"CAST({entries} AS {duckdb_type(to)})"
    if t.is_struct(kind) and t.is_struct(to) and kind.num_fields == to.num_fields:
        parts = []
        for at, (field, target) in enumerate(zip(kind, to, strict=True)):
            part = _inner(field.type, target.type, f"struct_extract_at({{0}}, {at + 1})")
            if part is None:
                return None
            name = target.name.replace('"', '""')
            parts.append(f'"{name}" := {part}')
        return f"CASE WHEN {{0}} IS NOT NULL THEN struct_pack({', '.join(parts)}) END"
    return None


def _inner(kind: pa.DataType, to: pa.DataType, value: str) -> str | None:
    if kind == to:
        return value
    if kind == NOTHING:
        return f"CAST(NULL AS {duckdb_type(to)})"
    text = None if is_nested(kind) and not pa.types.is_struct(kind) else _template(kind, to)
    return text and text.replace("{0}", value)


def implicit_cast(value: Expression, to: pa.DataType) -> Expression | None:
    """Convert a value to a function's parameter type if Spark does so implicitly, else None."""
    kind = value.type
    if kind in (to, NOTHING):
        return cast(value, to)
    atomic = not is_nested(kind)
    if to == STRING:
        return cast(value, to) if atomic and kind != BINARY else None
    if kind == STRING:
        return None if is_nested(to) else cast(value, to)
    if is_number(kind) and is_number(to):
        return cast(value, to)
    if (kind == DATE and to in (MOMENT, LOCAL_TIME)) or {kind, to} == {MOMENT, LOCAL_TIME}:
        return cast(value, to)
    if kind in (MOMENT, LOCAL_TIME) and to == DATE:
        return cast(value, to)
    if is_nested(kind) and is_nested(to):
        return cast(value, to)
    return None


def exact(value: Expression) -> Expression:
    """Convert an integer to a decimal that holds it; a constant gets just the digits that it has."""
    if isinstance(value, TypedLiteral) and isinstance(value.value, int):
        return cast(value, pa.decimal128(len(str(abs(value.value))), 0))
    if isinstance(value, TypedCall) and value.form.name == "cast of a constant":
        raise ConfigError("a decimal beside 5L or CAST(5 AS BIGINT) needs Spark; write 5.")
    to = decimal_of(value.type)
    assert to is not None, value.type
    return cast(value, to)
