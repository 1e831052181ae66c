"""The archived timeline of a table, in the layout of its version. It is read lazily, by range of requested time.

From table version 8 on it is a merge tree (`timeline/lsm_history.py`). Below, it is log files
`.hoodie/archived/.commits_.archive.<N>_<token>`. Each archiving run makes one file, N counting up. A file has blocks of
entries, one entry per state of an instant, in the order of the run, which is not that of time. An entry archived twice,
by a run that died before it deleted the active files or by Hudi's downgrade, counts once.
Source: docs/formats/history.md, "Archive log", "Merge tree".

"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pyhudi.errors import CorruptFile
from pyhudi.formats.timeline.bodies import Body
from pyhudi.model.commit import CommitMetadata, CommitTotals
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.plans import CleanMetadata, CleanPlan
from pyhudi.model.table_config import TableConfig
from pyhudi.storage.base import Storage

if TYPE_CHECKING:  # readers of archives are imported on use: most calls read none
    from pyhudi.timeline.lsm_history import LsmHistory

__all__ = [
    "ArchiveLog",
    "ArchiveLogInstant",
    "ArchivedInstant",
    "ArchivedTimeline",
    "archive_log",
    "load_archived_timeline",
    "lsm_history",
]


_NAME = re.compile(r"\.commits_\.archive\.(\d+)(?:_(\d+-\d+-\d+))?")
_TOKEN = "1-0-1"  # Hudi's token of logs that no task writes
_NAME_FIELDS = ("commitTime", "actionType", "actionState", "stateTransitionTime")
_ACTIONS = {kind.value: kind for kind in ActionKind}

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class ArchiveLogInstant:
    """A completed instant of the archive. `entries`: state's name → its entry (see formats.archive_entries)."""

    instant: Instant
    entries: Mapping[str, Body] = field(default_factory=dict)

    def commit(self) -> CommitMetadata | None:
        """Return the commit metadata of a write, None for other actions."""
        from pyhudi.formats.timeline.archive_entries import commit_of_entry

        return commit_of_entry(self.entries.get(State.COMPLETED.name) or {})

    def totals(self) -> CommitTotals | None:
        """Like `commit`, with the write stats in sum."""
        commit = self.commit()
        return None if commit is None else CommitTotals.of(commit)

    def clean(self) -> CleanMetadata | None:
        """See `ArchivedInstant`."""
        from pyhudi.formats.timeline.clean_plans import clean_metadata_of

        body = (self.entries.get(State.COMPLETED.name) or {}).get("hoodieCleanMetadata")
        return None if body is None else clean_metadata_of(body, self._name)

    def clean_plan(self) -> CleanPlan | None:
        """See `ArchivedInstant`."""
        from pyhudi.formats.timeline.clean_plans import clean_plan_of

        body = next((body for entry in self.entries.values() if (body := entry.get("hoodieCleanerPlan"))), None)
        return None if body is None else clean_plan_of(body, self._name)

    @property
    def _name(self) -> str:
        return f"archived {self.instant.action.value} {self.instant.requested_time}"


@dataclass(frozen=True, slots=True)
class ArchiveLog:
    """The archive files in one folder."""

    storage: Storage
    folder: str

    def times(self, since: str | None = None, until: str | None = None) -> tuple[Instant, ...]:
        """Return completed instants with a requested time in [since, until], oldest first; no bodies are kept."""
        instants = (_instant(entry) for entry in self.entries(_NAME_FIELDS))
        return tuple(sorted({i for i in instants if i is not None and _within(i, since, until)}, key=_order))

    def completed_after(self, time: str, until: str | None = None) -> tuple[Instant, ...]:
        """Instants that completed after this time, with a requested time of `until` or less, oldest first. One with
        unknown completion time counts by its requested time.
        """
        return tuple(i for i in self.times(None, until) if (i.completion_time or i.requested_time) > time)

    def instants(self, since: str | None = None, until: str | None = None) -> Iterator[ArchiveLogInstant]:
        """Yield completed instants with a requested time in [since, until] and their entries, newest first."""
        by_time: dict[str, dict[tuple[str, str], Body]] = {}
        for entry in self.entries():
            time = str(entry.get("commitTime") or "")
            if (since is None or time >= since) and (until is None or time <= until):
                key = (str(entry.get("actionType")), str(entry.get("actionState")))
                by_time.setdefault(time, {}).setdefault(key, entry)
        for time in sorted(by_time, reverse=True):
            states = by_time[time]
            for instant in sorted(filter(None, map(_instant, states.values())), key=_order, reverse=True):
                mine = {s: e for (a, s), e in states.items() if _completes_as(a) is instant.action}
                yield ArchiveLogInstant(instant, mine)

    def entries(self, columns: Sequence[str] | None = None) -> Iterator[Body]:
        """Yield all entries, newest file first; damaged parts are skipped."""
        for _, path in sorted(self._files(), reverse=True):
            yield from self._entries_in(path, columns)

    def newest_keys(self) -> frozenset[Key]:
        """Return (time, action, state) of the entries in the newest file, which a dead run may have archived."""
        files = self._files()
        if not files:
            return frozenset()
        return frozenset(_key(entry) for entry in self._entries_in(max(files)[1], _NAME_FIELDS))

    def append(self, entries: Iterable[Sequence[Body]], batch_size: int) -> str | None:
        """Write the entries of instants to one file; return its path, None when there is nothing to archive.

        Args:    entries: for each instant the entries of its states; an instant is never split between blocks.
                 batch_size: entries that a block has at least (the last one may have fewer).
        """
        from pyhudi.formats.log.writer import LogFileWriter
        from pyhudi.formats.timeline.archive_entries import encode_entries

        path, file = "", None
        pending: list[Body] = []
        for states in entries:
            pending += states
            if len(pending) >= batch_size:
                if file is None:
                    path = self._next_path()
                    file = LogFileWriter(self.storage, path)
                file.append(encode_entries(pending))
                pending = []
        if pending:
            if file is None:
                path = self._next_path()
                file = LogFileWriter(self.storage, path)
            file.append(encode_entries(pending))
        if file is None:
            return None
        file.close()
        self.storage.sync([path])  # the active files may be deleted next
        return path

    def _entries_in(self, path: str, columns: Sequence[str] | None) -> Iterator[Body]:
        from pyhudi.formats.log.reader import LogBlock, scan_log
        from pyhudi.formats.timeline.archive_entries import entries_of

        try:
            for block in scan_log(self.storage, path):
                if isinstance(block, LogBlock) and block.is_data:
                    yield from entries_of(block, columns)
        except CorruptFile:
            return  # the writer died; the instants are still on the active timeline

    def _files(self) -> list[tuple[int, str]]:
        matches = ((_NAME.fullmatch(entry.name), entry) for entry in self.storage.list(self.folder))
        return [(int(match[1]), entry.path) for match, entry in matches if match is not None and entry.size_bytes]

    def _next_path(self) -> str:
        names = (_NAME.fullmatch(entry.name) for entry in self.storage.list(self.folder))
        number = max((int(match[1]) for match in names if match is not None), default=0) + 1
        return f"{self.folder}/.commits_.archive.{number}_{_TOKEN}"


def _instant(entry: Body) -> Instant | None:
    """Return the instant of an entry of a completed state; None for other states and for unknown actions."""
    action = _completes_as(str(entry.get("actionType")))
    if entry.get("actionState") != State.COMPLETED.name or action is None or not entry.get("commitTime"):
        return None
    return Instant(str(entry["commitTime"]), action, State.COMPLETED, entry.get("stateTransitionTime"))


def _order(instant: Instant) -> tuple[str, str, str]:
    """Return the order of instants; of two copies only one may have the completion time."""
    return instant.requested_time, instant.action.value, instant.completion_time or ""


def _completes_as(word: str) -> ActionKind | None:
    action = _ACTIONS.get(word)
    return None if action is None else action.completed_as


def _within(instant: Instant, since: str | None, until: str | None) -> bool:
    return (since is None or instant.requested_time >= since) and (until is None or instant.requested_time <= until)


def _key(entry: Body) -> Key:
    return str(entry.get("commitTime")), str(entry.get("actionType")), str(entry.get("actionState"))


class ArchivedInstant(Protocol):
    """A completed instant that archiving moved off the active timeline."""

    @property
    def instant(self) -> Instant: ...

    def commit(self) -> CommitMetadata | None:
        """Return the commit metadata of a write, None for other actions. Raises CorruptFile."""
        ...

    def totals(self) -> CommitTotals | None:
        """Like `commit`, with the write stats in sum."""
        ...

    def clean(self) -> CleanMetadata | None:
        """Return what a clean did, None for other actions and where the archive lacks it. Raises CorruptFile."""
        ...

    def clean_plan(self) -> CleanPlan | None:
        """Return the plan of a clean, None as in `clean`. Raises CorruptFile, UnsupportedTable."""
        ...


class ArchivedTimeline(Protocol):
    """The archived timeline, in either layout."""

    def times(self, since: str | None = None, until: str | None = None) -> tuple[Instant, ...]:
        """Return completed instants with a requested time in [since, until], oldest first; no bodies are kept."""
        ...

    def completed_after(self, time: str, until: str | None = None) -> tuple[Instant, ...]:
        """Return instants that completed after this time, with a requested time of `until` or less, oldest first."""
        ...

    def instants(self, since: str | None = None, until: str | None = None) -> Iterator[ArchivedInstant]:
        """Like `times`, with their bodies, newest first."""
        ...


def load_archived_timeline(storage: Storage, config: TableConfig) -> ArchivedTimeline:
    """Open the archived timeline of a table; nothing is read yet. It is empty if the table has archived nothing."""
    return lsm_history(storage, config) if config.layout.has_history_tree else archive_log(storage, config)


def archive_log(storage: Storage, config: TableConfig) -> ArchiveLog:
    """Return the log files of a table below version 8."""
    return ArchiveLog(storage, config.history_path)


def lsm_history(storage: Storage, config: TableConfig) -> LsmHistory:
    """Return the merge tree of a table of version 8 or later."""
    from pyhudi.timeline.lsm_history import LsmHistory

    initial = config.properties.get("hoodie.table.initial.version", "")
    return LsmHistory(storage, config.history_path, names_are_ranges=initial.isdigit() and int(initial) >= 8)
