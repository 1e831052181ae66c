"""The reader of entries in the session's catalog, which no text in an entry can forge.

SHOW TABLE EXTENDED describes an entry as one text; in it, a comment or property value may imitate lines and pairs.
Only the part before the comment is used: whether the entry is a view, and its provider. Everything else is read as rows
or JSON.

Spark 4 asks the provider's class about a table, but a Python class has no properties. So entries are described in a
second session, in which tables with Python formats count as Spark's own; the user's session and its settings are not
changed.
Source: tried on Spark 3.5, 4.0 and 4.3, classic and Connect.
"""

from __future__ import annotations

import atexit
import copy
import json
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import cast

from pyspark.sql import Row, SparkSession

from pyhudi.errors import ConfigError
from pyhudi.session.temp_views import spark_sql
from pyhudi.spark import capabilities
from pyhudi.sql.columns import quoted
from pyhudi.sql.session import CatalogEntry, TableName
from pyhudi.sql.table_options import MANAGED_KEY, PROVIDER_KEY

__all__ = ["STAND_IN", "EntryReader"]

# Only a stream would connect to the host, which can't exist (RFC 2606).
STAND_IN = "USING socket OPTIONS (host 'a-hudi-table-is-read-by-pyhudi.invalid', port '1')"
_STAND_IN_PROPERTIES = frozenset({"host", "port"})
# Spark shows this for values that seem secret, as for keys with `url`: hoodie.datasource.write.partitionpath.urlencode.
# The table's own properties have the real values.
_NOT_SHOWN = "*********(redacted)"
_HEAD = re.compile(r"^(Type|Provider): (.*)$", re.MULTILINE)
_TEXT_OF_OTHERS = re.compile(r"^(?:Comment|View Text|Table Properties|Location): ", re.MULTILINE)
_HAS_COMMENT = re.compile(r"\A(?:(?!View Text: ).*\n)*?Comment: ")
_VIEW_TEXT = re.compile(
    r"^View Text: (.*?)\n(?:View Original Text|View Schema Mode|View Catalog and Namespace|Schema): ?",
    re.MULTILINE | re.DOTALL,
)
_READS_BASE_FILES = "hoodie.query.as.ro.table"  # a storage property that Hudi's sync to a metastore sets
_OF_SPARK = frozenset({"owner", "provider", "location", "external"})
_DETAILS = "# Detailed Table Information"
_V1_SOURCES = "spark.sql.sources.useV1SourceList"
_OF_PYTHON = "org.apache.spark.sql.execution.datasources.v2.python.pythondatasourcev2"


@dataclass(frozen=True, slots=True)
class _Details:
    location: str | None = None
    comment: str | None = None
    view_text: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    reads_base_files: bool = False


class EntryReader:
    """Reads entries of one session's catalog."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._second: SparkSession | None = None
        self._lock = threading.Lock()

    def read(self, name: TableName, row: Row) -> CatalogEntry:
        """Read the entry of a name.

        Args: row: the answer of SHOW TABLE EXTENDED.
        Raises: ConfigError if Spark can't describe a Hudi table.
        """
        information = row["information"]
        text_of_others = _TEXT_OF_OTHERS.search(information)
        head = dict(_HEAD.findall(information[: text_of_others.start()] if text_of_others else information))
        if head.get("Type") == "VIEW":
            return CatalogEntry(name, view_text=self._view_text(name, row))
        provider = head.get("Provider", "").lower()
        is_stand_in = not capabilities.PRESENT.has_data_sources and provider == STAND_IN.split()[1]
        if provider != "hudi" and not is_stand_in:
            return CatalogEntry(name)
        details = self._details(name, row)
        properties = dict(details.properties)
        is_stand_in = properties.pop(PROVIDER_KEY, "") == "hudi"
        hidden = _STAND_IN_PROPERTIES if is_stand_in else frozenset()
        catalog_deletes = head.get("Type") == "MANAGED"
        is_managed = properties.pop(MANAGED_KEY, "") == "true" or catalog_deletes
        return CatalogEntry(
            name,
            is_hudi=is_stand_in or provider == "hudi",
            location=details.location,
            properties={
                key: value
                for key, value in properties.items()
                if key.lower() not in _OF_SPARK | hidden and not key.startswith("option.") and value != _NOT_SHOWN
            },
            comment=details.comment,
            is_managed=is_managed,
            catalog_deletes=catalog_deletes,
            is_read_optimized=details.reads_base_files,
        )

    def _view_text(self, name: TableName, row: Row) -> str | None:
        """The query of a view. Without a comment (temporary views have none) it is the first text from the user."""
        information = row["information"]
        if not row["isTemporary"] and _HAS_COMMENT.match(information):
            return self._described(self._spark, name, quoted(row[0], row["tableName"])).view_text
        text = _VIEW_TEXT.search(information)
        return text[1] if text else None

    def _details(self, name: TableName, row: Row) -> _Details:
        table = quoted("spark_catalog", row[0], row["tableName"])
        if not capabilities.PRESENT.has_data_sources:
            return self._described(self._spark, name, table)
        with self._lock:
            try:
                return _described_as_json(self._second_session(), table)
            except Exception:  # a server drops idle sessions; py4j's errors are not PySparkExceptions
                self._second = None
            with suppress(Exception):
                return _described_as_json(self._second_session(), table)
        # The second session does not find a data source that was registered only with the user's session.
        before = self._spark.conf.get(_V1_SOURCES) or ""
        try:
            self._spark.conf.set(_V1_SOURCES, f"{before},{_OF_PYTHON}")
            return _described_as_json(self._spark, table)
        except Exception as error:
            raise ConfigError(f"Spark's catalog can't describe the Hudi table {name}: {error}") from error
        finally:
            self._spark.conf.set(_V1_SOURCES, before)

    def _described(self, spark: SparkSession, name: TableName, table: str) -> _Details:
        """Read an entry from the rows of DESCRIBE and SHOW TBLPROPERTIES."""
        try:
            rows = spark_sql(spark, f"DESCRIBE TABLE EXTENDED {table}").collect()
            listed = spark_sql(spark, f"SHOW TBLPROPERTIES {table}").collect()
        except Exception as error:
            raise ConfigError(f"Spark's catalog can't describe {name}: {error}") from error
        # Columns come first, and one of them may have the heading's name.
        first = max((number for number, row in enumerate(rows) if row[0] == _DETAILS), default=len(rows)) + 1
        fields = {row[0]: row[1] for row in rows[first:]}
        return _Details(
            location=fields.get("Location"),
            comment=fields.get("Comment"),
            view_text=fields.get("View Text"),
            properties={row[0]: row[1] for row in listed},
            reads_base_files=f"{_READS_BASE_FILES}=true" in fields.get("Storage Properties", "")[1:-1].split(", "),
        )

    def _second_session(self) -> SparkSession:
        """The second session, which describes entries. It is created on first use."""
        if self._second is None:
            session = _new_session(self._spark)
            _without_calls_at_exit(session)
            with suppress(Exception):  # with Hudi's jar the format already exists
                _register_format(session)
            session.conf.set(_V1_SOURCES, f"{session.conf.get(_V1_SOURCES)},{_OF_PYTHON}")
            self._second = session
        return self._second


def _described_as_json(spark: SparkSession, table: str) -> _Details:
    row = spark_sql(spark, f"DESCRIBE TABLE EXTENDED {table} AS JSON").collect()[0]
    fields = json.loads(row[0])
    return _Details(
        location=fields.get("location"),
        comment=fields.get("comment"),
        properties=fields.get("table_properties", {}),
        reads_base_files=fields.get("storage_properties", {}).get(_READS_BASE_FILES) == "true",
    )


def _new_session(spark: SparkSession) -> SparkSession:
    """Create another session with the same catalog."""
    if not type(spark).__module__.startswith("pyspark.sql.connect"):
        return spark.newSession()
    for make in ("newSession", "cloneSession"):  # since 4.3, since 4.1
        factory = getattr(spark, make, None)
        if factory is not None:
            return cast("SparkSession", factory())
    # 4.0 has the building blocks, but no such call.
    connection = copy.copy(spark.client._builder)  # type: ignore[attr-defined]
    connection._params = {key: value for key, value in connection._params.items() if key != "session_id"}
    return type(spark)(connection)  # type: ignore[call-arg, arg-type]


def _without_calls_at_exit(spark: SparkSession) -> None:
    """Prevent a session on Connect from calling its server when Python exits: `stop` of the user's session may have
    ended that server, and PySpark would retry for ten minutes. The server drops unused sessions.
    """
    client = getattr(spark, "client", None)
    for name in ("_on_exit", "_cleanup_ml_cache"):  # since 4.2; before
        call = getattr(client, name, None)
        if call is not None:
            atexit.unregister(call)


def _register_format(spark: SparkSession) -> None:
    """Register a dummy format `hudi` with a session, for a Spark whose Python lacks PyHudi. Nothing ever opens it."""
    from pyspark.sql.datasource import DataSource

    class DummySource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "hudi"

    spark.dataSource.register(DummySource)
