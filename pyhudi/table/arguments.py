"""Options that calls take by name, as TypedDicts: type checkers and editors read them, `named_arguments.py` shows them.

A key is the Python name of an option; its text is that of the option table (`tests/house` compares them). A value of
None means that the option is not given.

    night: pyhudi.WriteArguments = {"compression": "zstd", "lock_wait_ms": 1_000}
    pyhudi.write_hudi(path, rows, record_key="id", **night)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

__all__ = [
    "ActionArguments",
    "ArchiveArguments",
    "ChangeArguments",
    "CleanArguments",
    "ClusterArguments",
    "CompactArguments",
    "CreateArguments",
    "FileArguments",
    "IncomingArguments",
    "KeyArguments",
    "LogCompactArguments",
    "RewriteArguments",
    "RowArguments",
    "TableArguments",
    "TtlArguments",
    "WriteArguments",
]


class ActionArguments(TypedDict, total=False):
    """What every call that changes a table takes."""

    lock: str | None
    """Lock provider: IN_PROCESS, FILESYSTEM, STORAGE, ZOOKEEPER, DYNAMODB, HIVE_METASTORE, Hudi's class names of these,
    or `module:Class`. Unset: FILESYSTEM on disks and mounts, STORAGE at object stores. `hoodie.write.lock.provider`
    """
    lock_wait_ms: int | None
    """Longest wait for the lock, in milliseconds. Default: 60000. `hoodie.write.lock.wait_time_ms`"""
    concurrency_mode: (
        Literal["SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"] | str | None
    )
    """Optimistic: of two writers that changed one file group the second gives way. Non-blocking, for buckets of
    merge-on-read tables: both append. Single writer: every pending write counts as dead and is rolled back. Default:
    OPTIMISTIC_CONCURRENCY_CONTROL. `hoodie.write.concurrency.mode`
    """
    conflict_retries: int | None
    """With many writers: how often a write that gave way is run again, from the table as it is then. 20 where
    hoodie.write.concurrency.mode is not given. Default: 0. `hoodie.write.num.retries.on.conflict.failures`
    """
    metadata_table: bool | None
    """Queries take files and column statistics from the metadata table, if it is up to date. A new table gets one with
    its first write, unless the call that makes it says false. A write that says true makes one if there is none, one
    that says false takes it out; else a table keeps what it has. Default: true. `hoodie.metadata.enable`
    """
    engine: Literal["auto", "local", "spark"] | str | None
    """Who writes a Spark DataFrame: this process when it is small (auto), always this process, always Spark. Default:
    auto. `hoodie.pyhudi.engine`
    """


class FileArguments(TypedDict, total=False):
    """How files are written."""

    compression: Literal["zstd", "snappy", "gzip", "lz4_raw", "brotli", "uncompressed"] | str | None
    """Parquet codec. Hudi's default is gzip; every Hudi reader reads zstd. Default: zstd.
    `hoodie.parquet.compression.codec`
    """
    compression_level: int | None
    """Level of the codec; for gzip and zstd. Default: 1. `hoodie.pyhudi.compression.level`"""
    max_file_size_bytes: int | None
    """Size in bytes at which a Parquet file is full. Default: 125829120. `hoodie.parquet.max.file.size`"""
    small_file_limit_bytes: int | None
    """Files below this size in bytes take inserts; 0 or less: none does. Default: 104857600.
    `hoodie.parquet.small.file.limit`
    """
    bloom_filter: bool | None
    """Write a bloom filter of the record keys into file footers. Default: true. `hoodie.parquet.bloom.filter.enabled`
    """
    log_block_format: Literal["parquet", "avro", "hfile"] | str | None
    """Merge-on-read: format of updates in log files. Every Hudi since 0.11 reads both. `hfile`: Spark readers of Hudi
    1.x fail on such blocks of data tables, on its own too. Default: parquet. `hoodie.logfile.data.block.format`
    """


class TableArguments(TypedDict, total=False):
    """More of what a table is: said when it is made; a later call may repeat it."""

    database_name: str | None
    """Database that the table names as its own. `hoodie.database.name`"""
    table_version: int | None
    """Version of a new table: 6 (Hudi 0.14 and 0.15), 8 (Hudi 1.0) or 9 (Hudi 1.1 and 1.2). A table keeps its own.
    Default: 9. `hoodie.write.table.version`
    """
    base_file_format: Literal["PARQUET", "ORC"] | str | None
    """Format of base files. Default: PARQUET. `hoodie.table.base.file.format`"""
    key_generator: str | None
    """Key generator by Hudi's class name, or a class of yours as `module:Class`.
    `hoodie.datasource.write.keygenerator.class`
    """
    hive_style: bool | None
    """Partition folders are named `field=value`. Default: false. `hoodie.datasource.write.hive_style_partitioning`"""
    url_encode: bool | None
    """Special characters of partition values are escaped in folder names. Default: false.
    `hoodie.datasource.write.partitionpath.urlencode`
    """
    drop_partition_columns: bool | None
    """Leave partition columns out of the files. Default: false. `hoodie.datasource.write.drop.partition.columns`"""
    meta_fields: bool | None
    """Store the five meta columns. false gives virtual keys. Default: true. `hoodie.populate.meta.fields`"""
    merge_mode: Literal["COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING", "CUSTOM"] | str | None
    """The row written later wins, the one with the greater ordering value, or a merger of yours decides
    (docs/merging.md). Inferred from the ordering fields. `hoodie.write.record.merge.mode`
    """
    payload_class: str | None
    """Older way to say how rows merge; version 9 stores what it means (docs/merging.md).
    `hoodie.datasource.write.payload.class`
    """
    cdc: bool | None
    """Writes log what they do to each row, for queries of changes. A table is made with it, or without. Default: false.
    `hoodie.table.cdc.enabled`
    """
    cdc_logging_mode: Literal["OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"] | str | None
    """What change logs hold of a row: its key, also the row before, or the row before and after. What is not there is
    looked up in base files when changes are read. Default: DATA_BEFORE_AFTER.
    `hoodie.table.cdc.supplemental.logging.mode`
    """
    index: str | None
    """How keys are found: SIMPLE, GLOBAL_SIMPLE, BLOOM, GLOBAL_BLOOM, BUCKET, INMEMORY, or by the metadata table's
    record index: GLOBAL_RECORD_LEVEL_INDEX (older name RECORD_INDEX), RECORD_LEVEL_INDEX; or your own class as
    `module:Class`. Default: SIMPLE. `hoodie.index.type`
    """
    buckets: int | None
    """BUCKET: buckets of each partition; fixed for the life of the table, which stores it. Those that are consistently
    hashed begin so. Default: 256. `hoodie.bucket.index.num.buckets`
    """


class CreateArguments(TableArguments, ActionArguments, total=False):
    """`HudiTable.create`, besides the arguments that it names itself."""


class KeyArguments(TypedDict, total=False):
    """What `write_hudi` and `HudiTable.create` name themselves, as a later call may repeat it."""

    record_key: str | Sequence[str] | None
    """Fields of the record key; nested ones with dots. None: keys are generated.
    `hoodie.datasource.write.recordkey.field`
    """
    partition_by: str | Sequence[str] | None
    """Fields of the partition path; `field:SIMPLE` or `field:TIMESTAMP` for the custom generator.
    `hoodie.datasource.write.partitionpath.field`
    """
    ordering: str | Sequence[str] | None
    """Fields that say which of two rows is newer. `hoodie.table.ordering.fields`"""
    table_name: str | None
    """Name of the table. When the first write creates it without one, that of its folder. `hoodie.table.name`"""
    table_type: Literal["COPY_ON_WRITE", "MERGE_ON_READ"] | str | None
    """Table type. Default: COPY_ON_WRITE. `hoodie.datasource.write.table.type`"""


class IncomingArguments(TypedDict, total=False):
    """What happens to rows that come in."""

    combine_before_upsert: bool | None
    """Rows with the same key inside one upsert become one. Default: true. `hoodie.combine.before.upsert`"""
    combine_before_insert: bool | None
    """The same for insert and bulk_insert. Default: false. `hoodie.combine.before.insert`"""
    duplicates: Literal["none", "drop", "fail"] | str | None
    """insert and bulk_insert: what happens to rows whose key is in the table. Default: none.
    `hoodie.datasource.insert.dup.policy`
    """
    sort_mode: (
        Literal[
            "NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"
        ]
        | str
        | None
    )
    """Order and spread of the rows of a bulk_insert. Default: NONE. `hoodie.bulkinsert.sort.mode`"""
    sort_columns: str | Sequence[str] | None
    """Sort the rows of a bulk_insert by these columns. `hoodie.bulkinsert.user.defined.partitioner.sort.columns`"""
    schema_mode: Literal["strict", "merge", "overwrite"] | str | None
    """merge: new columns and wider types of the data are taken; where it is not set, a new column beside a missing one
    of nearly its name is refused. strict: neither is taken. overwrite, for an overwrite of the whole table: the table
    gets the columns of the data. Default: merge. `hoodie.pyhudi.schema.mode`
    """


class WriteArguments(CreateArguments, FileArguments, IncomingArguments, total=False):
    """`write_hudi`, besides the arguments that it names itself."""


class RowArguments(WriteArguments, KeyArguments, total=False):
    """Rows for a table that is open: `HudiTable.upsert`, `insert` and their like."""


class ChangeArguments(CreateArguments, FileArguments, KeyArguments, total=False):
    """`HudiTable.delete`, `update` and `merge`."""


class RewriteArguments(ActionArguments, FileArguments, total=False):
    """Table services that write files."""


class CompactArguments(RewriteArguments, total=False):
    """`HudiTable.compact`."""

    strategy: str | Sequence[str] | None
    """Which slices a compaction takes: Hudi's class names, or LOG_FILE_SIZE, LOG_FILE_NUM, DAY_BASED, PARTITION_REGEX,
    BOUNDED_IO, BOUNDED_PARTITION_AWARE, UNBOUNDED_PARTITION_AWARE, UNBOUNDED, or your own class as `module:Class`;
    several are applied one after the other. Default:
    org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy. `hoodie.compaction.strategy`
    """
    target_io_mb: int | None
    """MB that one compaction may read and write; the slice that passes it is the last one. Default: 512000.
    `hoodie.compaction.target.io`
    """


class LogCompactArguments(RewriteArguments, total=False):
    """`HudiTable.log_compact`."""

    min_log_blocks: int | None
    """Log blocks of a slice that a log compaction merges; slices with fewer are left. Default: 5.
    `hoodie.log.compaction.blocks.threshold`
    """


class ClusterArguments(RewriteArguments, total=False):
    """`HudiTable.cluster`."""

    target_file_size_bytes: int | None
    """How large new base files may get. Default: 1073741824. `hoodie.clustering.plan.strategy.target.file.max.bytes`"""
    max_groups: int | None
    """How many groups one clustering takes. Default: 30. `hoodie.clustering.plan.strategy.max.num.groups`"""


class CleanArguments(ActionArguments, total=False):
    """`HudiTable.clean`."""

    policy: Literal["KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS"] | str | None
    """What is kept as well as the newest version of every file. Unset, and just one of the three numbers is given: the
    policy of that number. Default: KEEP_LATEST_COMMITS. `hoodie.clean.policy`
    """
    commits_retained: int | None
    """KEEP_LATEST_COMMITS: the table can be read as of each of this many newest commits. Default: 10.
    `hoodie.clean.commits.retained`
    """
    hours_retained: int | None
    """KEEP_LATEST_BY_HOURS: the table can be read as of each commit of this many last hours. Default: 24.
    `hoodie.clean.hours.retained`
    """
    file_versions_retained: int | None
    """KEEP_LATEST_FILE_VERSIONS: how many versions of every file group are kept. Default: 3.
    `hoodie.clean.fileversions.retained`
    """


class ArchiveArguments(ActionArguments, total=False):
    """`HudiTable.archive`."""

    min_commits: int | None
    """Completed commits that archiving leaves on the active timeline. Raised when cleaning keeps more. Default: 20.
    `hoodie.keep.min.commits`
    """
    max_commits: int | None
    """Completed commits on the active timeline above which archiving starts. Raised when cleaning keeps more. Default:
    30. `hoodie.keep.max.commits`
    """


class TtlArguments(ActionArguments, total=False):
    """`HudiTable.run_ttl`."""

    days_retained: int | None
    """Days after which a partition expires; none does at 0 or less. Default: -1.
    `hoodie.partition.ttl.strategy.days.retain`
    """
    max_partitions: int | None
    """Partitions that are deleted at once, the oldest ones first; the others go the next time. Default: 1000.
    `hoodie.partition.ttl.strategy.max.delete.partitions`
    """
