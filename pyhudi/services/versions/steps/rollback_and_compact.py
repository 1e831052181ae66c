"""Before a step: pending writes are rolled back, pending plans run, and log files compacted.

Versions differ in how log files are named and merged, so real Hudi too compacts them before a step.
Source: docs/formats/table-config.md, "Steps between versions".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from pyhudi.actions.action import ActionContext
from pyhudi.actions.clustering_updates import groups_in_pending_plans
from pyhudi.actions.undo.rollback import roll_back_failed_writes
from pyhudi.errors import UnsupportedTable, WriteConflict
from pyhudi.model.options.services import CompactionOptions
from pyhudi.services.compact.compaction import COMPACTION, LOG_COMPACTION, call
from pyhudi.services.planned import pending_plans, pending_writes, run_plan, run_waiting
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["RolledBackAndCompacted", "is_ready_for_step", "rollback_and_compact"]

_UNBOUNDED = "org.apache.hudi.table.action.compact.strategy.UnBoundedCompactionStrategy"


@dataclass(frozen=True, slots=True)
class RolledBackAndCompacted:
    """Instants that were undone, and instants of compactions that ran."""

    rolled_back: tuple[str, ...] = ()
    compacted: tuple[str, ...] = ()


def rollback_and_compact(context: ActionContext) -> RolledBackAndCompacted:
    """Roll back failed writes, run pending plans, compact all log files.

    Raises: WriteConflict when writers are alive, UnsupportedTable when a pending clustering keeps log files.
    """
    undone = roll_back_failed_writes(context)
    context = context.reloaded()
    alive = pending_writes(context)
    if alive:
        raise WriteConflict(
            f"{context.meta.storage.root}: {', '.join(alive[:3])} are being written. The version of a table changes "
            f"only while nobody writes to it: stop its writers, then call again. If they are dead, wait until their "
            f"heartbeats have expired. Nothing was changed."
        )
    if not context.meta.config.is_merge_on_read:
        return RolledBackAndCompacted(undone)
    logs = run_waiting(pending_plans(LOG_COMPACTION, context), context, partial(run_plan, LOG_COMPACTION))
    compacted = [run.instant_time for run in logs]
    options = replace(context.options, compaction=CompactionOptions(strategies=(_UNBOUNDED,)))
    context = replace(context.reloaded(), options=options)
    compacted += call(COMPACTION, context).instant_times
    return RolledBackAndCompacted(undone, tuple(compacted))


def is_ready_for_step(context: ActionContext) -> bool:
    """Are there neither pending writes nor log files? Checked again under the lock. Raises UnsupportedTable."""
    meta = context.meta
    if pending_writes(context) or any(pending_plans(s, context) for s in (COMPACTION, LOG_COMPACTION)):
        return False
    if not meta.config.is_merge_on_read:
        return True
    with_logs = [s.group for s in FileSystemView.load(meta).all_slices() if s.log_files]
    kept = groups_in_pending_plans(meta, ()).intersection(with_logs)
    if kept:
        raise UnsupportedTable(
            f"{meta.storage.root}: {len(kept):,} file groups with log files are in the plan of a pending clustering, "
            f"so their log files can't be compacted before the version changes. Run or cancel the clustering first. "
            f"Nothing was changed."
        )
    return not with_logs
