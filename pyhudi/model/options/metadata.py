"""MetadataOptions: which partitions the metadata table has, and how large they are made.

Partitions that exist are kept up whatever a call says; these options say what is in a metadata table that is made, and
with how many file groups. Source: Hudi's documented keys; docs/formats/metadata-table.md, "Indexed columns".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyhudi.model.options.declare import Values, option, parse, part
from pyhudi.model.options.queries import METADATA
from pyhudi.model.options.record_index import RecordIndexOptions, record_index_options

__all__ = ["DEFAULT_METADATA", "REFUSE", "MetadataOptions", "metadata_options"]

REFUSE = "refuse"  # a metadata table that is damaged or not up to date


@dataclass(frozen=True, slots=True)
class MetadataOptions:
    """Options of the metadata table. `enable`: None: a table keeps the metadata table that it has, and gets none
    unless it is new. `column_stats_columns`: () for the table's first columns.
    """

    enable: bool | None = None  # the option is a query's, too, and declared with those
    if_stale: str = option(
        "hoodie.pyhudi.metadata.stale",
        "rebuild",
        "What a write does that finds the metadata table damaged, or not to have all completed instants: build it "
        "anew, or refuse. It never goes on from there.",
        choices=("rebuild", REFUSE),
    )
    delta_commits_max: int = option(
        "hoodie.metadata.compact.max.delta.commits",
        10,
        "Delta commits of the metadata table after which it is compacted.",
        minimum=1,
    )

    log_compaction: bool = option(
        "hoodie.metadata.log.compaction.enable",
        False,
        "Log files of the metadata table are merged into one where they have many blocks, between its compactions.",
    )
    log_blocks_min: int = option(
        "hoodie.metadata.log.compaction.blocks.threshold",
        5,
        "Log blocks of a slice of the metadata table that a log compaction merges; slices with fewer are left.",
        minimum=1,
    )

    # ---- column statistics ----
    column_stats: bool = option(
        "hoodie.metadata.index.column.stats.enable",
        True,
        "The metadata table has statistics of the columns of each file.",
    )
    column_stats_columns: tuple[str, ...] = option(
        "hoodie.metadata.index.column.stats.column.list",
        (),
        "Columns that get statistics; a field of a struct by its dotted name. Not given: the table's first columns.",
    )
    column_stats_columns_max: int = option(
        "hoodie.metadata.index.column.stats.max.columns.to.index",
        32,
        "How many of the table's columns get statistics when they are not named; version 6 has those of all columns.",
        minimum=1,
    )
    column_stats_file_groups: int = option(
        "hoodie.metadata.index.column.stats.file.group.count",
        2,
        "File groups that column statistics begin with.",
        minimum=1,
    )

    # ---- partition statistics ----
    partition_stats: bool = option(
        "hoodie.metadata.index.partition.stats.enable",
        True,
        "The metadata table has statistics of whole partitions, where it has those of files; from version 8 on.",
    )
    partition_stats_file_groups: int = option(
        "hoodie.metadata.index.partition.stats.file.group.count",
        1,
        "File groups that statistics of partitions begin with.",
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
        "File groups that bloom filters begin with.",
        minimum=1,
    )

    # ---- expression indexes ----
    expression_file_groups: int = option(
        "hoodie.metadata.index.expression.file.group.count",
        2,
        "File groups that an expression index begins with.",
        minimum=1,
    )

    # ---- record index ----
    record_index: RecordIndexOptions = part(RecordIndexOptions, record_index_options)


DEFAULT_METADATA = MetadataOptions()


def metadata_options(values: Values) -> MetadataOptions:
    """The options of a write, or of a call of a service."""
    given = values.given.get(METADATA)
    return replace(parse(MetadataOptions, values), enable=None if given is None else given == "true")
