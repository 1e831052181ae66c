"""TableChange: what a completed action changed, by partition: files written, files deleted, file groups replaced.

Every completed instant has one: it follows from the body alone. What is kept up to date together with the table (its
listing, statistics of its files, where its keys are) needs nothing else to learn of an action, whatever its kind.
Source: docs/formats/timeline.md, "Commit metadata", "Records", "Rollback".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pyhudi.model.clean_plan import CleanMetadata
from pyhudi.model.commit import CommitMetadata, WriteStat
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.indexing import IndexPlan
from pyhudi.model.plans import RollbackMetadata
from pyhudi.model.savepoints import RestoreMetadata, SavepointMetadata

__all__ = ["Body", "PartitionChange", "TableChange", "change_of"]

# What completed files hold, in all kinds of actions.
Body: TypeAlias = CommitMetadata | CleanMetadata | RollbackMetadata | RestoreMetadata | SavepointMetadata | IndexPlan


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """What changed in one partition. Files are bare names.

    `written`: name → size in bytes of each new or longer file: base files, log files, change logs; of a rollback the
    log files with its command blocks, and those whose blocks these take back. `deleted`: names of files that were
    deleted. `replaced_file_ids`: file groups that are not visible any more, whose files stay until cleaning.
    `is_partition_deleted`: it has no files left.
    """

    written: Mapping[str, int] = field(default_factory=dict)
    deleted: frozenset[str] = frozenset()
    replaced_file_ids: tuple[str, ...] = ()
    is_partition_deleted: bool = False


@dataclass(frozen=True, slots=True)
class TableChange:
    """`partitions`: partition path ("" when non-partitioned) → what changed there. `stats`: what a write says of each
    of its files; () for actions that write no rows. `undone`: instant times that were taken back.
    """

    partitions: Mapping[str, PartitionChange] = field(default_factory=dict)
    stats: tuple[WriteStat, ...] = ()
    undone: tuple[str, ...] = ()

    @property
    def groups_replaced(self) -> frozenset[FileGroupId]:
        """The file groups that are not visible any more."""
        return frozenset(
            FileGroupId(path, file_id)
            for path, change in self.partitions.items()
            for file_id in change.replaced_file_ids
        )


def change_of(body: Body) -> TableChange:
    """What an action changed, from the body of its completed file."""
    if isinstance(body, CommitMetadata):
        return _of_write(body)
    if isinstance(body, CleanMetadata):
        return _of_clean(body)
    if isinstance(body, RollbackMetadata):
        return _of_rollbacks([body])
    if isinstance(body, RestoreMetadata):
        return _of_rollbacks(rollback for rollbacks in body.rollbacks.values() for rollback in rollbacks)
    return TableChange()  # savepoints and indexes change no files


def _of_write(body: CommitMetadata) -> TableChange:
    replaced = body.partition_to_replace_file_ids or {}
    return TableChange(
        {
            path: PartitionChange(
                _written(body.partition_to_write_stats.get(path, ())), replaced_file_ids=tuple(replaced.get(path, ()))
            )
            for path in dict.fromkeys((*body.partition_to_write_stats, *replaced))
        },
        body.stats(),
    )


def _written(stats: Iterable[WriteStat]) -> Mapping[str, int]:
    """Sizes in bytes by name; a file that several stats name is as long as the longest of them says."""
    sizes: dict[str, int] = {}
    for stat in stats:
        files = dict(stat.cdc_stats or {})
        if stat.path is not None:
            files[stat.path] = stat.file_size_in_bytes
        for path, size_bytes in files.items():
            name = _name(path)
            sizes[name] = max(size_bytes, sizes.get(name, 0))
    return sizes


def _of_clean(body: CleanMetadata) -> TableChange:
    return TableChange(
        {
            path: PartitionChange(
                deleted=frozenset(map(_name, cleaned.deleted)), is_partition_deleted=cleaned.is_partition_deleted
            )
            for path, cleaned in body.partitions.items()
        }
    )


def _of_rollbacks(rollbacks: Iterable[RollbackMetadata]) -> TableChange:
    """Of rollbacks in their order: a later one may delete what an earlier one wrote."""
    written: dict[str, dict[str, int]] = {}
    deleted: dict[str, set[str]] = {}
    undone: list[str] = []
    for rollback in rollbacks:
        undone.extend(rollback.commits_rollback)
        for path, partition in rollback.partitions.items():
            sizes, names = written.setdefault(path, {}), deleted.setdefault(path, set())
            for name in map(_name, partition.success_delete_files):
                sizes.pop(name, None)
                names.add(name)
            # Of a write that never completed no body has named the log files; they stay, and so they count from here.
            sizes_by_path = {**partition.log_files_from_failed_commit, **partition.rollback_log_files}
            logs = {_name(log): size_bytes for log, size_bytes in sizes_by_path.items() if size_bytes}
            sizes.update(logs)
            names.difference_update(logs)
    changes = {path: PartitionChange(written[path], frozenset(deleted[path])) for path in written}
    return TableChange(changes, undone=tuple(dict.fromkeys(undone)))


def _name(path: str) -> str:
    """Bodies name files by paths, absolute ones or such below the table; the table may have moved since."""
    return path.rpartition("/")[2]
