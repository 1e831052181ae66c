"""Pieces of Avro records, each some bytes per row, and how the pieces of a row become one binary.

Arrow joins pieces in C++, at a price for each piece of each row that is many times that of a few bytes. So short pieces
that follow each other (numbers, the branches of unions, lengths of texts) are put together in one matrix before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.formats.avro.varint import varint_matrix

__all__ = ["NOTHING", "Piece", "Short", "joined", "numbers", "varints"]

NOTHING = pa.scalar(b"", pa.binary())

_MATRIX_BYTES = 96  # of a row: what more columns have goes into the next matrix, so that memory stays small


@dataclass(frozen=True, slots=True)
class Short:
    """A few bytes per row. `lengths`: so many bytes of the beginning of each row of `matrix`; None: all of them."""

    matrix: npt.NDArray[np.uint8]
    lengths: npt.NDArray[np.int64] | None = None


# The same bytes for all rows, a few for each, or a binary array without nulls.
Piece: TypeAlias = bytes | Short | pa.Array


def varints(values: npt.NDArray[np.int64]) -> Short:
    """Avro's integers."""
    return Short(*varint_matrix(values))


def numbers(values: npt.NDArray[np.generic]) -> Short:
    """Numbers of one width, little-endian."""
    content = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False)
    return Short(content.view(np.uint8).reshape(len(values), values.dtype.itemsize))


def joined(pieces: Iterable[Piece], rows: int) -> pa.Array:
    """Binary array without nulls: of each row its pieces, in their order."""
    arrays = list(_arrays(pieces, rows))
    if len(arrays) == 1:
        return arrays[0]
    return pc.binary_join_element_wise(*arrays, NOTHING) if arrays else _binary(np.zeros((rows, 0), np.uint8), None)


def _arrays(pieces: Iterable[Piece], rows: int) -> Iterator[pa.Array]:
    run: list[bytes | Short] = []
    width = 0
    for piece in pieces:
        own = _MATRIX_BYTES if isinstance(piece, pa.Array) else _width(piece)
        if run and width + own > _MATRIX_BYTES:
            yield _together(run, rows, width)
            run, width = [], 0
        if isinstance(piece, pa.Array):
            if run:
                yield _together(run, rows, width)
                run, width = [], 0
            yield piece
        elif own:
            run.append(piece)
            width += own
    if run:
        yield _together(run, rows, width)


def _width(piece: bytes | Short) -> int:
    return len(piece) if isinstance(piece, bytes) else int(piece.matrix.shape[1])


def _together(run: Sequence[bytes | Short], rows: int, width: int) -> pa.Array:
    """One binary array of pieces that follow each other."""
    matrix = np.empty((rows, width), np.uint8)
    there: npt.NDArray[np.bool_] | None = None
    first = 0
    for piece in run:
        behind = first + _width(piece)
        if isinstance(piece, bytes):
            matrix[:, first:behind] = np.frombuffer(piece, np.uint8)
        else:
            matrix[:, first:behind] = piece.matrix
            if piece.lengths is not None:
                there = np.ones((rows, width), np.bool_) if there is None else there
                there[:, first:behind] = np.arange(behind - first) < piece.lengths[:, None]
        first = behind
    return _binary(matrix, there)


def _binary(matrix: npt.NDArray[np.uint8], there: npt.NDArray[np.bool_] | None) -> pa.Array:
    """A row's bytes, those that are there."""
    rows, width = matrix.shape
    offsets = np.zeros(rows + 1, np.int32)
    lengths = np.full(rows, width) if there is None else np.count_nonzero(there, axis=1)
    np.cumsum(lengths, out=offsets[1:])
    content = matrix.reshape(-1) if there is None else matrix.reshape(-1)[there.reshape(-1)]
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(content)])
