"""Sorted keys in the bytes of a block, and prefixes as ranges of keys.

A `KeyColumn` extracts the keys, searches them and finds others among them, without a loop. A `PrefixRange` goes from
the prefix up to the first text that no longer begins with it.

Source: docs/formats/hfile.md, "Entries", "Lookups".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.buffers import buffer_numbers

__all__ = ["KeyColumn", "Places", "PrefixRange", "key_column", "pieces", "ranges_of", "rows_in", "sorted_keys"]


Places = npt.NDArray[np.int64]

_FEW = 16  # up to this many keys are searched one by one; beyond it, arranging a block's keys in a matrix pays off


@dataclass(frozen=True)
class KeyColumn(Sequence[bytes]):
    """Keys in ascending order of their bytes, as positions in `content`."""

    content: bytes
    starts: Places
    ends: Places

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, row: int) -> bytes: ...

    @overload
    def __getitem__(self, row: slice) -> KeyColumn: ...

    def __getitem__(self, row: int | slice) -> bytes | KeyColumn:
        if isinstance(row, slice):
            return KeyColumn(self.content, self.starts[row], self.ends[row])
        return self.content[self.starts[row] : self.ends[row]]

    def array(self) -> pa.Array:
        """Return the keys, binary."""
        return pieces(self.content, [self.starts, self.ends])

    def filter(self, mask: npt.NDArray[np.bool_]) -> KeyColumn:
        """Return the keys for which the mask is true."""
        return KeyColumn(self.content, self.starts[mask], self.ends[mask])

    def rows_of(self, keys: KeyColumn) -> Places:
        """Return the rows, ascending, of the given keys found here; of equal keys the first."""
        if len(keys) <= _FEW:
            return self._rows_of_few(keys)
        length = self._one_length()
        if length:
            return self._rows_of_one_length(keys, length)
        positions = pc.index_in(keys.array(), self.array())
        return np.sort(positions.drop_null().to_numpy()).astype(np.int64)

    def _rows_of_few(self, keys: KeyColumn) -> Places:
        rows, row = [], 0
        for key in keys:
            row = bisect_left(self, key, row)
            if row == len(self):
                break
            if self[row] == key:
                rows.append(row)
        return np.array(rows, np.int64)

    def _rows_of_one_length(self, keys: KeyColumn, length: int) -> Places:
        # NumPy treats zeros at the end of bytes as padding, which does not matter among keys of one length.
        alike = keys.filter(keys.ends - keys.starts == length)
        mine, theirs = self._side_by_side(length), alike._side_by_side(length)
        rows = np.searchsorted(mine, theirs)
        inside = rows < len(mine)
        rows, theirs = rows[inside], theirs[inside]
        return np.sort(rows[mine[rows] == theirs]).astype(np.int64)

    def places_of(self, texts: Sequence[bytes]) -> Places | None:
        """Return for each text the number of smaller keys; None if they must be searched one by one."""
        length = self._one_length()
        if not length or max(map(len, texts), default=0) > length:  # padded keys would equal longer texts
            return None
        return np.searchsorted(self._side_by_side(length), np.array(texts, f"S{length}")).astype(np.int64)

    def _one_length(self) -> int:
        """Return the common length of all keys; 0 if they differ, or there are none."""
        lengths = self.ends - self.starts
        return int(lengths[0]) if len(lengths) and (lengths == lengths[0]).all() else 0

    def _side_by_side(self, length: int) -> npt.NDArray[np.bytes_]:
        if not len(self.starts):
            return np.zeros(0, f"S{length}")
        windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(self.content, np.uint8), length)
        return np.ascontiguousarray(windows[self.starts]).view(f"S{length}")[:, 0]


def sorted_keys(keys: pa.Array | pa.ChunkedArray) -> KeyColumn:
    """Return keys to look up (text or binary; nulls are left out), ascending by their bytes, each once."""
    whole = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    binary = whole.cast(pa.binary()).drop_null()
    if len(binary) > 1 and not pc.all(pc.less(binary.slice(0, len(binary) - 1), binary.slice(1))).as_py():
        distinct = pc.unique(binary)
        binary = distinct.take(pc.sort_indices(distinct))
    return key_column(binary)


def key_column(keys: pa.Array) -> KeyColumn:
    """Return keys (text or binary, no nulls) in ascending order of their bytes."""
    _, offsets, content = keys.buffers()
    places = buffer_numbers(offsets, np.int32, len(keys) + 1, keys.offset * 4).astype(np.int64)
    if not len(keys) or content is None:
        return KeyColumn(b"", np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64))
    return KeyColumn(content.to_pybytes(), places[:-1], places[1:])


def pieces(content: bytes, bounds: list[Places]) -> pa.Array:
    """Parts of bytes as a binary array, row by row: `bounds` has the starts and the ends of one or several columns.

    Positions ascend within a row and from row to row.
    """
    rows, columns = len(bounds[0]), len(bounds)
    offsets = np.empty(rows * columns + 1, np.int32)
    for number, places in enumerate(bounds):
        offsets[number:-1:columns] = places
    offsets[-1] = len(content)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(content)]
    # The bytes between the parts form elements, too: every other element is taken.
    with_gaps = pa.Array.from_buffers(pa.binary(), rows * columns, buffers)
    return with_gaps.take(pa.array(np.arange(0, rows * columns, 2)))


# up to this many ranges are searched one by one; beyond it, arranging a block's keys in a matrix pays off


@dataclass(frozen=True, slots=True)
class PrefixRange:
    """Keys from `first` on that are smaller than `behind`; None: all following keys."""

    first: bytes
    behind: bytes | None


def ranges_of(prefixes: Iterable[bytes]) -> list[PrefixRange]:
    """Return the keys that begin with one of the prefixes: ascending, disjoint ranges."""
    ranges: list[PrefixRange] = []
    last: bytes | None = None
    for prefix in sorted(set(prefixes)):
        if last is not None and prefix.startswith(last):
            continue  # its keys belong to the shorter prefix
        last = prefix
        ranges.append(PrefixRange(prefix, _behind(prefix)))
    return ranges


def rows_in(keys: KeyColumn, ranges: Sequence[PrefixRange]) -> Places:
    """Return the rows, ascending, of the keys in one of the ascending ranges."""
    if len(ranges) > _FEW:
        places = keys.places_of([range_.first for range_ in ranges] + [range_.behind or b"" for range_ in ranges])
        if places is not None:
            return _between(places, len(keys), [range_.behind is None for range_ in ranges])
    rows, end = [np.zeros(0, np.int64)], 0
    for range_ in ranges:
        start = bisect_left(keys, range_.first, end)
        end = len(keys) if range_.behind is None else bisect_left(keys, range_.behind, start)
        rows.append(np.arange(start, end))
    return np.concatenate(rows)


def _between(places: Places, count: int, is_open: Sequence[bool]) -> Places:
    """The rows from each position in the first half of `places` up to its counterpart in the second half; to the end
    for open ranges.
    """
    starts, ends = places[: len(is_open)], np.where(is_open, count, places[len(is_open) :])
    lengths = ends - starts
    return np.repeat(starts + lengths - np.cumsum(lengths), lengths) + np.arange(lengths.sum())


def _behind(prefix: bytes) -> bytes | None:
    """Return the least text greater than all texts with a prefix."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes((head[-1] + 1,)) if head else None
