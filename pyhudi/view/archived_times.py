"""Times of archived writes, read from the history only when an answer depends on them.

From table version 8 on a log file belongs to the newest slice that began before the log's instant completed. If a delta
commit began before a compaction was planned and completed after it, this depends on its completion time, which
archiving has moved to the history. And if archiving has passed a savepointed commit, only the history has the later
commits. Source: docs/formats/timeline.md, "What a reader sees"; docs/formats/history.md, "Reading archived time".
"""

from __future__ import annotations

from bisect import bisect_right

from pyhudi.meta_client import MetaClient
from pyhudi.timeline.archived_timeline import load_archived_timeline

__all__ = ["ArchivedTimes", "CompletedWrites"]


class ArchivedTimes:
    """The archived writes of a table with their completion times, read on demand."""

    def __init__(self, meta: MetaClient) -> None:
        self._meta = meta
        self._loaded_since: str | None = None
        self._times: dict[str, str | None] = {}
        self._ordered: list[str] = []

    def completion_of(self, instant_time: str) -> str:
        """Return when an archived instant completed; its requested time if it is not (or no longer) in the history."""
        self._read_since(instant_time)
        return self._times.get(instant_time) or instant_time

    def __contains__(self, instant_time: str) -> bool:
        """True if a write with this requested time was archived."""
        self._read_since(instant_time)
        return instant_time in self._times

    def has_write(self, after: str, until: str) -> bool:
        """True if a write with a requested time in (after, until] was archived."""
        since = self._meta.timeline.active_since
        if until <= after or (since is not None and after >= since):
            return False
        self._read_since(after)
        place = bisect_right(self._ordered, after)
        return place < len(self._ordered) and self._ordered[place] <= until

    def _read_since(self, instant_time: str) -> None:
        if self._loaded_since is None or instant_time < self._loaded_since:
            history = load_archived_timeline(self._meta.storage, self._meta.config)
            for instant in history.times(instant_time, self._loaded_since or self._meta.timeline.active_since):
                if instant.action.is_write:
                    self._times[instant.requested_time] = instant.completion_time
            self._loaded_since, self._ordered = instant_time, sorted(self._times)


class CompletedWrites:
    """The requested times of a table's completed writes; the history is read only for times off the timeline."""

    def __init__(self, meta: MetaClient) -> None:
        self._timeline = meta.timeline
        self._active = {instant.requested_time for instant in meta.timeline.commits()}
        self._archived = ArchivedTimes(meta)

    def __contains__(self, instant_time: object) -> bool:
        if not isinstance(instant_time, str) or instant_time in self._active:
            return instant_time in self._active
        return self._timeline.find(instant_time) is None and instant_time in self._archived
