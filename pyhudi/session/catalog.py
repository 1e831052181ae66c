"""The names of tables in the session's own catalog, by statements that every Spark understands.

A Hudi table is an entry with provider `hudi`, a location and properties, as in Hudi's jar: Spark's catalog stores it
(in memory, or in the session's Hive metastore), and PyHudi and the jar find each other's entries. Only the provider's
name identifies it, so creating or finding an entry needs no Hudi class on Spark's class path.

Spark 3.5 stores no entry whose provider has no class. There the provider is one of Spark's own that neither reads nor
writes tables, so that a session without PyHudi refuses the name; a property identifies the table.
Source: tried on Spark 3.5 and 4.3, classic and Connect; docs/decisions/0014-names-live-in-sparks-catalog.md.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.catalog import Table

from pyhudi.errors import ConfigError
from pyhudi.model.keys import META_COLUMNS
from pyhudi.session.catalog_entries import STAND_IN, EntryReader
from pyhudi.session.temp_views import spark_sql
from pyhudi.spark import capabilities
from pyhudi.sql.columns import columns_text, literal, quoted
from pyhudi.sql.session import CatalogEntry, TableName
from pyhudi.sql.table_options import MANAGED_KEY, PROVIDER_KEY
from pyhudi.storage.clock import SystemClock

__all__ = ["SparkCatalog", "catalog_of", "evict_names"]

# How long a table's catalog entry is cached: other processes change tables, too, but a request costs as much as a
# query. Whether a name means a table or a temporary view is looked up each time.
_REMEMBERED_S = 3.0
_SESSION_CATALOG = "spark_catalog"
_PLAIN = re.compile(r"\w+", re.ASCII)
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class _Place:
    """The place to look up a name. `is_qualified`: the name has a database, so it can't mean a temporary view."""

    name: TableName
    database: str
    table: str
    is_qualified: bool

    @property
    def key(self) -> tuple[str, str]:
        return self.database.lower(), self.table.lower()


class SparkCatalog:
    """The catalog of one session. Source: docs/decisions/0014-names-live-in-sparks-catalog.md."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._entries = EntryReader(spark)
        self._known: dict[tuple[str, str], tuple[float, CatalogEntry]] = {}  # tables, and views that last
        self._lock = threading.Lock()

    def find(self, name: TableName) -> CatalogEntry | None:
        return self.find_all([name])[name.parts]

    def find_all(self, names: Iterable[TableName]) -> dict[tuple[str, ...], CatalogEntry | None]:
        """The entries of these names, by the names' parts, with one request for each database."""
        entries: dict[tuple[str, ...], CatalogEntry | None] = {}
        unknown: dict[str, list[_Place]] = {}
        for name in names:
            place = self._place(name)
            entries[name.parts] = entry = None if place is None else self._cached_entry(place)
            if place is not None and entry is None:
                unknown.setdefault(place.database.lower(), []).append(place)
        for places in unknown.values():
            entries |= self._look_up(places)
        return entries

    def _place(self, name: TableName) -> _Place | None:
        """The place to look up a name; None for a name that no Hudi table can have."""
        parts = name.parts
        if len(parts) == 3 and parts[0].lower() == _SESSION_CATALOG:
            parts = parts[1:]
        if len(parts) > 2 or not all(_PLAIN.fullmatch(part) for part in parts):
            return None
        if len(parts) == 2:
            return _Place(name, parts[0], parts[1], is_qualified=True)
        return _Place(name, self._spark.catalog.currentDatabase(), parts[0], is_qualified=False)

    def _cached_entry(self, place: _Place) -> CatalogEntry | None:
        """The cached entry of a name, unless the name no longer exists or now means a temporary view."""
        with self._lock:
            at, entry = self._known.get(place.key, (-_REMEMBERED_S, None))
        if entry is None or _CLOCK.monotonic_s() - at >= _REMEMBERED_S:
            return None
        table = self._spark_table((place.database, place.table) if place.is_qualified else (place.table,))
        return None if table is None or table.isTemporary else replace(entry, name=place.name)

    def _spark_table(self, parts: tuple[str, ...]) -> Table | None:
        """Spark's table or view of a name, without its details; None if there is none."""
        try:
            return self._spark.catalog.getTable(quoted(*parts))
        except PySparkException:
            return None

    def evict_all(self) -> None:
        """Evict all names from the cache."""
        with self._lock:
            self._known.clear()

    def place_of(self, name: TableName) -> str:
        database = name.parts[-2] if len(name.parts) > 1 else self._spark.catalog.currentDatabase()
        folder = self._spark.catalog.getDatabase(database).locationUri
        return f"{folder.rstrip('/')}/{name.parts[-1].lower()}"

    def register(self, entry: CatalogEntry, columns: pa.Schema, partition_fields: Sequence[str]) -> None:
        names = columns.names
        # Spark requires partition columns to come last.
        ordered = [name for name in names if name not in partition_fields]
        ordered += [name for name in partition_fields if name in names]
        meta = [pa.field(name, pa.string()) for name in META_COLUMNS if name not in names]
        visible = pa.schema([*meta, *(columns.field(name) for name in ordered)])
        self._create(entry, columns_text(visible), [name for name in partition_fields if name in names])

    def _create(self, entry: CatalogEntry, columns: str, partition_fields: Sequence[str]) -> None:
        assert entry.location is not None
        properties = {**entry.properties, **({MANAGED_KEY: "true"} if entry.is_managed else {})}
        provider = "USING hudi"
        if not capabilities.PRESENT.has_data_sources:
            provider, properties[PROVIDER_KEY] = STAND_IN, "hudi"
        pairs = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
        self._run(
            f"CREATE TABLE {quoted(*entry.name.parts)} ({columns}) {provider}"
            + (f" PARTITIONED BY ({', '.join(map(quoted, partition_fields))})" if partition_fields else "")
            + f" LOCATION {literal(entry.location)}"
            + (f" COMMENT {literal(entry.comment)}" if entry.comment else "")
            + (f" TBLPROPERTIES ({pairs})" if pairs else "")
        )

    def update(self, entry: CatalogEntry, columns: pa.Schema, partition_fields: Sequence[str]) -> None:
        if entry.catalog_deletes:  # columns can't be updated: Spark changes none, and dropping the entry deletes files
            existing = self.find(entry.name)
            current = {} if existing is None else existing.properties
            changed = [(key, value) for key, value in entry.properties.items() if current.get(key) != value]
            pairs = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in changed)
            if pairs:
                self._run(f"ALTER TABLE {quoted(*entry.name.parts)} SET TBLPROPERTIES ({pairs})")
            return
        self.remove(entry.name)
        self.register(entry, columns, partition_fields)

    def remove(self, name: TableName) -> None:
        self._run(f"DROP TABLE IF EXISTS {quoted(*name.parts)}")

    def rename(self, name: TableName, new: TableName) -> None:
        if not capabilities.PRESENT.has_data_sources:
            self._recreate_as(name, new)
            return
        self._run(f"ALTER TABLE {quoted(*name.parts)} RENAME TO {quoted(*new.parts)}")

    def _recreate_as(self, name: TableName, new: TableName) -> None:
        """Rename by creating a new entry: Spark 3.5 would open the table to rename it."""
        entry = self.find(name)
        assert entry is not None, name
        columns = self._spark.catalog.listColumns(quoted(*name.parts))
        definitions = [
            f"{quoted(column.name)} {column.dataType}"
            + (f" COMMENT {literal(column.description)}" if column.description else "")
            for column in columns
        ]
        fields = [column.name for column in columns if column.isPartition]
        self._create(replace(entry, name=new), ", ".join(definitions), fields)
        self.remove(name)

    def _run(self, text: str) -> None:
        """Run a statement by Spark's original method, bypassing `enable`."""
        try:
            spark_sql(self._spark, text).collect()
        except PySparkException as error:
            raise ConfigError(f"Spark's catalog refused: {error}") from error
        except Exception as error:  # py4j's, which does not exist on Spark Connect
            if "ClassNotFoundException: org.apache.hudi" not in str(error):
                raise
            raise ConfigError(
                "Spark's catalog refused: this entry of Apache Hudi names classes of its jar, and the metastore's "
                f"client tries to load them. Run this in a session with Hudi's jar: {text:.300}"
            ) from error
        finally:
            self.evict_all()

    def _look_up(self, places: Sequence[_Place]) -> dict[tuple[str, ...], CatalogEntry | None]:
        """Read the entries of names in one database; cache those of tables and permanent views."""
        now = _CLOCK.monotonic_s()
        names = literal("|".join(sorted({place.table.lower() for place in places})))
        try:
            rows = spark_sql(self._spark, f"SHOW TABLE EXTENDED IN {quoted(places[0].database)} LIKE {names}").collect()
        except PySparkException:  # no such database, or an entry that Spark can't describe
            entries_by_place = [self._look_up([place]) for place in places] if len(places) > 1 else []
            return {parts: entry for one in entries_by_place for parts, entry in one.items()}
        rows_by_name = {(row["tableName"].lower(), bool(row["isTemporary"])): row for row in rows}
        entries: dict[tuple[str, ...], CatalogEntry | None] = {}
        for place in places:
            temporary = None if place.is_qualified else rows_by_name.get((place.table.lower(), True))
            lasting = rows_by_name.get((place.table.lower(), False))
            if temporary is not None:
                entries[place.name.parts] = self._entries.read(place.name, temporary)
            elif lasting is not None:
                entries[place.name.parts] = entry = self._entries.read(place.name, lasting)
                with self._lock:
                    self._known[place.key] = (now, entry)
        return entries


_CATALOGS: WeakKeyDictionary[SparkSession, SparkCatalog] = WeakKeyDictionary()
_CATALOGS_LOCK = threading.Lock()


def catalog_of(spark: SparkSession) -> SparkCatalog:
    """The only catalog of a session, which caches names for a short time."""
    with _CATALOGS_LOCK:
        catalog = _CATALOGS.get(spark)
        if catalog is None:
            catalog = _CATALOGS[spark] = SparkCatalog(spark)
        return catalog


def evict_names(spark: SparkSession) -> None:
    """Evict the names of this session from the cache, as a statement may have changed them."""
    catalog_of(spark).evict_all()
