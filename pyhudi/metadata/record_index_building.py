"""The records that a new record index begins with: one for each key of the table, file group by file group, in order.

    slices, one after the other      keys, each with the number of its slice
    sorted by file group and key     in memory, or range by range through temporary files
    records                          of one file group after the other; a key in several rows has the newest slice's

Memory does not grow with the table. Source: docs/formats/metadata-table.md, "Record index", "File groups of a key".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.filegroup.read.keys import slice_keys
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.metadata.key_order import BUILDING_BYTES, GroupStream, in_order
from pyhudi.metadata.partitions import MetadataKind, file_group_id, partitioned_file_group_id
from pyhudi.metadata.place_records import RowPlace, coded_place_records, encoded_places, instant_ms
from pyhudi.metadata.record_keys import shards
from pyhudi.model.file_group import FileSlice

__all__ = ["BUILDING_BYTES", "FirstRecords"]

_PARTITION = MetadataKind.RECORD_INDEX.value.prefix
_GROUP, _KEY, _SLICE = "group", "key", "slice"
_SCHEMA = pa.schema([pa.field(_GROUP, pa.int32()), pa.field(_KEY, pa.string()), pa.field(_SLICE, pa.int32())])

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FirstRecords:
    """A record index about to be built.

    `reading`: how slices are read; `slices`: the newest of each file group; `groups`: file groups of the index by
    partition path of the table, or under None those for all of them; `zone`: of the timeline.
    """

    table_version: int
    reading: SliceSpec
    slices: Sequence[FileSlice]
    groups: Mapping[str | None, int]
    zone: tzinfo | None
    memory_bytes: int = BUILDING_BYTES

    def by_group(self) -> Iterator[tuple[str | None, int, pa.Table]]:
        """(partition path of the table or None, number of the file group, records in order of their keys).

        Tables of a file group come one after the other; a file group without keys has none.
        Raises: CorruptFile, UnsupportedTable.
        """
        ordered = sorted(self.slices, key=lambda s: (s.base_instant, s.group))
        places = [
            RowPlace(s.group.partition_path, s.group.file_id, instant_ms(s.base_instant, self.zone)) for s in ordered
        ]
        encoded = encoded_places(self.table_version, places)
        names = [(path, number) for path, count in self.groups.items() for number in range(count)]
        for rows in _one_per_key(in_order(_SCHEMA, self._keys(ordered), self.memory_bytes)):
            numbers = rows.column(_GROUP).to_numpy()
            keys, slices = rows.column(_KEY), rows.column(_SLICE).to_numpy()
            starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
            for start, stop in pairwise(starts):
                if start < stop:
                    path, number = names[numbers[start]]
                    own = keys.slice(start, stop - start)
                    used, numbered = np.unique(slices[start:stop], return_inverse=True)
                    there = encoded.take(pa.array(used))
                    yield path, number, coded_place_records(self.table_version, own, there, numbered.astype(np.int32))

    def files(self) -> dict[str, Iterator[pa.Table]]:
        """File id → its records, for `build_partition`: to be read one after the other, in this order, each once."""
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
                own = pa.array(shards(keys, self.groups[path]) + np.int32(firsts[path]))
                slices = pa.repeat(pa.scalar(number, pa.int32()), len(keys))
                yield pa.RecordBatch.from_arrays([own, keys, slices], schema=_SCHEMA)


def _one_per_key(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of rows with one key in one file group the last; batches are in order."""
    waiting: pa.RecordBatch | None = None  # the last row so far, whose key may go on in the next batch
    for batch in batches:
        if not batch.num_rows:
            continue
        rows = batch if waiting is None else pa.Table.from_batches([waiting, batch]).combine_chunks().to_batches()[0]
        groups, keys = rows.column(_GROUP).to_numpy(), rows.column(_KEY)
        last = np.ones(len(rows), np.bool_)
        last[:-1] = groups[1:] != groups[:-1]
        last[:-1] |= pc.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1)).to_numpy(zero_copy_only=False)
        last[-1] = False
        kept = rows.filter(pa.array(last))
        waiting = rows.slice(len(rows) - 1)
        if kept.num_rows:
            yield kept
    if waiting is not None:
        yield waiting
