"""Indexes of an HFile: their bytes, and the data blocks that may have keys or prefixes.

An entry has the first key of a block (or a key before it), the block's position and its size. The root index and the
index of meta blocks have one form, leaf and intermediate indexes another. Keys of data blocks begin with the length of
their row; `row_of` skips the bytes that HBase puts after the row. Numbers in an index are Hadoop's VInts
(`hadoop_vint`).

`IndexTree` finds the data blocks, through one level or through indexes of indexes.

Source: docs/formats/hfile.md, "Indexes".
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pyhudi.errors import CorruptFile
from pyhudi.formats.hfile.keys import KeyColumn, PrefixRange
from pyhudi.formats.hfile.ranges import BlockPlace
from pyhudi.formats.protobuf import read_varint

__all__ = [
    "BlockIndex",
    "IndexEntry",
    "IndexTree",
    "Share",
    "decode_inner_index",
    "decode_root_index",
    "encode_root_index",
    "hadoop_vint",
    "read_hadoop_vint",
    "row_of",
]


def hadoop_vint(value: int) -> bytes:
    """Return a number of Hadoop's WritableUtils, not negative."""
    if value <= 127:
        return bytes((value,))
    payload = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes((256 - 112 - len(payload),)) + payload


def read_hadoop_vint(data: bytes, position: int, where: str) -> tuple[int, int]:
    """Read a number of Hadoop's WritableUtils and where the next byte starts. Raises CorruptFile."""
    if position >= len(data):
        raise CorruptFile(f"{where}: an index entry without the length of its key.")
    first = data[position] - 256 if data[position] > 127 else data[position]
    position += 1
    if first >= -112:
        return first, position
    negative = first < -120
    size = -(first + 120) if negative else -(first + 112)
    if size > len(data) - position:
        raise CorruptFile(f"{where}: a number of {size} bytes, where {len(data) - position} are left.")
    value = int.from_bytes(data[position : position + size], "big")
    return (-value - 1 if negative else value), position + size


_POINTER = struct.Struct(">qi")
_COUNT = struct.Struct(">i")
_ROW = struct.Struct(">h")
_MIN_ENTRY = _POINTER.size + 1
_SUFFIX = 10  # family length, timestamp and type, which follow the row in a full key of HBase


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """An entry, with `key` as stored in the index."""

    key: bytes
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class BlockIndex:
    """One block of a data index in columns: the first rows of the blocks, ascending, their positions and sizes."""

    rows: list[bytes]
    offsets: list[int]
    sizes: list[int]

    @classmethod
    def of(cls, entries: Sequence[IndexEntry], where: str) -> BlockIndex:
        """Build the columns from entries of a data index. Raises CorruptFile."""
        rows = [row_of(entry.key, where) for entry in entries]
        return cls(rows, [entry.offset for entry in entries], [entry.size_bytes for entry in entries])

    def block_of(self, key: bytes) -> int:
        """Return the number of the only block that can have a key; -1 before the first."""
        return bisect_right(self.rows, key) - 1

    def blocks_before(self, key: bytes | None) -> int:
        """Return the number of blocks that begin before a key; all of them for None, the end of the file."""
        return len(self.rows) if key is None else bisect_left(self.rows, key)


def row_of(key: bytes, where: str) -> bytes:
    """Return the row in a key of a data index. Raises CorruptFile."""
    if len(key) < _ROW.size:
        raise CorruptFile(f"{where}: an index key of {len(key)} bytes has no row.")
    (length,) = _ROW.unpack_from(key)
    if not 0 <= length <= len(key) - _ROW.size:
        raise CorruptFile(f"{where}: an index key of {len(key)} bytes can't hold a row of {length}.")
    return key[_ROW.size : _ROW.size + length]


def encode_root_index(entries: Iterable[IndexEntry]) -> bytes:
    """Encode the body of a root index, or of the index of meta blocks."""
    return b"".join(
        _POINTER.pack(entry.offset, entry.size_bytes) + hadoop_vint(len(entry.key)) + entry.key for entry in entries
    )


def decode_root_index(body: bytes, count: int, where: str) -> list[IndexEntry]:
    """Decode the first `count` entries (HBase may put more bytes after them). Raises CorruptFile."""
    if not 0 <= count <= len(body) // _MIN_ENTRY:
        raise CorruptFile(f"{where}: an index of {len(body)} bytes can't hold {count} entries.")
    entries: list[IndexEntry] = []
    position = 0
    for _ in range(count):
        if position + _POINTER.size > len(body):
            raise CorruptFile(f"{where}: the index ends before entry {len(entries)} of {count}.")
        offset, size_bytes = _POINTER.unpack_from(body, position)
        key, position = _key(body, position + _POINTER.size, where)
        entries.append(IndexEntry(key, offset, size_bytes))
    return entries


def _key(body: bytes, position: int, where: str) -> tuple[bytes, int]:
    length, start = read_hadoop_vint(body, position, where)
    if not 0 <= length <= len(body) - start:
        # Hudi 1.1.0 and 1.1.1 wrote the length like Protobuf, which differs from 128 on.
        length, start = read_varint(body, position, where)
        plausible = _ROW.size <= length <= len(body) - start
        if not plausible or _ROW.unpack_from(body, start)[0] not in (length - 2, length - 2 - _SUFFIX):
            raise CorruptFile(f"{where}: an index key of {length} bytes, where {len(body) - start} are left.")
    return body[start : start + length], start + length


def decode_inner_index(body: bytes, where: str) -> list[IndexEntry]:
    """Decode the entries of a leaf or intermediate index. Raises CorruptFile."""
    if len(body) < _COUNT.size:
        raise CorruptFile(f"{where}: an index of {len(body)} bytes has no count.")
    (count,) = _COUNT.unpack_from(body)
    if not 0 <= count <= (len(body) - _COUNT.size) // (_COUNT.size + _POINTER.size):
        raise CorruptFile(f"{where}: an index of {len(body)} bytes can't hold {count} entries.")
    places = struct.unpack_from(f">{count + 1}i", body, _COUNT.size) if _fits(body, count) else ()
    base = _COUNT.size * (count + 2)
    return [_inner_entry(body, base, places, number, where) for number in range(count)]


def _fits(body: bytes, count: int) -> bool:
    return _COUNT.size * (count + 2) <= len(body)


def _inner_entry(body: bytes, base: int, places: Sequence[int], number: int, where: str) -> IndexEntry:
    if len(places) < number + 2:
        raise CorruptFile(f"{where}: the places of the index's entries are cut off.")
    start, end = base + places[number], base + places[number + 1]
    if not base <= start <= end - _POINTER.size <= len(body) - _POINTER.size:
        raise CorruptFile(f"{where}: entry {number} of the index lies outside of it.")
    offset, size_bytes = _POINTER.unpack_from(body, start)
    return IndexEntry(body[start + _POINTER.size : end], offset, size_bytes)


@dataclass(frozen=True, slots=True)
class Share:
    """The part of the looked-up keys that one block may have: rows `first` to `end`."""

    place: BlockPlace
    first: int
    end: int


@dataclass
class IndexTree:
    """`root`: the entries of the root index; `levels`: 1 when they name data blocks; `inner`: reads the entries of the
    index block at an offset.
    """

    root: Sequence[IndexEntry]
    levels: int
    where: str
    inner: Callable[[int], Sequence[IndexEntry]]
    _top: BlockIndex | None = None
    _inner: dict[int, BlockIndex] = field(default_factory=dict)

    @property
    def top(self) -> BlockIndex:
        """The root index. Raises CorruptFile."""
        if self._top is None:
            self._top = BlockIndex.of(self.root, f"{self.where}, index")
        return self._top

    @property
    def entries_held(self) -> int:
        """The number of index entries in memory."""
        return len(self.root) + sum(len(index.rows) for index in (self._top, *self._inner.values()) if index)

    def places(self, numbers: Sequence[int]) -> list[BlockPlace]:
        """Return the positions of blocks in the root index, by their numbers."""
        return [BlockPlace(self.top.offsets[number], self.top.sizes[number]) for number in numbers]

    def shares(self, keys: KeyColumn) -> list[Share]:
        """Return the data blocks that may have these keys, with the keys. Raises CorruptFile."""
        return list(self._shares(self.top, self.levels, keys, 0, len(keys)))

    def _shares(self, index: BlockIndex, level: int, keys: KeyColumn, first: int, end: int) -> Iterator[Share]:
        """Yield the blocks below an index that may have the keys `first` to `end`: a step per block, not per key."""
        while first < end:
            number = index.block_of(keys[first])
            behind = _keys_before(index, number + 1, keys, first, end)
            if number >= 0 and level == 1:
                yield Share(BlockPlace(index.offsets[number], index.sizes[number]), first, behind)
            elif number >= 0:
                yield from self._shares(self._below(index, number), level - 1, keys, first, behind)
            first = behind

    def places_of(self, keys: PrefixRange) -> Iterator[BlockPlace]:
        """Return the data blocks that may have keys of a range. Raises CorruptFile."""
        return self._places(self.top, self.levels, keys)

    def _places(self, index: BlockIndex, level: int, keys: PrefixRange) -> Iterator[BlockPlace]:
        for number in range(max(0, index.block_of(keys.first)), index.blocks_before(keys.behind)):
            if level == 1:
                yield BlockPlace(index.offsets[number], index.sizes[number])
            else:
                yield from self._places(self._below(index, number), level - 1, keys)

    def _below(self, index: BlockIndex, number: int) -> BlockIndex:
        offset = index.offsets[number]
        if offset not in self._inner:
            self._inner[offset] = BlockIndex.of(self.inner(offset), f"{self.where}, index")
        return self._inner[offset]


def _keys_before(index: BlockIndex, number: int, keys: KeyColumn, first: int, end: int) -> int:
    """Return the first of the keys `first + 1` to `end` with which the block `number` begins."""
    if number >= len(index.rows):
        return end
    if first + 1 == end or keys[first + 1] >= index.rows[number]:
        return first + 1  # two of a few keys are rarely in one block
    low, high, row = first + 1, end, index.rows[number]
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if keys[middle] < row else (low, middle)
    return low
