"""File groups in pending plans of table services: other plans must leave them out.

Source: docs/formats/table-services.md, "Compaction plan"; docs/formats/timeline.md, "Bodies".
"""

from __future__ import annotations

from collections.abc import Collection

from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.view.pending_plans import pending_clusterings

__all__ = ["groups_in_pending_plans", "is_clustering"]


def groups_in_pending_plans(meta: MetaClient, services: Collection[ActionKind]) -> frozenset[FileGroupId]:
    """The file groups in pending plans of `services` (compaction, logcompaction) and of clustering."""
    groups: set[FileGroupId] = set()
    for instant in meta.timeline.pending():
        if instant.action in services:
            groups.update(operation.group for operation in meta.reader.compaction_plan(instant).operations)
    return frozenset(groups | pending_clusterings(meta).keys())


def is_clustering(instant: Instant, meta: MetaClient) -> bool:
    """Is a pending instant a clustering? Below version 8 only the plan distinguishes it from an overwrite."""
    return meta.reader.clustering_plan(instant) is not None
