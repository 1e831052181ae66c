"""Write-time indexes: where does a key live? One file per index; a row here makes it known.

Source: spec, metadata and indexes part 4.
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
        "SIMPLE": "pyhudi.index.simple:SimpleIndex",
        "GLOBAL_SIMPLE": "pyhudi.index.global_simple:GlobalSimpleIndex",
        "BLOOM": "pyhudi.index.bloom:BloomIndex",
        "GLOBAL_BLOOM": "pyhudi.index.global_bloom:GlobalBloomIndex",
        "BUCKET": "pyhudi.index.bucket:BucketIndex",
        "CONSISTENT_BUCKET": "pyhudi.index.consistent_bucket:ConsistentBucketIndex",
        "INMEMORY": "pyhudi.index.in_memory:InMemoryIndex",
    },
    aliases={
        "org.apache.hudi.index.simple.HoodieSimpleIndex": "SIMPLE",
        "org.apache.hudi.index.simple.HoodieGlobalSimpleIndex": "GLOBAL_SIMPLE",
        "org.apache.hudi.index.bloom.HoodieBloomIndex": "BLOOM",
        "org.apache.hudi.index.bloom.HoodieGlobalBloomIndex": "GLOBAL_BLOOM",
        "org.apache.hudi.index.bucket.HoodieSimpleBucketIndex": "BUCKET",
        "org.apache.hudi.index.bucket.HoodieSparkConsistentBucketIndex": "CONSISTENT_BUCKET",
        "org.apache.hudi.index.inmemory.HoodieInMemoryHashIndex": "INMEMORY",
    },
)
