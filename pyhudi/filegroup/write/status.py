"""Write statuses as Arrow rows, which tasks return and the planner decodes.

The stat travels as JSON: it is small, has optional fields and maps, and one row is one file. Keys for indexes travel as
an Arrow stream, compressed where it is large, ranges of columns as bytes, the paths of staged index files as JSON.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Literal

import msgspec
import pyarrow as pa

from pyhudi.model.commit import StagedIndexFile, WriteStat, WriteStatus

__all__ = ["STATUS_SCHEMA", "from_table", "to_batch"]

STATUS_SCHEMA = pa.schema(
    [
        pa.field("stat", pa.string(), nullable=False),
        pa.field("rows_read", pa.int64(), nullable=False),
        pa.field("skipped", pa.int64(), nullable=False),
        pa.field("combined", pa.int64(), nullable=False),
        pa.field("warning", pa.string(), nullable=False),
        pa.field("staged_index", pa.string(), nullable=False),
        pa.field("column_stats", pa.binary()),
        pa.field("new_keys", pa.binary()),
        pa.field("removed_keys", pa.binary()),
    ]
)
_KEY = "key"
_SMALL_BYTES = 16 << 10  # keys of some 400 rows: starting compression takes longest
_LARGE_BYTES = 4 << 20  # keys of some 100,000 rows: reading them takes long enough to share it
_THREADS = min(4, os.cpu_count() or 1)
_STAT = msgspec.json.Decoder(WriteStat)
_PIECES = msgspec.json.Decoder(tuple[StagedIndexFile, ...])


def to_batch(statuses: Sequence[WriteStatus]) -> pa.RecordBatch:
    """Encode statuses, one row per status."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([msgspec.json.encode(status.stat).decode() for status in statuses], pa.string()),
            pa.array([status.rows_read for status in statuses], pa.int64()),
            pa.array([status.skipped for status in statuses], pa.int64()),
            pa.array([status.combined for status in statuses], pa.int64()),
            pa.array([status.warning for status in statuses], pa.string()),
            pa.array([msgspec.json.encode(status.staged_index).decode() for status in statuses], pa.string()),
            pa.array([status.column_stats for status in statuses], pa.binary()),
            pa.array([_stream(_keys_table(status.new_keys)) for status in statuses], pa.binary()),
            pa.array([_stream(_keys_table(status.removed_keys)) for status in statuses], pa.binary()),
        ],
        schema=STATUS_SCHEMA,
    )


def from_table(table: pa.Table) -> list[WriteStatus]:
    """Decode the statuses of a collected frame, in its order."""
    plain = (table.column(name).to_pylist() for name in STATUS_SCHEMA.names[:-2])
    is_large = table.nbytes > _LARGE_BYTES
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="hudi-status") if is_large else nullcontext() as pool:
        mapped = map if pool is None else pool.map
        new, removed = (list(mapped(_keys, _streams(table.column(name)))) for name in ("new_keys", "removed_keys"))
    return [
        WriteStatus(
            _STAT.decode(stat),
            rows_read,
            skipped,
            warning,
            ranges,
            new_keys,
            removed_keys,
            _PIECES.decode(pieces),
            combined,
        )
        for (stat, rows_read, skipped, combined, warning, pieces, ranges), new_keys, removed_keys in zip(
            zip(*plain, strict=True), new, removed, strict=True
        )
    ]


def _streams(column: pa.ChunkedArray) -> list[pa.Buffer | None]:
    """The bytes of each value, without a copy."""
    return [value.as_buffer() if value.is_valid else None for value in column]


def _keys_table(keys: pa.Array | None) -> pa.Table | None:
    return None if keys is None else pa.table({_KEY: keys})


def _stream(table: pa.Table | None) -> bytes | None:
    if table is None:
        return None
    sink = pa.BufferOutputStream()
    codec: Literal["zstd"] | None = "zstd" if table.nbytes > _SMALL_BYTES else None
    options = pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)  # many tasks already run in parallel
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _table(stream: pa.Buffer | None) -> pa.Table | None:
    if stream is None:
        return None
    with pa.ipc.open_stream(stream, options=pa.ipc.IpcReadOptions(use_threads=False)) as reader:
        return reader.read_all()


def _keys(stream: pa.Buffer | None) -> pa.Array | None:
    table = _table(stream)
    return None if table is None else table.column(_KEY).combine_chunks()
