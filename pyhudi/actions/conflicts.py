"""Do two writes collide? Pure.

A write that finds, at its end, a commit that completed since it began and that changed one of the same file groups has
merged into an old version of that group: it must not complete. New file groups never collide. Compactions change no
row: log files that were written meanwhile stand behind them, and only rewritten base files collide with them.

Compactions change no rows, so appended log files live beside them: those planned before the write began, which the
write knew of, and from table version 8 on all, because completion times part log files. A base file that was rewritten
beside a compaction of its group would be lost. Source: spec, timeline 7.2 (the simple rule); files and records 1.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyhudi.errors import WriteConflict
from pyhudi.model.commit import CommitMetadata, OperationType
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.instant import Instant
from pyhudi.model.write_status import WriteStatus

__all__ = ["check_conflicts", "check_new_compactions", "groups_of", "replaced_groups"]


_FOLDS = frozenset({OperationType.COMPACT, OperationType.LOG_COMPACT})


def groups_of(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    """File groups that a completed write wrote or replaced."""
    written = frozenset(
        FileGroupId(partition, stat.file_id)
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
    )
    return written | replaced_groups(metadata)


def replaced_groups(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    """File groups that a write takes out of the table."""
    replaced = metadata.partition_to_replace_file_ids or {}
    return frozenset(
        FileGroupId(partition, file_id) for partition, file_ids in replaced.items() for file_id in file_ids
    )


def check_conflicts(
    ours: Instant,
    statuses: Iterable[WriteStatus],
    others: Iterable[tuple[Instant, CommitMetadata]],
    table: str,
    *,
    logs_are_parted: bool = False,
    replaced: Iterable[FileGroupId] = (),
) -> None:
    """Raises WriteConflict naming the instants and the shared file groups.

    Args: others: writes that completed since ours began, with their bodies, but for compactions that it knew of.
          logs_are_parted: from table version 8 on compactions and appended log files don't collide.
          replaced: file groups that ours takes out of the table.
    """
    statuses = tuple(statuses)
    touched, rewritten = _groups(statuses), _groups(s for s in statuses if s.stat.log_version is None)
    touched |= frozenset(replaced)
    for instant, metadata in others:
        compacted = logs_are_parted and metadata.operation_type == OperationType.COMPACT
        shared = sorted((rewritten if compacted else touched) & groups_of(metadata))
        if shared:
            listed = ", ".join(f"{group.file_id} in {group.partition_path!r}" for group in shared[:3])
            more = f" and {len(shared) - 3} more" if len(shared) > 3 else ""
            raise WriteConflict(
                f"{table}: while {ours.action.value} {ours.requested_time} was running, {instant.action.value} "
                f"{instant.requested_time} changed file groups that it changes too: {listed}{more}. Nothing of "
                f"{ours.requested_time} is visible; run the write again, it will start from the new rows."
            )


def check_new_compactions(
    ours: Instant,
    statuses: Iterable[WriteStatus],
    planned: Mapping[FileGroupId, str],
    table: str,
    *,
    logs_are_parted: bool,
) -> None:
    """Raises WriteConflict when a compaction that was planned since ours began would leave out what it wrote.

    Args: planned: file group → instant of such a compaction, still pending.
    """
    endangered = _groups(s for s in statuses if not (logs_are_parted and s.stat.log_version is not None))
    shared = sorted(endangered & planned.keys())
    if shared:
        raise WriteConflict(
            f"{table}: while {ours.action.value} {ours.requested_time} was running, the compaction "
            f"{planned[shared[0]]} was planned for file groups that it changes: {shared[0].file_id} in "
            f"{shared[0].partition_path!r}. Nothing of {ours.requested_time} is visible; run the write again, it will "
            f"go beside the compaction."
        )


def _groups(statuses: Iterable[WriteStatus]) -> frozenset[FileGroupId]:
    return frozenset(FileGroupId(s.stat.partition_path or "", s.stat.file_id) for s in statuses)
