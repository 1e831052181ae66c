"""Decoded blocks of an HFile that stay in memory, up to so many bytes. Source: docs/formats/hfile.md, "Layout"."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Protocol

from pyhudi.formats.hfile.entries import Entries
from pyhudi.storage.file_memory import FILES

__all__ = ["CACHE_BYTES", "BlockCache", "Blocks", "KeptBlocks"]

CACHE_BYTES = 16 << 20  # of each open file: ten blocks as Hudi makes them, so that ten file groups take 160 MiB


class Blocks(Protocol):
    """Blocks of one file by their places."""

    def __contains__(self, offset: int) -> bool: ...

    def get(self, offset: int) -> Entries | None:
        """A block, None when it is not here."""
        ...

    def put(self, offset: int, entries: Entries) -> None:
        """Keep a block that is not here yet."""
        ...


class KeptBlocks:
    """Blocks of a file in one state, in the memory that all readers of this process share.

    Args: key: says the file and its state.
    """

    def __init__(self, key: Hashable) -> None:
        self._key = key

    def __contains__(self, offset: int) -> bool:
        return (self._key, offset) in FILES

    def get(self, offset: int) -> Entries | None:
        """A block, None when it is not here."""
        found = FILES.get((self._key, offset))
        return found if isinstance(found, Entries) else None

    def put(self, offset: int, entries: Entries) -> None:
        """Keep a block."""
        FILES.put((self._key, offset), entries, entries.size_bytes)


class BlockCache:
    """Blocks by their places; those that were not used for longest leave first.

    Args: limit_bytes: of all together. A larger block is not kept.
    """

    def __init__(self, limit_bytes: int = CACHE_BYTES) -> None:
        self._limit_bytes, self.size_bytes = limit_bytes, 0
        self._blocks: OrderedDict[int, Entries] = OrderedDict()

    def __contains__(self, offset: int) -> bool:
        return offset in self._blocks

    def get(self, offset: int) -> Entries | None:
        """A block, None when it is not here."""
        entries = self._blocks.get(offset)
        if entries is not None:
            self._blocks.move_to_end(offset)
        return entries

    def put(self, offset: int, entries: Entries) -> None:
        """Keep a block that is not here yet."""
        if entries.size_bytes > self._limit_bytes:
            return
        self._blocks[offset] = entries
        self.size_bytes += entries.size_bytes
        while self.size_bytes > self._limit_bytes:
            _, oldest = self._blocks.popitem(last=False)
            self.size_bytes -= oldest.size_bytes
