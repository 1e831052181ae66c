"""The DuckDB back end: typed expressions as DuckDB's text.

The text has the expression's type in DuckDB. Functions that DuckDB lacks are macros of the session, or Python functions
on Arrow arrays (`MACROS`, `KERNELS` of `functions`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

from pyhudi.expressions.tree import Expression, Lambda, TypedCall, TypedColumn, TypedLiteral, Verbatim
from pyhudi.expressions.types import NOTHING, duckdb_type

__all__ = ["duckdb_expression", "quoted_name", "quoted_text"]

# In a form: {0} is an argument, {d} where DISTINCT may be, {w} where FILTER and OVER may be, {{ a brace.
_PLACE = re.compile(r"\{\{|\{(?:\d+|d|w)\}")


def quoted_name(name: str) -> str:
    """Quote an identifier for DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def quoted_text(text: str) -> str:
    """Quote a text for DuckDB."""
    if "\0" in text:
        return "(" + " || chr(0) || ".join(quoted_text(part) for part in text.split("\0")) + ")"
    return "'" + text.replace("'", "''") + "'"


def duckdb_expression(expression: Expression) -> str:
    """Convert an expression to DuckDB's text."""
    match expression:
        case TypedColumn(path, _, source):
            names = ".".join(quoted_name(name) for name in ([source] if source else []) + [path[0]])
            for name in path[1:]:
                names = f"struct_extract({names}, {quoted_text(name)})"
            return names
        case TypedLiteral(value, kind):
            return _literal(value, kind)
        case Verbatim(text):
            return text
        case Lambda(parameters, body):
            return f"lambda {', '.join(map(quoted_name, parameters))}: {duckdb_expression(body)}"
        case TypedCall(form, arguments):
            texts = [duckdb_expression(argument) for argument in arguments]
            return _PLACE.sub(lambda place: _part(place[0], texts), form.duckdb)
    raise AssertionError(expression)


def _part(place: str, arguments: Sequence[str]) -> str:
    if place == "{{":
        return "{"
    return arguments[int(place[1:-1])] if place[1:-1].isdigit() else ""


def _literal(value: object, kind: pa.DataType) -> str:
    if value is None:
        return "NULL" if kind == NOTHING else f"CAST(NULL AS {duckdb_type(kind)})"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted_text(value)
    if isinstance(value, bytes):
        return f"from_hex('{value.hex()}')"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS {duckdb_type(kind)})"
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS {duckdb_type(kind)})"
    if isinstance(value, timedelta):
        return f"to_microseconds({(value // timedelta(microseconds=1))})"
    if isinstance(value, pa.MonthDayNano):
        return f"to_months({value.months})"
    if isinstance(value, datetime):
        return f"CAST('{value.isoformat(sep=' ')}' AS {duckdb_type(kind)})"
    if isinstance(value, date):
        return f"CAST('{value.isoformat()}' AS DATE)"
    assert isinstance(value, int), value
    return f"CAST({value} AS {duckdb_type(kind)})"
