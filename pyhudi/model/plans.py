"""Plans and bodies of the actions that are not writes.

They contain, by action:

    rollback                       the files to undo, and the undone ones
    compaction, log compaction     the slices to compact
    clustering                     groups of file slices whose rows go to new file groups
    clean                          the files to delete, and the deleted ones
    indexing                       the partitions of the metadata table to build, and the built ones
    savepoint, restore             the files to keep; the instants to roll back, and the results

Source: docs/formats/timeline.md, "Records", "Rollback", "Savepoint and restore"; docs/formats/table-services.md,
"Compaction plan", "Clustering plan", "Cleaning plan".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.model.file_group import FileGroupId
from pyhudi.model.filenames import BaseFileName, LogFileName

__all__ = [
    "KEEP_LATEST_BY_HOURS",
    "KEEP_LATEST_COMMITS",
    "KEEP_LATEST_FILE_VERSIONS",
    "NEW_GROUPS_MAX",
    "PARTITION_FILTER",
    "READABLE_SINCE",
    "REPLACED_NEEDED",
    "SAVEPOINTED",
    "CleanMetadata",
    "CleanPlan",
    "CleanedPartition",
    "ClusteringGroup",
    "ClusteringPlan",
    "ClusteringSlice",
    "CompactionOperation",
    "CompactionPlan",
    "CompactionStrategyInfo",
    "IndexPlan",
    "InstantInfo",
    "RestoreMetadata",
    "RestorePlan",
    "RetainedInstant",
    "RollbackMetadata",
    "RollbackPartition",
    "RollbackPlan",
    "RollbackRequest",
    "SavepointMetadata",
]


@dataclass(frozen=True, slots=True)
class InstantInfo:
    """An instant as plans store it."""

    commit_time: str
    action: str


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """A request to undo one file. Paths are absolute without scheme, as in Hudi."""

    partition_path: str
    file_id: str = ""
    latest_base_instant: str = ""
    files_to_be_deleted: tuple[str, ...] = ()
    log_blocks_to_be_deleted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """Body of `<T>.rollback.requested`."""

    instant_to_rollback: InstantInfo
    requests: tuple[RollbackRequest, ...] = ()


@dataclass(frozen=True, slots=True)
class RollbackPartition:
    """The result of a rollback in one partition."""

    partition_path: str
    success_delete_files: tuple[str, ...] = ()
    failed_delete_files: tuple[str, ...] = ()
    rollback_log_files: Mapping[str, int] = field(default_factory=dict)
    log_files_from_failed_commit: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackMetadata:
    """Body of a completed rollback."""

    start_rollback_time: str
    time_taken_ms: int
    total_files_deleted: int
    commits_rollback: tuple[str, ...]
    partitions: Mapping[str, RollbackPartition]
    instants_rollback: tuple[InstantInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class CompactionOperation:
    """One file slice to compact. Files are bare names in the folder of `partition_path`.

    `data_file_name` is None for a slice with only logs. `metrics`: Hudi's `TOTAL_*` numbers, sizes in whole MB except
    `TOTAL_LOG_FILES_SIZE`, which is in bytes.
    """

    partition_path: str
    file_id: str
    base_instant: str
    data_file_name: str | None
    log_file_names: tuple[str, ...]
    metrics: Mapping[str, float] = field(default_factory=dict)
    bootstrap_file_path: str | None = None

    @property
    def group(self) -> FileGroupId:
        return FileGroupId(self.partition_path, self.file_id)


@dataclass(frozen=True, slots=True)
class CompactionStrategyInfo:
    """The executor of a plan; only plans of log compactions name one."""

    class_name: str
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """Body of `<T>.compaction.requested` and `<T>.logcompaction.requested`."""

    operations: tuple[CompactionOperation, ...]
    strategy: CompactionStrategyInfo | None = None
    preserve_meta_columns: bool = False


NEW_GROUPS_MAX = 1_000_000  # in a group of a plan; a hash ring has the most, and its nodes share the memory


@dataclass(frozen=True, slots=True)
class ClusteringSlice:
    """One slice to read. Files are bare names in the folder of `partition_path`."""

    partition_path: str
    file_id: str
    data_file_name: str | None
    log_file_names: tuple[str, ...] = ()

    @property
    def group(self) -> FileGroupId:
        return FileGroupId(self.partition_path, self.file_id)

    @property
    def base_instant(self) -> str:
        """The base instant of the slice: that of its base file, or that of its first log if it has only logs."""
        if self.data_file_name is not None:
            base = BaseFileName.parse(self.data_file_name)
            return base.instant_time if base is not None else ""
        logs = (LogFileName.parse(name) for name in self.log_file_names)
        return min((log.instant_time for log in logs if log is not None), default="")


@dataclass(frozen=True, slots=True)
class ClusteringGroup:
    """Slices of one partition that are sorted together, and the number of new file groups."""

    slices: tuple[ClusteringSlice, ...]
    output_file_groups: int = 1
    metrics: Mapping[str, float] = field(default_factory=dict)
    extra_metadata: Mapping[str, str] | None = None

    @property
    def partition_path(self) -> str:
        return self.slices[0].partition_path


@dataclass(frozen=True, slots=True)
class ClusteringPlan:
    """The plan in the requested file of a clustering. `strategy_class`: Hudi's name of the execution strategy."""

    groups: tuple[ClusteringGroup, ...]
    strategy_class: str
    strategy_params: Mapping[str, str] = field(default_factory=dict)
    preserve_meta_columns: bool = True

    @property
    def slices(self) -> tuple[ClusteringSlice, ...]:
        """The slices of all groups."""
        return tuple(s for group in self.groups for s in group.slices)

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partition paths that the plan reads, in its order."""
        return tuple(dict.fromkeys(group.partition_path for group in self.groups))


KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"
KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"

# Extra metadata: the savepoints that a clean found, with commas; and ours: for the policy by versions, the earliest
# readable instant; the filter of a clean that covered only some partitions; the oldest replacecommit whose replaced
# files were kept because a pending plan reads them.
SAVEPOINTED = "savepointed_timestamps"
READABLE_SINCE = "pyhudi.readable_since"
PARTITION_FILTER = "pyhudi.partition_filter"
REPLACED_NEEDED = "pyhudi.replaced_needed"


@dataclass(frozen=True, slots=True)
class RetainedInstant:
    """The oldest instant whose files a clean keeps, as plans store it."""

    requested_time: str
    action: str
    state: str


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """Body of `<T>.clean.requested`.

    `files`: partition path → names of the files to delete. `partitions`: paths that are no longer partitions.
    `last_commit`: the newest completed commit when the plan was made, "" for none.
    """

    policy: str
    earliest: RetainedInstant | None
    last_commit: str
    files: Mapping[str, tuple[str, ...]]
    partitions: tuple[str, ...] = ()
    extra_metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def earliest_time(self) -> str:
        """The requested time of `earliest`, "" for none."""
        return "" if self.earliest is None else self.earliest.requested_time

    @property
    def file_count(self) -> int:
        return sum(len(names) for names in self.files.values())


@dataclass(frozen=True, slots=True)
class CleanedPartition:
    """The result of a clean in one partition. Files are bare names."""

    policy: str
    deleted: tuple[str, ...]
    failed: tuple[str, ...] = ()
    is_partition_deleted: bool = False


@dataclass(frozen=True, slots=True)
class CleanMetadata:
    """Body of `<T>.clean`. `earliest` is "" for a policy that names no instant."""

    start_time: str
    time_taken_ms: int
    earliest: str
    last_commit: str
    partitions: Mapping[str, CleanedPartition]
    extra_metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def files_deleted(self) -> int:
        return sum(len(partition.deleted) for partition in self.partitions.values())


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """Body of `<T>.indexing.requested` (the partitions to build) and of `<T>.indexing` (the built ones).

    `partitions`: of the metadata table; `up_to`: the newest instant of the table that they include.
    """

    partitions: tuple[str, ...]
    up_to: str


@dataclass(frozen=True, slots=True)
class SavepointMetadata:
    """Body of `<T>.savepoint`. `files`: partition path → names of the files to keep."""

    savepointed_by: str
    savepointed_at_ms: int
    comments: str
    files: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """Body of `<R>.restore.requested`: the instants to roll back, in order, to get back to the instant `restore_to`."""

    instants: tuple[InstantInfo, ...]
    restore_to: str | None


@dataclass(frozen=True, slots=True)
class RestoreMetadata:
    """Body of `<R>.restore`. `rollbacks`: instant time → the result of its rollback."""

    start_restore_time: str
    time_taken_ms: int
    instants: tuple[InstantInfo, ...]
    rollbacks: Mapping[str, tuple[RollbackMetadata, ...]]
