"""A new base file of an instant: its name, marker, columns, bloom filter, key range and footer.

Its callers (`new_files`, `merge`, and those in `filegroup/rewrite`) choose the rows. `NewBaseFile` writes the rows and
their five meta columns. `key_filter` sizes the filter.

Source: docs/formats/base-files.md, "Meta columns".
"""

from __future__ import annotations

from functools import reduce
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.rows import concat_rows
from pyhudi.engine.base import TaskContext
from pyhudi.errors import KeyGenError, SchemaMismatch
from pyhudi.filegroup.write.key_filter import SizedFilter, new_key_filter
from pyhudi.filegroup.write.partition_metadata import ensure_partition_metadata
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.formats.avro.schema import avro_from_arrow
from pyhudi.formats.base import BaseFileReader, Footer, extension_of, file_schema, new_base_file
from pyhudi.formats.base.ranges import KeyRange
from pyhudi.formats.bloom import SIMPLE
from pyhudi.formats.stored_ranges import ranges_to_bytes, stored_ranges
from pyhudi.merge.combine import single_array
from pyhudi.model.commit import WriteStat, WriteStatus
from pyhudi.model.file_group import BaseFile
from pyhudi.model.filenames import BaseFileName, data_path
from pyhudi.model.keys import FILE_NAME, META_COLUMNS, RECORD_KEY
from pyhudi.model.table_format import TableFormat
from pyhudi.progress_line import wrote
from pyhudi.schema.projection import project
from pyhudi.schema.required import check_required, required_columns
from pyhudi.storage.clock import Clock

__all__ = [
    "NewBaseFile",
    "checked_rows",
    "constant",
    "incoming_schema",
    "no_values",
    "sequence_numbers",
    "stored_columns",
]


def constant(value: str, rows: int) -> pa.Array:
    """One text for all rows, as a dictionary of one value: cheaper to write, and a plain string in the file."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([value], pa.string()))


def no_values(rows: int) -> pa.Array:
    """Nulls for all rows."""
    return pa.nulls(rows, pa.string())


def sequence_numbers(instant_time: str, partition_id: int, first: int, rows: int) -> pa.Array:
    """`<instant>_<task partition>_<row>`, rows counted from `first`."""
    numbers = pa.array(np.arange(first, first + rows)).cast(pa.string())
    return pc.binary_join_element_wise(f"{instant_time}_{partition_id}_", numbers, "")


def stored_columns(spec: WriteSpec) -> pa.Schema:
    """The data columns as base files store them."""
    return file_schema(spec.stored_schema)


def incoming_schema(columns: pa.Schema) -> pa.Schema:
    """The schema of rows to be written: the record key, then the stored columns."""
    return pa.schema([pa.field(RECORD_KEY, pa.string()), *columns])


class RewrittenRows(Protocol):
    """The numbers of updated, inserted and deleted rows of a file group."""

    updated: int
    inserted: int
    deleted: int


class NewBaseFile:
    """A base file being written: pass tables of `new_rows` and `copied_rows` to `write`, then call `close`."""

    def __init__(
        self, spec: WriteSpec, task: TaskContext, partition_path: str, file_id: str, io_type: str, clock: Clock,
        *, bloom: SizedFilter | None = None, keys: KeyRange | None = None, gathers: bool = False,
    ) -> None:  # fmt: skip
        """Announce the file with a marker and start it.

        Args:
            bloom, keys: filter and key range to start from, if the caller knows those of copied rows.
            gathers: small tables are collected in memory, so that a file with many small additions does not get a row
                group for each; not for callers with many open files.
        """
        self.file_id = file_id
        self.partition_path = partition_path
        self.name = str(BaseFileName(file_id, task.write_token, spec.instant_time, extension_of(spec.file.format)))
        self.path = data_path(partition_path, self.name)
        self.rows = 0
        self._gathers = gathers
        self._waiting_tables: list[pa.Table] = []
        self._spec, self._task = spec, task
        self._stored_columns = stored_columns(spec)
        self._required = required_columns(spec.stored_schema)
        self._bloom = bloom if bloom is not None else new_key_filter(spec)
        self._keys = keys or KeyRange()
        self._new_keys: list[pa.Array] | None = [] if spec.reports_keys else None
        spec.announce(self.path, io_type)
        ensure_partition_metadata(spec.storage, partition_path, spec.instant_time, clock)
        meta = [pa.field(name, pa.string()) for name in META_COLUMNS]
        columns = pa.schema([*meta, *self._stored_columns])
        self._writer = new_base_file(spec.storage, self.path, columns, spec.file, spec.stats_columns or ())

    @property
    def written_bytes(self) -> int:
        return self._writer.written_bytes

    def new_rows(self, rows: pa.Table, first_seq: int) -> pa.Table:
        """`rows` (record key and stored columns) with the meta columns of this instant.

        Raises SchemaMismatch for a row without a value in a required column.
        """
        check_required(rows, self._required, rows.column(RECORD_KEY))
        count = len(rows)
        if self._spec.populate_meta_fields:
            meta = [
                constant(self._spec.instant_time, count),
                sequence_numbers(self._spec.instant_time, self._task.partition_id, first_seq, count),
                rows.column(RECORD_KEY),
                constant(self.partition_path, count),
                constant(self.name, count),
            ]
        else:
            meta = [no_values(count)] * len(META_COLUMNS)
        columns = [*meta, *(rows.column(name) for name in self._stored_columns.names)]
        return pa.Table.from_arrays(columns, names=[*META_COLUMNS, *self._stored_columns.names])

    def copied_rows(self, rows: pa.Table) -> pa.Table:
        """`rows` of an older version of the file, which lack the file name, with the name of this file."""
        at = META_COLUMNS.index(FILE_NAME)
        return rows.add_column(at, FILE_NAME, constant(self.name, len(rows)))

    def write(self, rows: pa.Table) -> None:
        """Write complete rows, at most one row group's."""
        if not len(rows):
            return
        self.rows += len(rows)
        if self._waiting_tables and not self._fits(rows):
            self._flush()
        self._waiting_tables.append(rows)
        if not self._gathers or not self._fits():
            self._flush()

    def copyable_parts(self, source: BaseFileReader) -> frozenset[int]:
        """The numbers of the parts of an older version of the file that `copy_part` can copy."""
        return self._writer.copyable(source)

    def start_copying(self, source: BaseFileReader) -> None:
        """Prepare to copy parts of this older version. Call it before anything is written."""
        self._writer.start_copying(source)

    def copy_part(self, part: int, rows: int, changed: pa.Table | None = None) -> None:
        """Copy the stored columns of a part with `rows` rows, except for the file name and the columns of `changed`."""
        self._flush()
        name = constant(self.name, rows)
        replaced = pa.table([name], [FILE_NAME]) if changed is None else changed.append_column(FILE_NAME, name)
        self._writer.copy(part, replaced)
        self.rows += rows
        wrote(rows)

    def _fits(self, *more: pa.Table) -> bool:
        """True if the collected rows (and `more`) are at most half a row group."""
        tables, options = (*self._waiting_tables, *more), self._spec.file
        rows, size_bytes = sum(map(len, tables)), sum(table.nbytes for table in tables)
        return 2 * rows <= options.row_group_rows and 2 * size_bytes <= options.row_group_bytes

    def _flush(self) -> None:
        """Write the collected rows as one row group."""
        if self._waiting_tables:
            first, *more_tables = self._waiting_tables
            row_group = reduce(concat_rows, more_tables, first)
            self._writer.write(row_group)
            wrote(len(row_group))
        self._waiting_tables = []

    def add_keys(self, keys: pa.Array | pa.ChunkedArray, *, to_bloom: bool = True, to_range: bool = True) -> None:
        """Add the keys of written rows to the bloom filter and the key range."""
        if self._bloom is None:
            return
        if to_range:
            self._keys.add(keys)
        if to_bloom:
            self._bloom.add(keys)

    def note_new_keys(self, keys: pa.ChunkedArray) -> None:
        """Report new keys of the file group, if the spec asks for reports."""
        if self._new_keys is not None:
            self._new_keys.append(single_array(keys))

    @property
    def new_keys(self) -> pa.Array | None:
        """The reported keys; None unless the spec asks for reports."""
        return None if self._new_keys is None else pa.concat_arrays([pa.array([], pa.string()), *self._new_keys])

    def close(self) -> int:
        """Write the footer; return the file's size in bytes."""
        self._flush()
        spec = self._spec
        schema_json = avro_from_arrow(spec.stored_schema, spec.table_name, with_meta=True)
        footer = Footer(avro_schema=schema_json)
        if self._bloom is not None:
            bloom = self._bloom.finished()
            footer = Footer(
                min_key=self._keys.least,
                max_key=self._keys.greatest,
                bloom_base64=bloom.to_base64(),
                bloom_type=None if bloom.kind == SIMPLE else bloom.kind,
                avro_schema=schema_json,
            )
        size_bytes = self._writer.close(footer)
        spec.confirm(self.path)
        return size_bytes

    def column_stats(self) -> bytes | None:
        """Statistics of the closed file's columns, if the spec asks for them."""
        if self._spec.stats_columns is None:
            return None
        return ranges_to_bytes(stored_ranges(self._spec.table_version, self._writer.ranges()))

    def close_created(self, started_s: float, clock: Clock) -> WriteStatus:
        """Close a file whose rows are all new in its group; return its status."""
        size_bytes = self.close()
        stat = WriteStat(
            file_id=self.file_id,
            path=self.path,
            partition_path=self.partition_path,
            num_writes=self.rows,
            num_inserts=self.rows,
            total_write_bytes=size_bytes,
            file_size_in_bytes=size_bytes,
            create_time_ms=int((clock.monotonic_s() - started_s) * 1000),
        )
        return WriteStatus(stat, rows_read=self.rows, column_stats=self.column_stats(), new_keys=self.new_keys)

    def close_rewritten(
        self, base: BaseFile | None, rows: RewrittenRows, times_s: tuple[float, float], clock: Clock
    ) -> WriteStat:
        """Close a file that replaces `base` (None: only log files); return its status.

        Args:    times_s: when the work began, and when all its input had been read.
        """
        size_bytes = self.close()
        started_s, read_s = times_s
        names_previous = TableFormat(self._spec.table_version).stats_name_previous_file
        return WriteStat(
            file_id=self.file_id,
            path=self.path,
            partition_path=self.partition_path,
            prev_commit="null" if base is None else base.instant_time,
            prev_base_file=base.name if base is not None and names_previous else None,
            num_writes=self.rows,
            num_update_writes=rows.updated,
            num_inserts=rows.inserted,
            num_deletes=rows.deleted,
            total_write_bytes=size_bytes,
            file_size_in_bytes=size_bytes,
            scan_time_ms=int((read_s - started_s) * 1000),
            upsert_time_ms=int((clock.monotonic_s() - read_s) * 1000),
        )

    def abandon(self) -> None:
        """Stop after an error. The marker is kept, so that the rollback finds the file."""
        self._writer.abandon()


def checked_rows(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    """Convert `rows` to `incoming_schema(columns)`; other columns are dropped.

    Raises SchemaMismatch when a stored column is missing, KeyGenError when a record key is null.
    """
    column_names = set(rows.column_names)  # each access creates a list, which is slow for thousands of columns
    missing = [name for name in columns.names if name not in column_names]
    if missing:
        raise SchemaMismatch(
            f"Rows to write lack the columns {', '.join(missing)}; they have {', '.join(rows.column_names)}."
        )
    if rows.column(RECORD_KEY).null_count:
        raise KeyGenError(
            f"{rows.column(RECORD_KEY).null_count} rows to write have no record key; nothing was committed."
        )
    return project(rows, incoming_schema(columns))
