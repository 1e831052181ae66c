"""Calls of clustering: by a user, and at the end of a write.

    dry run         the plan, nothing on disk
    schedule only   the plan goes to the timeline
    else            pending plans are executed, then a new one is made and executed

Source: docs/formats/table-services.md, "Clustering plan".
"""

from __future__ import annotations

from pyhudi.actions.action import ActionContext
from pyhudi.actions.clustering_updates import drop_expired
from pyhudi.actions.undo.rollback import undo
from pyhudi.errors import ConfigError
from pyhudi.index.consistent_bucket import delete_rings
from pyhudi.model.commit import OperationType
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.options.services import SORT_COLUMNS
from pyhudi.services.cluster.clustering import CLUSTERING, StalePlan
from pyhudi.services.plan_call import call_service
from pyhudi.services.planned import pending_plans, run_plan, run_waiting, schedule_plan
from pyhudi.services.results import ClusteringResult, ClusteringRun

__all__ = ["cluster", "cluster_after_write", "cluster_waiting", "commits_since_clustering"]


def cluster(
    context: ActionContext,
    *,
    dry_run: bool = False,
    schedule_only: bool = False,
    instant_time: str | None = None,
) -> ClusteringResult:
    """Run the service.

    Args:    instant_time: execute only this pending plan.
    Raises:  HudiError; StalePlan when writes have overtaken a pending plan, which is then dropped. Plans executed
             before stay executed.
    """
    table = context.meta.storage.root
    if instant_time is not None and not dry_run:
        if SORT_COLUMNS in context.options.explicit:
            raise ConfigError(
                f"{SORT_COLUMNS} goes into a plan when it is made; the plan {instant_time} is executed as it was made. "
                f"Leave the columns out, or leave out the instant to make another plan."
            )
        return ClusteringResult(table, runs=(_run(context, instant_time),))
    if not dry_run and drop_expired(context):
        context = context.reloaded()
    called = call_service(CLUSTERING, context, _wants, _run, dry_run=dry_run, schedule_only=schedule_only)
    groups = () if called.plan is None else called.plan.groups
    return ClusteringResult(table, groups, called.scheduled, called.runs, called.waiting)


def _run(context: ActionContext, instant_time: str) -> ClusteringRun:
    """Execute a plan; a stale one would block others for good, so it is dropped."""
    try:
        return run_plan(CLUSTERING, context, instant_time)
    except StalePlan:
        undo(Instant(instant_time, CLUSTERING.kind, State.REQUESTED), context)
        delete_rings(context.meta.storage, instant_time)
        raise


def _wants(context: ActionContext) -> bool:
    """Is a clustering due? A call always clusters, unless it names a number of commits."""
    options = context.options.clustering
    if not options.trigger_is_given:
        return True
    return commits_since_clustering(context) >= options.inline_commits_max


def commits_since_clustering(context: ActionContext) -> int:
    """Completed writes since the last clustering, executed or planned."""
    meta = context.meta
    last = ""
    for instant in reversed(meta.timeline.instants):
        if instant.is_completed:
            is_one = (
                instant.action is ActionKind.REPLACECOMMIT
                and meta.commits.metadata(instant).operation_type == OperationType.CLUSTER
            )
        else:
            is_one = meta.reader.clustering_plan(instant) is not None
        if is_one:
            last = instant.requested_time
            break
    return len(meta.timeline.commits().after(last))


def cluster_after_write(context: ActionContext) -> tuple[str, ...]:
    """Cluster after a complete write, or only plan it, depending on its options. Returns the completed instants."""
    options = context.options.clustering
    if not (options.inline or options.schedule_inline or options.async_enabled):
        return ()
    context = context.reloaded()
    context = context.reloaded() if drop_expired(context) else context
    if not options.inline:
        if commits_since_clustering(context) >= options.async_commits_max:
            schedule_plan(CLUSTERING, context)
        return ()
    waiting = pending_plans(CLUSTERING, context)
    done = [*run_waiting(waiting, context, _run)]
    context = context.reloaded() if waiting else context
    if commits_since_clustering(context) >= options.inline_commits_max:
        made = schedule_plan(CLUSTERING, context)
        if made is not None:
            done += run_waiting(made[:1], context, _run)
    return tuple(run.instant_time for run in done)


def cluster_waiting(context: ActionContext) -> tuple[str, ...]:
    """Execute pending clusterings, and plan none. Returns the completed instants."""
    runs = run_waiting(pending_plans(CLUSTERING, context), context, _run)
    return tuple(run.instant_time for run in runs)
