"""Rows of files for `pyhudi write`: Parquet, CSV, JSON, Arrow; from standard input, too.

Files are opened anew at each attempt of a write and stream; JSON arrays and standard input are taken into memory.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import pyarrow as pa

from pyhudi.cli.parsing import STANDARD_INPUT
from pyhudi.errors import ConfigError, SchemaMismatch

__all__ = ["rows_of_files"]

_FORMATS = {
    ".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".arrows": "arrow",
}  # fmt: skip
_PACKED = (".gz", ".bz2", ".zst", ".lz4")
_BATCH_ROWS = 65_536


def rows_of_files(
    files: Sequence[str], format: str | None, schema: pa.Schema | None
) -> Callable[[], pa.RecordBatchReader]:
    """What a write is handed: a function that opens all files.

    Args:    schema: of the table, for the types of CSV and JSON; None without a table.
    Raises:  ConfigError for files that are not there, and for a format that is not known.
    """
    if not files:
        raise ConfigError("write needs files; - is standard input.")
    formats = [_format_of(file, format) for file in files]
    opened = [io.BytesIO(sys.stdin.buffer.read()) if file == STANDARD_INPUT else Path(file) for file in files]
    for place in opened:
        if isinstance(place, Path) and not place.is_file():
            raise ConfigError(f"There is no file {str(place)!r}. Files are those of this machine.")
    return partial(_opened, tuple(zip(opened, formats, strict=True)), schema)


def _format_of(file: str, format: str | None) -> str:
    if format is not None:
        if format.lower() not in _FORMATS.values():
            raise ConfigError(f"--format takes parquet, csv, json or arrow, found {format!r}.")
        return format.lower()
    suffixes = [suffix.lower() for suffix in Path(file).suffixes if suffix.lower() not in _PACKED]
    if not suffixes or suffixes[-1] not in _FORMATS:
        raise ConfigError(f"The format of {file!r} is not known by its name: add --format parquet, csv, json or arrow.")
    return _FORMATS[suffixes[-1]]


def _opened(places: Sequence[tuple[Path | io.BytesIO, str]], schema: pa.Schema | None) -> pa.RecordBatchReader:
    """All files, one after the other, as a stream with the columns of the first one."""
    readers = [_READERS[format](_source(place), schema) for place, format in places]
    columns = readers[0].schema
    for (place, _), reader in zip(places, readers, strict=True):
        if set(reader.schema.names) != set(columns.names):
            raise SchemaMismatch(
                f"{place}: its columns {', '.join(reader.schema.names)} are not those of the first file, "
                f"{', '.join(columns.names)}. Write them one after the other."
            )
    return pa.RecordBatchReader.from_batches(columns, _batches(readers, columns))


def _batches(readers: Sequence[pa.RecordBatchReader], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for reader in readers:
        for batch in reader:
            yield from pa.Table.from_batches([batch]).select(schema.names).cast(schema).to_batches()


def _source(place: Path | io.BytesIO) -> str | io.BytesIO:
    return str(place) if isinstance(place, Path) else io.BytesIO(place.getvalue())


def _stream(source: str | io.BytesIO) -> pa.NativeFile | io.BytesIO:
    """The bytes of a file, unpacked as its name says."""
    return pa.input_stream(source, compression="detect") if isinstance(source, str) else source


def _parquet(source: str | io.BytesIO, schema: pa.Schema | None) -> pa.RecordBatchReader:
    import pyarrow.parquet as pq

    from pyhudi.formats.base.parquet_reader import parquet_rows

    file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
    return parquet_rows(file, source if isinstance(source, str) else "the input", _BATCH_ROWS)


def _csv(source: str | io.BytesIO, schema: pa.Schema | None) -> pa.RecordBatchReader:
    import pyarrow.csv as pc

    types = {} if schema is None else {field.name: field.type for field in schema if not pa.types.is_nested(field.type)}
    return pc.open_csv(
        cast("io.BytesIO", _stream(source)),
        convert_options=pc.ConvertOptions(column_types=types, strings_can_be_null=True),
    )


def _json(source: str | io.BytesIO, schema: pa.Schema | None) -> pa.RecordBatchReader:
    import pyarrow.json as pj

    data = _stream(source).read()
    if data.lstrip()[:1] == b"[":
        rows = json.loads(data)
        table = pa.Table.from_pylist(rows) if schema is None else pa.Table.from_pylist(rows, _only(schema, rows))
    else:
        table = pj.read_json(io.BytesIO(data), parse_options=pj.ParseOptions(explicit_schema=schema))
        names = {name for line in data.splitlines()[:_LINES_LOOKED_AT] if line.strip() for name in json.loads(line)}
        table = table.select([name for name in table.column_names if name in names])
    return table.to_reader(_BATCH_ROWS)


_LINES_LOOKED_AT = 1000  # a column of the table that none of them names is left out


def _only(schema: pa.Schema, rows: Sequence[dict[str, object]]) -> pa.Schema:
    """The columns that rows have, with the table's types."""
    names = {name for row in rows for name in row}
    unknown = sorted(names - set(schema.names))
    more = pa.Table.from_pylist([{name: row.get(name) for name in unknown} for row in rows]).schema if unknown else ()
    return pa.schema([*(field for field in schema if field.name in names), *more])


def _arrow(source: str | io.BytesIO, schema: pa.Schema | None) -> pa.RecordBatchReader:
    import pyarrow.ipc as ipc

    try:
        file = ipc.open_file(source)
    except pa.ArrowInvalid:
        return ipc.open_stream(pa.OSFile(source) if isinstance(source, str) else io.BytesIO(source.getvalue()))
    batches = (file.get_batch(number) for number in range(file.num_record_batches))
    return pa.RecordBatchReader.from_batches(file.schema, batches)


_READERS: dict[str, Callable[[str | io.BytesIO, pa.Schema | None], pa.RecordBatchReader]] = {
    "parquet": _parquet,
    "csv": _csv,
    "json": _json,
    "arrow": _arrow,
}
