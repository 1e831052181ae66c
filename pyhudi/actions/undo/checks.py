"""Checks that an undo is safe, before files are deleted.

A completed write is undone only while the files that it replaced exist. Cleaning may have deleted them since, and rows
would be lost:

    a new version of a base file    needs the version before it
    a compaction                    needs the base and log files that it merged
    a replacecommit                 needs a file of each group that it replaced

Files that another write made need not exist if that write is undone too.

Any process may have put a plan on the timeline. So its target is checked as well:

    pending write, its time that of a committed one    refused: files of the committed write have the same instant
    completed write                                    the newest one only, and not a savepointed one
    not on the timeline, its files count               left as it is: undone by an earlier attempt, or archived since

Source: docs/formats/timeline.md, "Rollback", "Savepoint and restore"; docs/formats/history.md, "What may be archived".

"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from pyhudi.actions.action import ActionContext
from pyhudi.errors import CorruptFile, PathNotFound, TableError, WriteConflict
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.filenames import BaseFileName, LogFileName
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.plans import InstantInfo, RestorePlan
from pyhudi.timeline.archived_timeline import load_archived_timeline

__all__ = [
    "action_of",
    "being_undone",
    "check_can_be_undone",
    "check_is_newest",
    "check_is_uncommitted",
    "check_no_clean_needs",
    "check_not_being_undone",
    "check_replaced_files_exist",
    "check_restore",
]


_NONE = ("", "null", None)


def being_undone(meta: MetaClient) -> frozenset[str]:
    """Instants that pending rollbacks and restores are about to undo, or have half undone. Hold the lock."""
    pending = meta.timeline.pending()
    plans = (meta.reader.rollback_plan(instant) for instant in pending.of([ActionKind.ROLLBACK]))
    restores = (meta.reader.restore_plan(instant) for instant in pending.of([ActionKind.RESTORE]))
    return frozenset(
        [
            *(plan.instant_to_rollback.commit_time for plan in plans),
            *(info.commit_time for plan in restores for info in plan.instants),
        ]
    )


def check_not_being_undone(meta: MetaClient, what: str) -> None:
    """Raise WriteConflict while a rollback or restore is about to undo a write that is complete in `meta`.

    An action that builds on such a write would bring its rows back. Hold the lock.

    Args: what: the action that can't be done now, as a subject for the message.
    """
    pending = meta.timeline.pending().of([ActionKind.ROLLBACK, ActionKind.RESTORE])
    if not pending.instants:
        return
    doomed = sorted(being_undone(meta).intersection(i.requested_time for i in meta.timeline.commits()))
    if doomed or pending.of([ActionKind.RESTORE]).instants:
        undoing = pending.instants[-1]
        raise WriteConflict(
            f"{meta.storage.root}: the {undoing.action.value} {undoing.requested_time} is undoing "
            f"{', '.join(doomed[:3]) or 'writes'}, on which {what} would build. Nothing was changed; call again when "
            f"it is done. If its process has died, the next write finishes it."
        )


def check_no_clean_needs(targets: Iterable[Instant], context: ActionContext) -> None:
    """Raise WriteConflict while a cleaning is deleting files: the completed `targets` may have replaced them. Hold
    the lock.
    """
    meta = context.meta
    oldest = min((target.requested_time for target in targets if target.is_completed), default=None)
    if oldest is None:
        return
    for clean in meta.timeline.pending().of([ActionKind.CLEAN]):
        if clean.requested_time > oldest:
            raise WriteConflict(
                f"{meta.storage.root}: the clean {clean.requested_time} is at work, and may delete what {oldest} "
                f"replaced. Nothing was undone; undo it when the clean is done. If its process has died, call clean()."
            )


def check_can_be_undone(target: Instant, context: ActionContext) -> None:
    """Raise TableError when rows would be lost without the completed write `target`.

    Files of archived commits are recognised with the help of the active commits, so one of these must stay.
    """
    meta = context.meta
    if len(meta.timeline.commits()) == 1 and any(
        i.action.is_write for i in load_archived_timeline(meta.storage, meta.config).times()
    ):
        raise TableError(
            f"{meta.storage.root}: {target.requested_time} can't be undone, because all commits before it were "
            "archived. Nothing was changed; write the rows that you want again."
        )
    check_replaced_files_exist((target,), context)


def check_replaced_files_exist(targets: Iterable[Instant], context: ActionContext) -> None:
    """Raise TableError when undoing the completed `targets` would lose rows; folders are listed once each."""
    meta = context.meta
    targets = tuple(targets)
    undone = frozenset(target.requested_time for target in targets)
    bodies = {target: meta.commits.metadata(target) for target in targets if target.is_completed}
    written = {
        (stat.partition_path or "", stat.file_id)
        for body in bodies.values()
        for stat in body.stats()
        if stat.prev_commit in _NONE
    }
    folders = _Folders(meta)
    for target, body in bodies.items():
        if body.compacted and target.action is ActionKind.COMMIT:
            missing = next(_missing_inputs(target, undone, folders), None)
        else:
            missing = next(_missing_versions(body, undone, written, folders), None)
        if missing is not None:
            raise TableError(
                f"{meta.storage.root}: {target.requested_time} can't be undone, because cleaning has deleted what it "
                f"replaced: {missing}. Nothing was changed. Go back to a later instant, or read the rows that you want "
                "and write them again; retain more commits to go back farther."
            )


class _Folders:
    """File names by partition, listed on first access."""

    def __init__(self, meta: MetaClient) -> None:
        self.meta = meta
        self._names: dict[str, frozenset[str]] = {}
        self._bases: dict[str, dict[str, set[str]]] = {}
        self._groups: dict[str, frozenset[str]] = {}

    def names(self, partition: str) -> frozenset[str]:
        if partition not in self._names:
            self._names[partition] = frozenset(entry.name for entry in self.meta.storage.list(partition))
        return self._names[partition]

    def instants_of(self, partition: str, file_id: str) -> set[str]:
        """Instants of the base files of a group."""
        if partition not in self._bases:
            instants: dict[str, set[str]] = defaultdict(set)
            for name in map(BaseFileName.parse, self.names(partition)):
                if name is not None:
                    instants[name.file_id].add(name.instant_time)
            self._bases[partition] = instants
        return self._bases[partition].get(file_id, set())

    def groups(self, partition: str) -> frozenset[str]:
        """File ids with any file."""
        if partition not in self._groups:
            parsed = (BaseFileName.parse(name) or LogFileName.parse(name) for name in self.names(partition))
            self._groups[partition] = frozenset(name.file_id for name in parsed if name is not None)
        return self._groups[partition]


def _missing_versions(
    body: CommitMetadata, undone: frozenset[str], written: set[tuple[str, str]], folders: _Folders
) -> Iterator[str]:
    for stat in body.stats():
        partition, before = stat.partition_path or "", stat.prev_commit
        is_base = stat.path is not None and BaseFileName.parse(stat.path.rpartition("/")[2]) is not None
        if not is_base or before in _NONE or before in undone:
            continue
        if str(before) not in folders.instants_of(partition, stat.file_id):
            # In a merge-on-read table the slice before may consist of log files.
            if folders.meta.config.is_merge_on_read and _has_log(folders, partition, stat.file_id):
                continue
            yield f"the version of {before} of file group {stat.file_id} in partition {partition!r}"
    for partition, file_ids in (body.partition_to_replace_file_ids or {}).items():
        for file_id in file_ids:
            if (partition, file_id) not in written and file_id not in folders.groups(partition):
                yield f"file group {file_id} in partition {partition!r}"


def _has_log(folders: _Folders, partition: str, file_id: str) -> bool:
    names = map(LogFileName.parse, folders.names(partition))
    return any(name is not None and name.file_id == file_id for name in names)


def _missing_inputs(target: Instant, undone: frozenset[str], folders: _Folders) -> Iterator[str]:
    meta = folders.meta
    try:
        if not meta.reader.read_body(target, State.REQUESTED):
            return
        plan = meta.reader.compaction_plan(target)
    except PathNotFound:
        return
    for operation in plan.operations:
        for name in (operation.data_file_name, *operation.log_file_names):
            name = (name or "").rpartition("/")[2]
            parsed = BaseFileName.parse(name) or LogFileName.parse(name)
            if parsed is None or parsed.instant_time in undone or operation.base_instant in undone:
                continue
            if name not in folders.names(operation.partition_path):
                yield f"{operation.partition_path}/{name}"


def action_of(info: InstantInfo, where: str) -> ActionKind:
    """The action of an instant that a plan names. Raises CorruptFile for an unknown action."""
    try:
        return ActionKind(info.action)
    except ValueError:
        raise CorruptFile(
            f"{where} names an action {info.action!r:.100}, which this release does not know. Finish it with Apache "
            f"Hudi."
        ) from None


def check_is_uncommitted(target: Instant, context: ActionContext) -> None:
    """Raise CorruptFile for a pending write with the time of a committed one: undoing it would delete live files.

    The history is read only where archiving could have passed the instant, which it never does for a pending one.
    """
    meta, time = context.meta, target.requested_time
    if target.is_completed or not target.action.is_write:
        return
    savepoint_times = {i.requested_time for i in meta.timeline.of([ActionKind.SAVEPOINT])}
    commits = [i.requested_time for i in meta.timeline.commits()]
    first = min((commit for commit in commits if commit not in savepoint_times), default=None)
    is_committed = time in commits
    if not is_committed and (first is None or time < first):
        archived = load_archived_timeline(meta.storage, meta.config).times(time, time)
        is_committed = any(i.action.is_write for i in archived)
    if is_committed:
        raise CorruptFile(
            f"{meta.storage.root}: {time} ({target.action.value}) is pending, but a write of the same instant time is "
            f"committed, and its files can't be told apart. Nothing was undone. If no process writes it, remove the "
            f"files {time}.*.requested and {time}.*.inflight from {meta.config.timeline_path}."
        )


def check_is_newest(target: Instant, rollback_time: str, context: ActionContext) -> None:
    """Raise TableError for a rollback on the timeline that no call can have requested."""
    timeline, root = context.meta.timeline, context.meta.storage.root
    if not target.is_completed:
        return
    later = [i.requested_time for i in timeline.commits() if i.requested_time > target.requested_time]
    has_savepoint = any(i.requested_time == target.requested_time for i in timeline.of([ActionKind.SAVEPOINT]))
    if not target.action.is_write or later or has_savepoint:
        reason = f"later writes are complete ({', '.join(later[:3])})" if later else "it has a savepoint"
        reason = reason if target.action.is_write else f"it is a {target.action.value}"
        raise TableError(
            f"{root}: the pending rollback {rollback_time} would undo {target.requested_time}, which is complete, but "
            f"{reason}. Nothing was undone. Remove {rollback_time}.rollback.requested and .inflight from "
            f"{context.meta.config.timeline_path} if you don't know where they came from, or else what is in the way."
        )


def check_restore(plan: RestorePlan, restore_time: str, context: ActionContext) -> None:
    """Raise TableError for a restore on the timeline that no call can have requested."""
    savepoint_times = {i.requested_time for i in context.meta.timeline.completed().of([ActionKind.SAVEPOINT])}
    times = [info.commit_time for info in plan.instants]
    protected = next((time for time in times if time in savepoint_times or time == plan.restore_to), None)
    if protected is not None:
        reason = "has a savepoint" if protected in savepoint_times else "is what it goes back to"
        raise TableError(
            f"{context.meta.storage.root}: the pending restore {restore_time} would undo {protected}, which {reason}. "
            f"Nothing was undone. Remove {restore_time}.restore.requested and .inflight from "
            f"{context.meta.config.timeline_path} if you don't know where they came from, or else delete the savepoint."
        )
