"""Do two writes collide? Pure.

A write that finds, at its end, a commit that completed since it began and that changed one of the same file groups has
merged into an old version of that group: it must not complete. New file groups never collide.
Source: spec, timeline 7.2 (the simple rule).
"""

from __future__ import annotations

from collections.abc import Iterable

from pyhudi.errors import WriteConflict
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.instant import Instant
from pyhudi.model.write_status import WriteStatus

__all__ = ["check_conflicts", "groups_of"]


def groups_of(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    """File groups that a completed write wrote or replaced."""
    written = {
        FileGroupId(partition, stat.file_id)
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
    }
    replaced = {
        FileGroupId(partition, file_id)
        for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items()
        for file_id in file_ids
    }
    return frozenset(written | replaced)


def check_conflicts(
    ours: Instant, statuses: Iterable[WriteStatus], others: Iterable[tuple[Instant, CommitMetadata]], table: str
) -> None:
    """Raises WriteConflict naming the instants and the shared file groups.

    Args: others: writes that completed since ours began, with their bodies.
    """
    touched = frozenset(FileGroupId(s.stat.partition_path or "", s.stat.file_id) for s in statuses)
    for instant, metadata in others:
        shared = sorted(touched & groups_of(metadata))
        if shared:
            listed = ", ".join(f"{group.file_id} in {group.partition_path!r}" for group in shared[:3])
            more = f" and {len(shared) - 3} more" if len(shared) > 3 else ""
            raise WriteConflict(
                f"{table}: while {ours.action.value} {ours.requested_time} was running, {instant.action.value} "
                f"{instant.requested_time} changed file groups that it changes too: {listed}{more}. Nothing of "
                f"{ours.requested_time} is visible; run the write again, it will start from the new rows."
            )
