"""What every command takes: where the table is, and how the answer looks. `Consent`: what those take that change it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, TypeVar

from cyclopts import Group, Parameter

from pyhudi.errors import ConfigError, TableError, TableNotFound
from pyhudi.storage.waiting import TIMEOUT

if TYPE_CHECKING:
    from pyhudi import HudiTable
    from pyhudi.meta_client import MetaClient
    from pyhudi.spark.names import SparkSession

__all__ = [
    "COMMON",
    "CONSENT",
    "EVERY_COMMAND",
    "SPARKS_CATALOG",
    "Common",
    "CommonOptions",
    "Consent",
    "ConsentOptions",
    "Declined",
    "NothingToDo",
    "TablePath",
    "pairs_of",
]

PlanT = TypeVar("PlanT")
SPARKS_CATALOG = "spark_catalog"
EVERY_COMMAND = Group("Every command", sort_key=10)
_ASKED = Group("Before it changes anything", sort_key=9)


class Declined(TableError):
    """Nobody said yes to a plan; nothing was changed."""


class NothingToDo(Exception):
    """A plan changes nothing, so that there is nothing to ask. It is the answer."""

    def __init__(self, plan: object) -> None:
        super().__init__("nothing to do")
        self.plan = plan


@dataclass(frozen=True)
class Common:
    """What every command takes.

    Args:
        catalog: Where names of tables are looked up; TABLE is a name then. A folder or URI: `sales.rides` is its
            subfolder sales/rides. thrift://HOST:PORT: a Hive metastore. spark_catalog, with --spark: that of the
            session.
        storage_option: KEY=VALUE: a Hadoop key for the store. May be given several times.
        timeout: Seconds after which a store that does not answer is given up.
        option: KEY=VALUE: a key of Hudi's, see docs/options.md. May be given several times.
        json: The answer as JSON.
        csv: The answer as CSV.
        spark: Work with a Spark session: its master, such as `local[4]`, or a server of Spark Connect, such as
            `sc://host:15002`; "" for what the environment says, SPARK_REMOTE included.
        debug: Show where an error comes from.
    """

    catalog: Annotated[str | None, Parameter(group=EVERY_COMMAND)] = None
    storage_option: Annotated[list[str] | None, Parameter(group=EVERY_COMMAND)] = None
    timeout: Annotated[float | None, Parameter(group=EVERY_COMMAND)] = None
    option: Annotated[list[str] | None, Parameter(group=EVERY_COMMAND)] = None
    json: Annotated[bool, Parameter(group=EVERY_COMMAND)] = False
    csv: Annotated[bool, Parameter(group=EVERY_COMMAND)] = False
    spark: Annotated[str | None, Parameter(group=EVERY_COMMAND)] = None
    debug: Annotated[bool, Parameter(group=EVERY_COMMAND)] = False

    @property
    def form(self) -> Literal["text", "json", "csv"]:
        """How the answer looks. Raises ConfigError for two forms at once."""
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

    def path(self, table: str) -> str:
        """The place of a table: what was typed, or the folder of the catalog that has this name.

        Raises ConfigError for a path where a name of the catalog belongs.
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
                f"--catalog {self.catalog}: there is no such folder. Names are also looked up at a Hive metastore "
                f"(thrift://host:9083), and with --spark in the session's catalog ({SPARKS_CATALOG}). Give the table's "
                f"path where another catalog has it."
            )
        return "/".join([self.catalog.rstrip("/"), *table.split(".")])

    def _in_session(self, table: str) -> str:
        """The folder of a name of the session's catalog."""
        session = self.session()
        if session is None:
            raise ConfigError(f"--catalog {SPARKS_CATALOG} is that of a Spark session: add --spark.")
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
        """The table at one moment: what `open` loads, without the calls of a table. Raises as `open`."""
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


@dataclass(frozen=True)
class Consent:
    """What commands take that change a table for good.

    Args:
        dry_run: Only show what would be done.
        yes: Do it without asking, as scripts want it.
    """

    dry_run: Annotated[bool, Parameter(group=_ASKED)] = False
    yes: Annotated[bool, Parameter(name=["--yes", "-y"], group=_ASKED)] = False

    def ask(
        self, plan: Callable[[], PlanT], question: str, is_needed: Callable[[PlanT], object] = lambda plan: True
    ) -> None:
        """Show a plan on standard error and ask. `is_needed`: does a plan change anything?

        Raises: Declined for any answer but yes, and without a terminal; NothingToDo where nobody needs to be asked.
        """
        if self.yes:
            return
        shown = plan()
        if not is_needed(shown):
            raise NothingToDo(shown)
        print(shown, file=sys.stderr)
        if not sys.stdin.isatty():
            raise Declined(f"{question} Nothing was changed: there is no terminal to ask on. Add --yes to do it.")
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Declined("Nothing was changed.")


CommonOptions: TypeAlias = Annotated[Common, Parameter(name="*")]
ConsentOptions: TypeAlias = Annotated[Consent, Parameter(name="*")]
TablePath: TypeAlias = Annotated[str, Parameter(help="Path of the table; with --catalog its name.")]
COMMON = Common()
CONSENT = Consent()


def pairs_of(flag: str, texts: Sequence[str] | None) -> dict[str, str]:
    """`KEY=VALUE` texts as a dict. Raises ConfigError for one without a key or "="."""
    pairs: dict[str, str] = {}
    for text in texts or ():
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise ConfigError(f"{flag} takes KEY=VALUE, found {text!r}.")
        pairs[key.strip()] = value
    return pairs
