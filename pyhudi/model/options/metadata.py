"""Options of the metadata table: its partitions, their sizes, and the record index.

Existing partitions are always updated. `MetadataOptions` decides which partitions a new metadata table gets, and with
how many file groups. `RecordIndexOptions` has the options of its record index.

Source: Hudi's documented keys; docs/formats/metadata-table.md, "Indexed columns".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyhudi.errors import ConfigError
from pyhudi.model.options.declare import Values, key_of, option, parse, part
from pyhudi.model.options.queries import METADATA
from pyhudi.model.options.table import TableOptions

__all__ = [
    "DEFAULT_METADATA",
    "REFUSE",
    "MetadataOptions",
    "RecordIndexOptions",
    "metadata_options",
    "record_index_options",
]


_FAMILY = "hoodie.metadata.global.record.level.index."
_OLD_FAMILY = "hoodie.metadata.record.index."
_PARTITIONED_FAMILY = "hoodie.metadata.record.level.index."
_PARTITIONED_FROM = "9"  # table version
_OLD_PARTITIONED_FAMILY = "hoodie.metadata.partitioned.record.index."


@dataclass(frozen=True, slots=True)
class RecordIndexOptions:
    """`is_global`: the index has keys unique in the table; `is_partitioned`: keys unique in their partition."""

    is_global: bool = option(
        _FAMILY + "enable",
        False,
        "The metadata table has a record index, which maps each key to its file group. Keys must be unique in the "
        "table.",
        aliases=(_OLD_FAMILY + "enable",),
    )
    is_partitioned: bool = option(
        _PARTITIONED_FAMILY + "enable",
        False,
        "The same with separate file groups for each partition of the table, in which keys must be unique.",
    )
    groups_min: int = option(
        _FAMILY + "min.filegroup.count",
        10,
        "Minimum number of file groups of a record index. The number is fixed when the index is built.",
        aliases=(_OLD_FAMILY + "min.filegroup.count",),
        minimum=1,
    )
    groups_max: int = option(
        _FAMILY + "max.filegroup.count",
        10000,
        "Maximum number of file groups of a record index.",
        aliases=(_OLD_FAMILY + "max.filegroup.count",),
        minimum=1,
    )
    partition_groups_min: int = option(
        _PARTITIONED_FAMILY + "min.filegroup.count",
        1,
        "Minimum number of file groups for each partition of the table, and the number for partitions added later.",
        aliases=(_OLD_PARTITIONED_FAMILY + "min.filegroup.count",),
        minimum=1,
    )
    partition_groups_max: int = option(
        _PARTITIONED_FAMILY + "max.filegroup.count",
        10,
        "Maximum number of file groups for each partition of the table.",
        aliases=(_OLD_PARTITIONED_FAMILY + "max.filegroup.count",),
        minimum=1,
    )
    growth_factor: float = option(
        _OLD_FAMILY + "growth.factor",
        2.0,
        "A new record index is sized for this multiple of the table's keys.",
    )
    group_bytes_max: int = option(
        _OLD_FAMILY + "max.filegroup.size",
        1073741824,
        "Bytes of a file group from which the number of groups is computed, at 48 bytes per record.",
        minimum=1,
    )


def record_index_options(values: Values) -> RecordIndexOptions:
    """The options of a write. Raises ConfigError."""
    options = parse(RecordIndexOptions, values)
    if options.is_global and options.is_partitioned:
        raise ConfigError(
            f"{key_of(RecordIndexOptions, 'is_global')} and {key_of(RecordIndexOptions, 'is_partitioned')} are both "
            "true: a table has one record index. Choose the first when keys are unique in the table."
        )
    version_key, meta_key = key_of(TableOptions, "table_version"), key_of(TableOptions, "populate_meta_fields")
    if (options.is_global or options.is_partitioned) and values.texts.get(meta_key) == "false":
        raise ConfigError(
            f"{meta_key}=false: a record index is of tables that store their keys. Leave "
            f"{key_of(RecordIndexOptions, 'is_global')} out."
        )
    if options.is_partitioned and values.texts.get(version_key, _PARTITIONED_FROM) < _PARTITIONED_FROM:
        raise ConfigError(
            f"{key_of(RecordIndexOptions, 'is_partitioned')}=true: a record index with file groups for each partition "
            f"is of tables from version {_PARTITIONED_FROM} on; this one has {values.texts[version_key]}."
        )
    for low, high in (("groups_min", "groups_max"), ("partition_groups_min", "partition_groups_max")):
        least, most = getattr(options, low), getattr(options, high)
        if least > most:
            keys = key_of(RecordIndexOptions, low), key_of(RecordIndexOptions, high)
            raise ConfigError(f"{keys[0]}={least} is more than {keys[1]}={most}.")
    if not 0 < options.growth_factor < float("inf"):
        key = key_of(RecordIndexOptions, "growth_factor")
        raise ConfigError(f"{key}: expected a number above 0, found {options.growth_factor}. See docs/options.md.")
    return options


REFUSE = "refuse"  # to write if the metadata table is damaged or out of date


@dataclass(frozen=True, slots=True)
class MetadataOptions:
    """Options of the metadata table. `enable` None: an existing table keeps its metadata table, or has none; a new
    table gets one. `column_stats_columns`: () for the table's first columns.
    """

    enable: bool | None = None  # the option is also a query's, and declared there
    if_stale: str = option(
        "hoodie.pyhudi.metadata.stale",
        "rebuild",
        "Reaction of a write to a metadata table that is damaged or lacks completed instants: rebuild it, or refuse to "
        "write. The stale metadata table is never used.",
        choices=("rebuild", REFUSE),
    )
    delta_commits_max: int = option(
        "hoodie.metadata.compact.max.delta.commits",
        10,
        "Number of delta commits after which the metadata table is compacted.",
        minimum=1,
    )

    log_compaction: bool = option(
        "hoodie.metadata.log.compaction.enable",
        False,
        "Between compactions of the metadata table, log files with many blocks are merged into one.",
    )
    log_blocks_min: int = option(
        "hoodie.metadata.log.compaction.blocks.threshold",
        5,
        "Minimum number of log blocks in a slice of the metadata table for a log compaction to merge them.",
        minimum=1,
    )

    # ---- column statistics ----
    column_stats: bool = option(
        "hoodie.metadata.index.column.stats.enable",
        True,
        "The metadata table has column statistics of each file.",
    )
    column_stats_columns: tuple[str, ...] = option(
        "hoodie.metadata.index.column.stats.column.list",
        (),
        "Columns that get statistics; a field of a struct has a dotted name. Unset: the table's first columns.",
    )
    column_stats_columns_max: int = option(
        "hoodie.metadata.index.column.stats.max.columns.to.index",
        32,
        "Number of the table's first columns that get statistics if none are named. In version 6 all columns have "
        "them.",
        minimum=1,
    )
    column_stats_file_groups: int = option(
        "hoodie.metadata.index.column.stats.file.group.count",
        2,
        "Initial number of file groups of column statistics.",
        minimum=1,
    )

    # ---- partition statistics ----
    partition_stats: bool = option(
        "hoodie.metadata.index.partition.stats.enable",
        True,
        "From version 8 on: if the metadata table has column statistics, it also has them for whole partitions.",
    )
    partition_stats_file_groups: int = option(
        "hoodie.metadata.index.partition.stats.file.group.count",
        1,
        "Initial number of file groups of partition statistics.",
        minimum=1,
    )

    # ---- bloom filters ----
    bloom_filters: bool = option(
        "hoodie.metadata.index.bloom.filter.enable",
        False,
        "The metadata table has the bloom filters of base files.",
    )
    bloom_filters_file_groups: int = option(
        "hoodie.metadata.index.bloom.filter.file.group.count",
        4,
        "Initial number of file groups of bloom filters.",
        minimum=1,
    )

    # ---- expression indexes ----
    expression_file_groups: int = option(
        "hoodie.metadata.index.expression.file.group.count",
        2,
        "Initial number of file groups of an expression index.",
        minimum=1,
    )

    # ---- record index ----
    record_index: RecordIndexOptions = part(RecordIndexOptions, record_index_options)


DEFAULT_METADATA = MetadataOptions()


def metadata_options(values: Values) -> MetadataOptions:
    """The options of a write, or of a call of a service."""
    text = values.texts.get(METADATA)
    return replace(parse(MetadataOptions, values), enable=None if text is None else text == "true")
