"""Which rows of an update go to which file group, each in the order that its files have.

Keys are looked at piece by piece, as their tasks reported them, so that several threads can share the work.
Source: docs/formats/metadata-table.md, "File groups of a key"; docs/formats/hfile.md, "Entries".
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.buffers import is_ascending, order_of_bytes
from pyhudi.metadata.placement import group_numbers

__all__ = ["KeysByGroup", "one_per_key", "sorted_by_key"]

_PIECE_ROWS = 1 << 17


@dataclass(frozen=True, slots=True)
class KeysByGroup:
    """Keys in pieces, and for each key the number of its file group."""

    pieces: Sequence[pa.Array]
    numbers: Sequence[npt.NDArray[np.int32]]

    @classmethod
    def of(
        cls, partition: str, keys: pa.ChunkedArray, groups: int, table_version: int, pool: Executor | None = None
    ) -> KeysByGroup:
        """Args: keys: text without nulls; pool: for as many threads as it has, None: in this one."""
        starts = [(chunk, start) for chunk in keys.chunks for start in range(0, len(chunk), _PIECE_ROWS)]
        pieces = [chunk.slice(start, _PIECE_ROWS) for chunk, start in starts]

        def numbers(piece: pa.Array) -> npt.NDArray[np.int32]:
            return group_numbers(partition, piece, groups, table_version)

        return cls(pieces, list(map(numbers, pieces) if pool is None else pool.map(numbers, pieces)))

    def groups(self) -> npt.NDArray[np.int32]:
        """The numbers of file groups that there are keys of."""
        return np.unique(np.concatenate([np.zeros(0, np.int32), *map(np.unique, self.numbers)]))

    def rows(self, group: int) -> tuple[pa.Array, pa.Array]:
        """The rows of a file group, and their keys, as `one_per_key` returns them."""
        rows, keys, first = [np.zeros(0, np.int64)], [pa.array([], pa.string())], 0
        for piece, numbers in zip(self.pieces, self.numbers, strict=True):
            own = np.flatnonzero(numbers == group)
            rows.append(own + first)
            keys.append(piece.take(pa.array(own)))
            first += len(piece)
        return one_per_key(pa.concat_arrays(keys), np.concatenate(rows))


def one_per_key(keys: pa.Array, rows: npt.NDArray[np.int64]) -> tuple[pa.Array, pa.Array]:
    """Rows, whose keys these are, in ascending order of the keys' bytes, of several with one key the last; and their
    keys, binary.
    """
    own = keys.cast(pa.binary())
    if not is_ascending(own):  # as a sorted batch has them
        order = order_of_bytes(own)
        rows, own = rows[order], own.take(pa.array(order))
        is_last = np.append(pc.not_equal(own.slice(0, len(own) - 1), own.slice(1)).to_numpy(False), True)
        if not is_last.all():
            rows, own = rows[is_last], own.filter(pa.array(is_last))
    return pa.array(rows), own


def sorted_by_key(records: pa.Table) -> pa.Table:
    """In ascending order of the keys' bytes, as an HFile has them."""
    keys = records.column("key").combine_chunks().cast(pa.binary())
    return records if is_ascending(keys) else records.take(pa.array(order_of_bytes(keys)))
