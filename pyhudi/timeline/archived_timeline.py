"""The archived timeline of a table, whichever form its version gives it. Read lazily, by range of requested time.

Source: docs/formats/history.md, "Archive log", "Merge tree".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import Instant
from pyhudi.model.table_config import TableConfig
from pyhudi.storage.base import Storage
from pyhudi.timeline.archive_log import ArchiveLog
from pyhudi.timeline.lsm_history import LsmHistory

__all__ = ["ArchivedInstant", "ArchivedTimeline", "archive_log", "load_archived_timeline", "lsm_history"]


class ArchivedInstant(Protocol):
    """A completed instant that archiving took off the active timeline."""

    @property
    def instant(self) -> Instant: ...

    def commit(self) -> CommitMetadata | None:
        """The commit metadata of a write, None for other actions. Raises CorruptFile."""
        ...


class ArchivedTimeline(Protocol):
    """The archived timeline, in either layout."""

    def times(self, since: str | None = None, until: str | None = None) -> tuple[Instant, ...]:
        """Completed instants with a requested time in [since, until], oldest first; no bodies are kept."""
        ...

    def completed_after(self, time: str, until: str | None = None) -> tuple[Instant, ...]:
        """Instants that were complete after this time, with a requested time of `until` or less, oldest first."""
        ...

    def instants(self, since: str | None = None, until: str | None = None) -> Iterator[ArchivedInstant]:
        """The same with their bodies, newest first."""
        ...


def load_archived_timeline(storage: Storage, config: TableConfig) -> ArchivedTimeline:
    """The archived timeline of a table; nothing is read yet, and a table that archived nothing has an empty one."""
    return archive_log(storage, config) if config.layout_version < 2 else lsm_history(storage, config)


def archive_log(storage: Storage, config: TableConfig) -> ArchiveLog:
    """The log files of a table below version 8."""
    return ArchiveLog(storage, config.history_path)


def lsm_history(storage: Storage, config: TableConfig) -> LsmHistory:
    """The merge tree of a table of version 8 or later."""
    initial = config.properties.get("hoodie.table.initial.version", "")
    return LsmHistory(storage, config.history_path, names_are_ranges=initial.isdigit() and int(initial) >= 8)
