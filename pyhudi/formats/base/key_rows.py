"""KeyRows: in which rows of a row group a column has some values, told by hashes of all its values, eight bytes each.

A hash is equal for equal values, and now and then for others, so that a few rows too many are found.
Source: docs/architecture.md, "How a slice is read"; docs/decisions/0015-what-is-kept-of-files.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.buffers import buffer_numbers

__all__ = ["KeyRows", "has_hashes", "rows_among"]

Rows = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

_ROW_BITS = np.uint64(32)
_ROW_MASK = np.uint64((1 << 32) - 1)
_ODD = 0x9E3779B97F4A7C15
_SEED = 20_151_201
_FACTORS = 1 << 12  # of as many bytes of a text; those behind it meet the same ones again


def rows_among(batches: Iterable[tuple[int, pa.RecordBatch]], values: pa.Array) -> Rows:
    """The numbers of the rows whose first column has one of the values.

    Args:   batches: ascending, each with the number of its first row.
    """
    found = [np.zeros(0, np.int64)]
    for first, batch in batches:
        hits = pc.is_in(batch.column(0), value_set=values)
        found.append(np.flatnonzero(hits.to_numpy(zero_copy_only=False)) + first)
    return np.concatenate(found)


def has_hashes(kind: pa.DataType) -> bool:
    """Can values of this type be found by hashes?"""
    return bool(pa.types.is_string(kind) or pa.types.is_integer(kind))


@dataclass(frozen=True, slots=True)
class KeyRows:
    """`packed`: the hash of each row in the upper half, its number in the lower one, ascending."""

    packed: Hashes

    @classmethod
    def of(cls, values: pa.Array) -> KeyRows:
        """Args: values: of a row group, of a type that `has_hashes`."""
        hashes = _hashes(values)
        hashes <<= _ROW_BITS
        hashes |= np.arange(len(values), dtype=np.uint64)
        return cls(np.sort(hashes))

    @property
    def size_bytes(self) -> int:
        return self.packed.nbytes

    def rows_of(self, values: pa.Array) -> Rows:
        """The rows, ascending, with one of these values, and perhaps a few others."""
        hashes = np.unique(_hashes(values)) << _ROW_BITS
        first = np.searchsorted(self.packed, hashes)
        behind = np.searchsorted(self.packed, hashes | _ROW_MASK, side="right")
        found = [self.packed[start:end] & _ROW_MASK for start, end in zip(first, behind, strict=True) if start < end]
        return np.sort(np.concatenate([np.zeros(0, np.uint64), *found])).astype(np.int64)


def _hashes(values: pa.Array) -> Hashes:
    """32 bits of each value; of nulls any."""
    if pa.types.is_integer(values.type):
        numbers = values.fill_null(0).cast(pa.int64(), safe=False).to_numpy().view(np.uint64)
    else:
        numbers = _sums(values)
    numbers = numbers * np.uint64(_ODD)
    numbers ^= numbers >> _ROW_BITS
    return (numbers * np.uint64(_ODD)) >> _ROW_BITS


def _sums(texts: pa.Array) -> Hashes:
    """The bytes of each text, each times a factor of its place, added up."""
    _, offsets, content = texts.buffers()
    ends = buffer_numbers(offsets, np.int32, len(texts) + 1, texts.offset * 4).astype(np.int64)
    starts, lengths = ends[:-1], np.diff(ends)
    if content is None or not lengths.any():
        return lengths.astype(np.uint64)
    data = buffer_numbers(content, np.uint8, int(ends[-1]))
    factors = _factors()
    sums = lengths.astype(np.uint64)
    if (lengths == lengths[0]).all():
        matrix = data[ends[0] : ends[-1]].reshape(len(texts), int(lengths[0]))
        for place in range(matrix.shape[1]):
            sums += matrix[:, place] * factors[place % _FACTORS]
        return sums
    filled = np.flatnonzero(lengths)
    places = np.arange(ends[0], ends[-1]) - np.repeat(starts, lengths)
    weighted = data[ends[0] : ends[-1]] * factors[places % _FACTORS]
    sums[filled] += np.add.reduceat(weighted, starts[filled] - ends[0])
    return sums


@lru_cache(maxsize=1)
def _factors() -> Hashes:
    return np.random.default_rng(_SEED).integers(1, 1 << 63, _FACTORS, dtype=np.uint64)
