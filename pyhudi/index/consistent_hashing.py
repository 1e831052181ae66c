"""The rings of consistent hashing of a table: one file per partition and resize, and which of them counts.

    .hoodie/.bucket_index/consistent_hashing_metadata/<partition>/<instant>.hashing_meta    the ring
                                                                  <instant>.commit          it counts

The newest ring counts that was there from the beginning, has the marker, or is of a completed instant of the active
timeline. Below version 8 the marker is in the partition's own folder: Hudi before 1.0 puts it there, and fails to
find a ring at its next resize when it is next to the ring. A ring that a dead resize left never counts, not even
when the timeline has been archived beyond it. Source: docs/formats/indexes.md, "Consistent hashing".
"""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress

from pyhudi.errors import PathExists, StorageError
from pyhudi.formats.hash_ring import INITIAL_RING, RING_BYTES_MAX, HashRing, decode_ring, encode_ring, initial_ring
from pyhudi.model.filenames import data_path, hashing_folder, hashing_path
from pyhudi.storage.base import Storage

__all__ = ["delete_rings", "load_or_make_ring", "load_ring", "mark_ring", "move_markers", "save_ring"]

_RING, _MARKER = ".hashing_meta", ".commit"


def load_ring(
    storage: Storage, partition_path: str, completed: Container[str], *, marking: int | None = None
) -> HashRing | None:
    """The ring of a partition, None when it has none.

    Args:    completed: the completed commits of the active timeline. marking: the table's version, to make a marker
             that is missing.
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
    """The ring of a partition; one that has none gets its first, which every writer makes alike."""
    ring = load_ring(storage, partition_path, completed, marking=table_version)
    if ring is not None:
        return ring
    ring = initial_ring(partition_path, bucket_num)
    try:
        storage.create_synced(hashing_path(partition_path, INITIAL_RING), encode_ring(ring))
    except PathExists:  # another writer was faster, perhaps with another number of buckets
        made = load_ring(storage, partition_path, completed)
        return ring if made is None else made
    return ring


def save_ring(storage: Storage, ring: HashRing) -> None:
    """Write the ring of a resize, before its instant completes."""
    path = hashing_path(ring.partition_path, ring.instant)
    storage.write(path, encode_ring(ring))
    storage.sync([path])


def mark_ring(storage: Storage, partition_path: str, instant_time: str, table_version: int) -> None:
    """Say that the ring of a completed instant counts, for when the instant is archived."""
    with suppress(PathExists, StorageError):  # whoever misses it looks at the timeline
        storage.create_synced(_marker_path(partition_path, instant_time, table_version), b"")


def move_markers(storage: Storage, table_version: int) -> None:
    """Take the markers of all rings to where they are in a table of this version; whoever misses one on its way looks
    at the timeline. Hold the table's lock.
    """
    folder = hashing_folder("")
    for path in [info.path for info in storage.walk(folder) if info.name.endswith(_RING)]:
        partition_path, _, name = path.removeprefix(folder).strip("/").rpartition("/")
        instant_time = name.removesuffix(_RING)
        above, below = (_marker_path(partition_path, instant_time, version) for version in (8, 6))
        source, target = (below, above) if table_version >= 8 else (above, below)
        if storage.stat(source) is not None:
            with suppress(PathExists):
                storage.create_synced(target, b"")
            storage.delete(source)


def delete_rings(storage: Storage, instant_time: str) -> None:
    """Delete the rings of an instant that is rolled back, and their markers."""
    ring, marker = f"{instant_time}{_RING}", f"{instant_time}{_MARKER}"
    folder = hashing_folder("")
    for info in storage.walk(folder):
        if info.name in (ring, marker):
            storage.delete(info.path)
        if info.name == ring:
            partition_path = info.path.removeprefix(folder).removesuffix(ring).strip("/")
            storage.delete(data_path(partition_path, marker))


def _marker_path(partition_path: str, instant_time: str, table_version: int) -> str:
    folder = hashing_folder(partition_path) if table_version >= 8 else partition_path
    return data_path(folder, f"{instant_time}{_MARKER}")
