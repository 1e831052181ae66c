"""Engine: how work is spread over machines. Knows Arrow, nothing of Hudi.

A *frame* is the engine's own lazy table: an Arrow table or stream for the LocalEngine, a DataFrame for Spark. *Work* is
a picklable callable (a frozen dataclass with `__call__`, or a module-level function) that runs where the rows are. It
is handed a `TaskContext` first, so that whatever it names is unique per task attempt: a task that is retried runs its
side effects again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import pyarrow as pa

__all__ = ["ColumnWork", "Engine", "FanOutWork", "Frame", "GroupWork", "StreamWork", "TaskContext"]

Frame = Any


@dataclass(frozen=True, slots=True)
class TaskContext:
    """Which attempt of which task this is."""

    partition_id: int
    stage_id: int
    attempt_id: int

    @property
    def write_token(self) -> str:
        return f"{self.partition_id}-{self.stage_id}-{self.attempt_id}"


ColumnWork = Callable[[TaskContext, pa.RecordBatch], pa.RecordBatch]
StreamWork = Callable[[TaskContext, Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]
GroupWork = Callable[[TaskContext, int, Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]
FanOutWork = Callable[[TaskContext, Any], Iterable[pa.RecordBatch]]


class Engine(Protocol):
    """The verbs. Everything that writes or reads a table is said in them."""

    @property
    def parallelism(self) -> int:
        """How many tasks run at once, as far as the engine knows."""
        ...

    def schema(self, frame: Frame) -> pa.Schema:
        """Arrow schema of a frame, without running it. Timestamps with zone are `timestamp[us, UTC]`."""
        ...

    def select(self, frame: Frame, columns: Sequence[str]) -> Frame:
        """Only these columns, in this order."""
        ...

    def extend(self, frame: Frame, columns: Sequence[str], work: ColumnWork, schema: pa.Schema) -> Frame:
        """Add columns computed batch by batch from some of the frame's columns.

        `work` gets a batch of just `columns` and returns a batch of `schema` with as many rows. It has no side effects
        and may run more than once. A result column that exists already replaces it.
        """
        ...

    def map(self, frame: Frame, work: StreamWork, schema: pa.Schema) -> Frame:
        """Run `work` once per partition over its stream of batches; rows are not moved."""
        ...

    def map_groups(
        self, frame: Frame, slot: str, slots: int, work: GroupWork, schema: pa.Schema, sort: Sequence[str] = ()
    ) -> Frame:
        """Bring rows of the same slot (int32 column, 0 <= slot < slots) to one call of `work`, streamed.

        Within a slot rows come sorted by `sort`. A slot without rows gets no call.
        """
        ...

    def fan_out(self, tasks: Sequence[Any], work: FanOutWork, schema: pa.Schema) -> Frame:
        """Run `work` once per (small, picklable) task; no input rows."""
        ...

    def arrange(
        self,
        frame: Frame,
        *,
        partition_by: Sequence[str] = (),
        sort_by: Sequence[str] = (),
        scope: Literal["global", "partition"] = "partition",
    ) -> Frame:
        """Repartition by columns (equal values meet in one task) and sort: in each task, or over the whole frame."""
        ...

    def join(
        self,
        left: Frame,
        right: Frame,
        on: Sequence[str],
        how: Literal["inner", "left"],
        *,
        right_is_large: bool = False,
    ) -> Frame:
        """Equi-join; the key columns appear once.

        Args:    right_is_large: the right side is never held whole in one place. It must be said of rows that work
            makes, whose number no engine can foretell.
        """
        ...

    def union(self, frames: Sequence[Frame]) -> Frame:
        """All rows of frames with the same columns, matched by name."""
        ...

    def from_arrow(self, table: pa.Table) -> Frame:
        """A small table as a frame."""
        ...

    def cache(self, frame: Frame) -> Frame:
        """Compute once, use several times; give it back with `release`."""
        ...

    def release(self, frame: Frame) -> None:
        """Forget what `cache` kept."""
        ...

    def collect(self, frame: Frame) -> pa.Table:
        """Run the frame and bring its (small) result to the planner. Raises TaskFailed with the worker's words."""
        ...
