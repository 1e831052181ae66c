"""ORC base files.

pyarrow writes ORC without user metadata, where Hudi keeps bloom filter, key range and schema; `orc_tail` adds it.

Dates of Java's old calendar are refused in files of others (`OrcReader._check_calendar`).

ORC's plain timestamp has no zone: Hudi stores local time in the writing machine's zone, we store UTC. Values beyond the
years 1677 to 2262 can't be read through pyarrow. pyarrow writes fractions of seconds before 1970 in a form that Java
refuses to read, so we refuse to write them. Source: docs/formats/base-files.md, "ORC", "Footer"; ORC specification v1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from types import TracebackType
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from pyhudi.errors import ConfigError, HudiError, SchemaMismatch, UnsupportedTable
from pyhudi.formats.avro.schema import arrow_from_avro
from pyhudi.formats.base.base import (
    BATCH_ROWS,
    BaseFileOptions,
    BaseFileReader,
    Footer,
    check_outline,
    close_quietly,
    file_schema,
    fit,
    open_stored,
    rows_among,
)
from pyhudi.formats.base.orc_tail import HeldTail, user_metadata
from pyhudi.formats.base.parquet_calendar import is_same_in_both_calendars
from pyhudi.formats.base.ranges import RangeTest
from pyhudi.formats.column_stats import ColumnRange, RangesOfRows, column_type
from pyhudi.formats.damage import as_corrupt_file
from pyhudi.storage.base import Storage, as_storage_error

__all__ = ["AVRO_SCHEMA_KEY", "OrcFormat", "OrcReader", "OrcWriter"]

AVRO_SCHEMA_KEY = "orc.avro.schema"

_IN_UTC, _WITHOUT_ZONE = pa.timestamp("us", "UTC"), pa.timestamp("us")
_STRIPE_BYTES = 32 << 20
_BLOCK_BYTES = 64 << 10
_CODECS: dict[str, Literal["UNCOMPRESSED", "ZLIB", "SNAPPY", "LZ4", "ZSTD"]] = {
    "zstd": "ZSTD",
    "gzip": "ZLIB",
    "zlib": "ZLIB",
    "snappy": "SNAPPY",
    "lz4": "LZ4",
    "uncompressed": "UNCOMPRESSED",
    "none": "UNCOMPRESSED",
}


class OrcFormat:
    """The entry points of the format."""

    @staticmethod
    def open(storage: Storage, path: str, *, check_pages: bool) -> OrcReader:  # ORC has no checksums
        return OrcReader(storage, path)

    @staticmethod
    def create(
        storage: Storage, path: str, schema: pa.Schema, options: BaseFileOptions, watched: Sequence[str] = ()
    ) -> OrcWriter:
        return OrcWriter(storage, path, schema, options, watched)


class OrcReader:
    """One open ORC base file."""

    def __init__(self, storage: Storage, path: str) -> None:
        self.where = f"{storage.root}/{path}"
        self._input = open_stored(storage, path)
        try:
            with as_corrupt_file(self.where, "ORC"):
                self._file = orc.ORCFile(self._input)
                self._footer = Footer.from_key_values(_metadata(self._file), AVRO_SCHEMA_KEY)
                self._schema = _typed_schema(self._file.schema, self._footer.avro_schema)
            check_outline(self.where, self.num_rows, self._schema.names)
        except BaseException:
            self._input.close()
            raise

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def columns_of(self, names: Sequence[str]) -> list[str]:
        column_names = set(self._schema.names)  # an ORC file has each name once
        return [name for name in names if name in column_names]

    @property
    def num_rows(self) -> int:
        return int(self._file.nrows)

    @property
    def plain_bytes(self) -> int:
        return 3 * int(self._file.content_length)

    @property
    def footer(self) -> Footer:
        return self._footer

    @property
    def part_rows(self) -> tuple[int, ...]:
        return (self.num_rows,)

    def low_cardinality_columns(self) -> tuple[str, ...]:
        return ()  # pyarrow returns ORC strings plain

    def plain_columns(self) -> frozenset[str]:
        return frozenset()  # the ORC writer decides by itself

    def batches(
        self,
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
        dictionaries: Collection[str] = (),
        may_match: RangeTest | None = None,
        parts: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        column_names = dict.fromkeys(self._schema.names)
        names = [name for name in (column_names if columns is None else columns) if name in column_names]
        with as_corrupt_file(self.where, "ORC"):
            if not names:
                yield from _without_columns(self.num_rows, batch_rows)
                return
            for number in range(self._file.nstripes):
                stripe = self._cast_types(
                    self._check_calendar(self._file.read_stripe(number, columns=names).select(names))
                )
                for first in range(0, len(stripe), batch_rows):
                    yield stripe.slice(first, batch_rows)

    def rows_in_parts(self, test: RangeTest) -> int:
        return 0  # pyarrow has no ranges of stripes

    def numbered_batches(
        self, columns: Sequence[str], batch_rows: int = BATCH_ROWS, may_match: RangeTest | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        first = 0
        for batch in self.batches(columns, batch_rows):
            yield first, batch
            first += len(batch)

    def rows_having(self, column: str, values: pa.Array, may_match: RangeTest | None = None) -> npt.NDArray[np.int64]:
        batches = self.numbered_batches([column], may_match=may_match)
        return rows_among(((first, batch.column(0)) for first, batch in batches), values)

    def rows_at(self, columns: Sequence[str], rows: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        for first, batch in self.numbered_batches(columns):
            low, high = np.searchsorted(rows, (first, first + len(batch)))
            if low < high:
                yield batch.take(pa.array(rows[low:high] - first))

    def column(self, name: str) -> pa.ChunkedArray:
        kind = self._schema.field(name).type
        return pa.chunked_array([batch.column(0) for batch in self.batches([name])], kind)

    def ranges(self, names: Sequence[str]) -> tuple[ColumnRange, ...]:
        with_range = _with_range(self._schema, names)
        rows = RangesOfRows(with_range, self._schema)
        column_names = set(self._schema.names)
        tops = [name if name in column_names else name.partition(".")[0] for name in with_range]
        for batch in self.batches(tuple(dict.fromkeys(tops))) if tops else ():
            rows.add(pa.Table.from_batches([batch]))
        return rows.ranges()

    def _check_calendar(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch. Raises UnsupportedTable for old dates and moments of a file that neither Hudi nor pyarrow wrote.

        Java's writers count them by Java's old calendar or by the Gregorian one, and convert them as they read; pyarrow
        ignores the mark in the footer. Hudi writes the days of its Avro rows, regardless of that mark.
        """
        if self._file.writer == "ORC_CPP" or self._footer.avro_schema is not None:
            return batch
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if not is_same_in_both_calendars(column):
                raise UnsupportedTable(
                    f"{self.where}: column {name!r} holds dates before 15 October 1582 or times before 1900, and the "
                    f"file's writer ({self._file.writer}) may count them by Java's old calendar, which PyHudi does not "
                    "convert in ORC. Write the rows as Parquet, with Spark for instance."
                )
        return batch

    def _cast_types(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            fit(pa.chunked_array([column]), self._schema.field(name).type, name).chunks[0]
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def close(self) -> None:
        self._input.close()

    def __enter__(self) -> OrcReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _without_columns(rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    for first in range(0, rows, batch_rows):
        yield pa.RecordBatch.from_struct_array(pa.array([{}] * min(batch_rows, rows - first), pa.struct([])))


def _metadata(file: orc.ORCFile) -> dict[str, str]:
    entries = dict(file.metadata.items()) if file.metadata is not None else {}
    return {_text(key): _text(value) for key, value in entries.items()}


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _typed_schema(schema_in_file: pa.Schema, avro_schema: str | None) -> pa.Schema:
    """Return the logical types of the columns: those of the Avro schema if the file has one, else timestamps in UTC."""
    column_types: dict[str, pa.DataType] = {}
    if avro_schema is not None:
        try:
            column_types = {field.name: field.type for field in file_schema(arrow_from_avro(avro_schema))}
        except (HudiError, ValueError):
            column_types = {}  # the columns' types are sufficient
    return pa.schema(
        [
            pa.field(field.name, column_types.get(field.name) or _with_timestamp_type(field.type, _IN_UTC))
            for field in schema_in_file.remove_metadata()
        ]
    )


def _with_timestamp_type(kind: pa.DataType, timestamp: pa.DataType) -> pa.DataType:
    """Return `kind` with this type for all of its timestamps, at any depth."""
    if pa.types.is_timestamp(kind):
        return timestamp
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _with_timestamp_type(kind.value_type, timestamp)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(child.name, _with_timestamp_type(child.type, timestamp)) for child in kind])
    if pa.types.is_map(kind):
        return pa.map_(_with_timestamp_type(kind.key_type, timestamp), _with_timestamp_type(kind.item_type, timestamp))
    return kind


class OrcWriter:
    """One ORC base file being written."""

    def __init__(
        self, storage: Storage, path: str, schema: pa.Schema, options: BaseFileOptions, watched: Sequence[str] = ()
    ) -> None:
        codec = options.codec.lower()
        if codec not in _CODECS:
            raise ConfigError(f"Unknown ORC codec {options.codec!r}; known: {', '.join(_CODECS)}.")
        self._compressed = _CODECS[codec] != "UNCOMPRESSED"
        self._schema = schema
        self._ranges = RangesOfRows(_with_range(schema, watched), schema)
        # Java knows only ORC's plain timestamp, not the one "with local time zone" that a zone would give.
        self._stored = pa.schema([field.with_type(_with_timestamp_type(field.type, _WITHOUT_ZONE)) for field in schema])
        self._where = storage.full_path(path)
        self._sink = storage.open_output(path)
        self._held = HeldTail(self._sink)
        with as_storage_error(self._where):
            self._writer = orc.ORCWriter(
                self._held,  # type: ignore[arg-type]  # its methods are enough
                compression=_CODECS[codec],
                stripe_size=_stripe_bytes(options),
                compression_block_size=_BLOCK_BYTES,
            )
        self._empty = True

    def copyable(self, source: BaseFileReader) -> frozenset[int]:
        return frozenset()  # pyarrow's writer makes whole files

    def start_copying(self, source: BaseFileReader) -> None:
        raise AssertionError("nothing is copyable")

    def copy(self, part: int, replaced: pa.Table) -> None:
        raise AssertionError("nothing is copyable")

    @property
    def written_bytes(self) -> int:
        return int(self._sink.tell())

    def write(self, table: pa.Table) -> None:
        assert table.column_names == self._schema.names, (table.column_names, self._schema.names)
        typed = [fit(column, field.type, field.name) for field, column in zip(self._schema, table.columns, strict=True)]
        columns = [fit(column, field.type, field.name) for field, column in zip(self._stored, typed, strict=True)]
        for field, column in zip(self._stored, columns, strict=True):
            for chunk in column.chunks:
                _check_moments(chunk, field.name)
        with as_storage_error(self._where):
            self._writer.write(pa.Table.from_arrays(columns, schema=self._stored))
            self._held.check()
        self._ranges.add(pa.Table.from_arrays(typed, schema=self._schema))
        self._empty = False

    def close(self, footer: Footer) -> int:
        chunk_bytes = _BLOCK_BYTES if self._compressed else None
        with as_storage_error(self._where):
            if self._empty:
                self._writer.write(self._stored.empty_table())
            self._writer.close()
            self._held.check()
            self._held.finish(user_metadata(footer.key_values(AVRO_SCHEMA_KEY), chunk_bytes))
            size = int(self._sink.tell())
            self._sink.close()
        return size

    def ranges(self) -> tuple[ColumnRange, ...]:
        return self._ranges.ranges()

    def abandon(self) -> None:
        close_quietly(self._writer, self._sink)


def _with_range(schema: pa.Schema, names: Sequence[str]) -> list[str]:
    """Return the columns that can have a range, without lists, maps and structs."""
    kinds = ((name, column_type(schema, name)) for name in names)
    return [name for name, kind in kinds if kind is not None and not pa.types.is_nested(kind)]


def _stripe_bytes(options: BaseFileOptions) -> int:
    # A stripe stays in memory until it is full; small files need several, or their size could not be estimated.
    return max(1 << 20, min(_STRIPE_BYTES, options.max_file_size_bytes // 4))


def _check_moments(values: pa.Array, where: str) -> None:
    """Refuse timestamps that Java could not read."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        micros = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        if bool(((micros < 0) & (micros % 1_000_000 != 0)).any()):
            raise SchemaMismatch(
                f"Column {where!r} holds moments before 1970 with fractions of a second, which can't be written to ORC "
                f"so that Java reads them; cut them to seconds, or make the table with Parquet base files."
            )
    elif pa.types.is_struct(kind):
        assert isinstance(values, pa.StructArray)
        for index, child in enumerate(values.flatten()):
            _check_moments(child, f"{where}.{kind.field(index).name}")
    elif pa.types.is_map(kind):
        assert isinstance(values, pa.MapArray)
        _check_moments(values.items, f"{where}.value")
    elif pa.types.is_list(kind):
        assert isinstance(values, pa.ListArray)
        _check_moments(values.flatten(), f"{where}.element")
