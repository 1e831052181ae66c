"""Reads of an HFile by ranges: the end of the file on opening, and neighbouring blocks together.

Source: docs/formats/hfile.md, "Layout".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

__all__ = ["READ_BYTES", "BlockPlace", "Ranges", "Source", "run_end"]

READ_BYTES = 4 << 20  # of one read of several blocks: beyond it, an object store's throughput dominates its latency
TAIL_BYTES = 64 << 10  # trailer, file info and root index of 1,000 blocks; small files fit completely
_GAP_BYTES = 128 << 10  # bytes between two blocks to read that cost less than one more request


class Source(Protocol):
    """The interface of an open file for reading."""

    def size(self) -> int: ...

    def seek(self, position: int, /) -> object: ...

    def read(self, length: int, /) -> bytes: ...


class BlockPlace(NamedTuple):
    """The position of a data block, from the index."""

    offset: int
    size_bytes: int


def run_end(places: Sequence[BlockPlace], first: int) -> int:
    """Return the end of a read of block `first` and of the following ones that are close enough."""
    start, end = places[first].offset, sum(places[first])
    for place in places[first + 1 :]:
        reach = sum(place)
        if not end - _GAP_BYTES <= place.offset <= end + _GAP_BYTES or reach - start > READ_BYTES:
            break
        end = max(end, reach)
    return end


class Ranges:
    """A file, or a part of one, with its end and the last fetched range in memory.

    Args: source: seekable, with `read`; offset, size_bytes: the part of it.
    """

    def __init__(self, source: Source, offset: int, size_bytes: int) -> None:
        self._source, self._offset, self._size_bytes = source, offset, size_bytes
        self._position = 0
        self._held = [(0, b""), (0, b"")]

    def fetch_tail(self) -> None:
        """Read the end of the file."""
        start = max(0, self._size_bytes - TAIL_BYTES)
        self._held[0] = start, self._direct(start, self._size_bytes - start)

    def fetch(self, start: int, end: int) -> None:
        """Fetch a range, at most `READ_BYTES` of it, unless it is in memory; it replaces the previous range.

        A range outside the file is left to the reader to refuse.
        """
        end = min(end, self._size_bytes, start + READ_BYTES)
        if 0 <= start < end and not self.holds(start, end):
            self._held[1] = 0, b""
            self._held[1] = start, self._direct(start, end - start)

    def forget_bytes(self) -> None:
        """Drop all bytes, except those of a file that is completely within its end."""
        self._held[1] = 0, b""
        if len(self._held[0][1]) < self._size_bytes:
            self._held[0] = 0, b""

    @property
    def held_bytes(self) -> int:
        """Bytes in memory."""
        return sum(len(data) for _, data in self._held)

    def holds(self, start: int, end: int) -> bool:
        """True if a range is in memory."""
        return any(first <= start and end <= first + len(data) for first, data in self._held)

    def seek(self, position: int) -> None:
        """Set the position of the next read."""
        self._position = position

    def read(self, length: int) -> bytes:
        """Read this many bytes, or all that remain."""
        position = self._position
        for first, data in self._held:
            if first <= position and position + length <= first + len(data):
                return data[position - first : position - first + length]
        return self._direct(position, length)

    def _direct(self, start: int, length: int) -> bytes:
        self._source.seek(self._offset + start)
        return bytes(self._source.read(length))
