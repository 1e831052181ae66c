"""Archiving: old instants move from the active timeline to the history, so that opening a table stays fast.

`archive` works under the table's lock, in these steps:

        hash rings marked        rings of resizes with dead writers: archived instants no longer say that they count
    history written          version 6: one archive file; from 8 on: a Parquet file and a manifest
    stale markers deleted
    active files deleted     pending states of all, then completed ones, oldest first
    metadata table           the same for its timeline

A run that dies leaves instants in both places. The next run skips instants that are in the history, and deletes their
active files.

The metadata table's timeline is archived together with the table's. `instants_to_archive` chooses its oldest instants
that are not needed. Three limits keep the others in place:

    the table's timeline         its instants must be found here, else the metadata table is out of date
    the last compaction          later slices depend on the timeline to assign their log files
    pending work                 as in the table

The table's timeline, in turn, is not archived past the last compaction of its metadata table. Below version 8, blocks
in log files count only while the instant that wrote them is on the table's active timeline. Apache Hudi keeps this
limit in all versions.

`ArchiveResult` lists the instants that an archiving run moved off the active timeline, or would move.
Source: docs/formats/history.md, "Archive log", "Merge tree", "What may be archived"; docs/formats/metadata-table.md,
"Compaction and cleaning".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.display import html_table, text_table
from pyhudi.errors import HudiError
from pyhudi.filegroup.write.markers import delete_markers
from pyhudi.formats.timeline.archive_entries import archive_entry
from pyhudi.formats.timeline.bodies import NewBody
from pyhudi.formats.timeline.history_files import HISTORY_SCHEMA
from pyhudi.index.consistent_bucket import mark_rings
from pyhudi.listeners import ActionCompleted, notify
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.filenames import TEMPORARY_FOLDER, InstantFileName, pending_actions
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.result import Result
from pyhudi.services.archive.planning import ArchiveLimit, kept_commits, plan_archive, select_instants
from pyhudi.storage.base import FileInfo, Storage
from pyhudi.timeline.archived_timeline import archive_log, load_archived_timeline, lsm_history
from pyhudi.timeline.listing import time_of

__all__ = [
    "ArchiveResult",
    "archive",
    "archive_after_write",
    "archive_out_of_turn",
    "instants_to_archive",
    "opened_metadata_table",
]


_COMMITS_KEPT_MIN = 21  # cleaning there uses the last 20 commits


def opened_metadata_table(meta: MetaClient) -> MetadataTable | None:
    """The table's metadata table; None when it does not exist or can't be opened: the next write builds it."""
    try:
        return MetadataTable.open(meta)
    except HudiError:
        return None


def instants_to_archive(table: MetadataTable, kept_min: int, kept_max: int) -> tuple[Instant, ...]:
    """The instants of the metadata table's timeline that may be archived.

    Args:   kept_min, kept_max: the table's numbers; here one more is kept, and never fewer than cleaning uses.
    """
    timeline = table.meta.timeline
    kept_min = max(kept_min + 1, _COMMITS_KEPT_MIN)
    kept_max = max(kept_max + 1, kept_min + 1)
    if len(timeline.commits()) <= kept_max:
        return ()
    by_version = None if table.data.config.format.archives_whole_timeline else (kept_min, kept_max)
    return select_instants(timeline, kept_min, _limits(table), per_action=by_version).instants


def _limits(table: MetadataTable) -> Iterator[ArchiveLimit]:
    oldest = min((i.requested_time for i in table.data.timeline), default="")
    yield ArchiveLimit(oldest, "the table's oldest active instant")
    compactions = table.meta.timeline.completed().of([ActionKind.COMMIT])
    yield ArchiveLimit(max((i.requested_time for i in compactions), default=""), "the last compaction")
    for instant in table.meta.timeline.pending():
        yield ArchiveLimit(instant.requested_time, "an instant that is pending")


_HEADER = ("instant", "completed", "action")


@dataclass(frozen=True, slots=True, repr=False)
class ArchiveResult(Result):
    """`archived`: the instants, oldest first. `kept_for`: the limit for archiving more, None without one. `files`: new
    history files. `dry_run`: nothing was done.
    """

    table: str
    archived: tuple[Instant, ...] = ()
    kept_for: str | None = None
    files: tuple[str, ...] = ()
    dry_run: bool = False

    @property
    def instant_times(self) -> tuple[str, ...]:
        """The requested times of `archived`."""
        return tuple(instant.requested_time for instant in self.archived)

    def _summary(self) -> str:
        because = f"; no more because of {self.kept_for}" if self.kept_for else ""
        if not self.archived:
            return f"archive: nothing to do{because}"
        counts = Counter(instant.action.value for instant in self.archived)
        kinds = ", ".join(f"{count:,} {action}" for action, count in sorted(counts.items()))
        verb = "would archive" if self.dry_run else "archived"
        return f"{verb} {kinds}: {self.archived[0].requested_time} to {self.archived[-1].requested_time}{because}"

    def _rows(self) -> Sequence[Sequence[object]]:
        return [(i.requested_time, i.completion_time, i.action.value) for i in self.archived]

    def __str__(self) -> str:
        return (
            f"{self._summary()}\n{text_table(_HEADER, self._rows())}"
            if self.dry_run and self.archived
            else self._summary()
        )

    def _repr_html_(self) -> str:
        table = html_table(_HEADER, self._rows()) if self.archived else ""
        return f"<div>{escape(self._summary())}</div>{table}"


_CHUNK_INSTANTS = 1000  # number of instants whose bodies are in memory at once
# Cleans and rollbacks come first in the archive files of version 6, then the writes.
_FIRST = (ActionKind.CLEAN, ActionKind.ROLLBACK)

Files = Mapping[tuple[str, ActionKind, State], FileInfo]


def archive_after_write(context: ActionContext) -> tuple[str, ...]:
    """Archive after a complete write. `context`: the table before the write; far below the limit nothing is read.
    Archiving completes no instant.
    """
    options = context.options.archiving
    if options.automatic and len(context.meta.timeline.commits()) + 1 > options.commits_kept_max:
        archive(context)
    return ()


def archive(context: ActionContext, *, dry_run: bool = False) -> ArchiveResult:
    """Move instants to the history, according to the options.

    Args:    dry_run: only return the instants, and the limit that keeps the others.
    Raises:  LockTimeout; errors of storage, after which the next run continues.
    """
    root = context.meta.storage.root
    if dry_run:
        plan = plan_archive(context.reloaded())
        return ArchiveResult(root, plan.instants, _reason(plan.limit), dry_run=True)
    began_s = context.clock.monotonic_s()
    with context.locked():
        context = context.reloaded()
        plan = plan_archive(context)
        files: tuple[str, ...] = ()
        if plan.instants:
            files = _archived(plan.instants, context)
        _archive_metadata_timeline(context.reloaded() if plan.instants else context)
    completed = ActionCompleted(
        root,
        context.meta.config.table_name,
        action="archive",
        duration_s=context.clock.monotonic_s() - began_s,
        ended_ms=context.clock.now_ms(),
        counts={"numInstantsArchived": len(plan.instants)},
    )
    notify(completed, context.options, context.clock)
    return ArchiveResult(root, plan.instants, _reason(plan.limit), files)


def _archive_metadata_timeline(context: ActionContext) -> None:
    """Archive the metadata table's timeline, if there is one. Hold the lock."""
    table = opened_metadata_table(context.meta)
    if table is not None:
        instants = instants_to_archive(table, *kept_commits(context.meta.timeline, context))
        if instants:
            _archived(instants, replace(context, meta=table.meta))


def archive_out_of_turn(context: ActionContext, instant_time: str) -> None:
    """Move a commit to the history whose savepoint is about to be deleted, if later commits are archived already.

    Otherwise it would be the oldest on the timeline, and readers would treat instants archived after it as uncommitted.
    `context`: the table as it is; the caller holds the lock.
    """
    meta = context.meta
    history = load_archived_timeline(meta.storage, meta.config)
    if any(i.action.is_write and i.requested_time > instant_time for i in history.times(instant_time)):
        _archived([i for i in meta.timeline.commits() if i.requested_time == instant_time], context)


def _reason(limit: ArchiveLimit | None) -> str | None:
    return None if limit is None else limit.reason


def _archived(instants: Sequence[Instant], context: ActionContext) -> tuple[str, ...]:
    storage, config = context.meta.storage, context.meta.config
    files = _instant_files(storage, config.timeline_path, config.layout_version)
    if any(instant.action.is_replacing for instant in instants):
        mark_rings(storage, {instant.requested_time for instant in instants}, config.table_version)
    archive = _to_lsm if config.layout.has_history_tree else _to_log
    history_files = archive(instants, files, context)
    _delete(instants, files, storage)
    return history_files


def _instant_files(storage: Storage, folder: str, layout_version: int) -> Files:
    entries = {}
    for entry in storage.list(folder):
        name = None if entry.is_dir else InstantFileName.parse(entry.name, layout_version)
        if name is not None:
            entries[name.requested_time, name.action, name.state] = entry
    return entries


def _states(instant: Instant, files: Files) -> Iterator[tuple[ActionKind, State, FileInfo]]:
    """The files of an instant: requested, inflight, completed, with the action in each name."""
    for state in (State.REQUESTED, State.INFLIGHT):
        for action in pending_actions(instant.action):
            # `T.inflight` names no action: only a commit has such a file.
            info = files.get((instant.requested_time, action, state))
            if info is not None:
                yield action, state, info
    info = files.get((instant.requested_time, instant.action, State.COMPLETED))
    if info is not None:
        yield instant.action, State.COMPLETED, info


# ---- version 8 and later ---------------------------------------------------------------------------------------------


def _to_lsm(instants: Sequence[Instant], files: Files, context: ActionContext) -> tuple[str, ...]:
    options, storage = context.options.archiving, context.meta.storage
    history = lsm_history(storage, context.meta.config)
    paths = []
    for start in range(0, len(instants), _CHUNK_INSTANTS):
        chunk = instants[start : start + _CHUNK_INSTANTS]
        archived = {
            (i.requested_time, i.action) for i in history.times(chunk[0].requested_time, chunk[-1].requested_time)
        }
        rows = [_row(i, files, storage) for i in chunk if (i.requested_time, i.action) not in archived]
        if rows:
            paths.append(history.append(pa.Table.from_pylist(rows, HISTORY_SCHEMA)))
    merged = history.compact(options.merged_files, options.merged_bytes_max)
    history.clean(options.manifests_kept + len(merged))
    return (*paths, *merged)


def _row(instant: Instant, files: Files, storage: Storage) -> NewBody:
    body, plan = b"", None
    for action, state, info in _states(instant, files):
        if state is State.COMPLETED:
            body = storage.read(info.path)
        elif info.size_bytes and _is_plan(action, state):
            plan = storage.read(info.path)
    return {
        "instantTime": instant.requested_time,
        "completionTime": instant.completion_time,
        "action": instant.action.value,
        "metadata": body,
        "plan": plan,
        "version": 1,
    }


def _is_plan(action: ActionKind, state: State) -> bool:
    """True for a file whose body Hudi archives. An overwrite's inflight profile replaces its requested body."""
    if state is State.INFLIGHT:
        return action is ActionKind.REPLACECOMMIT
    return action is ActionKind.CLEAN or action.is_compaction or action.is_replacing


# ---- version 6 -------------------------------------------------------------------------------------------------------


def _to_log(instants: Iterable[Instant], files: Files, context: ActionContext) -> tuple[str, ...]:
    log = archive_log(context.meta.storage, context.meta.config)
    newest = log.newest_keys()
    to_append = [i for i in instants if (i.requested_time, i.action.value, State.COMPLETED.name) not in newest]
    to_append.sort(key=lambda i: (i.action not in _FIRST, i))
    path = log.append((_entries(i, files, context) for i in to_append), context.options.archiving.batch_entries)
    return () if path is None else (path.rpartition("/")[2],)


def _entries(instant: Instant, files: Files, context: ActionContext) -> list[NewBody]:
    storage, zone = context.meta.storage, context.meta.config.timeline_zone
    return [
        archive_entry(instant.requested_time, action, state, storage.read(info.path), time_of(info.modified_ms, zone))
        for action, state, info in _states(instant, files)
    ]


# ---- the active timeline ---------------------------------------------------------------------------------------------


def _delete(instants: Sequence[Instant], files: Files, storage: Storage) -> None:
    markers = {entry.name for entry in storage.list(TEMPORARY_FOLDER)}
    for instant in instants:
        if instant.requested_time in markers:
            delete_markers(storage, instant.requested_time)
    files_of_instants = [(state, info.path) for instant in instants for _, state, info in _states(instant, files)]
    pending = [path for state, path in files_of_instants if state is not State.COMPLETED]
    for path in pending:
        storage.delete(path)
    storage.sync(pending)  # pending files that reappear without the completed one would be a failed write
    for state, path in files_of_instants:
        if state is State.COMPLETED:
            storage.delete(path)
            # One by one: if an older one reappears, a deleted younger one would seem uncommitted.
            storage.sync([path])
