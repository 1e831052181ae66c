"""The interface of base files: columns in batches, a footer, a writer, and the stored schema.

`open_base_file` and `new_base_file` are the entry points; a format is one file in this package and
one row of `BASE_FORMATS`. `BaseFormat`, `BaseFileReader` and `BaseFileWriter` are the protocols of a format. All
formats share the functions for files that can't be opened, read or finished.

`file_schema` gives the Arrow schema that a base file stores for a table schema. Its types are those of Hudi tables
(Avro has no byte and no short). Every column may be null, as may every list item, map value and struct field.

Source: docs/formats/base-files.md, "Parquet layouts", "Footer".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError, CorruptFile, PathNotFound, SchemaMismatch, UnsupportedTable
from pyhudi.formats.avro.schema import storable
from pyhudi.formats.base.ranges import RangeTest
from pyhudi.formats.column_stats import ColumnRange
from pyhudi.model.filenames import may_be_skeleton
from pyhudi.model.keys import META_COLUMNS
from pyhudi.registry import Registry
from pyhudi.storage.base import Storage

__all__ = [
    "BASE_FORMATS",
    "BATCH_ROWS",
    "BLOOM_FILTER_KEY",
    "BLOOM_TYPE_KEY",
    "MAX_KEY_KEY",
    "MIN_KEY_KEY",
    "BaseFileOptions",
    "BaseFileReader",
    "BaseFileWriter",
    "Footer",
    "check_outline",
    "close_quietly",
    "extension_of",
    "file_schema",
    "fit",
    "new_base_file",
    "open_base_file",
    "open_file",
    "open_stored",
    "rows_among",
]


BATCH_ROWS = 122_880  # rows of a batch and of a row group: few enough to stream, enough to compress well

BLOOM_FILTER_KEY = "org.apache.hudi.bloomfilter"
LEGACY_BLOOM_FILTER_KEY = "com.uber.hoodie.bloomfilter"
BLOOM_TYPE_KEY = "hoodie_bloom_filter_type_code"
MIN_KEY_KEY = "hoodie_min_record_key"
MAX_KEY_KEY = "hoodie_max_record_key"


@dataclass(frozen=True, slots=True)
class Footer:
    """Hudi's key-values of a base file. `bloom_type` is None for SIMPLE, which writes no type code."""

    min_key: str | None = None
    max_key: str | None = None
    bloom_base64: str | None = None
    bloom_type: str | None = None
    avro_schema: str | None = None

    def key_values(self, schema_key: str) -> dict[str, str]:
        """Return the entries to write; absent values have none."""
        entries = {
            BLOOM_FILTER_KEY: self.bloom_base64,
            BLOOM_TYPE_KEY: self.bloom_type,
            MIN_KEY_KEY: self.min_key,
            MAX_KEY_KEY: self.max_key,
            schema_key: self.avro_schema,
        }
        return {key: value for key, value in entries.items() if value is not None}

    @classmethod
    def from_key_values(cls, entries: dict[str, str], schema_key: str) -> Footer:
        """Select Hudi's entries from a file's."""
        return cls(
            min_key=entries.get(MIN_KEY_KEY),
            max_key=entries.get(MAX_KEY_KEY),
            bloom_base64=entries.get(BLOOM_FILTER_KEY, entries.get(LEGACY_BLOOM_FILTER_KEY)),
            bloom_type=entries.get(BLOOM_TYPE_KEY),
            avro_schema=entries.get(schema_key),
        )


@dataclass(frozen=True, slots=True)
class BaseFileOptions:
    """Settings for writing base files. Sizes are bytes; `row_group_bytes` counts Arrow bytes before encoding.

    `plain_columns`: columns known not to benefit from a dictionary. `page_checksums`: pages get a checksum, in a
    format that has them.
    """

    format: str = "PARQUET"
    codec: str = "zstd"
    compression_level: int | None = None  # None: the fastest level of the codec
    max_file_size_bytes: int = 125_829_120
    row_group_rows: int = BATCH_ROWS
    row_group_bytes: int = 32 << 20
    bloom_enabled: bool = True
    bloom_num_entries: int | None = None  # None: by the keys of the file
    bloom_fpp: float = 1e-9
    bloom_kind: str = "DYNAMIC_V0"
    bloom_max_entries: int = 100_000
    plain_columns: frozenset[str] = frozenset()
    page_checksums: bool = True


class BaseFileReader(Protocol):
    """One open base file. `where`: its path, for messages."""

    where: str

    @property
    def schema(self) -> pa.Schema:
        """All columns as Arrow types, meta columns included; INT96 reads as UTC microseconds."""
        ...

    def columns_of(self, names: Sequence[str]) -> list[str]:
        """Those of these names that the file has, in their order. Raises CorruptFile when the file lacks one, and its
        footer shows that a column's name is damaged.
        """
        ...

    @property
    def num_rows(self) -> int: ...

    @property
    def plain_bytes(self) -> int:
        """The approximate size of the columns without compression."""
        ...

    @property
    def footer(self) -> Footer: ...

    @property
    def part_rows(self) -> tuple[int, ...]:
        """The rows of each part (row group) that can be read, or copied into another file, without the others."""
        ...

    def low_cardinality_columns(self) -> tuple[str, ...]:
        """Return top-level string columns that the file stores as a small dictionary."""
        ...

    def plain_columns(self) -> frozenset[str]:
        """Return top-level columns that the file stores without a dictionary."""
        ...

    def batches(
        self,
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
        dictionaries: Collection[str] = (),
        may_match: RangeTest | None = None,
        parts: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Return rows in file order, streamed: only one batch is decoded at a time.

        Args:
            columns: top-level names in the order of the result (None = all, in file order); missing names are left out.
            dictionaries: string columns to return dictionary-encoded.
            may_match: takes the ranges of a part of the file and says whether it may hold a matching row; other parts
                are skipped, if the format has parts. Rows are not filtered.
            parts: numbers of the parts to read, see `part_rows`; None: all.
        """
        ...

    def rows_in_parts(self, test: RangeTest) -> int:
        """Count the rows in the parts of the file whose ranges pass `test`; 0 if the format has no parts."""
        ...

    def numbered_batches(
        self, columns: Sequence[str], batch_rows: int = BATCH_ROWS, may_match: RangeTest | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Like `batches`; each with the number of its first row in the file."""
        ...

    def rows_having(self, column: str, values: pa.Array, may_match: RangeTest | None = None) -> npt.NDArray[np.int64]:
        """The numbers of the rows with one of these values (of the column's type) in a column, ascending, possibly with
        a few others. `may_match`: see `batches`.
        """
        ...

    def rows_at(self, columns: Sequence[str], rows: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        """The rows with these numbers (ascending, each once), as `batches` returns them; parts of the file without any
        are not read, if the format has parts.
        """
        ...

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one whole column, in memory."""
        ...

    def ranges(self, names: Sequence[str]) -> tuple[ColumnRange, ...]:
        """Return statistics of columns, dotted names of struct fields among them. Data is read if the footer is not
        sufficient. Columns that the file lacks, and lists, maps and structs, have none.
        """
        ...

    def close(self) -> None: ...

    def __enter__(self) -> BaseFileReader: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class BaseFileWriter(Protocol):
    """One base file being written; it is not valid before `close`."""

    def write(self, table: pa.Table) -> None:
        """Write one row group. Columns are the writer's schema; strings may be dictionary-encoded."""
        ...

    def copyable(self, source: BaseFileReader) -> frozenset[int]:
        """Return the numbers of another file's parts that `copy` can append: same columns and types, undamaged."""
        ...

    def start_copying(self, source: BaseFileReader) -> None:
        """Prepare for copying parts of this file. Call it before anything is written."""
        ...

    def copy(self, part: int, replaced: pa.Table) -> None:
        """Append a copyable part as it is stored, but for the columns of `replaced`, which has its rows.

        Raises CorruptFile when the other file ends early.
        """
        ...

    @property
    def written_bytes(self) -> int:
        """Bytes written to the file so far."""
        ...

    def close(self, footer: Footer) -> int:
        """Finish the file; return its size in bytes."""
        ...

    def ranges(self) -> tuple[ColumnRange, ...]:
        """Return the ranges of the closed file's watched columns, equal to those of a reader."""
        ...

    def abandon(self) -> None:
        """Abandon the file after an error, finished or not."""
        ...


class BaseFormat(Protocol):
    """The entry points of a format."""

    @staticmethod
    def open(storage: Storage, path: str, *, check_pages: bool) -> BaseFileReader: ...

    @staticmethod
    def create(
        storage: Storage, path: str, schema: pa.Schema, options: BaseFileOptions, watched: Sequence[str] = ()
    ) -> BaseFileWriter: ...


MAX_ROWS = 1 << 31  # of a file, against forged numbers; record positions have the same limit


class Closeable(Protocol):
    """An object that can be closed."""

    def close(self) -> object: ...


def open_stored(storage: Storage, path: str) -> pa.NativeFile:
    """Open a base file that the table names. Raises PathNotFound with the likely reason."""
    try:
        return storage.open_input(path)
    except PathNotFound as error:
        raise PathNotFound(
            f"{storage.root}/{path} does not exist, though the table had it a moment ago. A cleaner or a rollback may "
            "have removed it since: load the table again (a new scan). If it stays away, restore it from a copy."
        ) from error


def check_outline(where: str, rows: int, names: Sequence[str]) -> None:
    """Check a footer's number of rows and names of columns. Raises CorruptFile."""
    if not 0 <= rows <= MAX_ROWS:
        raise CorruptFile(f"{where}: expected 0 to {MAX_ROWS} rows, found {rows}. Restore the file from a copy.")
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise CorruptFile(f"{where}: columns occur twice: {', '.join(twice)[:200]}. Restore the file from a copy.")


def close_quietly(*parts: Closeable | None) -> None:
    """Close all parts after an error, ignoring further errors."""
    for part in parts:
        try:
            if part is not None:
                part.close()
        except (pa.ArrowException, OSError, ValueError):
            continue  # the original error is the one to report


def rows_among(batches: Iterable[tuple[int, pa.Array]], values: pa.Array) -> npt.NDArray[np.int64]:
    """Return the numbers of the rows with one of the values.

    Args:   batches: of a column, ascending, each with the number of its first row.
    """
    numbers = [np.zeros(0, np.int64)]
    for first, column in batches:
        hits = pc.is_in(column, value_set=values)
        numbers.append(np.flatnonzero(hits.to_numpy(zero_copy_only=False)) + first)
    return np.concatenate(numbers)


@lru_cache(maxsize=64)  # each new file needs it; Arrow compares schemas without metadata, which is not used
def file_schema(schema: pa.Schema) -> pa.Schema:
    """Return `schema` with the types that a base file stores, all nullable, without metadata; meta columns come first.

    Raises SchemaMismatch naming every column that can't be stored.
    """
    meta = [pa.field(name, pa.string()) for name in META_COLUMNS if name in schema.names]
    return pa.schema(meta + [pa.field(field.name, _optional(field.type)) for field in storable(schema)])


def _optional(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _optional(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(
            pa.field("key", _optional(kind.key_type), nullable=False), pa.field("value", _optional(kind.item_type))
        )
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(child.name, _optional(child.type)) for child in kind])
    return kind


def fit(column: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    """Return `column` as `kind`, unchanged when it has that type. Raises SchemaMismatch when a value does not fit."""
    if column.type == kind:
        return column
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatch(f"Column {name!r}: {column.type} can't be stored as {kind}: {error}") from error


# ---- formats by name -------------------------------------------------------------------------------------------------


BASE_FORMATS: Registry[type[BaseFormat]] = Registry(
    kind="base file format",
    entries={
        "PARQUET": "pyhudi.formats.base.parquet:ParquetFormat",
        "ORC": "pyhudi.formats.base.orc:OrcFormat",
    },
)


class OpensFile(Protocol):
    """The entry point of a format that is only read."""

    @staticmethod
    def open(storage: Storage, path: str, *, check_pages: bool = True) -> BaseFileReader: ...


# By name, since the joined reader opens its two files by this module.
_JOINED: Registry[type[OpensFile]] = Registry(
    kind="form of base files", entries={"SKELETON": "pyhudi.formats.base.joined:JoinedReader"}
)
_FORMAT_OF_EXTENSION = {".parquet": "PARQUET", ".orc": "ORC"}


def extension_of(format_name: str) -> str:
    """Return the file name extension of a format, with the dot. Raises ConfigError for a format that we can't write."""
    name = BASE_FORMATS.canonical(format_name)
    return next(extension for extension, format_name in _FORMAT_OF_EXTENSION.items() if format_name == name)


def open_base_file(storage: Storage, path: str, *, check_pages: bool = True) -> BaseFileReader:
    """Open a base file for reading, with all of its columns: those of a bootstrapped one come from its source file.

    Arguments and errors: as for `open_file`; CorruptFile also for a source file that is missing or was changed.
    """
    if not may_be_skeleton(path.rpartition("/")[2]):
        return open_file(storage, path, check_pages=check_pages)
    return _JOINED.load("SKELETON").open(storage, path, check_pages=check_pages)


def open_file(storage: Storage, path: str, *, check_pages: bool = True) -> BaseFileReader:
    """Open one file for reading, with its own columns; the extension of `path` says its format.

    Args:    check_pages: pages that have a checksum must match it, else reading them raises CorruptFile.
    Raises:   PathNotFound, CorruptFile, and UnsupportedTable for the formats of other tables (hfile, lance).
    """
    extension = "." + path.rpartition("/")[2].rpartition(".")[2].lower()
    name = _FORMAT_OF_EXTENSION.get(extension)
    if name is None:
        raise UnsupportedTable(
            f"{path}: base files of type {extension!r} can't be read; known: {', '.join(_FORMAT_OF_EXTENSION)}."
        )
    return BASE_FORMATS.load(name).open(storage, path, check_pages=check_pages)


def new_base_file(
    storage: Storage, path: str, schema: pa.Schema, options: BaseFileOptions, watched: Sequence[str] = ()
) -> BaseFileWriter:
    """Start a base file at `path` with the columns of `schema` (meta columns included).

    Args:    watched: columns whose ranges are available when the file is closed.
    """
    if not path.endswith(extension_of(options.format)):
        raise ConfigError(f"{path}: a {options.format} base file ends with {extension_of(options.format)!r}.")
    return BASE_FORMATS.load(options.format).create(storage, path, file_schema(schema), options, watched)
