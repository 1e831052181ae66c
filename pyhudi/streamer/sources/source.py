"""What a source is: it reads the rows behind a checkpoint, and says the checkpoint behind these rows.

A source that can be cut into parts is a `SplitSource`: one process fetches the parts of a batch one after the other,
Spark's tasks (`on_spark.py`) fetch them side by side. Rows of another source are read by the driver.

    class Numbers:
        def __init__(self, setting):
            self.step = 100

        def read(self, start, limit):
            first = int(start or 0)
            return {"n": list(range(first, first + self.step))}, str(first + self.step)

`source-class = "my_module:Numbers"` reads it. Nothing new: return None. The same checkpoint must give rows from the
same place on, as a batch that could not be written is read again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

from pyhudi.storage.clock import Clock
from pyhudi.streamer.checkpoints import Start
from pyhudi.streamer.json_messages import RowColumns
from pyhudi.streamer.settings import PipelineSettings

__all__ = ["Batch", "Fetched", "Rejected", "RowSource", "SourceSetting", "SplitSource"]

SplitT = TypeVar("SplitT")
PlanT = TypeVar("PlanT")


@dataclass(frozen=True, slots=True)
class SourceSetting:
    """What a source is made with."""

    settings: PipelineSettings
    clock: Clock


@dataclass(frozen=True, slots=True)
class Rejected:
    """A part of the source that is no row: where it stands (`orders/0@17`, `day1.json:12`), its text, and why."""

    position: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows, and the checkpoint behind them, None where the source has none. `notes`: of the source in the commit.
    `said`: lines for the user. `lost`: how many rows the source had no longer. `splits`: of the plan, those whose rows
    are in it. `done`: is called once it is in the table; it raises nothing, and returns lines for the user. `lag`:
    partition → what waits there behind the batch. `gauges`: numbers of the source by Hudi's names.
    """

    rows: pa.Table
    checkpoint: str | None
    rejected: Sequence[Rejected] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    said: Sequence[str] = ()
    lost: int = 0
    splits: Sequence[int] = ()
    done: Callable[[], Sequence[str]] | None = None
    lag: Mapping[str, int] = field(default_factory=dict)
    gauges: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a split has given. `end`: how far it came, in the source's own words."""

    rows: pa.Table
    rejected: Sequence[Rejected] = ()
    end: str = ""
    said: Sequence[str] = ()


class RowSource(Protocol):
    """A source of ours. `writes_v2`: its checkpoints are of Hudi's second form. `reads_all`: its rounds read all rows,
    wherever the last one ended.
    """

    writes_v2: bool
    reads_all: bool

    def __init__(self, setting: SourceSetting) -> None: ...

    def read(self, start: Start, limit: int | None, columns: RowColumns) -> Batch | None:
        """The next rows; None when there is nothing new.

        Args:    start: where to begin. limit: bytes or events, as the source counts. columns: of the rows, as far as
                     the source has no types of its own.
        Raises:  ConfigError for a checkpoint that is none of this source; StorageError when it can't be reached.
        """
        ...

    def close(self) -> None:
        """Let connections go."""
        ...


class SplitSource(ABC, Generic[PlanT, SplitT]):
    """A source whose batches are planned first, and fetched in parts. Splits are values that can be pickled; a task
    makes a source of its own from the same setting, and calls `fetch`. `is_cut`: False if rows of a batch depend on
    each other, so that one process has to read all of them.
    """

    writes_v2 = False
    reads_all = False
    is_cut = True

    def read(self, start: Start, limit: int | None, columns: RowColumns) -> Batch | None:
        """A batch, in one process."""
        plan = self.plan(start, limit)
        if plan is None:
            return None
        fetched = ((split, self.fetch(split, columns)) for split in self.splits(plan, 1))
        return self.batch(plan, fetched, columns)

    @abstractmethod
    def plan(self, start: Start, limit: int | None) -> PlanT | None:
        """What is read next; None when there is nothing new. Raises what `RowSource.read` does."""

    @abstractmethod
    def splits(self, plan: PlanT, parts: int) -> Sequence[SplitT]:
        """The parts of a plan: about so many, of about the same size, in the order of the rows; one at least."""

    @abstractmethod
    def fetch(self, split: SplitT, columns: RowColumns) -> Fetched:
        """The rows of a part. The same part gives the same rows. Raises StorageError when they can't be reached."""

    @abstractmethod
    def batch(self, plan: PlanT, fetched: Iterable[tuple[SplitT, Fetched]], columns: RowColumns) -> Batch:
        """What the parts give together: rows and the checkpoint behind them. A part behind one that did not come to
        its end is not in the batch. Of `fetched` no more is taken than is needed.
        """

    @abstractmethod
    def close(self) -> None:
        """Let connections go."""
