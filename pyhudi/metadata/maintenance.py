"""Keeping the metadata table up to date: each instant of the table writes what it changed, before it completes.

A partition of a kind that nobody here keeps up is taken out beforehand: a stale one loses rows silently. Hold the
table's lock. Source: docs/formats/metadata-table.md, "Writing", "Taking back".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyhudi.errors import UnsupportedTable, WriteConflict
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.bloom_filters_partition import BloomFiltersPartition
from pyhudi.metadata.column_stats_partition import ColumnStatsPartition
from pyhudi.metadata.delta_commit import write_delta_commit
from pyhudi.metadata.files_partition import FilesPartition
from pyhudi.metadata.indexed_columns import statistics_partitions
from pyhudi.metadata.initialization import create_metadata_table
from pyhudi.metadata.kept_partition import KeptPartition, TableCommit
from pyhudi.metadata.listing import missing_instants
from pyhudi.metadata.partition_stats_partition import PartitionStatsPartition
from pyhudi.metadata.partitions import MetadataKind, kind_of
from pyhudi.metadata.record_index_partition import RecordIndexPartition
from pyhudi.metadata.secondary_index_partition import SecondaryIndexPartition, why_no_secondary_index
from pyhudi.metadata.table import MetadataTable
from pyhudi.metadata.undo import forget, is_compacted
from pyhudi.model.instant import ActionKind
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.model.table_config import TableConfig

__all__ = ["KEPT", "build", "keep_up", "unkept_partitions", "wanted_partitions"]

KEPT: Mapping[MetadataKind, KeptPartition] = {
    MetadataKind.FILES: FilesPartition(),
    MetadataKind.COLUMN_STATS: ColumnStatsPartition(),
    MetadataKind.BLOOM_FILTERS: BloomFiltersPartition(),
    MetadataKind.PARTITION_STATS: PartitionStatsPartition(),
    MetadataKind.RECORD_INDEX: RecordIndexPartition(),
    MetadataKind.SECONDARY_INDEX: SecondaryIndexPartition(),
}


def unkept_partitions(meta: MetaClient) -> tuple[str, ...]:
    """Partitions, complete or being built, that this release does not keep up: by their kind, or their definition."""
    listed = (*meta.config.metadata_partitions, *meta.config.metadata_partitions_inflight)
    return tuple(name for name in dict.fromkeys(listed) if not _is_kept(meta, name))


def wanted_partitions(config: TableConfig, options: MetadataOptions) -> tuple[str, ...]:
    """Partitions that a new metadata table gets, in the order in which they are built."""
    statistics = statistics_partitions(options, config.table_version, is_partitioned=bool(config.partition_fields))
    record_index = (MetadataKind.RECORD_INDEX.value.prefix,) if options.record_index.is_wanted else ()
    return (MetadataKind.FILES.value.prefix, *statistics, *record_index)


def build(data: MetaClient, partitions: Sequence[str], options: MetadataOptions) -> MetaClient:
    """A new metadata table with these partitions, `files` first; the table with it."""
    table = create_metadata_table(data)
    for name in partitions:
        table = KEPT[kind_of(name)].build(table, name, options)
    return table.data


def _is_kept(data: MetaClient, partition: str) -> bool:
    try:
        kind = kind_of(partition)
    except UnsupportedTable:
        return False
    is_secondary = kind is MetadataKind.SECONDARY_INDEX
    return kind in KEPT and not (is_secondary and why_no_secondary_index(data, partition))


def keep_up(data: MetaClient, commit: TableCommit) -> str | None:
    """Write what an instant changed; when that completed. None when there is no metadata table, or nothing to write.

    Args:   data: the table as it is now, the instant inflight.
    Raises: WriteConflict when the metadata table lacks a completed instant, which it had before: another writer did not
            keep it up. MetadataTableDamaged, CorruptFile.
    """
    table = MetadataTable.open(data)
    if table is None or commit.instant.action in (ActionKind.SAVEPOINT, ActionKind.INDEXING):
        return None
    _check_up_to_date(table)
    time = commit.instant.requested_time
    undone = commit.change.undone
    compacted = [one for one in undone if is_compacted(table, one)]
    taken_back = [forget(table, one) for one in (*undone, time) if one not in compacted]
    if any(taken_back):
        table = replace(table, meta=table.meta.reload(), _slices={})
    if undone and not compacted and not any(changed.written for changed in commit.change.partitions.values()):
        return None  # nothing is left of what was undone, and nothing came
    updates = {name: KEPT[kind_of(name)].update(table, name, commit) for name in table.partitions}
    return write_delta_commit(table, time, updates)


def _check_up_to_date(table: MetadataTable) -> None:
    missing = missing_instants(table)
    if missing:
        raise WriteConflict(
            f"{table.data.storage.root}: another writer completed {missing[0]} meanwhile and did not keep the metadata "
            f"table up. Nothing of this write is visible; write again, which builds the metadata table anew."
        )
