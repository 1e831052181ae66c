"""A bound predicate as a Spark column, with the same results as the Arrow reader.

Predicates have Spark's semantics (NaN, null), so they map to Spark's operators, which its scans push down. The column
is one SQL expression: on a classic session each separate operator and literal takes several calls of the JVM, and a
thousand of them take most of a second. Terms of AND and OR are not nested in pairs: Spark does that, and is slow at
parentheses within parentheses.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timezone
from decimal import Decimal

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from pyhudi.expressions.columns import resolve_operand
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
    Operand,
    Or,
    Predicate,
    SqlText,
    Value,
)

__all__ = ["to_spark"]

_NULL = "CAST(NULL AS BOOLEAN)"
_ONLY_PREFIX = re.compile(r"[^%_\\]*%")
_EPOCH = datetime(1970, 1, 1)
# Settings of the session decide if a backslash escapes, and if ${name} is a variable.
_NOT_PLAIN = re.compile(r"['\\$]")


def to_spark(predicate: Predicate, schema: pa.Schema) -> SparkColumn:
    """The predicate as a column of truth values; `schema` is that of the rows. Opaque predicates are not for Spark."""
    return F.expr(_sql(predicate, schema))


def _sql(predicate: Predicate, schema: pa.Schema) -> str:
    match predicate:
        case And(children):
            return f"({' AND '.join(_sql(child, schema) for child in children) or 'TRUE'})"
        case Or(children):
            return f"({' OR '.join(_sql(child, schema) for child in children) or 'FALSE'})"
        case Not(child):
            return f"(NOT {_sql(child, schema)})"
        case Constant(value):
            return _NULL if value is None else _literal(value, pa.bool_())
        case Compare(column, op, value):
            return f"({_name(column)} {op} {_literal(value, resolve_operand(column, schema)[1])})"
        case CompareColumns(left, op, right):
            return f"({_name(left)} {op} {_name(right)})"
        case In():
            return _in(predicate, schema)
        case IsNull(column):
            return f"({_name(column)} IS NULL)"
        case Like(column, pattern) as like:
            if _ONLY_PREFIX.fullmatch(pattern):
                return f"startswith({_name(column)}, {_text(like.prefix)})"
            return f"({_name(column)} RLIKE {_text(like.regex())})"
        case SqlText(text):
            return f"({text}\n)"  # its end may be a comment
    raise AssertionError(predicate)


def _name(column: Operand) -> str:
    assert isinstance(column, Column), column  # filters with functions are not Spark's
    return ".".join("`" + name.replace("`", "``") + "`" for name in column.path)


def _in(predicate: In, schema: pa.Schema) -> str:
    column, values = _name(predicate.column), predicate.values
    if values:
        kind = resolve_operand(predicate.column, schema)[1]
        answer = f"({column} IN ({', '.join(_literal(value, kind) for value in values)}))"
    else:
        answer = f"({column} IS NULL AND {_NULL})"  # null IN () is unknown
    return f"({answer} OR {_NULL})" if predicate.has_null else answer


def _literal(value: Value, kind: pa.DataType) -> str:
    """A literal of the column's type; moments are numbers or text, so that no time zone has an effect."""
    if pa.types.is_boolean(kind):
        return str(value).upper()
    if pa.types.is_integer(kind):
        return str(value)
    if pa.types.is_floating(kind):
        number = float(value)
        return f"{number!r}D" if math.isfinite(number) else f"CAST('{number}' AS DOUBLE)"
    if pa.types.is_decimal(kind):
        return f"CAST('{Decimal(value)}' AS DECIMAL({kind.precision}, {kind.scale}))"
    if pa.types.is_date(kind):
        return f"DATE '{value.isoformat()}'"
    if pa.types.is_timestamp(kind):
        if kind.tz is None:
            return f"CAST('{value.isoformat(sep=' ')}' AS TIMESTAMP_NTZ)"
        since = value.astimezone(timezone.utc).replace(tzinfo=None) - _EPOCH
        return f"timestamp_micros({(since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds}L)"
    return f"X'{value.hex()}'" if isinstance(value, bytes) else _text(value)


def _text(value: str) -> str:
    """A text literal with the same meaning under all settings of the session."""
    return f"CAST(X'{value.encode().hex()}' AS STRING)" if _NOT_PLAIN.search(value) else f"'{value}'"
