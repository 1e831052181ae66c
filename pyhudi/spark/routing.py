"""Rows to the Spark task of their slot.

`repartitionById(n, slot)` does it where Spark has it. Elsewhere `repartition(n, column)` puts a row into the partition
`pmod(hash(column), n)`, with Spark's own hash, so every slot is replaced by a number whose hash is `slot` modulo n. The
numbers are found once for each n. Adaptive execution leaves a given number of partitions alone. Source:
Spark's `HashPartitioning` (Murmur3 x86 32-bit of one int, seed 42) and its shuffle origin REPARTITION_BY_NUM.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyhudi.spark import capabilities
from pyhudi.spark.columns import column, quoted

__all__ = ["numbers_by_partition", "routed"]

_SEED = np.uint32(42)
_FIRST_TRIED = 1024


def routed(frame: DataFrame, partitions: int, slot: str) -> DataFrame:
    """The frame in so many partitions, a row in that of its slot modulo their number; `slot` is an integer column."""
    if capabilities.PRESENT.routes_by_id:
        return frame.repartitionById(partitions, column(slot))
    numbers = ",".join(map(str, numbers_by_partition(partitions)))
    number = F.expr(f"element_at(array({numbers}), int(pmod({quoted(slot)}, {partitions})) + 1)")
    return frame.repartition(partitions, number)


@lru_cache(maxsize=64)
def numbers_by_partition(partitions: int) -> tuple[int, ...]:
    """For each partition the smallest number that Spark's hash puts there."""
    tried = max(_FIRST_TRIED, 16 * partitions)  # of random places 16 times as many miss few of them
    while True:
        places = _spark_hash(np.arange(tried, dtype=np.uint32)).astype(np.int64) % partitions
        found, numbers = np.unique(places, return_index=True)
        if len(found) == partitions:
            return tuple(numbers.tolist())
        tried *= 2


def _spark_hash(numbers: npt.NDArray[np.uint32]) -> npt.NDArray[np.int32]:
    """`hash(number)` of Spark for int columns: Murmur3 of 4 bytes with seed 42."""
    with np.errstate(over="ignore"):
        mixed = _rotated(numbers * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        hashed = _rotated(_SEED ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        hashed ^= np.uint32(4)  # bytes
        hashed = (hashed ^ (hashed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        hashed = (hashed ^ (hashed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (hashed ^ (hashed >> np.uint32(16))).view(np.int32)


def _rotated(values: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
