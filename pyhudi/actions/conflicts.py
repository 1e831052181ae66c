"""Conflicts between two writes, and the strategies that define them. Pure: nothing here reads or writes files.

At its end a write looks for commits that completed after it began. If one of them changed a file group that the write
changed too, the write has merged into an old version of that group and must not complete. New file groups never
collide, except for two new ones of one bucket.

A compaction changes no rows, so log files may be appended beside it. Below table version 8 this holds for compactions
that were planned before the write began, because the write knew of them. From version 8 on it holds for all, because
completion times assign log files to slices. A base file that was rewritten during a compaction of its group would be
lost.

A strategy is a small class, and one row of CONFLICT_STRATEGIES. It says which writes conflict:

    SIMPLE         the same file group; plans of table services made since the write began count, too
    PREFER_WRITER  the same file group; a write ignores such plans, and the service gives way
    BUCKET         the same bucket of a partition, so that two writers don't both make its first file group

Source: docs/formats/writers.md, "Conflicts"; docs/formats/file-names.md, "File groups and slices"; Hudi's conflict
resolution strategies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pyhudi.errors import WriteConflict
from pyhudi.index.bucket import BUCKET_DIGITS, bucket_of_file_id
from pyhudi.index.chosen import index_class
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStatus
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.instant import Instant
from pyhudi.model.options import WriteOptions
from pyhudi.registry import Registry

__all__ = [
    "CONFLICT_STRATEGIES",
    "BucketStrategy",
    "ConflictStrategy",
    "OurWrite",
    "SimpleStrategy",
    "check_conflicts",
    "check_emptied",
    "check_plans",
    "conflict_strategy",
    "groups_of",
    "groups_replaced_by",
]


_PACKAGE = "org.apache.hudi.client.transaction."


class ConflictStrategy(Protocol):
    """The runner's check before it completes a write. Created without arguments."""

    @property
    def yields_to_plans(self) -> bool:
        """True if a write gives way to plans of table services made since it began."""
        ...

    def unit(self, group: FileGroupId) -> FileGroupId:
        """The unit of comparison for a file group; two writes that share one collide."""
        ...


@dataclass(frozen=True, slots=True)
class SimpleStrategy:
    """By file group."""

    yields_to_plans: bool = True

    def unit(self, group: FileGroupId) -> FileGroupId:
        """The file group itself."""
        return group


@dataclass(frozen=True, slots=True)
class PreferWriterStrategy(SimpleStrategy):
    """By file group; table services give way."""

    yields_to_plans: bool = False


@dataclass(frozen=True, slots=True)
class BucketStrategy:
    """By bucket: the eight digits at the head of a file id."""

    yields_to_plans: bool = True

    def unit(self, group: FileGroupId) -> FileGroupId:
        """The bucket; a file group outside buckets is its own unit."""
        if bucket_of_file_id(group.file_id) is None:
            return group
        return FileGroupId(group.partition_path, group.file_id[:BUCKET_DIGITS])


CONFLICT_STRATEGIES: Registry[type[ConflictStrategy]] = Registry(
    kind="conflict resolution strategy",
    entries={
        "SIMPLE": f"{__name__}:SimpleStrategy",
        "PREFER_WRITER": f"{__name__}:PreferWriterStrategy",
        "BUCKET": f"{__name__}:BucketStrategy",
    },
    aliases={
        f"{_PACKAGE}SimpleConcurrentFileWritesConflictResolutionStrategy": "SIMPLE",
        f"{_PACKAGE}PreferWriterConflictResolutionStrategy": "PREFER_WRITER",
        f"{_PACKAGE}IngestionPrimaryWriterBasedConflictResolutionStrategy": "PREFER_WRITER",
        f"{_PACKAGE}BucketIndexConcurrentFileWritesConflictResolutionStrategy": "BUCKET",
    },
)


def conflict_strategy(options: WriteOptions) -> ConflictStrategy:
    """The strategy that the options name; by bucket with an index that hashes keys. Raises ConfigError."""
    usual = "BUCKET" if index_class(options).hashes_keys else "SIMPLE"
    name = options.concurrency.conflict_strategy or usual
    strategy: ConflictStrategy = CONFLICT_STRATEGIES.load(name)()
    return strategy


_SHOWN = 3
_EMPTYING = frozenset({OperationType.INSERT_OVERWRITE, OperationType.DELETE_PARTITION})
_REARRANGING = frozenset({OperationType.COMPACT, OperationType.LOG_COMPACT, OperationType.CLUSTER})  # no other rows


def groups_of(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    """File groups that a completed write wrote or replaced."""
    written_groups = frozenset(
        FileGroupId(partition, stat.file_id)
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
    )
    return written_groups | groups_replaced_by(metadata)


def groups_replaced_by(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    """File groups that a write replaces."""
    replaced = metadata.partition_to_replace_file_ids or {}
    return frozenset(
        FileGroupId(partition, file_id) for partition, file_ids in replaced.items() for file_id in file_ids
    )


@dataclass(frozen=True, slots=True)
class OurWrite:
    """The write that is about to complete.

    `replaced`: file groups that it removes from the table. `logs_are_parted`: from table version 8 on compactions and
    appended log files don't collide.
    """

    instant: Instant
    table: str
    statuses: tuple[WriteStatus, ...]
    replaced: frozenset[FileGroupId] = frozenset()
    strategy: ConflictStrategy = field(default_factory=SimpleStrategy)
    logs_are_parted: bool = False

    @property
    def touched(self) -> frozenset[FileGroupId]:
        """All file groups that it changes."""
        return self.replaced | _groups(self.statuses)

    @property
    def rewritten(self) -> frozenset[FileGroupId]:
        """File groups that get a base file, or are removed."""
        return self.replaced | _groups(s for s in self.statuses if s.stat.log_version is None)


def check_conflicts(ours: OurWrite, others: Iterable[tuple[Instant, CommitMetadata]]) -> None:
    """Raise WriteConflict, naming the instants and the shared file groups.

    Args: others: writes that completed since ours began, with their bodies, without compactions that it knew.
    """
    touched, rewritten = _by_unit(ours.touched, ours.strategy), _by_unit(ours.rewritten, ours.strategy)
    for instant, metadata in others:
        is_apart = ours.logs_are_parted and metadata.operation_type == OperationType.COMPACT
        our_groups, their_groups = rewritten if is_apart else touched, _by_unit(groups_of(metadata), ours.strategy)
        shared = sorted(their_groups[unit] for unit in our_groups.keys() & their_groups.keys())
        if shared:
            raise WriteConflict(
                f"{ours.table}: while {ours.instant.action.value} {ours.instant.requested_time} was running, "
                f"{instant.action.value} {instant.requested_time} changed file groups that it changes too: "
                f"{_listed(shared)}. Nothing of {ours.instant.requested_time} is visible; run the write again, it will "
                f"start from the new rows (hoodie.write.num.retries.on.conflict.failures does so by itself)."
            )


def check_emptied(ours: OurWrite, body: CommitMetadata, others: Iterable[tuple[Instant, CommitMetadata]]) -> None:
    """Raise WriteConflict when a write deletes all rows of a partition into which another has written since ours began.
    The other's new file groups are not among those that ours replaces, so its rows would remain.

    Args: body: of our write. others: as in `check_conflicts`.
    """
    takes_all = body.operation_type == OperationType.INSERT_OVERWRITE_TABLE
    if not takes_all and body.operation_type not in _EMPTYING:
        return
    emptied = body.partition_to_replace_file_ids or {}
    for instant, metadata in others:
        if metadata.operation_type in _REARRANGING:
            continue
        into = sorted(path for path in metadata.partition_to_write_stats if takes_all or path in emptied)
        if into:
            raise WriteConflict(
                f"{ours.table}: while {ours.instant.action.value} {ours.instant.requested_time} was taking out the "
                f"rows of partitions, {instant.action.value} {instant.requested_time} wrote to {into[0]!r}. Nothing of "
                f"{ours.instant.requested_time} is visible; run it again, it will take those rows out, too."
            )


def check_plans(ours: OurWrite, compactions: Mapping[FileGroupId, str], clusterings: Mapping[FileGroupId, str]) -> None:
    """Raise WriteConflict when a plan made since ours began would leave out our files.

    Args: compactions, clusterings: file group → instant of such a plan, still pending.
    """
    # A compaction would lose a rewritten base file; it loses log files only below version 8.
    endangered = ours.rewritten if ours.logs_are_parted else ours.touched
    _check_plan(ours, endangered, compactions, "compaction", "append during it")
    if ours.strategy.yields_to_plans:
        advice = "leave its file groups out, or wait for it, as the options say"
        _check_plan(ours, ours.touched, clusterings, "clustering", advice)


def _check_plan(
    ours: OurWrite, groups: frozenset[FileGroupId], planned: Mapping[FileGroupId, str], service: str, advice: str
) -> None:
    shared = sorted(groups & planned.keys())
    if shared:
        raise WriteConflict(
            f"{ours.table}: while {ours.instant.action.value} {ours.instant.requested_time} was running, the {service} "
            f"{planned[shared[0]]} was planned for file groups that it changes: {_listed(shared)}. Nothing of "
            f"{ours.instant.requested_time} is visible; run the write again, it will {advice}."
        )


def _by_unit(groups: Iterable[FileGroupId], strategy: ConflictStrategy) -> dict[FileGroupId, FileGroupId]:
    return {strategy.unit(group): group for group in groups}


def _groups(statuses: Iterable[WriteStatus]) -> frozenset[FileGroupId]:
    return frozenset(FileGroupId(s.stat.partition_path or "", s.stat.file_id) for s in statuses)


def _listed(groups: list[FileGroupId]) -> str:
    names = ", ".join(f"{group.file_id} in {group.partition_path!r}" for group in groups[:_SHOWN])
    return names + (f" and {len(groups) - _SHOWN} more" if len(groups) > _SHOWN else "")
