"""File groups that pending plans work on: other plans must leave them alone.

Source: spec, metadata and indexes 5.2; timeline 4.2.
"""

from __future__ import annotations

from collections.abc import Collection

from pyhudi.formats.compaction_plans import decode_compaction_plan
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.pending_clusterings import clustering_plan_of, pending_clusterings
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.timeline.write import TimelineWriter

__all__ = ["busy_groups", "is_clustering"]


def busy_groups(meta: MetaClient, services: Collection[ActionKind]) -> frozenset[FileGroupId]:
    """The file groups in pending plans of `services` (compaction, logcompaction) and of clustering."""
    writer = TimelineWriter(meta.storage, meta.config)
    groups: set[FileGroupId] = set()
    for instant in meta.timeline.pending():
        where = f"{meta.storage.root}: {instant.requested_time}.{instant.action.value}.requested"
        if instant.action in services:
            plan = decode_compaction_plan(writer.read_body(instant, State.REQUESTED), where)
            groups.update(operation.group for operation in plan.operations)
    return frozenset(groups | pending_clusterings(meta).keys())


def is_clustering(instant: Instant, meta: MetaClient) -> bool:
    """Is a pending instant a clustering? Below version 8 only the plan tells it from an overwrite."""
    return clustering_plan_of(instant, meta) is not None
