"""Hudi's SQL without Spark: statements on tables by path or name; DuckDB evaluates expressions and queries.

    pyhudi.sql("SELECT city, sum(fare) FROM hudi.`/lake/rides` GROUP BY city").to_pandas()

    session = pyhudi.DuckDbSession(tables={"rides": "/lake/rides"}, catalog="/lake")
    session.sql("DELETE FROM rides WHERE fare < 0")

Rows stream from our scans into DuckDB, and from DuckDB into writes. `pip install "pyhudi[sql]"` installs DuckDB.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from typing import TypeGuard, cast

import pyarrow as pa

from pyhudi.actions.result import WriteResult
from pyhudi.errors import ConfigError, HudiError, TableNotFound
from pyhudi.expressions.duckdb import quoted_name
from pyhudi.model.options import OptionScope, known_options
from pyhudi.model.options.queries import AS_OF
from pyhudi.sql.alter_table import RenameTable
from pyhudi.sql.columns import schema_of_columns
from pyhudi.sql.drop_table import DropTable
from pyhudi.sql.duckdb_catalog import FolderCatalog
from pyhudi.sql.duckdb_frames import (
    VIEW_PREFIX,
    ScanDataset,
    SqlResult,
    duckdb_errors,
    open_duckdb,
    relation,
    stream,
    without_meta,
)
from pyhudi.sql.duckdb_text import FunctionCall, Part, TimeTravel, duckdb_text
from pyhudi.sql.session import NO_ROWS, SCHEMA_ON_READ, NamedTable, SqlFrame, SqlSession, TableName
from pyhudi.sql.statement import Setting, parse_statement, setting_of
from pyhudi.sql.table_functions import TABLE_FUNCTIONS, rows_of_function
from pyhudi.storage import open_storage
from pyhudi.table import HudiTable, write_hudi
from pyhudi.table.dataset import whole_batches
from pyhudi.table.input import TableInput, to_arrow_rows
from pyhudi.table.save import create
from pyhudi.table.scan import Scan
from pyhudi.warnings import variable_of_caller, warn_caller

__all__ = ["DuckDbSession", "sql"]

# Parts of queries that remain registered with DuckDB: a caller may fetch a result's rows later.
MAX_PARTS = 100
_CREATE_TABLE = re.compile(r"\s*CREATE\s+(OR\s+REPLACE\s+)?TABLE\b", re.IGNORECASE)


class DuckDbSession:
    """Runs statements on Hudi tables in this process, with DuckDB for expressions and queries. Not thread-safe."""

    def __init__(
        self,
        tables: Mapping[str, str | os.PathLike[str] | HudiTable] | None = None,
        *,
        catalog: str | os.PathLike[str] | None = None,
        options: Mapping[str, str] | None = None,
        storage_options: Mapping[str, object] | None = None,
    ) -> None:
        """
        Args:
            tables: name → path of a table, or the table; a name may have dots (`sales.rides`).
            catalog: a folder whose subfolders are tables by their names, `sales.rides` as sales/rides.
            options: Hudi's keys, as `SET hoodie.x=y` sets them.
            storage_options: Hadoop's keys for remote stores.
        Raises: ConfigError if DuckDB is not installed.
        """
        self._catalog = FolderCatalog(tables or {}, catalog, storage_options)
        self._settings = dict(options or {})
        self._storage_options = storage_options
        self._connection = open_duckdb()
        self._numbers = count(1)
        self._views: list[str] = []  # of the running statement
        self._parts: dict[str, None] = {}  # texts of the registered parts, oldest first
        self._failures: list[HudiError] = []
        self._table_views: set[str] = set()
        self._variables: dict[str, object] = {}  # word → the variable whose rows are registered

    # ---- statements

    def sql(self, text: str, *, dialect: str = "spark") -> SqlResult:
        """Run a statement: Hudi's own at once, a query when its rows are fetched.

        Args:   dialect: "spark": a query means what Spark says, or is refused; "duckdb": it is in DuckDB's own words.
        Raises: ConfigError for a statement that neither Hudi nor DuckDB knows, and for a query that is not known to
        mean
            what Spark says; the errors of tables and writes.
        """
        setting = setting_of(text)
        if setting is not None:
            return SqlResult(self.frame_from(self._set(setting)), self._failures)
        try:
            statement = parse_statement(text, cast("SqlSession", self)) if dialect == "spark" else None
            if statement is None:
                _warn_of_duckdb_tables(text)
            with duckdb_errors(self._failures):
                frame = self.query(text, dialect) if statement is None else statement.run(cast("SqlSession", self))
            if isinstance(statement, DropTable | RenameTable):
                self._hide(statement.name)
        finally:
            self._drop_views_of_the_statement()
        return SqlResult(frame, self._failures)

    def _set(self, setting: Setting) -> pa.Table:
        if setting.value is not None:
            self._settings[setting.key] = setting.value
        elif setting.removes:
            self._settings.pop(setting.key, None)
        value = self._settings.get(setting.key, "<undefined>")
        return pa.table({"key": [setting.key], "value": [value]})

    # ---- the session as statements see it

    @property
    def settings(self) -> Mapping[str, str]:
        """The `hoodie.*` that were set in the session, without SCHEMA_ON_READ."""
        return self._settings_for(OptionScope.WRITE)

    def _settings_for(self, scope: OptionScope) -> dict[str, str]:
        settings = {key: value for key, value in self._settings.items() if key != SCHEMA_ON_READ}
        return known_options(settings, scope)

    @property
    def schema_on_read(self) -> str | None:
        """The value of SCHEMA_ON_READ in the session."""
        value = self._settings.get(SCHEMA_ON_READ)
        return None if value is None else str(value)

    @property
    def catalog(self) -> FolderCatalog:
        """The catalog with the session's names."""
        return self._catalog

    def schema_of(self, columns: str) -> pa.Schema:
        """Read columns as a CREATE TABLE lists them. Raises ConfigError."""
        return schema_of_columns(columns)

    def find_table(self, name: TableName) -> NamedTable | None:
        """The Hudi table of this name, or None. Raises TableNotFound for a hudi.`/path` without a table."""
        if name.path is not None:
            at_path = HudiTable.open(name.path, storage_options=self._storage_options)
            return NamedTable(name, name.path, at_path, self._catalog.details(name)[0])
        location, passed = self._catalog.location(name), self._catalog.passed_table(name)
        table = self.open(location) if location is not None and passed is None else passed
        if location is None or table is None:
            return None
        storage = None if passed is None else passed.state().storage
        return NamedTable(name, location, table, self._catalog.details(name)[0], storage=storage)

    def open(self, location: str) -> HudiTable | None:
        """The table in a folder, or None."""
        if not HudiTable.exists(location, storage_options=self._storage_options):
            return None
        return HudiTable.open(location, storage_options=self._storage_options)

    def create(
        self, location: str, schema: pa.Schema, options: Mapping[str, object], *, replaces_table: bool = False
    ) -> HudiTable:
        """Create an empty table in an empty folder or in place of a table. Raises ConfigError for any other files."""
        storage = open_storage(location, self._storage_options or {})
        if replaces_table:
            return HudiTable(create(storage, schema, options, None, replaces_table=True), None, options)
        names = sorted(entry.name for entry in storage.list(""))
        if names:
            raise ConfigError(
                f"{location} holds {', '.join(names[:3])} and no Hudi table; a new one needs its own folder."
            )
        return HudiTable.create(location, schema, storage_options=self._storage_options, options=options)

    def query(self, text: str, dialect: str = "spark") -> SqlFrame:
        """The rows of a query, lazily. It may name Hudi tables."""
        statement = duckdb_text(text, TABLE_FUNCTIONS, self._part_name, self._columns_of_table, dialect)
        for name in statement.names:
            self._find(name)
        with duckdb_errors(self._failures):
            rows = self._connection.sql(statement.text)
        return self.frame_from(NO_ROWS) if rows is None else cast("SqlFrame", rows)

    def _find(self, name: TableName) -> None:
        """Register the table of this name with DuckDB, or else the caller's variable of this name."""
        table = self.find_table(name)
        if table is not None:
            self._show(name, table.table.scan(options=self._settings_for(OptionScope.READ)))
        else:
            self._hide(name)
            self._show_variable(name)

    def _columns_of_table(self, name: TableName | str) -> tuple[str, pa.Schema]:
        """DuckDB's text for a table, or for the rows of a text, and its columns."""
        text = name if isinstance(name, str) else _view_name(name)
        if isinstance(name, TableName):
            self._find(name)
        with duckdb_errors(self._failures):
            return text, self._connection.sql(f"FROM {text}").limit(0).to_arrow_table().schema

    def view_of(self, frame: SqlFrame) -> AbstractContextManager[str]:
        """A temporary name for the rows of a frame, until the statement ends. DuckDB evaluates a query only when the
        caller fetches its rows, and needs the views then.
        """
        return self._view_of(frame)

    @contextmanager
    def _view_of(self, frame: SqlFrame) -> Iterator[str]:
        name = f"{VIEW_PREFIX}{next(self._numbers)}"
        self._views.append(name)
        with duckdb_errors(self._failures):
            if isinstance(frame, pa.Table):
                self._connection.register(name, frame)
            else:
                relation(frame).create_view(name, replace=True)
        yield name

    def frame_of(self, table: NamedTable, columns: Sequence[str] | None = None) -> SqlFrame:
        """A snapshot of a table; it has meta columns only if they are named."""
        names = list(columns) if columns is not None else table.table.schema().names
        return self.frame_of_scan(table.table.scan(names))

    def frame_of_scan(self, scan: Scan) -> SqlFrame:
        """The rows of a query of a table, lazily."""
        with duckdb_errors(self._failures):
            return cast("SqlFrame", self._connection.from_arrow(self._dataset(scan)))

    def frame_of_result(self, result: WriteResult) -> SqlFrame:
        """The numbers of rows that a change inserted, updated and deleted."""
        counts = {name: getattr(result, name) for name in ("inserted", "updated", "deleted")}
        return cast("SqlFrame", pa.Table.from_pylist([counts]))

    def frame_from(self, rows: pa.Table) -> SqlFrame:
        """A small Arrow table as a frame. A table without columns remains an Arrow table: DuckDB has no such tables."""
        if not rows.num_columns:
            return cast("SqlFrame", rows)
        with duckdb_errors(self._failures):
            return cast("SqlFrame", self._connection.from_arrow(_whole(rows)))

    def create_view(self, name: str, frame: SqlFrame, *, replace: bool, is_global: bool) -> None:
        """Name a frame in the session. Global names are the same, as there is only one session."""
        with duckdb_errors(self._failures):
            relation(frame).create_view(name, replace=replace)

    def save_table(self, name: str, frame: SqlFrame, mode: str) -> None:
        """Save a frame as a DuckDB table, which ends with the session."""
        quoted = quoted_name(name)
        with self.view_of(frame) as rows, duckdb_errors(self._failures):
            if mode == "append":
                self._connection.execute(f"CREATE TABLE IF NOT EXISTS {quoted} AS FROM {rows} LIMIT 0").fetchall()
                self._connection.execute(f"INSERT INTO {quoted} FROM {rows}").fetchall()
                return
            how = {"overwrite": "OR REPLACE TABLE", "ignore": "TABLE IF NOT EXISTS"}.get(mode, "TABLE")
            self._connection.execute(f"CREATE {how} {quoted} AS FROM {rows}").fetchall()

    def columns_of(self, frame: SqlFrame) -> pa.Schema:
        """The columns of a frame, without running it."""
        if isinstance(frame, pa.Table):
            return frame.schema
        with duckdb_errors(self._failures):
            none: pa.Table = relation(frame).limit(0).to_arrow_table()
        return none.schema

    def rows_of(self, frame: SqlFrame) -> pa.Table:
        """The rows of a frame."""
        if isinstance(frame, pa.Table):
            return frame
        with duckdb_errors(self._failures):
            rows: pa.Table = relation(frame).to_arrow_table()
        return rows

    def write(
        self,
        table: NamedTable,
        frame: SqlFrame,
        operation: str,
        options: Mapping[str, object],
        mode: str = "append",
    ) -> WriteResult:
        """Write a frame's rows to a table, as a stream."""
        with duckdb_errors(self._failures):
            result = write_hudi(
                table.place,
                stream(without_meta(frame), self._failures),
                operation,
                mode="replace" if mode == "overwrite" else mode,  # OR REPLACE creates another table
                storage_options=self._storage_options,
                options={**self.settings, **options},
            )
        assert result is not None
        return result

    # ---- names

    def _part_name(self, part: Part) -> str:
        """Register the rows of a part that DuckDB can't read itself; return their name."""
        if isinstance(part, FunctionCall):
            rows = rows_of_function(part.function, part.arguments, self._table_by_text)
            arguments = ", ".join(map(str, part.arguments))
            return self._part(f"{part.function}({arguments})", _whole(rows) if isinstance(rows, pa.Table) else rows)
        moment = {AS_OF: part.as_of} if isinstance(part, TimeTravel) else {}
        scan = self._table_of(part.name).scan(options={**self._settings_for(OptionScope.READ), **moment})
        name = ".".join(part.name.parts)
        return self._part(f"{name} as of {part.as_of}" if isinstance(part, TimeTravel) else name, scan)

    def _part(self, name: str, rows: pa.Table | Scan) -> str:
        """Register the rows of a part with DuckDB under its text. There can be any number of texts, so the oldest part
        is unregistered if there are more than MAX_PARTS.
        """
        self._register(name, rows)
        self._parts.pop(name, None)
        self._parts[name] = None
        while len(self._parts) > MAX_PARTS:
            oldest = next(iter(self._parts))
            del self._parts[oldest]
            self._connection.unregister(oldest)
        return name

    def _table_by_text(self, text: str) -> HudiTable:
        """The table that an argument names by name or path."""
        name = TableName(("hudi", text)) if "/" in text else TableName(tuple(text.replace("`", "").split(".")))
        return self._table_of(name)

    def _table_of(self, name: TableName) -> HudiTable:
        table = self.find_table(name)
        if table is None:
            raise TableNotFound(f"There is no Hudi table {name}. {self._catalog}")
        return table.table

    def _show(self, name: TableName, scan: Scan) -> None:
        """Register a scan with DuckDB under a table's name, in a separate schema for a name of two parts."""
        view = _view_name(name)
        self._register(".".join(name.parts[-2:]), scan)
        if len(name.parts) > 1:
            database, whole = quoted_name(name.parts[-2]), quoted_name(".".join(name.parts[-2:]))
            self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {database}").fetchall()
            self._connection.execute(f"CREATE OR REPLACE VIEW {view} AS FROM {whole}").fetchall()
        self._table_views.add(view)

    def _show_variable(self, name: TableName) -> None:
        """Register the rows of a variable of the caller with DuckDB, unless a table has its name.

        A statement names its source several times, and a stream can be read once: its rows are kept.
        """
        word = name.parts[-1]
        value = variable_of_caller(word) if len(name.parts) == 1 and word.isidentifier() else None
        if word in self._variables:
            if self._variables[word] is value and isinstance(value, pa.RecordBatchReader):
                return
            self._connection.unregister(word)
            del self._variables[word]
        if not _is_rows(value) or self._has_table(word):
            return
        if isinstance(value, HudiTable):
            self._register(word, value.scan(options=self._settings_for(OptionScope.READ)))
        elif isinstance(value, Scan):
            self._register(word, value)
        else:
            rows = to_arrow_rows(value)
            self._register(word, _whole(rows if isinstance(rows, pa.Table) else rows.read_all()))
        self._variables[word] = value

    def _has_table(self, word: str) -> bool:
        known = "SELECT 1 FROM information_schema.tables WHERE lower(table_name) = lower(?)"
        return bool(self._connection.execute(known, [word]).fetchall())

    def _hide(self, name: TableName) -> None:
        """Remove a table's name from DuckDB."""
        view = _view_name(name)
        if view in self._table_views:
            self._connection.execute(f"DROP VIEW IF EXISTS {view}").fetchall()
            self._table_views.discard(view)
            self._connection.unregister(".".join(name.parts[-2:]))

    def _register(self, name: str, rows: pa.Table | Scan) -> None:
        with duckdb_errors(self._failures):
            self._connection.register(name, rows if isinstance(rows, pa.Table) else self._dataset(rows))

    def _dataset(self, scan: Scan) -> ScanDataset:
        return ScanDataset(scan, self._failures)

    def _drop_views_of_the_statement(self) -> None:
        """Drop the views of the statement. After a failed write, DuckDB's stream of rows is still open; the views are
        then dropped with the next statement, as an error here would hide that of the write.
        """
        with suppress(ConfigError), duckdb_errors([]):
            while self._views:
                self._connection.execute(f"DROP VIEW IF EXISTS {self._views[-1]}").fetchall()
                self._views.pop()


def sql(
    text: str,
    tables: Mapping[str, str | os.PathLike[str] | HudiTable] | None = None,
    *,
    catalog: str | os.PathLike[str] | None = None,
    options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, object] | None = None,
    dialect: str = "spark",
) -> SqlResult:
    """Run one statement of Hudi's SQL without Spark, in a new session. For the arguments: `DuckDbSession`."""
    session = DuckDbSession(tables, catalog=catalog, options=options, storage_options=storage_options)
    return session.sql(text, dialect=dialect)


def _is_rows(value: object) -> TypeGuard[TableInput]:
    """True for a table, a frame or a stream of a library. As in DuckDB, Python's lists and dicts are not rows."""
    if isinstance(value, type):
        return False
    module, kind = type(value).__module__, type(value).__name__
    is_dataset = module.startswith("pyarrow._dataset")
    is_frame = kind in ("DataFrame", "LazyFrame") and module.partition(".")[0] in ("pandas", "polars")
    streams = hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")
    return isinstance(value, HudiTable | Scan) or is_dataset or is_frame or streams


def _whole(rows: pa.Table) -> pa.Table:
    return pa.Table.from_batches(whole_batches(rows.to_batches()), rows.schema)


def _warn_of_duckdb_tables(text: str) -> None:
    """Warn of a CREATE TABLE without USING hudi: it creates a DuckDB table, which few users intend."""
    if _CREATE_TABLE.match(text):
        warn_caller(
            "CREATE TABLE without USING hudi creates a DuckDB table, which ends with the session. Write USING hudi for "
            "a permanent table, CREATE TEMP TABLE for a temporary one."
        )


def _view_name(name: TableName) -> str:
    """A table's name in DuckDB: at most its last two parts."""
    return ".".join(quoted_name(part) for part in name.parts[-2:])
