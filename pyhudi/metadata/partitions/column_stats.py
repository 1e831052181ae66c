"""The partition `column_stats`: the range of each column's values in each file.

Source: docs/formats/metadata-table.md, "Statistics", "Indexed columns", "Building", "Writing".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.filegroup.stats import ranges_of_file, side_by_side, stats_of_files
from pyhudi.formats.stored_ranges import ranges_to_bytes
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.index_definitions import (
    column_stats_definition,
    read_index_definitions,
    write_index_definitions,
)
from pyhudi.metadata.initialization import split_by_group
from pyhudi.metadata.listing import listed_files
from pyhudi.metadata.partitions.base import PartitionUpdate, TableCommit
from pyhudi.metadata.partitions.stats_columns import columns_with_stats, indexed_columns
from pyhudi.metadata.partitions.stats_updates import (
    NewFileRanges,
    column_stats_deletions,
    column_stats_of_files,
    column_stats_update,
)
from pyhudi.metadata.schema import MetadataKind
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.filenames import LogFileName
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.model.table_format import TableFormat
from pyhudi.view.pending_plans import files_being_cleaned

__all__ = ["ColumnStatsPartition", "stats_of_commit"]

_NAME = MetadataKind.COLUMN_STATS.value.prefix


@dataclass(frozen=True, slots=True)
class ColumnStatsPartition:
    """Builds and updates the partition `column_stats`."""

    def define(self, table: MetadataTable, partition: str, options: MetadataOptions) -> int:
        """Define the columns that the options name."""
        _define(table.data, _columns(table.data, options))
        return options.column_stats_file_groups

    def records(
        self, table: MetadataTable, partition: str, options: MetadataOptions, groups: int | None
    ) -> Mapping[str, Iterable[pa.Table]]:
        """The statistics of all files that `files` lists, except those that a clean is deleting. They come from the
        footers of base files and the rows of log files.
        """
        data = table.data
        version, schema = data.config.table_version, data.stored_schema()
        columns = _columns(data, options)
        stats: dict[str, list[pa.Table]] = {}
        by_path = {entry.path: path for path, entries in listed_files(table).items() for entry in entries}
        cleaned = files_being_cleaned(data)
        paths = [path for path in by_path if path not in cleaned and _has_statistics(path)]
        for path, file_stats in stats_of_files(data.storage, paths, columns, version, schema):
            stats.setdefault(by_path[path], []).append(file_stats)
        records = column_stats_update(version, stats).records
        return split_by_group(partition, records, groups or options.column_stats_file_groups, version)

    def update(self, table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
        """Add the statistics of new files; delete those of deleted files."""
        data = table.data
        version = data.config.table_version
        columns = columns_with_stats(data, commit.stored_schema(data), commit.options) or ()
        update = column_stats_of_files(version, stats_of_commit(data, commit, columns))
        columns = tuple(dict.fromkeys((*columns, *_columns_of(update))))
        _define(data, columns)
        deleted = {path: changed.deleted for path, changed in commit.change.partitions.items() if changed.deleted}
        return update.joined([column_stats_deletions(version, columns, deleted)]) if deleted else update


def stats_of_commit(data: MetaClient, commit: TableCommit, columns: Sequence[str]) -> list[NewFileRanges]:
    """The statistics of the files that a write created: those its tasks reported, else read from the files."""
    files: list[NewFileRanges] = []
    reported = {status.stat.path: status.column_stats for status in commit.statuses if status.column_stats is not None}
    missing: dict[str, str] = {}
    for stat in commit.change.stats:
        if stat.path is None or not _has_statistics(stat.path):
            continue
        partition_path = stat.partition_path or ""
        if stat.path in reported:
            files.append(NewFileRanges(partition_path, stat.path.rpartition("/")[2], reported[stat.path]))
        else:
            missing[stat.path] = partition_path
    version, schema = data.config.table_version, commit.stored_schema(data)
    read = partial(ranges_of_file, data.storage, columns=columns, table_version=version, schema=schema)
    for path, ranges in side_by_side(missing, read):
        files.append(NewFileRanges(missing[path], path.rpartition("/")[2], ranges_to_bytes(ranges)))
    return files


def _columns(data: MetaClient, options: MetadataOptions) -> tuple[str, ...]:
    config = data.config
    has_meta = config.populate_meta_fields
    return indexed_columns(data.stored_schema(), options, config.table_version, populate_meta_fields=has_meta)


def _has_statistics(path: str) -> bool:
    """True if the file can have statistics. Change logs have none."""
    name = LogFileName.parse(path.rpartition("/")[2])
    return name is None or not name.suffix


def _columns_of(update: PartitionUpdate) -> Collection[str]:
    """The columns that the statistics cover. A write that began before the options changed may cover others."""
    chunks = update.records.column(MetadataKind.COLUMN_STATS.payloads[0]).chunks
    names = [name for chunk in chunks for name in pc.unique(pc.struct_field(chunk, "columnName")).to_pylist()]
    return [str(name) for name in dict.fromkeys(names)]


def _define(data: MetaClient, columns: Sequence[str]) -> None:
    version = data.config.table_version
    if TableFormat(version).has_index_definitions:
        definitions = read_index_definitions(data.storage).merged([column_stats_definition(version, columns)])
        write_index_definitions(data.storage, definitions)
