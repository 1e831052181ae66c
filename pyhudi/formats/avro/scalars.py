"""Readers of Avro fields that are one value: numbers, text, bytes, decimals, enums.

Each makes a reader for an Avro type that goes into a column of the given Arrow type. A reader raises CorruptFile for
bytes that are no value of its type.
Source: Avro specification 1.11, "Binary encoding", "Logical Types".
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.buffers import buffer_numbers
from pyhudi.errors import CorruptFile
from pyhudi.formats.avro.varint import Buffer, Positions
from pyhudi.formats.avro.walk import Found, Reader, Walk

__all__ = ["boolean", "enum", "fixed", "integer", "number", "variable"]


def integer(arrow: pa.DataType, bits: int) -> Reader:
    """Of `int` (32 bits) and `long` (64)."""

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> Found:
        values, behind = walk.varints(at, limits)
        if not build:
            return None, behind
        if bits == 32:
            narrow = values.astype(np.int32)
            if not np.array_equal(narrow, values):
                raise CorruptFile(f"{walk.where}: an Avro int of more than 32 bits.")
            return _typed(pa.array(narrow), arrow), behind
        return _typed(pa.array(values), arrow), behind

    return read


def _typed(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    return array if array.type == arrow else array.view(arrow)


def number(dtype: np.dtype[np.floating], arrow: pa.DataType) -> Reader:
    """Of `float` and `double`, as they are in memory."""

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> Found:
        behind = walk.check(at + dtype.itemsize, limits)
        if not build:
            return None, behind
        raw = walk.buffer.words[at].astype("<u8")
        values = raw.view("<f8") if dtype.itemsize == 8 else (raw & np.uint64(0xFFFFFFFF)).astype("<u4").view("<f4")
        return _typed(pa.array(values), arrow), behind

    return read


def boolean(walk: Walk, at: Positions, limits: Positions, build: bool) -> Found:
    """Reads `boolean`."""
    behind = walk.check(at + 1, limits)
    return (pa.array(walk.buffer.data[at] != 0) if build else None), behind


def variable(arrow: pa.DataType) -> Reader:
    """Of `string` and `bytes`, also those that are decimals."""

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> Found:
        lengths, starts = walk.varints(at, limits)
        if (lengths < 0).any() or (lengths > limits - starts).any():
            raise CorruptFile(f"{walk.where}: an Avro string or bytes of a length beyond its record.")
        behind = starts + lengths
        if not build:
            return None, behind
        binary = _views(walk.buffer, starts, lengths).cast(pa.binary())
        if pa.types.is_decimal(arrow):
            return _decimal_of_bytes(binary, arrow, walk.where), behind
        if not pa.types.is_string(arrow):
            return binary, behind
        try:
            return binary.cast(pa.string()), behind
        except pa.ArrowInvalid as error:
            raise CorruptFile(f"{walk.where}: an Avro string is not UTF-8 ({error}).") from error

    return read


def _views(buffer: Buffer, starts: Positions, lengths: npt.NDArray[np.int64]) -> pa.Array:
    """Binary views into the buffer: {length, 12 bytes} when short, else {length, prefix, buffer, offset}."""
    views = np.zeros((len(starts), 2), dtype="<u8")
    first, second = buffer.words[starts], buffer.words[starts + 8 if len(starts) else starts]
    keep = np.clip(lengths, 0, 12)
    low, high = np.minimum(keep, 8), np.maximum(keep - 8, 0)
    first &= np.where(low == 8, ~np.uint64(0), (np.uint64(1) << (8 * low).astype(np.uint64)) - np.uint64(1))
    second &= (np.uint64(1) << (8 * high).astype(np.uint64)) - np.uint64(1)
    short = lengths <= 12
    size = lengths.astype(np.uint64)
    views[:, 0] = size | (first << np.uint64(32))
    views[:, 1] = np.where(short, (first >> np.uint64(32)) | (second << np.uint64(32)), starts.astype(np.uint64) << 32)
    data = pa.py_buffer(buffer.bytes)
    return pa.Array.from_buffers(pa.binary_view(), len(starts), [None, pa.py_buffer(views), data])


def fixed(size: int, arrow: pa.DataType) -> Reader:
    """Of `fixed`, also those that are decimals."""

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> Found:
        behind = walk.check(at + size, limits)
        if not build:
            return None, behind
        matrix = walk.buffer.data[at[:, None] + np.arange(size)]
        if pa.types.is_decimal(arrow):
            return _decimals(matrix, arrow, walk.where), behind
        content = pa.py_buffer(np.ascontiguousarray(matrix))
        return pa.Array.from_buffers(pa.binary(size), len(at), [None, content]), behind

    return read


def _decimals(matrix: npt.NDArray[np.uint8], arrow: pa.DataType, where: str) -> pa.Array:
    """Decimals from big-endian two's complement rows of one width."""
    rows, size = matrix.shape
    wide = np.empty((rows, 16), dtype=np.uint8)
    sign = np.where(matrix[:, 0] >= 0x80, 0xFF, 0).astype(np.uint8) if size else np.zeros(rows, np.uint8)
    if size > 16:
        if (matrix[:, : size - 16] != sign[:, None]).any():
            raise CorruptFile(f"{where}: a decimal of more than 128 bits.")
        wide[:] = matrix[:, size - 16 :]
    else:
        wide[:, : 16 - size] = sign[:, None]
        wide[:, 16 - size :] = matrix
    little = np.ascontiguousarray(wide[:, ::-1])
    return pa.Array.from_buffers(arrow, rows, [None, pa.py_buffer(little)])


def _decimal_of_bytes(binary: pa.Array, arrow: pa.DataType, where: str) -> pa.Array:
    """Decimals from byte strings of any width: padded on the left with their sign, one width at a time."""
    lengths = pc.binary_length(binary).to_numpy(zero_copy_only=False)
    out = np.zeros((len(binary), 16), dtype=np.uint8)
    for size in np.unique(lengths):
        rows = np.flatnonzero(lengths == size)
        content = b"".join(cast("list[bytes]", binary.take(pa.array(rows)).to_pylist()))
        matrix = np.frombuffer(content, np.uint8).reshape(len(rows), size)
        decimals = _decimals(matrix, arrow, where)
        out[rows] = buffer_numbers(decimals.buffers()[1], np.uint8)[: 16 * len(rows)].reshape(-1, 16)
    return pa.Array.from_buffers(arrow, len(binary), [None, pa.py_buffer(out)])


def enum(symbols: tuple[str, ...]) -> Reader:
    """Of `enum`, as text."""
    words = pa.array(symbols, pa.string())

    def read(walk: Walk, at: Positions, limits: Positions, build: bool) -> Found:
        values, behind = walk.varints(at, limits)
        if (values < 0).any() or (values >= len(symbols)).any():
            raise CorruptFile(f"{walk.where}: an Avro enum beyond its {len(symbols)} symbols.")
        return (words.take(pa.array(values)) if build else None), behind

    return read
