"""Reading a plan without Spark: its files become Arrow batches, in the plan's order.

`read_batches` reads several files side by side, each in these steps:

    file → row groups that may match → batches → the query's schema → rows that match → the result's columns

Memory stays bounded: each file that is read ahead holds one row group and a few batches.

`stale_read_if_missing` raises the error of a query whose planned file has been deleted since: the query came too
late, the table is right.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa

from pyhudi.errors import ConfigError, PathNotFound, StaleRead
from pyhudi.expressions.columns import resolve
from pyhudi.expressions.filters import RowFilter
from pyhudi.expressions.predicates import Column, operands_of
from pyhudi.expressions.statistics.ranges import Ranges, ValueRange, exact_values, may_match
from pyhudi.filegroup.read.matching import KeyFilter
from pyhudi.filegroup.read.slice import read_file_slice
from pyhudi.filegroup.read.split_merge import SplitSlice, merged_log_rows, split_slice
from pyhudi.formats.base import BATCH_ROWS, BaseFileReader, open_base_file
from pyhudi.formats.base.ranges import RangeTest
from pyhudi.model.keys import RECORD_KEY
from pyhudi.queries.change_rows import read_changes
from pyhudi.queries.plan import ReadPlan, ReadSlice
from pyhudi.queries.schema import with_path_values
from pyhudi.queries.skip.keys import MAX_KEYS
from pyhudi.schema.column_mapping import file_columns
from pyhudi.schema.projection import project
from pyhudi.storage.base import Storage
from pyhudi.warnings import collected_warnings, warn_caller

__all__ = [
    "READ_THREADS",
    "base_rows",
    "filtered",
    "key_filter",
    "read_batches",
    "read_log_rows",
    "read_slice",
    "row_group_test",
    "split_read",
    "stale_read_if_missing",
    "trusted_ranges",
    "warn_of",
]


@contextmanager
def stale_read_if_missing(storage: Storage) -> Iterator[None]:
    """Raise StaleRead if the block does not find a file."""
    try:
        yield
    except PathNotFound as error:
        raise StaleRead(
            f"{storage.root}: a file was deleted after the query was planned: {error} Cleaning has "
            "deleted it, or its write was rolled back. Scan again for the newest state; if queries take longer than "
            "files are kept, let cleaning retain more commits."
        ) from error


READ_THREADS = 2
_BATCHES_AHEAD = 2  # per file
_POLL_S = 0.1  # how soon a reading thread notices that its batches are no longer read


def read_batches(
    plan: ReadPlan,
    storage: Storage,
    *,
    threads: int = READ_THREADS,
    batch_rows: int = BATCH_ROWS,
    limit: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a plan, as batches of `plan.schema`, file by file in the plan's order; no empty batches.

    Args:
        threads: the number of files that are read at the same time.
        batch_rows: the maximum number of rows of a batch.
        limit: the maximum number of rows (None: all); reading ends in the middle of a file, before the next is opened.
    Raises: CorruptFile naming the file, SchemaMismatch when old values do not fit the table's type, StaleRead when a
        file has been deleted since.
    """
    if limit is not None:
        if plan.keeps_all_rows:
            threads, batch_rows = 1, max(1, min(batch_rows, limit))  # the first file may well be enough
        yield from _first_rows(read_batches(plan, storage, threads=threads, batch_rows=batch_rows), limit)
        return
    if threads <= 1 or len(plan.slices) <= 1:
        for read in plan.slices:
            yield from read_slice(plan, storage, read, batch_rows=batch_rows)
        return
    stop = threading.Event()
    with ThreadPoolExecutor(threads, thread_name_prefix="hudi-read") as pool:
        try:
            ahead = [_FileAhead.begin(pool, plan, storage, read, batch_rows, stop) for read in plan.slices[:threads]]
            for position in range(len(plan.slices)):
                yield from ahead.pop(0).batches()
                following = position + threads
                if following < len(plan.slices):
                    ahead.append(_FileAhead.begin(pool, plan, storage, plan.slices[following], batch_rows, stop))
        finally:
            stop.set()


def _first_rows(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    while limit > 0 and (batch := next(batches, None)) is not None:
        yield batch.slice(0, limit)
        limit -= batch.num_rows


@dataclass(frozen=True, slots=True)
class _FileAhead:
    """A file that is being read by another thread."""

    buffer: queue.Queue[pa.RecordBatch | None] = field(default_factory=lambda: queue.Queue(_BATCHES_AHEAD))
    work: list[Future[None]] = field(default_factory=list)
    warnings: list[tuple[str, type[Warning]]] = field(default_factory=list)

    @classmethod
    def begin(
        cls,
        pool: ThreadPoolExecutor,
        plan: ReadPlan,
        storage: Storage,
        read: ReadSlice,
        batch_rows: int,
        stop: threading.Event,
    ) -> _FileAhead:
        ahead = cls()
        ahead.work.append(pool.submit(ahead.fill, plan, storage, read, batch_rows, stop))
        return ahead

    def fill(self, plan: ReadPlan, storage: Storage, read: ReadSlice, batch_rows: int, stop: threading.Event) -> None:
        try:
            with collected_warnings(self.warnings):
                for batch in read_slice(plan, storage, read, batch_rows=batch_rows):
                    if not self.put(batch, stop):
                        return
        finally:
            self.put(None, stop)

    def put(self, batch: pa.RecordBatch | None, stop: threading.Event) -> bool:
        """Hand over a batch; False if the reader has stopped."""
        while not stop.is_set():
            try:
                self.buffer.put(batch, timeout=_POLL_S)
            except queue.Full:
                continue
            return True
        return False

    def batches(self) -> Iterator[pa.RecordBatch]:
        while (batch := self.buffer.get()) is not None:
            warn_of(self.warnings)
            yield batch
        warn_of(self.warnings)
        self.work[0].result()  # raises the error of the reading


def warn_of(warnings: list[tuple[str, type[Warning]]]) -> None:
    """Repeat the warnings of another thread for the caller, each once."""
    while warnings:
        warn_caller(*warnings.pop(0))


def read_slice(
    plan: ReadPlan, storage: Storage, read: ReadSlice, *, batch_rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """The rows of one slice that the plan's query returns. Raises StaleRead if one of its files was deleted."""
    with stale_read_if_missing(storage):
        if read.change is not None:
            assert plan.changes is not None
            rows = read_changes(plan.changes, read.change, read.from_path, batch_rows)
        elif read.merges:
            rows = _merged_rows(plan, read, batch_rows)
        else:
            rows = _base_rows(plan, storage, read, batch_rows)
        yield from filtered(plan, rows)


def filtered(plan: ReadPlan, source: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Columns of `plan.read_schema` that pass its filter, as columns of the result."""
    row_filter = RowFilter.of(plan.predicate, plan.read_schema)
    for batch in source:
        rows = row_filter.filter(batch)
        if rows.num_rows:
            yield rows if rows.schema.names == plan.schema.names else rows.select(plan.schema.names)


def read_log_rows(plan: ReadPlan, read: ReadSlice, version_column: str) -> Iterator[pa.RecordBatch]:
    """The rows of a slice that come from its log files, as the query returns them.

    Args:    version_column: the name of an additional last column: the row's name in `ReplacedBaseRows.lost`, or
             null if it has none.
    """
    assert plan.merge is not None
    row_filter = RowFilter.of(plan.predicate, plan.read_schema)
    from_path = read.from_path
    for log_rows in merged_log_rows(plan.merge, read.file_slice, _stored_columns(plan, read)):
        for batch in log_rows.rows.combine_chunks().to_batches():
            rows = with_path_values(batch, from_path, plan.read_schema)
            versions = pa.nulls(len(batch), pa.int64()) if log_rows.versions is None else pa.array(log_rows.versions)
            rows = row_filter.filter(rows.append_column(version_column, versions))
            yield rows.select([*plan.schema.names, version_column])


def split_read(plan: ReadPlan, read: ReadSlice, *, keeps_blocks: bool = False) -> SplitSlice:
    """The numbers of replaced base rows of a slice, and its rows from log files as the query returns them.

    Args:    keeps_blocks: log blocks are cached for later queries.
    Raises:  CorruptFile, StaleRead when a file was deleted.
    """
    assert plan.merge is not None
    with stale_read_if_missing(plan.merge.storage):
        split = split_slice(plan.merge, read.file_slice, _stored_columns(plan, read), keeps_blocks=keeps_blocks)
    from_path = read.from_path
    batches = (
        with_path_values(batch, from_path, plan.read_schema) for batch in split.rows.combine_chunks().to_batches()
    )
    return replace(split, rows=pa.Table.from_batches(filtered(plan, batches), plan.schema))


def _base_rows(plan: ReadPlan, storage: Storage, read: ReadSlice, batch_rows: int) -> Iterator[pa.RecordBatch]:
    with open_base_file(storage, read.base_file.path, check_pages=plan.check_pages) as reader:
        names, convert = _conversion(plan, read, reader)
        keys = key_filter(plan, read)
        if keys is not None and keys.applies_to(reader):
            yield from map(convert, keys.read(reader, names))
        else:
            yield from base_rows(plan, read, reader, row_group_test(plan, read, reader), batch_rows)


def base_rows(
    plan: ReadPlan, read: ReadSlice, reader: BaseFileReader, test: RangeTest | None, batch_rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """The rows of a base file as columns of `plan.read_schema`, unfiltered. `test`: of row groups; None: all."""
    names, convert = _conversion(plan, read, reader)
    return map(convert, reader.batches(names, batch_rows, may_match=test))


def _merged_rows(plan: ReadPlan, read: ReadSlice, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Base and log rows, merged before filters apply, because a row that fails a filter may hide one that passes."""
    assert plan.merge is not None
    from_path = read.from_path
    keys = key_filter(plan, read)
    for batch in read_file_slice(plan.merge, read.file_slice, _stored_columns(plan, read), batch_rows, keys):
        yield with_path_values(batch, from_path, plan.read_schema)


def _stored_columns(plan: ReadPlan, read: ReadSlice) -> list[str]:
    """Columns of `plan.read_schema` that come from files; the key if there are none, to count rows by."""
    assert plan.merge is not None
    from_path, stored = read.from_path, set(plan.merge.schema.names)
    return [name for name in plan.read_schema.names if name in stored and name not in from_path] or [RECORD_KEY]


def _conversion(
    plan: ReadPlan, read: ReadSlice, reader: BaseFileReader
) -> tuple[list[str], Callable[[pa.RecordBatch], pa.RecordBatch]]:
    """The file's columns to read, and a function that turns a batch of them into one of `plan.read_schema`."""
    from_path = read.from_path
    target = plan.read_schema
    stored = pa.schema([f for f in target if f.name not in from_path])
    columns = file_columns(plan.internal_schemas, read.base_file.instant_time, stored.names)
    names = reader.columns_of(columns.names)

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = project(columns.named(batch), stored)
        return with_path_values(rows, from_path, target) if from_path else rows

    # A file that has none of the columns still gives the number of rows.
    return names or reader.schema.names[:1], convert


def row_group_test(plan: ReadPlan, read: ReadSlice, reader: BaseFileReader) -> RangeTest | None:
    """A test if a row group may hold a matching row; None if the statistics don't decide."""
    trusted = trusted_ranges(plan, read, reader)
    return None if trusted is None else lambda ranges: may_match(plan.predicate, trusted(ranges))


def trusted_ranges(
    plan: ReadPlan, read: ReadSlice, reader: BaseFileReader
) -> Callable[[Callable[[Column], ValueRange | None]], Ranges] | None:
    """A function that returns the ranges of a row group against which the filter can be tested; None if there are none.

    Statistics are in the file's types and names; where those are not the query's, they are not used.
    """
    if plan.keeps_all_rows or plan.internal_schemas or not operands_of(plan.predicate):
        return None
    from_path = read.from_path

    def is_trusted(column: Column) -> bool:
        if column.path[0] in from_path:
            return False
        try:
            stored = resolve(column, reader.schema)[1]
        except ConfigError:
            return False
        needed = resolve(column, plan.read_schema)[1]
        return bool(stored == needed or (pa.types.is_integer(stored) and pa.types.is_integer(needed)))

    def trusted(ranges: Callable[[Column], ValueRange | None]) -> Ranges:
        return lambda operand: ranges(operand) if isinstance(operand, Column) and is_trusted(operand) else None

    return trusted


def key_filter(plan: ReadPlan, read: ReadSlice) -> KeyFilter | None:
    """The only values of the table's key field that rows of a slice may have, if the filter names them."""
    name = plan.key_field
    if name is None or plan.keeps_all_rows or plan.internal_schemas or name in read.from_path:
        return None
    if plan.merge is not None and plan.merge.merge.merger is not None:
        return None  # a user's merger may give a record another key
    values = exact_values(plan.predicate, Column((name,)))
    if values is None or len(values) > MAX_KEYS:
        return None
    kind = plan.read_schema.field(name).type
    try:
        pa.array(values, kind)
    except (pa.ArrowException, TypeError, OverflowError):
        return None  # the literals are of another type
    return KeyFilter(name, values, kind)
