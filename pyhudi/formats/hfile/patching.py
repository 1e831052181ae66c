"""Write an HFile that differs from another one in some entries: all other blocks are copied.

    index of the old file   → which block each changed key belongs to
    blocks without one      checked, and copied with the position of the block before them
    blocks with some        rewritten with the changed entries
    bloom filter            the old one with the new keys; deleted ones stay in it as false positives

The work grows with the number of changed keys. Other blocks are only inflated to find damage.
Source: docs/formats/hfile.md, "Patched files".
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.formats.bloom import BloomFilter
from pyhudi.formats.hfile.entries import decode_entries, encode_entry
from pyhudi.formats.hfile.keys import sorted_keys
from pyhudi.formats.hfile.reader import HFileReader
from pyhudi.formats.hfile.writer import KEY_OVERHEAD, HFileWriter, Sink

__all__ = ["HFilePatch"]

_CHANGED_SHARE = 0.1  # of the entries: beyond it, merging columns and rewriting the whole file is faster
_STALE_SHARE = 0.1  # of the keys in a filter: those no longer in the file
_INT = struct.Struct(">i")
_AVERAGES = ("hfile.AVG_KEY_LEN", "hfile.AVG_VALUE_LEN")


@dataclass(frozen=True)
class HFilePatch:
    """The changes to a file.

    Args:    reader: of the old file; info: the file info of the new one; bloom: the old file's filter; keys: binary,
                 ascending, each once; values: binary, null for a deleted key.
    """

    reader: HFileReader
    info: Mapping[str, bytes]
    bloom: BloomFilter
    keys: pa.Array
    values: pa.Array

    @classmethod
    def of(
        cls, reader: HFileReader, info: Mapping[str, bytes], like: BloomFilter, keys: pa.Array, values: pa.Array
    ) -> HFilePatch | None:
        """Return the patch; None if the whole file should be rewritten. `like`: an empty filter with the new file's
        settings.

        Raises: CorruptFile.
        """
        if not reader.first_rows or len(keys) > _CHANGED_SHARE * reader.entry_count:
            return None
        same = all(reader.info.get(name) == value for name, value in info.items())
        bloom = reader.bloom_filter(like.max_entries)
        if not same or bloom is None or not bloom.same_shape(like) or not _has_averages(reader):
            return None
        if (bloom.keys_added or 0) > (1 + _STALE_SHARE) * reader.entry_count:
            return None
        patch = cls(reader, info, bloom, keys, values)
        return patch if patch._ends_stay() else None

    def _ends_stay(self) -> bool:
        """True if the first and the last block keep some entry. They determine the least and the greatest key."""
        deleted = self.keys.filter(pc.is_null(self.values))
        blocks = self.reader.first_rows or ()
        ends = self.reader.entries_at([0, len(blocks) - 1] if len(blocks) > 1 else [0])
        return all(not pc.all(pc.is_in(entries.key_array(), deleted)).as_py() for entries in ends)

    def write(self, sink: Sink) -> tuple[int, int]:
        """Write the new file; return its size in bytes and its number of entries.

        Raises: CorruptFile for a damaged block of the old one.
        """
        reader, rows, where = self.reader, self.reader.first_rows or (), self.reader.where
        writer = HFileWriter(sink, info=self.info, bloom_filter=self.bloom)
        changed = list(zip(sorted_keys(self.keys), self.values.to_pylist(), strict=True))
        numbers = [max(0, reader.block_of(key)) for key, _ in changed]
        edits, least, greatest = _Edits(), b"", b""
        for number, (stored_block, block) in enumerate(reader.stored_blocks()):
            changes = changed[bisect_left(numbers, number) : bisect_left(numbers, number + 1)]
            body = edits.edited(block.body, changes, f"{where} at byte {block.offset}") if changes else block.body
            if changes:
                writer.write_blocks(body)
            else:
                writer.copy_block(stored_block, len(body), rows[number])
            if number == 0:
                least = decode_entries(body, where).keys[0]
            if number == len(rows) - 1:
                greatest = decode_entries(body, where).keys[-1]
        self.bloom.add(pa.array(edits.new_keys, pa.binary()).cast(pa.string()))
        averages = [_INT.unpack(reader.info[name])[0] for name in _AVERAGES]
        key_bytes, value_bytes = (average * reader.entry_count for average in averages)
        count = reader.entry_count + edits.entries
        totals = key_bytes + edits.key_bytes, value_bytes + edits.value_bytes
        return writer.close_of(count, *totals, least, greatest), count


@dataclass
class _Edits:
    """The additional entries by edits, and their bytes of keys and values."""

    entries: int = 0
    key_bytes: int = 0
    value_bytes: int = 0
    new_keys: list[bytes] = field(default_factory=list)

    def edited(self, body: bytes, changed: Sequence[tuple[bytes, bytes | None]], where: str) -> bytes:
        """Return the body of a block with its changed entries, by a loop: a block has few of them."""
        old = decode_entries(body, where)
        keys, parts, copied, row = old.key_column, list[bytes](), 0, 0
        for key, value in changed:
            row = bisect_left(keys, key, row)
            start = old.start(row)
            is_there = row < len(keys) and keys[row] == key
            parts.append(body[copied:start])
            copied = old.start(row + 1) if is_there else start
            if is_there:
                self._count(key, old.value(row), -1)
            if value is not None:
                parts.append(encode_entry(key, value))
                self._count(key, value, 1)
                self.new_keys += [] if is_there else [key]
        return b"".join((*parts, body[copied:]))

    def _count(self, key: bytes, value: bytes, times: int) -> None:
        self.entries += times
        self.key_bytes += times * (len(key) + KEY_OVERHEAD)
        self.value_bytes += times * len(value)


def _has_averages(reader: HFileReader) -> bool:
    return all(len(reader.info.get(name, b"")) == _INT.size for name in _AVERAGES)
