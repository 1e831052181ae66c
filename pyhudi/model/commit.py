"""The bodies of completed writes: write stats and commit metadata.

Source: docs/formats/timeline.md, "Records", "Bodies", "Commit metadata", "Extra metadata". Field names are Hudi's in
snake case; `formats/timeline/instant_files.py` spells them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["CommitMetadata", "OperationType", "WriteStat"]


class OperationType:
    """Words of `operationType`, upper case as Hudi writes them."""

    INSERT = "INSERT"
    UPSERT = "UPSERT"
    BULK_INSERT = "BULK_INSERT"
    DELETE = "DELETE"
    INSERT_OVERWRITE = "INSERT_OVERWRITE"
    INSERT_OVERWRITE_TABLE = "INSERT_OVERWRITE_TABLE"
    DELETE_PARTITION = "DELETE_PARTITION"
    CLUSTER = "CLUSTER"
    COMPACT = "COMPACT"
    LOG_COMPACT = "LOG_COMPACT"
    INDEX = "INDEX"
    ALTER_SCHEMA = "ALTER_SCHEMA"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class WriteStat:
    """What one write did to one file. `path` is relative to the table; `prev_commit` is "null" for a new file group."""

    file_id: str
    path: str | None
    partition_path: str | None
    prev_commit: str | None = "null"
    num_writes: int = 0
    num_deletes: int = 0
    num_update_writes: int = 0
    num_inserts: int = 0
    total_write_bytes: int = 0
    total_write_errors: int = 0
    file_size_in_bytes: int = 0
    prev_base_file: str | None = None
    scan_time_ms: int = 0
    create_time_ms: int = 0
    upsert_time_ms: int = 0
    total_log_records: int = 0
    total_log_files: int | None = None
    total_log_files_compacted: int = 0
    total_log_size_compacted: int = 0
    total_updated_records_compacted: int = 0
    total_log_blocks: int = 0
    total_corrupt_log_block: int = 0
    total_rollback_blocks: int = 0
    min_event_time: int | None = None
    max_event_time: int | None = None
    # Log files only (None on base files):
    log_version: int | None = None
    log_offset: int | None = None
    base_file: str | None = None
    log_files: tuple[str, ...] | None = None
    cdc_stats: Mapping[str, int] | None = None
    total_log_read_time_ms: int = 0  # compaction results only; layout 2 only

    @property
    def changed_rows(self) -> int:
        """Rows that this write changed in the file; all of its rows where it does not tell them from copied ones."""
        return self.num_update_writes + self.num_inserts + self.num_deletes or self.num_writes

    @property
    def paths(self) -> tuple[str, ...]:
        """All files that the write made in this file group: the data file, and its change logs."""
        return (*(() if self.path is None else (self.path,)), *(self.cdc_stats or ()))


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """Body of a commit, deltacommit or replacecommit.

    `partition_to_replace_file_ids` is None on everything that is not a replacecommit. Under "schema" the extra
    metadata holds the Avro JSON of the table's schema without meta columns.
    """

    partition_to_write_stats: Mapping[str, tuple[WriteStat, ...]]
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    operation_type: str = OperationType.UNKNOWN
    compacted: bool = False
    partition_to_replace_file_ids: Mapping[str, tuple[str, ...]] | None = None

    @property
    def schema_json(self) -> str | None:
        """Avro JSON of the table schema, None when the commit carries none."""
        return self.extra_metadata.get("schema") or None

    def stats(self) -> tuple[WriteStat, ...]:
        """All write stats, partition by partition."""
        return tuple(stat for stats in self.partition_to_write_stats.values() for stat in stats)
