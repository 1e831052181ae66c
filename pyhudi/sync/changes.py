"""Which partitions a sync has to look at: those that commits since the last one changed, or all of them.

A partition is registered while it has a visible file. One that was only written to has; where files were replaced or
taken back, its files are listed. All are listed when a replacement was taken back, since nothing names the files that
are visible again, and when the last synced commit is older than the active timeline: the history is not read for it.
Source: docs/formats/timeline.md, "Completion times", "Rollback".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import Body, change_of
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.plans import RestoreMetadata, RollbackMetadata
from pyhudi.sync.files import partition_files
from pyhudi.timeline.archived_timeline import load_archived_timeline
from pyhudi.view.consistent_read import read_consistently
from pyhudi.view.file_system_view import Visibility

__all__ = ["Changes", "Synced", "changes_since"]

_REPLACEMENTS = (ActionKind.REPLACECOMMIT.value, ActionKind.CLUSTERING.value)


@dataclass(frozen=True, slots=True)
class Synced:
    """How far a registered table is: the newest commit then, and the greatest completion time."""

    requested_time: str
    completion_time: str


@dataclass(frozen=True, slots=True)
class Changes:
    """Partition paths. `present`: with files; `gone`: without; of all partitions when `are_all`, and then all others
    that are registered are gone, too. `is_same_table`: the last synced commit is one of this table's.
    """

    present: frozenset[str]
    gone: frozenset[str] = frozenset()
    are_all: bool = False
    is_same_table: bool = True


def changes_since(meta: MetaClient, synced: Synced | None) -> Changes:
    """The partitions that changed since a sync. `synced`: None for all partitions."""
    if synced is None:
        return Changes(_present(meta, None), are_all=True, is_same_table=False)
    newest, since = meta.timeline.last_commit(), meta.timeline.active_since
    is_newest = newest is not None and newest.requested_time == synced.requested_time
    if not is_newest and (since is None or synced.requested_time < since):
        time = synced.requested_time
        archived = load_archived_timeline(meta.storage, meta.config).times(time, time)
        return Changes(_present(meta, None), are_all=True, is_same_table=bool(archived))
    touched, doubtful = set[str](), set[str]()
    for instant in _completed_since(meta, synced):
        body = _body(instant, meta)
        if _brings_files_back(body):
            return Changes(_present(meta, None), are_all=True)
        for path, change in change_of(body).partitions.items():
            is_there = instant.action.is_commit and change.written and not change.replaced_file_ids
            (touched if is_there else doubtful).add(path)
    present = _present(meta, doubtful) if doubtful else frozenset()
    gone = frozenset(doubtful - present)
    return Changes((frozenset(touched) | present) - gone, gone)


def _completed_since(meta: MetaClient, synced: Synced) -> Iterable[Instant]:
    """Writes and undoings that completed since. Some of them may have begun before the last synced one."""
    for instant in meta.timeline.completed():
        if instant.action.is_commit or instant.action in (ActionKind.ROLLBACK, ActionKind.RESTORE):
            is_later = instant.requested_time > synced.requested_time
            if is_later or (instant.completion_time or "") > synced.completion_time:
                yield instant


def _brings_files_back(body: Body) -> bool:
    """Was a replacement undone? The files that it had replaced are visible again, and the body does not name them."""
    match body:
        case RollbackMetadata():
            if len(body.instants_rollback) < len(body.commits_rollback):  # of a writer that says no actions
                return True
            undone = body.instants_rollback
        case RestoreMetadata():
            undone = body.instants
        case _:
            return False
    return any(one.action in _REPLACEMENTS for one in undone)


def _body(instant: Instant, meta: MetaClient) -> Body:
    if instant.action.is_commit:
        return meta.commits.metadata(instant)
    if instant.action is ActionKind.ROLLBACK:
        return meta.reader.rollback_metadata(instant)
    return meta.reader.restore_metadata(instant)


def _present(meta: MetaClient, paths: Iterable[str] | None) -> frozenset[str]:
    """The partitions with a visible file, among these; None: among all."""
    among = None if paths is None else sorted(paths)

    def read(now: MetaClient) -> frozenset[str]:
        rules = Visibility.of(now, None)
        return frozenset(path for path, files in partition_files(now, among) if rules.file_groups(path, files))

    return read_consistently(meta, read)
