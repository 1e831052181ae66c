"""The table's history for users: one entry per instant, active or archived, newest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice

from pyhudi.display import readable_bytes
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitTotals
from pyhudi.model.instant import Instant
from pyhudi.result import Result, ResultList
from pyhudi.timeline.archived_timeline import load_archived_timeline
from pyhudi.view.readable_history import ReadableHistory, load_readable_history

__all__ = ["History", "HistoryEntry", "RecordedInstant", "load_table_history", "recorded_instants"]

_COUNTS = ("inserted", "updated", "deleted", "files", "written")
# Extra metadata of every commit that is of no use to people.
_HIDDEN_KEYS = frozenset({"schema", "latest_schema"})


@dataclass(frozen=True, slots=True, repr=False)
class HistoryEntry(Result):
    """One instant. Row and byte counts are those of its write stats; zero unless it is a completed write.

    `readable`: the table can still be read as of it; None unless it is a completed write. `is_archived`: it is no
    longer on the active timeline. `is_saved`: it has a savepoint.
    """

    instant_time: str
    completion_time: str | None
    action: str
    state: str
    operation: str | None = None
    rows_written: int = 0
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    files: int = 0
    bytes_written: int = 0
    extra: Mapping[str, str] = field(default_factory=dict)
    readable: bool | None = None
    is_archived: bool = False
    is_saved: bool = False

    def __str__(self) -> str:
        rows = f", {self.rows_inserted:,} inserted, {self.rows_updated:,} updated, {self.rows_deleted:,} deleted"
        operation = "" if self.operation is None else f" ({self.operation.lower()}){rows}"
        return f"{self.instant_time} {self.action} {self.state}{operation}"

    def _row(self) -> tuple[object, ...]:
        counts: tuple[object, ...] = (None,) * len(_COUNTS)
        if self.operation is not None:
            size = readable_bytes(self.bytes_written)
            counts = (self.rows_inserted, self.rows_updated, self.rows_deleted, self.files, size)
        operation = (self.operation or "").lower()
        can_read = None if self.readable is None else "readable" if self.readable else "cleaned"
        status = "saved" if self.is_saved else "archived" if self.is_archived else "active"
        return (
            self.instant_time, self.completion_time, self.action, self.state, operation, *counts, can_read, status,
        )  # fmt: skip


class History(ResultList[HistoryEntry]):
    """A list of entries that prints as a table."""

    entry_type = HistoryEntry
    header = ("instant", "completed", "action", "state", "operation", *_COUNTS, "as of", "timeline")

    def _row(self, entry: HistoryEntry) -> Sequence[object]:
        return entry._row()


@dataclass(frozen=True, slots=True)
class RecordedInstant:
    """An instant on the active or on the archived timeline. `totals`: None unless it is a completed write."""

    instant: Instant
    totals: CommitTotals | None
    is_archived: bool = False

    def entry(self, readable_history: ReadableHistory) -> HistoryEntry:
        """The entry that users see."""
        instant, totals = self.instant, self.totals
        times = (instant.requested_time, instant.completion_time, instant.action.value, instant.state.name.lower())
        if totals is None:
            return HistoryEntry(*times, is_archived=self.is_archived)
        return HistoryEntry(
            *times,
            totals.operation_type,
            totals.rows_written,
            totals.rows_inserted,
            totals.rows_updated,
            totals.rows_deleted,
            totals.files,
            totals.bytes_written,
            {key: value for key, value in totals.extra_metadata.items() if key not in _HIDDEN_KEYS},
            readable_history.is_readable(instant.requested_time),
            self.is_archived,
            instant.requested_time in readable_history.saved,
        )


def load_table_history(
    meta: MetaClient,
    limit: int | None = None,
    *,
    archived: bool = True,
    since: str | None = None,
    until: str | None = None,
) -> History:
    """The newest `limit` instants (None: all), newest first, including pending ones.

    Args:    archived: archived ones too; they are read only when they are reached.
             since, until: only instants with a requested time in this range, both ends included.
    """
    readable_history = load_readable_history(meta)
    count = None if limit is None else max(0, limit)
    if archived and count is not None and meta.config.layout.has_history_tree:
        # Archived instants are older than the first active one, so the newest ones need no archive.
        first = meta.timeline.active_since
        newest = [i for i in meta.timeline if first is not None and i.requested_time >= first]
        if sum(_within(i.requested_time, since, until) for i in newest) >= count:
            archived = False
    recorded = recorded_instants(meta, archived=archived, since=since, until=until)
    return History(one.entry(readable_history) for one in islice(recorded, count))


def recorded_instants(
    meta: MetaClient, *, archived: bool = True, since: str | None = None, until: str | None = None
) -> Iterator[RecordedInstant]:
    """Like `load_table_history`, one by one: each is read when it is reached."""
    return merge(
        _active(meta, since, until),
        _archived(meta, since, until) if archived else iter(()),
        key=lambda one: one.instant.requested_time,
        reverse=True,
    )


def _active(meta: MetaClient, since: str | None, until: str | None) -> Iterator[RecordedInstant]:
    for instant in reversed(meta.timeline.instants):
        if _within(instant.requested_time, since, until):
            is_write = instant.is_completed and instant.action.is_write
            yield RecordedInstant(instant, meta.commits.totals(instant) if is_write else None)


def _archived(meta: MetaClient, since: str | None, until: str | None) -> Iterator[RecordedInstant]:
    active = set(meta.timeline.instants)  # a dead archiving run may have left instants in both
    for archived in load_archived_timeline(meta.storage, meta.config).instants(since, until):
        if archived.instant not in active:
            yield RecordedInstant(archived.instant, archived.totals(), is_archived=True)


def _within(time: str, since: str | None, until: str | None) -> bool:
    return (since is None or time >= since) and (until is None or time <= until)
