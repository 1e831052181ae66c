"""The partition `partition_stats`: the range of each column's values in each partition of the table.

Source: docs/formats/metadata-table.md, "Statistics of partitions", "Building", "Writing".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.formats.stored_ranges import ranges_from_bytes
from pyhudi.metadata.initialization import split_by_group
from pyhudi.metadata.keys import column_stats_prefix, stored_partition
from pyhudi.metadata.listing import file_names_after, has_earlier_writes, names_of
from pyhudi.metadata.partitions.base import PartitionUpdate, TableCommit
from pyhudi.metadata.partitions.column_stats import stats_of_commit
from pyhudi.metadata.partitions.known_partitions import KnownPartitions, partition_stats_of
from pyhudi.metadata.partitions.stats_columns import columns_with_stats
from pyhudi.metadata.partitions.stats_updates import (
    NewFileRanges,
    partition_stats_deletions,
    partition_stats_update,
    rows_with_owners,
)
from pyhudi.metadata.records import concat_records
from pyhudi.metadata.schema import MetadataKind
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.instant import COMPACTIONS
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["PartitionStatsPartition"]

_COLUMN_STATS = MetadataKind.COLUMN_STATS.value.prefix
_PAYLOAD = MetadataKind.COLUMN_STATS.payloads[0]


@dataclass(frozen=True, slots=True)
class PartitionStatsPartition:
    """Builds and updates the partition `partition_stats`, from `column_stats`."""

    def define(self, table: MetadataTable, partition: str, options: MetadataOptions) -> int:
        """Write no definition."""
        return options.partition_stats_file_groups

    def records(
        self, table: MetadataTable, partition: str, options: MetadataOptions, groups: int | None
    ) -> Mapping[str, Iterable[pa.Table]]:
        """The joined statistics of all files."""
        data = table.data
        version = data.config.table_version
        columns = columns_with_stats(data, data.stored_schema(), options) or ()
        view = FileSystemView.load(data)
        existing = _existing_stats(table, view.partitions(), columns)
        stats_of = {path: (existing[path], names_of(view.slices(path))) for path in view.partitions()}
        records = partition_stats_update(version, columns, stats_of).records
        return split_by_group(partition, records, groups or options.partition_stats_file_groups, version)

    def update(self, table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
        """Recompute the statistics of the partitions that a write touched. A compaction changes no values, and a clean
        deletes only files that were no longer visible.

        While an earlier write is pending, the statistics are deleted instead (`has_earlier_writes`).
        """
        data, change = table.data, commit.change
        version = data.config.table_version
        columns = columns_with_stats(data, commit.stored_schema(data), commit.options) or ()
        empty = [path for path, changed in change.partitions.items() if changed.is_partition_deleted]
        nothing = partition_stats_deletions(version, columns, empty)
        if commit.instant.action in COMPACTIONS or not (change.stats or change.groups_replaced):
            return nothing
        new = stats_of_commit(data, commit, columns)
        paths = sorted(
            {stat.partition_path or "" for stat in change.stats} | {g.partition_path for g in change.groups_replaced}
        )
        if has_earlier_writes(data, commit.instant):
            return partition_stats_deletions(version, columns, sorted({*paths, *empty}))
        after = file_names_after(data, change)
        empty += [path for path, names in after.items() if not names]
        remembered = KnownPartitions(data.storage, version, columns)
        ranges_by_path = remembered.joined(new, after)
        remaining = {path: names for path, names in after.items() if names and path not in ranges_by_path}
        updates = [partition_stats_of(version, columns, ranges_by_path)]
        if remaining:
            updates.append(partition_stats_update(version, columns, _stats_of(table, new, remaining, columns)))
            remembered.remember(updates[-1].records, remaining)
        if empty:
            updates.append(partition_stats_deletions(version, columns, empty))
        return updates[0].joined(updates[1:]) if updates[1:] else updates[0]


def _stats_of(
    table: MetadataTable, new: Sequence[NewFileRanges], after: Mapping[str, Collection[str]], columns: Sequence[str]
) -> Mapping[str, tuple[pa.Table, Collection[str]]]:
    """Partition path → the statistics of its new and existing files, and the names of all of them."""
    version = table.data.config.table_version
    by_path: dict[str, list[NewFileRanges]] = {path: [] for path in after}
    for file in new:
        if file.partition_path in by_path:
            by_path[file.partition_path].append(file)
    incomplete = [path for path, files in by_path.items() if not {file.name for file in files}.issuperset(after[path])]
    # One lookup for all: each lookup reads every file of the partition `column_stats`.
    existing = _existing_stats(table, incomplete, columns)
    rows, _, _ = rows_with_owners(version, [file for files in by_path.values() for file in files])
    stats_of: dict[str, tuple[pa.Table, Collection[str]]] = {}
    first = 0
    for path, files in by_path.items():
        count = sum(len(ranges_from_bytes(file.encoded)) for file in files)
        earlier = [existing[path]] if path in existing else []
        stats_of[path] = (concat_records([*earlier, rows.slice(first, count)]), after[path])
        first += count
    return stats_of


def _existing_stats(table: MetadataTable, paths: Collection[str], columns: Sequence[str]) -> Mapping[str, pa.Table]:
    """Partition path → the statistics that the metadata table has of its files."""
    prefixes = {
        column_stats_prefix(column, stored_partition(path)): number
        for number, path in enumerate(paths)
        for column in columns
    }
    records = table.with_prefixes(_COLUMN_STATS, list(prefixes))
    rows = records.column(_PAYLOAD).combine_chunks()
    assert isinstance(rows, pa.StructArray)
    stats = pa.Table.from_struct_array(rows)
    if not stats.num_rows:
        return dict.fromkeys(paths, stats)
    length = len(next(iter(prefixes)))  # they are hashes of one length
    starts = pc.utf8_slice_codeunits(records.column("key"), 0, length)
    owners = np.array(list(prefixes.values()))[pc.index_in(starts, pa.array(prefixes, pa.string())).to_numpy()]
    order = np.argsort(owners, kind="stable")
    ends = np.searchsorted(owners[order], np.arange(len(paths) + 1)).tolist()
    stats = stats.take(pa.array(order))
    return {path: stats.slice(ends[number], ends[number + 1] - ends[number]) for number, path in enumerate(paths)}
