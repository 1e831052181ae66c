"""File groups that a pending clustering will replace: writes must not go to them, or it must not complete.

Source: spec, metadata and indexes 5.4; timeline 4.2, 7.5.
"""

from __future__ import annotations

from pyhudi.errors import PathNotFound
from pyhudi.formats.clustering_plans import decode_clustering_plan
from pyhudi.meta_client import MetaClient
from pyhudi.model.clustering_plan import ClusteringPlan
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.timeline.write import TimelineWriter

__all__ = ["clustering_plan_of", "pending_clusterings"]

_CLUSTERINGS = (ActionKind.CLUSTERING, ActionKind.REPLACECOMMIT)  # below version 8 both are called replacecommit


def pending_clusterings(meta: MetaClient) -> dict[FileGroupId, Instant]:
    """File group → the pending clustering that has it in its plan. Raises CorruptFile."""
    found: dict[FileGroupId, Instant] = {}
    for instant in meta.timeline.pending():
        plan = clustering_plan_of(instant, meta)
        if plan is not None:
            found.update((file_slice.group, instant) for file_slice in plan.slices)
    return found


def clustering_plan_of(instant: Instant, meta: MetaClient) -> ClusteringPlan | None:
    """The plan of an instant, None when it is no clustering, or was dropped since the timeline was read.

    Raises CorruptFile.
    """
    if instant.action not in _CLUSTERINGS:
        return None
    where = f"{meta.storage.root}: {instant.requested_time}.{instant.action.value}.requested"
    try:
        body = TimelineWriter(meta.storage, meta.config).read_body(instant, State.REQUESTED)
    except PathNotFound:
        return None
    return decode_clustering_plan(body, where)
