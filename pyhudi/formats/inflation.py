"""How much larger than its bytes a part of a file may become when it is decoded.

A few kB of Parquet or of an HFile can say gigabytes: pages of one value, bodies of zeros. What writers make of rows is
bounded, by the size of a log block and because keys differ.
"""

from __future__ import annotations

from pyhudi.errors import CorruptFile

__all__ = ["check_inflated"]

# Twice `hoodie.logfile.data.block.max.size`: whatever it holds, a block of usual size is read.
FREE_BYTES = 512 << 20
# Of larger parts: the most that deflate can do, which rows with keys of their own never come near.
MAX_RATIO = 1032


def check_inflated(
    inflated_bytes: int, stored_bytes: int, where: str, *, free_bytes: int = FREE_BYTES, ratio: int = MAX_RATIO
) -> None:
    """Is it a size that so many stored bytes may become? Raises CorruptFile.

    Args: free_bytes: sizes up to here are in any case.
    """
    limit = max(free_bytes, ratio * stored_bytes)
    if inflated_bytes > limit:
        raise CorruptFile(
            f"{where}: {stored_bytes} bytes become {inflated_bytes} or more; at most {limit} are read: {free_bytes}, "
            f"or {ratio} for each stored byte. No writer of Hudi makes such a file; restore it from a copy."
        )
