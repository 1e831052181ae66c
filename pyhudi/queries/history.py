"""The table's history as people ask for it: one entry per instant of the active timeline, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import Instant
from pyhudi.text_table import html_table, readable_bytes, text_table

__all__ = ["History", "HistoryEntry", "load_table_history"]

_HEADER = ("instant", "completed", "action", "state", "operation", "inserted", "updated", "deleted", "files", "written")
# Extra metadata of every commit that says nothing to people.
_NOT_TOLD = frozenset({"schema", "latest_schema"})


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One instant. Row and byte counts are those of its write stats; zero for what is no completed write."""

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

    def _row(self) -> tuple[object, ...]:
        counts: tuple[object, ...] = (None,) * 5
        if self.operation is not None:
            size = readable_bytes(self.bytes_written)
            counts = (self.rows_inserted, self.rows_updated, self.rows_deleted, self.files, size)
        operation = (self.operation or "").lower()
        return (self.instant_time, self.completion_time, self.action, self.state, operation, *counts)


class History(list[HistoryEntry]):
    """A list of entries that prints as a table."""

    def __repr__(self) -> str:
        return text_table(_HEADER, [entry._row() for entry in self])

    def _repr_html_(self) -> str:
        return html_table(_HEADER, [entry._row() for entry in self])


def load_table_history(meta: MetaClient, limit: int | None = None) -> History:
    """The newest `limit` instants (None: all that archiving has left), newest first. Pending ones are among them."""
    newest_first = meta.timeline.instants[::-1]
    return History(_entry(meta, instant) for instant in newest_first[: None if limit is None else max(0, limit)])


def _entry(meta: MetaClient, instant: Instant) -> HistoryEntry:
    state = instant.state.name.lower()
    if not (instant.is_completed and instant.action.is_write):
        return HistoryEntry(instant.requested_time, instant.completion_time, instant.action.value, state)
    body = meta.commits.metadata(instant)
    stats = body.stats()
    return HistoryEntry(
        instant.requested_time,
        instant.completion_time,
        instant.action.value,
        state,
        body.operation_type,
        rows_written=sum(stat.num_writes for stat in stats),
        rows_inserted=sum(stat.num_inserts for stat in stats),
        rows_updated=sum(stat.num_update_writes for stat in stats),
        rows_deleted=sum(stat.num_deletes for stat in stats),
        files=len(stats),
        bytes_written=sum(stat.total_write_bytes for stat in stats),
        extra={key: value for key, value in body.extra_metadata.items() if key not in _NOT_TOLD},
    )
