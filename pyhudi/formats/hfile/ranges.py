"""Reads of an HFile by ranges: its end at once when it is opened, and neighbouring blocks together.

Source: docs/formats/hfile.md, "Layout".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

__all__ = ["READ_BYTES", "BlockPlace", "Ranges", "Source", "run_end"]

READ_BYTES = 4 << 20  # of one read of several blocks: past it an object store's throughput counts, not its latency
TAIL_BYTES = 64 << 10  # trailer, file info and root index of 1,000 blocks; small files are wholly within
_GAP_BYTES = 128 << 10  # bytes between two wanted blocks that cost less than one more request


class Source(Protocol):
    """What reading takes of an open file."""

    def size(self) -> int: ...

    def seek(self, position: int, /) -> object: ...

    def read(self, length: int, /) -> bytes: ...


class BlockPlace(NamedTuple):
    """Where a data block is, as its index says."""

    offset: int
    size_bytes: int


def run_end(places: Sequence[BlockPlace], first: int) -> int:
    """Where the read has to end that fetches block `first` and those behind it that are close enough."""
    start, end = places[first].offset, sum(places[first])
    for place in places[first + 1 :]:
        reach = sum(place)
        if not end - _GAP_BYTES <= place.offset <= end + _GAP_BYTES or reach - start > READ_BYTES:
            break
        end = max(end, reach)
    return end


class Ranges:
    """A file, or a part of one, of which the last range that was fetched, and the end, are held in memory.

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
        """Hold a range, no more than `READ_BYTES` of it, unless it is held; what was held before is let go.

        A range that doesn't lie in the file is left to who reads it to refuse.
        """
        end = min(end, self._size_bytes, start + READ_BYTES)
        if 0 <= start < end and not self.holds(start, end):
            self._held[1] = 0, b""
            self._held[1] = start, self._direct(start, end - start)

    def forget_bytes(self) -> None:
        """Hold nothing but a file that is wholly in its end."""
        self._held[1] = 0, b""
        if len(self._held[0][1]) < self._size_bytes:
            self._held[0] = 0, b""

    @property
    def held_bytes(self) -> int:
        """Bytes in memory."""
        return sum(len(data) for _, data in self._held)

    def holds(self, start: int, end: int) -> bool:
        """Is a range in memory?"""
        return any(first <= start and end <= first + len(data) for first, data in self._held)

    def seek(self, position: int) -> None:
        """The next read is from here."""
        self._position = position

    def read(self, length: int) -> bytes:
        """So many bytes, or as many as there are."""
        position = self._position
        for first, data in self._held:
            if first <= position and position + length <= first + len(data):
                return data[position - first : position - first + length]
        return self._direct(position, length)

    def _direct(self, start: int, length: int) -> bytes:
        self._source.seek(self._offset + start)
        return bytes(self._source.read(length))
