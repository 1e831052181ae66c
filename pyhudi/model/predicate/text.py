"""Predicates as SQL text, for people, for Spark and for `parse_where`."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal

from pyhudi.model.predicate.calls import call_sql
from pyhudi.model.predicate.tree import (
    And,
    Call,
    Compare,
    CompareColumns,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Operand,
    Or,
    Predicate,
    Value,
)

__all__ = ["to_sql"]


def to_sql(predicate: Predicate) -> str:
    """The predicate as SQL text that Spark and `parse_where` read alike. An `Opaque` part shows Arrow's own text."""
    match predicate:
        case And(children):
            return " AND ".join(_in_brackets(child) for child in children) or "TRUE"
        case Or(children):
            return " OR ".join(_in_brackets(child) for child in children) or "FALSE"
        case Not(IsNull(column)):
            return f"{_quoted(column)} IS NOT NULL"
        case Not(child):
            return f"NOT ({to_sql(child)})"
        case Compare(column, op, value):
            return f"{_quoted(column)} {op} {_sql_literal(value)}"
        case CompareColumns(left, op, right):
            return f"{_quoted(left)} {op} {_quoted(right)}"
        case In(column, (), False):
            return f"({_quoted(column)} IS NULL AND NULL)"
        case In(column, values, has_null):
            items = [_sql_literal(value) for value in values] + (["NULL"] if has_null else [])
            return f"{_quoted(column)} IN ({', '.join(items)})"
        case IsNull(column):
            return f"{_quoted(column)} IS NULL"
        case Like(column, pattern):
            return f"{_quoted(column)} LIKE {_sql_literal(pattern)}"
        case Constant(value):
            return "NULL" if value is None else str(value).upper()
    return str(predicate)


def _in_brackets(predicate: Predicate) -> str:
    text = to_sql(predicate)
    return f"({text})" if isinstance(predicate, And | Or) else text


def _quoted(column: Operand) -> str:
    if isinstance(column, Call):
        return call_sql(column, _quoted(column.column))
    return ".".join(
        part if re.fullmatch(r"[A-Za-z_]\w*", part) else "`" + part.replace("`", "``") + "`" for part in column.path
    )


def _sql_literal(value: Value) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        # Spark reads backslashes in literals as escapes, and so does `parse_where`.
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return f"DOUBLE('{value!r}')"
        return f"{value!r}D" if "e" not in repr(value) else f"{value!r}"
    if isinstance(value, Decimal):
        text = format(value, "f")
        return text if "." in text else f"{text}BD"
    return str(value)
