"""The names that hoodie.index.type and hoodie.index.class take, Hudi's classes among them."""

from __future__ import annotations

import pytest

from pyhudi.errors import ConfigError
from pyhudi.index import INDEXES
from pyhudi.index.bucket import BucketIndex
from pyhudi.index.consistent_bucket import ConsistentBucketIndex
from pyhudi.index.in_memory import InMemoryIndex
from pyhudi.index.key_lookup import BloomIndex, GlobalBloomIndex, GlobalSimpleIndex, SimpleIndex
from pyhudi.index.record_index import GlobalRecordIndex, PartitionRecordIndex

NAMES = {
    SimpleIndex: ("SIMPLE", "simple.HoodieSimpleIndex"),
    GlobalSimpleIndex: ("GLOBAL_SIMPLE", "simple.HoodieGlobalSimpleIndex"),
    BloomIndex: ("BLOOM", "bloom.HoodieBloomIndex"),
    GlobalBloomIndex: ("GLOBAL_BLOOM", "bloom.HoodieGlobalBloomIndex"),
    BucketIndex: ("BUCKET", "bucket.HoodieSimpleBucketIndex"),
    ConsistentBucketIndex: ("CONSISTENT_BUCKET", "bucket.HoodieSparkConsistentBucketIndex"),
    GlobalRecordIndex: (
        "GLOBAL_RECORD_LEVEL_INDEX", "RECORD_INDEX", "SparkMetadataTableRecordIndex",
        "SparkMetadataTableGlobalRecordLevelIndex",
    ),
    PartitionRecordIndex: ("RECORD_LEVEL_INDEX", "SparkMetadataTableRecordLevelIndex"),
    InMemoryIndex: ("INMEMORY", "inmemory.HoodieInMemoryHashIndex"),
}  # fmt: skip


def in_full(name: str) -> str:
    return name if name.isupper() else f"org.apache.hudi.index.{name}"


@pytest.mark.parametrize(
    ("name", "index"), [(in_full(name), index) for index, names in NAMES.items() for name in names]
)
def test_an_index_goes_by_its_type_and_by_hudis_class(name: str, index: type) -> None:
    assert INDEXES.load(name) is index


@pytest.mark.thorough
def test_these_are_all_names_and_another_is_refused_with_them() -> None:
    known = {in_full(name) for names in NAMES.values() for name in names}
    assert known == {*INDEXES.entries, *INDEXES.aliases}
    with pytest.raises(ConfigError, match="GLOBAL_BLOOM"):
        INDEXES.load("org.apache.hudi.index.bloom.HoodieOtherIndex")
