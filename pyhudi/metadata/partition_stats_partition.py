"""The partition `partition_stats`: which values each column has in each partition of the table.

Source: docs/formats/metadata-table.md, "Statistics of partitions", "Building", "Writing".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.meta_client import MetaClient
from pyhudi.metadata.column_stats_partition import stats_of_commit
from pyhudi.metadata.group_reader import concat_records
from pyhudi.metadata.indexed_columns import kept_columns
from pyhudi.metadata.initialization import build_partition, split_by_group
from pyhudi.metadata.kept_partition import TableCommit
from pyhudi.metadata.partitions import MetadataKind
from pyhudi.metadata.record_keys import column_stats_prefix, stored_partition
from pyhudi.metadata.stats_updates import partition_stats_deletions, partition_stats_update
from pyhudi.metadata.table import MetadataTable
from pyhudi.metadata.updates import PartitionUpdate
from pyhudi.model.commit import WriteStat
from pyhudi.model.file_group import FileSlice
from pyhudi.model.filenames import LogFileName
from pyhudi.model.instant import COMPACTIONS, Instant
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["PartitionStatsPartition"]

_COLUMN_STATS = MetadataKind.COLUMN_STATS.value.prefix
_PAYLOAD = MetadataKind.COLUMN_STATS.payloads[0]
_Names = dict[str, set[str]]  # file id → names of the files of its newest slice


@dataclass(frozen=True, slots=True)
class PartitionStatsPartition:
    """Keeps the partition `partition_stats`, from `column_stats`."""

    def build(self, table: MetadataTable, partition: str, options: MetadataOptions) -> MetadataTable:
        """From the statistics of all files."""
        data = table.data
        version = data.config.table_version
        columns = kept_columns(data, data.stored_schema(), options) or ()
        view = FileSystemView.load(data)
        found = {path: (_known(table, path, columns), _all(_names(view.slices(path)))) for path in view.partitions()}
        records = partition_stats_update(version, columns, found).records
        groups = split_by_group(partition, records, options.partition_stats_file_groups, version)
        return build_partition(table, partition, groups)

    def update(self, table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
        """The statistics of the partitions that a write has touched, made anew; a compaction changes no values, and
        what a clean deletes was not visible any more.

        While an earlier write is pending they are taken away instead. Should it complete, its record would be older
        than this one, by the instant times, and this one does not have its rows.
        """
        data, change = table.data, commit.change
        version = data.config.table_version
        columns = kept_columns(data, commit.stored_schema(data), commit.options) or ()
        empty = [path for path, changed in change.partitions.items() if changed.is_partition_deleted]
        nothing = partition_stats_deletions(version, columns, empty)
        if commit.instant.action in COMPACTIONS or not (change.stats or change.groups_replaced):
            return nothing
        new = stats_of_commit(data, commit, columns)
        paths = sorted(
            {stat.partition_path or "" for stat in change.stats} | {g.partition_path for g in change.groups_replaced}
        )
        if _has_earlier_writes(data, commit.instant):
            return partition_stats_deletions(version, columns, sorted({*paths, *empty}))
        view = FileSystemView.load(data, partitions=paths)
        found: dict[str, tuple[pa.Table, Collection[str]]] = {}
        for path in paths:
            names = _names(view.slices(path))
            for file_id in change.partitions[path].replaced_file_ids:
                names.pop(file_id, None)
            _put(names, [stat for stat in change.stats if (stat.partition_path or "") == path])
            if names:
                known = _known(table, path, columns)
                found[path] = (concat_records([known, *new.get(path, ())]), _all(names))
            else:
                empty.append(path)
        update = partition_stats_update(version, columns, found)
        return update.joined([partition_stats_deletions(version, columns, empty)])


def _has_earlier_writes(data: MetaClient, instant: Instant) -> bool:
    """Is a write pending that began before this one, and may bring rows?"""
    return any(i.action.is_commit and i.requested_time < instant.requested_time for i in data.timeline.pending())


def _known(table: MetadataTable, path: str, columns: Sequence[str]) -> pa.Table:
    """The statistics of a partition's files that the metadata table has."""
    prefixes = [column_stats_prefix(column, stored_partition(path)) for column in columns]
    records = table.with_prefixes(_COLUMN_STATS, prefixes)
    rows = records.column(_PAYLOAD).combine_chunks()
    assert isinstance(rows, pa.StructArray)
    return pa.Table.from_struct_array(rows)


def _names(slices: Sequence[FileSlice]) -> _Names:
    names: _Names = {}
    for found in slices:
        own = {log.name for log in found.log_files}
        names[found.group.file_id] = own | ({found.base_file.name} if found.base_file is not None else set())
    return names


def _put(names: _Names, stats: Sequence[WriteStat]) -> None:
    """A new base file begins a slice, a log file joins it."""
    for stat in stats:
        if stat.path is None:
            continue
        name = stat.path.rpartition("/")[2]
        is_log = LogFileName.parse(name) is not None
        names[stat.file_id] = {*names.get(stat.file_id, ()), name} if is_log else {name}


def _all(names: Mapping[str, set[str]]) -> Collection[str]:
    return {name for own in names.values() for name in own}
