"""Writes to file groups of a pending clustering, and the file groups in pending plans of table services.

An update strategy says whether a write may update the file groups of a pending clustering:

    REJECT     no: the write fails, and its error names plan and file group (the default)
    ALLOW      yes: the plan is stale from then on, and is dropped when a process tries to execute it
    DUPLICATE  yes: the plan of a resize is rolled back, and the next call makes a new one. Hudi writes rows to the old
               and to the new buckets: below version 8 log files of the new ones are named after the plan, so readers
               ignore them, but from 8 on their names lack it, and rows would be read twice

New rows never go to file groups of a pending clustering. With
`hoodie.clustering.rollback.pending.replacecommit.on.conflict` a write rolls the clustering back and goes on.

A new plan of a table service must leave out the file groups of pending plans (`groups_in_pending_plans`).

Source: docs/formats/table-services.md, "Clustering plan", "Compaction plan"; docs/formats/timeline.md, "Bodies".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pyhudi.actions.action import ActionContext
from pyhudi.actions.undo.rollback import undo
from pyhudi.errors import StandingConflict, WriteConflict
from pyhudi.index.consistent_bucket import delete_rings
from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.instant import ActionKind, Instant, State, parse_instant_time
from pyhudi.registry import Registry
from pyhudi.view.pending_plans import pending_clusterings

__all__ = [
    "UPDATE_STRATEGIES",
    "UpdateStrategy",
    "drop_expired",
    "groups_closed_to_inserts",
    "groups_in_pending_plans",
    "is_clustering",
]


_JAVA = "org.apache.hudi.client.clustering.update.strategy."
_HERE = "pyhudi.actions.clustering_updates:"
_NAMES = {
    "REJECT": "SparkRejectUpdateStrategy",
    "ALLOW": "SparkAllowUpdateStrategy",
    "DUPLICATE": "SparkConsistentBucketDuplicateUpdateStrategy",
}

UPDATE_STRATEGIES: Registry[UpdateStrategy] = Registry(
    "clustering update strategy",
    {"REJECT": f"{_HERE}REJECT", "ALLOW": f"{_HERE}ALLOW", "DUPLICATE": f"{_HERE}DUPLICATE"},
    {spelling: name for name, java in _NAMES.items() for spelling in (java, _JAVA + java)},
)


@dataclass(frozen=True, slots=True)
class UpdateStrategy:
    """`allows_updates`: updates may go to file groups of a pending clustering. `plans_give_way`: it is then rolled
    back, unless a process is executing it.
    """

    allows_updates: bool = False
    plans_give_way: bool = False


REJECT = UpdateStrategy()
ALLOW = UpdateStrategy(allows_updates=True)
DUPLICATE = UpdateStrategy(plans_give_way=True)


def groups_closed_to_inserts(updated: Iterable[FileGroupId], context: ActionContext) -> frozenset[FileGroupId]:
    """File groups that must not take new rows.

    Args:    updated: file groups that the write changes.
    Raises:  StandingConflict, or WriteConflict while a process executes the plan, when one of them is in a pending
             clustering and the options don't let the write go on.
    """
    planned = pending_clusterings(context.meta)
    if planned:
        expired = drop_expired(context)
        planned = {group: instant for group, instant in planned.items() if instant not in expired}
    if not planned:
        return frozenset()
    strategy: UpdateStrategy = UPDATE_STRATEGIES.load(context.options.clustering.update_strategy)
    updates = sorted(group for group in updated if group in planned)
    gives_way = strategy.plans_give_way and not any(_is_running(planned[group], context) for group in updates)
    if updates and (gives_way or context.options.clustering.rollback_pending_on_conflict):
        rolled_back = {planned[group] for group in updates}
        for instant in sorted(rolled_back):
            undo(instant, context)
            delete_rings(context.meta.storage, instant.requested_time)
        return frozenset(group for group, instant in planned.items() if instant not in rolled_back)
    if updates and not strategy.allows_updates:
        instant = planned[updates[0]]
        kind = WriteConflict if _is_running(instant, context) else StandingConflict
        raise kind(
            f"{context.meta.storage.root}: the write changes {updates[0].file_id} in {updates[0].partition_path!r}, "
            f"which the {instant.action.value} {instant.requested_time} is going to replace by clustering. Nothing was "
            f"written. "
            f"Execute the clustering first (HudiTable.cluster), or drop it "
            f"(hoodie.clustering.rollback.pending.replacecommit.on.conflict=true), or let the write win "
            f"(hoodie.clustering.updates.strategy=ALLOW)."
        )
    return frozenset(planned)


def _is_running(instant: Instant, context: ActionContext) -> bool:
    """True if a process is executing a plan. With the policy EAGER, a run of the writing process has no heartbeat."""
    if instant.state is not State.INFLIGHT:
        return False
    return not context.is_dead(instant.requested_time)


def drop_expired(context: ActionContext) -> frozenset[Instant]:
    """Roll back plans that are pending for too long and not being executed, if the options ask for it."""
    options, meta = context.options, context.meta
    if not options.clustering.plans_expire:
        return frozenset()
    oldest_s = context.clock.now_ms() / 1000 - options.clustering.expiration_min * 60
    expired = {
        instant
        for instant in pending_clusterings(meta).values()
        if parse_instant_time(instant.requested_time, meta.config.timeline_zone).timestamp() <= oldest_s
        and context.is_dead(instant.requested_time)
    }
    for instant in sorted(expired):
        undo(instant, context)
        delete_rings(meta.storage, instant.requested_time)
    return frozenset(expired)


def groups_in_pending_plans(meta: MetaClient, services: Collection[ActionKind]) -> frozenset[FileGroupId]:
    """The file groups in pending plans of `services` (compaction, logcompaction) and of clustering."""
    groups: set[FileGroupId] = set()
    for instant in meta.timeline.pending():
        if instant.action in services:
            groups.update(operation.group for operation in meta.reader.compaction_plan(instant).operations)
    return frozenset(groups | pending_clusterings(meta).keys())


def is_clustering(instant: Instant, meta: MetaClient) -> bool:
    """True if a pending instant is a clustering. Below version 8 only the plan distinguishes it from an overwrite."""
    return meta.reader.clustering_plan(instant) is not None
