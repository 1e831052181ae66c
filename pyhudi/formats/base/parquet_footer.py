"""The footer of a Parquet file, the column chunks that PyArrow can read safely, and Thrift's compact protocol.

PyArrow ends the process when it reads a chunk without metadata, an encrypted one, or one whose histograms have more or
fewer levels than its column. It does the same for the statistics of a chunk whose type is not its column's, or whose
bounds are shorter than a value of the type, since it decodes them where no error can be raised. So `ParquetFooter`
checks the bytes of the footer first.

A footer names each column twice: in its schema, and in each row group. `check_column_names` compares the names: a
column whose name has a damaged bit would be a column that the file lacks.

`CompactReader` and `CompactWriter` implement the part of the compact protocol that the footers and page headers of
Parquet files need.

Source: docs/formats/base-files.md, "Footer"; the compact protocol of Apache Thrift.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import CorruptFile
from pyhudi.lazy_property import lazy_property

__all__ = [
    "FALSE",
    "I16",
    "I32",
    "I64",
    "LIST",
    "PHYSICAL_TYPES",
    "STRUCT",
    "CompactReader",
    "CompactWriter",
    "ParquetFooter",
    "Place",
    "check_column_names",
    "leaf_positions",
    "read_footer",
]


_VARINT_BYTES = 10  # 64 bits, seven to a byte
# Types of the compact protocol.
_BYTE, _DOUBLE, _BINARY, LIST, _SET, _MAP, STRUCT = 3, 7, 8, 9, 10, 11, 12
I16, I32, I64 = 4, 5, 6
_INTEGERS = frozenset({I16, I32, I64})
_LONGEST_STEP = 15  # between numbers of fields; after a longer one the number follows
_LONG_LIST = 15  # with so many elements or more, the number follows
_TRUE, FALSE = 1, 2
_FIXED_BYTES = {_BYTE: 1, _DOUBLE: 8}


class CompactReader:
    """A cursor at position `at` of some bytes. Reading beyond them raises LookupError."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and type of each field of a struct; the caller moves over its value."""
        number = 0
        while (head := self._byte()) != 0:
            step = head >> 4
            number = number + step if step else self.integer()
            yield number, head & 15

    def fields_of(self, *field_numbers: int) -> Iterator[int]:
        """The given field numbers that a struct has, each before its value; other fields are skipped."""
        for number, kind in self.fields():
            if number in field_numbers:
                yield number
            else:
                self.skip(kind)

    def elements(self) -> range:
        """Numbers of the elements of a list; the caller moves over each."""
        return range(self._list_head()[0])

    def integer(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def binary(self) -> bytes:
        size = self._varint()
        self.at += size
        return self.data[self.at - size : self.at]

    def skip(self, kind: int) -> None:
        """Move over a value."""
        if kind in _INTEGERS:
            self._varint()
        elif kind == _BINARY:
            self.binary()
        elif kind == STRUCT:
            for _, part in self.fields():
                self.skip(part)
        elif kind in (LIST, _SET):
            count, part = self._list_head()
            for _ in range(count):
                self._skip_element(part)
        elif kind == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            for _ in range(count):
                self._skip_element(kinds >> 4)
                self._skip_element(kinds & 15)
        elif kind not in (_TRUE, FALSE):  # the type of a field holds these values
            self.at += _FIXED_BYTES[kind]

    def _skip_element(self, kind: int) -> None:
        if kind in (_TRUE, FALSE):
            self.at += 1
        else:
            self.skip(kind)

    def _list_head(self) -> tuple[int, int]:
        head = self._byte()
        count = head >> 4
        return (count if count < _LONG_LIST else self._varint()), head & 15

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _varint(self) -> int:
        value = 0
        for place in range(_VARINT_BYTES):
            byte = self._byte()
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return value
        raise ValueError("a number of more than 64 bits")


class CompactWriter:
    """The fields of one struct, in the order of their numbers.

    Args:    begun: `fields` of another writer, to continue; last: the number of their last field.
    """

    def __init__(self, begun: bytes = b"", last: int = 0) -> None:
        self._parts = [begun]
        self._last = last

    def integer(self, number: int, value: int) -> None:
        """An i32."""
        self.raw(number, I32, _varint(_zigzag(value)))

    def long(self, number: int, value: int) -> None:
        """An i64."""
        self.raw(number, I64, _varint(_zigzag(value)))

    def text(self, number: int, value: str) -> None:
        """A string."""
        self.raw(number, _BINARY, _binary(value))

    def struct(self, number: int, value: bytes) -> None:
        """Another struct, as its `end` returned it."""
        self.raw(number, STRUCT, value)

    def integers(self, number: int, values: Sequence[int]) -> None:
        """A list of i32."""
        self._list(number, I32, [_varint(_zigzag(value)) for value in values])

    def texts(self, number: int, values: Sequence[str]) -> None:
        """A list of strings."""
        self._list(number, _BINARY, [_binary(value) for value in values])

    def structs(self, number: int, values: Sequence[bytes]) -> None:
        """A list of structs."""
        self._list(number, STRUCT, values)

    def fields(self) -> bytes:
        """The fields so far."""
        return b"".join(self._parts)

    def end(self) -> bytes:
        """The struct."""
        return b"".join((*self._parts, b"\x00"))

    def raw(self, number: int, kind: int, value: bytes) -> None:
        """A value as `CompactReader.skip` moves over it."""
        step = number - self._last
        head = bytes([step << 4 | kind]) if 0 < step <= _LONGEST_STEP else bytes([kind]) + self.number(number)
        self._parts += [head, value]
        self._last = number

    @staticmethod
    def number(value: int) -> bytes:
        """The encoded value of an integer."""
        return _varint(_zigzag(value))

    @staticmethod
    def struct_list(structs: Sequence[bytes]) -> bytes:
        """The encoded value of a list of structs."""
        return _encoded_list(STRUCT, structs)

    def _list(self, number: int, kind: int, values: Sequence[bytes]) -> None:
        self.raw(number, LIST, _encoded_list(kind, values))


def _encoded_list(kind: int, values: Sequence[bytes]) -> bytes:
    count = len(values)
    head = bytes([count << 4 | kind]) if count < _LONG_LIST else bytes([_LONG_LIST << 4 | kind]) + _varint(count)
    return head + b"".join(values)


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _varint(value: int) -> bytes:
    content = bytearray()
    while value > 0x7F:
        content.append(value & 0x7F | 0x80)
        value >>= 7
    content.append(value)
    return bytes(content)


def _binary(text: str) -> bytes:
    data = text.encode()
    return _varint(len(data)) + data


_MAGIC = b"PAR1"
_END_BYTES = 8  # the footer's length and the magic
_TAIL_BYTES = 64 << 10  # read first, as in pyarrow: most footers are within
# Parquet's types in the order of their numbers, with the bytes of a value; those of the last two differ.
_TYPES = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 0}
PHYSICAL_TYPES = {name: number for number, name in enumerate([*_TYPES, "FIXED_LEN_BYTE_ARRAY"])}
# Field numbers: of FileMetaData, RowGroup, ColumnChunk, ColumnMetaData, Statistics, SizeStatistics.
_ROW_GROUPS, _COLUMNS = 4, 1
_METADATA, _ENCRYPTION = 3, 8
_TYPE, _PATH, _STATISTICS, _SIZES = 1, 3, 12, 16
_BOUNDS = (1, 2, 5, 6)
_EXACT = (7, 8)  # is the greatest, is the least bound an actual value? Else it is a truncated bound around all values
_TEXT_BYTES, _LEVELS = 1, (2, 3)
Place = tuple[int, int]  # row group, column


@dataclass(frozen=True)
class ParquetFooter:
    """pyarrow's metadata of a footer, and the footer's bytes."""

    metadata: pq.FileMetaData
    thrift: bytes

    @lazy_property
    def leaves(self) -> Mapping[tuple[str, ...], int]:
        """See `leaf_positions`."""
        return leaf_positions(self.metadata)

    @lazy_property
    def unreadable_chunks(self) -> frozenset[Place]:
        """The chunks that pyarrow must not read. Raises LookupError, ValueError, RecursionError."""
        schema = self.metadata.schema
        columns = [schema.column(index) for index in range(self.metadata.num_columns)]
        return frozenset(place for place, chunk in self._chunks.items() if not chunk.fits(columns[place[1]]))

    @lazy_property
    def cut_chunks(self) -> frozenset[Place]:
        """The chunks whose bounds are truncated. Raises like `unreadable_chunks`."""
        return frozenset(place for place, chunk in self._chunks.items() if chunk.is_cut)

    @lazy_property
    def names_in_doubt(self) -> tuple[str, str] | None:
        """A leaf column's path in the schema and in the first row group where these differ. Raises like
        `unreadable_chunks`.
        """
        schema = self.metadata.schema
        for index, path in enumerate(_first_paths(CompactReader(self.thrift))):
            if path is not None and index < self.metadata.num_columns and schema.column(index).path != path:
                return schema.column(index).path, path
        return None

    @lazy_property
    def _chunks(self) -> dict[Place, _Chunk]:
        return dict(_chunks(CompactReader(self.thrift)))


@dataclass(slots=True)
class _Chunk:
    """A footer's entry of a column chunk. `levels`: lengths of the histograms of repetition and definition levels."""

    value_type: int | None = None
    bounds: list[int] = field(default_factory=list)  # lengths
    is_cut: bool = False
    is_encrypted: bool = False
    counts_text: bool = False
    levels: list[int] = field(default_factory=lambda: [0, 0])

    def fits(self, column: pq.ColumnSchema) -> bool:
        """Can the chunk belong to this column?"""
        name = column.physical_type
        value_bytes = _TYPES.get(name, column.length or 0)
        expected = (column.max_repetition_level + 1, column.max_definition_level + 1)
        return (
            self.value_type == PHYSICAL_TYPES.get(name)
            and not self.is_encrypted
            and min(self.bounds, default=value_bytes) >= value_bytes
            and (not self.counts_text or name == "BYTE_ARRAY")
            and all(level in (0, expected_level) for level, expected_level in zip(self.levels, expected, strict=True))
        )


def check_column_names(footer: ParquetFooter, where: str) -> None:
    """Raise CorruptFile when the footer has two names of one column. For a file that lacks a column, or has fields of
    structs: it may have them under damaged names.
    """
    names = footer.names_in_doubt
    if names is not None:
        raise CorruptFile(
            f"{where}: the footer calls one column {names[0]!r:.200} in its schema and {names[1]!r:.200} in its row "
            "groups; expected one name. A name is damaged, and the column would be null. Restore the file from a copy."
        )


def read_footer(source: pa.NativeFile) -> ParquetFooter:
    """The footer of an open file. Raises pyarrow's errors for a damaged one."""
    size = source.size()
    tail = _last(source, min(size, _TAIL_BYTES))
    length = int.from_bytes(tail[-_END_BYTES : -len(_MAGIC)], "little")
    if not tail.endswith(_MAGIC) or not 0 < length <= size - _END_BYTES:
        return ParquetFooter(pq.read_metadata(source), b"")  # which raises the right error
    if length > len(tail) - _END_BYTES:
        tail = _last(source, length + _END_BYTES)
    thrift = tail[-length - _END_BYTES : -_END_BYTES]
    alone = pa.BufferReader(_MAGIC + thrift + tail[-_END_BYTES:])
    return ParquetFooter(pq.read_metadata(alone), thrift)


def leaf_positions(metadata: pq.FileMetaData) -> dict[tuple[str, ...], int]:
    """Path of names → leaf column, for plain columns and struct fields whose path is unambiguous."""
    paths: list[tuple[str, ...]] = []
    for index in range(metadata.num_columns):
        leaf = metadata.schema.column(index)
        # Without repetition a leaf has one value or null per row. A column's name may contain dots.
        parts = tuple(leaf.path.split("."))
        paths.append((leaf.path,) if leaf.max_definition_level <= 1 else parts)
        if leaf.max_repetition_level:
            paths[-1] = ()
    times = Counter(paths)
    return {path: index for index, path in enumerate(paths) if path and times[path] == 1}


def _last(source: pa.NativeFile, count: int) -> bytes:
    source.seek(source.size() - count)
    return bytes(source.read(count))


def _chunks(footer: CompactReader) -> Iterator[tuple[Place, _Chunk]]:
    for _ in footer.fields_of(_ROW_GROUPS):
        for group in footer.elements():
            for _ in footer.fields_of(_COLUMNS):
                for index in footer.elements():
                    yield (group, index), _chunk(footer)


def _first_paths(footer: CompactReader) -> Iterator[str | None]:
    """The paths of the columns in the first row group; None for a column without one."""
    for _ in footer.fields_of(_ROW_GROUPS):
        for _ in footer.elements():
            for _ in footer.fields_of(_COLUMNS):
                for _ in footer.elements():
                    path = None
                    for _ in footer.fields_of(_METADATA):
                        for _ in footer.fields_of(_PATH):
                            path = ".".join(footer.binary().decode("utf-8", "replace") for _ in footer.elements())
                    yield path
            return


def _chunk(footer: CompactReader) -> _Chunk:
    chunk = _Chunk()
    for part in footer.fields_of(_METADATA, _ENCRYPTION):
        if part == _ENCRYPTION:
            chunk.is_encrypted = True
            footer.skip(STRUCT)
            continue
        for name in footer.fields_of(_TYPE, _STATISTICS, _SIZES):
            if name == _TYPE:
                chunk.value_type = footer.integer()
            elif name == _STATISTICS:
                _take_statistics(footer, chunk)
            else:
                _take_sizes(footer, chunk)
    return chunk


def _take_statistics(footer: CompactReader, chunk: _Chunk) -> None:
    for name, kind in footer.fields():
        if name in _BOUNDS:
            chunk.bounds.append(len(footer.binary()))
        else:
            chunk.is_cut |= name in _EXACT and kind == FALSE
            footer.skip(kind)


def _take_sizes(footer: CompactReader, chunk: _Chunk) -> None:
    for name in footer.fields_of(_TEXT_BYTES, *_LEVELS):
        if name == _TEXT_BYTES:
            chunk.counts_text = True
            footer.integer()
            continue
        levels = footer.elements()
        chunk.levels[_LEVELS.index(name)] = len(levels)
        for _ in levels:
            footer.integer()
