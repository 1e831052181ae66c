"""Avro's variable-length zigzag integers for whole columns: numpy in, numpy out.

Seven bits per byte, lowest first; the high bit means that more follow; zigzag puts the sign into bit 0. Source: Avro
specification 1.11, "Binary encoding".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyhudi.errors import CorruptFile

__all__ = ["PADDING_BYTES", "Buffer", "decode_varints", "encode_varints", "varint_matrix"]

Positions = npt.NDArray[np.int64]

PADDING_BYTES = 24  # after the data, so that a gather at the last byte stays inside

_HIGH_BITS = np.uint64(0x8080808080808080)
_LOW_MASKS = np.array([(1 << (8 * length)) - 1 for length in range(9)], dtype=np.uint64)


class Buffer:
    """Bytes of many Avro records with views for gathers at any position.

    `content`: uint8, followed by PADDING_BYTES of zeros; `size` is the length without them.
    """

    __slots__ = ("bytes", "data", "size", "words")

    def __init__(self, content: bytes | memoryview) -> None:
        self.size = len(content)
        self.bytes = bytes(content) + bytes(PADDING_BYTES)
        self.data = np.frombuffer(self.bytes, dtype=np.uint8)
        # Stride 1: words[p] is the little-endian 8-byte word that starts at byte p, aligned or not.
        self.words: npt.NDArray[np.uint64] = np.ndarray(
            shape=(len(self.bytes) - 7,), dtype="<u8", buffer=self.bytes, strides=(1,)
        )


def decode_varints(buffer: Buffer, positions: Positions, where: str) -> tuple[npt.NDArray[np.int64], Positions]:
    """Decode one number at each position, and the positions after them. Raises CorruptFile for more than ten bytes."""
    first = buffer.data[positions]
    if not (first & 0x80).any():  # union branches, short texts: one byte each
        small = first.astype(np.int64)
        return (small >> 1) ^ -(small & 1), positions + 1
    words = buffer.words[positions]
    ends = ~words & _HIGH_BITS
    short = ends != 0
    if short.all():
        values, lengths = _decode_short(words, ends)
    else:
        values = np.empty(len(positions), dtype=np.uint64)
        lengths = np.empty(len(positions), dtype=np.int64)
        values[short], lengths[short] = _decode_short(words[short], ends[short])
        values[~short], lengths[~short] = _long_varints(buffer, positions[~short], words[~short], where)
    signed = (values >> np.uint64(1)).view(np.int64) ^ -(values & np.uint64(1)).view(np.int64)
    return signed, positions + lengths


def _decode_short(
    words: npt.NDArray[np.uint64], ends: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.uint64], Positions]:
    """Decode varints of at most eight bytes. `ends` has the high bit of each byte that ends a number."""
    lowest = ends & (~ends + np.uint64(1))
    exponent = (lowest.astype(np.float64).view(np.int64) >> 52) - 1023  # exact: a power of two
    lengths = (exponent >> 3) + 1
    x = words & _LOW_MASKS[lengths] & ~_HIGH_BITS
    x = (x & np.uint64(0x007F007F007F007F)) | ((x & np.uint64(0x7F007F007F007F00)) >> np.uint64(1))
    x = (x & np.uint64(0x00003FFF00003FFF)) | ((x & np.uint64(0x3FFF00003FFF0000)) >> np.uint64(2))
    x = (x & np.uint64(0x000000000FFFFFFF)) | ((x & np.uint64(0x0FFFFFFF00000000)) >> np.uint64(4))
    return x, lengths


def _long_varints(
    buffer: Buffer, positions: Positions, words: npt.NDArray[np.uint64], where: str
) -> tuple[npt.NDArray[np.uint64], Positions]:
    """Return varints of nine or ten bytes: 56 bits from the first word, the rest byte by byte."""
    low, _ = _decode_short(words, np.full(len(words), np.uint64(1) << np.uint64(63)))
    ninth = buffer.data[positions + 8].astype(np.uint64)
    tenth = buffer.data[positions + 9].astype(np.uint64)
    has_tenth = ninth >= 0x80
    if (has_tenth & (tenth > 1)).any():
        raise CorruptFile(f"{where}: an Avro integer of more than 64 bits.")
    values = low | ((ninth & np.uint64(0x7F)) << np.uint64(56))
    values = np.where(has_tenth, values | (tenth << np.uint64(63)), values)
    return values, np.where(has_tenth, 10, 9).astype(np.int64)


def varint_matrix(values: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint8], Positions | None]:
    """Return the bytes of each number in a matrix row, and their count per row; None if every number fills its row."""
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    width = 1
    if len(zigzag):
        width = max(1, -(-int(zigzag.max()).bit_length() // 7))
    if width == 1:
        return zigzag.astype(np.uint8)[:, None], None
    matrix = np.empty((len(zigzag), width), dtype=np.uint8)
    rest = zigzag.copy()
    lengths = np.ones(len(zigzag), dtype=np.int64)
    for column in range(width):
        low = (rest & np.uint64(0x7F)).astype(np.uint8)
        rest >>= np.uint64(7)
        more = rest != 0
        matrix[:, column] = low | (more.astype(np.uint8) << 7)
        lengths += more
    return matrix, lengths


def encode_varints(values: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """Encode the concatenated bytes of all numbers, and their offsets (one more than the numbers)."""
    matrix, lengths = varint_matrix(values)
    offsets = np.arange(len(values) + 1, dtype=np.int32)
    if lengths is None:
        return matrix.ravel(), offsets
    np.cumsum(lengths, out=offsets[1:])
    return matrix[np.arange(matrix.shape[1]) < lengths[:, None]], offsets
