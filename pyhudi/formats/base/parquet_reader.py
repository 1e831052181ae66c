"""Reading Parquet base files of all known writers: lists in the layouts `array`, `bag.array` and `list.element`,
decimals as fixed bytes or integers, INT96, one row group per file.

Source: docs/formats/base-files.md, "Parquet layouts", "Footer".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from types import TracebackType
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.arrow.kinds import has_struct
from pyhudi.errors import CorruptFile
from pyhudi.formats.base.base import BATCH_ROWS, Footer, check_outline, fit, open_stored, rows_among
from pyhudi.formats.base.parquet_calendar import OldCalendar, old_calendar
from pyhudi.formats.base.ranges import FooterRanges, RangeTest, ranges_of_file, row_groups_that_may_match
from pyhudi.formats.column_stats import ColumnRange
from pyhudi.formats.damage import as_corrupt_file
from pyhudi.formats.parquet.chunks import ChunkSource, groups_of
from pyhudi.formats.parquet.footer import ParquetFooter, check_column_names, read_footer
from pyhudi.formats.parquet.pages import PagedColumn, paged_column, rows_of_pages
from pyhudi.storage.base import Storage
from pyhudi.storage.file_cache import get_or_load_in_state, load_on_second_use, settled_state, state_of

__all__ = ["AVRO_SCHEMA_KEY", "ParquetReader", "parquet_rows"]

AVRO_SCHEMA_KEY = "parquet.avro.schema"

T = TypeVar("T")

_LARGE_ROW_GROUP_BYTES = 64 << 20  # without compression
_SMALL_ROW_GROUP_BYTES = 1 << 20  # likewise: passing its columns to threads takes longer than decoding them
_PAGE_BUFFER_BYTES = 1 << 20

_FOOTER_COPIES = 2  # in memory: the bytes, and pyarrow's metadata
_CHUNK_BYTES = 1000  # about the size of a chunk's metadata in memory
_CACHED_ROWS_MAX = 1 << 20  # of a row group: one file's keys must not displace those of all others
_PAGED_ROWS = 64  # of a row group: for more rows most pages are read anyway
_ROWS_AT_ONCE = 8192  # in a batch when single rows are read: rows after the last are not decoded


@dataclass(frozen=True, slots=True)
class _Outline:
    """A file's metadata. `arrow_schema`: from pyarrow; `schema`: the schema of returned rows; `calendar`:
    None when its dates are Gregorian.
    """

    footer: ParquetFooter
    arrow_schema: pa.Schema
    schema: pa.Schema
    calendar: OldCalendar | None

    @property
    def size_bytes(self) -> int:
        """The approximate memory of the footer's bytes, pyarrow's metadata and chunk metadata."""
        metadata = self.footer.metadata
        return _FOOTER_COPIES * len(self.footer.thrift) + _CHUNK_BYTES * metadata.num_columns * metadata.num_row_groups


def _outline_bytes(outline: _Outline) -> int:
    return outline.size_bytes


def _paged_bytes(column: PagedColumn | Literal[False]) -> int:
    return column.size_bytes if column else 0


def _parts_bytes(parts: Sequence[tuple[int, pa.Array]]) -> int:
    return sum(int(values.nbytes) for _, values in parts)


class ParquetReader:
    """One open Parquet base file. `check_pages`: compare the checksums of pages that have one."""

    def __init__(self, storage: Storage, path: str, *, check_pages: bool = True) -> None:
        self._check_pages = check_pages
        self.where = f"{storage.root}/{path}"
        before = settled_state(storage, path)
        self._input = open_stored(storage, path)
        # If it is equal before and after opening, it is the state of the open file, even if its name is reused later.
        self._state = before if before is not None and state_of(storage, path) == before else None
        self._path = path
        # A mapped file is in the file cache; elsewhere all ranges of a row group are fetched at once.
        self._pre_buffer = not isinstance(self._input, pa.OSFile | pa.MemoryMappedFile | pa.BufferReader)
        self._opened: pq.ParquetFile | None = None
        try:
            with as_corrupt_file(self.where, "Parquet"):
                self._outline = self._get_or_make("outline", self._read_outline, _outline_bytes)
                self._footer, self._schema = self._outline.footer, self._outline.schema
            check_outline(self.where, self.num_rows, self._schema.names)
        except BaseException:
            self._input.close()
            raise

    def _get_or_make(self, part: Hashable, make: Callable[[], T], size_of: Callable[[T], int]) -> T:
        """Return the result of `make`, possibly cached by another reader of the file."""
        return make() if self._state is None else get_or_load_in_state(self._state, self._path, part, make, size_of)

    def _read_outline(self) -> _Outline:
        footer = read_footer(self._input)
        self._opened = self._open(footer.metadata, ())
        # A bloom filter takes most of a footer. The schema's metadata would be a third copy of it.
        arrow_schema = self._opened.schema_arrow.remove_metadata()
        calendar = old_calendar(footer.metadata.metadata)
        return _Outline(footer, arrow_schema, _with_int96(self._opened), calendar)

    @property
    def _file(self) -> pq.ParquetFile:
        """The open file, opened on first use: readers of a few rows read only their pages."""
        if self._opened is None:
            self._opened = self._open(self._footer.metadata, ())
        return self._opened

    def _open(self, metadata: pq.FileMetaData, dictionaries: Collection[str]) -> pq.ParquetFile:
        # Java often writes one row group per file: read its columns page by page, or all of it is in memory at once.
        # Use only the metadata of row groups: pyarrow ends the process when it reads that of a damaged column.
        groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
        largest = max((int(group.total_byte_size) for group in groups), default=0)
        buffer_size = _PAGE_BUFFER_BYTES if largest > _LARGE_ROW_GROUP_BYTES else 0
        return pq.ParquetFile(
            self._input, metadata=metadata, pre_buffer=self._pre_buffer, buffer_size=buffer_size,
            read_dictionary=list(dictionaries), coerce_int96_timestamp_unit="us",
            page_checksum_verification=self._check_pages,
        )  # fmt: skip

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def columns_of(self, names: Sequence[str]) -> list[str]:
        types = dict(zip(self._schema.names, self._schema.types, strict=True))
        present = [name for name in names if name in types]
        if len(present) < len(names) or any(has_struct(types[name]) for name in present):
            with as_corrupt_file(self.where, "Parquet"):
                check_column_names(self._footer, self.where)
        return present

    @property
    def num_rows(self) -> int:
        return int(self._footer.metadata.num_rows)

    @property
    def part_rows(self) -> tuple[int, ...]:
        metadata = self._footer.metadata
        return tuple(int(metadata.row_group(number).num_rows) for number in range(metadata.num_row_groups))

    @property
    def plain_bytes(self) -> int:
        metadata = self._footer.metadata
        return sum(int(metadata.row_group(number).total_byte_size) for number in range(metadata.num_row_groups))

    @property
    def footer(self) -> Footer:
        entries = {
            key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
            for key, value in (self._footer.metadata.metadata or {}).items()
            if not key.startswith(b"ARROW:")
        }
        return Footer.from_key_values(entries, AVRO_SCHEMA_KEY)

    def low_cardinality_columns(self) -> tuple[str, ...]:
        strings = {field.name for field in self._schema if pa.types.is_string(field.type)}
        with as_corrupt_file(self.where, "Parquet"):
            # A column of dictionary codes takes one or two bytes per value; with fall-back pages it takes the strings'
            # bytes.
            return tuple(
                chunk.path_in_schema
                for chunk in self._first_chunks()
                if chunk.path_in_schema in strings
                and chunk.has_dictionary_page
                and chunk.total_uncompressed_size <= 2 * chunk.num_values + 4096
            )

    def plain_columns(self) -> frozenset[str]:
        with as_corrupt_file(self.where, "Parquet"):
            plain = {chunk.path_in_schema for chunk in self._first_chunks() if not chunk.has_dictionary_page}
            return frozenset(self._schema.names) & plain

    def _first_chunks(self) -> Iterator[pq.ColumnChunkMetaData]:
        """Yield the metadata of the first row group's columns."""
        metadata = self._footer.metadata
        if metadata.num_row_groups:
            group, unreadable = metadata.row_group(0), self._footer.unreadable_chunks
            yield from (group.column(index) for index in range(metadata.num_columns) if (0, index) not in unreadable)

    def chunks(self) -> tuple[ParquetFooter, ChunkSource]:
        """Return the footer, and the file as a source of column chunks. Raises CorruptFile."""
        with as_corrupt_file(self.where, "Parquet"):
            return self._footer, ChunkSource(self._input, self.where, groups_of(self._footer.thrift))

    def batches(
        self,
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
        dictionaries: Collection[str] = (),
        may_match: RangeTest | None = None,
        parts: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        names = self._schema.names if columns is None else columns
        return (batch for _, batch in self._numbered(names, batch_rows, dictionaries, may_match, parts))

    def rows_in_parts(self, test: RangeTest) -> int:
        metadata = self._footer.metadata
        return sum(metadata.row_group(number).num_rows for number in self._groups(test))

    def _groups(self, may_match: RangeTest | None) -> list[int]:
        return row_groups_that_may_match(self._footer, may_match, has_old_days=self._outline.calendar is not None)

    def numbered_batches(
        self, columns: Sequence[str], batch_rows: int = BATCH_ROWS, may_match: RangeTest | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        return self._numbered(columns, batch_rows, (), may_match)

    def _numbered(
        self,
        read_names: Sequence[str],
        batch_rows: int,
        dictionaries: Collection[str],
        may_match: RangeTest | None,
        parts: Sequence[int] | None = None,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        column_names = set(self._schema.names)
        names = [name for name in read_names if name in column_names]
        with as_corrupt_file(self.where, "Parquet"):
            metadata = self._footer.metadata
            file = self._open(metadata, dictionaries) if dictionaries else self._file
            starts = list(accumulate(self.part_rows, initial=0))
            # One row group at a time, so that at most one is buffered ahead.
            for row_group in self._groups(may_match):
                if parts is not None and row_group not in parts:
                    continue
                for first, batch in self._numbered_of_group(file, row_group, names, batch_rows):
                    yield starts[row_group] + first, batch

    def _numbered_of_group(
        self, file: pq.ParquetFile, row_group: int, names: list[str], batch_rows: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the rows of one row group, batch by batch, each with the number of its first row there."""
        first, group = 0, file.metadata.row_group(row_group)
        is_large = group.total_byte_size > _SMALL_ROW_GROUP_BYTES
        for batch in file.iter_batches(batch_rows, row_groups=[row_group], columns=names, use_threads=is_large):
            yield first, self._convert_types(batch.select(names))
            first += len(batch)
        self._check_rows(first, group.num_rows)

    def rows_having(self, column: str, values: pa.Array, may_match: RangeTest | None = None) -> npt.NDArray[np.int64]:
        numbers = [np.zeros(0, np.int64)]
        with as_corrupt_file(self.where, "Parquet"):
            metadata = self._footer.metadata
            sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
            starts = list(accumulate(sizes, initial=0))
            for row_group in self._groups(may_match):
                parts = self._column_of_group(row_group, column, sizes[row_group])
                numbers.append(rows_among(parts, values) + starts[row_group])
        return np.concatenate(numbers)

    def _column_of_group(self, row_group: int, name: str, rows: int) -> Iterator[tuple[int, pa.Array]]:
        """The values of a column in a row group, each part with the number of its first row there. They stay in memory
        when they are read repeatedly.
        """

        def parts() -> Iterator[tuple[int, pa.Array]]:
            for first, batch in self._numbered_of_group(self._file, row_group, [name], BATCH_ROWS):
                yield first, batch.column(0)

        if self._state is None or rows > _CACHED_ROWS_MAX:
            return parts()
        part = ("column", row_group, name)
        cached = load_on_second_use(self._state, self._path, part, lambda: tuple(parts()), _parts_bytes)
        return parts() if cached is None else iter(cached)

    def rows_at(self, columns: Sequence[str], rows: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        column_names = set(self._schema.names)
        names = [name for name in columns if name in column_names]
        with as_corrupt_file(self.where, "Parquet"):
            metadata, first = self._footer.metadata, 0
            for row_group in range(metadata.num_row_groups):
                behind = first + metadata.row_group(row_group).num_rows
                low, high = np.searchsorted(rows, (first, behind))
                if low < high:
                    yield from self._rows_at(row_group, names, rows[low:high] - first)
                first = behind

    def _rows_at(self, row_group: int, names: list[str], rows: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one row group, which is read up to the last of them if single pages can't be read."""
        batch = self._of_pages(row_group, names, rows) if self._state is not None and len(rows) <= _PAGED_ROWS else None
        if batch is not None:
            yield batch
            return
        first, last = 0, int(rows[-1])
        # Threads don't pay off for few rows; the caller uses them for other files.
        for batch in self._file.iter_batches(_ROWS_AT_ONCE, row_groups=[row_group], columns=names, use_threads=False):
            low, high = np.searchsorted(rows, (first, first + len(batch)))
            if low < high:
                yield self._convert_types(batch.select(names)).take(pa.array(rows[low:high] - first))
            first += len(batch)
            if first > last:
                return
        self._check_rows(first, self._footer.metadata.row_group(row_group).num_rows)

    def _of_pages(self, row_group: int, names: list[str], rows: npt.NDArray[np.int64]) -> pa.RecordBatch | None:
        """Like `_rows_at`, by single pages; None where a column does not allow it."""
        paged = []
        for name in names:
            pages = self._get_or_make(("pages", row_group, name), partial(self._paged, row_group, name), _paged_bytes)
            if not pages:
                return None
            paged.append(pages)
        columns = rows_of_pages(self._input, paged, rows, check_pages=self._check_pages)
        schema = pa.schema([self._outline.arrow_schema.field(name) for name in names])
        if [column.type for column in columns] != schema.types:
            return None
        return self._convert_types(pa.Table.from_arrays(columns, schema=schema).combine_chunks().to_batches()[0])

    def _paged(self, row_group: int, name: str) -> PagedColumn | Literal[False]:
        return paged_column(self._footer, self._input, row_group, name) or False

    def column(self, name: str) -> pa.ChunkedArray:
        with as_corrupt_file(self.where, "Parquet"):
            column = self._file.read(columns=[name]).column(name)
            if self._outline.calendar is not None:
                batches = pa.Table.from_arrays([column], names=[name]).to_batches()
                column = pa.chunked_array(
                    [self._convert_types(batch).column(0) for batch in batches], self._schema.field(name).type
                )
        self._check_rows(len(column), self.num_rows)
        return fit(column, self._schema.field(name).type, name)

    def ranges(self, names: Sequence[str]) -> tuple[ColumnRange, ...]:
        with as_corrupt_file(self.where, "Parquet"):
            footer = self._footer
            footer_ranges = FooterRanges(
                footer.metadata,
                self._schema,
                footer.unreadable_chunks,
                footer.cut_chunks,
                has_old_days=self._outline.calendar is not None,
            )
            return ranges_of_file(self, footer_ranges, names)

    def _check_rows(self, rows: int, expected: int) -> None:
        """Refuse a column without metadata, which reads as one without rows."""
        if rows != expected:
            raise CorruptFile(
                f"{self.where}: expected {expected} rows, found {rows}. Restore the file from a copy of the table, or "
                "roll the write back that made it."
            )

    def _convert_types(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with Gregorian days, and with UTC on INT96 columns."""
        if self._outline.calendar is not None:
            batch = self._outline.calendar.rebased(batch, self._schema, self.where)
        kinds = [self._schema.field(name).type for name in batch.schema.names]
        if all(
            column.type == kind or pa.types.is_dictionary(column.type)
            for column, kind in zip(batch.columns, kinds, strict=True)
        ):
            return batch
        columns = [
            column if pa.types.is_dictionary(column.type) else column.cast(kind)
            for column, kind in zip(batch.columns, kinds, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
        self._input.close()

    def __enter__(self) -> ParquetReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def parquet_rows(file: pq.ParquetFile, where: str, batch_rows: int) -> pa.RecordBatchReader:
    """Yield the rows of a file outside a table, with Gregorian days and with UTC on INT96 columns.

    The file was opened with `coerce_int96_timestamp_unit="us"`.
    """
    schema, calendar = _with_int96(file), old_calendar(file.metadata.metadata)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in file.iter_batches(batch_rows):
            days = batch if calendar is None else calendar.rebased(batch, schema, where)
            yield from pa.Table.from_batches([days]).cast(schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def _with_int96(file: pq.ParquetFile) -> pa.Schema:
    """Return the file's Arrow schema without metadata, and with UTC on INT96 columns, which carry no zone mark."""
    schema = file.schema_arrow.remove_metadata()
    columns = file.schema
    leaves = [columns.column(index).physical_type for index in range(len(columns.names))]
    if "INT96" not in leaves:
        return schema
    rest = iter(leaves)
    return pa.schema([field.with_type(_with_utc(field.type, rest)) for field in schema])


def _with_utc(kind: pa.DataType, leaves: Iterator[str]) -> pa.DataType:
    """Return `kind` with UTC on its INT96 leaves. Consumes one physical type per leaf, in file order."""
    if pa.types.is_struct(kind):
        return pa.struct([child.with_type(_with_utc(child.type, leaves)) for child in kind])
    if pa.types.is_map(kind):
        return pa.map_(_with_utc(kind.key_type, leaves), _with_utc(kind.item_type, leaves))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_with_utc(kind.value_type, leaves)))
    return pa.timestamp("us", "UTC") if next(leaves) == "INT96" else kind
