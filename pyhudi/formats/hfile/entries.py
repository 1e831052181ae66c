"""Entries of a data block: keys and values, sorted by the bytes of the key.

    key length i32 | value length i32 | row length i16 | row | 10 bytes of HBase | value | 1 byte of HBase

Source: docs/formats/hfile.md, "Entries".
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import CorruptFile

__all__ = ["MAX_KEY_BYTES", "Entries", "decode_entries", "encode_entry", "full_key"]

MAX_KEY_BYTES = 32767
_LENGTHS = struct.Struct(">iih")
_STEP = struct.Struct(">ii")
_KEY_OVERHEAD = 2 + 10
_SUFFIX = b"\x00" + (2**63 - 1).to_bytes(8, "big") + b"\x04"  # no family, the greatest timestamp, a put
_ROW = struct.Struct(">h")
_MEMSTORE_TIME = b"\x00"

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Entries:
    """The entries of one block: places in its `content`."""

    content: bytes
    key_starts: Places
    key_ends: Places
    value_starts: Places
    value_ends: Places

    def __len__(self) -> int:
        return len(self.key_starts)

    @cached_property
    def keys(self) -> list[bytes]:
        """The keys, in their order."""
        return _cut(self.content, self.key_starts, self.key_ends)

    def values(self) -> pa.Array:
        """The values, binary."""
        return pa.array(_cut(self.content, self.value_starts, self.value_ends), pa.binary())

    def value(self, row: int) -> bytes:
        """One value."""
        return self.content[self.value_starts[row] : self.value_ends[row]]

    def find(self, key: bytes) -> int | None:
        """The row of a key, None when it is not here."""
        row = bisect_left(self.keys, key)
        return row if row < len(self.keys) and self.keys[row] == key else None


def _cut(content: bytes, starts: Places, ends: Places) -> list[bytes]:
    return [content[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def full_key(key: bytes) -> bytes:
    """A key as HBase has it: the length of the row, the row, and what never varies here."""
    return _ROW.pack(len(key)) + key + _SUFFIX


def encode_entry(key: bytes, value: bytes) -> bytes:
    """One entry."""
    lengths = _LENGTHS.pack(len(key) + _KEY_OVERHEAD, len(value), len(key))
    return b"".join((lengths, key, _SUFFIX, value, _MEMSTORE_TIME))


def decode_entries(content: bytes, where: str) -> Entries:
    """The entries of a data block's body. Raises CorruptFile."""
    found = array("q")
    position, size, unpack, note = 0, len(content), _STEP.unpack_from, found.append
    least = size - _LENGTHS.size
    # A loop over entries: each one says where the next one starts. What else they say is checked for all at once.
    while 0 <= position <= least:
        note(position)
        key_length, value_length = unpack(content, position)
        if key_length < _ROW.size or value_length < 0:
            break
        position += _STEP.size + key_length + value_length + len(_MEMSTORE_TIME)
    if not found and size:
        raise CorruptFile(f"{where}: the block ends within entry 0.")
    starts = np.frombuffer(found, np.int64)
    key_lengths, value_lengths, row_lengths = _lengths(content, starts)
    keys = starts + _LENGTHS.size
    key_ends = keys + row_lengths
    values = starts + _STEP.size + key_lengths
    value_ends = values + value_lengths
    wrong = (row_lengths < 0) | (value_lengths < 0) | (values < key_ends) | (value_ends >= size)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise CorruptFile(
            f"{where}: entry {row} with a key of {key_lengths[row]} and a value of {value_lengths[row]} bytes does not "
            f"fit into its block."
        )
    if position != size:
        raise CorruptFile(f"{where}: the block ends within entry {len(starts)}.")
    return Entries(content, keys, key_ends, values, value_ends)


def _lengths(content: bytes, starts: Places) -> tuple[Places, Places, Places]:
    """Length of key, value and row of the entries that start there."""
    if not len(starts):
        return starts, starts, starts
    heads = np.lib.stride_tricks.sliding_window_view(np.frombuffer(content, np.uint8), _LENGTHS.size)[starts]
    key, value, row = (
        np.ascontiguousarray(heads[:, first:end]).view(kind)[:, 0].astype(np.int64)
        for first, end, kind in ((0, 4, ">i4"), (4, 8, ">i4"), (8, 10, ">i2"))
    )
    return key, value, row
