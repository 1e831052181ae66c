"""The rings of consistent hashing of a table: one file per partition and resize, and which of them counts.

    .hoodie/.bucket_index/consistent_hashing_metadata/<partition>/<instant>.hashing_meta    the ring
                                                                  <instant>.commit          it counts

The newest ring counts that was there from the beginning, has the marker, or is of a completed instant of the active
timeline; Hudi before 1.0 puts the marker into the partition's folder. A ring that a dead resize left never counts, not
even when the timeline has been archived beyond it. Source: spec, metadata and indexes 4.2; timeline 1.5.
"""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress

from pyhudi.errors import PathExists, StorageError
from pyhudi.formats.hash_ring import INITIAL_RING, HashRing, decode_ring, encode_ring, initial_ring
from pyhudi.model.filenames import data_path, hashing_folder, hashing_path
from pyhudi.storage.base import Storage

__all__ = ["delete_rings", "load_or_make_ring", "load_ring", "mark_ring", "save_ring"]

_RING, _MARKER = ".hashing_meta", ".commit"


def load_ring(
    storage: Storage, partition_path: str, completed: Container[str], *, marks: bool = False
) -> HashRing | None:
    """The ring of a partition, None when it has none.

    Args:    completed: the completed commits of the active timeline. marks: make a marker that is missing.
    Raises:  CorruptFile.
    """
    names = [entry.name for entry in storage.list(hashing_folder(partition_path)) if not entry.is_dir]
    marked = {name.removesuffix(_MARKER) for name in names if name.endswith(_MARKER)}
    instants = sorted((name.removesuffix(_RING) for name in names if name.endswith(_RING)), reverse=True)
    for instant in instants:
        counts = instant == INITIAL_RING or instant in marked or instant in completed
        if counts or storage.stat(data_path(partition_path, f"{instant}{_MARKER}")) is not None:
            if marks and instant not in marked and instant != INITIAL_RING:
                mark_ring(storage, partition_path, instant)
            path = hashing_path(partition_path, instant)
            return decode_ring(storage.read(path), f"{storage.root}: {path}")
    return None


def load_or_make_ring(storage: Storage, partition_path: str, bucket_num: int, completed: Container[str]) -> HashRing:
    """The ring of a partition; one that has none gets its first, which every writer makes alike."""
    ring = load_ring(storage, partition_path, completed, marks=True)
    if ring is not None:
        return ring
    ring = initial_ring(partition_path, bucket_num)
    try:
        storage.create_new(hashing_path(partition_path, INITIAL_RING), encode_ring(ring))
    except PathExists:  # another writer was faster, perhaps with another number of buckets
        made = load_ring(storage, partition_path, completed)
        return ring if made is None else made
    return ring


def save_ring(storage: Storage, ring: HashRing) -> None:
    """Write the ring of a resize, before its instant completes."""
    storage.write(hashing_path(ring.partition_path, ring.instant), encode_ring(ring))


def mark_ring(storage: Storage, partition_path: str, instant_time: str) -> None:
    """Say that the ring of a completed instant counts, for when the instant is archived."""
    with suppress(PathExists, StorageError):  # whoever misses it looks at the timeline
        storage.create_new(hashing_path(partition_path, instant_time, is_marker=True), b"")


def delete_rings(storage: Storage, instant_time: str) -> None:
    """Delete the rings of an instant that is rolled back."""
    names = (f"{instant_time}{_MARKER}", f"{instant_time}{_RING}")
    for info in storage.walk(hashing_folder("")):
        if info.name in names:
            storage.delete(info.path)
