"""Calls of compaction and log compaction: by a user, and at the end of a write.

    dry run         the plan, nothing on disk
    schedule only   the plan goes to the timeline
    else            plans that wait are executed, then what is left is planned and executed

Source: docs/formats/table-services.md, "Compaction plan", "Log compaction plan"; docs/compatibility.md for when a write
compacts.
"""

from __future__ import annotations

from functools import partial

from pyhudi.actions.action import ActionContext
from pyhudi.services.compact.compaction import COMPACTION, compaction_is_due
from pyhudi.services.compact.log_compaction import LOG_COMPACTION
from pyhudi.services.compact.result import CompactionResult
from pyhudi.services.compact.service import CompactionService
from pyhudi.services.plan_call import call_service
from pyhudi.services.planned import pending_plans, pending_writes, run_plan, run_waiting, schedule_plan

__all__ = ["call", "compact_after_write", "compact_waiting"]


def call(
    service: CompactionService,
    context: ActionContext,
    *,
    dry_run: bool = False,
    schedule_only: bool = False,
    instant_time: str | None = None,
) -> CompactionResult:
    """Run one of the two services.

    Args:    instant_time: execute just this pending plan.
    Raises:  errors of the family; see `schedule_plan` and `run_plan`. Plans that were executed before stay so.
    """
    table = context.meta.storage.root
    if instant_time is not None and not dry_run:
        return CompactionResult(table, service.operation, runs=(run_plan(service, context, instant_time),))
    called = call_service(
        service,
        context,
        wants=lambda now: _wants(service, now),
        run=partial(run_plan, service),
        dry_run=dry_run,
        schedule_only=schedule_only,
    )
    operations = () if called.plan is None else called.plan.operations
    return CompactionResult(table, service.operation, operations, called.scheduled, called.runs)


def _wants(service: CompactionService, context: ActionContext) -> bool:
    """A call compacts what there is, unless it names a trigger to wait for."""
    if service is not COMPACTION or not context.options.compaction.trigger_is_given:
        return True
    return compaction_is_due(context)


def compact_after_write(context: ActionContext) -> tuple[str, ...]:
    """What a write to a merge-on-read table does when it is complete: compact, only schedule, or compact logs, as its
    options say. Returns the instants that were completed.
    """
    if not context.meta.config.is_merge_on_read:
        return ()
    return _compacted(context.reloaded()) if context.options.compaction.inline else _scheduled(context.reloaded())


def _compacted(context: ActionContext) -> tuple[str, ...]:
    run = partial(run_plan, COMPACTION)
    runs = [*run_waiting(pending_plans(COMPACTION, context), context, run)]
    if _may_plan(context) and compaction_is_due(context):
        made = schedule_plan(COMPACTION, context)
        if made is not None:
            runs += run_waiting(made[:1], context, run)
    if not runs and context.options.compaction.log_inline:
        runs += call(LOG_COMPACTION, context).runs
    return tuple(run.instant_time for run in runs)


def _scheduled(context: ActionContext) -> tuple[str, ...]:
    options = context.options.compaction
    if options.schedule_inline and _may_plan(context) and compaction_is_due(context):
        schedule_plan(COMPACTION, context)
    if options.log_inline:
        return call(LOG_COMPACTION, context).instant_times
    return ()


def _may_plan(context: ActionContext) -> bool:
    return context.meta.config.table_version >= 8 or not pending_writes(context)


def compact_waiting(context: ActionContext) -> tuple[str, ...]:
    """Execute the compactions that wait, and plan none. Returns the instants that were completed."""
    runs = run_waiting(pending_plans(COMPACTION, context), context, partial(run_plan, COMPACTION))
    return tuple(run.instant_time for run in runs)
