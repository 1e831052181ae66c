"""The footer of a Parquet file, and the column chunks that PyArrow can read safely.

PyArrow ends the process when it reads a chunk without metadata, an encrypted one, or one whose histograms have more or
fewer levels than its column. It does the same for the statistics of a chunk whose type is not its column's, or whose
bounds are shorter than a value of the type, since it decodes them where no error can be raised. So `ParquetFooter`
checks the bytes of the footer first.

A footer names each column twice: in its schema, and in each row group. `check_column_names` compares the names: a
column whose name has a damaged bit would be a column that the file lacks.

Source: docs/formats/parquet.md, "Invariants"; docs/formats/base-files.md, "Footer"; the Parquet format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import CorruptFile
from pyhudi.formats.parquet.structs import (
    MAGIC,
    ColumnChunk,
    ColumnMetaData,
    FileMetaData,
    RowGroupEntry,
    SizeStatistics,
    Statistics,
)
from pyhudi.formats.parquet.thrift import FALSE, STRUCT, CompactReader
from pyhudi.lazy_property import lazy_property

__all__ = ["PHYSICAL_TYPES", "ParquetFooter", "Place", "check_column_names", "leaf_positions", "read_footer"]


_END_BYTES = 8  # the footer's length and the magic
_TAIL_BYTES = 64 << 10  # read first, as in pyarrow: most footers fit
# Parquet's types in the order of their numbers, with the bytes of a value; those of the last two differ.
_TYPES = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 0}
PHYSICAL_TYPES = {name: number for number, name in enumerate([*_TYPES, "FIXED_LEN_BYTE_ARRAY"])}
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
        """True if the chunk can belong to this column."""
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
    """Raise CorruptFile if the footer has two names for one column.

    Call it for a file that lacks a column or has fields of structs: it may have them under damaged names.
    """
    names = footer.names_in_doubt
    if names is not None:
        raise CorruptFile(
            f"{where}: the footer calls one column {names[0]!r:.200} in its schema and {names[1]!r:.200} in its row "
            "groups; expected one name. A name is damaged, and the column would be null. Restore the file from a copy."
        )


def read_footer(source: pa.NativeFile) -> ParquetFooter:
    """Read the footer of an open file. Raises pyarrow's errors for a damaged one."""
    size = source.size()
    tail = _last(source, min(size, _TAIL_BYTES))
    length = int.from_bytes(tail[-_END_BYTES : -len(MAGIC)], "little")
    if not tail.endswith(MAGIC) or not 0 < length <= size - _END_BYTES:
        return ParquetFooter(pq.read_metadata(source), b"")  # which raises the right error
    if length > len(tail) - _END_BYTES:
        tail = _last(source, length + _END_BYTES)
    thrift = tail[-length - _END_BYTES : -_END_BYTES]
    alone = pa.BufferReader(MAGIC + thrift + tail[-_END_BYTES:])
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
    for _ in footer.fields_of(FileMetaData.ROW_GROUPS):
        for group in footer.elements():
            for _ in footer.fields_of(RowGroupEntry.COLUMNS):
                for index in footer.elements():
                    yield (group, index), _chunk(footer)


def _first_paths(footer: CompactReader) -> Iterator[str | None]:
    """Yield the paths of the columns in the first row group; None for a column without one."""
    for _ in footer.fields_of(FileMetaData.ROW_GROUPS):
        for _ in footer.elements():
            for _ in footer.fields_of(RowGroupEntry.COLUMNS):
                for _ in footer.elements():
                    path = None
                    for _ in footer.fields_of(ColumnChunk.METADATA):
                        for _ in footer.fields_of(ColumnMetaData.PATH):
                            path = ".".join(footer.binary().decode("utf-8", "replace") for _ in footer.elements())
                    yield path
            return


def _chunk(footer: CompactReader) -> _Chunk:
    chunk = _Chunk()
    for part in footer.fields_of(ColumnChunk.METADATA, ColumnChunk.CRYPTO_METADATA):
        if part == ColumnChunk.CRYPTO_METADATA:
            chunk.is_encrypted = True
            footer.skip(STRUCT)
            continue
        for name in footer.fields_of(ColumnMetaData.TYPE, ColumnMetaData.STATISTICS, ColumnMetaData.SIZES):
            if name == ColumnMetaData.TYPE:
                chunk.value_type = footer.integer()
            elif name == ColumnMetaData.STATISTICS:
                _take_statistics(footer, chunk)
            else:
                _take_sizes(footer, chunk)
    return chunk


def _take_statistics(footer: CompactReader, chunk: _Chunk) -> None:
    for name, kind in footer.fields():
        if name in Statistics.BOUNDS:
            chunk.bounds.append(len(footer.binary()))
        else:
            chunk.is_cut |= name in Statistics.IS_EXACT and kind == FALSE
            footer.skip(kind)


def _take_sizes(footer: CompactReader, chunk: _Chunk) -> None:
    for name in footer.fields_of(SizeStatistics.TEXT_BYTES, *SizeStatistics.LEVELS):
        if name == SizeStatistics.TEXT_BYTES:
            chunk.counts_text = True
            footer.integer()
            continue
        levels = footer.elements()
        chunk.levels[SizeStatistics.LEVELS.index(name)] = len(levels)
        for _ in levels:
            footer.integer()
