"""The partition `bloom_filters`: the bloom filter of each base file.

Source: docs/formats/metadata-table.md, "Bloom filters", "Building", "Writing".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.filegroup.stats import bloom_filters_of_files
from pyhudi.formats.base import Footer
from pyhudi.metadata.bloom_updates import bloom_filter_deletions, bloom_filters_update
from pyhudi.metadata.initialization import split_by_group
from pyhudi.metadata.kept_partition import TableCommit
from pyhudi.metadata.listing import listed_files
from pyhudi.metadata.table import MetadataTable
from pyhudi.metadata.updates import PartitionUpdate
from pyhudi.model.filenames import BaseFileName
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.storage.base import Storage

__all__ = ["BloomFiltersPartition"]


@dataclass(frozen=True, slots=True)
class BloomFiltersPartition:
    """Keeps the partition `bloom_filters`."""

    def define(self, table: MetadataTable, partition: str, options: MetadataOptions) -> int:
        """No definition."""
        return options.bloom_filters_file_groups

    def records(
        self, table: MetadataTable, partition: str, options: MetadataOptions, groups: int | None
    ) -> Mapping[str, Iterable[pa.Table]]:
        """From the footers of all base files that `files` lists."""
        version = table.data.config.table_version
        by_path = {entry.path: path for path, entries in listed_files(table).items() for entry in entries}
        footers = _footers(table.data.storage, by_path)
        newest = table.data.timeline.completed().commits().instants
        instant_time = newest[-1].requested_time if newest else ""
        records = bloom_filters_update(version, instant_time, footers).records
        return split_by_group(partition, records, groups or options.bloom_filters_file_groups, version)

    def update(self, table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
        """The filters of new base files; those of deleted ones go."""
        version, time = table.data.config.table_version, commit.instant.requested_time
        written = {stat.path: stat.partition_path or "" for stat in commit.change.stats if stat.path is not None}
        update = bloom_filters_update(version, time, _footers(table.data.storage, written))
        deleted = {
            path: [name for name in changed.deleted if BaseFileName.parse(name) is not None]
            for path, changed in commit.change.partitions.items()
        }
        return update.joined([bloom_filter_deletions(version, time, deleted)]) if any(deleted.values()) else update


def _footers(storage: Storage, by_path: Mapping[str, str]) -> Mapping[str, Mapping[str, Footer]]:
    """Partition path → name of a base file → its footer. `by_path`: path of a file → partition path."""
    base_files = [path for path in by_path if BaseFileName.parse(path.rpartition("/")[2]) is not None]
    found: dict[str, dict[str, Footer]] = {}
    for path, footer in bloom_filters_of_files(storage, base_files):
        found.setdefault(by_path[path], {})[path.rpartition("/")[2]] = footer
    return found
