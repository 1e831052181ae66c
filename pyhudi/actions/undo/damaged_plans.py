"""Plans that a power cut has emptied or cut off: their instants are undone.

Our plans outlast a power cut before they are executed, so they are never damaged. Other writers, and those with
hoodie.pyhudi.storage.sync=false, don't wait for the disk. Source: docs/storage.md, "A power cut".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyhudi.actions.action import ActionContext
from pyhudi.actions.undo.rollback import undo
from pyhudi.errors import CorruptFile, PathNotFound
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.timeline.read import TimelineReader
from pyhudi.transaction.instants import drop
from pyhudi.transaction.undo import has_logs_of
from pyhudi.warnings import warn_caller

__all__ = ["drop_damaged_plans", "has_damaged_plan"]

_PLANS: Mapping[ActionKind, Callable[[TimelineReader, Instant], object]] = {
    ActionKind.COMPACTION: TimelineReader.compaction_plan,
    ActionKind.LOGCOMPACTION: TimelineReader.compaction_plan,
    ActionKind.CLUSTERING: TimelineReader.clustering_plan,
    ActionKind.REPLACECOMMIT: TimelineReader.clustering_plan,
    ActionKind.CLEAN: TimelineReader.clean_plan,
    ActionKind.ROLLBACK: TimelineReader.rollback_plan,
    ActionKind.RESTORE: TimelineReader.restore_plan,
}


def drop_damaged_plans(context: ActionContext) -> tuple[str, ...]:
    """Undo pending instants whose plans can't be read, where a power cut may be the cause; return their instant times.

    Below version 8 a compaction is kept if others have written to its slices, which are unknown without the plan. A
    running restore ends at the instant it has reached.
    """
    if context.meta.storage.keeps_order or not any(
        has_damaged_plan(i, context.meta) for i in context.meta.timeline.pending()
    ):
        return ()
    dropped = []
    with context.locked():
        now = context.reloaded()
        damaged = [
            i for i in now.meta.timeline.pending() if has_damaged_plan(i, now.meta) and not _may_be_in_use(i, now)
        ]
    for instant in sorted(damaged, key=lambda i: i.action is not ActionKind.ROLLBACK):  # undoing reads their plans
        if instant.action.is_write:
            undo(instant, context)
        else:
            _warn_of_restore(instant, context)
            drop(instant, context.meta)
        dropped.append(instant.requested_time)
    return tuple(dropped)


def has_damaged_plan(instant: Instant, meta: MetaClient) -> bool:
    """True if the plan of a pending instant can't be read; False for actions without a plan."""
    read = _PLANS.get(instant.action)
    if read is None:
        return False
    try:
        plan = read(meta.reader, instant)
    except (CorruptFile, PathNotFound):
        return True
    return plan is None and instant.action is ActionKind.CLUSTERING


def _may_be_in_use(instant: Instant, context: ActionContext) -> bool:
    meta = context.meta
    if instant.action.is_compaction and not meta.config.format.has_own_log_files and has_logs_of(instant, meta.storage):
        return True
    return context.options.failed_writes_policy == "LAZY" and not context.is_dead(instant.requested_time)


def _warn_of_restore(instant: Instant, context: ActionContext) -> None:
    if instant.action is ActionKind.RESTORE and instant.state is not State.REQUESTED:
        warn_caller(
            f"{context.meta.storage.root}: the restore {instant.requested_time} died half-way, and its plan can't be "
            "read, as a power cut leaves it. The table stays as of the instant that was reached; restore it again if "
            "you want it further back.",
            RuntimeWarning,
        )
