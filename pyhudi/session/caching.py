"""CACHE TABLE, UNCACHE TABLE and `spark.catalog.cacheTable` of Hudi tables.

    CACHE [LAZY] TABLE name [OPTIONS ('storageLevel' = '…')] [AS query]        UNCACHE TABLE [IF EXISTS] name

The table's current state becomes a temporary view, which Spark caches. Queries read the view as long as the table has
the same commits, so that cached rows are never returned instead of newer ones. The view stays in memory until UNCACHE
TABLE, or the next CACHE TABLE. Persisting the table's frame would not be enough: every query by name creates and drops
a view of it, and Spark evicts a plan from its cache when a view with this plan is dropped.
Source: Spark's SQL reference, "CACHE TABLE"; tried on Spark 4.3, classic and Connect.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql.catalog import Catalog

from pyhudi.errors import ConfigError
from pyhudi.model.timeline import Timeline
from pyhudi.session.temp_views import original_method, spark_sql
from pyhudi.sql.columns import quoted
from pyhudi.sql.session import NamedTable, SqlSession, TableName
from pyhudi.sql.tokens import Reader, tokens_of
from pyhudi.storage.clock import SystemClock

__all__ = ["CATALOG_CALLS", "cache_statement", "cached_view", "catalog_call"]

_CLOCK = SystemClock()
CATALOG_CALLS = ("cacheTable", "uncacheTable", "isCached")


@dataclass(frozen=True, slots=True)
class _Cached:
    """A cached table. `view`: its temporary view; `commits`: the table's commits when it was cached."""

    view: str
    commits: Timeline


_cached: WeakKeyDictionary[SparkSession, dict[tuple[str, bool], _Cached]] = WeakKeyDictionary()
_lock = threading.Lock()


def cached_view(spark: SparkSession, table: NamedTable) -> str | None:
    """The view with the table's current rows, if they are cached."""
    with _lock:
        cached = _cached.get(spark, {}).get(_key(table))
    return None if cached is None or cached.commits != table.table.state().timeline.commits() else cached.view


def cache_statement(spark: SparkSession, session: SqlSession, text: str, reads_ours: Callable[[str], bool]) -> bool:
    """Run a CACHE TABLE or UNCACHE TABLE of a Hudi table; False if Spark has to run the statement.

    Args:   reads_ours: tells if the text of a query reads Hudi tables.
    Raises: TableNotFound, ConfigError.
    """
    try:
        reader = Reader(text, tokens_of(text.rstrip().rstrip(";")))
        is_uncache = reader.accept("UNCACHE TABLE")
        if is_uncache:
            reader.accept("IF EXISTS")
        else:
            reader.expect("CACHE")
            is_lazy = reader.accept("LAZY")
            reader.expect("TABLE")
        name = reader.table_name()
        start = reader.at
        if reader.accept("OPTIONS"):
            reader.properties()
        options = reader.cut(start, reader.at) if reader.at > start else ""
        query = reader.words() if not is_uncache and reader.accept("AS") else None
        if query is None:
            reader.expect_end()
    except ConfigError:  # Spark reports the error
        return False
    if is_uncache:
        table = session.find_table(name)
        return table is not None and _evict(spark, table)
    lazy = "LAZY " if is_lazy else ""

    def cache(view: str) -> None:
        spark_sql(spark, f"CACHE {lazy}TABLE {quoted(view)} {options}").collect()

    if query is not None:
        return reads_ours(query) and _cache_query(spark, name, query, cache)
    entry = session.catalog.find(name) if name.path is None else None
    if entry is not None and entry.view_text is not None and reads_ours(entry.view_text):
        raise ConfigError(
            f"CACHE TABLE {name}: a view that reads Hudi tables is not cached by its name. CACHE TABLE other AS "
            f"SELECT * FROM {name} caches its rows."
        )
    table = session.find_table(name)
    return table is not None and _cache(spark, table, cache)


def catalog_call(call: str, catalog: Catalog, table: NamedTable) -> Callable[..., object]:
    """Return the replacement of a cache method of `spark.catalog` for a Hudi table. `call`: one of CATALOG_CALLS."""
    spark, original = catalog._sparkSession, original_method(catalog, call)

    def called(*more: object) -> object:
        if call == "cacheTable":
            _cache(spark, table, lambda view: original(catalog, view, *more))
            return None
        if call == "uncacheTable":
            _evict(spark, table)
            return None
        return cached_view(spark, table) is not None

    return called


def _cache(spark: SparkSession, table: NamedTable, cache: Callable[[str], object]) -> bool:
    """Cache a table's rows with a call to Spark."""
    view = f"pyhudi_cached_{_CLOCK.new_uuid().replace('-', '')}"
    query_type = "read_optimized" if table.is_read_optimized else None
    table.table.scan(query_type=query_type).to_spark(spark=spark).createOrReplaceTempView(view)
    try:
        cache(view)
    except BaseException:
        spark.catalog.dropTempView(view)
        raise
    _evict(spark, table)
    with _lock:
        _cached.setdefault(spark, {})[_key(table)] = _Cached(view, table.table.state().timeline.commits())
    return True


def _cache_query(spark: SparkSession, name: TableName, query: str, cache: Callable[[str], object]) -> bool:
    """Cache the rows of a query as a temporary view; False if no view can have the name."""
    if len(name.parts) > 1:
        return False
    view = name.parts[0]
    spark.sql(query).createTempView(view)
    try:
        cache(view)
    except BaseException:
        spark.catalog.dropTempView(view)
        raise
    return True


def _evict(spark: SparkSession, table: NamedTable) -> bool:
    """Evict a table's rows from the cache, if they are cached."""
    with _lock:
        cached = _cached.get(spark, {}).pop(_key(table), None)
    if cached is not None:
        with suppress(Exception):  # the session may have been stopped
            spark.catalog.dropTempView(cached.view)  # which evicts its rows
    return True


def _key(table: NamedTable) -> tuple[str, bool]:
    return table.table.state().storage.root.rstrip("/"), table.is_read_optimized
