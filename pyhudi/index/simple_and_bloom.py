"""Indexes SIMPLE, BLOOM and their global forms: key columns of base files are read and matched.

    SIMPLE, BLOOM    a key is unique in its partition: base files of the batch's partitions are candidates
    GLOBAL_*         a key is unique in the table: base files of all partitions are candidates
    *BLOOM           key ranges and bloom filters in the footers say which key columns are read; else key ranges alone

Source: docs/formats/indexes.md, "Finding keys", "Bloom look-up".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pyhudi.index.key_lookup import KeyLookupIndex

__all__ = ["BloomIndex", "GlobalBloomIndex", "GlobalSimpleIndex", "SimpleIndex"]


@dataclass(frozen=True, slots=True)
class SimpleIndex(KeyLookupIndex):
    """SIMPLE."""

    def everywhere(self) -> GlobalSimpleIndex:
        return GlobalSimpleIndex(self.settings)


@dataclass(frozen=True, slots=True)
class GlobalSimpleIndex(KeyLookupIndex):
    """GLOBAL_SIMPLE."""

    is_global: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class BloomIndex(KeyLookupIndex):
    """BLOOM."""

    uses_bloom: ClassVar[bool] = True

    def everywhere(self) -> GlobalBloomIndex:
        return GlobalBloomIndex(self.settings)


@dataclass(frozen=True, slots=True)
class GlobalBloomIndex(KeyLookupIndex):
    """GLOBAL_BLOOM."""

    is_global: ClassVar[bool] = True
    uses_bloom: ClassVar[bool] = True
