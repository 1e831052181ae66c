"""Undoing several writes: restore, and rollbacks on request.

A restore takes the table back to a savepoint, or to another commit whose files all exist:

    <R>.restore.requested    the plan: the instants to undo, newest first         under the lock
    <R>.restore.inflight     empty
    for each of them         a rollback with its own instant time, which stays pending
    <R>.restore              the results of the rollbacks                         under the lock
    pending files of those rollbacks deleted

No process may write during a restore. The next writer finishes a dead restore by its plan on the timeline. Until then
readers see the table as of the last instant reached.

A rollback on request undoes one write, or all writes after an instant, newest first. Each is a separate rollback on the
timeline; the next writer finishes a dead one. Source: docs/formats/timeline.md, "Rollback", "Savepoint and restore".

"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyhudi.actions.action import ActionContext
from pyhudi.actions.clustering_updates import is_clustering
from pyhudi.actions.metadata_participant import METADATA_TABLE
from pyhudi.actions.undo.checks import (
    action_of,
    check_is_uncommitted,
    check_no_clean_needs,
    check_not_being_undone,
    check_replaced_files_exist,
    check_restore,
)
from pyhudi.actions.undo.restore_result import RestoreResult, RollbackResult
from pyhudi.actions.undo.rollback import (
    forget_buckets,
    roll_back_failed_writes,
    rollback,
    rollback_target,
    undo_planned,
)
from pyhudi.errors import TableError, WriteConflict
from pyhudi.filegroup.write.markers import delete_markers
from pyhudi.formats.timeline.instant_files import encode_rollback_plan
from pyhudi.formats.timeline.savepoints import encode_restore_plan
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.plans import (
    InstantInfo,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
)
from pyhudi.timeline.archived_timeline import load_archived_timeline
from pyhudi.timeline.heartbeat import Heartbeat
from pyhudi.transaction.commit import after_commit, commit
from pyhudi.transaction.instants import draw_time, drop, request, request_at, start
from pyhudi.transaction.undo import check_plan, requests_of, requests_of_slices
from pyhudi.view.readable_history import load_readable_history

__all__ = ["finish_restores", "restore", "roll_back"]


def restore(context: ActionContext, to: str, *, dry_run: bool = False) -> RestoreResult:
    """Undo all writes after the commit `to`. `dry_run`: only return what would be undone.

    Raises TableError when there is no such commit, savepoints came after it, or cleaning or archiving has passed it;
    WriteConflict while others write.
    """
    if dry_run:
        target = _target(context.meta, to)
        doomed = _newer(context.meta, target)
        _check(context, target, doomed)
        return RestoreResult(context.meta.storage.root, to, None, RollbackResult.planned(doomed, context.meta))
    if roll_back_failed_writes(context):
        context = context.reloaded()
    with _locked(context) as heartbeats:
        context = context.reloaded()
        target = _target(context.meta, to)
        doomed = _newer(context.meta, target)
        _check(context, target, doomed)
        if not doomed:
            return RestoreResult(context.meta.storage.root, to, None, RollbackResult(context.meta.storage.root))
        check_not_being_undone(context.meta, f"the restore to {to}")
        check_no_clean_needs(doomed, context)
        plan = RestorePlan(tuple(InstantInfo(i.requested_time, i.action.value) for i in doomed), to)
        forget_buckets(doomed, context)
        time = draw_time(context)
        heartbeat = context.heartbeat(time)
        heartbeats.append(heartbeat)
        with heartbeat.beating(context.options.failed_writes_policy == "LAZY"):  # before others can see the restore
            instant = request_at(time, ActionKind.RESTORE, context.meta, encode_restore_plan(plan))
    return _perform(instant, plan, context, heartbeat)


@contextmanager
def _locked(context: ActionContext) -> Iterator[list[Heartbeat]]:
    """Hold the lock. Heartbeats that the block begins end when the block fails, or the release of the lock does."""
    heartbeats: list[Heartbeat] = []
    try:
        with context.locked():
            yield heartbeats
    except BaseException:
        for heartbeat in heartbeats:
            with suppress(Exception):  # the original error says more
                heartbeat.stop()
        raise


def finish_restores(context: ActionContext) -> tuple[str, ...]:
    """Finish dead restores, before anything else happens to the table; return the instants that they undid.

    Raises WriteConflict when another process is running a restore (failed-writes policy LAZY).
    """
    undone: list[str] = []
    for instant in context.meta.timeline.pending().of([ActionKind.RESTORE]):
        heartbeat = context.heartbeat(instant.requested_time)
        with _locked(context) as heartbeats:
            context = context.reloaded()
            current = context.meta.timeline.find(instant.requested_time, ActionKind.RESTORE)
            if current is None or current.is_completed:
                continue
            is_lazy = context.options.failed_writes_policy == "LAZY"
            if is_lazy and not context.is_dead(instant.requested_time):
                raise WriteConflict(
                    f"{context.meta.storage.root}: another process is restoring the table ({instant.requested_time}). "
                    "Wait until it is done; nothing was changed."
                )
            plan = context.meta.reader.restore_plan(current)
            check_restore(plan, instant.requested_time, context)
            if is_lazy:
                heartbeats.append(heartbeat)
                heartbeat.start()  # under the lock, so that no third process takes it over, too
        undone += [i.commit_time for i in _perform(current, plan, context, heartbeat).rolled_back]
    if not undone and context.meta.timeline.pending().of([ActionKind.ROLLBACK]).instants:
        _delete_rollbacks_of_completed_restores(context)
    return tuple(undone)


# ---- what to undo ----------------------------------------------------------------------------------------------------


def _target(meta: MetaClient, to: str) -> Instant:
    target = meta.timeline.commits().find(to)
    if target is None:
        savepoints = ", ".join(i.requested_time for i in meta.timeline.completed().of([ActionKind.SAVEPOINT])) or "none"
        raise TableError(
            f"{meta.storage.root}: there is no completed commit {to} on the active timeline to restore to. Savepoints: "
            f"{savepoints}; commits: {meta.timeline.commits().first_time} to {meta.timeline.commits().latest_time}."
        )
    return target


def _newer(meta: MetaClient, target: Instant) -> tuple[Instant, ...]:
    """Writes to undo, in order: pending clusterings, then the others, newest first.

    From version 8 on, the completion time decides which is newer; before, the requested time.
    """
    by_completion = meta.config.format.orders_by_completion

    def age(instant: Instant) -> str:
        return (instant.completion_time or "") if by_completion and instant.is_completed else instant.requested_time

    def is_newer(instant: Instant) -> bool:
        bound = target.completion_time or "" if by_completion and instant.is_completed else target.requested_time
        return instant.action.is_write and age(instant) > bound

    newer = sorted(filter(is_newer, meta.timeline), key=age, reverse=True)
    clusterings = [i for i in newer if not i.is_completed and is_clustering(i, meta)]
    return (*clusterings, *(i for i in newer if i not in clusterings))


def _check(context: ActionContext, target: Instant, doomed: tuple[Instant, ...]) -> None:
    meta, time = context.meta, target.requested_time
    root, timeline = meta.storage.root, meta.timeline
    running = [i for i in timeline.pending() if i.action.is_write and not i.action.is_compaction]
    running = [i for i in running if not is_clustering(i, meta)]
    if context.options.failed_writes_policy == "LAZY" and running:
        raise WriteConflict(
            f"{root}: {running[0].requested_time} ({running[0].action.value}) is being written. Stop the writers, then "
            "restore; nothing was changed."
        )
    times = {i.requested_time for i in doomed}
    savepoint_times = [i.requested_time for i in timeline.completed().of([ActionKind.SAVEPOINT])]
    later = sorted(times.intersection(savepoint_times))
    if later:
        raise TableError(
            f"{root}: {time} can't be restored, because later commits have savepoints: {', '.join(later)}. Delete them "
            "first; nothing was changed."
        )
    archived = [
        i for i in load_archived_timeline(meta.storage, meta.config).times(time) if i.action.is_write and i > target
    ]
    if archived:
        raise TableError(
            f"{root}: {time} can't be restored, because {len(archived)} later commits were archived, the first of them "
            f"{archived[0].requested_time}. Restore to a later commit; nothing was changed."
        )
    readable_history = load_readable_history(meta)
    if not readable_history.is_readable(time):
        raise TableError(
            f"{root}: {time} can't be restored, because cleaning has removed file versions older than "
            f"{readable_history.earliest}. Restore to that commit, a later one, or a savepoint; nothing was changed."
        )
    check_replaced_files_exist(doomed, context)


# ---- undoing it ------------------------------------------------------------------------------------------------------


def _perform(instant: Instant, plan: RestorePlan, context: ActionContext, heartbeat: Heartbeat) -> RestoreResult:
    """Execute the plan on the timeline and complete the restore. `heartbeat`: begun, where one is used."""
    try:
        started_s = context.clock.monotonic_s()
        inflight = start(instant, context.meta) if instant.state is State.REQUESTED else instant
        rollbacks_by_time = {info.commit_time: tuple(_undo(info, inflight, context)) for info in plan.instants}
        seconds = context.clock.monotonic_s() - started_s
        metadata = RestoreMetadata(
            instant.requested_time,
            int(seconds * 1000),
            plan.instants,
            {time: rollbacks for time, rollbacks in rollbacks_by_time.items() if rollbacks},
        )
        commit(
            inflight,
            context,
            lambda now: metadata,
            participant=METADATA_TABLE,
            paths_to_sync=(),
            began_s=started_s,
        )
        after_commit("ending its heartbeat", instant, context, heartbeat.stop)
    except BaseException:
        with suppress(Exception):  # the original error says more
            heartbeat.stop()
        raise
    after_commit("deleting the plans of its rollbacks", instant, context, lambda: _drop_rollbacks(instant, context))
    undone = RollbackResult.of(
        context.meta.storage.root, [r for rollbacks in rollbacks_by_time.values() for r in rollbacks]
    )
    undone = RollbackResult(context.meta.storage.root, plan.instants, undone.files_deleted, undone.logs_written)
    return RestoreResult(context.meta.storage.root, plan.restore_to or "", instant.requested_time, undone)


def _undo(info: InstantInfo, restoring: Instant, context: ActionContext) -> Iterator[RollbackMetadata]:
    """Undo one instant; yields nothing for one that an earlier attempt has undone and whose plan is gone."""
    context = context.reloaded()
    where = f"{context.meta.storage.root}: the plan of restore {restoring.requested_time}"
    target = context.meta.timeline.find(info.commit_time, action_of(info, where))
    if target is not None:
        check_is_uncommitted(target, context)
    started = next(((r, p) for r, p in _rollbacks_of(restoring, context) if p.instant_to_rollback == info), None)
    if started is None and target is not None:
        requests = () if target.state is State.REQUESTED else requests_of(target, context.meta)
        is_compaction = target.action.completed_as is ActionKind.COMMIT
        logs = requests_of_slices(target, context.meta) if is_compaction and not target.is_completed else ()
        started = _planned(info, (*requests, *logs), context)
    if started is None:
        return
    rollback, plan = started
    if rollback.state is State.REQUESTED:
        rollback = start(rollback, context.meta)
    pending, metadata = undo_planned(rollback, plan, target, context, is_repeated=target is None)
    if pending is not None:
        with context.locked():
            drop(pending, context.meta)
    yield metadata


def _planned(
    info: InstantInfo, requests: tuple[RollbackRequest, ...], context: ActionContext
) -> tuple[Instant, RollbackPlan]:
    """Put the plan of one instant's rollback on the timeline."""
    plan = RollbackPlan(info, requests)
    check_plan(plan, context.meta.storage)
    with context.locked():
        return request(ActionKind.ROLLBACK, encode_rollback_plan(plan), context.reloaded()), plan


def _rollbacks_of(restoring: Instant, context: ActionContext) -> Iterator[tuple[Instant, RollbackPlan]]:
    """The pending rollbacks that a restore has begun, with their plans."""
    for instant in context.meta.timeline.pending().of([ActionKind.ROLLBACK]).after(restoring.requested_time):
        yield instant, context.meta.reader.rollback_plan(instant)


def _delete_rollbacks_of_completed_restores(context: ActionContext) -> None:
    """Delete pending rollbacks of restores that died after they were complete."""
    for restored in context.meta.timeline.completed().of([ActionKind.RESTORE]):
        for pending, plan in _rollbacks_of(restored, context):
            undone = plan.instant_to_rollback
            where = f"{context.meta.storage.root}: the plan of {pending.requested_time}"
            target = context.meta.timeline.find(undone.commit_time, action_of(undone, where))
            if target is None and pending.requested_time < (restored.completion_time or ""):
                _drop(pending, context)


def _drop_rollbacks(restored: Instant, context: ActionContext) -> None:
    for pending, _ in _rollbacks_of(restored, context.reloaded()):
        _drop(pending, context)


def _drop(rollback: Instant, context: ActionContext) -> None:
    delete_markers(context.meta.storage, rollback.requested_time)
    drop(rollback, context.meta)


def roll_back(
    context: ActionContext, *, instant_time: str | None = None, to: str | None = None, dry_run: bool = False
) -> RollbackResult:
    """Undo a write.

    Args:    instant_time: a pending write, or the newest completed one (None: that). to: undo all completed writes
             after this commit instead. dry_run: only return what would be undone.
    Raises:  TableError; with `to`, before anything is undone or between two writes.
    """
    root = context.meta.storage.root
    pending = context.meta.timeline.find(instant_time) if instant_time is not None else None
    is_pending = pending is not None and not pending.is_completed
    if dry_run:
        return _looked_at((pending,) if is_pending and pending else _targets(context, instant_time, to), context)
    if is_pending and pending:
        return RollbackResult.of(root, [rollback(context, pending.requested_time)])
    if roll_back_failed_writes(context):
        context = context.reloaded()
    targets = _targets(context, instant_time, to)
    if to is not None:
        check_replaced_files_exist(targets, context)  # before the first one is undone
    bodies = []
    for target in targets:
        bodies.append(rollback(context, target.requested_time))
        context = context.reloaded()
    return RollbackResult.of(root, bodies)


def _looked_at(targets: tuple[Instant, ...], context: ActionContext) -> RollbackResult:
    """The result of a dry run. Raises the errors that the rollback would raise before it undoes the first write."""
    if targets:
        rollback_target(context, targets[0].requested_time)
    check_replaced_files_exist([target for target in targets if target.is_completed], context)
    return RollbackResult.planned(targets, context.meta)


def _targets(context: ActionContext, instant_time: str | None, to: str | None) -> tuple[Instant, ...]:
    commits, root = context.meta.timeline.commits(), context.meta.storage.root
    if to is not None:
        if commits.find(to) is None:
            raise TableError(
                f"{root}: there is no completed commit {to} on the active timeline to go back to; it has those from "
                f"{commits.first_time} to {commits.latest_time}."
            )
        return commits.after(to).instants[::-1]
    target = commits.last_commit() if instant_time is None else commits.find(instant_time)
    if target is None:
        raise TableError(f"{root}: there is no write {instant_time or ''} on the active timeline to roll back.")
    return (target,)
