"""Bloom filters in the footers of base files, bit for bit as Hudi writes them.

A row of bits is big-endian `int32 -1 | int32 hashes | int8 1 | int32 bits | bits, lowest bit of a byte first`. SIMPLE
is one row; DYNAMIC_V0 is `int32 -1 | int32 hashes | int8 1 | int32 bits | int32 keys per row | int32 keys in the last
row | int32 rows` and then whole rows. Source: docs/formats/base-files.md, "Bloom filter".

The hash is Hadoop's 32-bit Murmur variant, applied in a chain: each result seeds the next pass over the whole key.
Mixing the words of a key does not depend on the seed, so it is done once for all passes, for a block of keys of one
length.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.buffers import buffer_numbers
from pyhudi.errors import ConfigError, CorruptFile

__all__ = ["BLOOM_KINDS", "DYNAMIC_V0", "SIMPLE", "BloomFilter"]

SIMPLE = "SIMPLE"
DYNAMIC_V0 = "DYNAMIC_V0"
BLOOM_KINDS = (SIMPLE, DYNAMIC_V0)

_BLOCK_KEYS = 8192  # a block of mixed words and positions stays in the second level cache
_ROW_HEADER = struct.Struct(">iibi")
_DYNAMIC_HEADER = struct.Struct(">iibiiii")
_VERSION = -1
_MURMUR = 1
_M = np.uint32(0x5BD1E995)
_MAX_BITS = 1 << 31
_MAX_ROWS = 1 << 16
# Rows times hashes, the work for one key. A filter of 100,000 keys at 60,000 a row and 1e-9 has 60; 16 kB can claim a
# million.
_MAX_PROBES = 1 << 12
_JAVA_INT = 2**31 - 1  # the count of a full filter stays at it: it only selects the next row

Bits = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]


class BloomFilter:
    """A set of record keys that answers "no" or "maybe".

    Keys are added in the order of the file: a dynamic filter starts a new row after `keys_per_row` keys until it may
    hold `max_entries`, then distributes further keys over its rows in turn.
    """

    def __init__(self, num_entries: int, fpp: float, kind: str = DYNAMIC_V0, max_entries: int = 100_000) -> None:
        """An empty filter for `num_entries` keys a row at a false-positive probability of `fpp`.

        Raises ConfigError for an unknown kind or invalid numbers.
        """
        if kind not in BLOOM_KINDS:
            raise ConfigError(f"Unknown bloom filter type {kind!r}; known: {', '.join(BLOOM_KINDS)}.")
        if num_entries < 1 or not 0.0 < fpp < 1.0:
            raise ConfigError(
                f"A bloom filter needs at least 1 entry and a probability between 0 and 1, "
                f"found {num_entries} and {fpp}."
            )
        bits = math.ceil(num_entries * -math.log(fpp) / math.log(2) ** 2)
        if bits >= _MAX_BITS:
            raise ConfigError(f"A bloom filter of {num_entries} entries at {fpp} needs {bits} bits, more than 2^31.")
        self.kind = kind
        self.num_bits = bits
        self.num_hashes = math.ceil(math.log(2) * bits / num_entries)
        self.keys_per_row = num_entries
        self.max_entries = max_entries
        self._rows: list[Bits] = [np.zeros((bits + 7) // 8, np.uint8)]
        self._keys_in_last_row = 0  # keeps counting when the filter is full, as Hudi's does
        self._dealt = -1  # keys distributed over the rows since the filter became full; -1: not full yet

    @classmethod
    def build(cls, keys: pa.Array, num_entries: int, fpp: float, kind: str, max_entries: int) -> BloomFilter:
        """Return a filter of `keys` (string array, no nulls), added in this order."""
        bloom = cls(num_entries, fpp, kind, max_entries)
        bloom.add(keys)
        return bloom

    @property
    def num_rows(self) -> int:
        return len(self._rows)

    @property
    def keys_added(self) -> int | None:
        """The number of keys ever added; None for a SIMPLE filter, which does not record it."""
        if self.kind == SIMPLE:
            return None
        return (len(self._rows) - 1) * self.keys_per_row + self._keys_in_last_row

    def same_shape(self, other: BloomFilter) -> bool:
        """True when keys may be added to either with the same effect."""
        mine, theirs = (
            (bloom.kind, bloom.num_bits, bloom.num_hashes, bloom.keys_per_row if bloom.kind == DYNAMIC_V0 else 0)
            for bloom in (self, other)
        )
        return mine == theirs

    def add(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Add `keys`: strings without nulls."""
        if isinstance(keys, pa.ChunkedArray):
            # A row of bits is unpacked for each run of keys, so few long runs are better than many chunks.
            keys = (
                keys.chunks[0] if keys.num_chunks == 1 else pa.concat_arrays(keys.chunks or [pa.array([], pa.string())])
            )
        start = 0
        while start < len(keys):
            start += self._add_run(keys.slice(start))

    def _add_run(self, keys: pa.Array) -> int:
        """Add the keys for the current row; return their number."""
        if self.kind == SIMPLE:
            self._set_bits(0, keys)
            return len(keys)
        if self._dealt < 0 and self._keys_in_last_row >= self.keys_per_row:
            if len(self._rows) * self.keys_per_row < self.max_entries:
                self._rows.append(np.zeros_like(self._rows[0]))
                self._keys_in_last_row = 0
            else:
                self._dealt = 0
                self._set_bits(0, keys.slice(0, 1))  # the first key after the filter is full goes to the first row
                self._keys_in_last_row += 1
                return 1
        if self._dealt < 0:
            run = keys.slice(0, self.keys_per_row - self._keys_in_last_row)
            self._set_bits(len(self._rows) - 1, run)
            self._keys_in_last_row += len(run)
            return len(run)
        turns = (np.arange(len(keys)) + self._dealt) % len(self._rows)
        for row in range(len(self._rows)):
            self._set_bits(row, keys if len(self._rows) == 1 else keys.take(pa.array(np.flatnonzero(turns == row))))
        self._dealt += len(keys)
        self._keys_in_last_row += len(keys)
        return len(keys)

    def _set_bits(self, row: int, keys: pa.Array) -> None:
        if len(keys) == 0:
            return
        flags = np.unpackbits(self._rows[row], bitorder="little")
        for _, block in _blocks_by_length(keys):
            for positions in _positions(block, self.num_bits, self.num_hashes):
                flags[positions.astype(np.intp)] = 1  # indices of its own type cost numpy two thirds
        self._rows[row] = np.packbits(flags, bitorder="little")

    def might_contain(self, keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Return for each key (strings without nulls) whether it may have been added; False if it certainly was not.

        A filter with many rows and hashes, which costs more than reading the keys, returns True for all.
        """
        if isinstance(keys, pa.ChunkedArray):
            parts = [self.might_contain(chunk) for chunk in keys.chunks]
            return np.concatenate(parts) if parts else np.zeros(0, np.bool_)
        if len(self._rows) * self.num_hashes > _MAX_PROBES:
            return np.ones(len(keys), np.bool_)
        answer = np.zeros(len(keys), np.bool_)
        rows = [np.unpackbits(bits, bitorder="little").view(np.bool_) for bits in self._rows]
        for at, block in _blocks_by_length(keys):
            open_ = np.arange(len(at))  # keys of the block that no row so far contains
            for flags in rows:
                hits = _probe(
                    block.select(open_) if len(open_) < len(at) else block, flags, self.num_bits, self.num_hashes
                )
                answer[at[open_[hits]]] = True
                open_ = np.setdiff1d(open_, open_[hits], assume_unique=True)
                if len(open_) == 0:
                    break
        return answer

    def to_base64(self) -> str:
        """Return the text for the footer."""
        out = bytearray()
        if self.kind == DYNAMIC_V0:
            out += _DYNAMIC_HEADER.pack(
                _VERSION,
                self.num_hashes,
                _MURMUR,
                self.num_bits,
                self.keys_per_row,
                min(self._keys_in_last_row, _JAVA_INT),
                len(self._rows),
            )
        for bits in self._rows:
            out += _ROW_HEADER.pack(_VERSION, self.num_hashes, _MURMUR, self.num_bits)
            out += bits.tobytes()
        return base64.b64encode(out).decode("ascii")

    @classmethod
    def from_base64(cls, text: str, type_code: str | None, max_entries: int = 100_000) -> BloomFilter:
        """Decode a footer's filter. `type_code` is the footer's, absent (None) means SIMPLE.

        `max_entries` is not in the bytes; it matters only for keys added later. Raises CorruptFile.
        """
        kind = type_code or SIMPLE
        if kind not in BLOOM_KINDS:
            raise CorruptFile(f"Bloom filter of type {kind!r}; known: {', '.join(BLOOM_KINDS)}.")
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise CorruptFile(f"Bloom filter is not base64: {error}.") from error
        bloom = object.__new__(cls)
        bloom.kind = kind
        bloom.max_entries = max_entries
        bloom._dealt = -1
        bloom._keys_in_last_row = 0
        rows, at = 1, 0
        if kind == DYNAMIC_V0:
            bloom.num_hashes, bloom.num_bits, (keys_per_row, in_last_row, rows) = _header(data, 0, _DYNAMIC_HEADER)
            if keys_per_row < 1 or in_last_row < 0 or not 1 <= rows <= _MAX_ROWS:
                raise CorruptFile(
                    f"Bloom filter header: {keys_per_row} keys a row, {in_last_row} in the last of {rows} rows; "
                    f"expected at least 1, at least 0, and 1 to {_MAX_ROWS}."
                )
            bloom.keys_per_row, bloom._keys_in_last_row = keys_per_row, in_last_row
            at = _DYNAMIC_HEADER.size
        else:
            bloom.num_hashes, bloom.num_bits, _ = _header(data, 0, _ROW_HEADER)
            bloom.keys_per_row = max(1, round(bloom.num_bits * math.log(2) / bloom.num_hashes))
        bloom._rows = _rows_of_bits(data, at, rows, bloom.num_hashes, bloom.num_bits)
        if kind == DYNAMIC_V0 and bloom._keys_in_last_row > bloom.keys_per_row:
            bloom._dealt = bloom._keys_in_last_row - bloom.keys_per_row - 1
        return bloom


def _rows_of_bits(data: bytes, at: int, rows: int, hashes: int, bits: int) -> list[Bits]:
    """Return the bits of each row; rows follow each other from byte `at` to the end, each after a header."""
    size = (bits + 7) // 8
    expected = at + rows * (_ROW_HEADER.size + size)
    if len(data) != expected:
        raise CorruptFile(f"Bloom filter of {rows} rows of {bits} bits: expected {expected} bytes, found {len(data)}.")
    arrays = []
    for _ in range(rows):
        if _header(data, at, _ROW_HEADER)[:2] != (hashes, bits):
            raise CorruptFile(f"Bloom filter at byte {at}: the row's header differs from the filter's.")
        at += _ROW_HEADER.size
        arrays.append(np.frombuffer(data, np.uint8, size, at))
        at += size
    return arrays


def _header(data: bytes, at: int, layout: struct.Struct) -> tuple[int, int, tuple[int, ...]]:
    """Return hashes, bits and further numbers of a header. Refuses values that Hudi never writes."""
    if len(data) < at + layout.size:
        raise CorruptFile(f"Bloom filter of {len(data)} bytes: expected a header of {layout.size} bytes at byte {at}.")
    version, hashes, hash_type, bits, *rest = layout.unpack_from(data, at)
    if version != _VERSION or hash_type != _MURMUR or not 1 <= hashes <= 1000 or bits < 1:
        raise CorruptFile(
            f"Bloom filter at byte {at}: expected version -1, hash type 1, 1 to 1000 hashes and at least 1 bit, "
            f"found {version}, {hash_type}, {hashes}, {bits}."
        )
    return hashes, bits, tuple(rest)


class _Block:
    """Keys of one byte length: their words mixed (words × keys), their tails, and the length."""

    __slots__ = ("length", "tail", "words")

    def __init__(self, length: int, words: Words, tail: Words | None) -> None:
        self.length, self.words, self.tail = length, words, tail

    def select(self, at: npt.NDArray[np.intp]) -> _Block:
        return _Block(self.length, self.words[:, at], None if self.tail is None else self.tail[at])


def _blocks_by_length(keys: pa.Array) -> Iterator[tuple[npt.NDArray[np.intp], _Block]]:
    """Yield blocks of at most `_BLOCK_KEYS` keys of one byte length, each with the positions of its keys in `keys`."""
    data, starts, lengths = _utf8(keys)
    if len(starts) == 0:
        return
    if lengths.min() == lengths.max():
        groups = [np.arange(len(lengths))]
    else:
        order = np.argsort(lengths, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1)
    for group in groups:
        length = int(lengths[group[0]])
        for first in range(0, len(group), _BLOCK_KEYS):
            at = group[first : first + _BLOCK_KEYS]
            yield at, _mix(data, starts[at], length)


def _utf8(keys: pa.Array) -> tuple[Bits, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return UTF-8 bytes of all keys, and the start and length of each key."""
    if keys.null_count:
        raise ConfigError(f"Record keys must not be null, found {keys.null_count} nulls.")
    if not pa.types.is_string(keys.type):
        keys = pc.cast(keys, pa.string())
    _, offsets_buffer, data_buffer = keys.buffers()
    if len(keys) == 0:
        return np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64)
    offsets = buffer_numbers(offsets_buffer, np.int32, len(keys) + 1, keys.offset * 4).astype(np.int64)
    return buffer_numbers(data_buffer, np.uint8), offsets[:-1], np.diff(offsets)


def _mix(data: Bits, starts: npt.NDArray[np.int64], length: int) -> _Block:
    """Return the part of Murmur without the seed: words multiplied and shifted, tail bytes mixed in with their sign."""
    count, tail_bytes = length // 4, length % 4
    if length == 0:
        return _Block(0, np.zeros((0, len(starts)), np.uint32), None)
    if len(starts) > 1 and starts[-1] - starts[0] == (len(starts) - 1) * length and (np.diff(starts) == length).all():
        chars = data[starts[0] : starts[0] + len(starts) * length].reshape(len(starts), length)
    else:
        chars = data[starts[:, None] + np.arange(length)]
    words = np.ascontiguousarray(chars[:, : count * 4]).view("<u4").T.astype(np.uint32, order="C")
    words *= _M
    words ^= words >> np.uint32(24)
    words *= _M
    if tail_bytes == 0:
        return _Block(length, words, None)
    signed = chars.view(np.int8)[:, length - tail_bytes :].astype(np.int32).view(np.uint32)
    tail = signed[:, -1].copy()  # the last byte goes lowest
    for step in range(1, tail_bytes):
        tail ^= signed[:, -1 - step] << np.uint32(8 * step)
    return _Block(length, words, tail)


def _positions(block: _Block, num_bits: int, num_hashes: int) -> Iterator[npt.NDArray[np.uint32]]:
    """Yield bit positions of each key of the block, one array per hash."""
    keys = block.words.shape[1]
    hashes = np.zeros(keys, np.uint32)
    scratch = np.empty(keys, np.uint32)
    for _ in range(num_hashes):
        _murmur(block, hashes, scratch)
        yield _bit_of(hashes, num_bits)


def _murmur(block: _Block, hashes: Words, scratch: Words) -> None:
    """One pass over all keys; `hashes` holds the seeds before and the results after."""
    hashes ^= np.uint32(block.length)
    for word in block.words:
        hashes *= _M
        hashes ^= word
    if block.tail is not None:
        hashes ^= block.tail
        hashes *= _M
    np.right_shift(hashes, np.uint32(13), out=scratch)
    hashes ^= scratch
    hashes *= _M
    np.right_shift(hashes, np.uint32(15), out=scratch)
    hashes ^= scratch


def _bit_of(hashes: Words, num_bits: int) -> npt.NDArray[np.uint32]:
    """|hash rem num_bits| with Java's signed remainder, which is |hash| mod num_bits."""
    size = np.uint32(num_bits)
    positive = np.abs(hashes.view(np.int32)).view(np.uint32)  # |-2^31| wraps to 2^31, as needed
    positive -= (positive // size) * size
    return positive


def _probe(block: _Block, flags: npt.NDArray[np.bool_], num_bits: int, num_hashes: int) -> npt.NDArray[np.intp]:
    """Return positions in the block of the keys whose bits are all set; keys that fail early are dropped on the way."""
    alive = np.arange(block.words.shape[1])
    hashes = np.zeros(len(alive), np.uint32)
    passed = np.ones(len(alive), np.bool_)
    for turn in range(num_hashes):
        _murmur(block, hashes, np.empty_like(hashes))
        passed &= flags[_bit_of(hashes, num_bits)]
        if turn + 1 < num_hashes and turn in (0, 1, 3, 7, 15):
            rest = np.flatnonzero(passed)
            if len(rest) == 0:
                return alive[:0]
            if len(rest) < 0.7 * len(alive):
                alive, hashes, block, passed = alive[rest], hashes[rest], block.select(rest), passed[rest]
    return alive[passed]
