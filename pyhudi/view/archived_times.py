"""Completion times of archived instants, read from the history only when a file's slice depends on them.

From table version 8 on a log file belongs to the newest slice that began before the log's instant completed. For a
delta commit that began before a compaction was planned and completed after, that needs its true completion time, which
archiving has taken off the timeline. Source: docs/formats/timeline.md, "What a reader sees".
"""

from __future__ import annotations

from pyhudi.meta_client import MetaClient
from pyhudi.timeline.history import load_history

__all__ = ["ArchivedTimes"]


class ArchivedTimes:
    """The archived part of a table's completion times, as far as it was asked for."""

    def __init__(self, meta: MetaClient) -> None:
        self._meta = meta
        self._known_since: str | None = None
        self._times: dict[str, str] = {}

    def completion_of(self, instant_time: str) -> str:
        """When an archived instant completed; its own time when the history does not tell (any more)."""
        if self._known_since is None or instant_time < self._known_since:
            history = load_history(self._meta.storage, self._meta.config)
            for instant in history.times(instant_time, self._known_since or self._meta.timeline.active_since):
                if instant.action.is_write and instant.completion_time is not None:
                    self._times[instant.requested_time] = instant.completion_time
            self._known_since = instant_time
        return self._times.get(instant_time, instant_time)
