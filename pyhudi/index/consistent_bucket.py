"""The index BUCKET with the engine CONSISTENT_HASHING, and its rings, which assign keys to file groups.

Each partition has a ring, and each node of the ring is a file group. The first write to a partition makes its ring.
Clustering splits and merges nodes, and each such resize adds a ring file:

    .hoodie/.bucket_index/consistent_hashing_metadata/<partition>/<instant>.hashing_meta    the ring
                                                                  <instant>.commit          it counts

A ring counts if it is the first one, has the marker `.commit`, or belongs to a completed instant. The newest ring that
counts is the partition's ring. A ring of a dead resize never counts, not even after archiving has moved the timeline
beyond it. The next write to the partition, or archiving, makes the marker for a writer that died before it did.

Below version 8 the marker is in the partition's folder, where Hudi before 1.0 puts it. If the marker is next to the
ring, those releases fail to find the ring at the next resize.

Source: docs/formats/indexes.md, "Consistent hashing".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import ClassVar, cast

import numpy as np
import pyarrow as pa

from pyhudi.engine.base import Frame, TaskContext
from pyhudi.errors import ConfigError, PathExists, StorageError, TableError, UnsupportedTable
from pyhudi.formats.hash_ring import (
    INITIAL_RING,
    RING_BYTES_MAX,
    HashNode,
    HashRing,
    decode_ring,
    encode_ring,
    initial_ring,
    places_on_ring,
)
from pyhudi.index.base import Index, Lookup, Tagged
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.filenames import data_path, hashing_folder, hashing_path
from pyhudi.model.keys import LOCATION, PARTITION_PATH, RECORD_KEY
from pyhudi.model.table_config import TableConfig
from pyhudi.model.table_format import TableFormat
from pyhudi.storage.base import Storage
from pyhudi.storage.paths import parent

__all__ = [
    "ConsistentBucketIndex",
    "RenewedBuckets",
    "delete_rings",
    "load_or_make_ring",
    "load_ring",
    "mark_ring",
    "mark_rings",
    "move_markers",
    "renewed_ring",
    "save_ring",
]


_RING, _MARKER = ".hashing_meta", ".commit"


def load_ring(
    storage: Storage, partition_path: str, completed: Container[str], *, marking: int | None = None
) -> HashRing | None:
    """The ring of a partition, None when it has none.

    Args:    completed: the completed commits, archived ones included. marking: the table's version, to make a missing
                 marker.
    Raises:  CorruptFile.
    """
    names = [entry.name for entry in storage.list(hashing_folder(partition_path)) if not entry.is_dir]
    marked = {name.removesuffix(_MARKER) for name in names if name.endswith(_MARKER)}
    instants = sorted((name.removesuffix(_RING) for name in names if name.endswith(_RING)), reverse=True)
    for instant in instants:
        is_marked = instant in marked or storage.stat(data_path(partition_path, f"{instant}{_MARKER}")) is not None
        if is_marked or instant == INITIAL_RING or instant in completed:
            if marking is not None and not is_marked and instant != INITIAL_RING:
                mark_ring(storage, partition_path, instant, marking)
            path = hashing_path(partition_path, instant)
            return decode_ring(storage.read(path, RING_BYTES_MAX), f"{storage.root}: {path}")
    return None


def load_or_make_ring(
    storage: Storage, partition_path: str, bucket_num: int, completed: Container[str], table_version: int
) -> HashRing:
    """The ring of a partition; a missing ring is created. Every writer creates the same first ring."""
    ring = load_ring(storage, partition_path, completed, marking=table_version)
    if ring is not None:
        return ring
    ring = initial_ring(partition_path, bucket_num)
    try:
        storage.create_synced(hashing_path(partition_path, INITIAL_RING), encode_ring(ring))
    except PathExists:  # another writer was faster, perhaps with another number of buckets
        other_ring = load_ring(storage, partition_path, completed)
        return ring if other_ring is None else other_ring
    return ring


def save_ring(storage: Storage, ring: HashRing) -> None:
    """Write the ring of a resize, before its instant completes."""
    path = hashing_path(ring.partition_path, ring.instant)
    storage.write(path, encode_ring(ring))
    storage.sync([path])


def mark_ring(storage: Storage, partition_path: str, instant_time: str, table_version: int) -> None:
    """Mark the ring of a completed instant as valid, so that it counts after the instant is archived."""
    with suppress(StorageError):  # without it readers use the timeline
        _make_marker(storage, _marker_path(partition_path, instant_time, table_version))


def mark_rings(storage: Storage, instant_times: Container[str], table_version: int) -> None:
    """Create the missing markers of completed instants that are about to leave the active timeline: their writer may
    have died before it created them. Hold the table's lock.

    Raises: StorageError.
    """
    for partition_path, instant_time in _all_rings(storage):
        if instant_time in instant_times:
            path = _marker_path(partition_path, instant_time, table_version)
            if storage.stat(path) is None:
                _make_marker(storage, path)


def move_markers(storage: Storage, table_version: int) -> None:
    """Move the markers of all rings to their place in a table of this version. Until that is done, readers use the
    timeline. Hold the table's lock.
    """
    for partition_path, instant_time in _all_rings(storage):
        above, below = (_marker_path(partition_path, instant_time, version) for version in (8, 6))
        source, target = (below, above) if TableFormat(table_version).marks_rings_beside_them else (above, below)
        if storage.stat(source) is not None:
            _make_marker(storage, target)
            storage.delete(source)


def _make_marker(storage: Storage, path: str) -> None:
    with suppress(PathExists):
        storage.create_synced(path, b"")


def _all_rings(storage: Storage) -> list[tuple[str, str]]:
    """The partition path and instant time of each ring."""
    folder = hashing_folder("")
    paths = [info.path.removeprefix(folder).strip("/") for info in storage.walk(folder) if info.name.endswith(_RING)]
    return [(parent(path), path.rpartition("/")[2].removesuffix(_RING)) for path in paths]


def delete_rings(storage: Storage, instant_time: str) -> None:
    """Delete the rings of an instant that is being rolled back, and their markers."""
    ring, marker = f"{instant_time}{_RING}", f"{instant_time}{_MARKER}"
    folder = hashing_folder("")
    for info in storage.walk(folder):
        if info.name in (ring, marker):
            storage.delete(info.path)
        if info.name == ring:
            partition_path = info.path.removeprefix(folder).removesuffix(ring).strip("/")
            storage.delete(data_path(partition_path, marker))


def _marker_path(partition_path: str, instant_time: str, table_version: int) -> str:
    folder = hashing_folder(partition_path) if TableFormat(table_version).marks_rings_beside_them else partition_path
    return data_path(folder, f"{instant_time}{_MARKER}")


@dataclass(frozen=True, slots=True)
class ConsistentBucketIndex(Index):
    """Computes the file group of a key. Keys are unique per partition."""

    places_inserts: ClassVar[bool] = True
    hashes_keys: ClassVar[bool] = True
    lists_file_groups: ClassVar[bool] = True
    resize_strategy: ClassVar[str | None] = "CONSISTENT_BUCKET"

    def tag(self, rows: Frame, lookup: Lookup) -> Tagged:
        rings = {path: self._ring(path, lookup) for path in lookup.batch}
        work = FindNode(
            self.settings.bucket_hash_fields,
            {path: tuple((node.value, node.file_id) for node in ring.nodes) for path, ring in rings.items()},
        )
        schema = pa.schema([pa.field(LOCATION, pa.string())])
        return Tagged(lookup.engine.extend(rows, [RECORD_KEY, PARTITION_PATH], work, schema))

    def new_file_id(self, location: str, new_uuid: str) -> str:
        return location

    def check_table(self, config: TableConfig, root: str) -> None:
        if not config.is_merge_on_read:
            raise ConfigError(
                f"{root}: hoodie.index.bucket.engine=CONSISTENT_HASHING is for merge-on-read tables; this one is "
                f"{config.table_type}. Use the engine SIMPLE."
            )

    def _ring(self, partition_path: str, lookup: Lookup) -> HashRing:
        buckets, version = self.settings.bucket_num, lookup.table_version
        ring = load_or_make_ring(lookup.storage, partition_path, buckets, lookup.completed, version)
        groups = {node.file_id for node in ring.nodes}
        where = f"Partition {partition_path!r} of {lookup.storage.root}"
        replaced_ids = sorted(group for group in groups if FileGroupId(partition_path, group) in lookup.replaced)
        if replaced_ids:
            raise UnsupportedTable(
                f"{where}: the file group {replaced_ids[0]} is a node of its hash ring and was replaced, by an "
                f"overwrite or by deleting the partition. Rows written to it would not be seen; write to another "
                f"table, and delete rows instead of partitions."
            )
        for file_slice in lookup.view.slices(partition_path):
            if file_slice.group.file_id not in groups:
                raise TableError(
                    f"{where}: the file group {file_slice.group.file_id} is no node of its hash ring. The table was "
                    f"written with another index; write with the same one as before."
                )
        return ring


@dataclass(frozen=True)
class RenewedBuckets(ConsistentBucketIndex):
    """The index for a write that replaces file groups. `rings`: by partition path, rings whose replaced nodes have new
    ids; other partitions use their stored rings.
    """

    rings: Mapping[str, HashRing] = field(default_factory=dict)
    lists_file_groups: ClassVar[bool] = False

    def _ring(self, partition_path: str, lookup: Lookup) -> HashRing:
        return self.rings.get(partition_path) or super()._ring(partition_path, lookup)


def renewed_ring(ring: HashRing, file_ids: Collection[str], new_uuid: Callable[[], str]) -> HashRing:
    """The ring with the file groups' nodes replaced by new ones; its instant is not known yet.

    Raises: TableError for a file group that is no node.
    """
    unexpected = sorted(set(file_ids) - {node.file_id for node in ring.nodes})
    if unexpected:
        raise TableError(
            f"Partition {ring.partition_path!r}: the file group {unexpected[0]} is no node of its hash ring. The table "
            "was written with another index."
        )
    nodes = [HashNode(node.value, new_uuid()) for node in ring.nodes if node.file_id in file_ids]
    return ring.changed(nodes, "")


@dataclass(frozen=True, slots=True)
class FindNode:
    """Column work: (record key, partition path) → file id. `nodes`: partition path → value and file id, ascending."""

    hash_fields: tuple[str, ...]
    nodes: Mapping[str, tuple[tuple[int, str], ...]]

    def __call__(self, context: TaskContext, batch: pa.RecordBatch) -> pa.RecordBatch:
        keys, partitions = batch.columns
        coded = partitions.dictionary_encode()
        codes = coded.indices.to_numpy(zero_copy_only=False)
        file_ids: list[str] = []
        location = np.zeros(batch.num_rows, np.int64)
        for code, path in enumerate(cast("list[str]", coded.dictionary.to_pylist())):
            at = np.flatnonzero(codes == code)
            nodes = self.nodes[path]
            places = places_on_ring(keys.take(pa.array(at)), self.hash_fields, [value for value, _ in nodes])
            location[at] = places + len(file_ids)
            file_ids += [file_id for _, file_id in nodes]
        return pa.RecordBatch.from_arrays([pa.array(file_ids, pa.string()).take(pa.array(location))], names=[LOCATION])
