"""Index BUCKET, simple engine: the bucket of a key is a hash of it, and a partition has one file group per bucket.

The number is in the first eight characters of the file id (`00000077-...-0`), so nothing is looked up but names. A row
of a bucket without file group gets those eight characters as LOCATION; the planner makes the file id from them.
Source: docs/formats/indexes.md, "Buckets".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.engine.base import Frame, TaskContext
from pyhudi.errors import TableError
from pyhudi.index.base import Index, Lookup, Tagged
from pyhudi.java.hashes import bucket_ids
from pyhudi.model.keys import LOCATION, PARTITION_PATH, RECORD_KEY

__all__ = ["BUCKET_DIGITS", "BucketIndex", "bucket_of_file_id"]

BUCKET_DIGITS = 8


@dataclass(frozen=True, slots=True)
class BucketIndex(Index):
    """Where a key lives is computed. Unique per partition."""

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
                known = pa.array(list(file_ids.values()), pa.string()).take(at)
                in_partition = pc.and_(pc.equal(partitions, path), pc.is_valid(known))
                location = pc.if_else(in_partition, known, location)
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
            found = "holds two file groups of one bucket" if bucket in groups else "holds a file group of no bucket"
            raise TableError(
                f"Partition {partition_path!r} of {lookup.storage.root}: expected one file group for each of "
                f"{bucket_num} "
                f"buckets, but it {found}: {file_id}. The table was written with another index or another "
                f"hoodie.bucket.index.num.buckets; write with the same one as before."
            )
        groups[bucket] = file_id
    return groups
