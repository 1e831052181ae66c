"""The instants that can still be read: how far back cleaning has kept the table's files.

Source: docs/formats/table-services.md, "Cleaning plan"; docs/formats/history.md, "Reading archived time";
docs/formats/timeline.md, "Savepoint and restore".
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from pyhudi.errors import PathNotFound
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.plans import READABLE_SINCE
from pyhudi.view.archived_times import ArchivedTimes
from pyhudi.view.file_system_view import LISTING_THREADS

__all__ = ["ReadableHistory", "load_readable_history", "readable_since"]


@dataclass(frozen=True, slots=True)
class ReadableHistory:
    """`earliest`: cleaning has kept all files since this instant; None if it deleted none. `commits`: the active
    commits. The newest of them, and the savepointed ones in `saved`, stay readable after any clean. `archived`: the
    other commits.
    """

    earliest: str | None = None
    saved: frozenset[str] = frozenset()
    commits: tuple[str, ...] = ()
    archived: ArchivedTimes | None = field(default=None, repr=False, compare=False)

    def is_readable(self, instant_time: str) -> bool:
        """True if the table can be read as of this instant time."""
        if self.earliest is None or instant_time >= self.earliest:
            return True
        # A read sees the newest commit up to that time. Archiving may have passed a savepointed one.
        latest = max((time for time in self.commits if time <= instant_time), default=None)
        if latest is None or latest == self.commits[-1]:
            return latest is not None
        return latest in self.saved and not (self.archived and self.archived.has_write(latest, instant_time))


def load_readable_history(meta: MetaClient) -> ReadableHistory:
    """Load the history according to the cleans on the active timeline, running and failed ones included."""
    timeline = meta.timeline.completed()
    saved = frozenset(i.requested_time for i in timeline.of([ActionKind.SAVEPOINT]))
    commits = tuple(i.requested_time for i in timeline.commits())
    archived = ArchivedTimes(meta)
    cleans = meta.timeline.of([ActionKind.CLEAN]).instants
    if not cleans:
        return ReadableHistory(None, saved, commits, archived)
    # All cleans count: one that retained more may have followed one that retained less.
    with ThreadPoolExecutor(LISTING_THREADS, thread_name_prefix="hudi-read") as pool:
        bounds = pool.map(lambda instant: readable_since(instant, meta), cleans)
        return ReadableHistory(max(bounds, default="") or None, saved, commits, archived)


def readable_since(instant: Instant, meta: MetaClient) -> str:
    """Return the instant since which a clean has kept all files; "" if it names none, or deleted no file."""
    try:
        if instant.is_completed:
            done = meta.reader.clean_metadata(instant)
            earliest, last, extra = done.earliest, done.last_commit, done.extra_metadata
            deleted_files = any(partition.deleted for partition in done.partitions.values())
        else:
            plan = meta.reader.clean_plan(instant)
            if plan is None:
                return ""
            earliest, last, extra = plan.earliest_time, plan.last_commit, plan.extra_metadata
            deleted_files = plan.file_count > 0
    except PathNotFound:
        return ""  # archived, or rolled back, since the timeline was listed
    # A clean by versions names no instant. Ours note it; those of others keep all files from the newest commit on.
    return earliest or (extra.get(READABLE_SINCE, last) if deleted_files else "")
