"""The files with rows for a write: Parquet, CSV, JSON, Arrow, and streams of bytes such as standard input.

Each attempt of a write opens the files again. Rows stream; JSON and streams of bytes are read into memory.
"""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, cast

import pyarrow as pa

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.projection import project
from pyhudi.schema.value_types import nulls_typed
from pyhudi.table.row_files.csv_rows import csv_reader, csv_types
from pyhudi.table.row_files.json_rows import json_rows, one_schema

__all__ = ["RowFiles"]

_FORMATS = {
    ".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".arrows": "arrow",
}  # fmt: skip
_PACKED = (".gz", ".bz2", ".zst", ".lz4")
_BATCH_ROWS = 65_536


@dataclass(frozen=True)
class RowFile:
    """A file by the caller's name. `place`: its path, or its bytes."""

    name: str
    place: Path | bytes
    format: str

    def source(self) -> str | io.BytesIO:
        """The source that Arrow's readers open."""
        return str(self.place) if isinstance(self.place, Path) else io.BytesIO(self.place)

    def stream(self) -> IO[bytes]:
        """Its bytes, decompressed by its extension."""
        source = self.source()
        stream = pa.input_stream(source, compression="detect") if isinstance(source, str) else source
        return cast("IO[bytes]", stream)


@dataclass(frozen=True)
class RowFiles:
    """The rows of several files, one file after the other. `encoding`: of CSV and JSON. `key_columns`: as `csv_types`
    needs them.
    """

    files: tuple[RowFile, ...]
    encoding: str = "utf-8"
    key_columns: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        files: Sequence[str | os.PathLike[str] | BinaryIO],
        format: str | None = None,
        encoding: str = "utf-8",
    ) -> RowFiles:
        """Files of this machine, by their paths, and streams of bytes, which are read now.

        Args:   format: parquet, csv, json or arrow; None: by the extensions of the files. encoding: of CSV and JSON.
        Raises: ConfigError for missing files, and for an unknown format or encoding.
        """
        if not files:
            raise ConfigError("There are no files to write.")
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise ConfigError(f"encoding takes utf-8, latin-1, cp1252 and the like, found {encoding!r}.") from None
        return cls(tuple([_row_file(file, format) for file in files]), encoding)

    def read(self, schema: pa.Schema | None) -> pa.RecordBatchReader:
        """All rows, with the columns of the first file.

        Args:   schema: of the table, for the types of CSV and JSON; None without a table.
        Raises: SchemaMismatch for files with other columns, and for a value that its column can't hold; ConfigError for
            a file that is not of its format.
        """
        csv_files = {file.name: file.stream for file in self.files if file.format == "csv"}
        types = csv_types(csv_files, schema, self.encoding, self.key_columns) if csv_files else {}
        form = _Form(schema, types, self.encoding)
        readers = [_READERS[file.format](file, form) for file in self.files]
        names = readers[0].schema.names
        for file, reader in zip(self.files, readers, strict=True):
            if sorted(reader.schema.names) != sorted(names):
                raise SchemaMismatch(
                    f"{file.name}: its columns {', '.join(reader.schema.names)} differ from those of the first file, "
                    f"{', '.join(names)}. Write them one after the other."
                )
        return _joined(readers, schema)


@dataclass(frozen=True)
class _Form:
    """`schema`: of the table, None without one. `types`: of the columns of all CSV files. `encoding`: of texts."""

    schema: pa.Schema | None
    types: Mapping[str, pa.DataType]
    encoding: str


def _row_file(file: str | os.PathLike[str] | BinaryIO, format: str | None) -> RowFile:
    if not isinstance(file, str | os.PathLike):
        name = str(getattr(file, "name", "<stdin>"))
        return RowFile("standard input" if name == "<stdin>" else name, file.read(), _format_of(name, format))
    path, kind = Path(file), _format_of(os.fspath(file), format)
    if not path.is_file():
        raise ConfigError(f"There is no file {str(path)!r} on this machine.")
    return RowFile(os.fspath(file), path, kind)


def _format_of(file: str, format: str | None) -> str:
    if format is not None:
        if format.lower() not in _FORMATS.values():
            raise ConfigError(f"format takes parquet, csv, json or arrow, found {format!r}.")
        return format.lower()
    suffixes = [suffix.lower() for suffix in Path(file).suffixes if suffix.lower() not in _PACKED]
    if not suffixes or suffixes[-1] not in _FORMATS:
        raise ConfigError(f"The format of {file!r} is unknown by its name: add format='csv', or parquet, json, arrow.")
    return _FORMATS[suffixes[-1]]


def _joined(readers: Sequence[pa.RecordBatchReader], schema: pa.Schema | None) -> pa.RecordBatchReader:
    columns = one_schema([reader.schema for reader in readers], "The files together")
    columns = pa.schema(nulls_typed(list(columns), [] if schema is None else list(schema)))
    if len(readers) == 1 and readers[0].schema.equals(columns):
        return readers[0]
    return pa.RecordBatchReader.from_batches(columns, _batches(readers, columns))


def _batches(readers: Sequence[pa.RecordBatchReader], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for reader in readers:
        for batch in reader:
            yield project(batch, schema)


def _parquet(file: RowFile, form: _Form) -> pa.RecordBatchReader:
    import pyarrow.parquet as pq

    from pyhudi.formats.base.parquet_reader import parquet_rows

    parquet_file = pq.ParquetFile(file.source(), coerce_int96_timestamp_unit="us")
    return parquet_rows(parquet_file, file.name, _BATCH_ROWS)


def _csv(file: RowFile, form: _Form) -> pa.RecordBatchReader:
    return csv_reader(file.name, file.stream, form.types, form.encoding)


def _json(file: RowFile, form: _Form) -> pa.RecordBatchReader:
    encoding = "utf-8-sig" if codecs.lookup(form.encoding).name == "utf-8" else form.encoding
    try:
        with io.TextIOWrapper(cast("io.BufferedReader", file.stream()), encoding) as text:
            return json_rows(text, form.schema, file.name).to_reader(_BATCH_ROWS)
    except UnicodeError as error:
        raise ConfigError(
            f"{file.name} is not in the encoding {form.encoding}: give the right one, such as "
            "encoding='latin-1'. Nothing was written."
        ) from error


def _arrow(file: RowFile, form: _Form) -> pa.RecordBatchReader:
    import pyarrow.ipc as ipc

    try:
        ipc_file = ipc.open_file(file.source())
    except pa.ArrowInvalid:
        return ipc.open_stream(pa.OSFile(str(file.place)) if isinstance(file.place, Path) else io.BytesIO(file.place))
    batches = (ipc_file.get_batch(number) for number in range(ipc_file.num_record_batches))
    return pa.RecordBatchReader.from_batches(ipc_file.schema, batches)


_READERS: dict[str, Callable[[RowFile, _Form], pa.RecordBatchReader]] = {
    "parquet": _parquet,
    "csv": _csv,
    "json": _json,
    "arrow": _arrow,
}
