"""Options that say how one write is done: operation, schema rules, index, files, failed writers.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from pyhudi.model.options.row import honoured
from pyhudi.model.options.spec import Kind, OptionSpec

__all__ = ["WRITE_OPTIONS"]

FLAG, INTEGER, NUMBER, NAMES, TEXT = Kind.FLAG, Kind.INTEGER, Kind.NUMBER, Kind.NAMES, Kind.TEXT

_WRITE = "Write operation"
_SCHEMA = "Schema"
_INDEX = "Index"
_FILES = "Files"
_SAFETY = "Time and failed writers"
_OURS = "PyHudi's own"

_WRITE_OPTIONS = (
    honoured(
        _WRITE,
        "hoodie.datasource.write.operation",
        TEXT,
        "upsert",
        "What the write does. Without a record key the default is bulk_insert.",
        choices=(
            "upsert",
            "insert",
            "bulk_insert",
            "delete",
            "insert_overwrite",
            "insert_overwrite_table",
            "delete_partition",
        ),
        later=(
            "bootstrap",
            "upsert_prepped",
            "insert_prepped",
            "bulk_insert_prepped",
            "delete_prepped",
            "compact",
            "cluster",
            "index",
            "alter_schema",
        ),
    ),
    honoured(
        _WRITE, "hoodie.combine.before.upsert", FLAG, "true", "Rows with the same key inside one upsert become one."
    ),
    honoured(_WRITE, "hoodie.combine.before.insert", FLAG, "false", "The same for insert and bulk_insert."),
    honoured(
        _WRITE,
        "hoodie.datasource.insert.dup.policy",
        TEXT,
        "none",
        "insert: what happens to rows whose key is in the table.",
        choices=("none", "drop", "fail"),
    ),
    honoured(
        _WRITE,
        "hoodie.datasource.write.insert.drop.duplicates",
        FLAG,
        "false",
        "true is the older way to say `hoodie.datasource.insert.dup.policy=drop`.",
    ),
    honoured(
        _WRITE,
        "hoodie.bulkinsert.sort.mode",
        TEXT,
        "NONE",
        "Order and spread of the rows of a bulk_insert.",
        choices=(
            "NONE",
            "GLOBAL_SORT",
            "PARTITION_SORT",
            "PARTITION_PATH_REPARTITION",
            "PARTITION_PATH_REPARTITION_AND_SORT",
        ),
    ),
    honoured(
        _WRITE,
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
        NAMES,
        None,
        "Sort the rows of a bulk_insert by these columns.",
    ),
    honoured(
        _WRITE,
        "hoodie.datasource.write.commitmeta.key.prefix",
        TEXT,
        "_",
        "Options whose key begins so are stored in the commit's extra metadata.",
    ),
)
_SCHEMA_OPTIONS = (
    honoured(
        _SCHEMA,
        "hoodie.write.set.null.for.missing.columns",
        FLAG,
        "false",
        "Columns of the table that the data lacks are stored as null instead of refused.",
    ),
    honoured(
        _SCHEMA,
        "hoodie.datasource.write.reconcile.schema",
        FLAG,
        "false",
        "Keep the table's columns and types where the data has fewer or narrower ones.",
    ),
    honoured(
        _SCHEMA,
        "hoodie.datasource.write.schema.allow.auto.evolution.column.drop",
        FLAG,
        "false",
        "Columns that the data lacks leave the table's schema.",
    ),
    honoured(
        _SCHEMA,
        "hoodie.pyhudi.schema.allow.kind.change",
        FLAG,
        "false",
        "A column of numbers becomes text, and one of text bytes, when data of that type arrives, as in Hudi. With "
        "false such data is refused.",
    ),
)
_INDEX_OPTIONS = (
    honoured(
        _INDEX,
        "hoodie.index.type",
        TEXT,
        "SIMPLE",
        "How keys are found: SIMPLE, GLOBAL_SIMPLE, BLOOM, GLOBAL_BLOOM, BUCKET or INMEMORY.",
        "hoodie.index.class",
    ),
    honoured(
        _INDEX,
        "hoodie.simple.index.update.partition.path",
        FLAG,
        "true",
        "GLOBAL_SIMPLE: a row whose partition changed moves.",
    ),
    honoured(
        _INDEX,
        "hoodie.bloom.index.update.partition.path",
        FLAG,
        "true",
        "GLOBAL_BLOOM: a row whose partition changed moves.",
    ),
    honoured(
        _INDEX,
        "hoodie.bucket.index.num.buckets",
        INTEGER,
        "256",
        "BUCKET: buckets of each partition; fixed for the life of the table unless they are consistently hashed.",
    ),
    honoured(
        _INDEX,
        "hoodie.bucket.index.hash.field",
        NAMES,
        None,
        "BUCKET: key fields that choose the bucket; the record key when not given.",
    ),
    honoured(
        _INDEX,
        "hoodie.parquet.bloom.filter.enabled",
        FLAG,
        "true",
        "Write a bloom filter of the record keys into file footers.",
    ),
    honoured(_INDEX, "hoodie.index.bloom.num_entries", INTEGER, "60000", "Keys for which a bloom filter is sized."),
    honoured(_INDEX, "hoodie.index.bloom.fpp", NUMBER, "0.000000001", "False positive rate of a bloom filter."),
    honoured(
        _INDEX,
        "hoodie.bloom.index.filter.type",
        TEXT,
        "DYNAMIC_V0",
        "Kind of bloom filter.",
        choices=("SIMPLE", "DYNAMIC_V0"),
    ),
    honoured(
        _INDEX,
        "hoodie.bloom.index.filter.dynamic.max.entries",
        INTEGER,
        "100000",
        "Keys up to which a dynamic bloom filter grows.",
    ),
)
_FILE_OPTIONS = (
    honoured(
        _FILES, "hoodie.parquet.max.file.size", INTEGER, "125829120", "Size in bytes at which a Parquet file is full."
    ),
    honoured(
        _FILES,
        "hoodie.parquet.small.file.limit",
        INTEGER,
        "104857600",
        "Files below this size in bytes take inserts; 0 or less: none does.",
    ),
    honoured(
        _FILES,
        "hoodie.merge.small.file.group.candidates.limit",
        INTEGER,
        "1",
        "Merge-on-read: at most so many small files of a partition, of those without log files, take inserts.",
    ),
    honoured(
        _FILES,
        "hoodie.logfile.data.block.format",
        TEXT,
        "parquet",
        "Merge-on-read: format of updates in log files. Every Hudi since 0.11 reads both. `hfile`: "
        "Spark readers of Hudi 1.x fail on such blocks of data tables, on its own too.",
        choices=("parquet", "avro", "hfile"),
    ),
    honoured(
        _FILES,
        "hoodie.logfile.max.size",
        INTEGER,
        "1073741824",
        "Merge-on-read: a log file that would grow past this size in bytes is followed by another one.",
    ),
    honoured(
        _FILES,
        "hoodie.logfile.data.block.max.size",
        INTEGER,
        "268435456",
        "Merge-on-read: rows in memory that go into one block of a log file, in bytes.",
    ),
    honoured(
        _FILES,
        "hoodie.parquet.compression.codec",
        TEXT,
        "zstd",
        "Parquet codec. Hudi's default is gzip; every Hudi reader reads zstd.",
        choices=("zstd", "snappy", "gzip", "lz4_raw", "brotli", "uncompressed"),
    ),
    honoured(_FILES, "hoodie.orc.max.file.size", INTEGER, "125829120", "Size in bytes at which an ORC file is full."),
    honoured(
        _FILES,
        "hoodie.orc.compression.codec",
        TEXT,
        "ZSTD",
        "ORC codec. Hudi's default is ZLIB.",
        choices=("ZSTD", "ZLIB", "SNAPPY", "LZ4", "NONE"),
    ),
    honoured(
        _FILES,
        "hoodie.copyonwrite.record.size.estimate",
        INTEGER,
        "1024",
        "Bytes of a row while no commit tells better.",
    ),
    honoured(
        _FILES,
        "hoodie.copyonwrite.insert.auto.split",
        FLAG,
        "true",
        "Rows of a new file group come from its size and the rows' size.",
    ),
    honoured(
        _FILES,
        "hoodie.copyonwrite.insert.split.size",
        INTEGER,
        "500000",
        "Rows of a new file group when auto split is off.",
    ),
)
_SAFETY_OPTIONS = (
    honoured(
        _SAFETY,
        "hoodie.time.generator.max_expected_clock_skew_ms",
        INTEGER,
        "200",
        "Wait under the lock after an instant time was drawn, in milliseconds.",
    ),
    honoured(
        _SAFETY,
        "hoodie.clean.failed.writes.policy",
        TEXT,
        "EAGER",
        "Which pending writes the next write takes for dead and rolls back: all, those without a sign of life, none. "
        "With many writers always LAZY.",
        "hoodie.cleaner.policy.failed.writes",
        choices=("EAGER", "LAZY", "NEVER"),
    ),
    honoured(
        _SAFETY,
        "hoodie.client.heartbeat.interval_in_ms",
        INTEGER,
        "60000",
        "Time between two signs of life of a writer, in milliseconds.",
    ),
    honoured(
        _SAFETY,
        "hoodie.client.heartbeat.tolerable.misses",
        INTEGER,
        "2",
        "Missed signs of life after which a writer counts as dead.",
    ),
)
_OWN_OPTIONS = (
    honoured(
        _OURS,
        "hoodie.pyhudi.engine",
        TEXT,
        "auto",
        "Who writes a Spark DataFrame: this process when it is small (auto), always this process, always Spark.",
        choices=("auto", "local", "spark"),
    ),
    honoured(
        _OURS,
        "hoodie.pyhudi.local.max.rows",
        INTEGER,
        "100000",
        "Largest input in rows that this process writes itself under engine auto.",
    ),
    honoured(_OURS, "hoodie.pyhudi.local.max.bytes", INTEGER, "33554432", "The same in bytes of Arrow data."),
    honoured(_OURS, "hoodie.pyhudi.compression.level", INTEGER, "1", "Level of the codec; for gzip and zstd."),
)

WRITE_OPTIONS: tuple[OptionSpec, ...] = (
    *_WRITE_OPTIONS,
    *_SCHEMA_OPTIONS,
    *_INDEX_OPTIONS,
    *_FILE_OPTIONS,
    *_SAFETY_OPTIONS,
    *_OWN_OPTIONS,
)
