"""Engine: how work is spread over machines. Knows Arrow, nothing of Hudi.

A *frame* is the engine's own lazy table: an Arrow table or stream for the LocalEngine, a DataFrame for Spark. *Work* is
a picklable callable (a frozen dataclass with `__call__`, or a module-level function) that runs where the rows are. Its
first argument is a `TaskContext`, so that names are unique per task attempt: a retried task repeats its side effects.

Work may say `is_quick`: all its tasks together take less than it costs to hand them to threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NewType, Protocol, TypeAlias, TypeVar, cast

import pyarrow as pa

__all__ = [
    "ColumnWork",
    "Engine",
    "EngineOf",
    "FanOutWork",
    "Frame",
    "GroupWork",
    "StreamWork",
    "TaskContext",
    "as_engine",
    "frame_and_engine",
    "is_quick",
]

# A frame of some engine: it can only be passed back to the same engine.
Frame = NewType("Frame", object)
FrameT = TypeVar("FrameT")
TaskT = TypeVar("TaskT")


_JAVA_INTS = (1 << 31) - 1  # Hudi reads the numbers of a token as Java ints


@dataclass(frozen=True, slots=True)
class TaskContext:
    """The task and its attempt."""

    partition_id: int
    stage_id: int
    attempt_id: int

    @property
    def write_token(self) -> str:
        return f"{self.partition_id}-{self.stage_id}-{self.attempt_id}"

    def write_token_of(self, instant_time: str) -> str:
        """Return a write token that no concurrent write of the table has: the instant's number replaces the stage.

        All processes number their tasks alike, and below version 8 the rest of a log file's name says nothing about
        its write: two writers would create the same file. The numbers of two instants are equal only days apart.
        """
        return f"{self.partition_id}-{int(instant_time) % _JAVA_INTS}-{self.attempt_id}"


ColumnWork = Callable[[TaskContext, pa.RecordBatch], pa.RecordBatch]
StreamWork = Callable[[TaskContext, Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]
GroupWork = Callable[[TaskContext, TaskT, Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]
FanOutWork = Callable[[TaskContext, TaskT], Iterable[pa.RecordBatch]]


class EngineOf(Protocol[FrameT]):
    """The verbs of an engine with frames of this type. All writes and reads of a table use them."""

    @property
    def parallelism(self) -> int:
        """The number of tasks that run at once, as far as the engine knows."""
        ...

    def schema(self, frame: FrameT) -> pa.Schema:
        """Return the Arrow schema of a frame, without running it. Timestamps with zone are `timestamp[us, UTC]`."""
        ...

    def select(self, frame: FrameT, columns: Sequence[str]) -> FrameT:
        """Return only these columns, in this order."""
        ...

    def extend(self, frame: FrameT, columns: Sequence[str], work: ColumnWork, schema: pa.Schema) -> FrameT:
        """Add columns computed batch by batch from some of the frame's columns.

        `work` gets a batch of just `columns` and returns a batch of `schema` with as many rows. It has no side effects
        and may run more than once. A result column replaces an existing column of the same name.
        """
        ...

    def map(self, frame: FrameT, work: StreamWork, schema: pa.Schema) -> FrameT:
        """Run `work` once per partition over its stream of batches; rows are not moved."""
        ...

    def map_groups(
        self,
        frame: FrameT,
        slot: str,
        tasks: Sequence[TaskT],
        work: GroupWork[TaskT],
        schema: pa.Schema,
        sort: Sequence[str] = (),
    ) -> FrameT:
        """Bring rows of the same slot (int32 column, a number of `tasks`) to one call of `work`, streamed.

        The call gets the (picklable) task of its slot. Within a slot rows come sorted by `sort`. A slot without rows
        gets no call.
        """
        ...

    def fan_out(self, tasks: Sequence[TaskT], work: FanOutWork[TaskT], schema: pa.Schema) -> FrameT:
        """Run `work` once per (small, picklable) task; no input rows."""
        ...

    def arrange(
        self,
        frame: FrameT,
        *,
        partition_by: Sequence[str] = (),
        sort_by: Sequence[str] = (),
        scope: Literal["global", "partition"] = "partition",
    ) -> FrameT:
        """Repartition by columns (equal values meet in one task) and sort: in each task, or over the whole frame."""
        ...

    def join(
        self,
        left: FrameT,
        right: FrameT,
        on: Sequence[str],
        how: Literal["inner", "left"],
        *,
        right_is_large: bool = False,
    ) -> FrameT:
        """Equi-join; the key columns appear once.

        Args:    right_is_large: the right side is never in memory as a whole. Set it for rows made by work, whose
                     number no engine can estimate.
        """
        ...

    def union(self, frames: Sequence[FrameT]) -> FrameT:
        """Return all rows of frames with the same columns, matched by name."""
        ...

    def from_arrow(self, table: pa.Table) -> FrameT:
        """Return a small table as a frame."""
        ...

    def cache(self, frame: FrameT) -> FrameT:
        """Compute once, use several times; free it with `release`."""
        ...

    def release(self, frame: FrameT) -> None:
        """Free a cached frame."""
        ...

    def collect(self, frame: FrameT) -> pa.Table:
        """Run the frame and bring its (small) result to the planner. Raises TaskFailed with the worker's message."""
        ...


Engine: TypeAlias = EngineOf[Frame]


def is_quick(work: object) -> bool:
    """True if the work declares its tasks too small for threads."""
    return bool(getattr(work, "is_quick", False))


def as_engine(engine: EngineOf[FrameT]) -> Engine:
    """Return an engine under the type for actions, which don't know which engine it is."""
    return cast("Engine", engine)


def frame_and_engine(frame: FrameT, engine: EngineOf[FrameT]) -> tuple[Frame, Engine]:
    """Return a frame and its engine, under the types for actions."""
    return Frame(frame), as_engine(engine)
