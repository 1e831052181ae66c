"""HudiTable: the public API. A method describes a query or a write and passes it on; nothing more happens here.

table = HudiTable.create(path, schema, record_key="id", partition_by="day", ordering="updated_at")
table.upsert(rows)                                          # Arrow, pandas, polars, a Spark DataFrame
table.scan(columns=["id"], where="day >= '2024-01-01'").to_arrow()
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, NoReturn, overload

import pyarrow as pa  # here, so that a PyArrow that can't be imported is told of by the first import

from pyhudi.meta_client import MetaClient
from pyhudi.model.options import OptionScope, check_names, merged_options
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.arguments import (
    ActionArguments,
    ArchiveArguments,
    ChangeArguments,
    CleanArguments,
    ClusterArguments,
    CompactArguments,
    CreateArguments,
    LogCompactArguments,
    RewriteArguments,
    RowArguments,
    TtlArguments,
    WriteArguments,
)
from pyhudi.table.calls import (
    CalledList,
    Options,
    PathLike,
    TableHandle,
    change_version,
    open_place,
    open_table,
    ordered_by,
    session_options,
    undo,
)
from pyhudi.table.named_arguments import named, named_methods
from pyhudi.table.neighbours import no_attribute
from pyhudi.timeline.table_properties import table_exists

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    from typing_extensions import Unpack  # what type checkers know by themselves, Python 3.10 too

    from pyhudi.actions.result import WriteResult
    from pyhudi.actions.undo.restore_result import RestoreResult, RollbackResult
    from pyhudi.model.table_config import TableConfig
    from pyhudi.model.timeline import Timeline
    from pyhudi.queries.filters import Where
    from pyhudi.queries.query import AsOf
    from pyhudi.report.html import Report
    from pyhudi.schema.changes import SchemaChange
    from pyhudi.services.archive.archiving import ArchiveResult
    from pyhudi.services.clean.runs import CleanResult
    from pyhudi.services.health import TableHealth
    from pyhudi.services.indexes import IndexInfo, IndexList
    from pyhudi.services.partition_ttl import TtlResult
    from pyhudi.services.properties import PropertiesChange
    from pyhudi.services.repair.result import RepairResult
    from pyhudi.services.results import ClusteringResult, CompactionResult
    from pyhudi.services.savepoint import Savepoint, Savepoints
    from pyhudi.services.table_type import TypeChange
    from pyhudi.services.versions.upgrade import VersionChange
    from pyhudi.spark.names import SparkDataFrame, SparkSession, StructType
    from pyhudi.table.at import TableAt
    from pyhudi.table.change import Checkpoint
    from pyhudi.table.dataset import HudiDataset
    from pyhudi.table.description import TableDescription
    from pyhudi.table.exports import ExportedFile, TableCopy
    from pyhudi.table.groups import HistoryGroup, LockAudit, TableRepairs
    from pyhudi.table.input import TableInput
    from pyhudi.table.merge_builder import Merge
    from pyhudi.table.metadata import TableMetadata
    from pyhudi.table.reports import TableDiff, TableStats
    from pyhudi.table.scan import Scan

__all__ = ["HudiTable", "Maintenance", "TableSavepoints", "write_hudi"]


@named_methods
class HudiTable:
    """One Hudi table. Every call looks at the table as it is then; a `Scan` keeps the moment it was made at."""

    def __init__(
        self, table: MetaClient | PathLike, spark: SparkSession | None = None, options: Options | None = None
    ) -> None:
        """`HudiTable(path)` is `HudiTable.open(path)`."""
        self._handle = TableHandle.of(table, spark, options)

    @classmethod
    def open(
        cls,
        path: PathLike,
        spark: SparkSession | None = None,
        *,
        storage_options: Mapping[str, object] | None = None,
        options: Options | None = None,
    ) -> HudiTable:
        """Open an existing table.

        Args:
            path: folder or URI (`s3://`, `gs://`, `abfss://`, `hdfs://`, `memory://`).
            spark: a session for `to_spark` and for session-wide options: `spark.hoodie.*`, and `spark.hadoop.fs.*`
                for remote stores; not needed otherwise.
            storage_options: Hadoop's keys for remote stores.
            options: Hudi's keys for reading, as in `scan`, for every read through this object; what a call says itself
                wins. Writes take from them what they read by: mergers
                (`hoodie.write.record.merge.custom.implementation.classes`) and memory.
        Raises: TableNotFound, UnsupportedTable, CorruptFile, ConfigError for options that no read knows.
        """
        return cls(open_table(path, spark, storage_options, options), spark, options)

    @classmethod
    def create(
        cls,
        path: PathLike,
        schema: pa.Schema | StructType,
        *,
        record_key: str | Sequence[str] | None = None,
        partition_by: str | Sequence[str] | None = None,
        ordering: str | Sequence[str] | None = None,
        table_name: str | None = None,
        table_type: str | None = None,
        spark: SparkSession | None = None,
        storage_options: Mapping[str, object] | None = None,
        options: Options | None = None,
        **more: Unpack[CreateArguments],
    ) -> HudiTable:
        """Make an empty table.

        Args:
            schema: the data columns: a `pyarrow.Schema`, or a Spark StructType.
            record_key, partition_by, ordering: column names; no record key: Hudi's generated keys.
            table_name: None: the folder's name. table_type: COPY_ON_WRITE.
            options: Hudi's own keys; `more`: Python names of options (docs/options.md), or Hudi's keys by `**{...}`.
        Raises: TableExists, ConfigError, SchemaMismatch.
        """
        from pyhudi.table.write import create

        columns = {"record_key": record_key, "partition_by": partition_by, "ordering": ordering}
        write_options = merged_options(options, {**columns, "table_name": table_name, "table_type": table_type, **more})
        check_names(write_options, OptionScope.WRITE, partial(session_options, spark))
        return cls(create(open_place(path, storage_options, spark), schema, write_options, spark), spark, write_options)

    @staticmethod
    def exists(path: PathLike, *, storage_options: Mapping[str, object] | None = None) -> bool:
        """True when there is a Hudi table at the path."""
        return table_exists(open_storage(path, storage_options or {}))

    # ---- reading

    @property
    def path(self) -> str:
        """Where the table is."""
        return self._handle.storage.root

    @property
    def state(self) -> MetaClient:
        """The table as it is now, for code built on tables: its storage, properties and timeline at one moment."""
        return self._handle.fresh()

    @property
    def schema(self) -> pa.Schema:
        """The table's data columns as Arrow types; scans return Hudi's meta columns before them."""
        from pyhudi.table.reports import data_schema

        return data_schema(self._handle.fresh())

    @property
    def config(self) -> TableConfig:
        """The table's properties, typed."""
        return self._handle.fresh().config

    @property
    def timeline(self) -> Timeline:
        """The active instants."""
        return self._handle.fresh().timeline

    @property
    def history(self) -> HistoryGroup:
        """What happened to the table: `history()` or `history(10, since="2024-01-01")`, newest first."""
        from pyhudi.table.groups import HistoryGroup

        return HistoryGroup(self._handle)

    @property
    def metadata(self) -> TableMetadata:
        """The metadata table as it is now: its records, and whether they are right."""
        from pyhudi.table.metadata import TableMetadata

        return TableMetadata(self._handle.fresh(), self._handle)

    def describe(self) -> TableDescription:
        """What the table is, in a few lines: type, version, keys, newest commit, metadata table, properties."""
        from pyhudi.table.description import described

        meta = self._handle.fresh()
        return described(meta.storage.root, meta.config, meta.timeline)

    def files(self) -> pa.Table:
        """The newest file of each file group: partition_path, file_id, path, instant_time, size_bytes, log_files."""
        from pyhudi.table.reports import files

        return files(self._handle.fresh())

    def partitions(self) -> pa.Table:
        """The partitions: partition_path ("" for a table without), files, size_bytes, log_files."""
        from pyhudi.table.reports import partitions

        return partitions(self._handle.fresh())

    def stats(self) -> TableStats:
        """Sizes of the newest files, and what each commit on the active timeline wrote; prints as a table.

        Raises: CorruptFile for a commit that can't be read.
        """
        from pyhudi.table.reports import files, table_stats

        meta = self._handle.fresh()
        return table_stats(meta, files(meta)["size_bytes"].combine_chunks())

    def diff(self, since: AsOf, until: AsOf | None = None) -> TableDiff:
        """What came between two commits: rows, files by partition, columns. No data file is opened.

        Args:   since, until: instant times of commits, or moments as `as_of` of `scan`; None: the newest commit.
        Raises: ConfigError for two in the wrong order, TableError for a moment before the first commit.
        """
        from pyhudi.table.reports import table_diff

        first = self._handle.commit_time(since)
        newest = self._handle.meta.timeline.last_commit()
        last = self._handle.commit_time(until) if until is not None else newest.requested_time if newest else first
        return table_diff(self._handle.meta, first, last)

    def checkpoint(self, key: str | None = None) -> Checkpoint:
        """Where an ingestion job stands, from the newest commit that says it; its fields are None without one.

        Args:   key: of the commit's extra metadata; None: those of Hudi's Streamer.
        """
        from pyhudi.table.change import checkpoint

        return checkpoint(self._handle, key)

    def set_checkpoint(
        self,
        value: str,
        *,
        key: str | None = None,
        dry_run: bool = False,
        options: Options | None = None,
        **more: Unpack[RowArguments],
    ) -> Checkpoint:
        """Say by an empty commit where an ingestion job is to go on. Commits before stay as they are.

        Args:   key: of the commit's extra metadata; None: that of the newest checkpoint of Hudi's Streamer.
                dry_run: only return what would be set.
        """
        from pyhudi.table.change import set_checkpoint

        return set_checkpoint(self._handle, value, key, dry_run, options, more)

    def health(self, *, deep: bool = False, options: Options | None = None) -> TableHealth:
        """What makes the table slow or large, and the calls that mend it; prints as a table.

        Small files, log files that wait for a compaction, missing statistics, a metadata table that is missing or not
        up to date, plans that wait, and what dead writers left. It lists files and reads none, and changes nothing.

        Args:    deep: also what each method of `repair` would mend, which reads keys, log files and history.
                 options: Hudi's own keys: the limits, such as `hoodie.parquet.small.file.limit`.
        Raises:  CorruptFile for a timeline that can't be read.
        """
        from pyhudi.table.reports import health

        return health(self._handle, options, deep)

    def report(self, path: PathLike | None = None, *, options: Options | None = None) -> Report | str:
        """A page for the browser: rows, size, last write, health, timeline, files, partitions, schema and properties.

        The page is one HTML file, which needs no network. Secrets among the properties are hidden. Rows are counted
        where that is cheap; else the page says what a count would cost.

        Args:
            path: of the HTML file on this machine, which is overwritten. None: nothing is written.
            options: Hudi's own keys: the limits of `health`.
        Returns: `path`; without a path an object that a notebook displays, whose `html` is the page.
        Raises:  CorruptFile for a timeline that can't be read, OSError for a file that can't be written.
        """
        from pyhudi.table.reports import report

        return report(self._handle, path, options)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        as_of: AsOf | None = None,
        query_type: str | None = None,
        *,
        begin: AsOf | None = None,
        end: AsOf | None = None,
        incremental_format: str | None = None,
        limit: int | None = None,
        meta_columns: bool = True,
        options: Options | None = None,
    ) -> Scan:
        """Describe a query; nothing is read until rows are fetched.

        Args:
            columns: names in the wanted order; None: Hudi's meta columns (`_hoodie_...`) and all data columns.
            where: SQL text (`"day >= '2024-01-01' AND city IN ('x', 'y')"`), a tuple `("city", "=", "x")`, a list of
                tuples that all must hold, or a `pyarrow.compute` expression.
            as_of: the table at that moment: the time of an instant, as `WriteResult`, `history()` and
                `_hoodie_commit_time` show it, or a date or time (text or object; without a zone it is in the Spark
                session's, and without a session in the timeline's).
            query_type: "snapshot" (the default), "read_optimized" for the base files of a merge-on-read table, or
                "incremental" for the rows that were committed in a range of times.
            begin, end: the range of an incremental query, as `as_of` takes them: begin is left out, end is in (None:
                now). Either time of a commit, requested or completed, means that commit; a moment parts what was
                complete then from what was not (below table version 8: begun). begin="earliest": from the first
                commit on.
            incremental_format: the result of an incremental query: "latest_state" (the default), rows in their newest
                version; "cdc", of a table with change logs: all changes, as columns op ("i", "u", "d"), ts_ms (the
                commit), before and after (JSON texts).
            limit: no more rows than these; reading ends with them. Which rows come first is not defined.
            meta_columns: False: without `columns` the data columns alone.
            options: Hudi's keys, those that `spark.read.format("hudi")` takes, such as `hoodie.memory.merge.max.size`;
                the session's `spark.hoodie.*` come after them. Times in options keep Hudi's meaning: from table
                version 8 on a range is one of completion times, and `as.of.instant` is compared with instant times.
        Raises: ConfigError for arguments that contradict each other; the rest when rows are fetched.
        """
        from pyhudi.table.scan import scan

        return scan(
            self._handle,
            columns,
            where,
            as_of,
            query_type,
            begin,
            end,
            incremental_format,
            limit,
            options,
            meta_columns,
        )

    def at(self, moment: AsOf) -> TableAt:
        """The table as of a moment, for reading only: `table.at("2024-01-31").to_pandas()`.

        Args:   moment: as `as_of` of `scan`.
        Raises: ConfigError for no moment; TableError for one before the first commit, or that cleaning has passed.
        """
        from pyhudi.table.at import TableAt

        return TableAt.of(self._handle, moment)

    def changes(
        self,
        since: AsOf | None = None,
        until: AsOf | None = None,
        *,
        format: str | None = None,
        columns: Sequence[str] | None = None,
        where: Where = None,
        meta_columns: bool = True,
        options: Options | None = None,
    ) -> Scan:
        """The rows that were committed after `since`, in their newest version: an incremental query.

        `checkpoint` of the result is the `since` of the next call. Deletes are no rows; with format "cdc" they are.

        Args:
            since, until: as `begin` and `end` of `scan`; None: from the first commit on, and to the newest one.
            format: as `incremental_format` of `scan`: "cdc" for every change, with the rows before and after.
            columns, where, meta_columns, options: as in `scan`.
        Raises: ConfigError; RangeNotReadable, when rows are fetched, for commits that were archived or cleaned.
        """
        return self.scan(
            columns,
            where,
            None,
            "incremental",
            begin="earliest" if since is None else since,
            end=until,
            incremental_format=format,
            meta_columns=meta_columns,
            options=options,
        )

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        as_of: AsOf | None = None,
        *,
        meta_columns: bool = True,
    ) -> pa.Table:
        """`scan(...).to_arrow()`."""
        return self.scan(columns, where, as_of, meta_columns=meta_columns).to_arrow()

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        as_of: AsOf | None = None,
        *,
        meta_columns: bool = True,
    ) -> pd.DataFrame:
        """`scan(...).to_pandas()`."""
        return self.scan(columns, where, as_of, meta_columns=meta_columns).to_pandas()

    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        as_of: AsOf | None = None,
        *,
        meta_columns: bool = True,
    ) -> pl.DataFrame:
        """`scan(...).to_polars()`."""
        return self.scan(columns, where, as_of, meta_columns=meta_columns).to_polars()

    def to_duckdb(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        as_of: AsOf | None = None,
        *,
        meta_columns: bool = True,
    ) -> duckdb.DuckDBPyRelation:
        """`scan(...).to_duckdb()`: a relation, in the database of `duckdb.sql`."""
        return self.scan(columns, where, as_of, meta_columns=meta_columns).to_duckdb()

    def to_spark(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        as_of: AsOf | None = None,
        *,
        meta_columns: bool = True,
    ) -> SparkDataFrame:
        """`scan(...).to_spark()`, with the session that the table was opened with, else the active one."""
        return self.scan(columns, where, as_of, meta_columns=meta_columns).to_spark()

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        as_of: AsOf | None = None,
        *,
        meta_columns: bool = True,
    ) -> pa.RecordBatchReader:
        """`scan(...).to_batches()`: the rows as a stream, in bounded memory."""
        return self.scan(columns, where, as_of, meta_columns=meta_columns).to_batches()

    def head(
        self,
        n: int = 5,
        columns: Sequence[str] | None = None,
        where: Where = None,
        as_of: AsOf | None = None,
        *,
        meta_columns: bool = False,
    ) -> pa.Table:
        """The first `n` rows that come; no more is read than they need. `columns`: None: the data columns, and Hudi's
        with `meta_columns`.
        """
        return self.scan(columns, where, as_of, meta_columns=meta_columns).head(n)

    def count(self, where: Where = None, as_of: AsOf | None = None) -> int:
        """`scan(...).count()`: how many rows; from footers alone where that is possible."""
        return self.scan(where=where, as_of=as_of).count()

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        """True, with rows or without: `if table` reads nothing."""
        return True

    def export(
        self,
        file: PathLike,
        columns: Sequence[str] | None = None,
        where: Where = None,
        as_of: AsOf | None = None,
        *,
        options: Options | None = None,
    ) -> ExportedFile:
        """Write rows to a file of this machine: Parquet, CSV or Arrow, by the end of its name.

        Rows stream. The file appears when all of them are in it; a file of this name is replaced.

        Args:   columns: None: the data columns. where, as_of, options: as in `scan`.
        Raises: ConfigError for another kind of file.
        """
        from pyhudi.table.exports import export_rows

        names = self.schema.names if columns is None else columns
        return export_rows(self.scan(names, where, as_of, options=options), os.fspath(file))

    def copy_to(
        self,
        path: PathLike,
        as_of: AsOf | None = None,
        *,
        storage_options: Mapping[str, object] | None = None,
    ) -> TableCopy:
        """Copy the table, as it was at a moment, to a new path: a whole Hudi table for every reader and writer.

        Files are copied as they are, so rows keep their commit times. The copy has the newest file slices of then and
        the timeline up to then; nothing older can be read in it. Its metadata table is built anew. Others may go on
        writing to this table.

        Args:   path: as in `open`; an empty or new folder. as_of: as in `scan`; None: as it is now.
                storage_options: Hadoop's keys for the store of the copy.
        Raises: TableExists, ConfigError for a folder that is not empty, TableError for a moment before the first
            commit, or whose files were cleaned. Nothing is left of a copy that fails.
        """
        from pyhudi.table.at import TableAt
        from pyhudi.table.exports import copy_table

        commit = TableAt.commit_of(self._handle, as_of)
        return copy_table(self._handle, commit, open_place(path, storage_options, self._handle.spark))

    def to_dataset(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        as_of: AsOf | None = None,
        *,
        meta_columns: bool = True,
    ) -> HudiDataset:
        """`scan(...).to_dataset()`: the table as it is now, for DuckDB, polars, DataFusion, Ibis and others."""
        return self.scan(columns, where, as_of, meta_columns=meta_columns).to_dataset()

    def to_polars_lazy(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        as_of: AsOf | None = None,
        *,
        meta_columns: bool = True,
    ) -> pl.LazyFrame:
        """`scan(...).to_polars_lazy()`: the table as it is now, as a polars LazyFrame."""
        return self.scan(columns, where, as_of, meta_columns=meta_columns).to_polars_lazy()

    def __arrow_c_schema__(self) -> object:
        """Columns and types of a scan, by Arrow's C interface."""
        return self.scan().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Lets pyarrow, polars, DuckDB and others take all rows."""
        return self.scan().__arrow_c_stream__(requested_schema)

    # ---- writing rows

    def upsert(self, data: TableInput, *, options: Options | None = None, **more: Unpack[RowArguments]) -> WriteResult:
        """Insert new keys, replace rows of known ones. For `data` and options see `write_hudi`."""
        from pyhudi.table.write import write_rows

        return write_rows(self._handle, data, "upsert", options, more)

    def insert(self, data: TableInput, *, options: Options | None = None, **more: Unpack[RowArguments]) -> WriteResult:
        """Add rows without looking for their keys; small files are filled up."""
        from pyhudi.table.write import write_rows

        return write_rows(self._handle, data, "insert", options, more)

    def bulk_insert(
        self, data: TableInput, *, options: Options | None = None, **more: Unpack[RowArguments]
    ) -> WriteResult:
        """Add many rows at once, optionally sorted, without index lookup and without filling small files."""
        from pyhudi.table.write import write_rows

        return write_rows(self._handle, data, "bulk_insert", options, more)

    def delete(
        self,
        data: TableInput | None = None,
        *,
        where: Where = None,
        options: Options | None = None,
        **more: Unpack[ChangeArguments],
    ) -> WriteResult:
        """Delete rows: those whose keys are in `data`, or those that pass `where` (see `scan`).

        `data` needs the key and partition columns only; without the partition columns its keys are deleted wherever
        they are. Its result says how many keys were not found; when nothing was deleted there is no commit, unless
        `hoodie.allow.empty.commit` is set to true. Raises ConfigError unless just one of the two is given.
        """
        from pyhudi.table.change import delete

        return delete(self._handle, data, where, options, more)

    def delete_where(
        self, where: Where, *, options: Options | None = None, **more: Unpack[ChangeArguments]
    ) -> WriteResult:
        """`delete(where=...)`."""
        return self.delete(where=where, options=options, **more)

    def update(
        self,
        where: Where = None,
        *,
        set: Mapping[str, object] | None = None,
        values: Mapping[str, object] | None = None,
        options: Options | None = None,
        **more: Unpack[ChangeArguments],
    ) -> WriteResult:
        """Change columns of the rows that pass `where` (see `scan`; None: of all rows).

        Args:
            set: column → its new value: a text is SQL over the table's columns (`"n + 1"`, `"upper(city)"`, and a text
                itself `"'rome'"`); a `pyarrow.compute` expression (`pc.field("fare") * 2`); a function that is given
                rows as a `pyarrow.Table` and returns an array; any other Python value is a constant.
            values: column → a constant, a text as it is: `values={"city": "rome"}`.
        Raises: ConfigError for key and partition columns and for values that don't fit; WriteConflict when another
            write changed the same file groups meanwhile.
        """
        from pyhudi.table.change import update

        return update(self._handle, where, set, values, options, more)

    def merge(
        self,
        source: TableInput,
        on: str | Sequence[str] | None = None,
        *,
        options: Options | None = None,
        **more: Unpack[ChangeArguments],
    ) -> Merge:
        """Describe a merge of other rows into the table; nothing happens before its `execute`.

        Args:
            source: rows as for `upsert`; with the table's key and partition columns, each key once.
            on: the columns that rows meet by: the record key (the default), with the partition columns or without. Or a
                condition as SQL text, `"target.id = source.ref AND source.ts > target.ts"` (`t` and `s` for short):
                DuckDB or Spark joins the rows then, and values and conditions of clauses are SQL text or constants.
        """
        from pyhudi.table.merge_builder import Merge

        return Merge(self._handle.storage, source, on, self._handle.options(options, more), self._handle.spark)

    # ---- whole partitions

    def insert_overwrite(
        self,
        data: TableInput,
        *,
        partitions: Iterable[str] | None = None,
        options: Options | None = None,
        **more: Unpack[RowArguments],
    ) -> WriteResult:
        """Put rows in the place of all rows of their partitions, in one commit. For `data` and options: `write_hudi`.

        Args:
            partitions: paths of the partitions to overwrite, also those that get no rows; None: those that get rows.
        Raises: ConfigError for rows that go to other partitions than `partitions`, WriteConflict when another write
            changed rows of these partitions meanwhile.
        """
        from pyhudi.table.change import static_partitions
        from pyhudi.table.write import write_rows

        return write_rows(self._handle, data, "insert_overwrite", options, {**more, **static_partitions(partitions)})

    def add_files(
        self,
        paths: PathLike | Sequence[PathLike],
        *,
        operation: Literal["bulk_insert", "insert", "upsert"] | str = "bulk_insert",
        storage_options: Mapping[str, object] | None = None,
        options: Options | None = None,
        **more: Unpack[RowArguments],
    ) -> WriteResult:
        """Add the rows of Parquet files, in one commit.

        The rows are written to base files of the table, batch by batch; the files stay as they are.

        Args:
            paths: files, and folders whose `*.parquet` are meant, of this machine or of any store that tables lie in;
                hidden ones (`_temporary/`, `.a.parquet`) are left out of folders, as Spark leaves them out. Partition
                columns that are not in the files come from the names of their folders (`city=rome/`).
            storage_options: of the files' store, as for `open`; the table has its own.
            operation: upsert replaces rows of known keys; the others don't look for keys, so that the same files added
                twice are there twice.
        Raises: ConfigError for paths without files, and for files of Hudi, Delta and Iceberg tables; SchemaMismatch
            for columns that don't fit the table's; StorageError for a file that can't be read. Nothing is added then.
        """
        from pyhudi.table.imports import add_files

        return add_files(self._handle, paths, operation, storage_options, options, more)

    def overwrite(
        self, data: TableInput, *, where: Where = None, options: Options | None = None, **more: Unpack[RowArguments]
    ) -> WriteResult:
        """Put rows in the place of all rows, or of those that pass `where`, in one commit.

        Args:
            data: as for `write_hudi`. With `where` each row must pass it, and a stream is taken into memory.
            where: which rows go, see `scan`; None: all, as `insert_overwrite_table`. With schema_mode="overwrite" the
                table gets the columns of the data then.
        Raises: ConfigError for rows that don't pass `where`, before anything is written.
        """
        from pyhudi.table.replace_where import overwrite

        return overwrite(self._handle, data, where, options, more)

    def insert_overwrite_table(
        self, data: TableInput, *, options: Options | None = None, **more: Unpack[RowArguments]
    ) -> WriteResult:
        """Put rows in the place of all rows of the table, in one commit. For `data` and options: `write_hudi`."""
        from pyhudi.table.write import write_rows

        return write_rows(self._handle, data, "insert_overwrite_table", options, more)

    def delete_partitions(
        self,
        partitions: str | Iterable[str] = (),
        *,
        matching: str | Iterable[str] = (),
        options: Options | None = None,
        **more: Unpack[ActionArguments],
    ) -> WriteResult:
        """Take whole partitions out of the table, in one commit.

        Args:
            partitions: their paths, as `partitions()` gives them; outer slashes, and whether the names of the fields
                are there (`y=2022`, `2022`), don't matter. Those that are not there are passed over with a warning that
                names the nearest; without any there is no commit.
            matching: patterns of paths, with `*` for any text.
        Raises:  WriteConflict for partitions that a pending compaction or clustering is going to rewrite, ConfigError
            for a path with a star that no partition has.
        """
        from pyhudi.table.change import delete_partitions

        return delete_partitions(self._handle, partitions, matching, options, more)

    def truncate(self, *, options: Options | None = None, **more: Unpack[ActionArguments]) -> WriteResult:
        """Take all rows out of the table, in one commit; the table stays, and its history can be read."""
        return self.delete_partitions(matching="*", options=options, **more)

    def run_ttl(
        self, *, dry_run: bool = False, options: Options | None = None, **more: Unpack[TtlArguments]
    ) -> TtlResult:
        """Delete the partitions that have expired, by `hoodie.partition.ttl.strategy.days.retain` and its like.

        Args:    dry_run: only say which.
        Raises:  WriteConflict for partitions that a pending compaction or clustering is going to rewrite.
        """
        from pyhudi.services.partition_ttl import expire_partitions

        return self._handle.serve(partial(expire_partitions, dry_run=dry_run), options, more, dry_run=dry_run)

    # ---- columns

    def alter(
        self,
        *changes: SchemaChange,
        schema_on_read: bool | None = None,
        options: Options | None = None,
        **more: Unpack[ActionArguments],
    ) -> WriteResult:
        """Change the table's columns by one commit, which has no files: older files are read as the new schema says.

        Args:
            changes: of `pyhudi.schema.changes`: AddColumn, RenameColumn, DropColumn, ChangeType, MoveColumn,
                SetComment, DropNotNull; paths of nested columns have dots. From the first change on that is more than
                new columns at the end, wider numbers and comments, the table has a schema history, as Hudi's
                `ALTER TABLE` makes it with `hoodie.schema.on.read.enable`.
            schema_on_read: True: the table gets a history in any case; False: it may not get one.
        Raises: SchemaMismatch for columns that are not there and changes that rows can't follow; ConfigError when they
            need a history and it may not be; WriteConflict when a write or a service that began meanwhile knows nothing
            of the change.
        """
        from pyhudi.table.change import alter

        return alter(self._handle, changes, schema_on_read, options, more)

    def constraints(self) -> dict[str, str]:
        """The CHECK constraints of the table: name → SQL condition."""
        from pyhudi.actions.constraints import constraints_of

        return constraints_of(self._handle.fresh().config)

    def add_constraint(self, name: str, condition: str, *, options: Options | None = None) -> None:
        """Let no write of PyHudi's bring rows for which a condition is false; unknown, as of null, passes.

        Args:   condition: SQL text over the table's columns, such as `"fare > 0"`.
        Raises: SchemaMismatch when rows of the table break it; ConfigError for a name that is taken, and a condition
            that the columns can't answer.
        """
        from pyhudi.services.constraints import add_constraint

        self._handle.serve(partial(add_constraint, name=name, condition=condition), options, {})

    def drop_constraint(self, name: str, *, options: Options | None = None) -> None:
        """Take a constraint off. Raises ConfigError when there is none of that name."""
        from pyhudi.services.constraints import drop_constraint

        self._handle.serve(partial(drop_constraint, name=name), options, {})

    # ---- table services

    @property
    def maintenance(self) -> Maintenance:
        """The table services in one place: `maintenance.compact()`, `clean()`, `cluster()` and so on."""
        return Maintenance(self)

    @property
    def repair(self) -> TableRepairs:
        """Damage found and mended: `repair.orphans()`, `duplicates()` and so on; nothing changes without
        `dry_run=False`.
        """
        from pyhudi.table.groups import TableRepairs

        return TableRepairs(self._handle)

    @staticmethod
    def repair_properties(
        path: PathLike,
        *,
        properties: Mapping[str, str] | None = None,
        dry_run: bool = True,
        options: Options | None = None,
        storage_options: Mapping[str, object] | None = None,
    ) -> RepairResult:
        """Make missing or damaged `hoodie.properties` again, without which a table can't be opened.

        A whole backup counts first, then what is left of the file, then what the table's files show. The table's lock
        is held meanwhile.

        Args:
            properties: those that count before all others, such as ordering columns, which files don't show.
            dry_run: only return the difference.
            options: Hudi's own keys, such as those of the lock that the table's writers use.
        Raises: TableNotFound for a folder without `.hoodie`; ConfigError when files don't show enough; LockTimeout.
        """
        from pyhudi.table.groups import properties_repaired

        return properties_repaired(open_storage(path, storage_options or {}), properties, dry_run, options)

    def compact(
        self,
        *,
        dry_run: bool = False,
        schedule_only: bool = False,
        instant_time: str | None = None,
        options: Options | None = None,
        **more: Unpack[CompactArguments],
    ) -> CompactionResult:
        """Merge-on-read: merge log files into base files. Plans that wait are executed first.

        Args:
            dry_run: only say what would be compacted. schedule_only: leave the plan for another run or process.
            instant_time: execute just this pending plan.
            options: Hudi's own keys; whatever log files there are is compacted, unless they name a trigger to wait for.
        Raises: UnsupportedTable for a copy-on-write table, WriteConflict when another process is at it.
        """
        from pyhudi.services.compact.compaction import COMPACTION, call

        return self._handle.serve_plan(partial(call, COMPACTION), dry_run, schedule_only, instant_time, options, more)

    def log_compact(
        self,
        *,
        dry_run: bool = False,
        schedule_only: bool = False,
        instant_time: str | None = None,
        options: Options | None = None,
        **more: Unpack[LogCompactArguments],
    ) -> CompactionResult:
        """Merge-on-read: merge the log blocks of slices with many of them; base files stay. See `compact`."""
        from pyhudi.services.compact.compaction import LOG_COMPACTION, call

        return self._handle.serve_plan(
            partial(call, LOG_COMPACTION), dry_run, schedule_only, instant_time, options, more
        )

    def clean(
        self,
        *,
        dry_run: bool = False,
        schedule_only: bool = False,
        instant_time: str | None = None,
        options: Options | None = None,
        **more: Unpack[CleanArguments],
    ) -> CleanResult:
        """Delete files that no allowed query needs: older versions of files, and what overwrites have replaced.

        Writes do it by themselves. What queries are allowed is the policy's to say (`hoodie.clean.policy`), and stays
        with the newest rows and savepoints in any case. Cleans that wait are executed first.

        Args:
            dry_run: only say which files would go, and why. schedule_only: leave the plan for another run or process.
            instant_time: execute just this pending clean.
            options: Hudi's own keys; without a trigger among them whatever there is to clean is cleaned.
        """
        from pyhudi.services.clean.cleaning import clean

        return self._handle.serve_plan(clean, dry_run, schedule_only, instant_time, options, more)

    def archive(
        self, *, dry_run: bool = False, options: Options | None = None, **more: Unpack[ArchiveArguments]
    ) -> ArchiveResult:
        """Move old instants from the active timeline to the history, where `history` still finds them.

        Writes do it by themselves. Nothing goes that a reader, a savepoint, pending work or cleaning still needs.

        Args:    dry_run: only say which instants would go, and what keeps the others.
                 options: Hudi's own keys: how many commits stay (`hoodie.keep.min.commits`, `hoodie.keep.max.commits`).
        """
        from pyhudi.services.archive.archiving import archive

        return self._handle.serve(partial(archive, dry_run=dry_run), options, more, dry_run=dry_run)

    def cluster(
        self,
        *,
        sort_columns: str | Sequence[str] | None = None,
        layout: str | None = None,
        dry_run: bool = False,
        schedule_only: bool = False,
        instant_time: str | None = None,
        options: Options | None = None,
        **more: Unpack[ClusterArguments],
    ) -> ClusteringResult:
        """Rewrite small file groups as larger ones, with rows in the order that options ask for. Plans that wait are
        executed first.

        Args:
            sort_columns: sort rows by these. layout: LINEAR (by one column after the other), ZORDER or HILBERT.
            dry_run: only say what would be rewritten. schedule_only: leave the plan for another run or process.
            instant_time: execute just this pending plan.
            options: Hudi's own keys, such as `hoodie.clustering.plan.strategy.class`.
        Raises: WriteConflict when another process is at it, or has written to a file group of the plan meanwhile.
        """
        from pyhudi.services.cluster.calls import cluster

        return self._handle.serve_plan(
            cluster, dry_run, schedule_only, instant_time, options, more | ordered_by(sort_columns, layout)
        )

    # ---- indexes of the metadata table

    def create_index(
        self,
        name: str,
        *,
        columns: str | Sequence[str] = (),
        index_type: str | None = None,
        expression: str | None = None,
        while_writing: bool = False,
        schedule_only: bool = False,
        options: Options | None = None,
        **more: Unpack[RewriteArguments],
    ) -> IndexInfo:
        """Build an index of the metadata table, which every later write keeps up.

        Other writers wait for the table's lock meanwhile, unless `while_writing` says that they go on. A table without
        a metadata table gets one.

        Args:
            name: of a secondary or expression index; of the others their type: `record_index`, `column_stats`,
                `partition_stats`, `bloom_filters`.
            columns: of a secondary index the one that it finds rows by; of column_stats those that get statistics.
            index_type: None: the type that the name is, else `secondary_index`; of an expression index `column_stats`,
                which is what None means then, or `bloom_filters`.
            expression: of an expression index the function of a column whose values it knows, as SQL text:
                "from_unixtime(ts, 'yyyy-MM-dd')". Times are those of UTC.
            while_writing: the table is read without its lock; needs a lock that all writers share, and version 8.
            schedule_only: leave the plan on the timeline, for `build_indexes` of any process.
            options: Hudi's own keys, such as `hoodie.metadata.global.record.level.index.min.filegroup.count`.
        Raises: ConfigError when there is such an index, or the table can't have it; WriteConflict when the lock was
            lost. Nothing has an index then that it did not have before.
        """
        from pyhudi.table.metadata import build_index

        return build_index(
            self._handle, name, columns, index_type, expression, while_writing, schedule_only, options, more
        )

    def build_indexes(
        self, *, options: Options | None = None, **more: Unpack[RewriteArguments]
    ) -> tuple[IndexInfo, ...]:
        """Build the indexes whose plans wait, while writers go on: those of `schedule_only`, those whose builders died,
        and those that Apache Hudi has scheduled.

        Raises: WriteConflict when another process builds one of them.
        """
        from pyhudi.services.index_building import build_waiting

        return self._handle.serve(build_waiting, options, more)

    def drop_index(
        self, name: str, *, dry_run: bool = False, options: Options | None = None, **more: Unpack[ActionArguments]
    ) -> tuple[str, ...]:
        """Take an index out of the metadata table, by the name that it was made with, or that of its partition.

        Args:    dry_run: only say what would go.
        Returns: the partitions of the metadata table that went.
        Raises:  ConfigError when there is none of that name, or another index needs it.
        """
        from pyhudi.services.indexes import drop_index

        return self._handle.serve(partial(drop_index, name=name, dry_run=dry_run), options, more, dry_run=dry_run)

    def indexes(self) -> IndexList:
        """The indexes that the metadata table has, and those that are being built; prints as a table."""
        from pyhudi.services.indexes import load_indexes

        return load_indexes(self._handle.fresh())

    # ---- undoing

    def rollback(
        self,
        instant_time: AsOf | None = None,
        *,
        to: AsOf | None = None,
        dry_run: bool = False,
        options: Options | None = None,
        **more: Unpack[ActionArguments],
    ) -> RollbackResult:
        """Undo completed writes: the newest one, or all that came after an instant.

        Args:
            instant_time: the write to undo: the newest completed one, which None means, or a pending one.
            to: undo all writes after this commit, newest first, each with a rollback of its own. `restore` undoes them
                as one action.
            dry_run: only say which writes and files would go.
        Raises: TableError when later writes built on it, a savepoint protects it, or cleaning has deleted what it
            replaced; ConfigError when both arguments are given.
        """
        return undo(self._handle, instant_time, to, options, more, dry_run)

    def savepoint(
        self,
        instant_time: AsOf | None = None,
        *,
        user: str = "",
        comment: str = "",
        options: Options | None = None,
        **more: Unpack[ActionArguments],
    ) -> Savepoint:
        """Save a commit (None: the newest): cleaning leaves its files, and `restore` can take the table back to it.

        Raises: TableError when there is no such commit, it is saved already, or files of it were cleaned.
        """
        from pyhudi.services.savepoint import savepoint

        saved = None if instant_time is None else self._handle.commit_time(instant_time)
        return self._handle.serve(partial(savepoint, instant_time=saved, user=user, comment=comment), options, more)

    def delete_savepoint(
        self,
        instant_time: AsOf,
        *,
        dry_run: bool = False,
        options: Options | None = None,
        **more: Unpack[ActionArguments],
    ) -> str:
        """Give a saved commit free again.

        Args:    dry_run: only look it up.
        Returns: its instant time.
        Raises:  TableError when it has no savepoint.
        """
        from pyhudi.services.savepoint import delete_savepoint

        saved = self._handle.commit_time(instant_time)
        service = partial(delete_savepoint, instant_time=saved, dry_run=dry_run)
        return self._handle.serve(service, options, more, dry_run=dry_run)

    @property
    def savepoints(self) -> TableSavepoints:
        """`savepoints()` lists the savepoints, oldest first; `savepoints.create` and `delete` are on the table, too."""
        return TableSavepoints(self)

    def restore(
        self, to: AsOf, *, dry_run: bool = False, options: Options | None = None, **more: Unpack[ActionArguments]
    ) -> RestoreResult:
        """Take the table back to a savepoint, or to another commit whose files are all there.

        Nobody may write meanwhile. Later commits are lost for good. A restore that died is finished by the next write
        or service.

        Args:   to: instant time of the commit, or a moment as `as_of` of `scan` takes it: the newest commit that was
                    complete then. dry_run: only say which writes and files would go.
        Raises: TableError when it can't be restored (later savepoints, cleaned or archived), WriteConflict while others
            write.
        """
        from pyhudi.actions.undo.restore import restore

        call = partial(restore, to=self._handle.commit_time(to), dry_run=dry_run)
        return self._handle.serve(call, options, more, dry_run=dry_run)

    @property
    def lock_audit(self) -> LockAudit:
        """The audit of the storage-based lock: `enable()`, `status()`, `validate()` and so on."""
        from pyhudi.table.groups import LockAudit

        return LockAudit(self._handle)

    # ---- its end and its version

    def drop(self) -> None:
        """Delete the table: its rows, its history, and all else in its folder. Nobody may use it meanwhile.

        A call that died leaves no table; delete the folder to remove its remaining files. Raises StorageError.
        """
        from pyhudi.actions.save_modes import remove_table

        remove_table(self._handle.storage)

    def upgrade(
        self, to: int = 9, *, dry_run: bool = False, options: Options | None = None, **more: Unpack[RewriteArguments]
    ) -> VersionChange:
        """Take the table to a higher version (4 → 5 → 6 → 8 → 9), in place. Nobody may write to it meanwhile.

        Failed writes are undone and log files compacted first. A call that died is finished by calling again.

        Args:   dry_run: only return the steps, with the properties that they change.
        Raises: ConfigError when `to` is no higher version, UnsupportedTable, WriteConflict while others write.
        """
        return change_version(self._handle, to, True, options, more, dry_run)

    def downgrade(
        self, to: int, *, dry_run: bool = False, options: Options | None = None, **more: Unpack[RewriteArguments]
    ) -> VersionChange:
        """Take the table to a lower version (9 → 8 → 6), for readers and writers of older releases. See `upgrade`."""
        return change_version(self._handle, to, False, options, more, dry_run)

    def change_type(
        self, to: str, *, dry_run: bool = False, options: Options | None = None, **more: Unpack[RewriteArguments]
    ) -> TypeChange:
        """Make the table COPY_ON_WRITE or MERGE_ON_READ ("cow", "mor"), in place. Nobody may write to it meanwhile.

        To copy-on-write, failed writes are undone and all log files compacted first. A call that died is finished by
        calling again. Below version 8 a merge-on-read table stores its payload class: that of the options, and
        OverwriteWithLatestAvroPayload without one.

        Args:   dry_run: only say how many file groups would be compacted.
        Raises: ConfigError for another type, UnsupportedTable when a pending clustering holds log files, WriteConflict
            while others write.
        """
        from pyhudi.services.table_type import change_type

        return self._handle.serve(partial(change_type, to=to, dry_run=dry_run), options, more, dry_run=dry_run)

    def set_properties(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        unset: Iterable[str] = (),
        dry_run: bool = False,
        options: Options | None = None,
        **more: Unpack[ActionArguments],
    ) -> PropertiesChange:
        """Set and remove lines of `hoodie.properties`. The file before is kept beside it.

        Args:
            properties: key → value. unset: keys to remove.
            dry_run: only return the differences.
        Raises: ConfigError for what says how files are written (keys, partitioning, formats, type, version), which
            only rewriting would change.
        """
        from pyhudi.services.properties import set_properties

        call = partial(set_properties, set=properties or {}, unset=tuple(unset), dry_run=dry_run)
        return self._handle.serve(call, options, more, dry_run=dry_run)

    if not TYPE_CHECKING:  # a type checker knows the names

        def __getattr__(self, name: str) -> NoReturn:
            """Other libraries' names are told ours. Raises AttributeError."""
            raise no_attribute(self, name)

    def __repr__(self) -> str:
        from pyhudi.table.reports import one_line

        return one_line(self._handle.meta)

    def _repr_html_(self) -> str:
        from pyhudi.table.reports import html

        return html(self._handle.meta)


class Maintenance:
    """The table services of a table: the methods of HudiTable itself, without the others around them."""

    def __init__(self, table: HudiTable) -> None:
        """Use `table.maintenance`."""
        self.compact = table.compact
        self.log_compact = table.log_compact
        self.cluster = table.cluster
        self.clean = table.clean
        self.archive = table.archive
        self.run_ttl = table.run_ttl
        self.build_indexes = table.build_indexes
        self.upgrade = table.upgrade
        self.downgrade = table.downgrade

    def __repr__(self) -> str:
        return f"Maintenance({', '.join(vars(self))})"


class TableSavepoints(CalledList["Savepoint"]):
    """The savepoints of a table: `table.savepoints()` and `list()` load them; it prints as they do. `create` and
    `delete` are methods of HudiTable.
    """

    def __init__(self, table: HudiTable) -> None:
        """Use `table.savepoints`."""
        super().__init__(table._handle)
        self.create = table.savepoint
        self.delete = table.delete_savepoint

    def __call__(self) -> Savepoints:
        """The savepoints, oldest first; prints as a table."""
        from pyhudi.services.savepoint import load_savepoints

        return load_savepoints(self._handle.fresh())

    def list(self) -> Savepoints:
        """The savepoints, oldest first; prints as a table."""
        return self()


@overload
def write_hudi(
    path: PathLike | Storage,
    data: TableInput,
    operation: str | None = None,
    *,
    record_key: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] | None = None,
    ordering: str | Sequence[str] | None = None,
    table_name: str | None = None,
    table_type: str | None = None,
    mode: Literal["append", "overwrite", "replace", "error", "errorifexists"] = "append",
    where: Where = None,
    spark: SparkSession | None = None,
    storage_options: Mapping[str, object] | None = None,
    options: Options | None = None,
    **more: Unpack[WriteArguments],
) -> WriteResult: ...


@overload
def write_hudi(
    path: PathLike | Storage,
    data: TableInput,
    operation: str | None = None,
    *,
    record_key: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] | None = None,
    ordering: str | Sequence[str] | None = None,
    table_name: str | None = None,
    table_type: str | None = None,
    mode: str,
    where: Where = None,
    spark: SparkSession | None = None,
    storage_options: Mapping[str, object] | None = None,
    options: Options | None = None,
    **more: Unpack[WriteArguments],
) -> WriteResult | None: ...


@named
def write_hudi(
    path: PathLike | Storage,
    data: TableInput,
    operation: str | None = None,
    *,
    record_key: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] | None = None,
    ordering: str | Sequence[str] | None = None,
    table_name: str | None = None,
    table_type: str | None = None,
    mode: str = "append",
    where: Where = None,
    spark: SparkSession | None = None,
    storage_options: Mapping[str, object] | None = None,
    options: Options | None = None,
    **more: Unpack[WriteArguments],
) -> WriteResult | None:
    """Write rows to a table, which is made when there is none.

    Args:
        data: a Spark DataFrame; pyarrow Table, RecordBatch, RecordBatchReader or Dataset; pandas DataFrame; an object
            with `__arrow_c_stream__` (polars, DuckDB, Ibis); a list of dicts, a dict of lists; an iterator of batches;
            a function that returns one of these. A write that gives way to another writer reads streams again only
            while they are small, and all else as often as it must.
        operation: upsert, insert, bulk_insert, delete, insert_overwrite, insert_overwrite_table, delete_partition or
            bootstrap (`data` is not read, see `bootstrap`);
            None: what the options say, else upsert (without a record key
            bulk_insert).
        mode: append; overwrite (an insert_overwrite_table: all rows of a table that is there are replaced in one
            commit, which `restore` can undo); replace (a new table in its place; the history goes); ignore or error
            when there is a table already. Spark's `df.write.mode("overwrite")` makes a new table, as in Hudi.
        where: with mode overwrite only these rows are replaced, and `data` must pass it; see `HudiTable.overwrite`.
        options: Hudi's own keys; `more`: Python names of options (`record_key=`, `partition_by=`, `ordering=`, ...; see
            docs/options.md), or Hudi's keys by `**{...}`.
    Returns: the result; None when mode is ignore and the table exists.
    Raises:  HudiError; unless the call returns, nothing became visible.
    """
    from pyhudi.table.bootstrap import bootstrap_by_options, is_bootstrap
    from pyhudi.table.replace_where import write_where
    from pyhudi.table.write import write

    session = spark if spark is not None else getattr(data, "sparkSession", None)
    storage = path if isinstance(path, Storage) else open_place(path, storage_options, session)
    columns = {"record_key": record_key, "partition_by": partition_by, "ordering": ordering}
    table = {"table_name": table_name, "table_type": table_type, "operation": operation}
    write_options = merged_options(options, {**columns, **table, **more})
    check_names(write_options, OptionScope.WRITE, partial(session_options, session))
    if is_bootstrap(write_options):
        return bootstrap_by_options(storage, write_options, overwrite=mode in ("overwrite", "replace"))
    if where is not None:
        return write_where(storage, data, where, write_options, mode, spark)
    return write(storage, data, write_options, mode, spark, keeps_history=True)
