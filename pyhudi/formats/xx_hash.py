"""xxHash as Hudi uses it: ids of texts (names of locks), and hashes of whole columns of keys (consistent hashing).

Source: Hudi's HashID (XXH64 with the seed 0xdabadaba as a signed int, sixteen hexadecimal digits);
docs/formats/indexes.md, "Consistent hashing".
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh32_intdigest, xxh64_intdigest

__all__ = ["hash_id_64", "xx_hash32"]

_HUDI_SEED = (0xDABADABA - (1 << 32)) % (1 << 64)
_BLOCK = 1 << 16  # strings that are Python objects together


def hash_id_64(text: str) -> str:
    """The 64-bit id that Hudi gives a text."""
    return f"{xxh64_intdigest(text.encode('utf-8'), _HUDI_SEED):016X}"


def xx_hash32(strings: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.uint32]:
    """The hash of the UTF-8 bytes of each string; a null counts as an empty one."""
    column = pc.fill_null(strings, "").cast(pa.large_binary())
    hashes = np.empty(len(column), np.uint32)
    for first in range(0, len(column), _BLOCK):
        # A call for each value: measured against numpy over columns, see docs/dependencies.md.
        texts = cast("list[bytes]", column.slice(first, _BLOCK).to_pylist())
        hashes[first : first + _BLOCK] = np.fromiter(map(xxh32_intdigest, texts), np.uint32, len(texts))
    return hashes
