"""Rows of files for `pyhudi write`: Parquet, CSV, JSON, Arrow; from standard input, too.

Each attempt of a write opens the files again. Rows stream; JSON and standard input are read into memory.
"""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, cast

import pyarrow as pa

from pyhudi.cli.csv_rows import csv_reader, csv_types
from pyhudi.cli.json_rows import json_rows, one_schema
from pyhudi.cli.parsing import STANDARD_INPUT
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.projection import project
from pyhudi.schema.value_types import nulls_typed

__all__ = ["rows_of_files"]

_FORMATS = {
    ".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".arrows": "arrow",
}  # fmt: skip
_PACKED = (".gz", ".bz2", ".zst", ".lz4")
_BATCH_ROWS = 65_536


def rows_of_files(
    files: Sequence[str], format: str | None, schema: pa.Schema | None, encoding: str = "utf-8"
) -> Callable[[], pa.RecordBatchReader]:
    """What a write is handed: a function that opens all files.

    Args:    schema: of the table, for the types of CSV and JSON; None without a table. encoding: of CSV and JSON.
    Raises:  ConfigError for files that are not there, and for a format or an encoding that is not known.
    """
    if not files:
        raise ConfigError("write needs files; - is standard input.")
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise ConfigError(f"--encoding takes utf-8, latin-1, cp1252 and their like, found {encoding!r}.") from None
    formats = [_format_of(file, format) for file in files]
    places = [io.BytesIO(sys.stdin.buffer.read()) if file == STANDARD_INPUT else Path(file) for file in files]
    for place in places:
        if isinstance(place, Path) and not place.is_file():
            raise ConfigError(f"There is no file {str(place)!r}. Files are those of this machine.")
    names = ["standard input" if file == STANDARD_INPUT else file for file in files]
    given = [GivenFile(*one) for one in zip(names, places, formats, strict=True)]
    csv_files = {file.name: file.stream for file in given if file.format == "csv"}
    types = csv_types(csv_files, schema, encoding) if csv_files else {}
    return partial(_opened, given, _Form(schema, types, encoding))


@dataclass(frozen=True)
class GivenFile:
    """A file as the caller names it. `place`: its path, or its bytes."""

    name: str
    place: Path | io.BytesIO
    format: str

    def source(self) -> str | io.BytesIO:
        """What a reader of Arrow's opens."""
        return str(self.place) if isinstance(self.place, Path) else io.BytesIO(self.place.getvalue())

    def stream(self) -> IO[bytes]:
        """Its bytes, unpacked as its name says."""
        source = self.source()
        stream = pa.input_stream(source, compression="detect") if isinstance(source, str) else source
        return cast("IO[bytes]", stream)


@dataclass(frozen=True)
class _Form:
    """`schema`: of the table, None without one. `types`: of the columns of all CSV files. `encoding`: of texts."""

    schema: pa.Schema | None
    types: Mapping[str, pa.DataType]
    encoding: str


def _format_of(file: str, format: str | None) -> str:
    if format is not None:
        if format.lower() not in _FORMATS.values():
            raise ConfigError(f"--format takes parquet, csv, json or arrow, found {format!r}.")
        return format.lower()
    suffixes = [suffix.lower() for suffix in Path(file).suffixes if suffix.lower() not in _PACKED]
    if not suffixes or suffixes[-1] not in _FORMATS:
        raise ConfigError(f"The format of {file!r} is not known by its name: add --format parquet, csv, json or arrow.")
    return _FORMATS[suffixes[-1]]


def _opened(files: Sequence[GivenFile], form: _Form) -> pa.RecordBatchReader:
    """All files, one after the other, as a stream with the columns of the first one."""
    readers = [_READERS[file.format](file, form) for file in files]
    names = readers[0].schema.names
    for file, reader in zip(files, readers, strict=True):
        if sorted(reader.schema.names) != sorted(names):
            raise SchemaMismatch(
                f"{file.name}: its columns {', '.join(reader.schema.names)} are not those of the first file, "
                f"{', '.join(names)}. Write them one after the other."
            )
    columns = one_schema([reader.schema for reader in readers], "The files together")
    columns = pa.schema(nulls_typed(list(columns), [] if form.schema is None else list(form.schema)))
    if len(readers) == 1 and readers[0].schema.equals(columns):
        return readers[0]
    return pa.RecordBatchReader.from_batches(columns, _batches(readers, columns))


def _batches(readers: Sequence[pa.RecordBatchReader], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for reader in readers:
        for batch in reader:
            yield project(batch, schema)


def _parquet(file: GivenFile, form: _Form) -> pa.RecordBatchReader:
    import pyarrow.parquet as pq

    from pyhudi.formats.base.parquet_reader import parquet_rows

    opened = pq.ParquetFile(file.source(), coerce_int96_timestamp_unit="us")
    return parquet_rows(opened, file.name, _BATCH_ROWS)


def _csv(file: GivenFile, form: _Form) -> pa.RecordBatchReader:
    return csv_reader(file.name, file.stream, form.types, form.encoding)


def _json(file: GivenFile, form: _Form) -> pa.RecordBatchReader:
    encoding = "utf-8-sig" if codecs.lookup(form.encoding).name == "utf-8" else form.encoding
    try:
        with io.TextIOWrapper(cast("io.BufferedReader", file.stream()), encoding) as text:
            return json_rows(text, form.schema, file.name).to_reader(_BATCH_ROWS)
    except UnicodeError as error:
        raise ConfigError(
            f"{file.name} is not of the encoding {form.encoding}: give the one that it has, such as "
            "--encoding latin-1. Nothing was written."
        ) from error


def _arrow(file: GivenFile, form: _Form) -> pa.RecordBatchReader:
    import pyarrow.ipc as ipc

    source = file.source()
    try:
        opened = ipc.open_file(source)
    except pa.ArrowInvalid:
        return ipc.open_stream(pa.OSFile(source) if isinstance(source, str) else io.BytesIO(source.getvalue()))
    batches = (opened.get_batch(number) for number in range(opened.num_record_batches))
    return pa.RecordBatchReader.from_batches(opened.schema, batches)


_READERS: dict[str, Callable[[GivenFile, _Form], pa.RecordBatchReader]] = {
    "parquet": _parquet,
    "csv": _csv,
    "json": _json,
    "arrow": _arrow,
}
