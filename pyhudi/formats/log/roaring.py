"""64-bit Roaring bitmaps as bytes: by `pyroaring`, or by NumPy without its wheel. Both make the same bytes.

    u64 buckets | { u32 high half | 32-bit bitmap } ...                                            little-endian
    32-bit bitmap: cookie | { u16 key | u16 values - 1 } ... | { u32 offset } ... | containers
    container: up to 4096 values as u16 | 8192 bytes of bits | u16 runs, { u16 start | u16 length - 1 } ...

Source: docs/formats/log.md, "Record positions"; Roaring's format specification.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

try:
    from pyroaring import BitMap64
except ImportError:  # no wheel for this platform
    BitMap64 = None  # type: ignore[assignment, misc]

__all__ = ["Bitmap", "NumpyBitmap", "bitmap_bytes", "read_bitmap"]

Positions = npt.NDArray[np.int64]

_NO_RUNS, _WITH_RUNS = 12346, 12347
_MAX_VALUES = 4096  # of a container that lists them
_BITS_BYTES = 8192
_OFFSETS_FROM = 4  # containers; with run containers fewer than these have no offsets
_U16, _U32, _U64 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<Q")


class Bitmap(Protocol):
    """A decoded bitmap."""

    size_bytes: int  # of its encoded form

    def __len__(self) -> int: ...

    def max(self) -> int:
        """Return the greatest of its positions; it must have one."""
        ...

    def positions(self) -> Positions:
        """Its positions, ascending; the caller knows that all are below 2^63."""
        ...


def bitmap_bytes(positions: Positions) -> bytes:
    """Encode distinct positions in ascending order: each container in its smallest form, as Hudi writes them."""
    if BitMap64 is None:
        return _numpy_bytes(positions)
    values = array("Q")  # from an array the bitmap is made at once, from NumPy value by value
    values.frombytes(positions.astype(np.uint64).tobytes())
    return bytes(BitMap64(values, optimize=True).serialize())


def read_bitmap(data: bytes) -> Bitmap:
    """Read the bitmap at the beginning of some bytes. Raises ValueError."""
    return NumpyBitmap(data) if BitMap64 is None else _CRoaringBitmap(data)


class _CRoaringBitmap:
    def __init__(self, data: bytes) -> None:
        self._bitmap = BitMap64.deserialize(data)
        self.size_bytes = len(self._bitmap.serialize())

    def __len__(self) -> int:
        return len(self._bitmap)

    def max(self) -> int:
        return int(self._bitmap.max())

    def positions(self) -> Positions:
        return np.frombuffer(self._bitmap.to_array(), np.int64) if self._bitmap else np.zeros(0, np.int64)


# ---- NumPy


class _Container(NamedTuple):
    """`high`: the base of its values; `size`: their number; `body`: its bytes."""

    high: int
    size: int
    is_run: bool
    body: bytes

    def values(self) -> Positions:
        """Return the lower halves of its positions."""
        if self.is_run:
            starts, lengths = _runs(self.body)
            behind = np.cumsum(lengths)
            return np.repeat(starts - (behind - lengths), lengths) + np.arange(self.size)
        if self.size <= _MAX_VALUES:
            return np.frombuffer(self.body, "<u2").astype(np.int64)
        return np.flatnonzero(np.unpackbits(np.frombuffer(self.body, np.uint8), bitorder="little")).astype(np.int64)

    def check(self) -> None:
        """Raise ValueError when the values do not ascend, or their number is wrong."""
        if self.is_run:
            starts, lengths = _runs(self.body)
            is_right = int(lengths.sum()) == self.size and bool((starts[1:] > (starts + lengths)[:-1]).all())
            is_right &= not len(starts) or int(starts[-1] + lengths[-1]) <= 1 << 16
        else:
            values = self.values()
            is_right = len(values) == self.size and bool((np.diff(values) > 0).all())
        if not is_right:
            raise ValueError(f"a container that does not hold {self.size} ascending values")


class NumpyBitmap:
    """A bitmap in NumPy: containers are checked at once, and their values decoded on demand."""

    def __init__(self, data: bytes) -> None:
        self._data, self.size_bytes = data, 0
        buckets, containers = self._number(_U64), list[_Container]()
        for _ in range(min(buckets, len(data))):
            high = self._number(_U32) << 32
            containers += self._bucket(high)
        if buckets > len(data) or [c.high for c in containers] != sorted({c.high for c in containers}):
            raise ValueError("its containers do not ascend")
        self._containers = containers
        self._count = sum(container.size for container in containers)

    def __len__(self) -> int:
        return self._count

    def max(self) -> int:
        last = self._containers[-1]
        return last.high + int(last.values()[-1])

    def positions(self) -> Positions:
        parts = [container.high + container.values() for container in self._containers]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def _take(self, size: int) -> bytes:
        begin, self.size_bytes = self.size_bytes, self.size_bytes + size
        if self.size_bytes > len(self._data):
            raise ValueError(f"it ends {self.size_bytes - len(self._data)} bytes too early")
        return self._data[begin : self.size_bytes]

    def _number(self, kind: struct.Struct) -> int:
        return int(kind.unpack(self._take(kind.size))[0])

    def _bucket(self, high: int) -> Iterator[_Container]:
        """Yield the containers of one 32-bit bitmap."""
        cookie, runs = self._number(_U32), list[int]()
        if cookie & 0xFFFF == _WITH_RUNS:
            count = (cookie >> 16) + 1
            flags = np.frombuffer(self._take((count + 7) // 8), np.uint8)
            runs = np.unpackbits(flags, count=count, bitorder="little").tolist()
        elif cookie == _NO_RUNS:
            count = self._number(_U32)
        else:
            raise ValueError(f"a part of it begins with {cookie}")
        head = np.frombuffer(self._take(4 * count), "<u2").reshape(-1, 2).tolist()
        if not runs or count >= _OFFSETS_FROM:
            self._take(4 * count)  # offsets: the containers follow one another
        for number, (key, last) in enumerate(head):
            container = self._container(high + (key << 16), last + 1, is_run=bool(runs and runs[number]))
            container.check()
            yield container

    def _container(self, high: int, size: int, *, is_run: bool) -> _Container:
        if is_run:
            return _Container(high, size, True, self._take(4 * self._number(_U16)))
        return _Container(high, size, False, self._take(2 * size if size <= _MAX_VALUES else _BITS_BYTES))


def _runs(body: bytes) -> tuple[Positions, Positions]:
    pairs = np.frombuffer(body, "<u2").reshape(-1, 2).astype(np.int64)
    return pairs[:, 0], pairs[:, 1] + 1


def _numpy_bytes(positions: Positions) -> bytes:
    highs = np.unique(positions >> 32)
    parts = [_U64.pack(len(highs))]
    for high in highs.tolist():
        parts += [_U32.pack(high), _bucket_bytes(positions[positions >> 32 == high] & 0xFFFFFFFF)]
    return b"".join(parts)


def _bucket_bytes(values: Positions) -> bytes:
    keys, firsts = np.unique(values >> 16, return_index=True)
    lows = np.split(values & 0xFFFF, firsts[1:])
    bodies = [_container_bytes(low) for low in lows]
    head = b"".join(struct.pack("<HH", key, len(low) - 1) for key, low in zip(keys.tolist(), lows, strict=True))
    runs = [is_run for is_run, _ in bodies]
    if any(runs):
        flags = np.packbits(np.array(runs, np.uint8), bitorder="little").tobytes()
        cookie, has_offsets = _U32.pack(_WITH_RUNS | (len(lows) - 1) << 16) + flags, len(lows) >= _OFFSETS_FROM
    else:
        cookie, has_offsets = struct.pack("<II", _NO_RUNS, len(lows)), True
    first = len(cookie) + len(head) + 4 * len(lows)
    offsets = _offsets([len(body) for _, body in bodies], first) if has_offsets else b""
    return b"".join((cookie, head, offsets, *(body for _, body in bodies)))


def _offsets(sizes: Sequence[int], first: int) -> bytes:
    return (np.cumsum([0, *sizes])[:-1] + first).astype("<u4").tobytes()


def _container_bytes(low: Positions) -> tuple[bool, bytes]:
    """Return whether the smallest of the three forms is a run container, and its bytes."""
    starts = np.flatnonzero(np.diff(low, prepend=-2) != 1)
    plain = 2 * len(low) if len(low) <= _MAX_VALUES else _BITS_BYTES
    if 2 + 4 * len(starts) < plain:
        lengths = np.diff(starts, append=len(low)) - 1
        pairs = np.stack([low[starts], lengths], axis=1).astype("<u2")
        return True, _U16.pack(len(starts)) + pairs.tobytes()
    if len(low) <= _MAX_VALUES:
        return False, low.astype("<u2").tobytes()
    bits = np.zeros(1 << 16, np.uint8)
    bits[low] = 1
    return False, np.packbits(bits, bitorder="little").tobytes()
