"""The partition `record_index`: the file group of each key.

`RecordIndexPartition` builds and updates the partition. `record_index_group_count` decides how many file groups a new
index gets; their number never changes after that.

`FirstRecords` makes the records of a new index: one for each key of the table, file group by file group, in order. Its
memory does not grow with the table:

    slices, one after the other      keys, each with the number of its slice
    sorted by file group and key     in memory, or range by range through temporary files
    records                          of one file group after the other; a key in several rows has the newest slice's

Source: docs/formats/metadata-table.md, "Record index", "Building", "Writing", "File groups of a key", "Partitions".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import WriteConflict
from pyhudi.filegroup.read.keys import slice_keys
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.index_definitions import (
    IndexDefinition,
    read_index_definitions,
    write_index_definitions,
)
from pyhudi.metadata.keys import BUILDING_BYTES, GroupStream, groups_by_prefix, in_order, shards
from pyhudi.metadata.locations import (
    RecordLocation,
    coded_location_records,
    encoded_locations,
    instant_ms,
    partitioned_record_index_updates,
    record_index_update,
)
from pyhudi.metadata.partitions.base import PartitionUpdate, TableCommit
from pyhudi.metadata.schema import MetadataKind, file_group_id, partitioned_file_group_id, partitioned_prefix
from pyhudi.metadata.staged_index import with_keys_read_back
from pyhudi.metadata.table import MetadataTable
from pyhudi.metadata.table_slices import newest_slices, slice_reading, stored_rows
from pyhudi.model.commit import WriteStatus
from pyhudi.model.file_group import FileSlice
from pyhudi.model.instant import COMPACTIONS
from pyhudi.model.options.metadata import MetadataOptions, RecordIndexOptions
from pyhudi.storage.base import Storage

__all__ = ["BUILDING_BYTES", "FirstRecords", "RecordIndexPartition", "record_index_group_count"]


_PARTITION = MetadataKind.RECORD_INDEX.value.prefix
_GROUP, _KEY, _SLICE = "group", "key", "slice"
_SCHEMA = pa.schema([pa.field(_GROUP, pa.int32()), pa.field(_KEY, pa.string()), pa.field(_SLICE, pa.int32())])

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FirstRecords:
    """A record index about to be built.

    `reading`: how slices are read; `slices`: the newest of each file group; `groups`: the number of the index's file
    groups by partition path of the table, or under None that for all of them; `zone`: the timeline's.
    """

    table_version: int
    reading: SliceSpec
    slices: Sequence[FileSlice]
    groups: Mapping[str | None, int]
    zone: tzinfo | None
    memory_bytes: int = BUILDING_BYTES

    def by_group(self) -> Iterator[tuple[str | None, int, pa.Table]]:
        """(partition path of the table or None, number of the file group, records in order of their keys).

        Tables of a file group are consecutive; a file group without keys has none.
        Raises: CorruptFile, UnsupportedTable.
        """
        ordered = sorted(self.slices, key=lambda s: (s.base_instant, s.group))
        places = [
            RecordLocation(s.group.partition_path, s.group.file_id, instant_ms(s.base_instant, self.zone))
            for s in ordered
        ]
        encoded = encoded_locations(self.table_version, places)
        names = [(path, number) for path, count in self.groups.items() for number in range(count)]
        for rows in _one_per_key(in_order(_SCHEMA, self._keys(ordered), self.memory_bytes)):
            numbers = rows.column(_GROUP).to_numpy()
            keys, slices = rows.column(_KEY), rows.column(_SLICE).to_numpy()
            starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
            for start, stop in pairwise(starts):
                if start < stop:
                    path, number = names[numbers[start]]
                    of_group = keys.slice(start, stop - start)
                    used, numbered = np.unique(slices[start:stop], return_inverse=True)
                    locations = encoded.take(pa.array(used))
                    yield (
                        path,
                        number,
                        coded_location_records(self.table_version, of_group, locations, numbered.astype(np.int32)),
                    )

    def files(self) -> dict[str, Iterator[pa.Table]]:
        """File id → its records, for `build_partition`. Read them in this order, each once."""
        stream = GroupStream(((path, number), table) for path, number, table in self.by_group())
        return {
            file_group_id(_PARTITION, number) if path is None else partitioned_file_group_id(path, number): stream.of(
                (path, number)
            )
            for path, count in self.groups.items()
            for number in range(count)
        }

    def _keys(self, ordered: Sequence[FileSlice]) -> Iterator[pa.RecordBatch]:
        firsts, first = {}, 0
        for path, count in self.groups.items():
            firsts[path] = first
            first += count
        for number, file_slice in enumerate(ordered):
            path = None if None in self.groups else file_slice.group.partition_path
            for keys in slice_keys(self.reading, file_slice):
                groups = pa.array(shards(keys, self.groups[path]) + np.int32(firsts[path]))
                slices = pa.repeat(pa.scalar(number, pa.int32()), len(keys))
                yield pa.RecordBatch.from_arrays([groups, keys, slices], schema=_SCHEMA)


def _one_per_key(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The last row of each key in a file group; batches are in order."""
    last_row: pa.RecordBatch | None = None  # the last row so far, whose key may go on in the next batch
    for batch in batches:
        if not batch.num_rows:
            continue
        rows = batch if last_row is None else pa.Table.from_batches([last_row, batch]).combine_chunks().to_batches()[0]
        groups, keys = rows.column(_GROUP).to_numpy(), rows.column(_KEY)
        last = np.ones(len(rows), np.bool_)
        last[:-1] = groups[1:] != groups[:-1]
        last[:-1] |= pc.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1)).to_numpy(zero_copy_only=False)
        last[-1] = False
        lasts = rows.filter(pa.array(last))
        last_row = rows.slice(len(rows) - 1)
        if lasts.num_rows:
            yield lasts
    if last_row is not None:
        yield last_row


_RECORD_BYTES = 48  # Hudi's estimate of a record's size


def record_index_group_count(keys: int, options: RecordIndexOptions, *, of_partition: bool = False) -> int:
    """The number of file groups for a number of keys: with room for expected growth, within the options' bounds.

    Args:    of_partition: count the file groups of one partition of the table, for an index partitioned like the table.
    """
    least, most = options.groups_min, options.groups_max
    if of_partition:
        least, most = options.partition_groups_min, options.partition_groups_max
    if least == most:
        return max(1, least)
    groups = math.ceil(keys * options.growth_factor) // max(1, options.group_bytes_max // _RECORD_BYTES)
    return max(1, min(max(groups, least), most))


_BY_PARTITION = "isPartitioned"  # option of the definition


@dataclass(frozen=True, slots=True)
class RecordIndexPartition:
    """Builds and updates the partition `record_index`."""

    def define(self, table: MetadataTable, partition: str, options: MetadataOptions) -> int | None:
        """Write the definition, which says whether keys are unique in the table or in their partition."""
        data = table.data
        by_partition = _is_by_partition(data, partition, options.record_index)
        _define(data, partition, by_partition=by_partition)
        if by_partition:
            return None
        return record_index_group_count(stored_rows(data.storage, newest_slices(data)), options.record_index)

    def records(
        self, table: MetadataTable, partition: str, options: MetadataOptions, groups: int | None
    ) -> Mapping[str, Iterable[pa.Table]]:
        """The locations of the keys of all rows. Raises UnsupportedTable when the table's merger is unknown."""
        data = table.data
        slices = newest_slices(data)
        counts: Mapping[str | None, int] = {None: groups} if groups is not None else {}
        counts = counts or _groups(data.storage, slices, options.record_index)
        version, zone = data.config.table_version, data.config.timeline_zone
        return FirstRecords(version, slice_reading(data), slices, counts, zone).files()

    def update(self, table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
        """Record the new and deleted keys that the tasks reported.

        Raises: WriteConflict when they reported none: the index was built while the write was running.
        """
        config = table.data.config
        _check_reported(table.data, commit)
        prefixes = groups_by_prefix(file_slice.group.file_id for file_slice in table.slices(partition))
        groups = len(prefixes.get(MetadataKind.RECORD_INDEX.value.file_ids, ()))
        statuses: Sequence[WriteStatus] = commit.statuses
        if not _pieces_fit(commit, groups):
            statuses = with_keys_read_back(table.data.storage, statuses)
        what = (commit.instant.requested_time, config.timeline_zone, statuses, commit.replaced_keys)
        if groups:
            return record_index_update(config.table_version, *what)
        updates = partitioned_record_index_updates(config.table_version, *what)
        by_prefix = {partitioned_prefix(path): update for path, update in updates.items()}
        nothing = record_index_update(config.table_version, commit.instant.requested_time, None, ())
        return replace(nothing, of_groups=by_prefix, new_groups=commit.options.record_index.partition_groups_min)


def _check_reported(data: MetaClient, commit: TableCommit) -> None:
    if commit.instant.action in COMPACTIONS:
        return  # rows stay in their file groups
    reported = {status.stat.path for status in commit.statuses if status.new_keys is not None}
    silent = [stat.path for stat in commit.change.stats if stat.path not in reported]
    if silent:
        raise WriteConflict(
            f"{data.storage.root}: a record index was made while {commit.instant.requested_time} was running, whose "
            f"tasks did not know of it: nobody has said which keys {silent[0]} has. Nothing of this write is visible; "
            f"write again."
        )


def _pieces_fit(commit: TableCommit, groups: int) -> bool:
    """True if staged index files can be written as they are. If keys left the table, some may have returned."""
    pieces = [piece for status in commit.statuses for piece in status.staged_index]
    removed = any(status.removed_keys is not None and len(status.removed_keys) for status in commit.statuses)
    keys_leave = removed or any(len(keys) for keys in commit.replaced_keys.values())
    return not pieces or (not keys_leave and all(piece.of_groups == groups for piece in pieces))


def _is_by_partition(data: MetaClient, name: str, options: RecordIndexOptions) -> bool:
    """True if keys are unique in their partition: by the call's options, else by the earlier index's definition."""
    if options.is_global or options.is_partitioned:
        return options.is_partitioned
    definition = read_index_definitions(data.storage).by_name.get(name)
    return definition is not None and definition.options.get(_BY_PARTITION) == "true"


def _define(data: MetaClient, name: str, *, by_partition: bool) -> None:
    """Write the index to the table's index definitions, as Hudi does from version 9 on."""
    if not data.config.format.has_versioned_definitions:
        return
    definition = IndexDefinition(name, name, options={_BY_PARTITION: str(by_partition).lower()}, version="V1")
    write_index_definitions(data.storage, read_index_definitions(data.storage).merged([definition]))


def _groups(storage: Storage, slices: Sequence[FileSlice], options: RecordIndexOptions) -> Mapping[str | None, int]:
    """The number of file groups for each partition of the table; a footer is read for each base file."""
    by_path: dict[str | None, list[FileSlice]] = {}
    for file_slice in slices:
        by_path.setdefault(file_slice.group.partition_path, []).append(file_slice)
    return {
        path: record_index_group_count(stored_rows(storage, of_path), options, of_partition=True)
        for path, of_path in by_path.items()
    }
