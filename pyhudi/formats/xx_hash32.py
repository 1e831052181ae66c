"""XXH32 with seed 0, for whole columns of text. Source: the xxHash specification; spec, metadata and indexes 4.2."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.formats.buffers import buffer_numbers

__all__ = ["xx_hash32"]

_P1, _P2, _P3, _P4, _P5 = (np.uint32(p) for p in (2654435761, 2246822519, 3266489917, 668265263, 374761393))
_STRIPE = 16
_BLOCK = 1 << 16  # strings hashed together: bounds the memory for their bytes

Words = npt.NDArray[np.uint32]


def xx_hash32(strings: pa.Array | pa.ChunkedArray) -> Words:
    """The hash of the UTF-8 bytes of each string; a null counts as an empty one."""
    if isinstance(strings, pa.ChunkedArray):
        parts = [xx_hash32(chunk) for chunk in strings.chunks]
        return np.concatenate(parts) if parts else np.zeros(0, np.uint32)
    if len(strings) == 0:
        return np.zeros(0, np.uint32)
    column = pc.fill_null(strings, "").cast(pa.large_string())
    _, offsets_buffer, data_buffer = column.buffers()
    offsets = buffer_numbers(offsets_buffer, np.int64)[column.offset : column.offset + len(column) + 1]
    data = buffer_numbers(data_buffer, np.uint8)
    lengths = np.diff(offsets)
    hashes = np.empty(len(column), np.uint32)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        for first in range(0, len(rows), _BLOCK):
            block = rows[first : first + _BLOCK]
            places = offsets[block][:, None] + np.arange(length)
            hashes[block] = _hash(data[places])
    return hashes


def _hash(texts: npt.NDArray[np.uint8]) -> Words:
    """Hashes of texts of one length: a row of bytes for each."""
    count, length = texts.shape
    at = 0
    with np.errstate(over="ignore"):
        if length >= _STRIPE:
            hashes, at = _stripes(texts)
        else:
            hashes = np.full(count, _P5)
        hashes = hashes + np.uint32(length)
        while at + 4 <= length:
            hashes = _rotated(hashes + _lane(texts, at) * _P3, 17) * _P4
            at += 4
        for place in range(at, length):
            hashes = _rotated(hashes + texts[:, place].astype(np.uint32) * _P5, 11) * _P1
        hashes = (hashes ^ (hashes >> np.uint32(15))) * _P2
        hashes = (hashes ^ (hashes >> np.uint32(13))) * _P3
        mixed: Words = hashes ^ (hashes >> np.uint32(16))
    return mixed


def _stripes(texts: npt.NDArray[np.uint8]) -> tuple[Words, int]:
    """The hash of the whole stripes of 16 bytes, and where they end."""
    count, length = texts.shape
    zero = np.zeros(count, np.uint32)
    sums = [zero + _P1 + _P2, zero + _P2, zero, zero - _P1]
    at = 0
    while at + _STRIPE <= length:
        for number in range(4):
            sums[number] = _rotated(sums[number] + _lane(texts, at + 4 * number) * _P2, 13) * _P1
        at += _STRIPE
    turns = (1, 7, 12, 18)
    merged = zero
    for total, turn in zip(sums, turns, strict=True):
        merged = merged + _rotated(total, turn)
    return merged, at


def _lane(texts: npt.NDArray[np.uint8], at: int) -> Words:
    """Four bytes of each text as a little-endian number."""
    return np.ascontiguousarray(texts[:, at : at + 4]).view("<u4")[:, 0].astype(np.uint32, copy=False)


def _rotated(words: Words, bits: int) -> Words:
    rotated: Words = (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
    return rotated
