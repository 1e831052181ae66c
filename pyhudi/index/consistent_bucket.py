"""Index BUCKET, engine CONSISTENT_HASHING: the file group of a key is a node of its partition's ring.

The first write to a partition makes its ring; clustering splits and merges nodes.
Source: docs/formats/indexes.md, "Consistent hashing".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import pyarrow as pa

from pyhudi.engine.base import Frame, TaskContext
from pyhudi.errors import ConfigError, TableError, UnsupportedTable
from pyhudi.formats.hash_ring import HashRing, places_on_ring
from pyhudi.index.base import Index, Lookup, Tagged
from pyhudi.index.consistent_hashing import load_or_make_ring
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.keys import LOCATION, PARTITION_PATH, RECORD_KEY
from pyhudi.model.table_config import TableConfig

__all__ = ["ConsistentBucketIndex"]


@dataclass(frozen=True, slots=True)
class ConsistentBucketIndex(Index):
    """Where a key lives is computed. Unique per partition."""

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
