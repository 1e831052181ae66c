"""Rollback: undo a write that failed, or the newest completed one on request.

    <R>.rollback.requested   the plan: one request per file          under the lock
    <R>.rollback.inflight    empty
    (a completed target is set back to inflight: from now on it is invisible)
    files undone             see rollback_files; a missing file counts as deleted
    markers and heartbeat of the target deleted
    target's instant files deleted, then <R>.rollback                under the lock

Every step may be repeated: a half-done rollback goes on from its plan, under the same instant time.

An abandoned build of an index has no files to undo. Either a process made its instant under the lock and died, or a
build of Apache Hudi failed and left it. The plan of an index that is built while writers go on stays: the table's
properties list that index, and the next builder finishes it.
Source: docs/formats/writers.md, "Markers", "Failed writes"; docs/formats/timeline.md, "Rollback";
docs/formats/metadata-table.md, "Made and dropped by name", "Built while writers go on".

"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress

from pyhudi.actions.action import ActionContext
from pyhudi.actions.metadata_participant import METADATA_TABLE
from pyhudi.actions.undo.checks import (
    action_of,
    check_can_be_undone,
    check_is_newest,
    check_is_uncommitted,
    check_no_clean_needs,
)
from pyhudi.completed import unnamed
from pyhudi.errors import CorruptFile, PathNotFound, StorageError, TableError, WriteConflict
from pyhudi.filegroup.write.markers import delete_markers, sweep
from pyhudi.formats.bootstrap import delete_index
from pyhudi.formats.timeline.instant_files import encode_rollback_plan
from pyhudi.index.consistent_bucket import delete_rings
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.staged_index import delete_staged_index
from pyhudi.model.buckets import BUCKET_KEYS
from pyhudi.model.commit import OperationType
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.filenames import SKELETON_TIME, heartbeat_path
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.new_table import CREATE_SCHEMA
from pyhudi.model.plans import InstantInfo, RollbackMetadata, RollbackPlan
from pyhudi.timeline.schema_history_files import delete_history
from pyhudi.timeline.table_properties import update_table_config
from pyhudi.transaction.commit import TakenOver, after_commit, commit
from pyhudi.transaction.instants import drop, reopen, request, start
from pyhudi.transaction.undo import check_plan, requests_of, undo_files
from pyhudi.view.pending_plans import pending_clusterings, pending_compactions

__all__ = [
    "clear_dead_indexing",
    "finish_rollbacks",
    "forget_buckets",
    "is_being_rolled_back",
    "roll_back_failed_writes",
    "rollback",
    "rollback_target",
    "undo",
    "undo_planned",
]


_REPLACING = frozenset(kind.value for kind in ActionKind if kind.is_replacing)


def roll_back_failed_writes(context: ActionContext) -> tuple[str, ...]:
    """Undo pending writes of dead writers, newest first, and finish half-done rollbacks.

    EAGER considers every pending write dead, LAZY those whose heartbeat has expired, NEVER none. Pending compactions
    and clusterings are plans, and are kept. Returns the undone instant times.
    """
    policy = context.options.failed_writes_policy
    if policy == "NEVER":
        return ()
    undone = list(finish_rollbacks(context))
    if _pending_rollbacks(context.meta):
        context = context.reloaded()
    for instant in reversed(context.meta.timeline.pending().instants):
        if not _is_failed_write(instant, context):
            continue
        if policy == "LAZY" and not context.is_dead(instant.requested_time):
            continue
        if _roll_back_dead(instant, context) is not None:
            undone.append(instant.requested_time)
    return tuple(undone)


def finish_rollbacks(context: ActionContext) -> tuple[str, ...]:
    """Finish pending rollbacks of any process; return the instants that they undo."""
    resumed = [_resume(instant, context) for instant in _pending_rollbacks(context.meta)]
    return tuple(time for time in resumed if time is not None)


def undo(instant: Instant, context: ActionContext, *, frees_space: bool = False) -> None:
    """Undo a failed write of this process. If it is complete, only its temporary files are deleted.

    An instant that was only requested has no files and leaves no trace.

    Args:   frees_space: the store may be full, so files are deleted before anything is written. From version 8 on they
                always are; below, readers may have listed its log files, whose names don't identify the write.
    """
    context = context.reloaded()
    current = context.meta.timeline.find(instant.requested_time, instant.action)
    if current is None:
        return
    if current.is_completed:
        _delete_markers_and_heartbeat(current.requested_time, context)
        return
    if current.state is State.REQUESTED:
        _delete_markers_and_heartbeat(current.requested_time, context)
        drop(current, context.meta)
    else:
        if frees_space or context.meta.config.format.has_own_log_files:
            _delete_marked(current, context)
        _roll_back_dead(current, context)
        if context.tasks_may_outlive_it:  # they may have made files until the instant was gone
            _delete_marked(current, context)
            delete_markers(context.meta.storage, current.requested_time)


def _roll_back_dead(instant: Instant, context: ActionContext) -> RollbackMetadata | None:
    """Undo a pending write of a dead writer. If the plan can't be written, the dead writer's files may fill the disk:
    they are deleted first, and the plan is then still made from its markers.
    """
    with unnamed():
        try:
            return _roll_back(instant, context)
        except (StorageError, OSError):
            _delete_marked(instant, context)
            return _roll_back(instant, context.reloaded())


def _delete_marked(instant: Instant, context: ActionContext) -> None:
    """Delete the files that a pending write has announced; the rollback counts missing files as deleted."""
    with suppress(CorruptFile):  # an invalid marker: the rollback reports it
        sweep(context.meta.storage, instant.requested_time, keep=())


def rollback(context: ActionContext, instant_time: str) -> RollbackMetadata:
    """Undo a write by its instant time: a pending one, or the newest completed one. Writers that built on it and are
    not complete yet give way.

    Raises TableError when there is no such write, a later one is complete, or a savepoint protects it; WriteConflict
    when one completes as the rollback begins, or a cleaning is at work.
    """
    target = rollback_target(context, instant_time)
    undone = _roll_back(target, context)
    if undone is None:
        raise WriteConflict(
            f"{context.meta.storage.root}: {instant_time} has completed, or was rolled back, while this rollback "
            "began. Look at the table again, and roll back again if need be."
        )
    return undone


def rollback_target(context: ActionContext, instant_time: str) -> Instant:
    """The write of this instant time, if it can be undone. Raises TableError like `rollback`; nothing is changed."""
    timeline = context.meta.timeline
    target = timeline.find(instant_time)
    where = context.meta.storage.root
    if target is None or not target.action.is_write:
        newest = timeline.last_commit()
        raise TableError(
            f"{where}: no write {instant_time} on the active timeline; the newest completed one is "
            f"{newest.requested_time if newest else 'none'}."
        )
    if any(i.action is ActionKind.SAVEPOINT and i.requested_time == instant_time for i in timeline):
        raise TableError(
            f"{where}: {instant_time} has a savepoint. Delete the savepoint first; nothing was rolled back."
        )
    later = [i.requested_time for i in timeline.commits() if i.requested_time > instant_time]
    if target.is_completed and later:
        raise TableError(
            f"{where}: {instant_time} can't be rolled back, because later writes are complete and may have built on "
            f"it: {', '.join(later[:5])}. Roll those back first, newest first."
        )
    _check_no_plan_needs(target, context)
    if target.is_completed:
        check_can_be_undone(target, context)
    return target


def _check_no_plan_needs(target: Instant, context: ActionContext) -> None:
    """Refuse a target that a pending compaction or clustering needs, or a pending compaction itself: log files depend
    on it, and it is no failed write.
    """
    where = context.meta.storage.root
    if not target.is_completed:
        if target.action.is_compaction:
            raise TableError(
                f"{where}: {target.requested_time} is a {target.action.value} that waits to be run, not a failed "
                f"write; log files written since may depend on it. Run it: "
                f"compact(instant_time={target.requested_time!r})."
            )
        return
    groups = {
        FileGroupId(stat.partition_path or "", stat.file_id) for stat in context.meta.commits.metadata(target).stats()
    }
    clusterings = {group: instant.requested_time for group, instant in pending_clusterings(context.meta).items()}
    for service, planned in (("compaction", pending_compactions(context.meta)), ("clustering", clusterings)):
        plan_times = {time for group, time in planned.items() if group in groups and time > target.requested_time}
        if plan_times:
            raise TableError(
                f"{where}: {target.requested_time} can't be rolled back, because the {service} {min(plan_times)} waits "
                f"to be run and its plan reads what it wrote. Run the {service} first."
            )


def _roll_back(target: Instant, context: ActionContext) -> RollbackMetadata | None:
    """Undo a write; None if nothing is left to undo: it has completed, or was undone."""
    with context.locked():
        context = context.reloaded()
        current = context.meta.timeline.find(target.requested_time, target.action)
        if current is None or current.is_completed > target.is_completed:
            return None
        check_is_uncommitted(current, context)
        planned = _planned_already(current, context)
        if planned is None:
            if current.is_completed:
                _check_still_newest(current, context)
                _keep_columns(current, context)
            plan = RollbackPlan(
                InstantInfo(current.requested_time, current.action.value),
                () if current.state is State.REQUESTED else requests_of(current, context.meta),
            )
            forget_buckets((current,), context)
            check_plan(plan, context.meta.storage)  # an invalid plan would stay on the timeline forever
            requested = request(ActionKind.ROLLBACK, encode_rollback_plan(plan), context)
            planned = start(requested, context.meta), plan
    return _perform(*planned, current, context)


def _check_still_newest(target: Instant, context: ActionContext) -> None:
    """Repeat all checks of a completed target: others may have committed before the lock was taken. Hold it."""
    time = target.requested_time
    later = [i.requested_time for i in context.meta.timeline.commits() if i.requested_time > time]
    if later:
        raise WriteConflict(
            f"{context.meta.storage.root}: {', '.join(later[:3])} completed while the rollback of {time} began, and "
            f"may have built on it. Nothing was undone. Look at the table again; to undo the later write, too, roll "
            f"it back first."
        )
    rollback_target(context, time)
    check_no_clean_needs((target,), context)


def _keep_columns(target: Instant, context: ActionContext) -> None:
    """Save the columns in the properties when the only completed write is about to be undone: no other file would have
    them, and the table would have none. Hold the lock.
    """
    meta = context.meta
    if meta.config.create_schema is not None or len(meta.timeline.commits()) > 1:
        return
    text = meta.commits.metadata(target).schema_json
    if text is not None:
        schema = json.loads(text)
        fields = [field for field in schema["fields"] if field["name"] not in META_COLUMNS]
        data_schema = text if len(fields) == len(schema["fields"]) else json.dumps({**schema, "fields": fields})
        update_table_config(meta.storage, {CREATE_SCHEMA: data_schema}, clock=context.clock)


def forget_buckets(targets: Iterable[Instant], context: ActionContext) -> None:
    """Remove the number of buckets from the properties when an undone write may have changed it: then the file groups
    decide. Hold the lock.
    """
    meta = context.meta
    replacing = [target for target in targets if target.is_completed and target.action.is_replacing]
    kinds = {meta.commits.metadata(target).operation_type for target in replacing if meta.config.buckets is not None}
    if OperationType.INSERT_OVERWRITE_TABLE in kinds:
        update_table_config(meta.storage, {}, BUCKET_KEYS, context.clock)


def _planned_already(target: Instant, context: ActionContext) -> tuple[Instant, RollbackPlan] | None:
    """The pending rollback of an instant that another process has begun. Hold the lock."""
    for instant in _pending_rollbacks(context.meta):
        plan = context.meta.reader.rollback_plan(instant)
        if plan.instant_to_rollback.commit_time == target.requested_time:
            return (start(instant, context.meta) if instant.state is State.REQUESTED else instant), plan
    return None


def is_being_rolled_back(target: Instant, meta: MetaClient) -> bool:
    """True if another process has planned to undo this instant. Hold the lock."""
    plans = (meta.reader.rollback_plan(instant) for instant in _pending_rollbacks(meta))
    return any(plan.instant_to_rollback.commit_time == target.requested_time for plan in plans)


def _resume(instant: Instant, context: ActionContext) -> str | None:
    """Finish a pending rollback by its plan; returns the instant that it undoes, None when another was faster."""
    with context.locked():
        context = context.reloaded()
        pending = context.meta.timeline.find(instant.requested_time, ActionKind.ROLLBACK)
        if pending is None or pending.is_completed:
            return None
        plan = context.meta.reader.rollback_plan(pending)
        info, where = plan.instant_to_rollback, f"{context.meta.storage.root}: the plan of {pending.requested_time}"
        target = context.meta.timeline.find(info.commit_time, action_of(info, where))
        if target is not None:
            check_is_newest(target, pending.requested_time, context)
            check_is_uncommitted(target, context)
        check_plan(plan, context.meta.storage)
        if pending.state is State.REQUESTED:
            pending = start(pending, context.meta)
    _perform(pending, plan, target, context)
    return info.commit_time


def _perform(instant: Instant, plan: RollbackPlan, target: Instant | None, context: ActionContext) -> RollbackMetadata:
    """Execute the inflight rollback and complete it. `target` None: a crashed attempt has deleted its files."""
    began_s = context.clock.monotonic_s()
    pending, metadata = undo_planned(instant, plan, target, context)

    def delete_target_instant(now: ActionContext) -> None:
        if pending is not None:
            drop(pending, now.meta)

    try:
        commit(
            instant,
            context,
            lambda now: metadata,
            participant=METADATA_TABLE,
            paths_to_sync=(),
            began_s=began_s,
            last=delete_target_instant,
        )
    except TakenOver:
        return metadata  # another process did the same at the same time
    after_commit(
        "deleting its markers", instant, context, lambda: delete_markers(context.meta.storage, instant.requested_time)
    )
    return metadata


def undo_planned(
    instant: Instant,
    plan: RollbackPlan,
    target: Instant | None,
    context: ActionContext,
    *,
    is_repeated: bool = False,
) -> tuple[Instant | None, RollbackMetadata]:
    """Undo an instant's writes by the plan of the inflight rollback `instant`. `is_repeated`: an earlier attempt has
    done it (`undo_files`).

    Returns: the target as it is now, pending (a completed one is reopened first), and the body of the rollback.
    """
    storage = context.meta.storage
    started_s = context.clock.monotonic_s()
    info = plan.instant_to_rollback
    # Off the timeline, but visible: it was archived, so its files must stay; or an earlier attempt deleted them.
    is_over = target is None and context.meta.timeline.is_visible(info.commit_time)
    if target is not None and target.is_completed:
        target = _reopened(target, instant, context)
    partitions = {} if is_over else undo_files(plan, instant.requested_time, storage, is_repeated=is_repeated)
    # The rollback is still pending here: if this process dies, the next one repeats the step.
    _delete_markers_and_heartbeat(info.commit_time, context)
    if not is_over:
        delete_history(info.commit_time, storage)
    if info.action in _REPLACING and not is_over:
        delete_rings(storage, info.commit_time)
    if info.commit_time == SKELETON_TIME and not is_over:
        delete_index(storage)
    return target, RollbackMetadata(
        start_rollback_time=instant.requested_time,
        time_taken_ms=int((context.clock.monotonic_s() - started_s) * 1000),
        total_files_deleted=sum(len(p.success_delete_files) for p in partitions.values()),
        commits_rollback=(info.commit_time,),
        partitions=partitions,
        instants_rollback=(info,),
    )


def _reopened(target: Instant, rollback: Instant, context: ActionContext) -> Instant | None:
    """Reopen a completed target; None if another process has undone it.

    Under the lock: a late process must not reopen an instant that another one has undone.
    """
    with context.locked():
        now = context.reloaded()
        current = now.meta.timeline.find(target.requested_time, target.action)
        running = now.meta.timeline.find(rollback.requested_time, rollback.action)
        if current is None or running is None or running.is_completed:
            return None
        return reopen(current, now.meta) if current.is_completed else current


def _delete_markers_and_heartbeat(instant_time: str, context: ActionContext) -> None:
    delete_markers(context.meta.storage, instant_time)
    delete_staged_index(context.meta.storage, instant_time)
    context.meta.storage.delete(heartbeat_path(instant_time))


def _pending_rollbacks(meta: MetaClient) -> list[Instant]:
    return [i for i in meta.timeline.pending() if i.action is ActionKind.ROLLBACK]


def _is_failed_write(instant: Instant, context: ActionContext) -> bool:
    if not instant.action.is_commit:
        return False
    return context.meta.reader.clustering_plan(instant) is None


def clear_dead_indexing(context: ActionContext) -> tuple[str, ...]:
    """Delete abandoned index builds; return their instant times. The index itself is built, or was never listed."""
    if not any(_is_dead(instant, context) for instant in _pending(context)):
        return ()
    with context.locked():
        now = context.reloaded()  # a build under the lock can't be running now
        dead = [instant for instant in _pending(now) if _is_dead(instant, now)]
        for instant in dead:
            drop(instant, now.meta)
    return tuple(instant.requested_time for instant in dead)


def _pending(context: ActionContext) -> tuple[Instant, ...]:
    return tuple(context.meta.timeline.pending().of([ActionKind.INDEXING]))


def _is_dead(instant: Instant, context: ActionContext) -> bool:
    meta = context.meta
    if not context.is_dead(instant.requested_time):
        return False
    try:
        names = meta.reader.index_plan(instant).partitions
    except (CorruptFile, PathNotFound):
        return True  # cut off by a power cut, or just deleted
    return not set(names) & set(meta.config.metadata_partitions_inflight)
