"""The index BUCKET with the engine SIMPLE, and detection of a table's engine and number of buckets.

The bucket of a key is a hash of it, and a partition has one file group per bucket. The first eight characters of the
file id hold the bucket's number (`00000077-...-0`), so only names are read. A row in a bucket without a file group gets
those eight characters as LOCATION; the planner makes the file id from them.

Hudi stores neither the index nor the number of buckets. The names of the file groups reveal the engine: they are
numbers below a bound, or nodes of a ring (`bucket_engine`). The keys reveal the number of buckets: the hash of each
key, minus the number of its bucket, is a multiple of it (`BucketSample`).

Source: docs/formats/indexes.md, "Buckets", "Consistent hashing".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.engine.base import Frame, TaskContext
from pyhudi.errors import TableError
from pyhudi.filegroup.read.keys import slice_keys
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.index.base import Index, Lookup, Tagged
from pyhudi.index.consistent_bucket import load_ring
from pyhudi.java.hashes import bucket_hashes, bucket_ids
from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import FileGroupId, FileSlice
from pyhudi.model.keys import LOCATION, PARTITION_PATH, RECORD_KEY
from pyhudi.view.archived_times import CompletedWrites
from pyhudi.view.file_system_view import FileSystemView

__all__ = [
    "BUCKET_DIGITS",
    "BucketIndex",
    "BucketSample",
    "bucket_engine",
    "bucket_of_file_id",
    "bucket_sample",
    "newest_groups",
]


BUCKET_DIGITS = 8


@dataclass(frozen=True, slots=True)
class BucketIndex(Index):
    """Computes the file group of a key. Keys are unique per partition."""

    places_inserts: ClassVar[bool] = True
    hashes_keys: ClassVar[bool] = True

    def tag(self, rows: Frame, lookup: Lookup) -> Tagged:
        work = FindBucket(
            self.settings.bucket_num,
            self.settings.bucket_hash_fields,
            {path: _groups_by_bucket(path, lookup, self.settings.bucket_num) for path in lookup.batch},
        )
        schema = pa.schema([pa.field(LOCATION, pa.string())])
        return Tagged(lookup.engine.extend(rows, [RECORD_KEY, PARTITION_PATH], work, schema))

    def new_file_id(self, location: str, new_uuid: str) -> str:
        return f"{location}{new_uuid[BUCKET_DIGITS:]}-0"


@dataclass(frozen=True, slots=True)
class FindBucket:
    """Column work: (record key, partition path) → file id of the bucket, or its eight digits when it has no file "
    "yet."""

    bucket_num: int
    hash_fields: tuple[str, ...]
    file_ids: Mapping[str, Mapping[int, str]]  # partition path → bucket → file id

    def __call__(self, context: TaskContext, batch: pa.RecordBatch) -> pa.RecordBatch:
        keys, partitions = batch.columns
        buckets = pa.array(bucket_ids(keys, self.hash_fields, self.bucket_num))
        location = pc.utf8_lpad(buckets.cast(pa.string()), width=BUCKET_DIGITS, padding="0")
        for path in cast("list[str]", pc.unique(partitions).to_pylist()):
            file_ids = self.file_ids.get(path)
            if file_ids:
                at = pc.index_in(buckets, value_set=pa.array(list(file_ids), pa.int32()))
                file_id_of_row = pa.array(list(file_ids.values()), pa.string()).take(at)
                in_partition = pc.and_(pc.equal(partitions, path), pc.is_valid(file_id_of_row))
                location = pc.if_else(in_partition, file_id_of_row, location)
        return pa.RecordBatch.from_arrays([location], names=[LOCATION])


def bucket_of_file_id(file_id: str) -> int | None:
    """The bucket number in a file id, None when it has none."""
    head = file_id[:BUCKET_DIGITS]
    return int(head) if head.isdecimal() and file_id[BUCKET_DIGITS : BUCKET_DIGITS + 1] == "-" else None


def _groups_by_bucket(partition_path: str, lookup: Lookup, bucket_num: int) -> dict[int, str]:
    groups: dict[int, str] = {}
    for file_slice in lookup.view.slices(partition_path):
        file_id = file_slice.group.file_id
        bucket = bucket_of_file_id(file_id)
        if bucket is None or bucket >= bucket_num or bucket in groups:
            problem = "holds two file groups of one bucket" if bucket in groups else "holds a file group of no bucket"
            raise TableError(
                f"Partition {partition_path!r} of {lookup.storage.root}: expected one file group for each of "
                f"{bucket_num} "
                f"buckets, but it {problem}: {file_id}. The table was written with another index or another "
                f"hoodie.bucket.index.num.buckets; write with the same one as before."
            )
        groups[bucket] = file_id
    return groups


_GROUPS_LOOKED_AT = 100
_KEYS_OF_A_GROUP = 64
_KEYS_ENOUGH = 64  # a wrong number fits each of them with a probability of at most 1/2
_SLICES_READ = 64
_PLAIN_BUCKETS = 1000  # one of four million other file ids begins with such a number
_GROUPS_PLAIN = 4  # four other file ids all begin with eight digits with a similar probability


@dataclass(frozen=True, slots=True)
class BucketSample:
    """The hashes of some stored keys and their buckets. `greatest`: the greatest bucket with a file group."""

    hashes: npt.NDArray[np.int64]
    buckets: npt.NDArray[np.int64]
    greatest: int

    def fits(self, number: int) -> bool:
        """True if the table can have this number of buckets."""
        return number > self.greatest and bool(np.all(self.hashes % number == self.buckets))

    def number(self) -> int | None:
        """The number of buckets; None if no number, or more than one, fits the keys."""
        common = int(np.gcd.reduce(np.abs(self.hashes - self.buckets))) if len(self.hashes) else 0
        if common <= self.greatest:
            return None
        is_sure = len(self.hashes) >= _KEYS_ENOUGH or common // _smallest_factor(common) <= self.greatest
        return common if is_sure else None


def newest_groups(meta: MetaClient) -> list[FileGroupId]:
    """File groups of the newest write with files; [] without such a write on the active timeline."""
    for instant in reversed(meta.timeline.commits().instants):
        stats = meta.commits.metadata(instant).stats()
        groups = [FileGroupId(stat.partition_path or "", stat.file_id) for stat in stats if stat.path]
        if groups:
            return list(islice(dict.fromkeys(groups), _GROUPS_LOOKED_AT))
    return []


def bucket_engine(meta: MetaClient, groups: Sequence[FileGroupId], *, is_expected: bool) -> str | None:
    """SIMPLE or CONSISTENT_HASHING if these file groups are buckets by their names, else None.

    `is_expected`: the caller says that they are buckets, so names suffice that other file groups may have by chance.
    """
    numbers = [bucket_of_file_id(group.file_id) for group in groups]
    places = {(group.partition_path, number) for group, number in zip(groups, numbers, strict=True)}
    if None not in numbers and len(places) == len(groups):
        is_plain = all(number is not None and number < _PLAIN_BUCKETS for number in numbers)
        if is_expected or is_plain or len(numbers) >= _GROUPS_PLAIN:
            return "SIMPLE"
    if not meta.config.is_merge_on_read:
        return None
    ring = load_ring(meta.storage, groups[0].partition_path, CompletedWrites(meta))
    nodes = set() if ring is None else {node.file_id for node in ring.nodes}
    file_ids = {group.file_id for group in groups if group.partition_path == groups[0].partition_path}
    return None if nodes.isdisjoint(file_ids) else "CONSISTENT_HASHING"


def bucket_sample(
    meta: MetaClient, groups: Sequence[FileGroupId], reading: SliceSpec, hash_fields: Sequence[str]
) -> BucketSample:
    """Sample the keys of these partitions, or of all partitions if these have few."""
    view = FileSystemView.load(meta, partitions={group.partition_path for group in groups})
    sample = _sample(view, reading, hash_fields)
    if len(sample.hashes) >= _KEYS_ENOUGH:
        return sample
    return _sample(FileSystemView.load(meta), reading, hash_fields)


def _sample(view: FileSystemView, reading: SliceSpec, hash_fields: Sequence[str]) -> BucketSample:
    hashes, buckets, greatest = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], -1
    for bucket, file_slice in _by_bucket(view):
        greatest = max(greatest, bucket)
        if len(hashes) > _SLICES_READ or sum(map(len, hashes)) >= 4 * _KEYS_ENOUGH:
            continue
        # Log files next to a base file add no information, and take longer.
        plain = replace(file_slice, log_files=()) if file_slice.base_file is not None else file_slice
        for keys in islice(slice_keys(reading, plain), 1):
            group_hashes = bucket_hashes(keys.slice(0, _KEYS_OF_A_GROUP), hash_fields).astype(np.int64)
            hashes.append(group_hashes)
            buckets.append(np.full(len(group_hashes), bucket, np.int64))
    return BucketSample(np.concatenate(hashes), np.concatenate(buckets), greatest)


def _by_bucket(view: FileSystemView) -> Iterator[tuple[int, FileSlice]]:
    for file_slice in view.all_slices():
        bucket = bucket_of_file_id(file_slice.group.file_id)
        if bucket is not None:
            yield bucket, file_slice


def _smallest_factor(number: int) -> int:
    return next((factor for factor in range(2, int(number**0.5) + 1) if number % factor == 0), number)
