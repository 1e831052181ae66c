"""Plans and bodies of the actions that are not writes: rollback, compaction and log compaction.

Source: docs/formats/timeline.md, "Records", "Rollback"; docs/formats/table-services.md, "Compaction plan".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.model.file_group import FileGroupId

__all__ = [
    "CompactionOperation",
    "CompactionPlan",
    "CompactionStrategyInfo",
    "InstantInfo",
    "RollbackMetadata",
    "RollbackPartition",
    "RollbackPlan",
    "RollbackRequest",
]


@dataclass(frozen=True, slots=True)
class InstantInfo:
    """An instant as plans name it."""

    commit_time: str
    action: str


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """Undo one file. Paths are absolute without scheme, as Hudi writes them."""

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
    """What a rollback did in one partition."""

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

    `data_file_name` is None for a slice of logs only. `metrics`: Hudi's `TOTAL_*` numbers, sizes in whole MB but for
    `TOTAL_LOG_FILES_SIZE`, which is bytes.
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
    """The executor that a plan asks for; only plans of log compactions name one."""

    class_name: str
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """Body of `<T>.compaction.requested` and `<T>.logcompaction.requested`."""

    operations: tuple[CompactionOperation, ...]
    strategy: CompactionStrategyInfo | None = None
    preserve_meta_columns: bool = False
