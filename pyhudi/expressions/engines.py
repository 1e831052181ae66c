"""Conditions that the predicate tree has no form of, evaluated by an engine of SQL: DuckDB, else the active session.

The engines are above this floor, so they are named by text. `passes` gives the answers for rows, `condition_expression`
an Arrow expression that asks the engine, for the places that combine conditions. Arrow knows a function by the types of
its arguments; the condition is an argument, too, so that few functions are registered, which Arrow never forgets.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from datetime import timedelta, timezone, tzinfo

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError, MissingLibrary
from pyhudi.expressions.predicates import SqlText
from pyhudi.registry import Registry
from pyhudi.shown_text import brief

__all__ = ["ENGINES", "condition_expression", "passes", "zone_name"]

ENGINES: Registry[Callable[[str, pa.Table, str], pa.ChunkedArray]] = Registry(
    "engine of SQL values",
    {"DUCKDB": "pyhudi.sql.duckdb_values:evaluate", "SPARK": "pyhudi.spark.sql_values:evaluate"},
)
_names: dict[tuple[pa.DataType, ...], str] = {}
_lock = threading.Lock()


def passes(condition: SqlText, rows: pa.Table) -> pa.BooleanArray:
    """For each row, whether a bound condition is true; null where that is unknown.

    Raises: ConfigError for what no engine can evaluate; MissingLibrary where there is no engine.
    """
    named = rows.select(condition.columns or rows.schema.names[:1])
    values = _evaluated(condition, named)
    if pa.types.is_null(values.type):
        values = values.cast(pa.bool_())
    if not pa.types.is_boolean(values.type):
        raise ConfigError(f"where: {brief(condition.text)} is of type {values.type}; expected true or false.")
    answers = values.combine_chunks()
    assert isinstance(answers, pa.BooleanArray)
    return answers


def _evaluated(condition: SqlText, rows: pa.Table) -> pa.ChunkedArray:
    try:
        return ENGINES.load("DUCKDB")(condition.text, rows, condition.zone)
    except MissingLibrary as error:
        if "pyspark" in sys.modules:
            return ENGINES.load("SPARK")(condition.text, rows, condition.zone)
        raise MissingLibrary(
            f"where: {brief(condition.text)} is beyond the filters that PyHudi evaluates itself: comparisons, IN, "
            "LIKE, BETWEEN, IS NULL and some functions of a column. DuckDB evaluates it, and is not installed: "
            "pip install 'pyhudi[sql]'. So does an active Spark session."
        ) from error
    except ConfigError as error:
        raise ConfigError(f"where: {error}") from error


def condition_expression(condition: SqlText, schema: pa.Schema) -> pc.Expression:
    """A bound condition as an Arrow expression."""
    names = condition.columns or tuple(schema.names[:1])
    function = _registered(tuple(schema.field(name).type for name in names))
    key = json.dumps([condition.text, names, condition.zone])
    # Arrow's own way to call a function that is not among its kernels; the stubs do not know it.
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
    """The zone by a name that engines know; UTC for None. Raises ConfigError for an offset of parts of hours."""
    name = getattr(zone, "key", None)
    if name is not None:
        return str(name)
    offset = (timezone.utc if zone is None else zone).utcoffset(None) or timedelta()
    hours, rest = divmod(int(offset.total_seconds()), 3600)
    if rest:
        raise ConfigError(
            f"where: this condition is evaluated in a zone with a name, or in one of whole hours; found {zone}."
        )
    return f"Etc/GMT{-hours:+d}" if hours else "UTC"
