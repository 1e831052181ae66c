"""Parquet base files.

Reading takes what real writers leave: lists in the layouts `array`, `bag.array` and `list.element`, decimals as fixed
bytes or integers, INT96, one row group per file. Writing gives v1 data pages, optional columns, three-level lists,
statistics, and a dictionary only for columns where a sample says that it pays. Source: docs/formats/base-files.md,
"Parquet layouts", "Footer".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from types import TracebackType
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import ConfigError, CorruptFile
from pyhudi.formats.base.base import BATCH_ROWS, BaseFileOptions, Footer
from pyhudi.formats.base.dictionaries import dictionary_paths
from pyhudi.formats.base.file_schema import fit
from pyhudi.formats.base.footer_ranges import FooterRanges, nan_columns, ranges_of_file
from pyhudi.formats.base.opening import as_corrupt_file, check_outline, close_quietly, open_stored
from pyhudi.formats.base.parquet_footer import read_footer
from pyhudi.formats.base.statistics import RangeTest, row_groups_that_may_match
from pyhudi.formats.column_ranges import ColumnRange
from pyhudi.storage.base import Storage
from pyhudi.storage.streams import as_storage_error

__all__ = ["AVRO_SCHEMA_KEY", "ParquetFormat", "ParquetReader", "ParquetWriter"]

AVRO_SCHEMA_KEY = "parquet.avro.schema"

_Codec: TypeAlias = Literal["zstd", "gzip", "snappy", "lz4", "brotli", "none"]
# Hudi's words for codecs → pyarrow's word and the level to use when none is set, None if it has no levels.
# Level 9, pyarrow's own choice for gzip, costs ten times level 1 for a few per cent of size.
_CODECS: dict[str, tuple[_Codec, int | None]] = {
    "zstd": ("zstd", 1),
    "gzip": ("gzip", 1),
    "snappy": ("snappy", None),
    "lz4": ("lz4", None),  # the raw framing, which every current reader knows
    "lz4_raw": ("lz4", None),
    "brotli": ("brotli", 1),
    "uncompressed": ("none", None),
    "none": ("none", None),
}


_LARGE_ROW_GROUP_BYTES = 64 << 20  # without compression
_PAGE_BUFFER_BYTES = 1 << 20


class ParquetFormat:
    """The entry points of the format."""

    @staticmethod
    def open(storage: Storage, path: str) -> ParquetReader:
        return ParquetReader(storage, path)

    @staticmethod
    def create(
        storage: Storage, path: str, schema: pa.Schema, options: BaseFileOptions, watched: Sequence[str] = ()
    ) -> ParquetWriter:
        return ParquetWriter(storage, path, schema, options, watched)


_ROWS_AT_ONCE = 8192  # of which single rows are wanted: what comes behind the last is not decoded


class ParquetReader:
    """One open Parquet base file."""

    def __init__(self, storage: Storage, path: str) -> None:
        self.where = f"{storage.root}/{path}"
        self._input = open_stored(storage, path)
        # Memory is the file cache's when mapped; elsewhere a whole row group's ranges are fetched in one go.
        self._pre_buffer = not isinstance(self._input, pa.OSFile | pa.MemoryMappedFile | pa.BufferReader)
        try:
            with as_corrupt_file(self.where, "Parquet"):
                self._footer = read_footer(self._input)
                self._file = self._open(self._footer.metadata, ())
                self._schema = _with_int96(self._file)
            check_outline(self.where, self.num_rows, self._schema.names)
        except BaseException:
            self._input.close()
            raise

    def _open(self, metadata: pq.FileMetaData, dictionaries: Collection[str]) -> pq.ParquetFile:
        # Java likes to write one row group per file: read its columns page by page, or all of it is in memory at once.
        # Only metadata of row groups: pyarrow ends the process when it reads that of a damaged column.
        groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
        largest = max((int(group.total_byte_size) for group in groups), default=0)
        buffer_size = _PAGE_BUFFER_BYTES if largest > _LARGE_ROW_GROUP_BYTES else 0
        return pq.ParquetFile(
            self._input, metadata=metadata, pre_buffer=self._pre_buffer, buffer_size=buffer_size,
            read_dictionary=list(dictionaries), coerce_int96_timestamp_unit="us",
        )  # fmt: skip

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def num_rows(self) -> int:
        return int(self._file.metadata.num_rows)

    @property
    def plain_bytes(self) -> int:
        metadata = self._file.metadata
        return sum(int(metadata.row_group(number).total_byte_size) for number in range(metadata.num_row_groups))

    @property
    def footer(self) -> Footer:
        entries = {
            key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
            for key, value in (self._file.metadata.metadata or {}).items()
            if not key.startswith(b"ARROW:")
        }
        return Footer.from_key_values(entries, AVRO_SCHEMA_KEY)

    def low_cardinality_columns(self) -> tuple[str, ...]:
        strings = {field.name for field in self._schema if pa.types.is_string(field.type)}
        with as_corrupt_file(self.where, "Parquet"):
            # A column of dictionary codes takes a byte or two a value; with its fall-back pages it takes the strings'
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
        """What the first row group says of its columns."""
        metadata = self._file.metadata
        if metadata.num_row_groups:
            group, unreadable = metadata.row_group(0), self._footer.unreadable_chunks
            yield from (group.column(index) for index in range(metadata.num_columns) if (0, index) not in unreadable)

    def batches(
        self,
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
        dictionaries: Collection[str] = (),
        may_match: RangeTest | None = None,
    ) -> Iterator[pa.RecordBatch]:
        wanted = self._schema.names if columns is None else columns
        return (batch for _, batch in self._numbered(wanted, batch_rows, dictionaries, may_match))

    def numbered_batches(
        self, columns: Sequence[str], batch_rows: int = BATCH_ROWS, may_match: RangeTest | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        return self._numbered(columns, batch_rows, (), may_match)

    def _numbered(
        self, wanted: Sequence[str], batch_rows: int, dictionaries: Collection[str], may_match: RangeTest | None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        names = [name for name in wanted if name in self._schema.names]
        with as_corrupt_file(self.where, "Parquet"):
            metadata = self._file.metadata
            file = self._open(metadata, dictionaries) if dictionaries else self._file
            sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
            starts = list(accumulate(sizes, initial=0))
            # One row group at a time, so that no more than one is ever buffered ahead.
            for row_group in row_groups_that_may_match(self._footer, may_match):
                first = starts[row_group]
                for batch in file.iter_batches(batch_rows, row_groups=[row_group], columns=names):
                    yield first, self._typed(batch.select(names))
                    first += len(batch)
                self._check_rows(first - starts[row_group], sizes[row_group])

    def rows_at(self, columns: Sequence[str], rows: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        names = [name for name in columns if name in self._schema.names]
        with as_corrupt_file(self.where, "Parquet"):
            metadata, first = self._file.metadata, 0
            for row_group in range(metadata.num_row_groups):
                behind = first + metadata.row_group(row_group).num_rows
                low, high = np.searchsorted(rows, (first, behind))
                if low < high:
                    yield from self._rows_at(row_group, names, rows[low:high] - first)
                first = behind

    def _rows_at(self, row_group: int, names: list[str], rows: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        """Those of one row group, which is read up to the last of them."""
        first, last = 0, int(rows[-1])
        for batch in self._file.iter_batches(_ROWS_AT_ONCE, row_groups=[row_group], columns=names):
            low, high = np.searchsorted(rows, (first, first + len(batch)))
            if low < high:
                yield self._typed(batch.select(names)).take(pa.array(rows[low:high] - first))
            first += len(batch)
            if first > last:
                return
        self._check_rows(first, self._file.metadata.row_group(row_group).num_rows)

    def column(self, name: str) -> pa.ChunkedArray:
        with as_corrupt_file(self.where, "Parquet"):
            column = self._file.read(columns=[name]).column(name)
        self._check_rows(len(column), self.num_rows)
        return fit(column, self._schema.field(name).type, name)

    def ranges(self, names: Sequence[str]) -> tuple[ColumnRange, ...]:
        with as_corrupt_file(self.where, "Parquet"):
            footer = self._footer
            known = FooterRanges(footer.metadata, self._schema, footer.unreadable_chunks, footer.cut_chunks)
            return ranges_of_file(self, known, names)

    def _check_rows(self, found: int, expected: int) -> None:
        """A column whose metadata is gone reads as one without rows."""
        if found != expected:
            raise CorruptFile(
                f"{self.where}: expected {expected} rows, found {found}. Restore the file from a copy of the table, or "
                "roll the write back that made it."
            )

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with UTC on what was INT96."""
        wanted = [self._schema.field(name).type for name in batch.schema.names]
        if all(
            column.type == kind or pa.types.is_dictionary(column.type)
            for column, kind in zip(batch.columns, wanted, strict=True)
        ):
            return batch
        columns = [
            column if pa.types.is_dictionary(column.type) else column.cast(kind)
            for column, kind in zip(batch.columns, wanted, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def close(self) -> None:
        self._file.close()
        self._input.close()

    def __enter__(self) -> ParquetReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _with_int96(file: pq.ParquetFile) -> pa.Schema:
    """The file's Arrow schema without metadata, and with UTC on INT96 columns, which carry no zone mark."""
    schema = file.schema_arrow.remove_metadata()
    columns = file.schema
    leaves = [columns.column(index).physical_type for index in range(len(columns.names))]
    if "INT96" not in leaves:
        return schema
    rest = iter(leaves)
    return pa.schema([field.with_type(_zoned(field.type, rest)) for field in schema])


def _zoned(kind: pa.DataType, leaves: Iterator[str]) -> pa.DataType:
    """`kind` with UTC on its INT96 leaves; consumes one physical type per leaf, in file order."""
    if pa.types.is_struct(kind):
        return pa.struct([child.with_type(_zoned(child.type, leaves)) for child in kind])
    if pa.types.is_map(kind):
        return pa.map_(_zoned(kind.key_type, leaves), _zoned(kind.item_type, leaves))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_zoned(kind.value_type, leaves)))
    return pa.timestamp("us", "UTC") if next(leaves) == "INT96" else kind


class ParquetWriter:
    """One Parquet base file being written."""

    def __init__(
        self, storage: Storage, path: str, schema: pa.Schema, options: BaseFileOptions, watched: Sequence[str] = ()
    ) -> None:
        codec = options.codec.lower()
        if codec not in _CODECS:
            raise ConfigError(f"Unknown Parquet codec {options.codec!r}; known: {', '.join(_CODECS)}.")
        self._codec, level = _CODECS[codec]
        # A codec without a level here has none to choose.
        self._level = level if level is None or options.compression_level is None else options.compression_level
        self._schema, self._plain = schema, options.plain_columns
        self._watched, self._nan_columns = tuple(watched), set[str]()
        self._storage, self._path = storage, path
        self._where = storage.full_path(path)
        self._sink = storage.open_output(path)
        self._writer: pq.ParquetWriter | None = None  # made with the first rows, which say where a dictionary pays
        self._arriving: pa.Schema = schema

    @property
    def written_bytes(self) -> int:
        return 0 if self._writer is None else int(self._sink.tell())

    def write(self, table: pa.Table) -> None:
        with as_storage_error(self._where):
            writer = self._writer or self._start(table)
            columns = [
                _arrive(column, kind, name)
                for name, column, kind in zip(table.column_names, table.columns, self._arriving.types, strict=True)
            ]
            rows = pa.Table.from_arrays(columns, schema=self._arriving).unify_dictionaries()
            writer.write_table(rows, row_group_size=max(1, len(rows)))
        self._nan_columns.update(nan_columns(rows, self._watched))

    def _start(self, table: pa.Table | None) -> pq.ParquetWriter:
        """Open the writer. String columns that arrive dictionary-encoded are taken so from then on."""
        paths: list[str] = []
        if table is not None:
            assert table.column_names == self._schema.names, (table.column_names, self._schema.names)
            coded = [pa.types.is_dictionary(kind) for kind in table.schema.types]
            self._arriving = pa.schema(
                [
                    pa.field(field.name, pa.dictionary(pa.int32(), field.type) if is_coded else field.type)
                    for field, is_coded in zip(self._schema, coded, strict=True)
                ]
            )
            paths = dictionary_paths(table, self._schema, self._plain)
        self._writer = pq.ParquetWriter(
            self._sink, self._arriving, version="2.6", compression=self._codec, compression_level=self._level,
            use_dictionary=paths,  # type: ignore[arg-type]  # pyarrow takes names, too
            write_statistics=True, data_page_version="1.0", store_schema=False,
            use_compliant_nested_type=True,
        )  # fmt: skip
        return self._writer

    def close(self, footer: Footer) -> int:
        with as_storage_error(self._where):
            writer = self._writer or self._start(None)
            writer.add_key_value_metadata(footer.key_values(AVRO_SCHEMA_KEY))
            writer.close()
            size = int(self._sink.tell())
            self._sink.close()
        return size

    def ranges(self) -> tuple[ColumnRange, ...]:
        assert self._writer is not None
        metadata: pq.FileMetaData = self._writer.writer.metadata
        known = FooterRanges(metadata, self._schema, nan_columns=self._nan_columns)
        if all(known.of(name)[1] for name in self._watched):
            return ranges_of_file(None, known, self._watched)
        with ParquetReader(self._storage, self._path) as reader:  # texts too long for a footer
            return ranges_of_file(reader, known, self._watched)

    def abandon(self) -> None:
        close_quietly(self._writer, self._sink)
        self._writer = None


def _arrive(column: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    """A column in the form that the writer was started with: dictionary-encoded or plain."""
    if column.type != kind and pa.types.is_dictionary(kind):
        return fit(column, kind.value_type, name).dictionary_encode()
    return fit(column, kind, name)
