"""Slices with log files in Spark without a base row passing through Python: a native scan of the base files, without
the rows that leave, and the rows that come from the log files.

    leaving    Python tasks → one number per row: which file, which row of it → broadcast
    base       Spark's Parquet scan, left anti join on the number that it makes of its own file name and row index
    coming     Python tasks → rows of the log files

Columns are pruned and filters pushed down in the scan; tasks read of base files only keys and ordering values.
Source: design, decisions 2 and 3; measured in docs/benchmarks.md.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pyhudi.engine.base import TaskContext
from pyhudi.errors import UnsupportedTable
from pyhudi.filegroup.beside_base import leaving_rows
from pyhudi.filegroup.read import SliceSpec
from pyhudi.model.file_group import FileSlice
from pyhudi.queries.plan import ReadPlan, ReadSlice
from pyhudi.queries.snapshot import read_coming_rows
from pyhudi.spark.engine import SparkEngine

__all__ = ["ROW_NUMBER", "coming_frame", "in_two_parts", "leaving_frame", "row_number"]

ROW_NUMBER = "_pyhudi_row_number"

_SCHEMA = pa.schema([(ROW_NUMBER, pa.int64())])
_FILE_BIT = 31  # a number is the file's checksum above, the row's index below
_LOG_BYTES_MAX = 128 << 20  # the rows that leave are broadcast: 8 bytes each, of log files with some 100 bytes a row
_NAME_AS_IN_URIS = re.compile(r"[\w.-]+", re.ASCII)


def in_two_parts(plan: ReadPlan) -> tuple[ReadSlice, ...]:
    """The slices with log files that can be read this way.

    Not: without a base file or with one of ORC, whose rows Spark doesn't number; matched by column id; files whose
    numbers another file might have, too; and logs with so many records that they are no small table any more.
    """
    merging = [read for read in plan.slices if read.merges and read.file_slice.base_file is not None]
    logs_bytes = sum(log.size_bytes for read in merging for log in read.file_slice.log_files)
    if plan.internal_schemas or logs_bytes > _LOG_BYTES_MAX:
        return ()
    sharing = Counter(_file_number(read.base_file.name) for read in merging)
    return tuple(
        read
        for read in merging
        if read.base_file.name.endswith(".parquet")
        and _NAME_AS_IN_URIS.fullmatch(read.base_file.name)
        and sharing[_file_number(read.base_file.name)] == 1
    )


def row_number() -> Column:
    """The number of a row in a scan of base files."""
    return F.shiftleft(F.crc32(F.col("_metadata.file_name")), _FILE_BIT) + F.col("_metadata.row_index")


def leaving_frame(engine: SparkEngine, plan: ReadPlan, reads: Sequence[ReadSlice]) -> DataFrame:
    """The numbers of the base files' rows that are not rows of the query."""
    assert plan.merge is not None
    tasks = [(read.file_slice,) for read in reads]
    return F.broadcast(engine.fan_out(tasks, LeavingRows(plan.merge), _SCHEMA))


def coming_frame(engine: SparkEngine, plan: ReadPlan, reads: Sequence[ReadSlice]) -> DataFrame:
    """The rows of the query that come from log files."""
    work = ComingRows(replace(plan, slices=()))
    return engine.fan_out([(read,) for read in reads], work, plan.schema)


def _file_number(name: str) -> int:
    return zlib.crc32(name.encode())


@dataclass(frozen=True, slots=True)
class LeavingRows:
    """Fan-out work: numbers of the base rows that leave."""

    spec: SliceSpec

    def __call__(self, context: TaskContext, task: Sequence[FileSlice]) -> Iterator[pa.RecordBatch]:
        for file_slice in task:
            assert file_slice.base_file is not None
            base = _file_number(file_slice.base_file.name) << _FILE_BIT
            for rows in leaving_rows(self.spec, file_slice):
                if len(rows) and rows[-1] >> _FILE_BIT:
                    raise UnsupportedTable(f"{file_slice.base_file.path}: a base file of more than 2**31 rows.")
                yield pa.RecordBatch.from_arrays([pa.array(rows + base)], schema=_SCHEMA)


@dataclass(frozen=True, slots=True)
class ComingRows:
    """Fan-out work: rows of log files. `plan` comes without its slices: the task brings its own."""

    plan: ReadPlan

    def __call__(self, context: TaskContext, task: Sequence[ReadSlice]) -> Iterator[pa.RecordBatch]:
        for read in task:
            yield from read_coming_rows(self.plan, read)
