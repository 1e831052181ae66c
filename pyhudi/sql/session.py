"""The protocol of sessions that run statements. Spark's is in `pyhudi.session`, DuckDB's in `pyhudi.sql`.

A statement builds SQL texts from the user's text, and the session runs them, so both engines get the same texts.
`view_of` names Hudi tables in these texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NewType, Protocol

import pyarrow as pa

from pyhudi.actions.result import WriteResult
from pyhudi.storage.base import Storage

if TYPE_CHECKING:
    from pyhudi.table import HudiTable
    from pyhudi.table.scan import Scan

__all__ = [
    "NO_ROWS",
    "SCHEMA_ON_READ",
    "CatalogEntry",
    "NamedTable",
    "SqlCatalog",
    "SqlFrame",
    "SqlSession",
    "TableName",
]

# A lazy result of the session's engine: a Spark DataFrame, a DuckDB relation.
SqlFrame = NewType("SqlFrame", object)
# Whether ALTER TABLE may create a schema history. No other statement uses it.
SCHEMA_ON_READ = "hoodie.schema.on.read.enable"
NO_ROWS = pa.table({})  # the result of a statement that changes something


@dataclass(frozen=True, slots=True)
class TableName:
    """A table's name as written: `(catalog.)(database.)table`, or hudi.`/path`. Parts are without backticks."""

    parts: tuple[str, ...]

    @property
    def path(self) -> str | None:
        """The path of hudi.`/path`; None for a name of the catalog."""
        is_path = len(self.parts) == 2 and self.parts[0].lower() == "hudi"
        return self.parts[1] if is_path and ("/" in self.parts[1] or ":" in self.parts[1]) else None

    def __str__(self) -> str:
        return ".".join(part if part.isidentifier() else f"`{part}`" for part in self.parts)


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A Hudi table and its name. `location`: its folder; `properties`: those of the catalog.

    `is_read_optimized`: queries by this name read only base files. `storage`: the table's, if the caller passed the
    table; None: the session opens the location. `options`: of a call, which win over those of the session.
    """

    name: TableName
    location: str
    table: HudiTable
    properties: Mapping[str, str] = field(default_factory=dict)
    is_read_optimized: bool = False
    storage: Storage | None = None
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def place(self) -> Storage | str:
        """The storage or folder to write to."""
        return self.location if self.storage is None else self.storage


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A name's entry in a catalog. `view_text`: the query of a view; None for a table.

    `is_managed`: a table without LOCATION, whose files are deleted with the name. `catalog_deletes`: the catalog itself
    deletes the files when the name is dropped.
    """

    name: TableName
    is_hudi: bool = False
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    is_managed: bool = False
    catalog_deletes: bool = False
    view_text: str | None = None
    is_read_optimized: bool = False


class SqlCatalog(Protocol):
    """A catalog of tables by name."""

    def find(self, name: TableName) -> CatalogEntry | None:
        """The entry of this name; None if there is none, or for a temporary view without a text."""
        ...

    def expect(self, names: Iterable[TableName]) -> None:
        """Announce names for `find`, so that one look-up can serve them all."""
        ...

    def place_of(self, name: TableName) -> str:
        """The folder of a new table without LOCATION."""
        ...

    def register(self, entry: CatalogEntry, columns: pa.Schema, partition_fields: Sequence[str]) -> None:
        """Register a Hudi table under a free name. `columns`: its data columns and Hudi's meta columns."""
        ...

    def update(self, entry: CatalogEntry, columns: pa.Schema, partition_fields: Sequence[str]) -> None:
        """Replace the entry of a name; files are kept."""
        ...

    def remove(self, name: TableName) -> None:
        """Remove a name; files are kept, unless the entry has `catalog_deletes`."""
        ...

    def rename(self, name: TableName, new: TableName) -> None:
        """Move an entry to another name in the same database; files are kept."""
        ...


class SqlSession(Protocol):
    """A session: names, settings, and the engine that evaluates expressions and queries."""

    @property
    def catalog(self) -> SqlCatalog:
        """The catalog with the session's names."""
        ...

    def schema_of(self, columns: str) -> pa.Schema:
        """Read columns as a CREATE TABLE lists them: names, types, NOT NULL, comments."""
        ...

    @property
    def settings(self) -> Mapping[str, str]:
        """The session's `hoodie.*` settings (`SET hoodie.x=y`, `spark.hoodie.x`), without SCHEMA_ON_READ."""
        ...

    @property
    def schema_on_read(self) -> str | None:
        """The value of SCHEMA_ON_READ in the session: Hudi's users set it before ALTER TABLE and leave it set."""
        ...

    def find_table(self, name: TableName) -> NamedTable | None:
        """The Hudi table of this name; None for a view, a table of another format, or an unknown name.

        Raises: TableNotFound for a hudi.`/path` without a table, as such a name can mean nothing else.
        """
        ...

    def open(self, location: str) -> HudiTable | None:
        """The table in a folder, or None."""
        ...

    def create(
        self, location: str, schema: pa.Schema, options: Mapping[str, object], *, replaces_table: bool = False
    ) -> HudiTable:
        """Create an empty table in an empty folder or in place of a table. Raises ConfigError for any other files."""
        ...

    def query(self, text: str) -> SqlFrame:
        """The rows of a query in the engine's SQL, lazily. It may name Hudi tables."""
        ...

    def view_of(self, frame: SqlFrame) -> AbstractContextManager[str]:
        """A temporary name, unique in the session, for the rows of a frame while the context lasts."""
        ...

    def frame_of(self, table: NamedTable, columns: Sequence[str] | None = None) -> SqlFrame:
        """A snapshot of a table; it has meta columns only if they are named."""
        ...

    def frame_of_scan(self, scan: Scan) -> SqlFrame:
        """The rows of a query of a table, lazily."""
        ...

    def frame_from(self, rows: pa.Table) -> SqlFrame:
        """A small Arrow table as a frame, for the result of a statement."""
        ...

    def frame_of_result(self, result: WriteResult) -> SqlFrame:
        """The result of a statement that changed rows: counts, if the engine's own statements return them."""
        ...

    def create_view(self, name: str, frame: SqlFrame, *, replace: bool, is_global: bool) -> None:
        """Name a frame in the session; a global name is for all sessions of the engine.

        Raises: ConfigError for a name in use, unless `replace` is true.
        """
        ...

    def save_table(self, name: str, frame: SqlFrame, mode: str) -> None:
        """Save a frame as a table of the engine, by a save mode."""
        ...

    def columns_of(self, frame: SqlFrame) -> pa.Schema:
        """The columns of a frame, without running it."""
        ...

    def rows_of(self, frame: SqlFrame) -> pa.Table:
        """The rows of a frame, which must fit into memory."""
        ...

    def write(
        self,
        table: NamedTable,
        frame: SqlFrame,
        operation: str,
        options: Mapping[str, object],
        mode: str = "append",
    ) -> WriteResult:
        """Write a frame's rows to a table by an operation of Hudi's (`upsert`, `insert_overwrite`, ...).

        Args: mode: a save mode; `overwrite` recreates the table with the options.
        """
        ...
