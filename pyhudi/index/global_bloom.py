"""Index GLOBAL_BLOOM. A key is unique in the table: base files of all partitions are candidates.
Key ranges and bloom filters in the footers say which key columns are read.

Source: spec, metadata and indexes part 4.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.index.key_lookup import KeyLookupIndex

__all__ = ["GlobalBloomIndex"]


@dataclass(frozen=True, slots=True)
class GlobalBloomIndex(KeyLookupIndex):
    """GLOBAL_BLOOM, the index of that name in Hudi."""

    is_global: bool = True
    uses_bloom: bool = True
