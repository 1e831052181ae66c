"""The partitions that a metadata table has, and their build: of all, of single or of missing ones.

`partitions/registry.py` lists the kinds; `apply_commit.py` writes the changes of each instant to them. Hold the table's
lock.
Source: docs/formats/metadata-table.md, "Building", "Index definitions".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyhudi.meta_client import MetaClient
from pyhudi.metadata.index_definitions import delete_unreadable
from pyhudi.metadata.initialization import build_partition, create_metadata_table
from pyhudi.metadata.partitions.registry import PARTITIONS, is_followed, is_supported_in
from pyhudi.metadata.removal import remove_metadata_table, unlist_partitions
from pyhudi.metadata.schema import MetadataKind, kind_of
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.model.table_config import METADATA_TO_BUILD
from pyhudi.timeline.table_properties import update_table_config

__all__ = [
    "MetadataTableRebuilt",
    "add_partition",
    "add_partitions",
    "build",
    "finish_build",
    "rebuild_partitions",
    "rebuild_table",
]

_FILES = MetadataKind.FILES.value.prefix

_DEFINED_BY_CALLS = (MetadataKind.SECONDARY_INDEX, MetadataKind.EXPRESSION_INDEX)  # others are defined when built

_RECORD_INDEX = MetadataKind.RECORD_INDEX.value.prefix


class MetadataTableRebuilt(UserWarning):
    """A write found the metadata table damaged or out of date, and has rebuilt it."""


def build(data: MetaClient, partitions: Sequence[str], options: MetadataOptions) -> MetaClient:
    """Build a new metadata table with these partitions, `files` first; return the table with it.

    An existing metadata table is deleted first. Until all partitions are built, the table's properties list those to
    build: if this process dies, the next write builds them.
    """
    remove_metadata_table(data, to_build=partitions)
    if not any(kind_of(name) in _DEFINED_BY_CALLS for name in partitions):
        delete_unreadable(data.storage)
    table = create_metadata_table(data.reload())
    for name in partitions:
        if is_followed(table.data, name):
            table = add_partition(table, name, options)
    return finish_build(table.data)


def add_partition(table: MetadataTable, partition: str, options: MetadataOptions) -> MetadataTable:
    """Build or rebuild a partition and list it in the table's properties; return the metadata table with it.

    Raises: UnsupportedTable when this release can't update it; CorruptFile.
    """
    kind = PARTITIONS[kind_of(partition)]
    groups = kind.define(table, partition, options)
    return build_partition(table, partition, kind.records(table, partition, options, groups))


def finish_build(data: MetaClient) -> MetaClient:
    """Record that all partitions of the metadata table are built; return the reloaded table."""
    update_table_config(data.storage, {}, (METADATA_TO_BUILD,), data.clock)
    return data.reload()


def rebuild_table(data: MetaClient, options: MetadataOptions) -> MetaClient:
    """Rebuild the metadata table with the partitions that it has or is to have; return the table with it.

    Partitions that don't exist in the table's version, or that this release can't update, are left out.
    """
    config = data.config
    partitions = (*config.metadata_partitions, *config.metadata_partitions_inflight, *config.metadata_to_build)
    names = dict.fromkeys((_FILES, *partitions))
    return build(data, tuple(name for name in names if is_supported_in(name, config.table_version)), options)


def add_partitions(data: MetaClient, partitions: Sequence[str], options: MetadataOptions) -> MetaClient:
    """Add these partitions to an existing metadata table; return the table with them. Raises MetadataTableDamaged."""
    table = MetadataTable.open(data) if partitions else None
    if table is None:
        return data
    for name in partitions:
        table = add_partition(table, name, options)
    return table.data


def rebuild_partitions(table: MetadataTable, partitions: Sequence[str], options: MetadataOptions) -> MetadataTable:
    """Rebuild these partitions (never `files`) from the table as it is; return the metadata table with them.

    If this process dies, the next write rebuilds all of them.
    """
    unlist_partitions(table.data, partitions)
    now = MetadataTable(table.data.reload(), table.meta)
    for name in partitions:
        now = add_partition(replace(now, deleted=table.deleted), name, options)
    return MetadataTable(finish_build(now.data), now.meta)
