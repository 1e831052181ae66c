"""The evaluation of SQL text on rows: by Arrow if its kernels have Spark's meaning, by DuckDB, or by the active
session.

The text is typed first (`text.py`); a text whose meaning is not known is refused. If DuckDB is not installed, an active
session evaluates what Arrow can't. DuckDB and Spark are above this floor, so they are named by text.

`passes` returns the answers of a condition for rows; `condition_expression` returns an Arrow expression with the same
answers, for callers that combine conditions. Arrow identifies a function by the types of its arguments. The condition
is an argument, too, so that few functions are registered: Arrow never unregisters them.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta, timezone, tzinfo
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError, MissingLibrary
from pyhudi.expressions.arrow import arrow_expression
from pyhudi.expressions.duckdb import duckdb_expression
from pyhudi.expressions.functions.times import ZONED
from pyhudi.expressions.limits import check_expressions
from pyhudi.expressions.predicates import Constant, Predicate, SqlText
from pyhudi.expressions.statistics.implied import implied_predicate
from pyhudi.expressions.text import typed_value
from pyhudi.expressions.tree import Expression, TypedCall, nodes_of
from pyhudi.expressions.types import MOMENT
from pyhudi.model.sql_text import with_deep_stack
from pyhudi.redaction import brief
from pyhudi.registry import Registry

__all__ = [
    "ENGINES",
    "arrow_of",
    "condition_expression",
    "depends_on_zone",
    "evaluated",
    "implied_by",
    "passes",
    "projected",
    "zone_name",
]

# DuckDB takes its own SQL, Spark the user's; both take the rows, and the zone of times without one.
ENGINES: Registry[Callable[[str, pa.Table, str], pa.ChunkedArray]] = Registry(
    "engine of SQL values",
    {"DUCKDB": "pyhudi.sql.duckdb_values:evaluate", "SPARK": "pyhudi.spark.sql_values:evaluate"},
)
_names: dict[tuple[pa.DataType, ...], str] = {}
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Way:
    """The plan for evaluating a text: by `arrow`, else by DuckDB's text, whose values have the same type.

    `value`: the typed expression.
    """

    value: Expression
    arrow: pc.Expression | None
    duckdb: str


@lru_cache(maxsize=100)
def _way(text: str, schema: pa.Schema, zone: str) -> _Way:
    value = typed_value(text, schema, zone)
    arrow = arrow_of(value, schema, zone)
    words = "" if arrow is not None else with_deep_stack(lambda: duckdb_expression(value))
    return _Way(value, arrow, words)


def evaluated(text: str, rows: pa.Table, zone: str = "UTC") -> pa.ChunkedArray:
    """Evaluate a Spark expression for these rows, in their order. `zone`: that of times without a zone.

    Raises: ConfigError for a text whose meaning is not known, or that can't be computed for these rows; MissingLibrary
        if only DuckDB could compute it.
    """
    try:
        way = _way(text, rows.schema, zone)
    except ConfigError as unknown:
        if "pyspark" in sys.modules and not _has_duckdb():
            return ENGINES.load("SPARK")(text, rows, zone)
        raise ConfigError(f"{text!r:.200}: {unknown}") from unknown
    if way.arrow is not None:
        return projected(way.arrow, rows, f"{text!r:.200}")
    try:
        values = ENGINES.load("DUCKDB")(way.duckdb, rows, zone)
    except MissingLibrary as error:
        if "pyspark" not in sys.modules:
            raise MissingLibrary(
                f"{brief(text)} is beyond what PyHudi evaluates itself: comparisons, IN, LIKE, BETWEEN, IS NULL, CASE, "
                "arithmetic and some functions of columns. DuckDB evaluates it, and is not installed: pip install "
                "'pyhudi[sql]'. So does an active Spark session."
            ) from error
        return ENGINES.load("SPARK")(text, rows, zone)
    except ConfigError as error:
        raise ConfigError(f"DuckDB can't evaluate {text!r:.200}: {error}") from error
    kind = way.value.type
    return values if values.type == kind or pa.types.is_null(values.type) else values.cast(kind)


def _has_duckdb() -> bool:
    try:
        ENGINES.load("DUCKDB")("1", pa.table({"row": [1]}), "UTC")
    except MissingLibrary:
        return False
    return True


def depends_on_zone(value: Expression) -> bool:
    """True if the value may depend on the time zone."""
    return any(
        node.type == MOMENT or (isinstance(node, TypedCall) and node.form.name in ZONED) for node in nodes_of(value)
    )


def arrow_of(value: Expression, schema: pa.Schema, zone: str = "UTC") -> pc.Expression | None:
    """Convert an expression to Arrow's if Arrow computes it with Spark's type, else None."""
    if zone != "UTC" and depends_on_zone(value):
        return None  # Arrow would use UTC for constants and casts of moments
    expression = with_deep_stack(lambda: arrow_expression(value))
    if expression is None:
        return None
    try:
        check_expressions([expression], "The expression")
        computed = projected(expression, schema.empty_table(), "The expression")
    except ConfigError:
        return None
    return expression if computed.type == value.type else None


def projected(expression: pc.Expression, rows: pa.Table, what: str) -> pa.ChunkedArray:
    """Compute an Arrow expression for each row. Raises ConfigError, naming `what`, if Arrow can't."""
    import pyarrow.acero as acero  # loads pyarrow.dataset, which a small write does not need

    # Like Table.filter, but without threads, whose start takes longer than this.
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(rows))
    values = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["value"]))
    try:
        return acero.Declaration.from_sequence([source, values]).to_table(use_threads=False).column(0)
    except (pa.ArrowException, ValueError, KeyError) as error:
        why = str(error).replace("divide by zero", "Division by zero")
        raise ConfigError(f"{what} can't be computed: {why}. Columns: {', '.join(rows.column_names)}.") from error


def passes(condition: SqlText, rows: pa.Table) -> pa.BooleanArray:
    """Tell for each row if a bound condition is true; null if that is unknown.

    Raises: ConfigError for a condition that no engine can evaluate; MissingLibrary if there is no engine.
    """
    columns = rows.select(condition.columns or rows.schema.names[:1])
    try:
        values = evaluated(condition.text, columns, condition.zone)
    except (ConfigError, MissingLibrary) as error:
        raise type(error)(f"where: {error}") from error
    if pa.types.is_null(values.type):
        values = values.cast(pa.bool_())
    if not pa.types.is_boolean(values.type):
        raise ConfigError(f"where: {brief(condition.text)} is of type {values.type}; expected true or false.")
    answers = values.combine_chunks()
    assert isinstance(answers, pa.BooleanArray)
    return answers


def implied_by(condition: SqlText, schema: pa.Schema) -> Predicate:
    """The predicate on single columns that a bound condition implies: see `implied_predicate`."""
    try:
        value = _way(condition.text, _schema_of(condition, schema), condition.zone).value
    except ConfigError:
        return Constant(True)  # only Spark knows its meaning
    return with_deep_stack(lambda: implied_predicate(value))


def _schema_of(condition: SqlText, schema: pa.Schema) -> pa.Schema:
    return pa.schema([schema.field(name) for name in condition.columns or tuple(schema.names[:1])])


def condition_expression(condition: SqlText, schema: pa.Schema) -> pc.Expression:
    """Convert a bound condition to an Arrow expression."""
    names = condition.columns or tuple(schema.names[:1])
    try:
        arrow = _way(condition.text, _schema_of(condition, schema), condition.zone).arrow
    except ConfigError:
        arrow = None  # only Spark knows its meaning
    if arrow is not None:
        return arrow
    function = _registered(tuple(schema.field(name).type for name in names))
    key = json.dumps([condition.text, names, condition.zone])
    # Arrow's internal way to call a registered function; the stubs lack it.
    expression: pc.Expression = pc.Expression._call(  # type: ignore[attr-defined]
        function, [pc.scalar(key), *map(pc.field, names)]
    )
    return expression


def _registered(kinds: tuple[pa.DataType, ...]) -> str:
    with _lock:
        if kinds not in _names:
            name = f"pyhudi_sql_{len(_names)}"
            arguments = {"key": pa.string(), **{f"column_{at}": kind for at, kind in enumerate(kinds)}}
            doc = {"summary": "A condition in SQL", "description": "The key says which, and of which columns."}
            pc.register_scalar_function(_computed, name, doc, arguments, pa.bool_())
            _names[kinds] = name
        return _names[kinds]


def _computed(context: pc.UdfContext, key: pa.Scalar, *columns: pa.Array | pa.Scalar) -> pa.Array:
    text, names, zone = json.loads(key.as_py())
    arrays = [pa.repeat(c, context.batch_length) if isinstance(c, pa.Scalar) else c for c in columns]
    if context.batch_length == 0:
        return pa.array([], pa.bool_())
    return passes(SqlText(text, tuple(names), zone), pa.Table.from_arrays(arrays, names=names))


def zone_name(zone: tzinfo | None) -> str:
    """The zone's name as engines know it; UTC for None. Raises ConfigError for an offset that is not in whole hours."""
    name = getattr(zone, "key", None)
    if name is not None:
        return str(name)
    offset = (timezone.utc if zone is None else zone).utcoffset(None) or timedelta()
    hours, seconds = divmod(int(offset.total_seconds()), 3600)
    if seconds:
        raise ConfigError(
            f"where: this condition is evaluated in a zone with a name, or in one of whole hours; found {zone}."
        )
    return f"Etc/GMT{-hours:+d}" if hours else "UTC"
