"""Finds orphans: data files that belong to no completed and no pending instant.

    file of an unknown instant                    its rollback died, or deleted only some of its files
    base file that the commit does not name       left by a failed attempt of a task

The first kind causes duplicates: once the timeline begins after the instant, readers treat its files as those of an
archived commit. So the archived timeline decides about them, as far as it reaches back; older files are kept. A clean
deletes the orphans, so that the metadata table follows.

Files of pending writes are kept, even of dead ones, which the next write undoes; so are files with a live heartbeat.
Below version 8 log files carry the instant of their slice: one with a block of a known instant is kept.
Source: docs/repairs.md, "Orphans"; docs/formats/timeline.md, "What a reader sees"; docs/formats/file-names.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from pyhudi.actions.action import ActionContext
from pyhudi.errors import CorruptFile, PathNotFound, WriteConflict
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.formats.timeline.clean_plans import encode_clean_plan
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import HEARTBEAT_FOLDER, META_FOLDER, BaseFileName, LogFileName, instant_of
from pyhudi.model.instant import ActionKind
from pyhudi.model.plans import KEEP_LATEST_COMMITS, READABLE_SINCE, CleanPlan, RetainedInstant
from pyhudi.services.clean.cleaning import pending_cleans, plan_path
from pyhudi.services.clean.planner import last_clean, savepointed_files
from pyhudi.services.clean.runs import check_no_restore, run_cleans
from pyhudi.services.repair.result import RepairItem, RepairResult
from pyhudi.storage.base import FileInfo, Storage
from pyhudi.storage.paths import parent
from pyhudi.timeline.archived_timeline import load_archived_timeline
from pyhudi.transaction.instants import request

__all__ = ["orphans"]

_RUN = "table.maintenance.repair.orphans(dry_run=False)"


def orphans(context: ActionContext, *, dry_run: bool = True) -> RepairResult:
    """Find the orphaned files, and delete them by one clean.

    Args:    dry_run: only return them.
    Raises:  WriteConflict while a restore or another clean is running.
    """
    root = context.meta.storage.root
    if dry_run:
        return RepairResult(root, "orphans", find_orphans(context), run=_RUN)
    with context.locked():
        context = context.reloaded()
        check_no_restore(context)
        pending = pending_cleans(context.meta.timeline)
        if pending:
            raise WriteConflict(
                f"{root}: the clean {pending[0].requested_time} is not complete. Nothing was deleted; run it by "
                "table.clean(), then repair again."
            )
        items = find_orphans(context)
        if not items:
            return RepairResult(root, "orphans", run=_RUN)
        plan = _plan(items, context.meta)
        instant = request(ActionKind.CLEAN, encode_clean_plan(plan, partial(plan_path, context.meta.storage)), context)
    runs = run_cleans((instant,), context.reloaded(), plan)
    return RepairResult(root, "orphans", items, bool(runs), instant.requested_time if runs else None, _RUN)


def find_orphans(context: ActionContext) -> tuple[RepairItem, ...]:
    """The orphans, by path. Files are listed before the timeline, so that every writer of one is on it."""
    entries = [entry for entry in data_files(context.meta.storage) if instant_of(entry.name) is not None]
    context = context.reloaded()
    owners = _Owners.of(context, (str(instant_of(entry.name)) for entry in entries))
    savepointed = {
        (path, name) for files in savepointed_files(context.meta).values() for path in files for name in files[path]
    }
    items = []
    for entry in entries:
        why = owners.why_orphan(entry)
        if why is not None and (parent(entry.path), entry.name) not in savepointed:
            items.append(RepairItem(entry.path, why, "delete", entry.size_bytes))
    return tuple(sorted(items, key=lambda item: item.where))


def data_files(storage: Storage) -> Iterator[FileInfo]:
    """Base files, log files and change logs in the table's folder, without those of the metadata table."""
    for entry in storage.walk(""):
        if entry.path.startswith(f"{META_FOLDER}/"):
            continue
        if BaseFileName.parse(entry.name) is not None or LogFileName.parse(entry.name) is not None:
            yield entry


@dataclass(frozen=True)
class _Owners:
    """The instants that own files. `known_since`: older instants are unknown. `base_files`: names of base files by the
    instant whose body names them, of the instants on the active timeline whose bodies can be read.
    """

    meta: MetaClient
    completed: frozenset[str]
    left_alone: frozenset[str]
    known_since: str
    base_files: dict[str, frozenset[str]]

    @classmethod
    def of(cls, context: ActionContext, times: Iterable[str]) -> _Owners:
        meta = context.meta
        timeline = meta.timeline
        writes = timeline.commits()
        completed = {instant.requested_time for instant in writes}
        pending = {instant.requested_time for instant in timeline.pending()} | _being_undone(meta)
        beating = {entry.name for entry in meta.storage.list(HEARTBEAT_FOLDER) if not context.is_dead(entry.name)}
        unknown = {time for time in times if time not in completed and time not in pending}
        known_since = timeline.active_since or timeline.first_time or ""
        if any(time < known_since for time in unknown):
            archived = [i for i in load_archived_timeline(meta.storage, meta.config).times() if i.action.is_write]
            completed |= {instant.requested_time for instant in archived}
            known_since = min((i.requested_time for i in archived), default=known_since)
        base_files: dict[str, frozenset[str]] = {}
        for instant in writes:
            try:
                body = meta.commits.metadata(instant)
            except (CorruptFile, PathNotFound):
                continue
            paths = [path for stat in body.stats() for path in stat.paths]
            base_files[instant.requested_time] = frozenset(path.rpartition("/")[2] for path in paths)
        return cls(meta, frozenset(completed), frozenset(pending | beating), known_since, base_files)

    def why_orphan(self, entry: FileInfo) -> str | None:
        """The reason why a file is an orphan; None if an instant owns it, or may."""
        time = str(instant_of(entry.name))
        if time in self.left_alone or time < self.known_since:
            return None
        if time in self.completed:
            is_base = BaseFileName.parse(entry.name) is not None
            names = self.base_files.get(time)
            return f"{time} is complete and does not name it" if is_base and names and entry.name not in names else None
        if (
            not self.meta.config.format.has_own_log_files
            and LogFileName.parse(entry.name) is not None
            and self._is_used(entry)
        ):
            return None
        return f"no instant {time}, neither active nor archived"

    def _is_used(self, entry: FileInfo) -> bool:
        """True if a log file holds blocks of a completed instant, or can't be read."""
        try:
            blocks = [block for block in scan_log(self.meta.storage, entry.path) if isinstance(block, LogBlock)]
        except CorruptFile:
            return True
        times = {block.instant_time for block in blocks}
        return bool(times & (self.completed | self.left_alone)) or any(time < self.known_since for time in times)


def _being_undone(meta: MetaClient) -> set[str]:
    """Targets of rollbacks that are not complete: the process that finishes them deletes their files."""
    targets = set()
    for instant in meta.timeline.pending().of([ActionKind.ROLLBACK]):
        try:
            targets.add(meta.reader.rollback_plan(instant).instant_to_rollback.commit_time)
        except (CorruptFile, PathNotFound):
            continue
    return targets


def _plan(items: Iterable[RepairItem], meta: MetaClient) -> CleanPlan:
    """The plan of a clean of these files. Its earliest readable instant is that of the last clean."""
    files: dict[str, list[str]] = defaultdict(list)
    for item in items:
        files[parent(item.where)].append(item.where.rpartition("/")[2])
    before = last_clean(meta)
    newest = meta.timeline.last_commit()
    earliest = None
    if before is not None and before.earliest:
        retained = meta.timeline.find(before.earliest)
        action = retained.action.value if retained is not None else ActionKind.COMMIT.value
        earliest = RetainedInstant(before.earliest, action, "COMPLETED")
    last = before.last_commit if before is not None else newest.requested_time if newest is not None else ""
    return CleanPlan(
        KEEP_LATEST_COMMITS,
        earliest,
        last,
        {path: tuple(files[path]) for path in sorted(files)},
        extra_metadata={**(before.extra_metadata if before is not None else {READABLE_SINCE: ""})},
    )
