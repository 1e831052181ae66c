"""When many keys are wanted, the key columns of the base files are read in less time than the record index.

A few keys touch a few blocks of the index. Keys by the thousand touch all of them, and a key with its record takes
twice the time to unpack that it takes in a column of Parquet. Estimated from sizes alone; the places are the same.
Measured in docs/benchmarks.md, "Metadata table".
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from pyhudi.index.base import Lookup
from pyhudi.model.file_group import FileSlice
from pyhudi.storage.place import is_near

__all__ = ["files_are_cheaper"]

_BLOCK_BYTES = 10 << 10  # of a block of the index, compressed
_INDEX_BYTE_NS, _FILES_BYTE_NS = 17, 8  # to find keys, for each byte of the index: in it, and in the key columns
_OPEN_NEAR_NS, _OPEN_FAR_NS = 1.5e6, 40e6  # to open a base file and read its footer


def files_are_cheaper(lookup: Lookup, index: Iterable[FileSlice]) -> bool:
    """Shall the keys of a batch be looked for in all base files, which hold them, and not in the index?"""
    if lookup.keygen is not None:
        return False
    slices = lookup.view.all_slices()
    if not slices or any(found.log_files or found.base_file is None for found in slices):
        return False
    index_bytes = sum(found.size_bytes for found in index)
    wanted = sum(own.rows for own in lookup.batch.values())
    touched = 1 - math.exp(-wanted * _BLOCK_BYTES / max(1, index_bytes))
    opening = len(slices) * (_OPEN_NEAR_NS if is_near(lookup.storage) else _OPEN_FAR_NS)
    return touched * index_bytes * _INDEX_BYTE_NS > index_bytes * _FILES_BYTE_NS + opening
