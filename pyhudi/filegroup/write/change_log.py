"""The change log next to a rewritten base file: its updated, deleted and inserted rows.

    .<file id>_<instant>.log.1_<write token>.cdc      blocks of changes; an empty block when nothing changed

Source: docs/formats/incremental.md, "Change logs"; docs/formats/writers.md, "Markers".
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from pyhudi.engine.base import TaskContext
from pyhudi.filegroup.write.markers import CREATE
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.formats.avro.schema import arrow_from_avro, avro_from_arrow
from pyhudi.formats.log.blocks.change_data import change_block, change_schema
from pyhudi.formats.log.writer import LogFileWriter
from pyhudi.model.change_logs import (
    AFTER,
    BEFORE,
    CHANGE_LOG_SUFFIX,
    DELETE,
    INSERT,
    LOGGED_KEY,
    OP,
    TIME,
    UPDATE,
    ChangeLogOptions,
)
from pyhudi.model.filenames import LogFileName, data_path
from pyhudi.schema.projection import project

__all__ = ["ChangeLog"]


class ChangeLog:
    """A change log being written: pass changes to `updated`, `deleted` and `inserted`, then call `close`."""

    def __init__(
        self, spec: WriteSpec, options: ChangeLogOptions, task: TaskContext, partition_path: str, file_id: str
    ) -> None:
        """Announce the file with a marker and start it."""
        name = LogFileName(file_id, spec.instant_time, 1, task.write_token, CHANGE_LOG_SUFFIX)
        self._path = data_path(partition_path, str(name))
        self._confirm = spec.confirm
        self._instant_time, self._limit_bytes = spec.instant_time, options.block_max_bytes
        rows = avro_from_arrow(spec.stored_schema, spec.table_name, with_meta=False)
        self._avro = change_schema(options.mode, rows, spec.table_version)
        self._schema = arrow_from_avro(self._avro)
        self._waiting_tables: list[pa.Table] = []
        self._waiting_bytes = 0
        spec.announce(self._path, CREATE)
        self._file = LogFileWriter(spec.storage, self._path)

    def updated(self, keys: pa.Array, before: pa.Table, after: pa.Table) -> None:
        """Log updated rows. Args: before, after: stored columns, in the order of `keys`."""
        self._add(UPDATE, keys, before, after)

    def deleted(self, keys: pa.Array, before: pa.Table) -> None:
        """Log deleted rows."""
        self._add(DELETE, keys, before, None)

    def inserted(self, keys: pa.Array, after: pa.Table) -> None:
        """Log inserted rows."""
        self._add(INSERT, keys, None, after)

    def close(self) -> Mapping[str, int]:
        """Write the remaining changes and finish the file; return its path and size in bytes, for the write stat."""
        if self._waiting_tables or not self._file.size_bytes:
            self._flush()
        size_bytes = self._file.close()
        self._confirm(self._path)
        return {self._path: size_bytes}

    def _add(self, op: str, keys: pa.Array, before: pa.Table | None, after: pa.Table | None) -> None:
        if not len(keys):
            return
        columns: list[pa.Array] = []
        for field in self._schema:
            if field.name in (OP, TIME):
                columns.append(pa.repeat(pa.scalar(op if field.name == OP else self._instant_time), len(keys)))
            elif field.name == LOGGED_KEY:
                columns.append(keys)
            else:
                columns.append(_images({BEFORE: before, AFTER: after}[field.name], field.type, len(keys)))
        changes = pa.Table.from_arrays(columns, schema=self._schema)
        self._waiting_tables.append(changes)
        self._waiting_bytes += changes.nbytes
        if self._waiting_bytes >= self._limit_bytes:
            self._flush()

    def _flush(self) -> None:
        changes = pa.concat_tables(self._waiting_tables or [self._schema.empty_table()]).combine_chunks()
        batch = pa.RecordBatch.from_arrays([_single(column) for column in changes.columns], schema=self._schema)
        self._file.append(change_block(batch, self._avro, self._instant_time))
        self._waiting_tables, self._waiting_bytes = [], 0


def _images(rows: pa.Table | None, image: pa.DataType, count: int) -> pa.Array:
    """The rows as one column; nulls if there are no rows."""
    if rows is None:
        return pa.nulls(count, image)
    assert pa.types.is_struct(image)
    columns = [_single(column) for column in project(rows, pa.schema(list(image))).columns]
    return pa.StructArray.from_arrays(columns, fields=list(image))


def _single(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined.combine_chunks() if isinstance(combined, pa.ChunkedArray) else combined
