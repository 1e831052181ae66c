"""SQL values with Spark's meaning: `n + 1`, `upper(city)`, `CASE WHEN fare > 9 THEN 'high' ELSE 'low' END`.

`sql_value` converts a text to the first of these that expresses it exactly:

    Literal        a constant
    Expression     an Arrow expression: columns, arithmetic, CASE, COALESCE, conditions, some functions and casts
    EngineValue    everything else: DuckDB, if it is installed, or Spark evaluates the text, batch by batch

The text may name columns, but have no subqueries. Names match exactly, or in any case if only one column fits. Sums
that overflow and divisions by zero are errors, as in Spark's ANSI mode.

Source: Spark's SQL reference, "Arithmetic operations", "ANSI Compliance".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.expressions.columns import resolve
from pyhudi.expressions.engines import arrow_of, depends_on_zone, evaluated, zone_name
from pyhudi.expressions.limits import MAX_WHERE_CHARS
from pyhudi.expressions.predicates import Column
from pyhudi.expressions.text import typed_value
from pyhudi.expressions.where_text import negative, number_of
from pyhudi.model.sql_text import MisreadSql, query_of
from pyhudi.redaction import brief, is_text
from pyhudi.storage.clock import Clock, SystemClock

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = [
    "EngineValue",
    "Literal",
    "SqlValue",
    "UnknownName",
    "path_of",
    "sql_value",
    "tree_of",
]

_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant as a Python value."""

    value: object


@dataclass(frozen=True, slots=True)
class EngineValue:
    """SQL text that DuckDB evaluates. `what`: begins error messages; `zone`: that of times without a zone."""

    text: str
    what: str
    zone: str = "UTC"

    def __call__(self, rows: pa.Table) -> pa.ChunkedArray:
        """The value for each row. Raises ConfigError if DuckDB can't evaluate the text, or is not installed."""
        try:
            return evaluated(self.text, rows, self.zone)
        except ConfigError as error:
            raise ConfigError(f"{self.what}: {error}") from error


SqlValue: TypeAlias = Literal | pc.Expression | EngineValue


class UnknownName(ConfigError):
    """A text names a column that does not exist."""


def sql_value(text: str, schema: pa.Schema, what: str, clock: Clock = _CLOCK, zone: tzinfo | None = None) -> SqlValue:
    """Read a text as a value for rows with these columns.

    Args:    what: begins error messages, like "set= gives the column 'n'". zone: that of times without one; None: UTC.
    Raises:  ConfigError for a text that is not an SQL expression; UnknownName for an unknown column.
    """
    tree = tree_of(text, what)
    literal = _literal(tree)
    if literal is not None:
        return literal
    _check(tree, schema, text, what)
    now = datetime.fromtimestamp(clock.now_ms() / 1000, zone or timezone.utc)
    try:
        typed = typed_value(text, schema, "UTC", now)
        name = "UTC"
        if depends_on_zone(typed):
            name = zone_name(zone)
            typed = typed_value(text, schema, name, now)
    except ConfigError as error:
        raise ConfigError(f"{what}: {brief(text)}: {error}") from None
    expression = arrow_of(typed, schema, name)
    return EngineValue(text, what, name) if expression is None else expression


def tree_of(text: str, what: str) -> exp.Expr:
    """Parse one expression. Raises ConfigError for any other text."""
    from sqlglot import exp

    if len(text) > MAX_WHERE_CHARS:
        raise ConfigError(f"{what}: a text of {len(text)} characters; expected at most {MAX_WHERE_CHARS}.")
    if not is_text(text):
        raise ConfigError(f"{what}: {brief(text)} has half a character in it, which no file can hold.")
    try:
        query = query_of(f"SELECT {text}\n")
    except MisreadSql as error:
        raise ConfigError(f"{what}: {brief(text)} is no SQL expression: {error.what}.") from None
    is_plain = isinstance(query, exp.Select) and len(query.expressions) == 1 and set(_parts(query)) <= {"expressions"}
    tree = query.expressions[0] if is_plain and query is not None else None
    if tree is None or isinstance(tree, exp.Alias | exp.Star):
        raise ConfigError(f"{what}: {brief(text)} is no SQL expression.")
    inner = tree.find(exp.Query, exp.AggFunc, exp.Window, exp.Placeholder, exp.Parameter)
    if inner is not None:
        raise ConfigError(
            f"{what}: {brief(text)} holds {brief(inner.sql('spark'))}; expected an expression of one row's columns."
        )
    unnested: exp.Expr = tree.unnest()
    return unnested


def _parts(node: exp.Expr) -> list[str]:
    return [name for name, value in node.args.items() if value not in (None, [], False)]


def _check(tree: exp.Expr, schema: pa.Schema, text: str, what: str) -> None:
    """Raise UnknownName for a name that is not a column."""
    from sqlglot import exp

    bound = {name.name for function in tree.find_all(exp.Lambda) for name in function.expressions}
    for column in tree.find_all(exp.Column):
        parts = [part.name for part in column.parts]
        if parts[0] not in bound and path_of(parts, schema) is None:
            raise UnknownName(
                f"{what}: {brief(text)} names the column {brief('.'.join(parts))}, which is not there. Columns: "
                f"{', '.join(schema.names)}."
            )


def path_of(parts: Sequence[str], schema: pa.Schema) -> tuple[str, ...] | None:
    """The path of a column, or of a field of one, by its name; None if unknown."""
    try:
        return resolve(Column(tuple(parts)), schema)[0]
    except ConfigError:
        return None


def _literal(tree: exp.Expr) -> Literal | None:
    """The constant that a tree consists of, None for any other tree."""
    from sqlglot import exp

    match tree:
        case exp.Literal():
            return Literal(tree.name if tree.is_string else number_of(tree.name))
        case exp.Boolean():
            return Literal(bool(tree.this))
        case exp.Null():
            return Literal(None)
        case exp.Neg() if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
            return Literal(negative(number_of(tree.this.name)))
        case exp.Cast() if isinstance(tree.this, exp.Literal) and tree.this.is_string:
            if tree.to.is_type("date", "timestamp", "timestamptz", "timestampntz"):
                return Literal(tree.this.name)
    return None
