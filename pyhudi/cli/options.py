"""What every command takes: where the table is, and how the answer looks. `Consent`: what those take that change it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from cyclopts import Group, Parameter

from pyhudi.errors import ConfigError, TableError

if TYPE_CHECKING:
    from pyhudi import HudiTable
    from pyhudi.spark.names import SparkSession

__all__ = [
    "COMMON",
    "CONSENT",
    "EVERY_COMMAND",
    "Common",
    "CommonOptions",
    "Consent",
    "ConsentOptions",
    "Declined",
    "TablePath",
    "pairs_of",
]

EVERY_COMMAND = Group("Every command", sort_key=10)
_ASKED = Group("Before it changes anything", sort_key=9)


class Declined(TableError):
    """Nobody said yes to a plan; nothing was changed."""


@dataclass(frozen=True)
class Common:
    """What every command takes.

    Args:
        catalog: A folder or URI with the tables; TABLE is a name then: `sales.rides` is the subfolder sales/rides.
        storage_option: KEY=VALUE: a Hadoop key for the store. May be given several times.
        option: KEY=VALUE: a key of Hudi's, see docs/options.md. May be given several times.
        json: The answer as JSON.
        csv: The answer as CSV.
        spark: Work with a Spark session: its master, such as `local[4]`; "" for that of the environment.
        debug: Show where an error comes from.
    """

    catalog: Annotated[str | None, Parameter(group=EVERY_COMMAND)] = None
    storage_option: Annotated[list[str] | None, Parameter(group=EVERY_COMMAND)] = None
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
        """`--storage-option`, by key."""
        return pairs_of("--storage-option", self.storage_option)

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
        return "/".join([self.catalog.rstrip("/"), *table.split(".")])

    def open(self, table: str) -> HudiTable:
        """The table. Raises TableNotFound, UnsupportedTable, CorruptFile, StorageError."""
        from pyhudi import HudiTable

        return HudiTable.open(self.path(table), self.session(), storage_options=self.storage_options)

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

    def ask(self, plan: Callable[[], object], question: str) -> None:
        """Show a plan on standard error and ask. Raises Declined for any answer but yes, and without a terminal."""
        if self.yes:
            return
        print(plan(), file=sys.stderr)
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
