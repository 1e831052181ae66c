"""Options of one write (operation, schema rules, replaced partitions, commit, engine) and of an SQL INSERT.

`StatementOptions` is only for an SQL INSERT; the other classes are for every write.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyhudi.model.options.declare import Values, computed, option, parse, row
from pyhudi.model.options.reporting import SECRET_KEYS
from pyhudi.model.options.spec import text_of
from pyhudi.model.options.streaming import sink_checkpoint
from pyhudi.model.options.table import RECORD_KEY

__all__ = [
    "COMMIT_METADATA_PREFIX",
    "INSERT_INTO_OPERATION",
    "OLD_BULK_INSERT",
    "OLD_INSERT_MODE",
    "OPERATION",
    "SCHEMA_MODE",
    "CommitOptions",
    "OperationOptions",
    "OwnOptions",
    "ReplacingOptions",
    "SchemaOptions",
    "StatementOptions",
    "operation_options",
]


OPERATION = "hoodie.datasource.write.operation"
SCHEMA_MODE = "hoodie.pyhudi.schema.mode"

_DROP_DUPLICATES = row(
    "hoodie.datasource.write.insert.drop.duplicates",
    False,
    "`true` is the older form of `hoodie.datasource.insert.dup.policy=drop`.",
)
COMMIT_METADATA_PREFIX = row(
    "hoodie.datasource.write.commitmeta.key.prefix",
    "_",
    "Options whose key has this prefix are stored in the commit's extra metadata.",
    may_be_empty=True,
)


@dataclass(frozen=True)  # no slots: WriteOptions has several bases
class OperationOptions:
    """`extra_metadata`: the caller's entries in the commit, by key."""

    operation: str = option(
        OPERATION,
        "upsert",
        "The operation of the write. Without a record key the default is bulk_insert.",
        choices=(
            "upsert",
            "insert",
            "bulk_insert",
            "delete",
            "insert_overwrite",
            "insert_overwrite_table",
            "delete_partition",
            "bootstrap",
        ),
        later=(
            "upsert_prepped",
            "insert_prepped",
            "bulk_insert_prepped",
            "delete_prepped",
            "compact",
            "cluster",
            "index",
            "alter_schema",
        ),
        keyword="operation",
    )
    combine_before_upsert: bool = option(
        "hoodie.combine.before.upsert",
        True,
        "Combine rows of one upsert that have the same key.",
        keyword="combine_before_upsert",
    )
    combine_before_insert: bool = option(
        "hoodie.combine.before.insert", False, "The same for insert and bulk_insert.", keyword="combine_before_insert"
    )
    combine_before_bulk_insert: bool = False
    insert_dup_policy: str = option(
        "hoodie.datasource.insert.dup.policy",
        "none",
        "insert and bulk_insert: treatment of rows whose key is already in the table.",
        choices=("none", "drop", "fail"),
        keyword="duplicates",
        also=(_DROP_DUPLICATES,),
    )
    bulk_insert_sort_mode: str = option(
        "hoodie.bulkinsert.sort.mode",
        "NONE",
        "Order and distribution of the rows of a bulk_insert.",
        choices=(
            "NONE",
            "GLOBAL_SORT",
            "PARTITION_SORT",
            "PARTITION_PATH_REPARTITION",
            "PARTITION_PATH_REPARTITION_AND_SORT",
        ),
        keyword="sort_mode",
    )
    bulk_insert_sort_columns: tuple[str, ...] = option(
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
        (),
        "Sort the rows of a bulk_insert by these columns.",
        keyword="sort_columns",
    )
    extra_metadata: Mapping[str, str] = computed(dict, COMMIT_METADATA_PREFIX)


@dataclass(frozen=True)  # no slots: WriteOptions has several bases
class SchemaOptions:
    """The handling of columns that the table or the data lacks."""

    null_for_missing_columns: bool = option(
        "hoodie.write.set.null.for.missing.columns",
        False,
        "Columns of the table that the data lacks: `true`: they become null in every row of the data; `false`: they "
        "are refused. Unset: stored rows keep their values, and new rows get null. Fields that a struct lacks become "
        "null with `true`, and are refused otherwise.",
    )
    reconcile_schema: bool = option(
        "hoodie.datasource.write.reconcile.schema",
        False,
        "Keep the table's columns and types if the data has fewer columns or narrower types.",
    )
    allow_column_drop: bool = option(
        "hoodie.datasource.write.schema.allow.auto.evolution.column.drop",
        False,
        "Drop columns that the data lacks from the table's schema.",
    )
    allow_kind_change: bool = option(
        "hoodie.pyhudi.schema.allow.kind.change",
        False,
        "As in Hudi, data of another type changes a column of numbers to text, and a column of text to bytes. `false`: "
        "such data is refused.",
    )
    schema_mode: str = option(
        SCHEMA_MODE,
        "merge",
        "merge: the table adopts new columns and wider types of the data. Unset: like merge, but a new column is "
        "refused if the data lacks one of nearly the same name. strict: new columns and wider types are refused. "
        "overwrite, when overwriting the whole table: the table gets the columns of the data.",
        choices=("strict", "merge", "overwrite"),
        keyword="schema_mode",
    )


@dataclass(frozen=True)  # no slots: WriteOptions has several bases
class OwnOptions:
    """PyHudi's own options: the writer of a Spark DataFrame, the compression level, and waiting for the disk."""

    engine: str = option(
        "hoodie.pyhudi.engine",
        "auto",
        "The writer of a Spark DataFrame: this process if the DataFrame is small, else Spark (auto); always this "
        "process; always Spark.",
        choices=("auto", "local", "spark"),
        keyword="engine",
    )
    local_max_rows: int = option(
        "hoodie.pyhudi.local.max.rows",
        100000,
        "engine auto: maximum rows of an input that this process writes itself.",
        minimum=0,
    )
    local_max_bytes: int = option(
        "hoodie.pyhudi.local.max.bytes", 33554432, "The same in bytes of Arrow data.", minimum=0
    )
    compression_level: int = option(
        "hoodie.pyhudi.compression.level",
        1,
        "Compression level, for gzip and zstd.",
        keyword="compression_level",
        minimum=0,
    )
    storage_sync: bool = option(
        "hoodie.pyhudi.storage.sync",
        True,
        "On a local disk a commit waits until its files are on the disk, so that a power cut loses nothing. With "
        "`false` a power cut can lose or empty files of completed instants; only for tables that can be recreated.",
    )


@dataclass(frozen=True, slots=True)
class ReplacingOptions:
    """`overwrite_mode`: the meaning of save mode overwrite without an operation. `static_partitions`: the partitions
    that an insert_overwrite replaces regardless of its rows; () for those that get rows. `partitions_to_delete`:
    partition paths and patterns.
    """

    overwrite_mode: str | None = option(
        "hoodie.datasource.overwrite.mode",
        None,
        "Effect of save mode overwrite without an operation: STATIC replaces all rows in one commit "
        "(insert_overwrite_table), DYNAMIC replaces the rows of partitions that get rows (insert_overwrite). Unset: "
        "Spark recreates the table, `write_hudi` replaces all rows. A named operation wins, as in Hudi.",
        choices=("STATIC", "DYNAMIC"),
    )
    static_partitions: tuple[str, ...] = option(
        "hoodie.static.overwrite.partition.paths",
        (),
        "insert_overwrite: the partition paths to replace, even if they get no rows. Rows for other partitions are "
        "refused.",
    )
    partitions_to_delete: tuple[str, ...] = option(
        "hoodie.datasource.write.partitions.to.delete",
        (),
        "delete_partition: partition paths, with `*` for any text unless a partition has exactly that path. Unset: the "
        "partitions of the given rows.",
    )


@dataclass(frozen=True, slots=True)
class CommitOptions:
    """`rolling_keys`: keys of extra metadata that every commit copies from one of the newest `lookback` commits."""

    allow_empty: bool = option(
        "hoodie.allow.empty.commit",
        True,
        "A write that changes no file still makes a commit, which advances checkpoints. A delete that matches no row "
        "or no partition makes one only if this is set explicitly. `false`: no commit is made, and the result has no "
        "instant.",
    )
    rolling_keys: tuple[str, ...] = option(
        "hoodie.write.rolling.metadata.keys",
        (),
        "Keys of extra metadata that every commit and clean copies from earlier ones, unless it has its own value.",
    )
    lookback: int = option(
        "hoodie.write.rolling.metadata.timeline.lookback.commits",
        10,
        "Number of earlier commits and cleans to search for these keys.",
        minimum=1,
    )


def operation_options(values: Values, arguments: Mapping[str, object]) -> OperationOptions:
    """The options of a write. `arguments`: of the call, some of them without keys in Hudi."""
    options = parse(OperationOptions, values)
    keyless = not values.texts.get(RECORD_KEY)
    prefix = values.texts.get(COMMIT_METADATA_PREFIX.key, "_")
    return replace(
        options,
        operation="bulk_insert" if keyless and not values.is_given(OPERATION) else options.operation,
        combine_before_bulk_insert=options.combine_before_insert,
        insert_dup_policy="drop" if values.flag(_DROP_DUPLICATES) else options.insert_dup_policy,
        extra_metadata={
            key: text_of(value)
            for key, value in arguments.items()
            if prefix and key.startswith(prefix) and value is not None and key not in SECRET_KEYS
        }
        | sink_checkpoint(values),
    )


INSERT_INTO_OPERATION = "hoodie.spark.sql.insert.into.operation"
OLD_INSERT_MODE = "hoodie.sql.insert.mode"
OLD_BULK_INSERT = "hoodie.sql.bulk.insert.enable"


@dataclass(frozen=True, slots=True)
class StatementOptions:
    """Options of SQL statements."""

    insert_into_operation: str = option(
        INSERT_INTO_OPERATION,
        "insert",
        "The operation of INSERT INTO.",
        choices=("insert", "upsert", "bulk_insert"),
    )
    old_insert_mode: str = option(
        OLD_INSERT_MODE,
        "upsert",
        "The older form, used if `hoodie.spark.sql.insert.into.operation` is not set. strict refuses keys that are in "
        "the table.",
        choices=("upsert", "strict", "non-strict"),
    )
    old_bulk_insert: bool = option(
        OLD_BULK_INSERT, False, "The older form of bulk_insert, with `hoodie.sql.insert.mode=non-strict`."
    )
