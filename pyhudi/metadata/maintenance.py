"""Keeping the metadata table up to date: each instant of the table writes what it changed, before it completes.

A partition of a kind that nobody here keeps up is taken out beforehand: a stale one loses rows silently. Hold the
table's lock. Source: docs/formats/metadata-table.md, "Writing", "Taking back".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyhudi.caller_warnings import warn_caller
from pyhudi.errors import CorruptFile, UnsupportedTable, WriteConflict
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.compaction import settle_pending_compactions
from pyhudi.metadata.delta_commit import write_delta_commit
from pyhudi.metadata.index_definitions import delete_unreadable
from pyhudi.metadata.initialization import build_partition, create_metadata_table
from pyhudi.metadata.listing import missing_instants
from pyhudi.metadata.log_compaction import drop_pending_log_compactions
from pyhudi.metadata.partitions.base import KeptPartition, TableCommit
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
from pyhudi.metadata.services import run_services
from pyhudi.metadata.table import SOLO, MetadataTable
from pyhudi.metadata.undo import forget, is_built_of, is_compacted, is_log_compaction
from pyhudi.metadata.updates import PartitionUpdate
from pyhudi.model.commit import TableChange
from pyhudi.model.filenames import data_path
from pyhudi.model.instant import INSTANT_TIME_DIGITS, ActionKind
from pyhudi.model.new_table import LATER_KINDS
from pyhudi.model.options.metadata import REFUSE, MetadataOptions
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
    "keep_up",
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
        if not _is_kept(name):
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
    if not _is_kept(partition):
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


def _is_kept(partition: str) -> bool:
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


def keep_up(data: MetaClient, commit: TableCommit) -> str | None:
    """Write what an instant changed; when that completed. None when there is no metadata table, or nothing to write.

    A metadata table that is found damaged is built anew first, unless the options say to refuse.

    Args:   data: the table as it is now, the instant inflight.
    Raises: WriteConflict when the metadata table lacks a completed instant, which it had before: another writer did not
            keep it up. MetadataTableDamaged, CorruptFile.
    """
    table = MetadataTable.open(data)
    if table is None or commit.instant.action in (ActionKind.SAVEPOINT, ActionKind.INDEXING):
        return None
    _check_up_to_date(table)
    try:
        return _kept_up(table, commit)
    except CorruptFile as error:
        if commit.options.if_stale == REFUSE:
            raise
        rebuilt = MetadataTable.open(build_anew(data, commit.options))
        assert rebuilt is not None
        warn_caller(f"{error} It was built anew during this write.", MetadataTableRebuilt)
        return _kept_up(rebuilt, commit)


def _kept_up(table: MetadataTable, commit: TableCommit) -> str | None:
    time, undone, options = commit.instant.requested_time, commit.change.undone, commit.options
    is_restore = commit.instant.action is ActionKind.RESTORE
    if is_restore:
        undone = tuple(dict.fromkeys((*undone, *_without_instant(table))))
    if undone:
        table = drop_pending_log_compactions(settle_pending_compactions(table))
    compacted = [one for one in undone if is_compacted(table, one) or is_built_of(table, _FILES, one)]
    if compacted and is_restore:
        return _completed(build_anew(table.data, options))
    late = {name for name in table.partitions for one in undone if is_built_of(table, name, one)}
    taken_back = [forget(table, one) for one in (*undone, time) if one not in compacted]
    table = table.reloaded() if any(taken_back) else table
    if (
        undone
        and not compacted
        and not late
        and not any(changed.written for changed in commit.change.partitions.values())
    ):
        return None  # nothing is left of what was undone, and nothing came
    if not undone:
        table = run_services(table, options)
    names = (*table.partitions, *_being_built(table))
    fresh = [name for name in names if name != _FILES and (compacted or name in late)]
    if fresh:
        deleted = {data_path(path, name) for path, own in commit.change.partitions.items() for name in own.deleted}
        table = rebuild_partitions(replace(table, deleted=frozenset(deleted)), fresh, options)
    table.load_slices([name for name in names if name not in fresh])
    updates = {name: _update(table, name, commit) for name in names if name not in fresh}
    return write_delta_commit(table, time, updates)


def _being_built(table: MetadataTable) -> tuple[str, ...]:
    """Partitions that are being built, whose file groups take what instants write from now on."""
    building = table.data.config.metadata_partitions_inflight
    return tuple(name for name in building if _is_kept(name) and table.meta.storage.list(name))


def _update(table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
    kept = KEPT[kind_of(partition)]
    if partition in table.partitions:
        return kept.update(table, partition, commit)
    try:
        return kept.update(table, partition, commit)
    except WriteConflict:
        # It began before the index did, so that its tasks did not report what this needs. Who builds the index knows
        # which instants were pending then, and reads the table when they are complete.
        return kept.update(table, partition, replace(commit, change=TableChange()))


def _without_instant(table: MetadataTable) -> tuple[str, ...]:
    """Instants that the metadata table has and the table does not: an attempt at a restore that died undid them."""
    since = table.data.timeline.active_since
    known = {i.requested_time for i in table.data.timeline}
    return tuple(
        i.requested_time
        for i in table.meta.timeline
        if i.action is ActionKind.DELTACOMMIT
        and len(i.requested_time) == INSTANT_TIME_DIGITS
        and not i.requested_time.startswith(SOLO)
        and i.requested_time not in known
        and since is not None
        and i.requested_time > since
        and not is_log_compaction(table, i)
    )


def _completed(data: MetaClient) -> str | None:
    """When the newest instant of a metadata table completed."""
    table = MetadataTable.open(data)
    return None if table is None else max((i.completion_time or "" for i in table.meta.timeline), default=None)


def rebuild_partitions(table: MetadataTable, partitions: Sequence[str], options: MetadataOptions) -> MetadataTable:
    """The metadata table with these partitions, but `files`, as they are now. When this process dies, the next write
    builds all.
    """
    unlist_partitions(table.data, partitions)
    now = MetadataTable(table.data.reload(), table.meta)
    for name in partitions:
        now = build_kept(replace(now, deleted=table.deleted), name, options)
    return MetadataTable(built(now.data), now.meta)


def _check_up_to_date(table: MetadataTable) -> None:
    missing = missing_instants(table)
    if missing:
        raise WriteConflict(
            f"{table.data.storage.root}: another writer completed {missing[0]} meanwhile and did not keep the metadata "
            f"table up. Nothing of this write is visible; write again, which builds the metadata table anew."
        )
