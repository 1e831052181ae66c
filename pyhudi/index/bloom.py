"""Index BLOOM. A key is unique in its partition: base files of the batch's partitions are candidates.
Key ranges and bloom filters in the footers say which key columns are read.

Source: spec, metadata and indexes part 4.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.index.key_lookup import KeyLookupIndex

__all__ = ["BloomIndex"]


@dataclass(frozen=True, slots=True)
class BloomIndex(KeyLookupIndex):
    """BLOOM, the index of that name in Hudi."""

    is_global: bool = False
    uses_bloom: bool = True
