"""Write-time indexes, which find the file group of a key. Each index has its own file; a row here registers it.

Source: docs/formats/indexes.md, "Finding keys".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyhudi.index.base import Index, IndexSettings

__all__ = ["INDEXES"]

INDEXES: Registry[Callable[[IndexSettings], Index]] = Registry(
    kind="index type (hoodie.index.type)",
    entries={
        "SIMPLE": "pyhudi.index.key_lookup:SimpleIndex",
        "GLOBAL_SIMPLE": "pyhudi.index.key_lookup:GlobalSimpleIndex",
        "BLOOM": "pyhudi.index.key_lookup:BloomIndex",
        "GLOBAL_BLOOM": "pyhudi.index.key_lookup:GlobalBloomIndex",
        "BUCKET": "pyhudi.index.bucket:BucketIndex",
        "CONSISTENT_BUCKET": "pyhudi.index.consistent_bucket:ConsistentBucketIndex",
        "GLOBAL_RECORD_LEVEL_INDEX": "pyhudi.index.record_index:GlobalRecordIndex",
        "RECORD_LEVEL_INDEX": "pyhudi.index.record_index:PartitionRecordIndex",
        "INMEMORY": "pyhudi.index.in_memory:InMemoryIndex",
    },
    aliases={
        "org.apache.hudi.index.simple.HoodieSimpleIndex": "SIMPLE",
        "org.apache.hudi.index.simple.HoodieGlobalSimpleIndex": "GLOBAL_SIMPLE",
        "org.apache.hudi.index.bloom.HoodieBloomIndex": "BLOOM",
        "org.apache.hudi.index.bloom.HoodieGlobalBloomIndex": "GLOBAL_BLOOM",
        "org.apache.hudi.index.bucket.HoodieSimpleBucketIndex": "BUCKET",
        "org.apache.hudi.index.bucket.HoodieSparkConsistentBucketIndex": "CONSISTENT_BUCKET",
        "RECORD_INDEX": "GLOBAL_RECORD_LEVEL_INDEX",  # its name before 1.1
        "org.apache.hudi.index.SparkMetadataTableRecordIndex": "GLOBAL_RECORD_LEVEL_INDEX",
        "org.apache.hudi.index.SparkMetadataTableGlobalRecordLevelIndex": "GLOBAL_RECORD_LEVEL_INDEX",
        "org.apache.hudi.index.SparkMetadataTableRecordLevelIndex": "RECORD_LEVEL_INDEX",
        "org.apache.hudi.index.inmemory.HoodieInMemoryHashIndex": "INMEMORY",
    },
)
