"""PyHudi's work inside Spark's Python workers, and the routing of rows to the task of their slot.

`StreamTask` and similar classes wrap the work as functions that `mapInArrow` and `arrow_udf` call. Each wrapper is a
small picklable value. It turns Spark's batches (time stamps labelled with the session's zone, sometimes large strings)
into batches of exactly the declared schema. It passes them to the work together with a TaskContext, and returns the
result in the form that Spark expects. A HudiError is encoded in the exception's text, because only text is returned
(`pyhudi.spark.failures` decodes it). `in_worker` surrounds the work of each wrapper.

Workers import this module and nothing above it: imports stay light.

`routed` moves each row to the task of its slot, with Spark's `repartitionById(n, slot)` if it exists. Otherwise
`repartition(n, column)` puts a row into the partition `pmod(hash(column), n)`, with Spark's own hash. So every slot is
replaced by a number whose hash is `slot` modulo n. The numbers are computed once for each n. Adaptive execution does
not change an explicit number of partitions.
Source: Spark's `HashPartitioning` (Murmur3 x86 32-bit of one int, seed 42) and its shuffle origin REPARTITION_BY_NUM.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, groupby, pairwise
from typing import Generic, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext as SparkTaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyhudi.engine.base import ColumnWork, FanOutWork, GroupWork, StreamWork, TaskContext, TaskT
from pyhudi.spark import capabilities
from pyhudi.spark.failures import in_worker
from pyhudi.spark.types import column, quoted

__all__ = [
    "TASK",
    "AppendTask",
    "ColumnTask",
    "FanOutTask",
    "GroupTask",
    "PickledTasks",
    "StreamTask",
    "UnpackRows",
    "UnpackSentRows",
    "conform",
    "numbers_by_partition",
    "routed",
    "task_context",
]


TASK = "_pyhudi_task"  # column of pickled tasks


def task_context() -> TaskContext:
    """The identity of this task attempt: the three numbers of Hudi's write token."""
    context = SparkTaskContext.get()
    assert context is not None, "called outside a Spark task"
    return TaskContext(context.partitionId(), context.stageId(), context.taskAttemptId())


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with exactly these types, columns in this order; the batch itself when nothing changes."""
    if batch.schema.equals(schema):
        return batch
    if batch.num_columns == 0 or len(schema) == 0:
        return batch.select([])
    columns = []
    for field in schema:
        column = batch.column(field.name)
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass(frozen=True, slots=True)
class StreamTask:
    """`Engine.map` for mapInArrow. `incoming` and `outgoing` are the schemas on the two sides of the work."""

    work: StreamWork
    incoming: pa.Schema
    outgoing: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with in_worker():
            arrived = (conform(batch, self.incoming) for batch in batches)
            for batch in self.work(task_context(), arrived):
                yield conform(batch, self.outgoing)


@dataclass(frozen=True, slots=True)
class GroupTask(Generic[TaskT]):
    """`Engine.map_groups` for mapInArrow: rows of a slot lie together in the partition, so slots stream one by one.

    `tasks`: by slot; None: the first row of each slot has its pickled task in the column TASK.
    """

    work: GroupWork[TaskT]
    slot: str
    incoming: pa.Schema
    outgoing: pa.Schema
    tasks: Sequence[TaskT] | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with in_worker():
            context = task_context()
            for slot, runs in groupby(self._runs(batches), key=_slot_of):
                rows = (run for _, run in runs)
                task = pickle.loads(next(rows).column(TASK)[0].as_py()) if self.tasks is None else self.tasks[slot]
                first = next(rows, None)
                if first is None:
                    continue
                for batch in self.work(context, task, (conform(run, self.incoming) for run in chain([first], rows))):
                    yield conform(batch, self.outgoing)

    def _runs(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Slices of equal slot, in the order of the rows; a row with a task is one of its own."""
        for batch in batches:
            if batch.num_rows == 0:
                continue
            slots = batch.column(self.slot).to_numpy(zero_copy_only=False)
            is_start = slots[1:] != slots[:-1]
            if self.tasks is None:
                is_task = batch.column(TASK).is_valid().to_numpy(zero_copy_only=False)
                is_start |= is_task[:-1]
            starts = [0, *(np.flatnonzero(is_start) + 1).tolist(), batch.num_rows]
            for start, stop in pairwise(starts):
                yield int(slots[start]), batch.slice(start, stop - start)


def _slot_of(run: tuple[int, pa.RecordBatch]) -> int:
    return run[0]


@dataclass(frozen=True, slots=True)
class FanOutTask(Generic[TaskT]):
    """`Engine.fan_out` for mapInArrow over a frame whose column TASK holds pickled tasks."""

    work: FanOutWork[TaskT]
    outgoing: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with in_worker():
            context = task_context()
            for batch in batches:
                for task in batch.column(TASK):
                    for answer in self.work(context, pickle.loads(task.as_py())):
                        yield conform(answer, self.outgoing)


@dataclass(frozen=True, slots=True)
class PickledTasks(Generic[TaskT]):
    """`Engine.fan_out` for mapInArrow over a frame of numbers; `tasks` holds the pickled tasks of each number."""

    work: FanOutWork[TaskT]
    outgoing: pa.Schema
    tasks: tuple[tuple[bytes, ...], ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with in_worker():
            context = task_context()
            for batch in batches:
                for number in cast("list[int]", batch.column(0).to_pylist()):
                    for task in self.tasks[number]:
                        for answer in self.work(context, pickle.loads(task)):
                            yield conform(answer, self.outgoing)


@dataclass(frozen=True, slots=True)
class ColumnTask:
    """`Engine.extend` for arrow_udf: one struct of the needed columns in, one struct of the new columns out.

    Not a callable itself: Spark reads the function's hints, so the UDF is made from `run`.
    """

    work: ColumnWork
    incoming: pa.Schema
    outgoing: pa.Schema

    def run(self, rows: pa.StructArray) -> pa.Array:
        with in_worker():
            # Without columns the struct has one stand-in child: it carries the number of rows.
            batch = pa.RecordBatch.from_struct_array(rows)
            answer = conform(self.work(task_context(), conform(batch, self.incoming)), self.outgoing)
            assert answer.num_rows == len(rows), f"{self.work!r} gave {answer.num_rows} rows for {len(rows)}"
            return pa.StructArray.from_arrays(answer.columns, fields=list(self.outgoing))


@dataclass(frozen=True, slots=True)
class AppendTask:
    """`Engine.extend` for mapInArrow, without arrow_udf: whole rows in, the remaining and the new columns out."""

    work: ColumnWork
    columns: tuple[str, ...]
    incoming: pa.Schema
    outgoing: pa.Schema
    unchanged: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([*(self.incoming.field(name) for name in self.unchanged), *self.outgoing])
        with in_worker():
            for arrived in batches:
                batch = conform(arrived, self.incoming)
                answer = conform(self.work(task_context(), batch.select(list(self.columns))), self.outgoing)
                assert answer.num_rows == batch.num_rows, f"{self.work!r} gave {answer.num_rows} for {batch.num_rows}"
                columns = [*(batch.column(name) for name in self.unchanged), *answer.columns]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass(frozen=True, slots=True)
class UnpackRows:
    """For mapInArrow over a frame whose first column holds rows in Arrow's file format."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for packed in batch.column(0):
                yield from pa.ipc.open_stream(packed.as_buffer())


@dataclass(frozen=True, slots=True)
class UnpackSentRows:
    """For mapInArrow over a frame of one row: the packed rows are sent with the function."""

    packed: bytes

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield from pa.ipc.open_stream(self.packed)


_SEED = np.uint32(42)
_FIRST_TRIED = 1024


def routed(frame: DataFrame, partitions: int, slot: str) -> DataFrame:
    """The frame with this number of partitions, each row in that of its slot modulo the number; `slot` is an integer
    column.
    """
    if capabilities.PRESENT.routes_by_id:
        return frame.repartitionById(partitions, column(slot))
    numbers = ",".join(map(str, numbers_by_partition(partitions)))
    number = F.expr(f"element_at(array({numbers}), int(pmod({quoted(slot)}, {partitions})) + 1)")
    return frame.repartition(partitions, number)


@lru_cache(maxsize=64)
def numbers_by_partition(partitions: int) -> tuple[int, ...]:
    """For each partition the smallest number that Spark's hash assigns to it."""
    tried = max(_FIRST_TRIED, 16 * partitions)  # 16 random numbers per partition miss few partitions
    while True:
        places = _spark_hash(np.arange(tried, dtype=np.uint32)).astype(np.int64) % partitions
        partitions_present, numbers = np.unique(places, return_index=True)
        if len(partitions_present) == partitions:
            return tuple(numbers.tolist())
        tried *= 2


def _spark_hash(numbers: npt.NDArray[np.uint32]) -> npt.NDArray[np.int32]:
    """`hash(number)` of Spark for int columns: Murmur3 of 4 bytes with seed 42."""
    with np.errstate(over="ignore"):
        mixed = _rotated(numbers * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        hashed = _rotated(_SEED ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        hashed ^= np.uint32(4)  # bytes
        hashed = (hashed ^ (hashed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        hashed = (hashed ^ (hashed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (hashed ^ (hashed >> np.uint32(16))).view(np.int32)


def _rotated(values: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
