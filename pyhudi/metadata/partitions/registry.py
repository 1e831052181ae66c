"""The registry of the metadata table's partitions: a row per kind, which of them a table gets,
and which ones this release supports.

Before a write, partitions of other kinds are removed from the table: a stale one loses rows silently.
Source: docs/formats/metadata-table.md, "Building", "Index definitions".
"""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.errors import UnsupportedTable
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.partitions.base import PartitionWriter
from pyhudi.metadata.partitions.bloom_filters import BloomFiltersPartition
from pyhudi.metadata.partitions.column_stats import ColumnStatsPartition
from pyhudi.metadata.partitions.expression_index import ExpressionIndexPartition, why_no_expression_index
from pyhudi.metadata.partitions.files import FilesPartition
from pyhudi.metadata.partitions.partition_stats import PartitionStatsPartition
from pyhudi.metadata.partitions.record_index import RecordIndexPartition
from pyhudi.metadata.partitions.secondary_index import SecondaryIndexPartition, why_no_secondary_index
from pyhudi.metadata.partitions.stats_columns import statistics_partitions
from pyhudi.metadata.schema import MetadataKind, kind_of
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.model.table_config import TableConfig
from pyhudi.model.table_format import TableFormat

__all__ = [
    "PARTITIONS",
    "is_followed",
    "is_supported",
    "is_supported_in",
    "missing_partitions",
    "partitions_of_options",
    "unsupported_partitions",
]

PARTITIONS: Mapping[MetadataKind, PartitionWriter] = {
    MetadataKind.FILES: FilesPartition(),
    MetadataKind.COLUMN_STATS: ColumnStatsPartition(),
    MetadataKind.BLOOM_FILTERS: BloomFiltersPartition(),
    MetadataKind.PARTITION_STATS: PartitionStatsPartition(),
    MetadataKind.RECORD_INDEX: RecordIndexPartition(),
    MetadataKind.SECONDARY_INDEX: SecondaryIndexPartition(),
    MetadataKind.EXPRESSION_INDEX: ExpressionIndexPartition(),
}

_RECORD_INDEX = MetadataKind.RECORD_INDEX.value.prefix
_OF_LATER_VERSIONS = (MetadataKind.PARTITION_STATS, MetadataKind.SECONDARY_INDEX, MetadataKind.EXPRESSION_INDEX)


def partitions_of_options(config: TableConfig, options: MetadataOptions) -> tuple[str, ...]:
    """Partitions that a new metadata table gets, in the order in which they are built."""
    statistics = statistics_partitions(options, config.table_version, is_partitioned=bool(config.partition_fields))
    has_record_index = options.record_index.is_global or options.record_index.is_partitioned
    return (MetadataKind.FILES.value.prefix, *statistics, *((_RECORD_INDEX,) if has_record_index else ()))


def missing_partitions(data: MetaClient, options: MetadataOptions) -> tuple[str, ...]:
    """Partitions that the options name explicitly (not by default) and that the existing metadata table lacks."""
    partitions = data.config.metadata_partitions
    has_record_index = options.record_index.is_global or options.record_index.is_partitioned
    return (_RECORD_INDEX,) if partitions and has_record_index and _RECORD_INDEX not in partitions else ()


def unsupported_partitions(meta: MetaClient) -> Mapping[str, str]:
    """Partitions, complete or being built, that this release can't update → why not, as a sentence."""
    listed = (*meta.config.metadata_partitions, *meta.config.metadata_partitions_inflight)
    reasons = {}
    for name in dict.fromkeys(listed):
        if not is_supported(name):
            reasons[name] = "this release does not keep partitions of their kind up."
            continue
        why = _why_not_followed(meta, name)
        if why is not None:
            reasons[name] = f"{why}."
    return reasons


def is_supported_in(partition: str, table_version: int) -> bool:
    """True if this release can update partitions of this name in tables of this version."""
    if not is_supported(partition):
        return False
    return TableFormat(table_version).has_partition_stats or kind_of(partition) not in _OF_LATER_VERSIONS


def is_supported(partition: str) -> bool:
    """True if this release can update partitions of this name."""
    try:
        return kind_of(partition) in PARTITIONS
    except UnsupportedTable:
        return False


def is_followed(data: MetaClient, partition: str) -> bool:
    """True if this release supports the definition of a partition whose kind it supports."""
    return _why_not_followed(data, partition) is None


def _why_not_followed(data: MetaClient, partition: str) -> str | None:
    match kind_of(partition):
        case MetadataKind.SECONDARY_INDEX:
            return why_no_secondary_index(data, partition)
        case MetadataKind.EXPRESSION_INDEX:
            return why_no_expression_index(data, partition)
    return None
