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
from pyhudi.formats.parquet.thrift import I16, I32, I64, LIST, STRUCT, CompactReader, CompactWriter

__all__ = ["ChunkFile", "ChunkSource", "Group", "Picked", "elements_of", "groups_of"]

Fields = dict[int, tuple[int, bytes]]  # of a Thrift struct: number → type and encoded value

_MAGIC = b"PAR1"
_COPIED_AT_ONCE = 8 << 20
# Field numbers: of FileMetaData, RowGroup, ColumnChunk, ColumnMetaData, OffsetIndex and PageLocation.
_SCHEMA, _FILE_ROWS, _ROW_GROUPS, _KEY_VALUES = 2, 3, 4, 5
_COLUMNS, _PLAIN_BYTES, _ROWS, _FILE_OFFSET, _STORED_BYTES, _ORDINAL = 1, 2, 3, 5, 6, 7
_OTHER_FILE, _CHUNK_OFFSET, _ABOUT, _CRYPTO = 1, 2, 3, (8, 9)
_OFFSET_INDEX, _COLUMN_INDEX = (4, 5), (6, 7)  # offset, length
_PATH, _CHUNK_PLAIN, _CHUNK_STORED = 3, 6, 7
_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE, _BLOOM = 9, 10, 11, (14, 15)
_LOCATIONS, _PAGE_OFFSET = 1, 1
_ORDINALS = 1 << 15


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column chunk. `entry`: fields of its entry in the footer; `about`: fields of the metadata in it."""

    entry: Fields
    about: Fields

    @property
    def start(self) -> int:
        """The position of its first page."""
        starts = (_number(self.about, _DATA_PAGE), _number(self.about, _DICTIONARY_PAGE))
        return min(start for start in starts if start >= len(_MAGIC))

    @property
    def path(self) -> str:
        """The path of its leaf column."""
        names = CompactReader(self.about[_PATH][1])
        return ".".join(names.binary().decode() for _ in names.elements())

    @property
    def size_bytes(self) -> int:
        return _number(self.about, _CHUNK_STORED)

    def is_within(self, file_bytes: int) -> bool:
        """Are its pages in this file, and readable without keys?"""
        if self.entry.keys() & {_OTHER_FILE, *_CRYPTO} or _number(self.about, _DATA_PAGE) < len(_MAGIC):
            return False
        areas = [(self.start, self.size_bytes), *filter(None, map(self.area, (_OFFSET_INDEX, _COLUMN_INDEX)))]
        return all(start >= len(_MAGIC) and 0 < size <= file_bytes - start for start, size in areas)

    def area(self, numbers: tuple[int, int]) -> tuple[int, int] | None:
        """Position and length of a part of the page index, by the numbers of their fields."""
        position, length = (_number(self.entry, number) for number in numbers)
        return (position, length) if position and length else None

    @property
    def bloom(self) -> tuple[int, int] | None:
        """Position and length of the bloom filter; None without one, or without its length."""
        position, length = (_number(self.about, number) for number in _BLOOM)
        return (position, length) if position > 0 and length > 0 else None


@dataclass(frozen=True, slots=True)
class Group:
    """A row group's chunks, and its number of rows."""

    chunks: tuple[Chunk, ...]
    rows: int


def groups_of(thrift: bytes) -> tuple[Group, ...]:
    """The row groups of a footer. Raises LookupError, ValueError, RecursionError for a damaged one."""
    footer = CompactReader(thrift)
    for _ in footer.fields_of(_ROW_GROUPS):
        return tuple(_group(footer) for _ in footer.elements())
    return ()


def elements_of(thrift: bytes) -> tuple[bytes, ...]:
    """The schema elements of a footer, but for the root, whose name differs by writer. Raises like `groups_of`."""
    footer = CompactReader(thrift)
    for _ in footer.fields_of(_SCHEMA):
        return tuple(_struct(_fields(footer)) for _ in footer.elements())[1:]
    return ()


def _group(footer: CompactReader) -> Group:
    chunks: list[Chunk] = []
    rows = 0
    for number in footer.fields_of(_COLUMNS, _ROWS):
        if number == _ROWS:
            rows = footer.integer()
            continue
        for _ in footer.elements():
            entry = _fields(footer)
            chunks.append(Chunk(entry, _fields(CompactReader(entry[_ABOUT][1]))))
    return Group(tuple(chunks), rows)


def _fields(reader: CompactReader) -> Fields:
    fields: Fields = {}
    for number, kind in reader.fields():
        start = reader.at
        reader.skip(kind)
        if reader.at > len(reader.data):
            raise LookupError("a field beyond the end")
        fields[number] = kind, reader.data[start : reader.at]
    return fields


def _struct(fields: Fields) -> bytes:
    struct = CompactWriter()
    for number in sorted(fields):
        struct.raw(number, *fields[number])
    return struct.end()


def _number(fields: Fields, number: int) -> int:
    """An integer, 0 where it is absent."""
    return CompactReader(fields[number][1]).integer() if number in fields else 0


def _integer(value: int, kind: int = I64) -> tuple[int, bytes]:
    return kind, CompactWriter.number(value)


@dataclass(frozen=True, slots=True)
class ChunkSource:
    """An open Parquet file with the groups of its footer."""

    file: pa.NativeFile
    where: str
    groups: tuple[Group, ...]

    @classmethod
    def of_buffer(cls, data: pa.Buffer) -> ChunkSource:
        """A Parquet file in memory."""
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
    """A Parquet file that is put together of column chunks.

    Args:    sink: where it is written. like: the footer of a file with the same schema and writer.
    """

    def __init__(self, sink: pa.NativeFile, like: bytes) -> None:
        self._sink, self._like = sink, like
        self._groups: list[tuple[list[Fields], list[Fields], int]] = []  # entries, their metadata, rows
        self._indexes: list[tuple[Fields, tuple[int, int], bytes]] = []
        self._blooms: list[tuple[Fields, bytes]] = []
        self._sink.write(_MAGIC)

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
        for source, start, size in _joined(picked):
            for first in range(start, start + size, _COPIED_AT_ONCE):
                self._sink.write(source.read(first, min(_COPIED_AT_ONCE, start + size - first)))
        self._groups.append((entries, abouts, rows))

    def _move(self, source: ChunkSource, chunk: Chunk, entry: Fields, about: Fields, by: int) -> None:
        """Move the positions in the entry of a chunk; keep what else of the file belongs to it."""
        for number in (_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE):
            if _number(about, number) > 0:
                about[number] = _integer(_number(about, number) + by)
        entry[_CHUNK_OFFSET] = _integer(0)  # deprecated; the Parquet format says 0
        for numbers in (_OFFSET_INDEX, _COLUMN_INDEX):
            area = chunk.area(numbers)
            for number in numbers:
                entry.pop(number, None)
            if area is not None:
                index = bytes(source.read(*area))
                if numbers == _OFFSET_INDEX:
                    with as_corrupt_file(source.where, "Parquet"):
                        index = _moved(index, by)
                self._indexes.append((entry, numbers, index))
        for number in _BLOOM:
            about.pop(number, None)
        if chunk.bloom is not None:
            self._blooms.append((about, bytes(source.read(*chunk.bloom))))

    def close(self, key_values: Mapping[str, str]) -> pq.FileMetaData:
        """Write page indexes, bloom filters and the footer; the sink stays open. Returns the footer."""
        for about, bloom in self._blooms:
            about.update({_BLOOM[0]: _integer(self._sink.tell()), _BLOOM[1]: _integer(len(bloom), I32)})
            self._sink.write(bloom)
        for entry, numbers, index in self._indexes:
            entry.update({numbers[0]: _integer(self._sink.tell()), numbers[1]: _integer(len(index), I32)})
            self._sink.write(index)
        footer = self._footer(key_values)
        end = len(footer).to_bytes(4, "little") + _MAGIC
        self._sink.write(footer + end)
        return pq.read_metadata(pa.BufferReader(_MAGIC + footer + end))

    def _footer(self, key_values: Mapping[str, str]) -> bytes:
        fields = _fields(CompactReader(self._like))
        groups = [_group_entry(number, *group) for number, group in enumerate(self._groups)]
        fields[_FILE_ROWS] = _integer(sum(rows for _, _, rows in self._groups))
        fields[_ROW_GROUPS] = LIST, CompactWriter.struct_list(groups)
        fields.pop(_KEY_VALUES, None)
        if key_values:
            fields[_KEY_VALUES] = LIST, CompactWriter.struct_list([_pair(*pair) for pair in key_values.items()])
        return _struct(fields)


def _group_entry(number: int, entries: Sequence[Fields], abouts: Sequence[Fields], rows: int) -> bytes:
    chunks = [
        Chunk({**entry, _ABOUT: (STRUCT, _struct(about))}, about) for entry, about in zip(entries, abouts, strict=True)
    ]
    group: Fields = {
        _COLUMNS: (LIST, CompactWriter.struct_list([_struct(chunk.entry) for chunk in chunks])),
        _PLAIN_BYTES: _integer(sum(_number(about, _CHUNK_PLAIN) for about in abouts)),
        _ROWS: _integer(rows),
        _STORED_BYTES: _integer(sum(chunk.size_bytes for chunk in chunks)),
    }
    if chunks:
        group[_FILE_OFFSET] = _integer(chunks[0].start)
    if number < _ORDINALS:
        group[_ORDINAL] = _integer(number, I16)
    return _struct(group)


def _joined(picked: Sequence[Picked]) -> Iterator[tuple[ChunkSource, int, int]]:
    """The ranges to copy, in order; neighbours of one file are one range."""
    ranges: list[tuple[ChunkSource, int, int]] = []
    for source, chunk in picked:
        start, size = chunk.start, chunk.size_bytes
        if ranges and ranges[-1][0] is source and sum(ranges[-1][1:]) == start:
            ranges[-1] = source, ranges[-1][1], ranges[-1][2] + size
        else:
            ranges.append((source, start, size))
    yield from ranges


def _moved(offset_index: bytes, by: int) -> bytes:
    """An offset index whose pages lie elsewhere. Raises LookupError, ValueError for a damaged one."""
    index = _fields(CompactReader(offset_index))
    locations = CompactReader(index[_LOCATIONS][1])
    moved: list[bytes] = []
    for _ in locations.elements():
        location = _fields(locations)
        location[_PAGE_OFFSET] = _integer(_number(location, _PAGE_OFFSET) + by)
        moved.append(_struct(location))
    index[_LOCATIONS] = LIST, CompactWriter.struct_list(moved)
    return _struct(index)


def _pair(key: str, value: str) -> bytes:
    pair = CompactWriter()
    pair.text(1, key)
    pair.text(2, value)
    return pair.end()
