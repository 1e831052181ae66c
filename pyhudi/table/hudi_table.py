"""HudiTable: the public API. A method describes a query or a write and passes it on.

table = HudiTable.create(path, schema, record_key="id", partition_by="day", ordering="updated_at")
table.upsert(rows)                                          # Arrow, pandas, polars, a Spark DataFrame
table.scan(columns=["id"], where="day >= '2024-01-01'").to_arrow()

The class has at most 45 public names, and only methods read storage. Less frequent calls are in groups: `maintenance`,
`inspect`, `savepoints`, `indexes`, `constraints`, `metadata`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, NoReturn, TypeAlias

import pyarrow as pa  # imported here so that a broken PyArrow fails at import time

from pyhudi.meta_client import MetaClient
from pyhudi.model.options import OptionScope, check_names, merged_options
from pyhudi.storage import open_storage
from pyhudi.table.calls import (
    Options,
    PathLike,
    TableHandle,
    open_place,
    open_table,
    ordered_by,
    session_options,
    undo,
)
from pyhudi.table.readable import Readable
from pyhudi.table.wrong_names import checked_methods, no_attribute
from pyhudi.timeline.table_properties import table_exists

if TYPE_CHECKING:
    from pyhudi.actions.result import WriteResult
    from pyhudi.actions.undo.restore_result import RestoreResult, RollbackResult
    from pyhudi.exports.result import ExportResult
    from pyhudi.expressions.binding import Where
    from pyhudi.queries.history import History
    from pyhudi.queries.query import AsOf
    from pyhudi.schema.changes import SchemaChange
    from pyhudi.services.clean.runs import CleanResult
    from pyhudi.services.results import ClusteringResult, CompactionResult
    from pyhudi.spark.names import SparkSession, StructType
    from pyhudi.sync.check.result import SyncCheck
    from pyhudi.sync.result import SyncResult
    from pyhudi.table.at import TableAt
    from pyhudi.table.exports import ExportedFile
    from pyhudi.table.groups.inspection import TableInspection
    from pyhudi.table.groups.lists import TableConstraints, TableIndexes, TableSavepoints
    from pyhudi.table.groups.maintenance import Maintenance
    from pyhudi.table.groups.metadata import TableMetadata
    from pyhudi.table.input import TableInput
    from pyhudi.table.merge_builder import Merge
    from pyhudi.table.scan import Scan

__all__ = ["HudiTable"]

SchemaMode: TypeAlias = Literal["strict", "merge", "overwrite"] | str


@checked_methods
class HudiTable(Readable):
    """One Hudi table. Every call uses the table's current state; a `Scan` keeps the state of the moment it was made."""

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
            options: Hudi's keys for reading, as in `scan`, for every read through this object; options of a call
                override them. Writes use those for their own reads: mergers
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
        table_version: int | None = None,
        index: str | None = None,
        cdc: bool | None = None,
        spark: SparkSession | None = None,
        storage_options: Mapping[str, object] | None = None,
        options: Options | None = None,
    ) -> HudiTable:
        """Create an empty table.

        Args:
            schema: the data columns: a `pyarrow.Schema`, or a Spark StructType.
            record_key, partition_by, ordering: column names; no record key: Hudi's generated keys.
            table_name: None: the folder's name. table_type: COPY_ON_WRITE. table_version: 9, or 6 or 8.
            index: the index that finds keys: SIMPLE, BLOOM, BUCKET, ... cdc: writes log their changes of each row.
            options: Hudi's own keys (docs/options.md).
        Raises: TableExists, ConfigError, SchemaMismatch.
        """
        from pyhudi.table.save import create

        columns = {"record_key": record_key, "partition_by": partition_by, "ordering": ordering}
        table = {"table_name": table_name, "table_type": table_type, "table_version": table_version}
        write_options = merged_options(options, {**columns, **table, "index": index, "cdc": cdc})
        check_names(write_options, OptionScope.WRITE, partial(session_options, spark))
        return cls(create(open_place(path, storage_options, spark), schema, write_options, spark), spark, write_options)

    @staticmethod
    def exists(path: PathLike, *, storage_options: Mapping[str, object] | None = None) -> bool:
        """True when there is a Hudi table at the path."""
        return table_exists(open_storage(path, storage_options or {}))

    @property
    def path(self) -> str:
        """The table's path."""
        return self._handle.storage.root

    def state(self) -> MetaClient:
        """The table's current state, for code that builds on tables: storage, `config` (typed properties) and
        `timeline` at one moment.
        """
        return self._handle.fresh()

    def schema(self) -> pa.Schema:
        """The table's data columns as Arrow types; scans return Hudi's meta columns before them."""
        from pyhudi.table.reports import data_schema

        return data_schema(self._handle.fresh())

    def history(
        self,
        limit: int | None = None,
        *,
        archived: bool = True,
        since: AsOf | None = None,
        until: AsOf | None = None,
    ) -> History:
        """The table's history: the newest `limit` instants (None: all), newest first; prints as a table.

        Args:
            archived: also archived instants.
            since, until: only instant times in this range, both ends included: moments as `as_of` of `scan` takes them,
                so a date is its first moment. With them a long history is read in part.
        """
        from pyhudi.table.reports import history

        return history(self._handle, limit, archived, since, until)

    # ---- groups

    @property
    def inspect(self) -> TableInspection:
        """Facts about the table: `inspect.files()`, `partitions()`, `stats()`, `health()`, `report()` and so on."""
        from pyhudi.table.groups.inspection import TableInspection

        return TableInspection(self._handle)

    @property
    def maintenance(self) -> Maintenance:
        """Other services and changes: `maintenance.archive()`, `upgrade()`, `set_properties()`, `repair` and so on."""
        from pyhudi.table.groups.maintenance import Maintenance

        return Maintenance(self._handle)

    @property
    def savepoints(self) -> TableSavepoints:
        """Commits that stay readable: `savepoints.create()`, `delete()`, `list()`. `restore` returns to one."""
        from pyhudi.table.groups.lists import TableSavepoints

        return TableSavepoints(self._handle)

    @property
    def indexes(self) -> TableIndexes:
        """Indexes of the metadata table: `indexes.create()`, `build()`, `drop()`, `list()`."""
        from pyhudi.table.groups.lists import TableIndexes

        return TableIndexes(self._handle)

    @property
    def constraints(self) -> TableConstraints:
        """CHECK constraints: `constraints.add()`, `drop()`, `list()`."""
        from pyhudi.table.groups.lists import TableConstraints

        return TableConstraints(self._handle)

    @property
    def metadata(self) -> TableMetadata:
        """The metadata table: its records, `validate`, `rebuild` and `drop`."""
        from pyhudi.table.groups.metadata import TableMetadata

        return TableMetadata(self._handle)

    # ---- reading

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: Where = None,
        as_of: AsOf | None = None,
        query_type: str | None = None,
        *,
        limit: int | None = None,
        meta_columns: bool = True,
        options: Options | None = None,
    ) -> Scan:
        """Describe a query; nothing is read until rows are fetched.

        Args:
            columns: names, in the order of the result; None: Hudi's meta columns (`_hoodie_...`) and all data columns.
            where: SQL text (`"day >= '2024-01-01' AND city IN ('x', 'y')"`), a tuple `("city", "=", "x")`, a list of
                tuples that all must hold, or a `pyarrow.compute` expression.
            as_of: the table at that moment: the time of an instant, as `WriteResult`, `history()` and
                `_hoodie_commit_time` show it, or a date or time (text or object; without a zone it is in the Spark
                session's, and without a session in the timeline's).
            query_type: "snapshot" (the default), "read_optimized" for the base files of a merge-on-read table, or
                "incremental" with the range in `options`, as Hudi has it; `changes` takes a range by arguments.
            limit: the maximum number of rows; reading ends with them. Their choice is not defined.
            meta_columns: False: without `columns` only the data columns.
            options: Hudi's keys, those that `spark.read.format("hudi")` takes, such as `hoodie.memory.merge.max.size`;
                they override the session's `spark.hoodie.*`. Times in options keep Hudi's meaning: from table
                version 8 on a range is one of completion times, and `as.of.instant` is compared with instant times.
        Raises: ConfigError for arguments that contradict each other; the rest when rows are fetched.
        """
        from pyhudi.table.scan import scan

        return scan(self._handle, columns, where, as_of, query_type, limit, options, meta_columns)

    def at(self, moment: AsOf) -> TableAt:
        """The table as of a moment, for reading only: `table.at("2024-01-31").to_pandas()`.

        Args:   moment: as `as_of` of `scan`.
        Raises: ConfigError for an invalid moment; TableError for one before the first commit, or with cleaned files.
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

        `checkpoint` of the result is the `since` of the next call. Deletes return rows only with format "cdc".

        Args:
            since, until: the range, as `as_of` of `scan` takes moments: it excludes `since` and includes `until`. None:
                from the first commit on, and to the newest one. Either time of a commit, requested or completed, means
                that commit; a moment separates earlier completed commits from later ones (below table version 8:
                begun).
            format: "latest_state" (the default), rows in their newest version; "cdc", of a table with change logs: all
                changes, as columns op ("i", "u", "d"), ts_ms (the commit), before and after (JSON texts).
            columns, where, meta_columns, options: as in `scan`.
        Raises: ConfigError; RangeNotReadable, when rows are fetched, for commits that were archived or cleaned.
        """
        from pyhudi.table.scan import changes

        return changes(self._handle, since, until, format, columns, where, options, meta_columns)

    def export(
        self,
        file: PathLike,
        columns: Sequence[str] | None = None,
        where: Where = None,
        as_of: AsOf | None = None,
        *,
        options: Options | None = None,
    ) -> ExportedFile:
        """Write rows to a file on this machine: Parquet, CSV or Arrow, by its extension.

        Rows are streamed. The file appears when it is complete; an existing file is replaced.

        Args:   columns: None: the data columns. where, as_of, options: as in `scan`.
        Raises: ConfigError for another kind of file.
        """
        from pyhudi.table.exports import export_rows

        names = self.schema().names if columns is None else columns
        return export_rows(self.scan(names, where, as_of, options=options), os.fspath(file))

    def _selected(self, columns: Sequence[str] | None, where: Where, meta_columns: bool | None) -> Scan:
        return self.scan(columns, where, meta_columns=meta_columns is not False)

    # ---- writing

    def upsert(
        self, data: TableInput, *, schema_mode: SchemaMode | None = None, options: Options | None = None
    ) -> WriteResult:
        """Insert rows with new keys, replace rows with known keys. For `data` and options see `write_hudi`."""
        from pyhudi.table.save import write_rows

        return write_rows(self._handle, data, "upsert", options, {"schema_mode": schema_mode})

    def insert(
        self, data: TableInput, *, schema_mode: SchemaMode | None = None, options: Options | None = None
    ) -> WriteResult:
        """Add rows without looking up their keys; small files are filled first."""
        from pyhudi.table.save import write_rows

        return write_rows(self._handle, data, "insert", options, {"schema_mode": schema_mode})

    def bulk_insert(
        self,
        data: TableInput,
        *,
        sort_columns: str | Sequence[str] | None = None,
        schema_mode: SchemaMode | None = None,
        options: Options | None = None,
    ) -> WriteResult:
        """Add many rows at once, sorted by `sort_columns`, without index lookup and without filling small files."""
        from pyhudi.table.save import write_rows

        arguments = {"sort_columns": sort_columns, "schema_mode": schema_mode}
        return write_rows(self._handle, data, "bulk_insert", options, arguments)

    def delete(
        self,
        data: TableInput | None = None,
        *,
        where: Where = None,
        options: Options | None = None,
    ) -> WriteResult:
        """Delete rows: those whose keys are in `data`, or those that pass `where` (see `scan`).

        `data` needs only the key and partition columns; without the partition columns its keys are deleted in all
        partitions. The result has the number of keys not found. If no row was deleted there is no commit, unless
        `hoodie.allow.empty.commit` is true. Raises ConfigError unless exactly one of the two arguments is set.
        """
        from pyhudi.table.change import delete

        return delete(self._handle, data, where, options)

    def update(
        self,
        where: Where = None,
        *,
        set: Mapping[str, object] | None = None,
        values: Mapping[str, object] | None = None,
        options: Options | None = None,
    ) -> WriteResult:
        """Change columns of the rows that pass `where` (see `scan`; None: of all rows).

        Args:
            set: column → its new value: SQL text over the table's columns (`"n + 1"`, `"upper(city)"`, a constant
                text in quotes `"'rome'"`); a `pyarrow.compute` expression (`pc.field("fare") * 2`); a function that
                takes rows as a `pyarrow.Table` and returns an array; any other Python value is a constant.
            values: column → a constant; text is not SQL here: `values={"city": "rome"}`.
        Raises: ConfigError for key and partition columns and for values that don't fit; WriteConflict if another
            write has changed the same file groups since.
        """
        from pyhudi.table.change import update

        return update(self._handle, where, set, values, options)

    def merge(
        self,
        source: TableInput,
        on: str | Sequence[str] | None = None,
        *,
        options: Options | None = None,
    ) -> Merge:
        """Describe a merge of other rows into the table; `execute` of the result runs it.

        Args:
            source: rows as for `upsert`; with the table's key and partition columns, each key once.
            on: the columns by which rows match: the record key (the default), with or without the partition columns. Or
                a condition as SQL text, `"target.id = source.ref AND source.ts > target.ts"` (`t` and `s` for short):
                DuckDB or Spark then joins the rows, and values and conditions of clauses are SQL text or constants.
        """
        from pyhudi.table.merge_builder import Merge

        return Merge(self._handle.storage, source, on, self._handle.options(options), self._handle.spark)

    def insert_overwrite(
        self,
        data: TableInput,
        *,
        partitions: Iterable[str] | None = None,
        schema_mode: SchemaMode | None = None,
        options: Options | None = None,
    ) -> WriteResult:
        """Replace all rows of the partitions that get rows, in one commit. For `data` and options: `write_hudi`.

        Args:
            partitions: paths of the partitions to overwrite, even if they get no rows; None: those that get rows.
        Raises: ConfigError for rows of other partitions than `partitions`, WriteConflict if another write has
            changed rows of these partitions since.
        """
        from pyhudi.table.change import static_partitions
        from pyhudi.table.save import write_rows

        arguments = {"schema_mode": schema_mode, **static_partitions(partitions)}
        return write_rows(self._handle, data, "insert_overwrite", options, arguments)

    def overwrite(
        self,
        data: TableInput,
        *,
        where: Where = None,
        schema_mode: SchemaMode | None = None,
        options: Options | None = None,
    ) -> WriteResult:
        """Replace all rows, or those that pass `where`, in one commit.

        Args:
            data: as for `write_hudi`. With `where` each row must pass it, and a stream is read into memory.
            where: the rows to replace, see `scan`; None: all, by Hudi's insert_overwrite_table, where
                schema_mode="overwrite" gives the table the columns of the data.
        Raises: ConfigError for rows that don't pass `where`, before anything is written.
        """
        from pyhudi.table.replace_where import overwrite

        return overwrite(self._handle, data, where, options, {"schema_mode": schema_mode})

    def delete_partitions(
        self,
        partitions: str | Iterable[str] = (),
        *,
        matching: str | Iterable[str] = (),
        options: Options | None = None,
    ) -> WriteResult:
        """Delete whole partitions, in one commit.

        Args:
            partitions: their paths, as `inspect.partitions()` returns them; outer slashes and the names of the fields
                (`y=2022`, `2022`) don't matter. Unknown partitions are skipped with a warning that names similar ones;
                without any partition to delete there is no commit.
            matching: patterns of paths, with `*` for any text; only "*": all.
        Raises:  WriteConflict for partitions that a pending compaction or clustering is going to rewrite, ConfigError
            for a path with a star that no partition has.
        """
        from pyhudi.table.change import delete_partitions

        return delete_partitions(self._handle, partitions, matching, options)

    def alter(
        self,
        *changes: SchemaChange,
        schema_on_read: bool | None = None,
        options: Options | None = None,
    ) -> WriteResult:
        """Change the table's columns by one commit without files: older files are read by the new schema.

        Args:
            changes: of `pyhudi.schema`: AddColumn, RenameColumn, DropColumn, ChangeType, MoveColumn,
                SetComment, DropNotNull; paths of nested columns have dots. The first change beyond appending columns,
                widening numbers or editing comments starts a schema history, as Hudi's `ALTER TABLE` does with
                `hoodie.schema.on.read.enable`.
            schema_on_read: True: the table always gets a history; False: it must not get one.
        Raises: SchemaMismatch for unknown columns and changes that existing rows don't allow; ConfigError if they need
            a history that is not allowed; WriteConflict if a write or a service began during the change without it.
        """
        from pyhudi.table.change import alter

        return alter(self._handle, changes, schema_on_read, options)

    # ---- services and undoing

    def compact(
        self,
        *,
        strategy: str | Sequence[str] | None = None,
        dry_run: bool = False,
        schedule_only: bool = False,
        instant_time: str | None = None,
        options: Options | None = None,
    ) -> CompactionResult:
        """Merge-on-read: merge log files into base files. Pending plans are executed first.

        Args:
            strategy: the choice of slices, by Hudi's class names or LOG_FILE_SIZE, LOG_FILE_NUM, DAY_BASED, ...
            dry_run: only return the plan. schedule_only: leave the plan for another run or process.
            instant_time: execute just this pending plan.
            options: Hudi's own keys; all log files are compacted, unless the options name a trigger to wait for.
        Raises: UnsupportedTable for a copy-on-write table, WriteConflict if another process is executing the plan.
        """
        from pyhudi.services.compact.compaction import COMPACTION
        from pyhudi.services.planned import call

        run = partial(call, COMPACTION, dry_run=dry_run, schedule_only=schedule_only, instant_time=instant_time)
        return self._handle.serve(run, options, {"strategy": strategy}, dry_run=dry_run)

    def cluster(
        self,
        *,
        sort_columns: str | Sequence[str] | None = None,
        layout: str | None = None,
        target_file_size_bytes: int | None = None,
        dry_run: bool = False,
        schedule_only: bool = False,
        instant_time: str | None = None,
        options: Options | None = None,
    ) -> ClusteringResult:
        """Rewrite small file groups as larger ones, with rows in the requested order. Pending plans are executed first.

        Args:
            sort_columns: sort rows by these. layout: LINEAR (by one column after the other), ZORDER or HILBERT.
            target_file_size_bytes: the maximum size of new base files.
            dry_run: only return the plan. schedule_only: leave the plan for another run or process.
            instant_time: execute just this pending plan.
            options: Hudi's own keys, such as `hoodie.clustering.plan.strategy.class`.
        Raises: WriteConflict if another process is executing the plan, or has written to one of its file groups.
        """
        from pyhudi.services.cluster.calls import cluster

        arguments = {**ordered_by(sort_columns, layout), "target_file_size_bytes": target_file_size_bytes}
        run = partial(cluster, dry_run=dry_run, schedule_only=schedule_only, instant_time=instant_time)
        return self._handle.serve(run, options, arguments, dry_run=dry_run)

    def clean(
        self,
        *,
        policy: str | None = None,
        commits_retained: int | None = None,
        hours_retained: int | None = None,
        file_versions_retained: int | None = None,
        dry_run: bool = False,
        schedule_only: bool = False,
        instant_time: str | None = None,
        options: Options | None = None,
    ) -> CleanResult:
        """Delete files that no allowed query needs: older versions of files, and replaced ones.

        Writes do it by themselves. The policy (`hoodie.clean.policy`) decides how far back queries may go; the newest
        rows and savepoints are always kept. Pending cleans are executed first.

        Args:
            policy: KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS or KEEP_LATEST_BY_HOURS; None with only one of the
                three numbers: the policy of that number.
            dry_run: only return the files to delete, and why. schedule_only: leave the plan for another run or process.
            instant_time: execute just this pending clean.
            options: Hudi's own keys; all files that can be are cleaned, unless the options name a trigger to wait for.
        """
        from pyhudi.services.clean.cleaning import clean

        numbers = {"hours_retained": hours_retained, "file_versions_retained": file_versions_retained}
        arguments = {"policy": policy, "commits_retained": commits_retained, **numbers}
        run = partial(clean, dry_run=dry_run, schedule_only=schedule_only, instant_time=instant_time)
        return self._handle.serve(run, options, arguments, dry_run=dry_run)

    def rollback(
        self,
        instant_time: AsOf | None = None,
        *,
        to: AsOf | None = None,
        dry_run: bool = False,
        options: Options | None = None,
    ) -> RollbackResult:
        """Undo completed writes: the newest one, or all after an instant.

        Args:
            instant_time: the write to undo: the newest completed one, which None means, or a pending one.
            to: undo all writes after this commit, newest first, each with a separate rollback. `restore` undoes them
                as one action.
            dry_run: only return the writes and files to undo.
        Raises: TableError when later writes built on it, a savepoint protects it, or cleaning has deleted the files
            that it replaced; ConfigError if both arguments are set.
        """
        return undo(self._handle, instant_time, to, options, dry_run)

    def restore(self, to: AsOf, *, dry_run: bool = False, options: Options | None = None) -> RestoreResult:
        """Restore the table to a savepoint, or to another commit whose files all exist.

        No other process may write. Later commits are lost permanently. A dead restore is finished by the next write
        or service.

        Args:   to: instant time of the commit, or a moment as `as_of` of `scan` takes it: the newest commit that was
                    complete then. dry_run: only return the writes and files to undo.
        Raises: TableError when it can't be restored (later savepoints, cleaned or archived), WriteConflict while others
            write.
        """
        from pyhudi.actions.undo.restore import restore

        call = partial(restore, to=self._handle.commit_time(to), dry_run=dry_run)
        return self._handle.serve(call, options, dry_run=dry_run)

    # ---- in other places

    def sync(self, catalog: str, *, options: Options | None = None) -> SyncResult:
        """Register the table in a catalog, or update its entry there: columns, partitions.

        After the first time only partitions that later commits changed are compared. Options make each commit do it
        (docs/catalogs.md).

        Args:    catalog: "hive", a Hive metastore; "glue", AWS Glue's Data Catalog; "bigquery", the list of files that
                     BigQuery reads, with the SQL to run there.
                 options: Hudi's own keys, such as `hoodie.datasource.hive_sync.metastore.uris`.
        Raises:  ConfigError for settings that no catalog supports, TableExists for a table of the same name elsewhere,
                 UnsupportedTable for a column type that the catalog lacks, SchemaMismatch for other partition columns,
                 StorageError when it refuses or does not answer. After an error nothing new is registered.
        """
        from pyhudi.sync.calls import sync_now

        parsed = self._handle.write_options(self._handle.options(options))
        return sync_now(catalog, self._handle.fresh(), parsed.sync)

    def sync_check(self, engine: str | None = None, *, options: Options | None = None) -> SyncCheck:
        """Check which engines read the table correctly, which rows they would miss or show wrongly, and what helps.

        If options name a catalog, its entry is compared with the table. Neither is changed. Rows that only log files
        have are counted if these files are small (docs/engines.md).

        Args:    engine: "athena", "trino", "duckdb" and so on; None: all engines with rules.
                 options: Hudi's own keys, such as `hoodie.datasource.hive_sync.metastore.uris`.
        Returns: a result that is true without problems and prints as a table.
        Raises:  ConfigError for an unknown engine, StorageError when the catalog does not answer.
        """
        from pyhudi.sync.calls import check_now

        parsed = self._handle.write_options(self._handle.options(options))
        return check_now(engine, self._handle.fresh(), parsed)

    def export_metadata(self, format: str, *, options: Options | None = None) -> ExportResult:
        """Write metadata of another format over the table's own files, so that its engines can read the table.

        Each commit since the last export becomes a separate version. Merge-on-read tables are exported as their base
        files. Options make each commit do it (docs/exports.md).

        Args:    format: "delta" or "iceberg".
                 options: Hudi's own keys, and PyHudi's for exports.
        Raises:  ConfigError for another format, MissingLibrary, UnsupportedTable and SchemaMismatch if the format can't
                     express the table, WriteConflict if other exports keep being faster, StorageError.
        """
        from pyhudi.exports.export import export_now

        parsed = self._handle.write_options(self._handle.options(options))
        return export_now(format, self._handle.fresh(), parsed.export)

    def drop(self) -> None:
        """Delete the table: its rows, its history, and everything else in its folder. No other process may use it.

        A dead call leaves no table; delete the folder to remove its remaining files. Raises StorageError.
        """
        from pyhudi.actions.save_modes import remove_table

        remove_table(self._handle.storage)

    if not TYPE_CHECKING:  # a type checker knows the names

        def __getattr__(self, name: str) -> NoReturn:
            """Suggest PyHudi's name for names of earlier releases and other libraries. Raises AttributeError."""
            raise no_attribute(self, name)

    def __repr__(self) -> str:
        from pyhudi.table.reports import one_line

        return one_line(self._handle.meta)

    def _repr_html_(self) -> str:
        from pyhudi.table.reports import html

        return html(self._handle.meta)
