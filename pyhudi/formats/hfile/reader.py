"""Reading an HFile: all of it in order, or keys and prefixes through its index, in columns.

The file may be a part of another one (a block of a log file): offsets count from its beginning. Only blocks that may
have the requested entries are read, neighbours together; recently decoded blocks stay in memory.
Source: docs/formats/hfile.md, "Layout", "Indexes", "Lookups".
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from pyhudi.errors import CorruptFile
from pyhudi.formats.bloom import BloomFilter
from pyhudi.formats.hfile.block import (
    BLOCK_HEADER_BYTES,
    CODECS,
    DATA,
    FILE_INFO,
    INDEX,
    INTERMEDIATE,
    LEAF,
    META,
    Block,
    block_bytes,
    read_block,
)
from pyhudi.formats.hfile.entries import Entries, decode_entries, decode_together, joined
from pyhudi.formats.hfile.index import IndexEntry, IndexTree, Share, decode_inner_index, decode_root_index
from pyhudi.formats.hfile.keys import KeyColumn, PrefixRange, ranges_of, rows_in, sorted_keys
from pyhudi.formats.hfile.ranges import READ_BYTES, BlockPlace, Ranges, Source, run_end
from pyhudi.formats.hfile.trailer import BLOOM_FILTER, BLOOM_FILTER_TYPE, TRAILER_BYTES, Trailer, decode_file_info
from pyhudi.storage.file_cache import FILES, FileCache

__all__ = ["CachedBlocks", "HFileReader"]

# Blocks of one lookup in the cache that readers share: more would displace those for lookups of few keys.
_KEPT_BLOCKS = 32
_OWN_BYTES = 16 << 20  # of a single reader: ten of Hudi's blocks; ten file groups then take 160 MiB
_TOGETHER_BYTES = 1 << 20  # of bodies decoded at once: starting takes as long as a small block
_INDEX_ENTRY_BYTES = 400  # about the size of a block's index entry in memory
_FILTER_KEYS = 64  # for more keys most blocks of a file are read anyway
# Hudi's filters take 100,000 keys (hoodie.bloom.index.filter.dynamic.max.entries): with twice as many they are useless.
_FILTERED_ENTRIES, _FILTER_MAX_ENTRIES = 200_000, 100_000


class CachedBlocks:
    """Blocks of a file in one state, by position.

    Args: key: identifies the file and its state; memory: the cache, by default the one that all readers of this process
              share.
    """

    def __init__(self, key: Hashable, memory: FileCache = FILES) -> None:
        self._key, self._memory = key, memory

    @property
    def is_shared(self) -> bool:
        """True if these blocks could displace those of other readers."""
        return self._memory is FILES

    def __contains__(self, offset: int) -> bool:
        return (self._key, offset) in self._memory

    def get(self, offset: int) -> Entries | None:
        """Return a block, None when it is not cached."""
        entries = self._memory.get((self._key, offset))
        return entries if isinstance(entries, Entries) else None

    def put(self, offset: int, entries: Entries) -> None:
        """Cache a block."""
        self._memory.put((self._key, offset), entries, entries.size_bytes)


class HFileReader:
    """An open HFile.

    Args:    source: seekable, with `size`, `seek` and `read` (`pyarrow.NativeFile`); where: its path, for messages;
             offset, size_bytes: the part of the source that is the file, None for all of it; cache_bytes: of cached
                 decoded blocks; blocks: a cache to use instead.
    Raises:  CorruptFile, UnsupportedTable.
    """

    def __init__(
        self, source: Source, where: str, offset: int = 0, size_bytes: int | None = None, *,
        cache_bytes: int = _OWN_BYTES, blocks: CachedBlocks | None = None,
    ) -> None:  # fmt: skip
        size = source.size() - offset if size_bytes is None else size_bytes
        if size < TRAILER_BYTES:
            raise CorruptFile(f"{where}: {size} bytes are too few for an HFile.")
        self._ranges = Ranges(source, offset, size)
        self.where, self._end = where, size - TRAILER_BYTES
        self._ranges.fetch_tail()
        self._ranges.seek(self._end)
        self._trailer = Trailer.decode(self._ranges.read(TRAILER_BYTES), where)
        self._cache = blocks or CachedBlocks(where, FileCache(cache_bytes))
        self._places_kept = _KEPT_BLOCKS if self._cache.is_shared else sys.maxsize
        self._load()

    def _load(self) -> None:
        trailer = self._trailer
        self._ranges.fetch(trailer.load_on_open_offset, self._end)
        root = self._block(trailer.load_on_open_offset, INDEX)
        meta = self._block(root.next_offset, INDEX)
        info = self._block(trailer.file_info_offset, FILE_INFO)
        data = decode_root_index(root.body, trailer.data_index_count, f"{self.where}, root index")
        self._index = IndexTree(data, trailer.levels, self.where, self._inner)
        entries = decode_root_index(meta.body, trailer.meta_index_count, f"{self.where}, meta index")
        self._meta = {entry.key: entry for entry in entries}
        self.info: Mapping[str, bytes] = decode_file_info(info.body, f"{self.where}, file info")
        self._filter: BloomFilter | None = None

    @property
    def entry_count(self) -> int:
        """The trailer's number of entries."""
        return self._trailer.entry_count

    @property
    def schema_json(self) -> str | None:
        """Avro JSON of the values, None when the file has none."""
        schema = self.info.get("schema")
        return None if schema is None else schema.decode("utf-8", "replace")

    def meta_block(self, name: str) -> bytes | None:
        """Return the bytes stored under a name (`bloomFilter`), None when there are none. Raises CorruptFile."""
        entry = self._meta.get(name.encode())
        return None if entry is None else self._block(entry.offset, META).body

    def bloom_filter(self, max_entries: int = _FILTER_MAX_ENTRIES) -> BloomFilter | None:
        """Return the file's filter, for up to `max_entries` keys; None if it has none. Raises CorruptFile."""
        kind, text = self.info.get(BLOOM_FILTER_TYPE), self.meta_block(BLOOM_FILTER)
        if kind is None or text is None:
            return None
        return BloomFilter.from_base64(text.decode("ascii", "replace"), kind.decode("ascii", "replace"), max_entries)

    @property
    def first_rows(self) -> Sequence[bytes] | None:
        """The first keys of the data blocks, or keys before them, from the index; None for a file with indexes of
        indexes or other bytes between its data blocks, or with another compression than ours.
        """
        trailer, top = self._trailer, self._index.top
        if trailer.levels != 1 or trailer.codec != CODECS["gz"]:
            return None
        ends = [offset + size for offset, size in zip(top.offsets, top.sizes, strict=True)]
        begins = [trailer.first_data_offset, *ends[:-1]]
        return top.rows if begins == top.offsets and begins[-1] == trailer.last_data_offset else None

    def block_of(self, key: bytes) -> int:
        """Return the number of the only data block that can have a key; -1 before the first."""
        return self._index.top.block_of(key)

    def entries_at(self, numbers: Sequence[int]) -> Iterator[Entries]:
        """Return the entries of data blocks (numbers, ascending). Raises CorruptFile."""
        return map(self._entries, self._read_blocks(self._index.places(numbers)))

    def stored_blocks(self) -> Iterator[tuple[bytes, Block]]:
        """Yield the data blocks as stored and decoded. Raises CorruptFile."""
        places = self._index.places(range(len(self._index.root)))
        for number, place in enumerate(places):
            block = self._read_block(places, number)
            self._ranges.seek(place.offset)
            yield self._ranges.read(block.next_offset - block.offset), block

    def scan(self) -> Iterator[Entries]:
        """Yield all entries in the order of their keys, some data blocks at a time. Raises CorruptFile."""
        for blocks in _together(self._scanned()):
            yield self._entries_of(blocks)

    def _scanned(self) -> Iterator[Block]:
        trailer = self._trailer
        if trailer.entry_count == 0 or trailer.first_data_offset < 0:
            return
        position = trailer.first_data_offset
        while position <= trailer.last_data_offset:
            self._read_ahead(position)
            block = self._block(position, None, trailer.load_on_open_offset)
            if block.magic == DATA:
                yield block
            elif block.magic not in (LEAF, INTERMEDIATE, META):
                raise CorruptFile(f"{self.where} at byte {position}: no block of an HFile, found {block.magic!r}.")
            position = block.next_offset

    def forget_bytes(self) -> int:
        """Drop all bytes of the file except those that lookups reuse; return their approximate number."""
        self._ranges.forget_bytes()
        entries = _INDEX_ENTRY_BYTES * self._index.entries_held
        return self._ranges.held_bytes + entries + sum(map(len, self.info.values()))

    def lookup_columns(self, keys: pa.Array | pa.ChunkedArray | KeyColumn) -> Iterator[Entries]:
        """Yield the entries with these keys, in the order of their bytes, in parts.

        A few keys are tested with the file's bloom filter first, if reading it costs less than reading their blocks.
        Args:    keys: text or binary, in any order, with duplicates; nulls are ignored; or the result of `sorted_keys`.
        Raises:  CorruptFile.
        """
        ordered = keys if isinstance(keys, KeyColumn) else sorted_keys(keys)
        shares = self._index.shares(ordered)
        possible = self._possible_keys(ordered, shares)
        if len(possible) < len(ordered):
            ordered, shares = possible, self._index.shares(possible)
        if len(shares) > _KEPT_BLOCKS:
            parts = self._many(shares)
        else:
            parts = zip(shares, self._data_blocks([share.place for share in shares]), strict=True)
        for share, entries in parts:
            rows = entries.key_column.rows_of(ordered[share.first : share.end])
            if len(rows):
                yield entries.select(rows)

    def _many(self, shares: Sequence[Share]) -> Iterator[tuple[Share, Entries]]:
        """The entries of many blocks, some blocks at a time, with the keys that these may have. They are not cached:
        they would displace the blocks for look-ups of few keys.
        """
        first = 0
        for blocks in _together(self._read_blocks([share.place for share in shares])):
            run = shares[first : first + len(blocks)]
            first += len(blocks)
            yield Share(run[0].place, run[0].first, run[-1].end), self._entries_of(blocks)

    def lookup(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Return (key, value) of the existing ones of these keys, in the order of their bytes. Raises CorruptFile."""
        return _pairs(self.lookup_columns(pa.array(list(keys), pa.binary())))

    def prefix_columns(self, prefixes: Iterable[bytes]) -> Iterator[Entries]:
        """Yield the entries whose keys begin with one of the prefixes, in the order of the bytes, each once, in parts.

        Raises CorruptFile.
        """
        ranges = ranges_of(prefixes)
        of_blocks: dict[BlockPlace, list[PrefixRange]] = {}
        for keys in ranges:
            for place in self._index.places_of(keys):
                of_blocks.setdefault(place, []).append(keys)
        if len(of_blocks) > _KEPT_BLOCKS:
            parts = self._many_with_ranges(of_blocks)
        else:
            parts = zip(of_blocks.values(), self._data_blocks(list(of_blocks)), strict=True)
        for keys_of_part, entries in parts:
            rows = rows_in(entries.key_column, keys_of_part)
            if len(rows):
                yield entries.select(rows)

    def _many_with_ranges(
        self, of_blocks: Mapping[BlockPlace, list[PrefixRange]]
    ) -> Iterator[tuple[list[PrefixRange], Entries]]:
        """Like `_many`, with the ranges of keys to read from these blocks."""
        shares, first = list(of_blocks.values()), 0
        for blocks in _together(self._read_blocks(list(of_blocks))):
            run = shares[first : first + len(blocks)]
            first += len(blocks)
            yield list(dict.fromkeys(chain.from_iterable(run))), self._entries_of(blocks)

    def with_prefixes(self, prefixes: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Return (key, value) of all keys that begin with one of the prefixes, in the order of the bytes; each once."""
        return _pairs(self.prefix_columns(prefixes))

    # ---- the bloom filter

    def _possible_keys(self, keys: KeyColumn, shares: Sequence[Share]) -> KeyColumn:
        """Return the keys that may be in the file, according to its bloom filter."""
        bloom_filter = self._bloom_filter(len(keys), shares)
        if bloom_filter is None:
            return keys
        try:
            texts = keys.array().cast(pa.string())
        except pa.ArrowInvalid:
            return keys  # the filter holds texts
        return keys.filter(np.asarray(bloom_filter.might_contain(texts)))

    def _bloom_filter(self, keys: int, shares: Sequence[Share]) -> BloomFilter | None:
        """Return the file's filter if it exists and testing this many keys pays off, else None."""
        kind, entry = self.info.get(BLOOM_FILTER_TYPE), self._meta.get(BLOOM_FILTER.encode())
        if kind is None or entry is None or keys > _FILTER_KEYS or self.entry_count > _FILTERED_ENTRIES:
            return None
        to_read = sum(share.place.size_bytes for share in shares if share.place.offset not in self._cache)
        if self._filter is None and entry.size_bytes < to_read:
            self._filter = self.bloom_filter()
        return self._filter if to_read else None

    # ---- blocks

    def _inner(self, offset: int) -> Sequence[IndexEntry]:
        """Return the entries of an index below the root."""
        block = self._block(offset, None)
        if block.magic not in (LEAF, INTERMEDIATE):
            raise CorruptFile(f"{self.where} at byte {offset}: expected an index block, found {block.magic!r}.")
        return decode_inner_index(block.body, f"{self.where} at byte {offset}")

    def _data_blocks(self, places: Sequence[BlockPlace]) -> Iterator[Entries]:
        """Yield the blocks at these positions, in order."""
        for number, place in enumerate(places):
            entries = self._cache.get(place.offset)
            if entries is None:
                entries = self._entries(self._read_block(places, number))
                if len(places) <= self._places_kept:
                    self._cache.put(place.offset, entries)
            yield entries

    def _read_blocks(self, places: Sequence[BlockPlace]) -> Iterator[Block]:
        return (self._read_block(places, number) for number in range(len(places)))

    def _read_block(self, places: Sequence[BlockPlace], number: int) -> Block:
        """Read one of the blocks at these positions; the next ones are fetched with it."""
        place = places[number]
        if not self._ranges.holds(place.offset, sum(place)):
            self._ranges.fetch(place.offset, min(run_end(places, number), self._end))
        return self._block(place.offset, DATA)

    def _read_ahead(self, position: int) -> None:
        """Load the block at a position, and the next ones with it."""
        ranges, head_end = self._ranges, position + BLOCK_HEADER_BYTES
        if ranges.holds(position, head_end):
            ranges.seek(position)
            if ranges.holds(position, position + block_bytes(ranges.read(BLOCK_HEADER_BYTES))):
                return
        ranges.fetch(position, min(position + READ_BYTES, self._trailer.load_on_open_offset, self._end))

    def _entries(self, block: Block) -> Entries:
        return decode_entries(block.body, f"{self.where} at byte {block.offset}")

    def _entries_of(self, blocks: Sequence[Block]) -> Entries:
        """Return the entries of ascending data blocks, decoded together if that is faster."""
        together = decode_together([block.body for block in blocks]) if len(blocks) > 1 else None
        if together is not None:
            return together
        return joined([self._entries(block) for block in blocks])

    def _block(self, offset: int, expected: bytes | None, limit: int | None = None) -> Block:
        limit = self._end if limit is None else min(limit, self._end)
        return read_block(self._ranges, offset, limit, self._trailer.codec, self.where, expected=expected)


def _together(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Yield the blocks in order, some at a time."""
    held, held_bytes = list[Block](), 0
    for block in blocks:
        if held and held_bytes + len(block.body) > _TOGETHER_BYTES:
            yield held
            held, held_bytes = [], 0
        held.append(block)
        held_bytes += len(block.body)
    if held:
        yield held


def _pairs(parts: Iterable[Entries]) -> Iterator[tuple[bytes, bytes]]:
    """Yield a pair for each entry."""
    for entries in parts:
        yield from zip(entries.keys, (entries.value(row) for row in range(len(entries))), strict=True)
