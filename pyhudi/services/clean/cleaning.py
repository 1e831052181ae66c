"""Cleaning: files that no allowed query needs are deleted.

    <T>.clean.requested   the plan: names of the files to delete         under the lock
    <T>.clean.inflight    the plan again; empty from table version 9 on
    files deleted         missing ones count as deleted
    empty partitions      metadata and folders deleted                    under the lock, if no write is pending
    <T>.clean             names of deleted files                          under the lock

Every step may be repeated. An interrupted clean is finished by its plan before the next one is made.
Source: docs/formats/timeline.md, "Bodies"; docs/formats/table-services.md, "Cleaning plan".
"""

from __future__ import annotations

from dataclasses import replace

from pyhudi.actions.action import ActionContext
from pyhudi.actions.undo.checks import check_not_being_undone
from pyhudi.actions.undo.rollback import roll_back_failed_writes
from pyhudi.errors import TableError
from pyhudi.formats.timeline.clean_plans import encode_clean_plan
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.plans import KEEP_LATEST_COMMITS
from pyhudi.model.timeline import Timeline
from pyhudi.services.clean.planner import PlannedClean, commits_since_clean, plan_clean
from pyhudi.services.clean.runs import CleanResult, CleanRun, check_no_restore, run_cleans
from pyhudi.storage.base import Storage
from pyhudi.transaction.instants import request
from pyhudi.view.readable_history import load_readable_history

__all__ = ["clean", "clean_after_write", "pending_cleans", "plan_path"]

_DRAFTS = 3  # attempts without the lock; the next draft is made under it
# Actions that may invalidate an earlier draft: they need old files, or bring old slices back.
_GUARDED = frozenset(
    {
        ActionKind.SAVEPOINT,
        ActionKind.ROLLBACK,
        ActionKind.RESTORE,
        ActionKind.COMPACTION,
        ActionKind.LOGCOMPACTION,
        ActionKind.CLUSTERING,
        ActionKind.CLEAN,
    }
)


def clean(
    context: ActionContext, *, dry_run: bool = False, schedule_only: bool = False, instant_time: str | None = None
) -> CleanResult:
    """Delete files that no allowed query needs. Pending cleans are executed first.

    Args:
        dry_run: only return the files to delete, with reasons. schedule_only: leave the plan for another run or
            process.
        instant_time: execute only this pending clean.
    Raises: HudiError. Deleted files remain deleted; the next clean finishes this one.
    """
    table, options = context.meta.storage.root, context.options.cleaning
    if dry_run:
        planned = plan_clean(context) if _is_due(context) else PlannedClean(options.policy, None)
        times = tuple(instant.requested_time for instant in pending_cleans(context.meta.timeline))
        return replace(_result(planned, context), waiting=times)
    if instant_time is not None:
        return CleanResult(table, options.policy, runs=run_cleans((_waiting(instant_time, context),), context))
    undone: tuple[str, ...] = ()
    if context.options.failed_writes_policy == "LAZY":
        undone = roll_back_failed_writes(context)
        context = context.reloaded() if undone else context
    runs = () if schedule_only else run_cleans(pending_cleans(context.meta.timeline), context)
    context = context.reloaded() if runs else context
    if not _is_due(context):
        return CleanResult(table, options.policy, runs=runs, rolled_back=undone)
    planned, instant = _schedule(context)
    if instant is not None and not schedule_only:
        runs = (*runs, *run_cleans((instant,), context, planned.plan()))
    return _result(planned, context, instant, runs, undone)


def pending_cleans(timeline: Timeline) -> tuple[Instant, ...]:
    """Cleans that are not completed, oldest first."""
    return tuple(instant for instant in timeline.pending() if instant.action is ActionKind.CLEAN)


def clean_after_write(context: ActionContext) -> tuple[str, ...]:
    """Clean after a complete write, when its options and the trigger ask for it.

    Args:    context: the table before the write. With fewer commits than are to be retained, nothing is read.
    Returns: the instants that were completed.
    """
    options = context.options.cleaning
    pending = pending_cleans(context.meta.timeline)
    few = options.policy == KEEP_LATEST_COMMITS and len(context.meta.timeline.commits()) < options.commits_retained
    if not options.automatic or (few and not pending):
        return ()
    context = context.reloaded()
    runs = run_cleans(pending_cleans(context.meta.timeline), context)
    context = context.reloaded() if runs else context
    if commits_since_clean(context.meta) >= options.trigger_commits:
        planned, instant = _schedule(context, after_write=True)
        if instant is not None:
            runs = (*runs, *run_cleans((instant,), context, planned.plan()))
    return tuple(run.instant_time for run in runs)


def _waiting(instant_time: str, context: ActionContext) -> Instant:
    pending = pending_cleans(context.meta.timeline)
    waiting_clean = next((instant for instant in pending if instant.requested_time == instant_time), None)
    if waiting_clean is None:
        times = ", ".join(instant.requested_time for instant in pending) or "none"
        raise TableError(f"{context.meta.storage.root}: no clean {instant_time} is waiting; pending ones: {times}.")
    return waiting_clean


def _is_due(context: ActionContext) -> bool:
    """True if a clean is due. A call always cleans, unless it names a trigger."""
    options = context.options.cleaning
    return not options.trigger_is_given or commits_since_clean(context.meta) >= options.trigger_commits


def _result(
    planned: PlannedClean,
    context: ActionContext,
    instant: Instant | None = None,
    runs: tuple[CleanRun, ...] = (),
    undone: tuple[str, ...] = (),
) -> CleanResult:
    return CleanResult(
        context.meta.storage.root,
        planned.policy,
        _readable_since(planned, context),
        planned.to_delete,
        planned.emptied,
        None if instant is None else instant.requested_time,
        runs,
        undone,
    )


def _readable_since(planned: PlannedClean, context: ActionContext) -> str | None:
    """The earliest instant that can be read: the plan's, or a later one if an earlier clean retained less."""
    retained = None if planned.earliest is None else planned.earliest.requested_time
    if retained is None and not planned.is_empty:
        return None
    cleaned = load_readable_history(context.reloaded().meta).earliest
    return max(filter(None, (retained, cleaned)), default=None)


# ---- scheduling ------------------------------------------------------------------------------------------------------


def _schedule(context: ActionContext, *, after_write: bool = False) -> tuple[PlannedClean, Instant | None]:
    """Put a plan on the timeline; None when there is nothing to do, or another process is doing it. Listing needs no
    lock.
    """
    check_no_restore(context)
    for _ in range(_DRAFTS):
        planned = plan_clean(context, after_write=after_write)
        if planned.is_empty:
            return planned, None
        with context.locked():
            now = context.reloaded()
            if pending_cleans(now.meta.timeline):
                return planned, None
            if _guards(now) == _guards(context):
                return planned, _request(planned, now)
        context = now
    with context.locked():
        now = context.reloaded()
        planned = plan_clean(now, after_write=after_write)
        waits = planned.is_empty or pending_cleans(now.meta.timeline)
        return planned, None if waits else _request(planned, now)


def _guards(context: ActionContext) -> frozenset[tuple[str, ActionKind, State]]:
    meta = context.meta
    pending = {i for i in meta.timeline.pending() if i.action is ActionKind.REPLACECOMMIT}
    guarded = pending | {i for i in meta.timeline if i.action in _GUARDED}
    return frozenset((i.requested_time, i.action, i.state) for i in guarded)


def _request(planned: PlannedClean, context: ActionContext) -> Instant:
    storage = context.meta.storage
    check_not_being_undone(context.meta, "a cleaning")
    body = encode_clean_plan(planned.plan(), lambda path: plan_path(storage, path))
    return request(ActionKind.CLEAN, body, context)


def plan_path(storage: Storage, path: str) -> str:
    """The path as Hudi writes it: absolute, without a scheme on a local disk."""
    full = storage.full_path(path)
    return full.removeprefix("file://").removeprefix("file:")
