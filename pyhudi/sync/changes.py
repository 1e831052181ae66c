"""The partitions that a sync has to compare: those that commits since the last one changed, or all of them.

A partition is registered while it has a visible file. A partition that was only written to has one; if files were
replaced or undone, its files are listed. All partitions are listed if a replacement was undone, because no commit names
the files that are visible again, and if the last synced commit is older than the active timeline: the history is not
read for it.
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
    """The state of the last sync: the newest commit at that time, and the greatest completion time."""

    requested_time: str
    completion_time: str


@dataclass(frozen=True, slots=True)
class Changes:
    """Partition paths. `present`: with files; `without_files`: the others. `are_all`: these are all partitions, so that
    other registered ones have no files either. `is_same_table`: the last synced commit is one of this table's.
    """

    present: frozenset[str]
    without_files: frozenset[str] = frozenset()
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
    without_files = frozenset(doubtful - present)
    return Changes((frozenset(touched) | present) - without_files, without_files)


def _completed_since(meta: MetaClient, synced: Synced) -> Iterable[Instant]:
    """Writes, rollbacks and restores that completed since; some may have begun before the last synced commit."""
    for instant in meta.timeline.completed():
        if instant.action.is_commit or instant.action in (ActionKind.ROLLBACK, ActionKind.RESTORE):
            is_later = instant.requested_time > synced.requested_time
            if is_later or (instant.completion_time or "") > synced.completion_time:
                yield instant


def _brings_files_back(body: Body) -> bool:
    """True if a replacement was undone: the replaced files are visible again, and the body does not name them."""
    match body:
        case RollbackMetadata():
            if len(body.instants_rollback) < len(body.commits_rollback):  # the writer stored no actions
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
