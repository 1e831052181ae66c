"""Locations of keys in the record index: how they are looked up, stored in records, and changed by a commit.

`RecordLookup` finds the locations of keys. A key belongs to one file group of the index, whose HFiles find it by their
own indexes. So the bytes read grow with the number of keys, not with the table. A task needs the slices of the index
and which of their blocks count.

A record says which file group has a key, and since which instant. Its file id is stored as a UUID in two numbers plus a
count, or as text. Locations are few and keys are many, so `location_records` encodes each location once, and a key
takes the record of its location.

`record_index_update` makes the records that one commit changes:

    inserted, or written to another file group      a record
    deleted, or in a file group that was replaced   deleted
    both in one commit (moved)                      a record
    updated where it was, compacted                 nothing

Source: docs/formats/metadata-table.md, "Record index", "File groups of a key", "Is it up to date?".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import HudiError, TableError
from pyhudi.formats.damage import as_corrupt
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.group_reader import with_keys
from pyhudi.metadata.keys import groups_by_prefix, shards
from pyhudi.metadata.listing import missing_instants
from pyhudi.metadata.merging import merged_records
from pyhudi.metadata.partitions.base import PartitionUpdate, nothing_deleted
from pyhudi.metadata.schema import MetadataKind, RecordType, partitioned_prefix, record_fields
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.commit import WriteStatus
from pyhudi.model.file_group import FileSlice
from pyhudi.model.instant import parse_instant_time

__all__ = [
    "LOCATIONS",
    "RecordLocation",
    "RecordLookup",
    "coded_location_records",
    "encoded_locations",
    "file_ids",
    "instant_ms",
    "key_records",
    "location_records",
    "open_record_lookup",
    "partition_paths",
    "partitioned_record_index_updates",
    "record_index_update",
]


_PAYLOAD = MetadataKind.RECORD_INDEX.payloads[0]

_UUID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:-(0|[1-9][0-9]{0,9}))?", re.ASCII)
_NO_INDEX = -1  # for a file id that is only a UUID, and for raw file ids
_JAVA_INTS = 2**31  # file ids count in Java's int


@dataclass(frozen=True, slots=True)
class RecordLocation:
    """A file group and the time at which rows were written to it (`instant_ms`)."""

    partition_path: str
    file_id: str
    instant_ms: int


def instant_ms(instant_time: str, zone: tzinfo | None) -> int:
    """Milliseconds since 1970 of an instant time in the timeline's zone; 0 for a text that is not a time.

    Nothing may depend on the value (docs/formats/metadata-table.md), so an odd file name must not cause an error.
    """
    try:
        return round(parse_instant_time(instant_time, zone).timestamp() * 1000)
    except TableError:
        return 0


def location_records(
    table_version: int, keys: pa.Array, places: Sequence[RecordLocation], numbers: npt.NDArray[np.int32] | None = None
) -> pa.Table:
    """Records of the partition `record_index`, one for each key.

    Args:    keys: text without nulls; numbers: which of `places` each key has, None: all have the first.
    Returns: columns `key`, `type` and `recordIndexMetadata`, as `record_fields` says for the table version.
    """
    of_keys = np.zeros(len(keys), np.int32) if numbers is None else numbers
    records = coded_location_records(table_version, keys, encoded_locations(table_version, places), of_keys)
    payload = records.column(_PAYLOAD).combine_chunks()
    plain = payload.dictionary_decode() if isinstance(payload, pa.DictionaryArray) else payload
    schema = record_fields(table_version, MetadataKind.RECORD_INDEX)
    return pa.table([*records.columns[:-1], plain], schema=schema)


def encoded_locations(table_version: int, places: Sequence[RecordLocation]) -> pa.Array:
    """The encoded payload of the keys in each of these locations."""
    kind = record_fields(table_version, MetadataKind.RECORD_INDEX).field(_PAYLOAD).type
    encoded: pa.Array = pa.array([_encoded(place) for place in places], kind)
    return encoded


def coded_location_records(
    table_version: int, keys: pa.Array | pa.ChunkedArray, encoded: pa.Array, numbers: npt.NDArray[np.int32]
) -> pa.Table:
    """Like `location_records`, with the `encoded_locations` as a dictionary, so that sorting and writing very many keys
    moves one number per key.
    """
    schema = record_fields(table_version, MetadataKind.RECORD_INDEX)
    if not len(keys):
        return schema.empty_table()
    kinds = pa.repeat(pa.scalar(RecordType.RECORD_INDEX.value, pa.int32()), len(keys))
    payload = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), encoded)
    columns = [keys.cast(schema.field("key").type), kinds, payload]
    return pa.Table.from_arrays(columns, schema=schema.set(2, schema.field(2).with_type(payload.type)))


def _encoded(place: RecordLocation) -> dict[str, object]:
    """The payload of all rows of a location; `position` (from version 8 on) stays null, as in Hudi."""
    common: dict[str, object] = {"partitionName": place.partition_path, "instantTime": place.instant_ms}
    match = _UUID.fullmatch(place.file_id)
    if match is None or int(match[2] or 0) >= _JAVA_INTS:
        raw = {"fileIdHighBits": -1, "fileIdLowBits": -1, "fileIndex": _NO_INDEX, "fileId": place.file_id}
        return {**common, **raw, "fileIdEncoding": 1}
    digits = match[1].replace("-", "")
    high, low = (int.from_bytes(bytes.fromhex(half), "big", signed=True) for half in (digits[:16], digits[16:]))
    index = _NO_INDEX if match[2] is None else int(match[2])
    return {
        **common,
        "fileIdHighBits": high,
        "fileIdLowBits": low,
        "fileIndex": index,
        "fileId": "",
        "fileIdEncoding": 0,
    }


_RAW = 1  # encoding of file ids that are not UUIDs
_DASHES = (8, 13, 18, 23)
_UUID_CHARS = 36
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


def partition_paths(places: pa.Array) -> pa.Array:
    """Partition path of each location ("" in a table without partitions)."""
    return pc.struct_field(places, "partitionName")


def file_ids(places: pa.Array) -> pa.Array:
    """File id of each location (`recordIndexMetadata`), as in file names."""
    raw = pc.struct_field(places, "fileId")
    is_raw = pc.equal(pc.struct_field(places, "fileIdEncoding"), _RAW)
    index = pc.struct_field(places, "fileIndex")
    uuids = _uuids(_numbers(places, "fileIdHighBits"), _numbers(places, "fileIdLowBits"))
    numbered = pc.binary_join_element_wise(uuids, index.cast(pa.string()), "-")
    return pc.if_else(is_raw, raw, pc.if_else(pc.equal(index, -1), uuids, numbered))


def _numbers(places: pa.Array, name: str) -> npt.NDArray[np.int64]:
    return pc.fill_null(pc.struct_field(places, name), 0).to_numpy(zero_copy_only=False).astype(np.int64)


def _uuids(high: npt.NDArray[np.int64], low: npt.NDArray[np.int64]) -> pa.Array:
    raw = np.column_stack([high, low]).astype(">i8").view(np.uint8).reshape(-1, 16)
    digits = np.empty((len(raw), 32), np.uint8)
    digits[:, 0::2], digits[:, 1::2] = _HEX[raw >> 4], _HEX[raw & 15]
    chars = np.full((len(raw), _UUID_CHARS), ord("-"), np.uint8)
    chars[:, [at for at in range(_UUID_CHARS) if at not in _DASHES]] = digits
    offsets = np.arange(len(raw) + 1, dtype=np.int32) * np.int32(_UUID_CHARS)
    content = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(chars))]
    return pa.Array.from_buffers(pa.string(), len(raw), content)


_KIND = MetadataKind.RECORD_INDEX
_NAME = _KIND.value.prefix
LOCATIONS = pa.schema([("key", pa.string()), ("partition_path", pa.string()), ("file_id", pa.string())])


@dataclass(frozen=True)
class RecordLookup:
    """A record index with all completed instants. Picklable."""

    table: MetadataTable

    @property
    def slices(self) -> Sequence[FileSlice]:
        """The newest slice of each file group of the index."""
        return self.table.slices(_NAME)

    @property
    def groups(self) -> int:
        """The number of file groups of the index; they are numbered in order of their ids."""
        return len(self.slices)

    @property
    def is_partitioned(self) -> bool:
        """True if each partition of the table has its own file groups, so that keys are unique within a partition."""
        return _KIND.value.file_ids not in self._numbers

    @property
    def _numbers(self) -> Mapping[str, list[int]]:
        """Prefix of file ids → the numbers of its file groups."""
        ids = [file_slice.group.file_id for file_slice in self.slices]
        at = {file_id: number for number, file_id in enumerate(ids)}
        return {prefix: [at[file_id] for file_id in own] for prefix, own in groups_by_prefix(ids).items()}

    def groups_of(self, keys: pa.Array, paths: pa.Array | None = None) -> npt.NDArray[np.int32]:
        """The number of each key's file group; `groups` for keys in partitions unknown to the index.

        Args:   paths: partition path of each key, where the index is partitioned.
        """
        numbers = self._numbers
        if paths is None or not self.is_partitioned:
            of_partition = numbers[_KIND.value.file_ids]
            return np.array(of_partition, np.int32)[shards(keys, len(of_partition))]
        groups = np.full(len(keys), self.groups, np.int32)
        for path in pc.unique(paths).to_pylist():
            of_partition = numbers.get(partitioned_prefix(str(path)), [])
            if of_partition:
                rows = pc.equal(paths, path)
                hits = np.array(of_partition, np.int32)[shards(keys.filter(rows), len(of_partition))]
                groups[rows.to_numpy(zero_copy_only=False)] = hits
        return groups

    def places(self, keys_of_groups: Sequence[tuple[int, pa.Array]]) -> pa.Table:
        """The locations of keys, in any order; keys that the index lacks have none. `keys_of_groups`: numbers of file
        groups, each with its keys. Columns: LOCATIONS.

        Raises: MetadataTableDamaged, CorruptFile, DamagedLog.
        """
        table, slices = self.table, self.slices
        where = _NAME if len(keys_of_groups) != 1 else f"{_NAME}/{slices[keys_of_groups[0][0]].group.file_id}"
        with as_corrupt(f"{table.meta.storage.root}/{where}", "its records"):
            readers = [(table.reader(slices[group]), pc.unique(keys)) for group, keys in keys_of_groups]
            records = merged_records(with_keys(readers), _KIND) if readers else None
            if records is None or not records.num_rows:
                return LOCATIONS.empty_table()
            payload = records.column(_KIND.payloads[0]).combine_chunks()
            columns = [records.column("key").combine_chunks(), partition_paths(payload), file_ids(payload)]
            return pa.Table.from_arrays([column.cast(pa.string()) for column in columns], schema=LOCATIONS)


def open_record_lookup(meta: MetaClient) -> RecordLookup | str:
    """The table's record index, or a sentence that says why there is none, or none that can be trusted."""
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
        if not table.knows_newest_rows:
            return f"{root}: a write is being taken back that the record index may still have."
        table.slices(_NAME)
    except HudiError as error:
        return f"{root}: the metadata table can't be read: {error}"
    return RecordLookup(table)


_NO_KEYS: Mapping[str, pa.Array] = {}


def record_index_update(
    table_version: int,
    instant_time: str,
    zone: tzinfo | None,
    statuses: Sequence[WriteStatus],
    replaced_keys: Mapping[str, pa.Array] = _NO_KEYS,
) -> PartitionUpdate:
    """The update of the index whose keys are unique in the table.

    Args:
        zone: of the table's timeline, None: the local one; statuses: of the commit, with the keys that their tasks
            reported, or staged index files; replaced_keys: by partition path, the keys in file groups that the commit
            removes from the table, unless their rows were rewritten (clustering, whose statuses have all keys).
    """
    at = instant_ms(instant_time, zone)
    return _update(table_version, at, statuses, replaced_keys.values())


def partitioned_record_index_updates(
    table_version: int,
    instant_time: str,
    zone: tzinfo | None,
    statuses: Sequence[WriteStatus],
    replaced_keys: Mapping[str, pa.Array] = _NO_KEYS,
) -> dict[str, PartitionUpdate]:
    """Like `record_index_update`, by partition path of the table, for an index with file groups for each partition;
    partitions without changes are left out.
    """
    at = instant_ms(instant_time, zone)
    by_path: dict[str, list[WriteStatus]] = {path: [] for path in replaced_keys}
    for status in statuses:
        by_path.setdefault(status.stat.partition_path or "", []).append(status)
    updates = {
        path: _update(table_version, at, own, [replaced_keys[path]] if path in replaced_keys else ())
        for path, own in sorted(by_path.items())
    }
    return {path: update for path, update in updates.items() if not update.is_empty}


def key_records(table_version: int, at_ms: int, statuses: Sequence[WriteStatus]) -> pa.Table:
    """The records of the new keys that tasks reported one by one, as `coded_location_records` makes them.

    Args:   at_ms: the instant as `RecordLocation` has it.
    """
    writing = [status for status in statuses if status.new_keys is not None and len(status.new_keys)]
    places = [RecordLocation(s.stat.partition_path or "", s.stat.file_id, at_ms) for s in writing]
    new_keys = [status.new_keys for status in writing if status.new_keys is not None]
    numbers = np.repeat(np.arange(len(new_keys), dtype=np.int32), [len(keys) for keys in new_keys])
    keys = pa.chunked_array(new_keys, pa.string())
    return coded_location_records(table_version, keys, encoded_locations(table_version, places), numbers)


def _update(
    table_version: int, at_ms: int, statuses: Sequence[WriteStatus], replaced: Iterable[pa.Array]
) -> PartitionUpdate:
    records = key_records(table_version, at_ms, statuses)
    keys = records.column("key")
    removed = [status.removed_keys for status in statuses if status.removed_keys is not None]
    removed_keys = pc.unique(pa.concat_arrays([nothing_deleted(), *removed, *replaced]))
    removed_keys = (
        removed_keys.filter(pc.invert(pc.is_in(removed_keys, value_set=keys)))
        if len(keys) and len(removed_keys)
        else removed_keys
    )
    # For a key in several files, the one reported last counts.
    return PartitionUpdate(
        records, removed_keys, pieces=[piece for status in statuses for piece in status.staged_index]
    )
