"""What a source is: it reads the rows behind a checkpoint, and says the checkpoint behind these rows.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from pyhudi.storage.clock import Clock
from pyhudi.streamer.checkpoints import Start
from pyhudi.streamer.json_messages import RowColumns
from pyhudi.streamer.settings import PipelineSettings

__all__ = ["Batch", "Rejected", "RowSource", "SourceSetting"]


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
    """Rows, and the checkpoint behind them. `notes`: of the source in the commit. `said`: lines for the user. `lost`:
    how many rows the source had no longer.
    """

    rows: pa.Table
    checkpoint: str
    rejected: Sequence[Rejected] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    said: Sequence[str] = ()
    lost: int = 0


class RowSource(Protocol):
    """A source of ours. `writes_v2`: its checkpoints are of Hudi's second form."""

    writes_v2: bool

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
