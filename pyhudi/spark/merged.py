"""Slices with log files in Spark without passing base rows through Python: a native scan of the base files without
replaced rows, and the rows of the log files.

    base       Spark's Parquet scan without the replaced rows
    log rows   rows of the log files

Columns are pruned and filters pushed down in the scan; of base files only keys and ordering values are read otherwise.

Small log files are read once, when the frame is made (`_split_here`), and cached for the next frame of the same files.
Replaced rows are then flags, one value for all files that every task gets: a row's flag is found by its file's size
(only a remainder of it counts) and its row index. With many flags, files of equal size, or an older Spark, the rows'
numbers are broadcast instead, and a left anti join drops the rows; a number consists of the file's name and the row
index. Log rows remain Arrow batches.

Larger log files are read by Python tasks, when rows are fetched (`_split_by_tasks`): one job for the numbers, including
those of losing log records, and one for the rows, with a left anti join on their numbers; both joins share one
broadcast.
Source: docs/decisions/0002-two-engines.md,
docs/decisions/0003-table-data-stays-out-of-the-jvm.md; measured in docs/measurements.md.
"""

from __future__ import annotations

import heapq
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyhudi.engine.base import TaskContext
from pyhudi.errors import HudiError, UnsupportedTable
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.filegroup.read.split_merge import replaced_base_rows
from pyhudi.queries.plan import ReadPlan, ReadSlice
from pyhudi.queries.snapshot import read_log_rows, split_read
from pyhudi.spark import capabilities
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.split_cache import SplitCache, split_key
from pyhudi.spark.worker_python import is_on_connect
from pyhudi.storage.local import LocalStorage

__all__ = ["ROADS", "DropReplaced", "in_two_parts", "split_slices"]

DropReplaced: TypeAlias = Callable[[DataFrame], DataFrame]  # returns a scan of base files without replaced rows
Split: TypeAlias = tuple[
    DropReplaced | None, DataFrame | None
]  # None: no row is replaced; log rows, None: there are none

_SPLITS = SplitCache[Split]()  # of small log files

_NUMBER = "_pyhudi_row_number"
_NUMBER_SCHEMA = pa.schema([(_NUMBER, pa.int64())])
_FILE_BIT = 31  # a number is the file's checksum above, the row's index below; for a log record all bits are inverted
_ROWS_MAX = 1 << _FILE_BIT
_LOG_BYTES_MAX = 128 << 20  # replaced rows are broadcast: 8 bytes each, for log files with some 100 bytes per row
_ROWS_BYTES = 64 << 20  # of Arrow data, which a frame keeps in memory
_CONNECT_BYTES = 1 << 20
_CACHED_LOG_BYTES = 12 << 20  # of all log files; in memory blocks take two to three times as much
_SLICES_HERE = 256  # each takes some milliseconds in this process, even a small one
_FILES_AT_ONCE, _OBJECTS_AT_ONCE = 2, 8
_BATCHED_ROWS = 1_000  # from here on rows stay Arrow batches: Spark takes longer to send its own rows with tasks
_FLAGS = 4 << 20  # of one byte each, in every task
_TASK_BYTES = 16 << 20  # of log files: a Python task costs some 30 ms, so a few small slices share one
_NAME_AS_IN_URIS = re.compile(r"[\w.-]+", re.ASCII)


def in_two_parts(plan: ReadPlan) -> tuple[ReadSlice, ...]:
    """The slices with log files that can be read this way.

    Excluded are slices without a base file or with ORC, whose rows Spark doesn't number; files matched by column id;
    files whose numbers might collide with another file's; and logs with too many records for a broadcast.
    """
    merging = [read for read in plan.slices if read.merges and read.file_slice.base_file is not None]
    logs_bytes = sum(_log_bytes(read) for read in merging)
    if plan.internal_schemas or logs_bytes > _LOG_BYTES_MAX:
        return ()
    sharing = Counter(_file_number(read) for read in merging)
    return tuple(
        read
        for read in merging
        if read.base_file.name.endswith(".parquet")
        and _NAME_AS_IN_URIS.fullmatch(read.base_file.name)
        and sharing[_file_number(read)] == 1
    )


def split_slices(engine: SparkEngine, plan: ReadPlan, reads: Sequence[ReadSlice]) -> Split:
    """Both parts of slices with log files, by the first of ROADS that applies."""
    for road in ROADS:
        split = road.split(engine, plan, reads) if road.takes(engine, plan, reads) else None
        if split is not None:
            return split
    raise AssertionError("the last road applies to all slices")


def _without_numbers(replaced: DataFrame, scan: DataFrame) -> DataFrame:
    """A scan of base files without the rows whose numbers are in the other frame."""
    number = F.shiftleft(F.crc32(F.col("_metadata.file_name")), _FILE_BIT) + F.col("_metadata.row_index")
    return scan.withColumn(_NUMBER, number).join(F.broadcast(replaced), on=_NUMBER, how="left_anti").drop(_NUMBER)


def _without_flagged(flags: DataFrame, modulus: int, scan: DataFrame) -> DataFrame:
    """A scan of base files without the rows that are flagged: `flags` has one value, an array for each file."""
    file = (F.col("_metadata.file_size") % F.lit(modulus)).cast("int")
    flag = F.get(F.get(flags.scalar(), file), F.col("_metadata.row_index").cast("int"))
    return scan.where(~F.coalesce(flag, F.lit(False)))


# ---- small log files


def _logs_are_small(engine: SparkEngine, plan: ReadPlan, reads: Sequence[ReadSlice]) -> bool:
    # Connect sends a relation to the server with each plan.
    log_bytes = min(plan.driver_log_bytes, _CONNECT_BYTES) if is_on_connect(engine.spark) else plan.driver_log_bytes
    # An older Spark takes no Arrow table, so its Python workers would have to pass the rows.
    takes_arrow = capabilities.PRESENT.takes_arrow
    return takes_arrow and len(reads) <= _SLICES_HERE and sum(map(_log_bytes, reads)) <= log_bytes


def _split_here(engine: SparkEngine, plan: ReadPlan, reads: Sequence[ReadSlice]) -> Split | None:
    """Both parts as relations; None if they turn out to be large.

    Unreadable files are left to the tasks as well, so that errors are raised when rows are fetched.
    """
    key = split_key(engine.spark, plan, reads)
    split = None if key is None else _SPLITS.get(key)
    if split is not None:
        return split
    try:
        parts = _parts(plan, reads, _CONNECT_BYTES if is_on_connect(engine.spark) else _ROWS_BYTES)
    except (HudiError, OSError):
        return None
    if parts is None:
        return None
    rows = pa.concat_tables([part.rows for part in parts])
    split = (
        _drop_replaced(engine, reads, parts) if any(len(part.replaced) for part in parts) else None,
        engine.from_arrow(rows, in_batches=len(rows) >= _BATCHED_ROWS) if len(rows) else None,
    )
    if key is not None:
        _SPLITS.put(key, split, rows.nbytes + sum(part.flags for part in parts))
    return split


def _drop_replaced(engine: SparkEngine, reads: Sequence[ReadSlice], parts: Sequence[_Part]) -> DropReplaced:
    """Drop replaced rows by flags if these are few, which makes reads 1.3 to 1.8 times as fast; else by numbers."""
    sizes = np.array([part.base_bytes for part in parts])
    flags = sum(part.flags for part in parts)
    if capabilities.PRESENT.has_scalar_frames and flags <= _FLAGS and len(np.unique(sizes)) == len(sizes):
        modulus = _modulus(sizes)
        return partial(_without_flagged, engine.from_arrow(_flags(parts, modulus)), modulus)
    numbers = np.concatenate([part.replaced + _file_number(read) for read, part in zip(reads, parts, strict=True)])
    return partial(_without_numbers, engine.from_arrow(pa.table([pa.array(numbers)], schema=_NUMBER_SCHEMA)))


def _modulus(sizes: npt.NDArray[np.int64]) -> int:
    """A modulus by which each of the different sizes has another remainder."""
    modulus = max(len(sizes), len(sizes) ** 2 // 2)  # from here on more than one number in three is one
    while len(np.unique(sizes % modulus)) < len(sizes):
        modulus += 1
    return modulus


def _flags(parts: Sequence[_Part], modulus: int) -> pa.Table:
    """One value: for each remainder of a file's size, an array that is true at the row indexes of replaced rows."""
    lengths = np.zeros(modulus, np.int32)
    for part in parts:
        lengths[part.base_bytes % modulus] = part.flags
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    is_replaced = np.zeros(starts[-1], np.bool_)
    for part in parts:
        is_replaced[part.replaced + starts[part.base_bytes % modulus]] = True
    by_file = pa.ListArray.from_arrays(pa.array(starts), pa.array(is_replaced))
    value: pa.Array = by_file
    return pa.table({"replaced": pa.ListArray.from_arrays([0, modulus], value)})


@dataclass(frozen=True, slots=True)
class _Part:
    """The parts of a slice. `base_bytes`: the size of its base file; `flags`: the number of the last replaced row and
    of those before it.
    """

    replaced: npt.NDArray[np.int64]
    rows: pa.Table
    base_bytes: int

    @property
    def flags(self) -> int:
        return int(self.replaced.max()) + 1 if len(self.replaced) else 0


def _parts(plan: ReadPlan, reads: Sequence[ReadSlice], most_bytes: int) -> list[_Part] | None:
    """Both parts of all slices; None as soon as they exceed the bytes."""
    assert plan.merge is not None
    storage, parts, size_bytes = plan.merge.storage, list[_Part](), 0

    def part_of(read: ReadSlice) -> _Part:
        split, file = split_read(plan, read, keeps_blocks=are_few), storage.stat(read.base_file.path)
        return _Part(split.replaced, split.rows, -1 if file is None else file.size_bytes)

    are_few = sum(map(_log_bytes, reads)) <= _CACHED_LOG_BYTES
    threads = _FILES_AT_ONCE if isinstance(storage, LocalStorage) else _OBJECTS_AT_ONCE
    with ThreadPoolExecutor(threads, thread_name_prefix="hudi-logs") as pool:
        try:
            for part in pool.map(part_of, reads):
                size_bytes += part.rows.nbytes + part.flags // 8
                if size_bytes > most_bytes or part.flags > _ROWS_MAX:
                    return None
                parts.append(part)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return parts


# ---- by tasks


def _split_by_tasks(engine: SparkEngine, plan: ReadPlan, reads: Sequence[ReadSlice]) -> Split:
    assert plan.merge is not None
    shares = _shares(engine, reads)
    replaced = engine.fan_out(shares, FindReplacedRows(plan.merge), _NUMBER_SCHEMA)
    schema = plan.schema.append(_NUMBER_SCHEMA.field(0))
    rows = engine.fan_out(shares, ReadLogRows(replace(plan, slices=())), schema)
    if plan.merge.merge.by_ordering:  # otherwise no log record ever loses
        rows = rows.join(F.broadcast(replaced), on=_NUMBER, how="left_anti")
    return partial(_without_numbers, replaced), rows.drop(_NUMBER)


def _shares(engine: SparkEngine, reads: Sequence[ReadSlice]) -> list[tuple[ReadSlice, ...]]:
    """The slices in shares of about equal size, one per task."""
    tasks = sum(_log_bytes(read) for read in reads) // _TASK_BYTES
    shares: list[list[ReadSlice]] = [[] for _ in range(min(len(reads), max(engine.parallelism, tasks)))]
    emptiest = [(0, number) for number in range(len(shares))]
    for read in sorted(reads, key=_log_bytes, reverse=True):
        size_bytes, number = emptiest[0]
        shares[number].append(read)
        heapq.heapreplace(emptiest, (size_bytes + read.size_bytes, number))
    return [tuple(share) for share in shares]


def _always(engine: SparkEngine, plan: ReadPlan, reads: Sequence[ReadSlice]) -> bool:
    return True


class SplitRoad(NamedTuple):
    """One way to both parts of slices. `takes`: tells if it applies; `split`: returns None if it turns out not to."""

    takes: Callable[[SparkEngine, ReadPlan, Sequence[ReadSlice]], bool]
    split: Callable[[SparkEngine, ReadPlan, Sequence[ReadSlice]], Split | None]


ROADS = (
    SplitRoad(_logs_are_small, _split_here),  # read once, for this frame and the next ones of the same files
    SplitRoad(_always, _split_by_tasks),  # for rows that would fill the driver's memory, or be sent with each plan
)


def _log_bytes(read: ReadSlice) -> int:
    return sum(log.size_bytes for log in read.file_slice.log_files)


def _file_number(read: ReadSlice) -> int:
    return zlib.crc32(read.base_file.name.encode()) << _FILE_BIT


@dataclass(frozen=True, slots=True)
class FindReplacedRows:
    """Fan-out work: numbers of replaced base rows, and of losing log records."""

    spec: SliceSpec

    def __call__(self, context: TaskContext, task: Sequence[ReadSlice]) -> Iterator[pa.RecordBatch]:
        for read in task:
            base = _file_number(read)
            for replaced in replaced_base_rows(self.spec, read.file_slice):
                if len(replaced.rows) and replaced.rows[-1] >= _ROWS_MAX:
                    raise UnsupportedTable(f"{read.base_file.path}: a base file of more than 2**31 rows.")
                for numbers in (replaced.rows + base, ~(replaced.lost + base)):
                    yield pa.RecordBatch.from_arrays([pa.array(numbers)], schema=_NUMBER_SCHEMA)


@dataclass(frozen=True, slots=True)
class ReadLogRows:
    """Fan-out work: rows of log files with their numbers. `plan` has no slices: the task has its own."""

    plan: ReadPlan

    def __call__(self, context: TaskContext, task: Sequence[ReadSlice]) -> Iterator[pa.RecordBatch]:
        for read in task:
            base = _file_number(read)
            for rows in read_log_rows(self.plan, read, _NUMBER):
                numbers = pc.bit_wise_not(pc.add(rows.column(_NUMBER), base))
                yield rows.set_column(rows.num_columns - 1, _NUMBER, numbers)
