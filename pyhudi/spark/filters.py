"""A bound predicate as a Spark column, with the same results as the Arrow reader.

Predicates have Spark's semantics (NaN, null), so they map to Spark's operators, which its scans push down.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from datetime import datetime, timezone
from decimal import Decimal

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

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
    Operand,
    Or,
    Predicate,
    SqlText,
)
from pyhudi.model.predicate.tree import Value
from pyhudi.queries.filters import resolve_operand

__all__ = ["to_spark"]

_OPERATORS: dict[str, Callable[[SparkColumn, SparkColumn], SparkColumn]] = {
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
_ONLY_PREFIX = re.compile(r"[^%_\\]*%")
_EPOCH = datetime(1970, 1, 1)
_FEW = 16  # values of a list that are literals of their own
# Whether a backslash escapes, and whether ${name} is a variable, are settings of the session.
_NOT_PLAIN = re.compile(r"['\\$]")


def to_spark(predicate: Predicate, schema: pa.Schema) -> SparkColumn:
    """The predicate as a column of truth values; `schema` is that of the rows. Opaque predicates are not for Spark."""
    match predicate:
        case And(children):
            return _balanced([to_spark(c, schema) for c in children], operator.and_, True)
        case Or(children):
            return _balanced([to_spark(c, schema) for c in children], operator.or_, False)
        case Not(child):
            return ~to_spark(child, schema)
        case Constant(value):
            return F.lit(value).cast("boolean")
        case Compare(column, op, value):
            kind = resolve_operand(column, schema)[1]
            return _OPERATORS[op](_column(column), _literal(value, kind))
        case CompareColumns(left, op, right):
            return _OPERATORS[op](_column(left), _column(right))
        case In(column, values, has_null):
            return _in(column, values, has_null, schema)
        case IsNull(column):
            return _column(column).isNull()
        case Like(column, pattern) as like:
            plain = _ONLY_PREFIX.fullmatch(pattern)
            return _column(column).startswith(like.prefix) if plain else F.rlike(_column(column), F.lit(like.regex()))
        case SqlText(text):
            return F.expr(text)
    raise AssertionError(predicate)


def _balanced(
    terms: list[SparkColumn], join: Callable[[SparkColumn, SparkColumn], SparkColumn], empty: bool
) -> SparkColumn:
    """The terms joined in pairs, and these in pairs: Spark recurses for each level."""
    while len(terms) > 1:
        pairs = [join(*terms[i : i + 2]) for i in range(0, len(terms) - 1, 2)]
        terms = pairs + terms[len(pairs) * 2 :]
    return terms[0] if terms else F.lit(empty)


def _column(column: Operand) -> SparkColumn:
    return F.col(_name(column))


def _name(column: Operand) -> str:
    """The column as it is written in SQL."""
    assert isinstance(column, Column), column  # filters with functions are not Spark's
    return ".".join("`" + name.replace("`", "``") + "`" for name in column.path)


def _in(column: Operand, values: tuple[Value, ...], has_null: bool, schema: pa.Schema) -> SparkColumn:
    kind = resolve_operand(column, schema)[1]
    if not values:
        # null IN () is unknown
        answer = to_spark(And((IsNull(column), Constant(None))), schema)
    else:
        answer = _one_of(column, values, kind)
    return answer | F.lit(None).cast("boolean") if has_null else answer


def _one_of(column: Operand, values: tuple[Value, ...], kind: pa.DataType) -> SparkColumn:
    """The column is one of the values. Many of them are one call of the JVM, as SQL, where all can be written in it; as
    literals each of them is several, and a thousand take most of a second on a classic session.
    """
    if len(values) > _FEW:
        texts = [text for value in values if (text := _sql_literal(value, kind)) is not None]
        if len(texts) == len(values):
            return F.expr(f"{_name(column)} IN ({', '.join(texts)})")
    return _column(column).isin([_literal(value, kind) for value in values])


def _sql_literal(value: Value, kind: pa.DataType) -> str | None:
    """What `_literal` is, as SQL; None for a value whose text the session's settings change or SQL can't hold."""
    if pa.types.is_integer(kind):
        return str(value)
    if pa.types.is_floating(kind):
        return f"{float(value)!r}D" if math.isfinite(value) else None
    if pa.types.is_decimal(kind):
        return f"CAST('{Decimal(value)}' AS DECIMAL({kind.precision}, {kind.scale}))"
    if pa.types.is_date(kind):
        return f"DATE '{value.isoformat()}'"
    if pa.types.is_timestamp(kind):
        if kind.tz is None:
            return f"CAST('{value.isoformat(sep=' ')}' AS TIMESTAMP_NTZ)"
        return f"timestamp_micros({_micros(value)}L)"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, str) and not _NOT_PLAIN.search(value):
        return f"'{value}'"
    return None


def _micros(value: datetime) -> int:
    """Microseconds since 1970 in UTC."""
    since = value.astimezone(timezone.utc).replace(tzinfo=None) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _literal(value: Value, kind: pa.DataType) -> SparkColumn:
    """A literal of the column's type; moments are numbers or text, so that Python's time zone has no effect."""
    if pa.types.is_timestamp(kind):
        if kind.tz is None:
            return F.lit(value.isoformat(sep=" ")).cast("timestamp_ntz")
        return F.timestamp_micros(F.lit(_micros(value)))
    if pa.types.is_decimal(kind):
        return F.lit(str(Decimal(value))).cast(f"decimal({kind.precision},{kind.scale})")
    if pa.types.is_floating(kind):
        return F.lit(float(value))
    if isinstance(value, bytes):
        return F.unhex(F.lit(value.hex()))
    return F.lit(value)
