"""What the writes share that replace file groups: overwrites and the deletion of partitions.

    <T>.replacecommit.requested   which kind of replacement it is (docs/formats/timeline.md, "Bodies")
    <T>.replacecommit.inflight    the workload profile
    new files                     always base files of new file groups
    <T>.replacecommit             new files, and the replaced file groups

The replaced groups are those of the table as the write began. Groups that others add to the same partitions meanwhile
stay, as if they had been added afterwards; a write to a replaced group is a conflict. Files of replaced groups stay
for readers of earlier instants until cleaning deletes them. Source: docs/formats/table-services.md,
"Replaced file groups"; docs/formats/timeline.md, "Bodies", "Commit metadata".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pyhudi.actions.action import ActionContext
from pyhudi.actions.clustering_updates import groups_in_pending_plans
from pyhudi.errors import WriteConflict
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import COMPACTIONS
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["Groups", "check_not_planned", "existing_groups", "replacing"]

Groups = Mapping[str, tuple[str, ...]]


def existing_groups(context: ActionContext, partitions: Iterable[str] | None = None) -> Groups:
    """Partition path → ids of its file groups, as the context has the table. `partitions` None: all of them."""
    paths_or_all = None if partitions is None else tuple(sorted(partitions))
    view = FileSystemView.load(context.meta, partitions=paths_or_all)
    paths = view.partitions() if paths_or_all is None else paths_or_all
    return {path: tuple(group.group.file_id for group in view.groups.get(path, ())) for path in paths}


def check_not_planned(groups: Groups, context: ActionContext, operation: str, *, compactions: bool) -> None:
    """Raises WriteConflict when a pending clustering (or compaction) is going to rewrite one of the groups.

    Its result would bring the rows back: a clustering writes them to new file groups.
    """
    pending_groups = groups_in_pending_plans(context.meta, COMPACTIONS if compactions else ())
    hit = sorted(group for group in pending_groups if group.file_id in groups.get(group.partition_path, ()))
    if hit:
        services = "compaction, log compaction or clustering" if compactions else "clustering"
        raise WriteConflict(
            f"{context.meta.storage.root}: {operation.lower()} can't take out {hit[0].file_id} in "
            f"{hit[0].partition_path!r}, because a pending {services} is going to rewrite it. Nothing was changed; run "
            "the plan or take it back, then write again."
        )


def replacing(body: CommitMetadata, groups: Groups) -> CommitMetadata:
    """The body of the completed file. Partitions without files are named too, as Hudi does."""
    return replace(body, partition_to_replace_file_ids=dict(groups))
