"""The formats of files as rows: each is a function from a file to its rows, and what of it is none."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, Literal, TypeAlias, TypeVar, cast

import fastavro
import pyarrow as pa

from pyhudi.errors import SchemaMismatch
from pyhudi.formats.avro.schema import arrow_from_avro
from pyhudi.schema.evolution import evolve
from pyhudi.schema.projection import project
from pyhudi.storage.base import Storage
from pyhudi.streamer.json_messages import NO_JSON, RowColumns, decode_json, typed_columns
from pyhudi.streamer.settings import PipelineSettings
from pyhudi.streamer.sources.source import Rejected
from pyhudi.table.row_files.csv_rows import csv_reader, csv_types

__all__ = [
    "FORMATS",
    "BatchColumns",
    "RowsOfFile",
    "avro_rows",
    "csv_rows",
    "grouped",
    "is_cut_line",
    "json_rows",
    "orc_rows",
    "parquet_rows",
]

RowsOfFile: TypeAlias = "Callable[[Storage, str, RowColumns], tuple[pa.Table, list[Rejected]]]"

FileT = TypeVar("FileT")


def grouped(files: Sequence[FileT], sizes_bytes: Sequence[int], parts: int) -> list[list[FileT]]:
    """About so many groups of files of about the same size, in their order; one at least."""
    share_bytes = sum(sizes_bytes) / parts
    groups: list[list[FileT]] = [[]]
    behind_bytes = 0
    for file, size_bytes in zip(files, sizes_bytes, strict=True):
        if groups[-1] and behind_bytes + size_bytes / 2 > share_bytes * len(groups):
            groups.append([])
        groups[-1].append(file)
        behind_bytes += size_bytes
    return groups


class BatchColumns:
    """The columns of the files of a batch, of which each has to fit the table and the files before it."""

    def __init__(self, columns: RowColumns, settings: PipelineSettings) -> None:
        self._columns = columns
        self._allows_kinds = settings.allows_kinds
        self._before = pa.schema([])

    def problem_of(self, rows: pa.Table) -> str | None:
        """Why a file's rows don't fit; None for those that do, whose columns the next ones have to fit."""
        table = self._columns.schema
        try:
            if self._columns.is_whole:
                project(rows, table)
            elif table.names:
                evolve(
                    table,
                    rows.schema,
                    null_for_missing=True,
                    schema_mode="merge",
                    allow_kind_change=self._allows_kinds,
                )
            self._before = typed_columns([self._before.empty_table(), rows.schema.empty_table()]).schema
        except SchemaMismatch as error:
            return f"its rows don't fit: {error}"[:500]
        return None


def json_rows(storage: Storage, path: str, columns: RowColumns) -> tuple[pa.Table, list[Rejected]]:
    """A JSON object a line; also packed, by the end of the name."""
    with storage.open_input(path) as opened:
        packed: Literal["gzip", "zstd"] | None = None
        packed = "gzip" if path.lower().endswith(".gz") else "zstd" if path.lower().endswith(".zst") else None
        data = (pa.CompressedInputStream(opened, packed) if packed else opened).read().removeprefix(codecs.BOM_UTF8)
    lines = data.split(b"\n")
    numbers = [at for at, line in enumerate(lines, 1) if line and not line.isspace()]
    messages = [lines[at - 1].rstrip(b"\r") for at in numbers]
    decoded = decode_json(messages, columns)
    refused = [
        Rejected(f"{path}:{numbers[at]}", messages[at].decode("utf-8", "replace"), reason)
        for at, reason in decoded.refused
    ]
    return decoded.rows, refused


def is_cut_line(storage: Storage, path: str, refused: Sequence[Rejected]) -> bool:
    """True if the last line of a file is no JSON and has no end, so that somebody may be writing it."""
    if not refused or not refused[-1].reason.startswith(NO_JSON):
        return False
    with storage.open_input(path) as opened:
        data = opened.read()
    last = data.count(b"\n") + 1
    return not data.endswith(b"\n") and refused[-1].position == f"{path}:{last}"


def csv_rows(storage: Storage, path: str, columns: RowColumns) -> tuple[pa.Table, list[Rejected]]:
    """CSV with its columns in the first line."""

    def opener() -> IO[bytes]:
        return cast("IO[bytes]", storage.open_input(path))

    types = csv_types({path: opener}, columns.schema, "utf-8", columns.keys)
    return csv_reader(path, opener, types, "utf-8").read_all(), []


def parquet_rows(storage: Storage, path: str, columns: RowColumns) -> tuple[pa.Table, list[Rejected]]:
    """Parquet."""
    import pyarrow.parquet as pq

    with storage.open_input(path) as opened:
        return pq.ParquetFile(opened, coerce_int96_timestamp_unit="us").read(), []


def orc_rows(storage: Storage, path: str, columns: RowColumns) -> tuple[pa.Table, list[Rejected]]:
    """ORC."""
    import pyarrow.orc as orc

    with storage.open_input(path) as opened:
        return orc.ORCFile(opened).read(), []


def avro_rows(storage: Storage, path: str, columns: RowColumns) -> tuple[pa.Table, list[Rejected]]:
    """Avro containers."""
    with storage.open_input(path) as opened:
        blocks = fastavro.block_reader(cast("IO[bytes]", opened))
        schema = arrow_from_avro(json.dumps(blocks.writer_schema))
        stored = fastavro.parse_schema(cast("dict[str, Any]", _stored(blocks.writer_schema)))
        rows: list[dict[str, Any]] = []
        for block in cast("Iterator[Any]", blocks):
            records = (fastavro.schemaless_reader(block.bytes_, stored, None) for _ in range(block.num_records))
            rows += cast("Iterator[dict[str, Any]]", records)
        return pa.Table.from_pylist(rows, schema=schema), []


def _stored(schema: object) -> object:
    """An Avro schema whose values are read as they are stored, but for decimals: Arrow makes times of numbers, also of
    those that Python's have no room for, and UUIDs remain texts.
    """
    if isinstance(schema, list):
        return [_stored(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    is_decimal = schema.get("logicalType") == "decimal"
    return {key: _stored(one) for key, one in schema.items() if key != "logicalType" or is_decimal}


FORMATS: Mapping[str, RowsOfFile] = {
    "json": json_rows, "csv": csv_rows, "parquet": parquet_rows, "orc": orc_rows, "avro": avro_rows,
}  # fmt: skip
