"""Index SIMPLE. A key is unique in its partition: base files of the batch's partitions are candidates.
Their key columns are read and matched, but for files whose key range says no.

Source: spec, metadata and indexes part 4.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.index.key_lookup import KeyLookupIndex

__all__ = ["SimpleIndex"]


@dataclass(frozen=True, slots=True)
class SimpleIndex(KeyLookupIndex):
    """SIMPLE, the index of that name in Hudi."""

    is_global: bool = False
    uses_bloom: bool = False
