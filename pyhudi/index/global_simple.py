"""Index GLOBAL_SIMPLE. A key is unique in the table: base files of all partitions are candidates.
Their key columns are read and matched, but for files whose key range says no.

Source: spec, metadata and indexes part 4.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.index.key_lookup import KeyLookupIndex

__all__ = ["GlobalSimpleIndex"]


@dataclass(frozen=True, slots=True)
class GlobalSimpleIndex(KeyLookupIndex):
    """GLOBAL_SIMPLE, the index of that name in Hudi."""

    is_global: bool = True
    uses_bloom: bool = False
