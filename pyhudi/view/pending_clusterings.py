"""File groups that a pending clustering will replace: writes must not go to them, or it must not complete.

Source: docs/formats/table-services.md, "Clustering plan"; docs/formats/timeline.md, "Bodies"; docs/formats/writers.md,
"Table services and concurrent writers".
"""

from __future__ import annotations

from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.instant import Instant

__all__ = ["pending_clusterings"]


def pending_clusterings(meta: MetaClient) -> dict[FileGroupId, Instant]:
    """File group → the pending clustering that has it in its plan. Raises CorruptFile."""
    found: dict[FileGroupId, Instant] = {}
    for instant in meta.timeline.pending():
        plan = meta.reader.clustering_plan(instant)
        if plan is not None:
            found.update((file_slice.group, instant) for file_slice in plan.slices)
    return found
