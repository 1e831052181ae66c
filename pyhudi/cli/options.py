"""The arguments of every command: the place of the table, and the form of the answer."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict

from pyhudi.cli.command import arg, pairs_of
from pyhudi.errors import ConfigError, TableNotFound
from pyhudi.storage.waiting import TIMEOUT

if TYPE_CHECKING:
    from pyhudi import HudiTable
    from pyhudi.meta_client import MetaClient
    from pyhudi.spark.names import SparkSession

__all__ = ["COMMON_ARGUMENTS", "SPARKS_CATALOG", "Common"]

SPARKS_CATALOG = "spark_catalog"
COMMON_ARGUMENTS = (
    arg("--catalog", meaning="The catalog of table names; TABLE is then a name. A folder or URI: `sales.rides` is "
        "its subfolder sales/rides. thrift://HOST:PORT: a Hive metastore. spark_catalog, with --spark: the "
        "session's."),
    arg("--storage-option", meaning="KEY=VALUE: a Hadoop key for the store. Can be repeated.",
        action="append"),
    arg("--timeout", meaning="Seconds to wait for a store that does not answer.", type=float),
    arg("--option", meaning="KEY=VALUE: an option of Hudi's, see docs/options.md. Can be repeated.",
        action="append"),
    arg("--json", meaning="The answer as JSON.", action="store_true"),
    arg("--csv", meaning="The answer as CSV.", action="store_true"),
    arg("--spark", meaning="Work with a Spark session: its master, such as `local[4]`, or a server of Spark Connect, "
        'such as `sc://host:15002`; "": as the environment sets it, including SPARK_REMOTE.'),
    arg("--debug", meaning="Show where an error comes from.", action="store_true"),
)  # fmt: skip


class Settings(TypedDict):
    """Arguments of calls that take a path."""

    storage_options: dict[str, str]
    options: dict[str, str]


@dataclass(frozen=True)
class Common:
    """The values of `COMMON_ARGUMENTS`."""

    catalog: str | None = None
    storage_option: list[str] | None = None
    timeout: float | None = None
    option: list[str] | None = None
    json: bool = False
    csv: bool = False
    spark: str | None = None
    debug: bool = False

    @property
    def form(self) -> Literal["text", "json", "csv"]:
        """The form of the answer. Raises ConfigError for two forms at once."""
        if self.json and self.csv:
            raise ConfigError("--json and --csv are two forms of the answer; give one of them.")
        return "json" if self.json else "csv" if self.csv else "text"

    @property
    def storage_options(self) -> dict[str, str]:
        """`--storage-option`, by key, and `--timeout`."""
        pairs = pairs_of("--storage-option", self.storage_option)
        return pairs if self.timeout is None else {**pairs, TIMEOUT: f"{self.timeout:g}"}

    @property
    def options(self) -> dict[str, str]:
        """`--option`, by key."""
        return pairs_of("--option", self.option)

    @property
    def settings(self) -> Settings:
        """Options and storage options as arguments of a call."""
        return {"storage_options": self.storage_options, "options": self.options}

    def path(self, table: str) -> str:
        """The path of a table: as typed, or the folder of this name in the catalog.

        Raises ConfigError for a path instead of a name of the catalog.
        """
        if self.catalog is None:
            return table
        if "/" in table or "\\" in table:
            raise ConfigError(
                f"--catalog takes a name such as sales.rides, found the path {table!r}. Leave --catalog out."
            )
        if self.catalog.startswith("thrift://"):
            from pyhudi.storage.hive_metastore import location_of

            return location_of(self.catalog, table)
        if self.catalog == SPARKS_CATALOG:
            return self._in_session(table)
        if "/" not in self.catalog and "\\" not in self.catalog and not os.path.isdir(self.catalog):
            raise ConfigError(
                f"--catalog {self.catalog}: there is no such folder. Other catalogs are a Hive metastore "
                f"(thrift://host:9083), and with --spark the session's catalog ({SPARKS_CATALOG}). For a table of any "
                f"other catalog, give its path."
            )
        return "/".join([self.catalog.rstrip("/"), *table.split(".")])

    def _in_session(self, table: str) -> str:
        """The folder of a name of the session's catalog."""
        session = self.session()
        if session is None:
            raise ConfigError(f"--catalog {SPARKS_CATALOG} belongs to a Spark session: add --spark.")
        from pyhudi.session.catalog import catalog_of
        from pyhudi.sql.session import TableName

        entry = catalog_of(session).find(TableName(tuple(table.split("."))))
        if entry is None or not entry.is_hudi or entry.location is None:
            raise TableNotFound(f"The session's catalog has no Hudi table {table}.")
        return entry.location

    def open(self, table: str) -> HudiTable:
        """The table. Raises TableNotFound, UnsupportedTable, CorruptFile, StorageError."""
        from pyhudi import HudiTable

        return HudiTable.open(self.path(table), self.session(), storage_options=self.storage_options)

    def state(self, table: str) -> MetaClient:
        """The table's state at one moment, without the methods of a table. Raises as `open`."""
        from pyhudi.meta_client import MetaClient
        from pyhudi.storage import open_storage

        if self.spark is not None:
            return self.open(table).state()
        return MetaClient.load(open_storage(self.path(table), self.storage_options))

    def session(self) -> SparkSession | None:
        """The Spark session of `--spark`; None without it. Raises ConfigError without PySpark."""
        if self.spark is None:
            return None
        from pyhudi.spark.session import started_session

        return started_session(self.spark)
