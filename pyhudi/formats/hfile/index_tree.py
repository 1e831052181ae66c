"""Which data blocks of an HFile may have keys or prefixes, by its index: one level, or indexes of indexes.

Source: docs/formats/hfile.md, "Indexes".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from pyhudi.formats.hfile.index import BlockIndex, IndexEntry
from pyhudi.formats.hfile.key_column import KeyColumn
from pyhudi.formats.hfile.prefixes import PrefixRange
from pyhudi.formats.hfile.ranges import BlockPlace

__all__ = ["IndexTree", "Share"]


@dataclass(frozen=True, slots=True)
class Share:
    """The keys, of those that are looked up, that one block may have: rows `first` to `end` of them."""

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
        """How many entries of indexes are in memory."""
        return len(self.root) + sum(len(index.rows) for index in (self._top, *self._inner.values()) if index)

    def places(self, numbers: Sequence[int]) -> list[BlockPlace]:
        """The places of blocks that the root index names, by their numbers."""
        return [BlockPlace(self.top.offsets[number], self.top.sizes[number]) for number in numbers]

    def shares(self, wanted: KeyColumn) -> list[Share]:
        """The data blocks that may have these keys, with the keys. Raises CorruptFile."""
        return list(self._shares(self.top, self.levels, wanted, 0, len(wanted)))

    def _shares(self, index: BlockIndex, level: int, wanted: KeyColumn, first: int, end: int) -> Iterator[Share]:
        """The blocks below an index that may have the keys `first` to `end`: a step for each, not for each key."""
        while first < end:
            number = index.block_of(wanted[first])
            behind = _keys_before(index, number + 1, wanted, first, end)
            if number >= 0 and level == 1:
                yield Share(BlockPlace(index.offsets[number], index.sizes[number]), first, behind)
            elif number >= 0:
                yield from self._shares(self._below(index, number), level - 1, wanted, first, behind)
            first = behind

    def places_of(self, keys: PrefixRange) -> Iterator[BlockPlace]:
        """The data blocks that may have keys of a range. Raises CorruptFile."""
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


def _keys_before(index: BlockIndex, number: int, wanted: KeyColumn, first: int, end: int) -> int:
    """The first of the keys `first + 1` to `end` with which the block `number` begins."""
    if number >= len(index.rows):
        return end
    if first + 1 == end or wanted[first + 1] >= index.rows[number]:
        return first + 1  # seldom are two of a few keys in one block
    low, high, row = first + 1, end, index.rows[number]
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if wanted[middle] < row else (low, middle)
    return low
