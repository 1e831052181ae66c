"""Give reads that list files a consistent view of one moment, although listing takes time.

A timeline decides which files belong to the table. Before they are listed, a cleaning can delete replaced ones, and a
rollback or restore those of undone writes. A file group would then be missing with its rows: its old files were
deleted, and its new ones are unknown to the timeline. So after the listing the timeline is loaded once more, and if
files may have been deleted, the read starts again with the newer timeline. The listing does not reveal this: a
partition that was dropped and cleaned leaves no files. Source: docs/formats/timeline.md, "What a reader sees",
"Rollback"; docs/formats/table-services.md, "Cleaning plan".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from pyhudi.errors import PathNotFound, StaleRead
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import ActionKind
from pyhudi.timeline.archived_timeline import load_archived_timeline
from pyhudi.view.readable_history import load_readable_history, readable_since

__all__ = ["files_removed_since", "is_cleaned", "is_undone", "read_consistently", "stale_reads"]

_TRIES = 10  # cleanings that retain only a commit or two may overtake a long listing repeatedly

Result = TypeVar("Result")


def read_consistently(meta: MetaClient, read: Callable[[MetaClient], Result], as_of: str | None = None) -> Result:
    """`read(meta)`, which lists files; repeated on a newer timeline when files that it needs may have been deleted.

    Args:   as_of: the instant time of the read, None for the newest state.
    Raises: the errors of `read`; StaleRead when files are deleted each time.
    """
    for _ in range(_TRIES):
        try:
            result = read(meta)
        except PathNotFound:
            newer = None if meta.is_current() else meta.reload()
            if newer is None or (newer.timeline, newer.config) == (meta.timeline, meta.config):
                raise
        else:
            newer = files_removed_since(meta, as_of)
            if newer is None:
                return result
        meta = newer
    raise StaleRead(
        f"{meta.storage.root}: each of {_TRIES} listings of the files was overtaken by cleans or rollbacks, which "
        "deleted files that it needed. Read again, or let cleaning retain more commits."
    )


def files_removed_since(meta: MetaClient, as_of: str | None = None) -> MetaClient | None:
    """Return the current table if files that queries of `meta` need may have been deleted since, else None."""
    if meta.is_current():
        return None
    now = meta.reload()
    moved = now.config.timeline_path != meta.config.timeline_path
    return now if moved or _is_out_of_sight(meta, now) or is_undone(meta, now) or is_cleaned(meta, now, as_of) else None


@contextmanager
def stale_reads(meta: MetaClient) -> Iterator[None]:
    """Raise StaleRead, which a retry resolves, for files that a clean or rollback after `meta` has deleted.

    Other missing files stay PathNotFound.
    """
    try:
        yield
    except StaleRead:
        raise
    except PathNotFound as error:
        if not _may_have_lost_files(meta):
            raise
        raise StaleRead(
            f"{error} Another process has cleaned the table, or undone a write, since this began. Nothing of it is "
            f"visible; run it again."
        ) from error


def _may_have_lost_files(meta: MetaClient) -> bool:
    now = meta.reload()
    done = {i.requested_time for i in meta.timeline.completed().of([ActionKind.CLEAN])}
    cleans = (i.requested_time for i in now.timeline.of([ActionKind.CLEAN]))
    return any(time not in done for time in cleans) or files_removed_since(meta) is not None


def is_undone(meta: MetaClient, now: MetaClient) -> bool:
    """True if a write that is complete in `meta` was undone by `now`."""
    commits = {(i.requested_time, i.action) for i in now.timeline.commits()}
    undone = [i for i in meta.timeline.commits() if (i.requested_time, i.action) not in commits]
    since = now.timeline.active_since
    if any(since is None or i.requested_time >= since for i in undone):
        return True
    # If the newest one was archived, so were all others, since only the newest writes are undone.
    newest = undone[-1].requested_time if undone and undone[-1] == meta.timeline.last_commit() else None
    if newest is None:
        return False
    return all(
        i.requested_time != newest for i in load_archived_timeline(now.storage, now.config).times(newest, newest)
    )


def is_cleaned(meta: MetaClient, now: MetaClient, as_of: str | None = None) -> bool:
    """True if a clean that began after `meta` may delete files that were current in it."""
    earlier = {i.requested_time for i in meta.timeline.of([ActionKind.CLEAN])}
    newer_cleans = [i for i in now.timeline.of([ActionKind.CLEAN]) if i.requested_time not in earlier]
    if not newer_cleans:
        return False
    before, after = meta.timeline.commits(), now.timeline.commits()
    if as_of is not None:
        same = before.up_to(as_of).instants == after.up_to(as_of).instants
        return not same or not load_readable_history(now).is_readable(as_of)
    # A clean keeps all files from an instant on, and those current then. They were current in `meta`, too, if no older
    # write has completed since.
    newer = {i.requested_time for i in after} - {i.requested_time for i in before}
    return bool(newer) and any(readable_since(clean, now) >= min(newer) for clean in newer_cleans)


def _is_out_of_sight(meta: MetaClient, now: MetaClient) -> bool:
    """True if archiving has passed all writes of `meta`, so that later cleans may be archived, too."""
    newest, since = meta.timeline.last_commit(), now.timeline.active_since
    return newest is not None and (since is None or since > newest.requested_time)
