"""The least and the greatest record key of a base file, as its footer names them.

Java compares strings by UTF-16 unit. That is the order of UTF-8 bytes, except that characters beyond U+FFFF come before
those from U+E000 on. Hudi's row writer compares bytes and its look-up compares units, so for such keys a range is only
a hint.
Source: docs/formats/base-files.md, "Key range".
"""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.buffers import buffer_numbers

__all__ = ["KeyRange"]

_FIRST_ASTRAL_BYTE = 0xF0  # UTF-8 bytes of characters beyond U+FFFF start here


class KeyRange:
    """Least and greatest of the keys added so far, in Java's order; None before the first."""

    def __init__(self) -> None:
        self.least: str | None = None
        self.greatest: str | None = None

    def add(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Take in `keys`: strings without nulls."""
        for chunk in keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]:
            if len(chunk) == 0:
                continue
            if _has_astral(chunk):
                texts = cast("list[str]", chunk.to_pylist())  # rare: only a key with such a character brings us here
                self.include(min(texts, key=_java_order), max(texts, key=_java_order))
            else:
                ends = pc.min_max(chunk)
                self.include(ends["min"].as_py(), ends["max"].as_py())

    def include(self, least: str, greatest: str) -> None:
        """Take in a range."""
        if self.least is None or _java_order(least) < _java_order(self.least):
            self.least = least
        if self.greatest is None or _java_order(greatest) > _java_order(self.greatest):
            self.greatest = greatest


def _java_order(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _has_astral(keys: pa.Array) -> bool:
    """True when some key has a character beyond U+FFFF."""
    _, offsets_buffer, data_buffer = keys.buffers()
    if data_buffer is None or data_buffer.size == 0 or len(keys) == 0:
        return False
    ends = buffer_numbers(offsets_buffer, np.int32, len(keys) + 1, keys.offset * 4)
    data = buffer_numbers(data_buffer, np.uint8)[ends[0] : ends[-1]]
    return len(data) > 0 and bool(data.max() >= _FIRST_ASTRAL_BYTE)
