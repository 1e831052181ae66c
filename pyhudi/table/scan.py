"""Scan: a query that has been described and not run yet. Made by `HudiTable.scan`; runs when rows are fetched.

A scan sees the table as it was when the scan was made, however often and however late its rows are fetched. When
files of then are deleted before its first use plans the scan, it sees the table as of that use.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from datetime import timezone, tzinfo
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import canonical_keys
from pyhudi.model.options.files import DEFAULT_DAMAGE, DamageOptions
from pyhudi.model.options.merging import DEFAULT_MEMORY, MemoryOptions
from pyhudi.model.options.queries import (
    AS_OF,
    BEGIN,
    DEFAULT_DRIVER_LOG_BYTES,
    DEFAULT_INCREMENTAL,
    END,
    IncrementalOptions,
)
from pyhudi.model.predicate import Constant, columns_of, conjunction, is_opaque, parse_where, split_texts, to_sql
from pyhudi.model.predicate.limits import brief
from pyhudi.queries.count import count_rows
from pyhudi.queries.filters import Where
from pyhudi.queries.incremental import plan_incremental
from pyhudi.queries.incremental_range import incremental_range, time_of_range
from pyhudi.queries.plan import ReadPlan, check_names, check_query_type, plan_snapshot
from pyhudi.queries.query import AsOf, Query, as_of_time, parse_as_of
from pyhudi.queries.snapshot import READ_THREADS, read_batches
from pyhudi.table.calls import Options, TableHandle, in_session_zone, session_zone
from pyhudi.table.libraries import duckdb_relation, pandas_frame, polars_frame, polars_lazy_frame, spark_frame
from pyhudi.table.named_arguments import named_methods
from pyhudi.text_table import html_pairs, readable_bytes

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl

    from pyhudi.actions.validation import TableState
    from pyhudi.spark.names import SparkDataFrame, SparkSession
    from pyhudi.storage.base import Storage
    from pyhudi.table.dataset import HudiDataset

__all__ = ["Scan", "scan", "scan_of_state"]

T = TypeVar("T")
_QUERY_TYPE = "hoodie.datasource.query.type"
_FORMAT = "hoodie.datasource.query.incremental.format"


@named_methods
class Scan:
    """A lazy query of one table. Take rows with one of the `to_` methods, or look at it with `explain`."""

    def __init__(
        self,
        meta: MetaClient,
        *,
        columns: Sequence[str] | None = None,
        where: Where = None,
        as_of: AsOf | None = None,
        query_type: str = "snapshot",
        begin: AsOf | None = None,
        end: AsOf | None = None,
        spark: SparkSession | None = None,
        merger_classes: Sequence[str] = (),
        memory: MemoryOptions = DEFAULT_MEMORY,
        damage: DamageOptions = DEFAULT_DAMAGE,
        use_metadata: bool = True,
        unique_keys: bool = False,
        driver_log_bytes: int = DEFAULT_DRIVER_LOG_BYTES,
        incremental: IncrementalOptions = DEFAULT_INCREMENTAL,
        limit: int | None = None,
        meta_columns: bool = True,
    ) -> None:
        """See `HudiTable.scan`. What can be checked without reading is checked here."""
        check_query_type(query_type)
        self._limit = _checked_limit("limit", limit)
        self._meta = meta
        self._where = parse_where(where)
        self._query = Query(
            columns=columns if columns is None or isinstance(columns, str) else tuple(columns),
            where=self._where,
            zone=(session_zone(spark) if where is not None else None) or timezone.utc,
            as_of=None if as_of is None else parse_as_of(as_of, meta.config.timeline_zone),
            query_type=query_type,
            merger_classes=tuple(merger_classes),
            memory=memory,
            damage=damage,
            use_metadata=use_metadata,
            unique_keys=unique_keys,
            driver_log_bytes=driver_log_bytes,
            meta_columns=meta_columns,
        )
        self._range = incremental_range(meta, query_type, begin, end, as_of, incremental)
        self._spark = spark
        self._planned: ReadPlan | None = None
        self._plan_snapshot: Callable[[MetaClient, Query], ReadPlan] = plan_snapshot
        self._lock = threading.Lock()

    @property
    def plan(self) -> ReadPlan:
        """The files and columns to read; made once. Raises what `plan_snapshot` or `plan_incremental` raises."""
        with self._lock:
            if self._planned is None:
                if self._range is None:
                    self._planned = self._plan_snapshot(self._meta, self._query)
                else:
                    self._planned = plan_incremental(self._meta, self._range, self._query)
            return self._planned

    def narrowed(self, columns: Sequence[str] | None = None, where: Where = None) -> Scan:
        """The same query at the same moment, with these of its columns (None: all) and of its rows those that also
        pass `where`. Raises ConfigError for a filter that can't be read, and one on a scan with a limit: which rows are
        the first ones would change.
        """
        if self._limit is not None and where is not None:
            raise ConfigError("A scan with a limit takes no further filter; fetch its rows, and filter those.")
        scan = copy(self)
        parts = (self._where, parse_where(where))
        scan._where = conjunction(tuple(part for part in parts if part != Constant(True)))
        names = self._query.columns if columns is None else tuple(columns)
        scan._query = replace(self._query, columns=names, where=scan._where)
        scan._planned, scan._lock = None, threading.Lock()
        return scan

    @property
    def storage(self) -> Storage:
        """Where the table is."""
        return self._meta.storage

    @property
    def zone(self) -> tzinfo:
        """Of times in filters that name none."""
        return self._query.zone or timezone.utc

    @property
    def schema(self) -> pa.Schema:
        """Columns and types of the result."""
        return self.plan.schema

    @property
    def checkpoint(self) -> str | None:
        """Of an incremental query: the `begin` of the one that goes on where this one ends, also when it has no rows.
        None for other queries.
        """
        return self.plan.checkpoint

    def to_batches(self, *, threads: int = READ_THREADS) -> pa.RecordBatchReader:
        """The rows as a stream, in bounded memory. `threads`: files that are read at the same time."""
        plan = self.plan
        rows = read_batches(plan, self._meta.storage, threads=threads, limit=self._limit)
        return pa.RecordBatchReader.from_batches(plan.schema, rows)

    def to_arrow(self, *, threads: int = READ_THREADS) -> pa.Table:
        """All rows in memory."""
        return self.to_batches(threads=threads).read_all()

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """All rows as a pandas DataFrame; `options` go to `pyarrow.Table.to_pandas`. Raises MissingLibrary."""
        return pandas_frame(self.to_arrow, options)

    def to_polars(self) -> pl.DataFrame:
        """All rows as a polars DataFrame. Raises MissingLibrary."""
        return polars_frame(self.to_arrow)

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """The rows as a relation of DuckDB, which reads them when it is asked, and again each time.

        Args:   connection: None: DuckDB's own, that of `duckdb.sql`.
        Raises: MissingLibrary.
        """
        return duckdb_relation(self.to_dataset if self._limit is None else self.to_arrow, connection)

    def to_spark(self, spark: SparkSession | None = None) -> SparkDataFrame:
        """The rows as a Spark DataFrame, planned natively by Spark.

        Args:    spark: the session; None: the one that the table was opened with, else the active one.
        Raises:  ConfigError without a session, MissingLibrary.
        """
        frame = spark_frame(spark if spark is not None else self._spark, self._meta, self.plan)
        return frame if self._limit is None else frame.limit(self._limit)

    def head(self, n: int = 5) -> pa.Table:
        """The first `n` rows. No more is read than they need: a row group of the first file, as a rule."""
        return self.first_rows(n).to_arrow(threads=1)

    def first_rows(self, n: int | None) -> Scan:
        """The scan of its first `n` rows; None: of all. Raises ConfigError."""
        scan, limit = copy(self), _checked_limit("n", n)
        limits = [rows for rows in (limit, self._limit) if rows is not None]
        scan._limit = min(limits, default=None)
        return scan

    def count(self) -> int:
        """Number of rows.

        Footers tell it, without a read, where no log files are merged and no filter is given, or one of partition
        columns. With another filter its columns are read, but for row groups that statistics decide.
        """
        rows = count_rows(self.plan, self._meta.storage)
        return rows if self._limit is None else min(rows, self._limit)

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        """True, with rows or without: `if scan` counts none."""
        return True

    def files(self) -> pa.Table:
        """The files that the scan reads, without skipped ones: columns of `FILES_SCHEMA`, paths below the table."""
        from pyhudi.table.reports import FILES_SCHEMA

        rows = [
            {
                "partition_path": slice.group.partition_path,
                "file_id": slice.group.file_id,
                "path": slice.base_file.path if slice.base_file is not None else None,
                "instant_time": slice.base_instant,
                "size_bytes": read.size_bytes,
                "log_files": len(slice.log_files) if read.merges else 0,
            }
            for read in self.plan.slices
            for slice in (read.file_slice,)
        ]
        return pa.Table.from_pylist(rows, FILES_SCHEMA)

    def explain(self) -> str:
        """What will be read and why, as text."""
        plan = self.plan
        config = self._meta.config
        newest = f"commit {plan.newest_commit}" if plan.newest_commit is not None else "no commit yet"
        moment = plan.instant_time or f"now ({newest})"
        if self._range is not None:
            moment = f"{moment}, commits in {self._range}"
        pruned = plan.partitions_total - plan.partitions_read
        lines = [
            f"{plan.query_type} of {self._meta.storage.root} ({config.table_type}, version {config.table_version})",
            f"  as of       {moment}",
            f"  columns     {len(plan.schema)}: {', '.join(plan.schema.names)}",
            f"  filter      {_filter_text(plan)}",
            f"  partitions  {plan.partitions_read} of {plan.partitions_total}"
            + (f", {pruned} pruned" if pruned else ""),
            f"  files       {len(plan.slices)} of {plan.files_total}, {readable_bytes(plan.size_bytes)}",
        ]
        texts = split_texts(plan.predicate)[1]
        lines += [f"  not pushed  {_shortened(text.text)}: by DuckDB or Spark, for each row" for text in texts]
        if self._limit is not None:
            lines.append(f"  limit       {self._limit:,} rows: reading ends with them")
        if plan.files_skipped_by_path:
            lines.append(f"  skipped     {plan.files_skipped_by_path:,} by the paths of partitions ({pruned} pruned)")
        lines += [f"  skipped     {step}" for step in plan.skipped]
        if plan.listed_by_metadata:
            lines.append("  listing     from the metadata table")
        if plan.internal_schemas:
            lines.append("  schema      columns matched by id (schema on read)")
        if self._spark is not None:
            from pyhudi.spark.session import has_file_system  # pyspark is loaded only when it is used

            if not has_file_system(self._spark, self._meta.storage):
                lines.append("  on Spark    by Python tasks: its JVM has no file system for this store")
        return "\n".join(lines)

    def to_dataset(self) -> HudiDataset:
        """The scan as a `pyarrow.dataset.Dataset`, for DuckDB, polars, DataFusion, Ibis and others: they read only the
        columns, partitions, files and row groups that a query needs.

        Raises: ConfigError for a scan with a limit: a query's filter would come before it.
        """
        if self._limit is not None:
            raise ConfigError("A scan with a limit is no dataset: filters would come before it. Fetch its rows.")
        from pyhudi.table.dataset import HudiDataset  # pyarrow.dataset is loaded only when it is used

        return HudiDataset(self)

    def to_polars_lazy(self) -> pl.LazyFrame:
        """The scan as a polars LazyFrame, whose columns, filters and `head` reach the files. Raises MissingLibrary."""
        return polars_lazy_frame(self)

    def __arrow_c_schema__(self) -> object:
        """Columns and types, by Arrow's C interface."""
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Lets polars, DuckDB and others take the rows. Of a requested schema with fewer columns no others are read."""
        from pyhudi.table.dataset import arrow_stream

        return arrow_stream(self, requested_schema)

    def __getstate__(self) -> dict[str, object]:
        """All but what another process can't have: the lock and the session."""
        return {**self.__dict__, "_lock": None, "_spark": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def _repr_html_(self) -> str:
        query = self._query
        pairs = {
            "scan of": self._meta.storage.root,
            "query type": query.query_type,
            "columns": _columns_text(query),
            "where": "every row" if self._where == Constant(True) else _shortened(to_sql(self._where)),
            "as of": "now" if query.as_of is None else str(query.as_of),
            **({} if self._limit is None else {"limit": f"{self._limit:,} rows"}),
        }
        if self._range is not None:
            pairs["commits in"] = str(self._range)
        return html_pairs(pairs.items())

    def __repr__(self) -> str:
        query = self._query
        parts = [f"columns={list(query.columns)}" if query.columns is not None else ""]
        parts.append("" if query.meta_columns or query.columns is not None else "meta_columns=False")
        parts.append("" if self._where == Constant(True) else f"where={brief(to_sql(self._where))}")
        parts.append("" if query.as_of is None else f"as_of={query.as_of!r}")
        if self._range is not None:
            parts.append(f"begin={self._range.begin or 'earliest'!r}")
            parts.append("" if self._range.end is None else f"end={self._range.end!r}")
        parts.append("" if self._limit is None else f"limit={self._limit}")
        parts.append("" if query.query_type == "snapshot" else f"query_type={query.query_type!r}")
        return f"Scan({', '.join([self._meta.storage.root, *filter(None, parts)])})"


def _columns_text(query: Query) -> str:
    if query.columns is not None:
        return ", ".join(query.columns)
    return "all" if query.meta_columns else "all data columns"


_FILTER_CHARS = 2_000  # of a filter that is shown; a list may have thousands of values


def _filter_text(plan: ReadPlan) -> str:
    if plan.keeps_all_rows:
        return "none"
    plain = split_texts(plan.predicate)[0]
    is_unknown = plain == Constant(True) or (is_opaque(plain) and not columns_of(plain))
    how = "each row" if is_unknown else "row groups by their statistics, then each row"
    return f"{_shortened(to_sql(plan.predicate))} ({how})"


def _shortened(text: str) -> str:
    return text if len(text) <= _FILTER_CHARS else f"{text[:_FILTER_CHARS]}..."


def scan(
    handle: TableHandle,
    columns: Sequence[str] | None,
    where: Where,
    as_of: AsOf | None,
    query_type: str | None,
    begin: AsOf | None,
    end: AsOf | None,
    incremental_format: str | None,
    limit: int | None,
    options: Options | None,
    meta_columns: bool = True,
) -> Scan:
    """`HudiTable.scan`."""
    options_read = options or {}
    read_options = handle.read_options(options)
    incremental = read_options.incremental
    returned = _given_once(_FORMAT, "incremental_format", incremental_format, incremental.format, options_read)
    if returned not in ("latest_state", "cdc"):
        raise ConfigError(f"incremental_format={returned!r}: expected 'latest_state' or 'cdc'.")
    kind = _given_once(_QUERY_TYPE, "query_type", query_type, read_options.query_type, options_read)
    if incremental_format is not None and kind != "incremental":
        raise ConfigError(
            f"incremental_format={incremental_format!r} with a query of type {kind}: give "
            "query_type='incremental' and begin, or call HudiTable.changes."
        )
    handle.meta = meta = handle.meta.reload()

    def moment(key: str, name: str, argument: AsOf | None, option: str | None) -> AsOf | None:
        """The meaning of the option in Hudi; the meaning of the argument in Python."""
        time = _given_once(key, name, argument, option, options_read)
        is_misplaced = (key == AS_OF) is (kind == "incremental")  # which is refused below
        if argument is None or time is None or is_misplaced or key in canonical_keys(options_read):
            return time
        time = in_session_zone(time, handle.spark)
        return as_of_time(time, meta) if key == AS_OF else time_of_range(name, time, meta, incremental)

    made = Scan(
        meta,
        columns=columns,
        where=where,
        as_of=moment(AS_OF, "as_of", as_of, read_options.as_of),
        query_type=kind,
        begin=moment(BEGIN, "begin", begin, read_options.begin),
        end=moment(END, "end", end, read_options.end),
        spark=handle.spark,
        merger_classes=read_options.merger_classes,
        memory=read_options.memory,
        damage=read_options.damage,
        use_metadata=read_options.use_metadata,
        unique_keys=read_options.unique_keys,
        driver_log_bytes=read_options.driver_log_bytes,
        incremental=replace(incremental, format=returned),
        limit=limit,
        meta_columns=meta_columns,
    )
    if kind != "incremental" and made._query.as_of is None:
        check_names(made._query, meta)
    return made


LimitT = TypeVar("LimitT", int, "int | None")


def _checked_limit(name: str, limit: LimitT) -> LimitT:
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise ConfigError(f"{name}={limit!r}: expected a number of rows, 0 or more.")
    return limit


def _given_once(key: str, name: str, argument: T | None, option: T, options: Options) -> T:
    """The argument, else the option. Raises ConfigError when the call gives both and they differ."""
    if argument is None:
        return option
    if key in canonical_keys(options) and argument != option:
        raise ConfigError(f"{key} is given twice, as {option!r} in options and as {name}={argument!r}. Keep one.")
    return argument


def scan_of_state(state: TableState) -> Scan:
    """The rows of a table in a state that is not committed yet, for a validator."""
    made = Scan(state.meta)
    made._plan_snapshot = state.plan_with
    return made
