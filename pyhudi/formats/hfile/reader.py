"""Reading an HFile: all of it in order, or single keys and prefixes through its index. One data block is in memory.

The file may be a part of another one (a block of a log file): offsets count from where it begins.
Source: docs/formats/hfile.md, "Layout", "Indexes".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.errors import CorruptFile
from pyhudi.formats.hfile.block import DATA, FILE_INFO, INDEX, INTERMEDIATE, LEAF, META, Block, read_block
from pyhudi.formats.hfile.entries import Entries, decode_entries
from pyhudi.formats.hfile.index import IndexEntry, decode_inner_index, decode_root_index, row_of
from pyhudi.formats.hfile.trailer import TRAILER_BYTES, Trailer, decode_file_info

__all__ = ["HFileReader"]


@dataclass(frozen=True, slots=True)
class _Index:
    """Where the blocks are: the rows that they begin with, ascending, and their offsets."""

    rows: list[bytes]
    offsets: list[int]


class HFileReader:
    """An open HFile.

    Args:    source: seekable, with `size`, `seek` and `read` (`pyarrow.NativeFile`); where: its path, for messages;
             offset, size_bytes: the part of the source that is the file, None for all of it.
    Raises:  CorruptFile, UnsupportedTable.
    """

    def __init__(self, source: pa.NativeFile, where: str, offset: int = 0, size_bytes: int | None = None) -> None:
        size = source.size() - offset if size_bytes is None else size_bytes
        if size < TRAILER_BYTES:
            raise CorruptFile(f"{where}: {size} bytes are too few for an HFile.")
        self._source = _Part(source, offset)
        self._where, self._end = where, size - TRAILER_BYTES
        self._source.seek(self._end)
        self._trailer = Trailer.decode(self._source.read(TRAILER_BYTES), where)
        self._load()

    def _load(self) -> None:
        trailer = self._trailer
        root = self._block(trailer.load_on_open_offset, INDEX)
        meta = self._block(root.next_offset, INDEX)
        info = self._block(trailer.file_info_offset, FILE_INFO)
        self._root = decode_root_index(root.body, trailer.data_index_count, f"{self._where}, root index")
        entries = decode_root_index(meta.body, trailer.meta_index_count, f"{self._where}, meta index")
        self._meta = {entry.key: entry for entry in entries}
        self.info: Mapping[str, bytes] = decode_file_info(info.body, f"{self._where}, file info")
        self._first: _Index | None = None
        self._leaves: dict[int, _Index] = {}

    @property
    def entry_count(self) -> int:
        """Entries as the trailer counts them."""
        return self._trailer.entry_count

    @property
    def schema_json(self) -> str | None:
        """Avro JSON of the values, None when the file has none."""
        schema = self.info.get("schema")
        return None if schema is None else schema.decode("utf-8", "replace")

    def meta_block(self, name: str) -> bytes | None:
        """The bytes kept under a name (`bloomFilter`), None when there are none. Raises CorruptFile."""
        entry = self._meta.get(name.encode())
        return None if entry is None else self._block(entry.offset, META).body

    def scan(self) -> Iterator[Entries]:
        """All entries in the order of their keys, data block by data block. Raises CorruptFile."""
        trailer = self._trailer
        if trailer.entry_count == 0 or trailer.first_data_offset < 0:
            return
        position = trailer.first_data_offset
        while position <= trailer.last_data_offset:
            block = self._block(position, None, trailer.load_on_open_offset)
            if block.magic == DATA:
                yield self._entries(block)
            elif block.magic not in (LEAF, INTERMEDIATE, META):
                raise CorruptFile(f"{self._where} at byte {position}: no block of an HFile, found {block.magic!r}.")
            position = block.next_offset

    def lookup(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """(key, value) of those of the keys that are there, in the order of the bytes. Raises CorruptFile."""
        wanted = sorted(set(keys))
        position, held = -1, None
        for key in wanted:
            place = self._place(key)
            if place is None:
                continue
            if held is None or place != position:
                position, held = place, self._entries(self._block(place, DATA))
            row = held.find(key)
            if row is not None:
                yield key, held.value(row)

    def with_prefixes(self, prefixes: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """(key, value) of all keys that begin with one of the prefixes, in the order of the bytes; each once."""
        last: bytes | None = None
        for prefix in sorted(set(prefixes)):
            if last is not None and prefix.startswith(last):
                continue  # its keys were told with the shorter prefix
            last = prefix
            yield from self._with_prefix(prefix)

    def _with_prefix(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        for entries in self._from(prefix):
            for row, key in enumerate(entries.keys):
                if key.startswith(prefix):
                    yield key, entries.value(row)
                elif key > prefix:
                    return

    def _from(self, key: bytes) -> Iterator[Entries]:
        """Data blocks from the one on in which a key is or would be."""
        position = self._place(key)
        if position is None:
            position = self._trailer.first_data_offset
        if self._trailer.entry_count == 0 or position < 0:
            return
        while position <= self._trailer.last_data_offset:
            block = self._block(position, None, self._trailer.load_on_open_offset)
            if block.magic == DATA:
                yield self._entries(block)
            position = block.next_offset

    def _place(self, key: bytes) -> int | None:
        """Offset of the data block in which a key is if it is anywhere; None before the first block."""
        if self._first is None:
            self._first = self._sorted(self._root)
        index = self._first
        for level in range(self._trailer.levels, 0, -1):
            found = bisect_right(index.rows, key) - 1
            if found < 0:
                return None
            offset = index.offsets[found]
            if level == 1:
                return offset
            index = self._inner(offset)
        return None

    def _inner(self, offset: int) -> _Index:
        if offset not in self._leaves:
            block = self._block(offset, None)
            if block.magic not in (LEAF, INTERMEDIATE):
                raise CorruptFile(f"{self._where} at byte {offset}: expected an index block, found {block.magic!r}.")
            self._leaves[offset] = self._sorted(decode_inner_index(block.body, f"{self._where} at byte {offset}"))
        return self._leaves[offset]

    def _sorted(self, entries: Sequence[IndexEntry]) -> _Index:
        rows = [row_of(entry.key, f"{self._where}, index") for entry in entries]
        return _Index(rows, [entry.offset for entry in entries])

    def _entries(self, block: Block) -> Entries:
        return decode_entries(block.body, f"{self._where} at byte {block.offset}")

    def _block(self, offset: int, expected: bytes | None, limit: int | None = None) -> Block:
        limit = self._end if limit is None else min(limit, self._end)
        return read_block(self._source, offset, limit, self._trailer.codec, self._where, expected=expected)


class _Part:
    """A part of a file as a file."""

    def __init__(self, source: pa.NativeFile, offset: int) -> None:
        self._source, self._offset = source, offset

    def seek(self, position: int) -> None:
        self._source.seek(self._offset + position)

    def read(self, length: int) -> bytes:
        return bytes(self._source.read(length))
