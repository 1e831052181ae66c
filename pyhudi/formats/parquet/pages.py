"""Read single pages of a Parquet file as a separate small file: pyarrow reads columns only from their beginning.

    column chunk   = [dictionary page] data page, data page, ...     each behind a header in Thrift's compact protocol
    row numbers    → the pages that have them → MAGIC | pages | a footer for these pages | MAGIC → pyarrow

Columns whose pages have the same rows share one such file. This works only for columns with one value or null per row
and an unambiguous codec; for others the row group is read up to the last row.
Source: docs/formats/parquet.md, "Pages"; the Parquet format.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.formats.parquet.footer import PHYSICAL_TYPES, ParquetFooter
from pyhudi.formats.parquet.structs import (
    MAGIC,
    ColumnChunk,
    ColumnMetaData,
    FileMetaData,
    PageHeader,
    RowGroupEntry,
    SchemaElement,
    framed,
)
from pyhudi.formats.parquet.thrift import (
    CompactReader,
    Fields,
    encoded,
    i32,
    i64,
    integers,
    struct,
    structs,
    text,
    texts,
)

__all__ = ["PagedColumn", "paged_column", "rows_of_pages"]

Rows = npt.NDArray[np.int64]

_CODECS = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "BROTLI": 4, "ZSTD": 6}  # LZ4 has two forms of one name
_HEADER_BYTES = 4 << 10  # of a page, with the least and the greatest value; longer ones are not parsed
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8  # encodings


class _Page(NamedTuple):
    """A data page: its rows within the row group, and its position, header included."""

    first_row: int
    rows: int
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Pages:
    """The pages of a column chunk. `dictionary`: position of the dictionary page."""

    dictionary: tuple[int, int] | None
    data: tuple[_Page, ...]

    @property
    def size_bytes(self) -> int:
        """About what this takes in memory."""
        return 200 * (2 + len(self.data))

    def with_rows(self, rows: Rows) -> tuple[_Page, ...]:
        """Return the data pages with these rows."""
        last, pages = -1, []
        for row in rows.tolist():
            if row > last:
                pages.append(self.data[bisect_right(self.data, row, key=_first_row) - 1])
                last = pages[-1].first_row + pages[-1].rows - 1
        return tuple(pages)


def _first_row(page: _Page) -> int:
    return page.first_row


@dataclass(frozen=True, slots=True)
class PagedColumn:
    """A column chunk, and what a footer says of it: `element`, its schema element; `about`, the fields of its metadata
    that do not depend on its pages.
    """

    name: str
    element: bytes
    about: Fields
    pages: _Pages

    @property
    def size_bytes(self) -> int:
        """About what this takes in memory."""
        return self.pages.size_bytes


def paged_column(footer: ParquetFooter, source: pa.NativeFile, row_group: int, name: str) -> PagedColumn | None:
    """Return a top-level column of a row group, page by page; None when that is not possible."""
    try:
        element = flat_elements(footer.thrift).get(name)
    except (LookupError, ValueError, RecursionError):
        return None
    at = footer.leaves.get((name,))
    if element is None or at is None or (row_group, at) in footer.unreadable_chunks:
        return None
    group = footer.metadata.row_group(row_group)
    chunk = group.column(at)
    codec, kind = _CODECS.get(chunk.compression), PHYSICAL_TYPES.get(chunk.physical_type)
    if codec is None or kind is None or chunk.physical_type == "INT96":
        return None
    pages = _page_places(source, chunk, group.num_rows)
    return None if pages is None else PagedColumn(name, element, _about(name, kind, codec), pages)


def _page_places(source: pa.NativeFile, chunk: pq.ColumnChunkMetaData, rows: int) -> _Pages | None:
    """Return the pages of a column chunk with `rows` rows; None if their headers are not sufficient."""
    starts = (chunk.data_page_offset, chunk.dictionary_page_offset if chunk.has_dictionary_page else None)
    position = min(int(start) for start in starts if start is not None)
    end = position + chunk.total_compressed_size
    dictionary: tuple[int, int] | None = None
    data: list[_Page] = []
    first = 0
    while position < end and first < rows:
        source.seek(position)
        header = CompactReader(bytes(source.read(min(_HEADER_BYTES, end - position))))
        try:
            kind, packed, values = _page_header(header)
        except (LookupError, ValueError, RecursionError):
            return None
        size = header.at + packed
        if packed < 0 or position + size > end:
            return None
        if kind == PageHeader.DICTIONARY and dictionary is None and not data:
            dictionary = position, size
        elif kind in (PageHeader.DATA, PageHeader.DATA_V2) and values > 0:
            data.append(_Page(first, values, position, size))
            first += values
        else:
            return None
        position += size
    return _Pages(dictionary, tuple(data)) if first == rows else None


def _page_header(header: CompactReader) -> tuple[int, int, int]:
    """Return the type of a page, bytes after its header, and number of values in a data page."""
    kind = packed = -1
    values = 0
    for name in header.fields_of(PageHeader.TYPE, PageHeader.STORED_BYTES, PageHeader.V1, PageHeader.V2):
        if name == PageHeader.TYPE:
            kind = header.integer()
        elif name == PageHeader.STORED_BYTES:
            packed = header.integer()
        else:
            for _ in header.fields_of(PageHeader.VALUES):
                values = header.integer()
    return kind, packed, values


def flat_elements(thrift: bytes) -> Mapping[str, bytes]:
    """Return, by name, the schema elements of the top-level columns with one value, or null, for each row.

    Args:    thrift: a footer. Raises: LookupError, ValueError, RecursionError for a damaged one.
    """
    footer = CompactReader(thrift)
    for _ in footer.fields_of(FileMetaData.SCHEMA):
        elements = [_element(footer) for _ in footer.elements()]
        return dict(_flat(elements))
    return {}


class _Element(NamedTuple):
    name: str
    children: int
    is_repeated: bool
    thrift: bytes


def _element(footer: CompactReader) -> _Element:
    start, name, children, is_repeated = footer.at, "", 0, False
    for number in footer.fields_of(SchemaElement.REPETITION, SchemaElement.NAME, SchemaElement.CHILDREN):
        if number == SchemaElement.REPETITION:
            is_repeated = footer.integer() == SchemaElement.REPEATED
        elif number == SchemaElement.NAME:
            name = footer.binary().decode()
        else:
            children = footer.integer()
    return _Element(name, children, is_repeated, footer.data[start : footer.at])


def _flat(elements: Sequence[_Element]) -> Iterator[tuple[str, bytes]]:
    """True for children of the root without children."""
    position = 1
    for _ in range(elements[0].children if elements else 0):
        element = elements[position]
        if not element.children and not element.is_repeated:
            yield element.name, element.thrift
        position = _behind(elements, position)


def _behind(elements: Sequence[_Element], position: int) -> int:
    """Return the position of the next element that is not below this one."""
    unread = 1
    while unread:
        unread += elements[position].children - 1
        position += 1
    return position


def rows_of_pages(
    source: pa.NativeFile, columns: Sequence[PagedColumn], numbers: Rows, *, check_pages: bool
) -> list[pa.ChunkedArray]:
    """Return some rows (numbers in the row group, ascending) of some of its columns, column by column.

    Raises: pyarrow's errors for damaged pages.
    """
    alike: dict[tuple[tuple[int, int], ...], list[tuple[PagedColumn, Sequence[_Page]]]] = {}
    for column in columns:
        pages = column.pages.with_rows(numbers)
        alike.setdefault(tuple((page.first_row, page.rows) for page in pages), []).append((column, pages))
    values: dict[str, pa.ChunkedArray] = {}
    for ranges, group in alike.items():
        rows = sum(count for _, count in ranges)
        data = _small_file(source, group, rows)
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=check_pages)
        table = file.read(use_threads=False)
        if table.num_rows != rows:
            raise pa.ArrowInvalid(f"pages of {rows} rows have {table.num_rows}")
        picked = table.take(pa.array(_positions(ranges, numbers)))
        values |= dict(zip(table.column_names, picked.columns, strict=True))
    return [values[column.name] for column in columns]


def _positions(ranges: Sequence[tuple[int, int]], rows: Rows) -> Rows:
    """Return the positions of the rows among those of some pages."""
    firsts = np.array([first for first, _ in ranges], np.int64)
    starts = np.cumsum([0, *(count for _, count in ranges)])[:-1]
    page = np.searchsorted(firsts, rows, side="right") - 1
    positions: Rows = rows - firsts[page] + starts[page]
    return positions


def _small_file(source: pa.NativeFile, group: Sequence[tuple[PagedColumn, Sequence[_Page]]], rows: int) -> bytes:
    parts, position = [MAGIC], len(MAGIC)
    chunks: list[bytes] = []
    for column, pages in group:
        start = position
        places = [(page.offset, page.size_bytes) for page in pages]
        if column.pages.dictionary is not None:
            places.insert(0, column.pages.dictionary)
        for offset, size in places:
            source.seek(offset)
            parts.append(bytes(source.read(size)))
            position += len(parts[-1])
        dictionary = None if column.pages.dictionary is None else start
        first_data = start + (0 if column.pages.dictionary is None else column.pages.dictionary[1])
        chunks.append(_column_chunk(column, rows, position - start, first_data, dictionary))
    footer = _footer([column.element for column, _ in group], chunks, rows, position - len(MAGIC))
    return b"".join((*parts, framed(footer)))


def _about(name: str, physical_type: int, codec: int) -> Fields:
    return {
        ColumnMetaData.TYPE: i32(physical_type),
        ColumnMetaData.ENCODINGS: integers([_PLAIN, _RLE, _RLE_DICTIONARY]),
        ColumnMetaData.PATH: texts([name]),
        ColumnMetaData.CODEC: i32(codec),
    }


def _column_chunk(column: PagedColumn, rows: int, size: int, first_data: int, dictionary: int | None) -> bytes:
    about = column.about | {
        ColumnMetaData.VALUES: i64(rows),
        ColumnMetaData.PLAIN_BYTES: i64(size),
        ColumnMetaData.STORED_BYTES: i64(size),
        ColumnMetaData.DATA_PAGE: i64(first_data),
    }
    if dictionary is not None:
        about[ColumnMetaData.DICTIONARY_PAGE] = i64(dictionary)
    return encoded({ColumnChunk.OFFSET: i64(0), ColumnChunk.METADATA: struct(about)})


def _footer(elements: Sequence[bytes], chunks: Sequence[bytes], rows: int, size: int) -> bytes:
    root = encoded({SchemaElement.NAME: text("schema"), SchemaElement.CHILDREN: i32(len(elements))})
    group = {
        RowGroupEntry.COLUMNS: structs(chunks),
        RowGroupEntry.PLAIN_BYTES: i64(size),
        RowGroupEntry.ROWS: i64(rows),
    }
    return encoded(
        {
            FileMetaData.VERSION: i32(2),
            FileMetaData.SCHEMA: structs([root, *elements]),
            FileMetaData.ROWS: i64(rows),
            FileMetaData.ROW_GROUPS: structs([encoded(group)]),
        }
    )
