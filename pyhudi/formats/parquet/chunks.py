"""Column chunks of Parquet files that go into another file as they are.

    chunk          = bytes that name no position: they are copied
    footer entry   = statistics, encodings, sizes: copied; positions of pages and of bloom filters: moved
    page index     = bounds by page: copied; positions of pages: moved
    footer         = the entries of all row groups, the schema of the new file, its key-values

So rows that do not change are neither decoded nor encoded. The order of the rows that a row group may declare is left
out. Chunks that lie in another file or are encrypted can't be copied.

Source: docs/formats/parquet.md, "Copied row groups"; the Parquet format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import CorruptFile
from pyhudi.formats.damage import as_corrupt_file
from pyhudi.formats.parquet.footer import read_footer
from pyhudi.formats.parquet.structs import (
    MAGIC,
    ColumnChunk,
    ColumnMetaData,
    FileMetaData,
    OffsetIndex,
    RowGroupEntry,
    framed,
)
from pyhudi.formats.parquet.thrift import (
    CompactReader,
    Fields,
    encoded,
    i16,
    i32,
    i64,
    number_in,
    struct,
    structs,
    text,
)

__all__ = ["ChunkFile", "ChunkSource", "Group", "Picked", "elements_of", "groups_of"]

_COPIED_AT_ONCE = 8 << 20
_ORDINALS = 1 << 15
_ELSEWHERE = {ColumnChunk.OTHER_FILE, ColumnChunk.CRYPTO_METADATA, ColumnChunk.ENCRYPTED_METADATA}
_INDEXES = (ColumnChunk.OFFSET_INDEX, ColumnChunk.COLUMN_INDEX)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column chunk. `entry`: fields of its entry in the footer; `about`: fields of the metadata in it."""

    entry: Fields
    about: Fields

    @property
    def start(self) -> int:
        """The position of its first page."""
        starts = (number_in(self.about, page) for page in (ColumnMetaData.DATA_PAGE, ColumnMetaData.DICTIONARY_PAGE))
        return min(start for start in starts if start >= len(MAGIC))

    @property
    def path(self) -> str:
        """The path of its leaf column."""
        names = CompactReader(self.about[ColumnMetaData.PATH][1])
        return ".".join(names.binary().decode() for _ in names.elements())

    @property
    def size_bytes(self) -> int:
        return number_in(self.about, ColumnMetaData.STORED_BYTES)

    def is_within(self, file_bytes: int) -> bool:
        """True if its pages are in this file and not encrypted."""
        if self.entry.keys() & _ELSEWHERE or number_in(self.about, ColumnMetaData.DATA_PAGE) < len(MAGIC):
            return False
        areas = [(self.start, self.size_bytes), *filter(None, map(self.area, _INDEXES))]
        return all(start >= len(MAGIC) and 0 < size <= file_bytes - start for start, size in areas)

    def area(self, numbers: tuple[int, int]) -> tuple[int, int] | None:
        """Return the position and length of a part of the page index, by the numbers of their fields."""
        position, length = (number_in(self.entry, number) for number in numbers)
        return (position, length) if position and length else None

    @property
    def bloom(self) -> tuple[int, int] | None:
        """Position and length of the bloom filter; None without one, or without its length."""
        position, length = (number_in(self.about, number) for number in ColumnMetaData.BLOOM_FILTER)
        return (position, length) if position > 0 and length > 0 else None


@dataclass(frozen=True, slots=True)
class Group:
    """A row group's chunks, and its number of rows."""

    chunks: tuple[Chunk, ...]
    rows: int


def groups_of(thrift: bytes) -> tuple[Group, ...]:
    """Return the row groups of a footer. Raises LookupError, ValueError, RecursionError for a damaged one."""
    footer = CompactReader(thrift)
    for _ in footer.fields_of(FileMetaData.ROW_GROUPS):
        return tuple(_group(footer) for _ in footer.elements())
    return ()


def elements_of(thrift: bytes) -> tuple[bytes, ...]:
    """Return the schema elements of a footer except the root, whose name differs by writer. Raises like `groups_of`."""
    footer = CompactReader(thrift)
    for _ in footer.fields_of(FileMetaData.SCHEMA):
        return tuple(encoded(footer.struct()) for _ in footer.elements())[1:]
    return ()


def _group(footer: CompactReader) -> Group:
    chunks: list[Chunk] = []
    rows = 0
    for number in footer.fields_of(RowGroupEntry.COLUMNS, RowGroupEntry.ROWS):
        if number == RowGroupEntry.ROWS:
            rows = footer.integer()
            continue
        for _ in footer.elements():
            entry = footer.struct()
            chunks.append(Chunk(entry, CompactReader(entry[ColumnChunk.METADATA][1]).struct()))
    return Group(tuple(chunks), rows)


@dataclass(frozen=True, slots=True)
class ChunkSource:
    """An open Parquet file with the groups of its footer."""

    file: pa.NativeFile
    where: str
    groups: tuple[Group, ...]

    @classmethod
    def of_buffer(cls, data: pa.Buffer) -> ChunkSource:
        """Return a Parquet file in memory."""
        file = pa.BufferReader(data)
        return cls(file, "memory", groups_of(read_footer(file).thrift))

    def read(self, start: int, size: int) -> pa.Buffer:
        """Raises CorruptFile when the file ends before."""
        with as_corrupt_file(self.where, "Parquet"):
            self.file.seek(start)
            data = self.file.read_buffer(size)
        if data.size != size:
            raise CorruptFile(
                f"{self.where} at byte {start}: expected {size} bytes of a column, found {data.size}. Restore the file "
                "from a copy of the table, or roll the write back that made it."
            )
        return data


Picked = tuple[ChunkSource, Chunk]


class ChunkFile:
    """A Parquet file that is assembled from column chunks.

    Args:    sink: where it is written. like: the footer of a file with the same schema and writer.
    """

    def __init__(self, sink: pa.NativeFile, like: bytes) -> None:
        self._sink, self._like = sink, like
        self._groups: list[tuple[list[Fields], list[Fields], int]] = []  # entries, their metadata, rows
        self._indexes: list[tuple[Fields, tuple[int, int], bytes]] = []
        self._blooms: list[tuple[Fields, bytes]] = []
        self._sink.write(MAGIC)

    def add(self, picked: Sequence[Picked], rows: int) -> None:
        """Append a row group of chunks from several files. Raises CorruptFile."""
        at = self._sink.tell()
        entries: list[Fields] = []
        abouts: list[Fields] = []
        for source, chunk in picked:
            entry, about = dict(chunk.entry), dict(chunk.about)
            self._move(source, chunk, entry, about, at - chunk.start)
            entries.append(entry)
            abouts.append(about)
            at += chunk.size_bytes
        for source, start, size in _join_ranges(picked):
            for first in range(start, start + size, _COPIED_AT_ONCE):
                self._sink.write(source.read(first, min(_COPIED_AT_ONCE, start + size - first)))
        self._groups.append((entries, abouts, rows))

    def _move(self, source: ChunkSource, chunk: Chunk, entry: Fields, about: Fields, by: int) -> None:
        """Shift the positions in the entry of a chunk, and collect its page indexes and bloom filter."""
        for number in (ColumnMetaData.DATA_PAGE, ColumnMetaData.INDEX_PAGE, ColumnMetaData.DICTIONARY_PAGE):
            if number_in(about, number) > 0:
                about[number] = i64(number_in(about, number) + by)
        entry[ColumnChunk.OFFSET] = i64(0)  # deprecated; the Parquet format says 0
        for numbers in _INDEXES:
            area = chunk.area(numbers)
            for number in numbers:
                entry.pop(number, None)
            if area is not None:
                index = bytes(source.read(*area))
                if numbers == ColumnChunk.OFFSET_INDEX:
                    with as_corrupt_file(source.where, "Parquet"):
                        index = _shift_pages(index, by)
                self._indexes.append((entry, numbers, index))
        for number in ColumnMetaData.BLOOM_FILTER:
            about.pop(number, None)
        if chunk.bloom is not None:
            self._blooms.append((about, bytes(source.read(*chunk.bloom))))

    def close(self, key_values: Mapping[str, str]) -> pq.FileMetaData:
        """Write page indexes, bloom filters and the footer; the sink stays open. Returns the footer."""
        for about, bloom in self._blooms:
            about.update(self._area(ColumnMetaData.BLOOM_FILTER, bloom))
            self._sink.write(bloom)
        for entry, numbers, index in self._indexes:
            entry.update(self._area(numbers, index))
            self._sink.write(index)
        end = framed(self._footer(key_values))
        self._sink.write(end)
        return pq.read_metadata(pa.BufferReader(MAGIC + end))

    def _area(self, numbers: tuple[int, int], part: bytes) -> Fields:
        """Return the position and length of the part that is written next."""
        return {numbers[0]: i64(self._sink.tell()), numbers[1]: i32(len(part))}

    def _footer(self, key_values: Mapping[str, str]) -> bytes:
        fields = CompactReader(self._like).struct()
        groups = [_group_entry(number, *group) for number, group in enumerate(self._groups)]
        fields[FileMetaData.ROWS] = i64(sum(rows for _, _, rows in self._groups))
        fields[FileMetaData.ROW_GROUPS] = structs(groups)
        fields.pop(FileMetaData.KEY_VALUES, None)
        if key_values:
            fields[FileMetaData.KEY_VALUES] = structs(
                [encoded({1: text(key), 2: text(value)}) for key, value in key_values.items()]
            )
        return encoded(fields)


def _group_entry(number: int, entries: Sequence[Fields], abouts: Sequence[Fields], rows: int) -> bytes:
    chunks = [
        Chunk({**entry, ColumnChunk.METADATA: struct(about)}, about)
        for entry, about in zip(entries, abouts, strict=True)
    ]
    group: Fields = {
        RowGroupEntry.COLUMNS: structs([encoded(chunk.entry) for chunk in chunks]),
        RowGroupEntry.PLAIN_BYTES: i64(sum(number_in(about, ColumnMetaData.PLAIN_BYTES) for about in abouts)),
        RowGroupEntry.ROWS: i64(rows),
        RowGroupEntry.STORED_BYTES: i64(sum(chunk.size_bytes for chunk in chunks)),
    }
    if chunks:
        group[RowGroupEntry.FILE_OFFSET] = i64(chunks[0].start)
    if number < _ORDINALS:
        group[RowGroupEntry.ORDINAL] = i16(number)
    return encoded(group)


def _join_ranges(picked: Sequence[Picked]) -> Iterator[tuple[ChunkSource, int, int]]:
    """Return the ranges to copy, in order; adjacent ranges of one file are joined."""
    ranges: list[tuple[ChunkSource, int, int]] = []
    for source, chunk in picked:
        start, size = chunk.start, chunk.size_bytes
        if ranges and ranges[-1][0] is source and sum(ranges[-1][1:]) == start:
            ranges[-1] = source, ranges[-1][1], ranges[-1][2] + size
        else:
            ranges.append((source, start, size))
    yield from ranges


def _shift_pages(offset_index: bytes, by: int) -> bytes:
    """Return an offset index with its pages shifted. Raises LookupError, ValueError for a damaged one."""
    index = CompactReader(offset_index).struct()
    locations = CompactReader(index[OffsetIndex.LOCATIONS][1])
    moved: list[bytes] = []
    for _ in locations.elements():
        location = locations.struct()
        location[OffsetIndex.POSITION] = i64(number_in(location, OffsetIndex.POSITION) + by)
        moved.append(encoded(location))
    index[OffsetIndex.LOCATIONS] = structs(moved)
    return encoded(index)
