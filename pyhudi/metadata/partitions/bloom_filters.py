"""The partition `bloom_filters`: the bloom filter of each base file, as its footer has it.

`BloomFiltersPartition` builds and updates the partition; `bloom_filters_update` and `bloom_filter_deletions` make the
records that an instant writes into it.

Source: docs/formats/metadata-table.md, "Bloom filters", "Building", "Writing", "Keys".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.filegroup.stats import bloom_filters_of_files
from pyhudi.formats.base import Footer
from pyhudi.formats.bloom import SIMPLE
from pyhudi.metadata.initialization import split_by_group
from pyhudi.metadata.keys import bloom_filter_key, stored_partition
from pyhudi.metadata.listing import listed_files
from pyhudi.metadata.partitions.base import PartitionUpdate, TableCommit, nothing_deleted
from pyhudi.metadata.schema import MetadataKind, RecordType, record_fields
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.filenames import BaseFileName
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.model.table_format import TableFormat
from pyhudi.storage.base import Storage
from pyhudi.view.pending_plans import files_being_cleaned

__all__ = ["BloomFiltersPartition", "bloom_filter_deletions", "bloom_filters_update"]


def bloom_filters_update(
    table_version: int, instant_time: str, footers: Mapping[str, Mapping[str, Footer]]
) -> PartitionUpdate:
    """The records of new base files; files without a filter have none.

    Args: footers: partition path → name of a base file, without folders → its footer.
    """
    filters_of_files = [
        (bloom_filter_key(stored_partition(path), name), footer.bloom_type or SIMPLE, footer.bloom_base64.encode())
        for path, files in footers.items()
        for name, footer in files.items()
        if footer.bloom_base64 is not None
    ]
    keys, kinds, filters = zip(*filters_of_files, strict=True) if filters_of_files else ((), (), ())
    return PartitionUpdate(_records(table_version, keys, kinds, instant_time, filters), nothing_deleted())


def bloom_filter_deletions(
    table_version: int, instant_time: str, files: Mapping[str, Collection[str]]
) -> PartitionUpdate:
    """The deletes of the records of deleted base files; below version 8, records that mark the deletion.

    Args: files: partition path → names of the deleted base files, without folders.
    """
    keys = [bloom_filter_key(stored_partition(path), name) for path, names in files.items() for name in sorted(names)]
    if TableFormat(table_version).deletes_metadata_records:
        nothing = record_fields(table_version, MetadataKind.BLOOM_FILTERS).empty_table()
        return PartitionUpdate(nothing, pa.array(keys, pa.string()))
    deleted = _records(table_version, keys, [""] * len(keys), instant_time, [b""] * len(keys), is_deleted=True)
    return PartitionUpdate(deleted, nothing_deleted())


def _records(
    table_version: int,
    keys: Collection[str],
    kinds: Iterable[str],
    instant_time: str,
    filters: Iterable[bytes],
    *,
    is_deleted: bool = False,
) -> pa.Table:
    schema = record_fields(table_version, MetadataKind.BLOOM_FILTERS)
    payload = schema.field(MetadataKind.BLOOM_FILTERS.payloads[0]).type
    columns = {
        "type": pa.array(list(kinds), pa.string()),
        "timestamp": pa.repeat(pa.scalar(instant_time, pa.string()), len(keys)),
        "bloomFilter": pa.array(list(filters), pa.binary()),
        "isDeleted": pa.repeat(pa.scalar(is_deleted), len(keys)),
    }
    values = pa.StructArray.from_arrays([columns[field.name] for field in payload], fields=list(payload))
    types = pa.repeat(pa.scalar(RecordType.BLOOM_FILTERS.value, pa.int32()), len(keys))
    return pa.Table.from_arrays([pa.array(list(keys), pa.string()), types, values], schema=schema)


@dataclass(frozen=True, slots=True)
class BloomFiltersPartition:
    """Builds and updates the partition `bloom_filters`."""

    def define(self, table: MetadataTable, partition: str, options: MetadataOptions) -> int:
        """Write no definition."""
        return options.bloom_filters_file_groups

    def records(
        self, table: MetadataTable, partition: str, options: MetadataOptions, groups: int | None
    ) -> Mapping[str, Iterable[pa.Table]]:
        """The filters in the footers of all base files that `files` lists, except those that a clean is deleting."""
        version = table.data.config.table_version
        cleaned = files_being_cleaned(table.data)
        listed = ((path, entry.path) for path, entries in listed_files(table).items() for entry in entries)
        by_path = {file: path for path, file in listed if file not in cleaned}
        footers = _footers(table.data.storage, by_path)
        newest = table.data.timeline.completed().commits().instants
        instant_time = newest[-1].requested_time if newest else ""
        records = bloom_filters_update(version, instant_time, footers).records
        return split_by_group(partition, records, groups or options.bloom_filters_file_groups, version)

    def update(self, table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
        """Add the filters of new base files; delete those of deleted ones."""
        version, time = table.data.config.table_version, commit.instant.requested_time
        partition_of_path = {
            stat.path: stat.partition_path or "" for stat in commit.change.stats if stat.path is not None
        }
        update = bloom_filters_update(version, time, _footers(table.data.storage, partition_of_path))
        deleted = {
            path: [name for name in changed.deleted if BaseFileName.parse(name) is not None]
            for path, changed in commit.change.partitions.items()
        }
        return update.joined([bloom_filter_deletions(version, time, deleted)]) if any(deleted.values()) else update


def _footers(storage: Storage, by_path: Mapping[str, str]) -> Mapping[str, Mapping[str, Footer]]:
    """Partition path → name of a base file → its footer. `by_path`: path of a file → partition path."""
    base_files = [path for path in by_path if BaseFileName.parse(path.rpartition("/")[2]) is not None]
    footers: dict[str, dict[str, Footer]] = {}
    for path, footer in bloom_filters_of_files(storage, base_files):
        footers.setdefault(by_path[path], {})[path.rpartition("/")[2]] = footer
    return footers
