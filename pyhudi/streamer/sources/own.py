"""A user's source: a class with `read(checkpoint, limit)`, which returns rows and a checkpoint, or None."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.streamer.checkpoints import Start
from pyhudi.streamer.json_messages import RowColumns
from pyhudi.streamer.sources.source import Batch, SourceSetting
from pyhudi.table.input import to_arrow_rows

__all__ = ["OwnSource"]


class OwnSource:
    """A user's class as a source; `source.py` has an example. `reads_all`: as the class says, by an attribute."""

    writes_v2 = False

    def __init__(self, factory: Callable[[dict[str, str]], Any], setting: SourceSetting) -> None:
        self._name = setting.settings.options.source
        self._own = factory(dict(setting.settings.client))
        self.reads_all: bool = getattr(self._own, "reads_all", False)
        if not isinstance(self.reads_all, bool):
            raise ConfigError(f"{self._name}.reads_all: expected True or False, found {self.reads_all!r:.100}.")
        if self.reads_all and setting.settings.options.source_limit is not None:
            raise ConfigError(
                f"{setting.settings.place}: source-limit would leave rows out, as {self._name} reads all rows in each "
                "round. Leave it out."
            )

    def read(self, start: Start, limit: int | None, columns: RowColumns) -> Batch | None:
        """The class's rows as Arrow."""
        answer = self._own.read(start.text, limit)
        if answer is None:
            return None
        checkpoints = (str, type(None)) if self.reads_all else (str,)
        if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[1], checkpoints):
            raise ConfigError(f"{self._name}.read: expected (rows, checkpoint text) or None, found {answer!r:.100}.")
        rows = to_arrow_rows(answer[0], columns.schema if columns.schema.names else None)
        return Batch(rows if isinstance(rows, pa.Table) else rows.read_all(), answer[1])

    def close(self) -> None:
        """Call the class's `close`, if it has one."""
        close = getattr(self._own, "close", None)
        if close is not None:
            close()
