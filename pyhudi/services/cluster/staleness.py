"""Can a clustering's plan still be executed? Not when its file groups were changed since it was made.

What a write adds to a file group of the plan is not in the new files, and would be lost with the old ones.
Source: docs/formats/table-services.md, "Clustering plan"; docs/formats/writers.md, "Conflicts".
"""

from __future__ import annotations

from pyhudi.actions.conflicts import groups_of
from pyhudi.errors import WriteConflict
from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.instant import Instant
from pyhudi.model.plans import ClusteringPlan
from pyhudi.services.cluster.buckets import is_resize, resized_rings
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["StalePlan", "check_fresh"]


class StalePlan(WriteConflict):
    """File groups of a plan were changed since it was made: it can't be executed."""


def check_fresh(instant: Instant, plan: ClusteringPlan, meta: MetaClient, began: MetaClient | None) -> None:
    """Raises StalePlan when a file group of the plan was changed. `began`: the table as the run read it."""
    changed = _rewritten(plan, meta) or _written_since(began, plan, meta) or _resized(instant, plan, meta)
    if changed is not None:
        group, by = changed
        raise StalePlan(
            f"{meta.storage.root}: the clustering {instant.requested_time} can't be executed, because {by} changed "
            f"{group.file_id} in {group.partition_path!r} since it was planned. Nothing of it is visible; the plan "
            f"is dropped, cluster again."
        )


def _rewritten(plan: ClusteringPlan, meta: MetaClient) -> tuple[FileGroupId, str] | None:
    """A file group whose newest slice has other files than the plan says, and who made them."""
    view = FileSystemView.load(meta, partitions=plan.partitions)
    newest = {s.group: s for path in plan.partitions for s in view.slices(path)}
    for planned in plan.slices:
        found = newest.get(planned.group)
        if found is None:
            return planned.group, "another write, which replaced or undid it,"
        base = found.base_file.name if found.base_file is not None else None
        if base != planned.data_file_name:
            return planned.group, f"the write {found.base_instant}"
        others = [log for log in found.log_files if log.name not in planned.log_file_names]
        if others or len(found.log_files) != len(planned.log_file_names):
            return planned.group, f"log file {others[0].name}" if others else "a rollback"
    return None


def _resized(instant: Instant, plan: ClusteringPlan, meta: MetaClient) -> tuple[FileGroupId, str] | None:
    """A file group of a partition whose hash ring is another one than the plan was made for."""
    if not is_resize(plan):
        return None
    rings = resized_rings(plan, instant.requested_time, meta)
    missing = (file_slice.group for file_slice in plan.slices if file_slice.partition_path not in rings)
    return next(((group, "another resize of its buckets") for group in missing), None)


def _written_since(began: MetaClient | None, plan: ClusteringPlan, meta: MetaClient) -> tuple[FileGroupId, str] | None:
    """A file group that a write has changed which the run did not see complete: a log file of the plan may hold it."""
    if began is None:
        return None
    known = {write.requested_time for write in began.timeline.commits()}
    groups = frozenset(file_slice.group for file_slice in plan.slices)
    for write in meta.timeline.commits():
        shared = groups & groups_of(meta.commits.metadata(write)) if write.requested_time not in known else None
        if shared:
            return min(shared), f"the {write.action.value} {write.requested_time}"
    return None
