"""Which partitions a metadata table has, and how they are built: all of it, single ones, or those that are missing.

A partition of a kind that nobody here keeps up is taken out beforehand: a stale one loses rows silently. What each
instant writes to them afterwards: `apply_commit.py`. Hold the table's lock.
Source: docs/formats/metadata-table.md, "Building", "Index definitions".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyhudi.errors import UnsupportedTable
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.index_definitions import delete_unreadable
from pyhudi.metadata.initialization import build_partition, create_metadata_table
from pyhudi.metadata.partitions.base import KeptPartition
from pyhudi.metadata.partitions.bloom_filters import BloomFiltersPartition
from pyhudi.metadata.partitions.column_stats import ColumnStatsPartition
from pyhudi.metadata.partitions.expression_index import ExpressionIndexPartition, why_no_expression_index
from pyhudi.metadata.partitions.files import FilesPartition
from pyhudi.metadata.partitions.partition_stats import PartitionStatsPartition
from pyhudi.metadata.partitions.record_index import RecordIndexPartition
from pyhudi.metadata.partitions.secondary_index import SecondaryIndexPartition, why_no_secondary_index
from pyhudi.metadata.partitions.stats_columns import statistics_partitions
from pyhudi.metadata.removal import remove_metadata_table, unlist_partitions
from pyhudi.metadata.schema import MetadataKind, kind_of
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.new_table import LATER_KINDS
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.model.table_config import METADATA_TO_BUILD, TableConfig
from pyhudi.timeline.table_properties import update_table_config

__all__ = [
    "KEPT",
    "MetadataTableRebuilt",
    "build",
    "build_anew",
    "build_kept",
    "build_missing",
    "built",
    "can_be_kept",
    "is_kept",
    "missing_partitions",
    "rebuild_partitions",
    "unkept_partitions",
    "wanted_partitions",
]

_FILES = MetadataKind.FILES.value.prefix
_OF_LATER_VERSIONS = (MetadataKind.PARTITION_STATS, MetadataKind.SECONDARY_INDEX, MetadataKind.EXPRESSION_INDEX)

_DEFINED_BY_CALLS = (MetadataKind.SECONDARY_INDEX, MetadataKind.EXPRESSION_INDEX)  # others are defined when built

_RECORD_INDEX = MetadataKind.RECORD_INDEX.value.prefix
KEPT: Mapping[MetadataKind, KeptPartition] = {
    MetadataKind.FILES: FilesPartition(),
    MetadataKind.COLUMN_STATS: ColumnStatsPartition(),
    MetadataKind.BLOOM_FILTERS: BloomFiltersPartition(),
    MetadataKind.PARTITION_STATS: PartitionStatsPartition(),
    MetadataKind.RECORD_INDEX: RecordIndexPartition(),
    MetadataKind.SECONDARY_INDEX: SecondaryIndexPartition(),
    MetadataKind.EXPRESSION_INDEX: ExpressionIndexPartition(),
}


class MetadataTableRebuilt(UserWarning):
    """A write found the metadata table damaged or not up to date, and has built it anew."""


def unkept_partitions(meta: MetaClient) -> Mapping[str, str]:
    """Partitions, complete or being built, that this release does not keep up → why not, as a sentence."""
    listed = (*meta.config.metadata_partitions, *meta.config.metadata_partitions_inflight)
    found = {}
    for name in dict.fromkeys(listed):
        if not is_kept(name):
            found[name] = "this release does not keep partitions of their kind up."
            continue
        why = _why_not_followed(meta, name)
        if why is not None:
            found[name] = f"{why}."
    return found


def wanted_partitions(config: TableConfig, options: MetadataOptions) -> tuple[str, ...]:
    """Partitions that a new metadata table gets, in the order in which they are built."""
    statistics = statistics_partitions(options, config.table_version, is_partitioned=bool(config.partition_fields))
    wanted = options.record_index.is_global or options.record_index.is_partitioned
    return (MetadataKind.FILES.value.prefix, *statistics, *((_RECORD_INDEX,) if wanted else ()))


def build(data: MetaClient, partitions: Sequence[str], options: MetadataOptions) -> MetaClient:
    """A new metadata table with these partitions, `files` first; the table with it.

    What there is of one goes first. The table's properties say which partitions are to be built until all are: when
    this process dies, the next write builds them.
    """
    remove_metadata_table(data, to_build=partitions)
    if not any(kind_of(name) in _DEFINED_BY_CALLS for name in partitions):
        delete_unreadable(data.storage)
    table = create_metadata_table(data.reload())
    for name in partitions:
        if _can_be_followed(table.data, name):
            table = build_kept(table, name, options)
    return built(table.data)


def build_kept(table: MetadataTable, partition: str, options: MetadataOptions) -> MetadataTable:
    """Build a partition, or build it anew, and list it in the table's properties; the table with it.

    Raises: UnsupportedTable when it can't be kept up; CorruptFile.
    """
    kept = KEPT[kind_of(partition)]
    groups = kept.define(table, partition, options)
    return build_partition(table, partition, kept.records(table, partition, options, groups))


def built(data: MetaClient) -> MetaClient:
    """The table, all of whose partitions of the metadata table are built."""
    update_table_config(data.storage, {}, (METADATA_TO_BUILD,), data.clock)
    return data.reload()


def build_anew(data: MetaClient, options: MetadataOptions) -> MetaClient:
    """The same partitions as the metadata table has, or is to have, in a new one; those that the table's version has
    and this release keeps up.
    """
    config = data.config
    known = (*config.metadata_partitions, *config.metadata_partitions_inflight, *config.metadata_to_build)
    names = dict.fromkeys((_FILES, *known))
    return build(data, tuple(name for name in names if can_be_kept(name, config.table_version)), options)


def can_be_kept(partition: str, table_version: int) -> bool:
    """Does this release keep partitions of this name up, in tables of this version?"""
    if not is_kept(partition):
        return False
    return table_version >= LATER_KINDS or kind_of(partition) not in _OF_LATER_VERSIONS


def missing_partitions(data: MetaClient, options: MetadataOptions) -> tuple[str, ...]:
    """What the options name by themselves (not by default), and the metadata table that there is does not have."""
    listed = data.config.metadata_partitions
    wanted = options.record_index.is_global or options.record_index.is_partitioned
    return (_RECORD_INDEX,) if listed and wanted and _RECORD_INDEX not in listed else ()


def build_missing(data: MetaClient, partitions: Sequence[str], options: MetadataOptions) -> MetaClient:
    """These partitions of the metadata table that there is; the table with them. Raises MetadataTableDamaged."""
    table = MetadataTable.open(data) if partitions else None
    if table is None:
        return data
    for name in partitions:
        table = build_kept(table, name, options)
    return table.data


def is_kept(partition: str) -> bool:
    """Does this release keep partitions of this name up?"""
    try:
        return kind_of(partition) in KEPT
    except UnsupportedTable:
        return False


def _can_be_followed(data: MetaClient, partition: str) -> bool:
    """Is the definition of a partition of a kept kind one that this release can follow?"""
    return _why_not_followed(data, partition) is None


def _why_not_followed(data: MetaClient, partition: str) -> str | None:
    match kind_of(partition):
        case MetadataKind.SECONDARY_INDEX:
            return why_no_secondary_index(data, partition)
        case MetadataKind.EXPRESSION_INDEX:
            return why_no_expression_index(data, partition)
    return None


def rebuild_partitions(table: MetadataTable, partitions: Sequence[str], options: MetadataOptions) -> MetadataTable:
    """The metadata table with these partitions, but `files`, as they are now. When this process dies, the next write
    builds all.
    """
    unlist_partitions(table.data, partitions)
    now = MetadataTable(table.data.reload(), table.meta)
    for name in partitions:
        now = build_kept(replace(now, deleted=table.deleted), name, options)
    return MetadataTable(built(now.data), now.meta)
