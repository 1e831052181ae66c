"""Records of the partition `files`: which files each partition of the table has.

Source: docs/formats/metadata-table.md, "Records", "Writing".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from pyhudi.metadata.partitions import MetadataKind, RecordType
from pyhudi.metadata.record_keys import ALL_PARTITIONS_KEY, stored_partition
from pyhudi.metadata.schema import record_fields
from pyhudi.metadata.updates import PartitionUpdate
from pyhudi.model.table_change import TableChange

__all__ = ["files_of_change", "files_of_listing"]

_Entry = dict[str, int | bool]


def files_of_change(change: TableChange, table_version: int) -> PartitionUpdate:
    """What an action writes: files that came or grew, files that are gone, and the partitions that it touched.

    A partition that is gone loses its record, and is named as deleted among the partitions.
    """
    partitions: list[tuple[str, _Entry]] = []
    listed: list[tuple[str, list[tuple[str, _Entry]]]] = []
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
            listed.append((name, sorted(entries)))
    return PartitionUpdate(_records(partitions, listed, table_version), pa.array(deleted, pa.string()))


def files_of_listing(listed: Iterable[tuple[str, Mapping[str, int]]], table_version: int) -> pa.Table:
    """The records of a table's files: partition path → name → size in bytes."""
    found = [(stored_partition(path), files) for path, files in listed]
    partitions = [(name, _entry(0)) for name, _ in found]
    entries = [(name, [(file, _entry(size)) for file, size in files.items()]) for name, files in found if files]
    return _records(partitions, entries, table_version)


def _entry(size_bytes: int) -> _Entry:
    return {"size": size_bytes, "isDeleted": False}


def _records(
    partitions: list[tuple[str, _Entry]], listed: list[tuple[str, list[tuple[str, _Entry]]]], table_version: int
) -> pa.Table:
    keys = [ALL_PARTITIONS_KEY, *(name for name, _ in listed)]
    types = [int(RecordType.ALL_PARTITIONS), *([int(RecordType.FILES)] * len(listed))]
    payloads = [partitions, *(entries for _, entries in listed)]
    schema = record_fields(table_version, MetadataKind.FILES)
    columns = [pa.array(keys, pa.string()), pa.array(types, pa.int32()), pa.array(payloads, schema.field(2).type)]
    return pa.Table.from_arrays(columns, schema=schema)
