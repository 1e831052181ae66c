"""RecordLookup: the places of keys by the record index of the metadata table.

A key belongs to one file group of the index, whose HFiles find it by their own indexes: what is read grows with the
keys that are wanted, not with the table. A task needs the slices of the index and which of their blocks count.
Source: docs/formats/metadata-table.md, "Record index", "File groups of a key", "Is it up to date?".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import HudiError
from pyhudi.formats.damage import as_corrupt
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.group_reader import with_keys
from pyhudi.metadata.listing import missing_instants
from pyhudi.metadata.merging import merged_records
from pyhudi.metadata.partitions import MetadataKind, partitioned_prefix
from pyhudi.metadata.placement import groups_by_prefix
from pyhudi.metadata.record_keys import shards
from pyhudi.metadata.record_places import file_ids, partition_paths
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import FileSlice

__all__ = ["PLACES", "RecordLookup", "open_record_lookup"]

_KIND = MetadataKind.RECORD_INDEX
_NAME = _KIND.value.prefix
PLACES = pa.schema([("key", pa.string()), ("partition_path", pa.string()), ("file_id", pa.string())])


@dataclass(frozen=True)
class RecordLookup:
    """A record index that has all completed instants. Picklable."""

    table: MetadataTable

    @property
    def slices(self) -> Sequence[FileSlice]:
        """The newest slice of each file group of the index."""
        return self.table.slices(_NAME)

    @property
    def groups(self) -> int:
        """How many file groups the index has; they are numbered in order of their ids."""
        return len(self.slices)

    @property
    def is_partitioned(self) -> bool:
        """Has each partition of the table file groups of its own, so that keys are unique in their partition?"""
        return _KIND.value.file_ids not in self._numbers

    @property
    def _numbers(self) -> Mapping[str, list[int]]:
        """Prefix of file ids → the numbers of its file groups."""
        ids = [found.group.file_id for found in self.slices]
        at = {file_id: number for number, file_id in enumerate(ids)}
        return {prefix: [at[file_id] for file_id in own] for prefix, own in groups_by_prefix(ids).items()}

    def groups_of(self, keys: pa.Array, paths: pa.Array | None = None) -> npt.NDArray[np.int32]:
        """The number of each key's file group; `groups` for keys in partitions of which the index knows nothing.

        Args:   paths: partition path of each key, where the index is partitioned.
        """
        numbers = self._numbers
        if paths is None or not self.is_partitioned:
            own = numbers[_KIND.value.file_ids]
            return np.array(own, np.int32)[shards(keys, len(own))]
        found = np.full(len(keys), self.groups, np.int32)
        for path in pc.unique(paths).to_pylist():
            own = numbers.get(partitioned_prefix(str(path)), [])
            if own:
                rows = pc.equal(paths, path)
                hits = np.array(own, np.int32)[shards(keys.filter(rows), len(own))]
                found[rows.to_numpy(zero_copy_only=False)] = hits
        return found

    def places(self, wanted: Sequence[tuple[int, pa.Array]]) -> pa.Table:
        """The places of keys: numbers of file groups, each with its keys; of those that it has one place for each, in
        any order. Columns: PLACES.

        Raises: MetadataTableDamaged, CorruptFile, DamagedLog.
        """
        table, slices = self.table, self.slices
        where = _NAME if len(wanted) != 1 else f"{_NAME}/{slices[wanted[0][0]].group.file_id}"
        with as_corrupt(f"{table.meta.storage.root}/{where}", "its records"):
            own = [(table.reader(slices[group]), pc.unique(keys)) for group, keys in wanted]
            records = merged_records(with_keys(own), _KIND) if own else None
            if records is None or not records.num_rows:
                return PLACES.empty_table()
            payload = records.column(_KIND.payloads[0]).combine_chunks()
            found = [records.column("key").combine_chunks(), partition_paths(payload), file_ids(payload)]
            return pa.Table.from_arrays([column.cast(pa.string()) for column in found], schema=PLACES)


def open_record_lookup(meta: MetaClient) -> RecordLookup | str:
    """The table's record index; why not, as a sentence, where it has none or none that can be trusted."""
    root = meta.storage.root
    if _NAME not in meta.config.metadata_partitions:
        return f"{root} has no record index."
    try:
        table = MetadataTable.open(meta)
        if table is None:
            return f"{root} has no metadata table."
        missing = missing_instants(table)
        if missing:
            return f"{root}: the metadata table lacks {', '.join(missing[:3])}, which another writer did not put there."
        table.slices(_NAME)
    except HudiError as error:
        return f"{root}: the metadata table can't be read: {error}"
    return RecordLookup(table)
