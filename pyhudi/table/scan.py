"""Scan: the description of a query. Made by `HudiTable.scan`; the query runs when rows are fetched.

A scan sees the table as it was when the scan was made, even if its rows are fetched later or repeatedly. If its files
are deleted before its first use, which plans it, it sees the table as of that use.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from datetime import timezone, tzinfo
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from pyhudi.display import html_pairs, readable_bytes
from pyhudi.errors import ConfigError
from pyhudi.expressions.binding import Where
from pyhudi.expressions.predicates import Constant, columns_of, conjunction, is_opaque, split_texts
from pyhudi.expressions.where import parse_where
from pyhudi.expressions.where_text import to_sql
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import ReadOptions, canonical_keys
from pyhudi.model.options.queries import AS_OF, BEGIN, END
from pyhudi.queries.count import count_rows
from pyhudi.queries.incremental import plan_incremental
from pyhudi.queries.incremental_range import incremental_range, time_of_range
from pyhudi.queries.plan import ReadPlan, check_names, check_query_type, plan_snapshot
from pyhudi.queries.query import ALL_ROWS, EARLIEST, AsOf, Query, as_of_time, parse_as_of
from pyhudi.queries.snapshot import READ_THREADS, read_batches
from pyhudi.redaction import brief
from pyhudi.table.calls import Options, TableHandle, in_session_zone, session_zone
from pyhudi.table.readable import Readable
from pyhudi.table.wrong_names import checked_methods

if TYPE_CHECKING:
    from pyhudi.actions.validation import TableState
    from pyhudi.spark.names import SparkSession
    from pyhudi.storage.base import Storage

__all__ = ["Scan", "changes", "scan", "scan_of_state"]

T = TypeVar("T")
_QUERY_TYPE = "hoodie.datasource.query.type"
_FORMAT = "hoodie.datasource.query.incremental.format"


@checked_methods
class Scan(Readable):
    """A lazy query of one table. Get rows with one of the `to_` methods, or its plan with `explain`."""

    _meta_columns_in_head = None

    def __init__(
        self,
        meta: MetaClient,
        query: Query,
        *,
        spark: SparkSession | None = None,
        limit: int | None = None,
        plan_rows: Callable[[MetaClient, Query], ReadPlan] = plan_snapshot,
    ) -> None:
        """Use `HudiTable.scan` and `changes`. `plan_rows`: plans a query that is not incremental.

        Checks that need no reading are made here.
        """
        check_query_type(query.query_type)
        self.limit = _checked_limit("limit", limit)
        self.meta, self.spark = meta, spark
        self._where, self._query = parse_where(query.where), query
        self._planned: ReadPlan | None = None
        self._plan_rows = plan_rows
        self._lock = threading.Lock()

    @property
    def plan(self) -> ReadPlan:
        """The files and columns to read; made once. Raises what `plan_snapshot` or `plan_incremental` raises."""
        with self._lock:
            if self._planned is None:
                commits = self._query.commits
                if commits is None:
                    self._planned = self._plan_rows(self.meta, self._query)
                else:
                    self._planned = plan_incremental(self.meta, commits, self._query)
            return self._planned

    def narrowed(self, columns: Sequence[str] | None = None, where: Where = None) -> Scan:
        """The same query at the same moment with some of its columns (None: all), and only the rows that also pass
        `where`. Raises ConfigError for an invalid filter, and for a filter on a scan with a limit, whose first rows
        would change.
        """
        if self.limit is not None and where is not None:
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
        """The table's storage."""
        return self.meta.storage

    @property
    def zone(self) -> tzinfo:
        """The zone of times without one in filters."""
        return self._query.zone or timezone.utc

    @property
    def schema(self) -> pa.Schema:
        """Columns and types of the result."""
        return self.plan.schema

    @property
    def checkpoint(self) -> str | None:
        """For an incremental query the `begin` of the next one, which starts where this one ends, even without rows;
        None for other queries.
        """
        return self.plan.checkpoint

    def _selected(self, columns: Sequence[str] | None, where: Where, meta_columns: bool | None) -> Scan:
        scan = self if columns is None and where is None else self.narrowed(columns, where)
        if scan._query.columns is not None or meta_columns in (None, scan._query.meta_columns):
            return scan
        scan = scan.narrowed()
        scan._query = replace(scan._query, meta_columns=bool(meta_columns))
        return scan

    def read_rows(self, threads: int | None = None) -> pa.RecordBatchReader:
        """The rows as a stream; see `to_batches`."""
        plan = self.plan
        rows = read_batches(plan, self.meta.storage, threads=threads or READ_THREADS, limit=self.limit)
        return pa.RecordBatchReader.from_batches(plan.schema, rows)

    def first_rows(self, n: int | None) -> Scan:
        """The scan of its first `n` rows; None: all rows. Raises ConfigError."""
        scan, limit = copy(self), _checked_limit("n", n)
        limits = [rows for rows in (limit, self.limit) if rows is not None]
        scan.limit = min(limits, default=None)
        return scan

    def count_rows(self) -> int:
        """Number of rows; see `count`."""
        rows = count_rows(self.plan, self.meta.storage)
        return rows if self.limit is None else min(rows, self.limit)

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
        """The plan as text: the files to read, and why others are skipped."""
        plan = self.plan
        config = self.meta.config
        newest = f"commit {plan.newest_commit}" if plan.newest_commit is not None else "no commit yet"
        moment = plan.instant_time or f"now ({newest})"
        if self._query.commits is not None:
            moment = f"{moment}, commits in {self._query.commits}"
        pruned = plan.partitions_total - plan.partitions_read
        lines = [
            f"{plan.query_type} of {self.meta.storage.root} ({config.table_type}, version {config.table_version})",
            f"  as of       {moment}",
            f"  columns     {len(plan.schema)}: {', '.join(plan.schema.names)}",
            f"  filter      {_filter_text(plan)}",
            f"  partitions  {plan.partitions_read} of {plan.partitions_total}"
            + (f", {pruned} pruned" if pruned else ""),
            f"  files       {len(plan.slices)} of {plan.files_total}, {readable_bytes(plan.size_bytes)}",
        ]
        texts = split_texts(plan.predicate)[1]
        lines += [f"  not pushed  {_shortened(text.text)}: evaluated for each row" for text in texts]
        if self.limit is not None:
            lines.append(f"  limit       {self.limit:,} rows: reading ends with them")
        if plan.files_skipped_by_path:
            lines.append(f"  skipped     {plan.files_skipped_by_path:,} by the paths of partitions ({pruned} pruned)")
        lines += [f"  skipped     {step}" for step in plan.skipped]
        if plan.listed_by_metadata:
            lines.append("  listing     from the metadata table")
        if plan.internal_schemas:
            lines.append("  schema      columns matched by id (schema on read)")
        if self.spark is not None:
            from pyhudi.spark.session import has_file_system  # pyspark is loaded only when it is used

            if not has_file_system(self.spark, self.meta.storage):
                lines.append("  on Spark    by Python tasks: its JVM has no file system for this store")
        return "\n".join(lines)

    def __getstate__(self) -> dict[str, object]:
        """The state without the lock and the session, which can't be pickled."""
        return {**self.__dict__, "_lock": None, "spark": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def _repr_html_(self) -> str:
        query = self._query
        pairs = {
            "scan of": self.meta.storage.root,
            "query type": query.query_type,
            "columns": _columns_text(query),
            "where": "every row" if self._where == Constant(True) else _shortened(to_sql(self._where)),
            "as of": "now" if query.as_of is None else str(query.as_of),
            **({} if self.limit is None else {"limit": f"{self.limit:,} rows"}),
        }
        if query.commits is not None:
            pairs["commits in"] = str(query.commits)
        return html_pairs(pairs.items())

    def __repr__(self) -> str:
        query = self._query
        parts = [f"columns={list(query.columns)}" if query.columns is not None else ""]
        parts.append("" if query.meta_columns or query.columns is not None else "meta_columns=False")
        parts.append("" if self._where == Constant(True) else f"where={brief(to_sql(self._where))}")
        parts.append("" if query.as_of is None else f"as_of={query.as_of!r}")
        if query.commits is not None:
            parts.append(f"begin={query.commits.begin or 'earliest'!r}")
            parts.append("" if query.commits.end is None else f"end={query.commits.end!r}")
        parts.append("" if self.limit is None else f"limit={self.limit}")
        parts.append("" if query.query_type == "snapshot" else f"query_type={query.query_type!r}")
        return f"Scan({', '.join([self.meta.storage.root, *filter(None, parts)])})"


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
    limit: int | None,
    options: Options | None,
    meta_columns: bool,
) -> Scan:
    """`HudiTable.scan`."""
    read_options = handle.read_options(options)
    kind = _given_once(_QUERY_TYPE, "query_type", query_type, read_options.query_type, options)
    check_query_type(kind)
    handle.meta = meta = handle.meta.reload()
    time = _given_once(AS_OF, "as_of", as_of, read_options.as_of, options)
    if as_of is not None and kind != "incremental" and AS_OF not in canonical_keys(options or {}):
        time = as_of_time(in_session_zone(as_of, handle.spark), meta)  # its meaning in Python, not as an option
    begin, end = read_options.begin, read_options.end
    commits = incremental_range(meta, kind, begin, end, time, read_options.incremental)
    query = _query(handle, columns, where, read_options, meta_columns)
    as_of = None if time is None else parse_as_of(time, meta.config.timeline_zone)
    query = replace(query, as_of=as_of, query_type=kind, commits=commits)
    if commits is None and as_of is None:
        check_names(query, meta)
    return Scan(meta, query, spark=handle.spark, limit=limit)


def changes(
    handle: TableHandle,
    since: AsOf | None,
    until: AsOf | None,
    format: str | None,
    columns: Sequence[str] | None,
    where: Where,
    options: Options | None,
    meta_columns: bool,
) -> Scan:
    """`HudiTable.changes`."""
    read_options = handle.read_options(options)
    incremental = read_options.incremental
    returned = _given_once(_FORMAT, "format", format, incremental.format, options)
    if returned not in ("latest_state", "cdc"):
        raise ConfigError(f"format={returned!r}: expected 'latest_state' or 'cdc'.")
    incremental = replace(incremental, format=returned)
    handle.meta = meta = handle.meta.reload()

    def moment(key: str, name: str, argument: AsOf | None, option: str | None) -> AsOf | None:
        """The meaning of the option in Hudi; the meaning of the argument in Python."""
        time = _given_once(key, name, argument, option, options)
        if argument is None or key in canonical_keys(options or {}):
            return time
        return time_of_range(name, in_session_zone(argument, handle.spark), meta, incremental)

    begin = moment(BEGIN, "since", since, read_options.begin)
    end = moment(END, "until", until, read_options.end)
    first = EARLIEST if begin is None else begin
    commits = incremental_range(meta, "incremental", first, end, read_options.as_of, incremental)
    query = _query(handle, columns, where, read_options, meta_columns)
    return Scan(meta, replace(query, query_type="incremental", commits=commits), spark=handle.spark)


def _query(
    handle: TableHandle, columns: Sequence[str] | None, where: Where, options: ReadOptions, meta_columns: bool
) -> Query:
    """The query of a call, made once, at the entry point."""
    return replace(
        Query.read_by(options),
        columns=columns if columns is None or isinstance(columns, str) else tuple(columns),
        where=parse_where(where),
        zone=(session_zone(handle.spark) if where is not None else None) or timezone.utc,
        meta_columns=meta_columns,
    )


LimitT = TypeVar("LimitT", int, "int | None")


def _checked_limit(name: str, limit: LimitT) -> LimitT:
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise ConfigError(f"{name}={limit!r}: expected a number of rows, 0 or more.")
    return limit


def _given_once(key: str, name: str, argument: T | None, option: T, options: Options | None) -> T:
    """The argument, else the option. Raises ConfigError when the call gives both and they differ."""
    if argument is None:
        return option
    if key in canonical_keys(options or {}) and argument != option:
        raise ConfigError(f"{key} is given twice, as {option!r} in options and as {name}={argument!r}. Keep one.")
    return argument


def scan_of_state(state: TableState) -> Scan:
    """The rows of a table in a state that is not committed yet, for a validator."""
    return Scan(state.meta, ALL_ROWS, plan_rows=state.plan_with)
