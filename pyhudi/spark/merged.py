"""Slices with log files in Spark, with no base row passing through Python: a native scan of the base files without
replaced rows, and the rows of the log files.

    replaced   Python tasks → numbers of replaced base rows and of losing log records → broadcast
    base       Spark's Parquet scan, left anti join on the number made from its file name and row index
    log rows   Python tasks → rows of the log files, left anti join on their numbers

Columns are pruned and filters pushed down in the scan; tasks read only keys and ordering values of base files. Both
joins read one broadcast. Source: docs/decisions/0002-two-engines.md,
docs/decisions/0003-table-data-stays-out-of-the-jvm.md; measured in docs/measurements.md.
"""

from __future__ import annotations

import heapq
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyhudi.engine.base import TaskContext
from pyhudi.errors import UnsupportedTable
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.filegroup.read.split_merge import replaced_base_rows
from pyhudi.queries.plan import ReadPlan, ReadSlice
from pyhudi.queries.snapshot import read_log_rows
from pyhudi.spark.engine import SparkEngine

__all__ = ["in_two_parts", "log_rows_frame", "replaced_rows_frame", "without_replaced_rows"]

_NUMBER = "_pyhudi_row_number"
_NUMBER_SCHEMA = pa.schema([(_NUMBER, pa.int64())])
_FILE_BIT = 31  # a number is the file's checksum above, the row's index below; for a log record all bits are inverted
_ROWS_MAX = 1 << _FILE_BIT
_LOG_BYTES_MAX = 128 << 20  # replaced rows are broadcast: 8 bytes each, for log files with some 100 bytes per row
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


def replaced_rows_frame(engine: SparkEngine, plan: ReadPlan, reads: Sequence[ReadSlice]) -> DataFrame:
    """The numbers of rows in base files and log files that are not in the query's result."""
    assert plan.merge is not None
    work = FindReplacedRows(plan.merge)
    return F.broadcast(engine.fan_out(_shares(engine, reads), work, _NUMBER_SCHEMA))


def without_replaced_rows(scan: DataFrame, replaced: DataFrame) -> DataFrame:
    """A scan of base files without replaced rows."""
    number = F.shiftleft(F.crc32(F.col("_metadata.file_name")), _FILE_BIT) + F.col("_metadata.row_index")
    return scan.withColumn(_NUMBER, number).join(replaced, on=_NUMBER, how="left_anti").drop(_NUMBER)


def log_rows_frame(engine: SparkEngine, plan: ReadPlan, reads: Sequence[ReadSlice], replaced: DataFrame) -> DataFrame:
    """The rows of the query from log files."""
    assert plan.merge is not None
    schema = plan.schema.append(_NUMBER_SCHEMA.field(0))
    frame = engine.fan_out(_shares(engine, reads), ReadLogRows(replace(plan, slices=())), schema)
    if plan.merge.merge.by_ordering:  # otherwise no log record ever loses
        frame = frame.join(replaced, on=_NUMBER, how="left_anti")
    return frame.drop(_NUMBER)


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
