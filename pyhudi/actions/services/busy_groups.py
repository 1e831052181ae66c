"""File groups that pending plans work on: other plans must leave them alone.

Source: spec, metadata and indexes 5.2; timeline 4.2.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pyhudi.formats.compaction_plans import decode_compaction_plan
from pyhudi.formats.instant_files import decode_requested_replace
from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.timeline.write import TimelineWriter

__all__ = ["busy_groups", "is_clustering"]

_CLUSTERINGS = (ActionKind.CLUSTERING, ActionKind.REPLACECOMMIT)  # below version 8 both are called replacecommit


def busy_groups(meta: MetaClient, services: Collection[ActionKind]) -> frozenset[FileGroupId]:
    """The file groups in pending plans of `services` (compaction, logcompaction) and of clustering."""
    writer = TimelineWriter(meta.storage, meta.config)
    groups: set[FileGroupId] = set()
    for instant in meta.timeline.pending():
        where = f"{meta.storage.root}: {instant.requested_time}.{instant.action.value}.requested"
        if instant.action in services:
            plan = decode_compaction_plan(writer.read_body(instant, State.REQUESTED), where)
            groups.update(operation.group for operation in plan.operations)
        elif instant.action in _CLUSTERINGS:
            for group in (_clustering_plan(instant, meta) or {}).get("inputGroups") or ():
                for file_slice in group.get("slices") or ():
                    groups.add(FileGroupId(file_slice.get("partitionPath") or "", file_slice.get("fileId") or ""))
    return frozenset(groups)


def is_clustering(instant: Instant, meta: MetaClient) -> bool:
    """Is a pending instant a clustering? Below version 8 only the plan tells it from an overwrite."""
    return instant.action in _CLUSTERINGS and _clustering_plan(instant, meta) is not None


def _clustering_plan(instant: Instant, meta: MetaClient) -> Mapping[str, Any] | None:
    where = f"{meta.storage.root}: {instant.requested_time}.{instant.action.value}.requested"
    body = TimelineWriter(meta.storage, meta.config).read_body(instant, State.REQUESTED)
    plan: Mapping[str, Any] | None = decode_requested_replace(body, where)["clusteringPlan"]
    return plan
