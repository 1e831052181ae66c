"""Entries of a data block: keys and values, sorted by the bytes of the key.

    key length i32 | value length i32 | row length i16 | row | 10 bytes of HBase | value | 1 byte of HBase

Source: docs/formats/hfile.md, "Entries".
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.buffers import buffer_numbers
from pyhudi.errors import CorruptFile
from pyhudi.formats.hfile.keys import KeyColumn, Places, pieces

__all__ = [
    "ENTRY_OVERHEAD",
    "KEY_END",
    "MAX_KEY_BYTES",
    "Entries",
    "decode_entries",
    "decode_together",
    "encode_entries",
    "encode_entry",
    "first_key",
    "full_key",
    "gathered",
    "joined",
    "value_lengths",
]

MAX_KEY_BYTES = 32767
GATHER_BYTES = 16 << 20  # entries are combined up to this size: enough that a decoder's start costs nothing
# Bodies between these sizes are split at the suffixes of their keys, which needs a copy. For smaller ones a loop is as
# fast; larger ones have few entries with large values.
_COLUMNS_FROM_BYTES, _COLUMNS_TO_BYTES = 4 << 10, 64 << 20
_LENGTHS = struct.Struct(">iih")
_STEP = struct.Struct(">ii")
_KEY_OVERHEAD = 2 + 10
KEY_END = b"\x00" + (2**63 - 1).to_bytes(8, "big") + b"\x04"  # no family, the greatest timestamp, a put
_ROW = struct.Struct(">h")
_MEMSTORE_TIME = b"\x00"
ENTRY_OVERHEAD = _LENGTHS.size + len(KEY_END) + len(_MEMSTORE_TIME)  # bytes of an entry without its key and value


@dataclass(frozen=True)
class Entries:
    """Entries of one block, or combined ones: positions in `content`, in the order of the keys."""

    content: bytes
    key_starts: Places
    key_ends: Places
    value_starts: Places
    value_ends: Places

    def __len__(self) -> int:
        return len(self.key_starts)

    @property
    def size_bytes(self) -> int:
        """Their size in memory."""
        return len(self.content) + 4 * self.key_starts.nbytes

    @property
    def key_column(self) -> KeyColumn:
        """The keys, without a copy."""
        return KeyColumn(self.content, self.key_starts, self.key_ends)

    @property
    def keys(self) -> list[bytes]:
        """The keys as a list, in their order: for a few of them."""
        places = zip(self.key_starts.tolist(), self.key_ends.tolist(), strict=True)
        return [self.content[start:end] for start, end in places]

    def key_array(self) -> pa.Array:
        """Return the keys, binary."""
        return self.key_column.array()

    def values(self) -> pa.Array:
        """Return the values, binary."""
        return pieces(self.content, [self.value_starts, self.value_ends])

    def value(self, row: int) -> bytes:
        """Return one value."""
        return self.content[self.value_starts[row] : self.value_ends[row]]

    def start(self, row: int) -> int:
        """Return where an entry of a block begins, lengths included; after the last one, the content's end."""
        return int(self.key_starts[row]) - _LENGTHS.size if row < len(self) else len(self.content)

    def find(self, key: bytes) -> int | None:
        """Find the row of a key, the first of several, None when it is missing."""
        keys = self.key_column
        row = bisect_left(keys, key)
        return row if row < len(keys) and keys[row] == key else None

    def select(self, rows: Places | slice) -> Entries:
        """Return the entries of these ascending rows, in the same content."""
        places = (self.key_starts, self.key_ends, self.value_starts, self.value_ends)
        return Entries(self.content, *(place[rows] for place in places))


def gathered(parts: Iterable[Entries], limit_bytes: int = GATHER_BYTES) -> Iterator[Entries]:
    """Combine the entries in few parts, with no other bytes in the content.

    Entries of a lookup lie in up to as many blocks as keys: combined, they are decoded at once, and the blocks are
    freed.
    Args:    limit_bytes: a part is complete when it reaches this size.
    """
    held: list[pa.Array] = []
    held_bytes = 0
    for part in parts:
        piece = pieces(part.content, [part.key_starts, part.key_ends, part.value_starts, part.value_ends])
        held.append(piece)
        held_bytes += piece.nbytes
        if held_bytes >= limit_bytes:
            yield _joined(held)
            held, held_bytes = [], 0
    if held:
        yield _joined(held)


def _joined(arrays: list[pa.Array]) -> Entries:
    both = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
    _, offsets, content = both.buffers()
    places = buffer_numbers(offsets, np.int32, len(both) + 1, both.offset * 4).astype(np.int64)
    data = content.to_pybytes() if content is not None else b""
    return Entries(data, places[:-1:2], places[1::2], places[1::2], places[2::2])


def full_key(key: bytes) -> bytes:
    """Return a key in HBase's form: the length of the row, the row, and a constant suffix."""
    return _ROW.pack(len(key)) + key + KEY_END


def encode_entry(key: bytes, value: bytes) -> bytes:
    """Encode one entry."""
    lengths = _LENGTHS.pack(len(key) + _KEY_OVERHEAD, len(value), len(key))
    return b"".join((lengths, key, KEY_END, value, _MEMSTORE_TIME))


def encode_entries(keys: pa.Array, values: pa.Array) -> pa.Buffer:
    """Encode the concatenated entries of keys and values (binary, no nulls; values may be a dictionary)."""
    suffix, end, between = (pa.scalar(part, pa.binary()) for part in (KEY_END, _MEMSTORE_TIME, b""))
    tails: list[pa.Array | pa.Scalar] = [suffix, values, end]
    if isinstance(values, pa.DictionaryArray):
        ends = pc.binary_join_element_wise(suffix, values.dictionary, end, between)
        tails = [ends.take(values.indices)]
    heads = np.empty(len(keys), np.dtype([("key", ">i4"), ("value", ">i4"), ("row", ">i2")]))
    row_lengths = pc.binary_length(keys).to_numpy()
    heads["key"], heads["row"] = row_lengths + _KEY_OVERHEAD, row_lengths
    heads["value"] = value_lengths(values)
    head_bytes = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(_LENGTHS.size), len(keys), [None, pa.py_buffer(heads.tobytes())]
    ).cast(pa.binary())
    entries = pc.binary_join_element_wise(head_bytes, keys, *tails, between)
    content = entries.buffers()[2]
    return pa.py_buffer(b"") if content is None else content


def value_lengths(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return the number of bytes of each value: binary, or a dictionary of binary."""
    if isinstance(values, pa.DictionaryArray):
        return np.take(_lengths_of(values.dictionary), values.indices.to_numpy())
    return _lengths_of(values)


def _lengths_of(column: pa.Array) -> npt.NDArray[np.int64]:
    lengths: npt.NDArray[np.int32] = pc.binary_length(column).to_numpy()
    return lengths.astype(np.int64)


def decode_entries(content: bytes, where: str) -> Entries:
    """Decode the entries of a data block's body. Raises CorruptFile."""
    if _COLUMNS_FROM_BYTES <= len(content) <= _COLUMNS_TO_BYTES:
        entries = _of_one_length(content)
        if entries is not None:
            return entries
    return _one_by_one(content, where)


def first_key(body: bytes, start: int = 0) -> bytes:
    """Return the key of the entry that begins at `start` in the body of a block."""
    _, _, row_length = _LENGTHS.unpack_from(body, start)
    return body[start + _LENGTHS.size : start + _LENGTHS.size + row_length]


def decode_together(bodies: Sequence[bytes]) -> Entries | None:
    """Decode the entries of several data blocks, in order; None if the blocks can only be decoded one by one."""
    content = b"".join(bodies)
    if not _COLUMNS_FROM_BYTES <= len(content) <= _COLUMNS_TO_BYTES:
        return None
    entries = _of_one_length(content)
    if entries is None:
        return None
    first = np.cumsum([0, *map(len, bodies[:-1])])
    starts = entries.key_starts - _LENGTHS.size  # ascending
    at = np.searchsorted(starts, first)
    goes_over = at[-1] >= len(starts) or (starts[at] != first).any()  # an entry extends beyond its block
    return None if goes_over else entries


def joined(parts: Sequence[Entries]) -> Entries:
    """Return the entries of several data blocks, in order."""
    if len(parts) == 1:
        return parts[0]
    first = np.cumsum([0, *(len(part.content) for part in parts[:-1])])

    def places(name: str) -> Places:
        return np.concatenate([getattr(part, name) + at for part, at in zip(parts, first, strict=True)])

    return Entries(
        b"".join(part.content for part in parts),
        places("key_starts"), places("key_ends"), places("value_starts"), places("value_ends"),
    )  # fmt: skip


def _of_one_length(content: bytes) -> Entries | None:
    """Return the entries of a body whose keys have one length, without a loop; None for another body.

    HBase's suffix ends each key, so its positions locate the entries. If it also occurs in a value, or lengths are
    damaged, some entry does not end where the next one begins.
    """
    if len(content) < _LENGTHS.size:
        return None
    row_length = _LENGTHS.unpack_from(content)[2]
    if row_length < 0 or not content.startswith(KEY_END, _LENGTHS.size + row_length):
        return None
    between = pc.split_pattern(pa.array([content], pa.binary()), KEY_END).values
    offsets = buffer_numbers(between.buffers()[1], np.int32, len(between) + 1, between.offset * 4)
    key_ends = offsets[1:-1].astype(np.int64) + len(KEY_END) * np.arange(len(between) - 1)
    starts = key_ends - row_length - _LENGTHS.size
    if starts[0] != 0 or (starts < 0).any():
        return None
    key_lengths, value_lengths, row_lengths = _lengths(content, starts)
    value_starts = key_ends + len(KEY_END)
    value_ends = value_starts + value_lengths
    fits = (
        (row_lengths == row_length).all()
        and (key_lengths == row_length + _KEY_OVERHEAD).all()
        and (value_lengths >= 0).all()
        and np.array_equal(value_ends + len(_MEMSTORE_TIME), np.append(starts[1:], len(content)))
    )
    return Entries(content, starts + _LENGTHS.size, key_ends, value_starts, value_ends) if fits else None


def _one_by_one(content: bytes, where: str) -> Entries:
    offsets = array("q")
    position, size, unpack, note = 0, len(content), _STEP.unpack_from, offsets.append
    least = size - _LENGTHS.size
    # A loop over entries: each one determines where the next one starts. Other checks handle all at once.
    while 0 <= position <= least:
        note(position)
        key_length, value_length = unpack(content, position)
        if key_length < _ROW.size or value_length < 0:
            break
        position += _STEP.size + key_length + value_length + len(_MEMSTORE_TIME)
    if not offsets and size:
        raise CorruptFile(f"{where}: the block ends within entry 0.")
    starts = np.frombuffer(offsets, np.int64)
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
    """Return the length of key, value and row of the entries that start there."""
    if not len(starts):
        return starts, starts, starts
    heads = np.lib.stride_tricks.sliding_window_view(np.frombuffer(content, np.uint8), _LENGTHS.size)[starts]
    key, value, row = (
        np.ascontiguousarray(heads[:, first:end]).view(kind)[:, 0].astype(np.int64)
        for first, end, kind in ((0, 4, ">i4"), (4, 8, ">i4"), (8, 10, ">i2"))
    )
    return key, value, row
