"""The keys of a secondary index that slices give: streams of them, sorted and compared in bounded memory.

Source: docs/formats/metadata-table.md, "Secondary index", "Building".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.filegroup.read.slice import SliceSpec, read_file_slice
from pyhudi.metadata.key_order import BUILDING_BYTES, GroupStream, in_order
from pyhudi.metadata.partitions import MetadataKind, RecordType, file_group_id
from pyhudi.metadata.placement import group_numbers
from pyhudi.metadata.schema import record_fields
from pyhudi.metadata.secondary_keys import secondary_keys
from pyhudi.metadata.table_slices import ChangedSlices
from pyhudi.metadata.updates import PartitionUpdate, nothing_deleted
from pyhudi.model.file_group import FileSlice
from pyhudi.model.keys import RECORD_KEY

__all__ = ["SecondaryPairs", "secondary_records"]

_READ_ROWS = 1 << 17
_KIND = MetadataKind.SECONDARY_INDEX
_GROUP, _KEY, _IS_NEW = "group", "key", "is_new"
_BY_GROUP = pa.schema([pa.field(_GROUP, pa.int32()), pa.field(_KEY, pa.string())])
_BY_KEY = pa.schema([pa.field(_KEY, pa.string()), pa.field(_IS_NEW, pa.bool_())])


def secondary_records(table_version: int, keys: pa.Array) -> pa.Table:
    """Records of a secondary index with these keys. Columns as `record_fields` says for the table version."""
    schema = record_fields(table_version, _KIND)
    kinds = pa.repeat(pa.scalar(RecordType.SECONDARY_INDEX.value, pa.int32()), len(keys))
    payload = schema.field(_KIND.payloads[0]).type
    live = pa.StructArray.from_arrays([pa.repeat(pa.scalar(False), len(keys))], fields=list(payload))
    return pa.table([keys.cast(schema.field("key").type), kinds, live], schema=schema)


@dataclass(frozen=True, slots=True)
class SecondaryPairs:
    """Pairs of (value, record key) in slices of the table, as keys of the index. `column`: the indexed one."""

    table_version: int
    reading: SliceSpec
    column: str
    memory_bytes: int = BUILDING_BYTES

    def files(self, partition: str, slices: Sequence[FileSlice], groups: int) -> dict[str, Iterator[pa.Table]]:
        """File id → its records, for `build_partition`: to be read one after the other, in this order, each once.

        Raises: CorruptFile, UnsupportedTable.
        """
        stream = GroupStream(self._by_group(partition, slices, groups))
        return {file_group_id(partition, number): stream.of(number) for number in range(groups)}

    def changes(self, slices: ChangedSlices) -> PartitionUpdate:
        """The pairs that come, and those that leave; what was there and stays is in neither."""
        came, left = [nothing_deleted()], [nothing_deleted()]
        for rows in _runs(in_order(_BY_KEY, self._both(slices), self.memory_bytes), 1):
            firsts = _firsts(rows.column(_KEY))
            is_new = rows.column(_IS_NEW).to_numpy(zero_copy_only=False)
            lasts = np.append(firsts[1:], len(rows)) - 1
            # Of one key the old rows come first.
            keys = rows.column(_KEY).take(pa.array(firsts))
            came.append(keys.filter(pa.array(is_new[firsts])))
            left.append(keys.filter(pa.array(~is_new[lasts])))
        return PartitionUpdate(secondary_records(self.table_version, pa.concat_arrays(came)), pa.concat_arrays(left))

    def _keys(self, slices: Iterable[FileSlice]) -> Iterator[pa.Array]:
        for file_slice in slices:
            for rows in read_file_slice(self.reading, file_slice, [RECORD_KEY, self.column], _READ_ROWS):
                yield secondary_keys(rows.column(1), rows.column(0), self.table_version)

    def _both(self, slices: ChangedSlices) -> Iterator[pa.RecordBatch]:
        for is_new, own in ((False, slices.before), (True, slices.after)):
            for keys in self._keys(own):
                flags = pa.repeat(pa.scalar(is_new), len(keys))
                yield pa.RecordBatch.from_arrays([keys, flags], schema=_BY_KEY)

    def _by_group(self, partition: str, slices: Sequence[FileSlice], groups: int) -> Iterator[tuple[int, pa.Table]]:
        for rows in _runs(in_order(_BY_GROUP, self._placed(partition, slices, groups), self.memory_bytes), 2):
            rows = rows.take(pa.array(_firsts(rows.column(_KEY))))
            numbers = rows.column(_GROUP).to_numpy()
            for number in np.unique(numbers).tolist():
                keys = rows.column(_KEY).filter(pa.array(numbers == number))
                yield number, secondary_records(self.table_version, keys)

    def _placed(self, partition: str, slices: Sequence[FileSlice], groups: int) -> Iterator[pa.RecordBatch]:
        for keys in self._keys(slices):
            numbers = pa.array(group_numbers(partition, keys, groups, self.table_version))
            yield pa.RecordBatch.from_arrays([numbers, keys], schema=_BY_GROUP)


def _runs(batches: Iterator[pa.RecordBatch], compared: int) -> Iterator[pa.RecordBatch]:
    """The same rows, cut so that those that are equal in the first `compared` columns are in one batch."""
    waiting: pa.RecordBatch | None = None
    for batch in batches:
        if not len(batch):
            continue
        rows = batch if waiting is None else pa.Table.from_batches([waiting, batch]).combine_chunks().to_batches()[0]
        last = {name: rows.column(name)[-1] for name in rows.schema.names[:compared]}
        same = np.ones(len(rows), np.bool_)
        for name, value in last.items():
            same &= pc.equal(rows.column(name), value).to_numpy(zero_copy_only=False)
        cut = int(np.flatnonzero(same)[0])
        waiting = rows.slice(cut)
        if cut:
            yield rows.slice(0, cut)
    if waiting is not None:
        yield waiting


def _firsts(keys: pa.Array) -> npt.NDArray[np.int64]:
    """Where in ordered keys another one begins. Equal keys belong to one file group."""
    first = np.ones(len(keys), np.bool_)
    if len(keys) > 1:
        first[1:] = pc.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1)).to_numpy(zero_copy_only=False)
    return np.flatnonzero(first).astype(np.int64)
