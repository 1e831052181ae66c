"""The partition `files`: the files of each partition of the table.

Source: docs/formats/metadata-table.md, "Records", "Building", "Writing".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.meta_client import MetaClient
from pyhudi.metadata.keys import ALL_PARTITIONS_KEY, stored_partition
from pyhudi.metadata.partitions.base import PartitionUpdate, TableCommit
from pyhudi.metadata.schema import MetadataKind, RecordType, file_group_id, record_fields
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.commit import TableChange
from pyhudi.model.filenames import BaseFileName, LogFileName
from pyhudi.model.instant import ActionKind
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.view.file_system_view import listed_partitions

__all__ = ["FilesPartition", "files_of_change", "files_of_listing"]

_Entry = dict[str, int | bool]


@dataclass(frozen=True, slots=True)
class FilesPartition:
    """Builds and updates the partition `files`."""

    def define(self, table: MetadataTable, partition: str, options: MetadataOptions) -> int:
        """Define one file group."""
        return 1

    def records(
        self, table: MetadataTable, partition: str, options: MetadataOptions, groups: int | None
    ) -> Mapping[str, Iterable[pa.Table]]:
        """The files that a listing of the table's folders finds."""
        records = files_of_listing(_committed_files(table.data), table.data.config.table_version)
        return {file_group_id(partition, 0): [records]}

    def update(self, table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
        """Record the instant's files, see `files_of_change`."""
        return files_of_change(commit.change, table.data.config.table_version)


def files_of_change(change: TableChange, table_version: int) -> PartitionUpdate:
    """The update for an action: new and grown files, deleted files, and touched partitions.

    A deleted partition loses its record and is marked as deleted in the list of partitions.
    """
    partitions: list[tuple[str, _Entry]] = []
    entries_of: list[tuple[str, list[tuple[str, _Entry]]]] = []
    deleted: list[str] = []
    for path, changed in change.partitions.items():
        name = stored_partition(path)
        partitions.append((name, {"size": 0, "isDeleted": changed.is_partition_deleted}))
        if changed.is_partition_deleted:
            deleted.append(name)
            continue
        entries = [(file, _entry(size_bytes)) for file, size_bytes in changed.written.items()]
        entries += [(file, {"size": 0, "isDeleted": True}) for file in changed.deleted if file not in changed.written]
        if entries:
            entries_of.append((name, sorted(entries)))
    return PartitionUpdate(_records(partitions, entries_of, table_version), pa.array(deleted, pa.string()))


def files_of_listing(listing: Iterable[tuple[str, Mapping[str, int]]], table_version: int) -> pa.Table:
    """The records of a table's files: partition path → name → size in bytes."""
    files_by_name = [(stored_partition(path), files) for path, files in listing]
    partitions = [(name, _entry(0)) for name, _ in files_by_name]
    entries = [(name, [(file, _entry(size)) for file, size in files.items()]) for name, files in files_by_name if files]
    return _records(partitions, entries, table_version)


def _entry(size_bytes: int) -> _Entry:
    return {"size": size_bytes, "isDeleted": False}


def _records(
    partitions: list[tuple[str, _Entry]], entries_of: list[tuple[str, list[tuple[str, _Entry]]]], table_version: int
) -> pa.Table:
    keys = [ALL_PARTITIONS_KEY, *(name for name, _ in entries_of)]
    types = [int(RecordType.ALL_PARTITIONS), *([int(RecordType.FILES)] * len(entries_of))]
    payloads = [partitions, *(entries for _, entries in entries_of)]
    schema = record_fields(table_version, MetadataKind.FILES)
    columns = [pa.array(keys, pa.string()), pa.array(types, pa.int32()), pa.array(payloads, schema.field(2).type)]
    return pa.Table.from_arrays(columns, schema=schema)


def _committed_files(data: MetaClient) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Partition path → name → size of the data files that readers see, including those of older slices and of replaced
    file groups.
    """
    timeline, logs_name_slices = data.timeline, not data.config.format.has_own_log_files
    compactions = {i.requested_time for i in timeline.pending() if i.action is ActionKind.COMPACTION}

    def counts(name: BaseFileName | LogFileName) -> bool:
        # Logs of the slice that a compaction is about to begin may be committed.
        opens_slice = logs_name_slices and isinstance(name, LogFileName) and name.instant_time in compactions
        return opens_slice or timeline.is_visible(name.instant_time)

    for path, entries in listed_partitions(data.storage):
        files = {}
        for entry in entries:
            name = BaseFileName.parse(entry.name) or LogFileName.parse(entry.name)
            if name is not None and entry.size_bytes and counts(name):
                files[entry.name] = entry.size_bytes
        yield path, files
