"""Tables whose buckets are nodes of a hash ring: made, filled, resized, and their rings read."""

from __future__ import annotations

from typing import Any

from pyhudi.formats.hash_ring import decode_ring
from pyhudi.model.buckets import BUCKET_KEYS
from pyhudi.storage.base import Storage
from pyhudi.timeline.table_properties import update_table_config
from tests.support.tables.clustered import Clustered
from tests.support.tables.small import Row

ENGINE = {
    "index_type": "BUCKET",
    "index_bucket_engine": "CONSISTENT_HASHING",
    "bucket_index_num_buckets": "4",
}


def ringed(version: str = "9", **options: str) -> Clustered:
    return Clustered(version, "MERGE_ON_READ", **{**ENGINE, **options})


def many(count: int, ts: int = 1) -> list[Row]:
    return [(f"key{number:03d}", "xy"[number % 2], ts, number) for number in range(count)]


def rings(table: Clustered, path: str) -> list[Any]:
    folder = f".hoodie/.bucket_index/consistent_hashing_metadata/{path}"
    names = [info.path for info in table.storage.list(folder) if info.name.endswith(".hashing_meta")]
    return [decode_ring(table.storage.read(name), name) for name in names]


RESIZE = {
    **ENGINE,
    "clustering_plan_strategy_class": "org.apache.hudi.client.clustering.plan.strategy."
    "SparkConsistentBucketClusteringPlanStrategy",
}
SPLIT = {**RESIZE, "parquet_max_file_size": "1", "bucket_index_max_num_buckets": "6"}


def as_hudi_stores_it(storage: Storage) -> None:
    """Take out of a table's properties what Hudi's tables don't say: that its file groups are buckets."""
    update_table_config(storage, {}, BUCKET_KEYS)


def resized(table: Clustered, **options: Any) -> Any:
    return table.cluster(**{**SPLIT, **options})
