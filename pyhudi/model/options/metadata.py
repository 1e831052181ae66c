"""MetadataOptions: which partitions the metadata table has, and how large they are made.

Partitions that exist are kept up whatever a call says; these options say what is in a metadata table that is made, and
with how many file groups. Source: Hudi's documented keys; docs/formats/metadata-table.md, "Indexed columns".
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.declare import option

__all__ = ["DEFAULT_METADATA", "MetadataOptions"]


@dataclass(frozen=True, slots=True)
class MetadataOptions:
    """Options of the metadata table. `column_stats_columns`: () for the table's first columns."""

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


DEFAULT_METADATA = MetadataOptions()
