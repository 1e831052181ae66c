"""Calls of clustering: by a user, at the end of a write, and next to a stream.

Source: docs/formats/table-services.md, "Clustering plan".
"""

from __future__ import annotations

from pyhudi.actions.action import ActionContext
from pyhudi.actions.clustering_updates import drop_expired
from pyhudi.errors import ConfigError
from pyhudi.model.options.services import SORT_COLUMNS
from pyhudi.services.cluster.clustering import CLUSTERING, commits_since_clustering
from pyhudi.services.planned import call, pending_plans, run_waiting, schedule_plan
from pyhudi.services.results import ClusteringResult

__all__ = ["cluster", "cluster_after_write", "cluster_waiting"]


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
    if instant_time is not None and not dry_run:
        if SORT_COLUMNS in context.options.explicit:
            raise ConfigError(
                f"{SORT_COLUMNS} is set when a plan is made; the plan {instant_time} is executed as it was made. "
                f"Leave out the columns, or leave out the instant to make another plan."
            )
    elif not dry_run and drop_expired(context):
        context = context.reloaded()
    return call(CLUSTERING, context, dry_run=dry_run, schedule_only=schedule_only, instant_time=instant_time)


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
    pending = pending_plans(CLUSTERING, context)
    runs = [*run_waiting(CLUSTERING, pending, context)]
    context = context.reloaded() if pending else context
    if commits_since_clustering(context) >= options.inline_commits_max:
        scheduled = schedule_plan(CLUSTERING, context)
        if scheduled is not None:
            runs += run_waiting(CLUSTERING, scheduled[:1], context)
    return tuple(run.instant_time for run in runs)


def cluster_waiting(context: ActionContext) -> tuple[str, ...]:
    """Execute pending clusterings, and plan none. Returns the completed instants."""
    runs = run_waiting(CLUSTERING, pending_plans(CLUSTERING, context), context)
    return tuple(run.instant_time for run in runs)
