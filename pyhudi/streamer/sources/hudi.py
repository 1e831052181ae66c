"""A Hudi table as a source: the rows of its commits, in the newest version of the batch. Source: HoodieIncrSource.

    table of version 8 and later     checkpoint of the second form, a completion time
    below                            of the first form, a requested time

Deletes are no rows: they don't come along, as in Hudi.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.model.options.queries import BEGIN, END, IncrementalOptions
from pyhudi.model.options.streaming import SourceOptions
from pyhudi.queries.follow import end_of_batch
from pyhudi.storage import open_storage
from pyhudi.streamer.checkpoints import Start
from pyhudi.streamer.json_messages import RowColumns
from pyhudi.streamer.sources.source import Batch, SourceSetting
from pyhudi.table import HudiTable

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkSession
    from pyhudi.table.scan import Scan

__all__ = ["HudiSource"]

_ZERO = "00000000000000"
_TIME = re.compile(r"\d{14}|\d{17}", re.ASCII)
_BY_REQUEST, _BY_COMPLETION = "resumeFromInstantRequestTime", "resumeFromInstantCompletionTime"
_HOLES = "hoodie.read.timeline.holes.resolution.policy"


class HudiSource:
    """`writes_v2`: by the version of the table that is read."""

    reads_all = False

    def __init__(self, setting: SourceSetting) -> None:
        self._options = setting.settings.options.hudi
        if self._options.path is None:
            raise ConfigError(f"{setting.settings.place}: hoodie.streamer.source.hoodieincr.path is missing: a table.")
        self._store = setting.settings.store
        self._read = {_HOLES: "BLOCK", **setting.settings.read}
        if self._read[_HOLES].upper() == "USE_TRANSITION_TIME":
            raise ConfigError(
                f"{setting.settings.place}: {_HOLES}=USE_TRANSITION_TIME: a checkpoint is the time that the table's "
                "version orders commits by. Use BLOCK, the default, or FAIL."
            )
        self._meta = MetaClient.load(open_storage(self._options.path, self._store))

    @property
    def writes_v2(self) -> bool:
        """Does the table keep completion times?"""
        return self._meta.config.format.orders_by_completion

    def read(self, start: Start, limit: int | None, columns: RowColumns) -> Batch | None:
        """The rows of the next commits; `num_instants` says how many."""
        changes = self.changes(start)
        return None if changes is None else Batch(changes[0].to_arrow(), changes[1])

    def changes(self, start: Start, spark: SparkSession | None = None) -> tuple[Scan, str] | None:
        """The next commits as an incremental query, and the checkpoint behind them; None when there are none."""
        self._meta = meta = self._meta.reload()
        begin = self._begin(start)
        blocking = IncrementalOptions(holes=self._read[_HOLES].upper())
        end = end_of_batch(meta, begin, blocking, SourceOptions(max_commits=self._options.num_instants))
        if end <= begin:
            return None
        assert self._options.path is not None
        table = HudiTable.open(self._options.path, spark, storage_options=self._store)
        return table.changes(meta_columns=False, options={**self._read, BEGIN: begin or _ZERO, END: end}), end

    def close(self) -> None:
        """Nothing is open."""

    def _begin(self, start: Start) -> str:
        """The time after which a batch begins, "" for the first commit on."""
        if start.text is None:
            return self._first()
        text = start.text
        if start.is_given and self.writes_v2:
            word, colon, time = text.partition(":")
            if not colon or word not in (_BY_REQUEST, _BY_COMPLETION) or not _TIME.fullmatch(time):
                raise ConfigError(
                    f"checkpoint={text!r:.100}: a table of version 8 or later is gone on from by {_BY_REQUEST}:TIME or "
                    f"{_BY_COMPLETION}:TIME. Nothing was written."
                )
            return self._completed(time) if word == _BY_REQUEST else time
        if not _TIME.fullmatch(text):
            raise ConfigError(
                f"The checkpoint {text!r:.100} is none of a Hudi table, which is the time of a commit: it is another "
                "source's. Give one by checkpoint, or start over by ignore-checkpoint."
            )
        if set(text) == {"0"}:
            return ""
        if self.writes_v2 and not start.is_v2:
            return self._completed(text)
        return self._requested(text) if start.is_v2 and not self.writes_v2 else text

    def _first(self) -> str:
        """Where a run without a checkpoint begins."""
        strategy = self._options.missing_checkpoint
        if strategy is None:
            raise ConfigError(
                f"{self._meta.storage.root}: there is no checkpoint yet. Say where to begin by "
                "hoodie.streamer.source.hoodieincr.missing.checkpoint.strategy: READ_UPTO_LATEST_COMMIT for all rows, "
                "READ_LATEST for the newest commit. Nothing was written."
            )
        if strategy == "READ_UPTO_LATEST_COMMIT":
            return ""
        times = sorted(
            (instant.completion_time if self.writes_v2 else None) or instant.requested_time
            for instant in self._meta.timeline.commits()
        )
        return times[-2] if len(times) > 1 else ""

    def _completed(self, requested: str) -> str:
        for instant in self._meta.timeline.commits():
            if instant.requested_time == requested and instant.completion_time:
                return instant.completion_time
        raise self._unknown("completion", requested)

    def _requested(self, completed: str) -> str:
        for instant in self._meta.timeline.commits():
            if instant.completion_time == completed:
                return instant.requested_time
        raise self._unknown("requested", completed)

    def _unknown(self, kind: str, time: str) -> ConfigError:
        return ConfigError(
            f"{self._meta.storage.root}: the checkpoint {time} is a time of another kind, and its commit has left the "
            f"timeline, so its {kind} time is not known. Say where to go on by checkpoint."
        )
