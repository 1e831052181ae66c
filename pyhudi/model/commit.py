"""Completed actions: write stats and commit metadata, reports of write tasks, and changes of the table.

The main classes:

    WriteStat, CommitMetadata    the body of a completed write
    CommitTotals                 its counters summed up, for readers of a whole timeline
    WriteStatus                  the report of a write task, one for each file that it wrote; a failing task raises
    TableChange                  by partition: files written, files deleted, file groups replaced

Field names are Hudi's in snake case; `instant_files.py` and `write_stats.py` in `formats/timeline` use Hudi's spelling.

Every completed instant has a `TableChange`, which is derived from its body alone (`change_of`). It is all that the
metadata table needs to update its listing, statistics of files and locations of keys after an action of any kind.

Source: docs/formats/timeline.md, "Records", "Bodies", "Commit metadata", "Extra metadata", "Rollback".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from pyhudi.model.file_group import FileGroupId
from pyhudi.model.plans import CleanMetadata, IndexPlan, RestoreMetadata, RollbackMetadata, SavepointMetadata

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Body",
    "CommitMetadata",
    "CommitTotals",
    "OperationType",
    "PartitionChange",
    "StagedIndexFile",
    "TableChange",
    "WriteStat",
    "WriteStatus",
    "change_of",
]


class OperationType:
    """Values of `operationType`, in upper case as in Hudi."""

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
    BOOTSTRAP = "BOOTSTRAP"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class WriteStat:
    """The result of one write in one file. `path` is relative to the table; `prev_commit` is "null" for a new file
    group.
    """

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
    total_log_read_time_ms: int = 0  # only in compaction results of layout 2

    @property
    def changed_rows(self) -> int:
        """The rows that this write changed in the file; all rows if it does not distinguish copied ones."""
        return self.num_update_writes + self.num_inserts + self.num_deletes or self.num_writes

    @property
    def paths(self) -> tuple[str, ...]:
        """All files that the write created in this file group: the data file and its change logs."""
        return (*(() if self.path is None else (self.path,)), *(self.cdc_stats or ()))


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """Body of a commit, deltacommit or replacecommit.

    `partition_to_replace_file_ids` is None for actions other than a replacecommit. Under "schema" the extra metadata
    holds the Avro JSON of the table's schema without meta columns.
    """

    partition_to_write_stats: Mapping[str, tuple[WriteStat, ...]]
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    operation_type: str = OperationType.UNKNOWN
    compacted: bool = False
    partition_to_replace_file_ids: Mapping[str, tuple[str, ...]] | None = None

    @property
    def schema_json(self) -> str | None:
        """Avro JSON of the table schema, None when the commit has none."""
        return self.extra_metadata.get("schema") or None

    def stats(self) -> tuple[WriteStat, ...]:
        """All write stats, partition by partition."""
        return tuple(stat for stats in self.partition_to_write_stats.values() for stat in stats)


@dataclass(frozen=True, slots=True)
class CommitTotals:
    """The body of a completed write with its write stats summed up: a timeline of a hundred thousand files has that
    many stats.
    """

    operation_type: str = OperationType.UNKNOWN
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    files: int = 0
    rows_written: int = 0
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    bytes_written: int = 0

    @classmethod
    def of(cls, body: CommitMetadata) -> CommitTotals:
        """Sum up the stats of a fully read body."""
        stats = body.stats()
        return cls(
            body.operation_type,
            body.extra_metadata,
            len(stats),
            sum(stat.num_writes for stat in stats),
            sum(stat.num_inserts for stat in stats),
            sum(stat.num_update_writes for stat in stats),
            sum(stat.num_deletes for stat in stats),
            sum(stat.total_write_bytes for stat in stats),
        )

    @property
    def schema_json(self) -> str | None:
        """Avro JSON of the table schema, None when the commit has none."""
        return self.extra_metadata.get("schema") or None


@dataclass(frozen=True, slots=True)
class StagedIndexFile:
    """The records of one task's keys for one file group of the record index: an HFile of `size_bytes` bytes at `offset`
    of the temporary file `path` (relative to the table). `group`: the file group's number among the `of_groups` that
    the index had when the task ran.
    """

    group: int
    of_groups: int
    path: str
    offset: int
    size_bytes: int
    records: int


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """One file written by one task attempt.

    `stat` goes into the commit and holds Hudi's counters. `updated` counts rows of the batch that replaced a row,
    `skipped` rows that lost against the stored row (event time), and `combined` rows of the task that another row with
    their key had already replaced. `warning`: a message for the caller about the rows, "" for none.

    For the indexes of the metadata table, None unless the spec asks for them: `column_stats`: a range for each indexed
    column of this file (formats/stored_ranges.py, `ranges_to_bytes`). `new_keys`: record keys (text) that are new in
    this file's file group; `removed_keys`: those that it no longer has. `staged_index`: reported by tasks of large
    writes instead of new keys, for this file and others.
    """

    stat: WriteStat
    rows_read: int = 0
    skipped: int = 0
    warning: str = ""
    column_stats: bytes | None = None
    new_keys: pa.Array | None = None
    removed_keys: pa.Array | None = None
    staged_index: tuple[StagedIndexFile, ...] = ()
    combined: int = 0


# The bodies of completed files of all actions.
Body: TypeAlias = CommitMetadata | CleanMetadata | RollbackMetadata | RestoreMetadata | SavepointMetadata | IndexPlan


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """The changes in one partition. Files are bare names.

    `written`: name → size in bytes of each new or longer file: base files, log files, change logs; for a rollback the
    log files with its command blocks, and those whose blocks these roll back. `deleted`: names of deleted files.
    `replaced_file_ids`: file groups that are no longer visible, whose files remain until cleaning.
    `is_partition_deleted`: it has no remaining files.
    """

    written: Mapping[str, int] = field(default_factory=dict)
    deleted: frozenset[str] = frozenset()
    replaced_file_ids: tuple[str, ...] = ()
    is_partition_deleted: bool = False


@dataclass(frozen=True, slots=True)
class TableChange:
    """`partitions`: partition path ("" when non-partitioned) → its changes. `stats`: the write stats; () for actions
    that write no rows. `undone`: undone instant times.
    """

    partitions: Mapping[str, PartitionChange] = field(default_factory=dict)
    stats: tuple[WriteStat, ...] = ()
    undone: tuple[str, ...] = ()

    @property
    def groups_replaced(self) -> frozenset[FileGroupId]:
        """The file groups that are no longer visible."""
        return frozenset(
            FileGroupId(path, file_id)
            for path, change in self.partitions.items()
            for file_id in change.replaced_file_ids
        )


def change_of(body: Body) -> TableChange:
    """Derive the changes of an action from the body of its completed file."""
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
    """The sizes in bytes by name; of several stats of a file the greatest size counts."""
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
    """The changes of rollbacks, in their order: a later one may delete files of an earlier one."""
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
            # No body has named the log files of a write that never completed; they remain, so they count from now on.
            sizes_by_path = {**partition.log_files_from_failed_commit, **partition.rollback_log_files}
            logs = {_name(log): size_bytes for log, size_bytes in sizes_by_path.items() if size_bytes}
            sizes.update(logs)
            names.difference_update(logs)
    changes = {path: PartitionChange(written[path], frozenset(deleted[path])) for path in written}
    return TableChange(changes, undone=tuple(dict.fromkeys(undone)))


def _name(path: str) -> str:
    """The bare name of a file: bodies have absolute paths or paths in the table, which may have moved since."""
    return path.rpartition("/")[2]
