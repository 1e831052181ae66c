"""LocalEngine: the engine's verbs on Arrow data and threads, in this process.

It is the engine without Spark, and the fast path for small commits with Spark. A frame (`local_frame.py`) has parts;
they run on threads when it is collected. Arrow's kernels and Parquet release Python's lock, so threads suffice.

Source: docs/decisions/0002-two-engines.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.engine import local_frame
from pyhudi.engine.base import (
    ColumnWork,
    Engine,
    FanOutWork,
    Frame,
    GroupWork,
    StreamWork,
    TaskContext,
    TaskT,
    frame_and_engine,
    is_quick,
)
from pyhudi.engine.local_frame import BATCH_ROWS, LocalFrame, LocalRows, Part
from pyhudi.engine.local_join import matching, row_pairs
from pyhudi.engine.sorted_ranges import SortedRanges
from pyhudi.interrupts import uninterrupted
from pyhudi.progress_line import parts

__all__ = ["LocalEngine", "in_this_process"]

Result = TypeVar("Result")

_QUICK_BYTES = 4 << 20  # rows of quick work: larger ones take long enough for threads
SORT_BYTES = 512 << 20  # rows of a stream that are sorted in memory, which takes twice as much


class _Once(Generic[Result]):
    """A value that its first user computes and later users share, an exception included."""

    def __init__(self, compute: Callable[[], Result]) -> None:
        self._compute = compute
        self._lock = Lock()  # one per value: computing it may read a stream that waits for another one
        self._outcome = Future[Result]()

    def __call__(self) -> Result:
        with self._lock:
            if not self._outcome.done():
                try:
                    self._outcome.set_result(self._compute())
                except Exception as error:
                    self._outcome.set_exception(error)
        return self._outcome.result()


class LocalEngine:
    """The verbs of `Engine` on Arrow and threads. `threads`: tasks at once; None takes one per core."""

    shares_memory = True  # tasks share the planner's memory: passing a large value to them costs nothing

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or pa.cpu_count()
        self._stages = itertools.count()
        self._attempts = itertools.count()

    @property
    def parallelism(self) -> int:
        return self._threads

    def schema(self, frame: LocalRows) -> pa.Schema:
        """Return the Arrow schema of a frame."""
        return frame.schema if isinstance(frame, pa.Table) else self._frame(frame).schema

    def from_arrow(self, table: LocalRows) -> LocalFrame:
        """Return Arrow data (table, batch, reader, stream exporter) as a frame."""
        return self._frame(table)

    def select(self, frame: LocalRows, columns: Sequence[str]) -> LocalFrame:
        """Return only these columns, in this order."""
        frame, names = self._frame(frame), list(columns)
        schema = pa.schema([frame.schema.field(name) for name in names])
        return _per_part(frame, schema, lambda _, batches: (batch.select(names) for batch in batches))

    def extend(self, frame: LocalRows, columns: Sequence[str], work: ColumnWork, schema: pa.Schema) -> LocalFrame:
        """Add columns computed batch by batch."""
        frame, names, stage = self._frame(frame), list(columns), next(self._stages)
        new = set(schema.names)
        old = [index for index, name in enumerate(frame.schema.names) if name not in new]
        result = pa.schema([*(frame.schema.field(index) for index in old), *schema])

        def run(index: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context = self._context(index, stage)
            for batch in batches:
                added = work(context, batch.select(names))
                columns = batch.columns
                yield pa.RecordBatch.from_arrays([*(columns[at] for at in old), *added.columns], schema=result)

        return _per_part(frame, result, run)

    def map(self, frame: LocalRows, work: StreamWork, schema: pa.Schema) -> LocalFrame:
        """Run `work` once per part over its stream."""
        stage = next(self._stages)
        return _per_part(self._frame(frame), schema, lambda index, rows: iter(work(self._context(index, stage), rows)))

    def map_groups(
        self,
        frame: LocalRows,
        slot: str,
        tasks: Sequence[TaskT],
        work: GroupWork[TaskT],
        schema: pa.Schema,
        sort: Sequence[str] = (),
    ) -> LocalFrame:
        """Pass the rows of a slot to one call of `work`; they are sorted in memory."""
        frame, stage, slots = self._frame(frame), next(self._stages), len(tasks)
        if slots == 1 and not sort:
            # One slot: nothing to sort, so a large stream never has to fit in memory.
            return LocalFrame(schema, (self._single_slot(frame, tasks[0], work, stage),))
        grouped = _Once(lambda: _sorted_by_slot(self.collect(frame), slot, slots, sort))

        def part(number: int) -> Part:
            def run() -> Iterator[pa.RecordBatch]:
                table, order, starts = grouped()
                rows = order.slice(starts[number], starts[number + 1] - starts[number])
                if len(rows) == 0:
                    return iter(())
                batches = iter(table.take(rows).to_batches(max_chunksize=BATCH_ROWS))
                return iter(work(self._context(number, stage), tasks[number], batches))

            return run

        return LocalFrame(
            schema,
            tuple(part(number) for number in range(slots)),
            lambda: is_quick(work) and grouped()[0].nbytes <= _QUICK_BYTES,
        )

    def fan_out(self, tasks: Sequence[TaskT], work: FanOutWork[TaskT], schema: pa.Schema) -> LocalFrame:
        """Return one part per task."""
        stage = next(self._stages)

        def part(index: int, task: TaskT) -> Part:
            return lambda: iter(work(self._context(index, stage), task))

        return LocalFrame(schema, tuple(part(index, task) for index, task in enumerate(tasks)), lambda: is_quick(work))

    def arrange(
        self,
        frame: LocalRows,
        *,
        partition_by: Sequence[str] = (),
        sort_by: Sequence[str] = (),
        scope: Literal["global", "partition"] = "partition",
    ) -> LocalFrame:
        """Sort the frame, and cut it so that equal values of `partition_by` stay in one part.

        A stream larger than SORT_BYTES goes to temporary files, and is sorted range by range.
        """
        frame = self._frame(frame)
        # Sorting by the partitioning columns first brings equal values together; a part is then one run of rows.
        # Sorting every part by `sort_by` follows from the stable sort of each run.
        keys = list(sort_by) if scope == "global" else [*partition_by, *(c for c in sort_by if c not in partition_by)]

        @_Once
        def arranged() -> tuple[pa.Table, pa.Array, list[int]] | SortedRanges:
            if len(frame.parts) > 1 or list(partition_by) != keys[: len(partition_by)]:
                table = self.collect(frame)  # several parts belong to a table in memory
            else:
                room = SORT_BYTES // (2 * self._threads) or 1
                ranges = SortedRanges(frame.schema, keys, len(partition_by), SORT_BYTES, room)
                in_memory = ranges.load(batch for part in frame.parts for batch in part())
                if in_memory is None:
                    return ranges
                table = in_memory
            table = table.combine_chunks()
            order: pa.Array = pa.array(np.arange(len(table)))
            if keys:
                order = pc.sort_indices(table.select(keys), sort_keys=[(name, "ascending") for name in keys])
            parts = max(1, min(self._threads, table.nbytes // local_frame.PART_BYTES))
            return table, order, _cuts(table, order, parts, partition_by)

        def part(index: int) -> Part:
            def run() -> Iterator[pa.RecordBatch]:
                order_parts = arranged()
                if isinstance(order_parts, SortedRanges):
                    return order_parts.share(index, self._threads, BATCH_ROWS)
                table, order, cuts = order_parts
                if index + 1 >= len(cuts):
                    return iter(())
                return _taken(table, order.slice(cuts[index], cuts[index + 1] - cuts[index]))

            return run

        return LocalFrame(frame.schema, tuple(part(index) for index in range(self._threads)))

    def join(
        self,
        left: LocalRows,
        right: LocalRows,
        on: Sequence[str],
        how: Literal["inner", "left"],
        *,
        right_is_large: bool = False,
    ) -> LocalFrame:
        """Join: the left side is in memory, and of a right side of any size only rows with keys on the left."""
        left, right, keys = self._frame(left), self._frame(right), list(on)
        payload = [name for name in right.schema.names if name not in keys]
        schema = pa.schema([*left.schema, *(right.schema.field(name).with_nullable(True) for name in payload)])

        def run() -> Iterator[pa.RecordBatch]:
            rows = self.collect(left)
            key_values = {name: pc.unique(rows.column(name)) for name in keys}
            matches = self.collect(_per_part(right, right.schema, lambda _, batches: matching(batches, key_values)))
            pairs = row_pairs(rows.select(keys), matches.select(keys), keys, how)
            columns = [rows.column(name).take(pairs["left"]) for name in rows.column_names]
            columns += [matches.column(name).take(pairs["right"]) for name in payload]
            return iter(pa.Table.from_arrays(columns, schema=schema).to_batches(max_chunksize=BATCH_ROWS))

        return LocalFrame(schema, (run,))

    def union(self, frames: Sequence[LocalRows]) -> LocalFrame:
        """Return all rows, columns matched by name."""
        first, *others = [self._frame(frame) for frame in frames]
        aligned = [first, *(self.select(other, first.schema.names) for other in others)]
        return LocalFrame(first.schema, tuple(part for frame in aligned for part in frame.parts))

    def cache(self, frame: LocalRows) -> LocalFrame:
        """Return the frame's rows in memory."""
        return LocalFrame.of_table(self.collect(frame), self._threads)

    def release(self, frame: LocalRows) -> None:
        """Do nothing: memory is freed with the frame."""

    def collect(self, frame: LocalRows) -> pa.Table:
        """Run all parts, on threads unless they are quick, and combine their rows in one table, part by part."""
        if isinstance(frame, pa.Table):
            return frame
        frame = self._frame(frame)
        ended = parts(len(frame.parts))

        def run(part: Part) -> list[pa.RecordBatch]:
            batches = list(part())
            if ended is not None:
                ended()
            return batches

        if len(frame.parts) == 1 or self._threads == 1 or frame.is_quick():
            streams = list(map(run, frame.parts))
        else:
            # A separate pool: a part may collect another frame, and must not wait for its own thread.
            pool = ThreadPoolExecutor(self._threads)
            try:
                streams = list(pool.map(run, frame.parts))
            finally:
                with uninterrupted():  # tasks must have finished writing before their files are undone
                    pool.shutdown(cancel_futures=True)
        return pa.Table.from_batches([batch for stream in streams for batch in stream], schema=frame.schema)

    def _frame(self, data: LocalRows) -> LocalFrame:
        return LocalFrame.of(data, self._threads)

    def _context(self, partition_id: int, stage_id: int) -> TaskContext:
        return TaskContext(partition_id, stage_id, next(self._attempts))

    def _single_slot(self, frame: LocalFrame, task: TaskT, work: GroupWork[TaskT], stage: int) -> Part:
        def run() -> Iterator[pa.RecordBatch]:
            batches = (batch for part in frame.parts for batch in part() if batch.num_rows)
            first = next(batches, None)
            if first is None:
                return iter(())
            return iter(work(self._context(0, stage), task, itertools.chain([first], batches)))

        return run


def in_this_process(rows: LocalRows) -> tuple[Frame, Engine]:
    """Return Arrow rows as a frame, and this process's engine, under the types for actions."""
    return frame_and_engine(rows, LocalEngine())


def _per_part(
    frame: LocalFrame, schema: pa.Schema, run: Callable[[int, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
) -> LocalFrame:
    def part(index: int, source: Part) -> Part:
        return lambda: run(index, source())

    return LocalFrame(schema, tuple(part(index, source) for index, source in enumerate(frame.parts)))


def _sorted_by_slot(
    table: pa.Table, slot: str, slots: int, sort: Sequence[str]
) -> tuple[pa.Table, pa.Array, npt.NDArray[np.int64]]:
    """Return the table, its row order by slot (stable) and `sort`, and where each slot's rows start in that order."""
    table = table.combine_chunks()  # taking rows of a chunked column combines the chunks each time
    keys = [slot, *sort]
    order = pc.sort_indices(table.select(keys), sort_keys=[(name, "ascending") for name in keys])
    values = table.column(slot).to_numpy()
    counts = np.bincount(values, minlength=slots)
    if len(counts) > slots:
        raise ValueError(f"slot {len(counts) - 1} is outside 0..{slots - 1}")
    return table, order, np.concatenate(([0], np.cumsum(counts)))


def _cuts(table: pa.Table, order: pa.Array, parts: int, together: Sequence[str]) -> list[int]:
    """Return where to cut the ordered rows into about equal parts without separating equal values of `together`."""
    cuts = [len(order) * part // parts for part in range(1, parts)]
    if together and cuts:
        starts = np.zeros(len(order), np.bool_)
        for name in together:
            codes = table.column(name).combine_chunks().dictionary_encode(null_encoding="encode").indices
            sorted_codes = codes.take(order).to_numpy(zero_copy_only=False)
            starts[1:] |= sorted_codes[1:] != sorted_codes[:-1]
        runs = np.append(np.flatnonzero(starts), len(order))
        cuts = [int(runs[np.searchsorted(runs, cut)]) for cut in cuts]
    return sorted({0, *cuts, len(order)})


def _taken(table: pa.Table, order: pa.Array) -> Iterator[pa.RecordBatch]:
    # Slice by slice, so that the complete sorted copy is never in memory next to the original.
    for start in range(0, len(order), BATCH_ROWS * 4):
        yield from table.take(order.slice(start, BATCH_ROWS * 4)).to_batches(max_chunksize=BATCH_ROWS)
