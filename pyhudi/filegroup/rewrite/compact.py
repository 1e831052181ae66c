"""Compaction and log compaction of one slice.

A compaction (`compact_slice`) merges base and log files into the next base file of the file group. Rows keep their
original meta columns, except for the file name.

A log compaction (`compact_logs`) merges the log blocks into one data block and one delete block in a new log file. Rows
of partial updates go to one block for each set of columns. The old log files are kept. The new blocks name the merged
instants in their headers, and replace their blocks.

Source: docs/formats/merging.md, "Two versions of a key"; docs/formats/timeline.md, "Commit metadata";
docs/formats/table-services.md, "Compaction plan", "Log compaction plan"; docs/formats/log.md, "Which blocks count".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from pyhudi.engine.base import TaskContext
from pyhudi.filegroup.read.record_buffer import LogRecords
from pyhudi.filegroup.read.slice import SliceMerge, SliceSpec
from pyhudi.filegroup.read.spill import Positions
from pyhudi.filegroup.write.append import LogFiles, LogOptions
from pyhudi.filegroup.write.base_file import NewBaseFile, no_values, stored_columns
from pyhudi.filegroup.write.key_filter import ReusedFooter
from pyhudi.filegroup.write.markers import CREATE, MERGE
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.filegroup.write.status import to_batch
from pyhudi.formats.avro.schema import arrow_from_avro, avro_from_arrow
from pyhudi.formats.base import BaseFileReader, Footer
from pyhudi.formats.log.blocks import delete
from pyhudi.formats.log.envelope import BlockType, HeaderKey, encode_block
from pyhudi.formats.log.writer import data_block
from pyhudi.model.commit import WriteStat, WriteStatus
from pyhudi.model.file_group import FileSlice
from pyhudi.model.keys import FILE_NAME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from pyhudi.schema.projection import project
from pyhudi.storage.clock import Clock

__all__ = ["CompactLogs", "CompactSlices", "compact_logs", "compact_slice", "with_file_name", "with_log_totals"]


@dataclass(frozen=True, slots=True)
class CompactSlices:
    """Fan-out work of a compaction: one slice, one new base file.

    `run`: part of the write tokens, so that two runs of one plan never make files of the same name.
    """

    spec: WriteSpec
    reading: SliceSpec
    run: int
    clock: Clock

    def __call__(self, task: TaskContext, file_slice: FileSlice) -> Iterable[pa.RecordBatch]:
        stage_task = replace(task, stage_id=self.run)
        return (to_batch([compact_slice(self.spec, self.reading, stage_task, file_slice, self.clock)]),)


def compact_slice(
    spec: WriteSpec, reading: SliceSpec, task: TaskContext, file_slice: FileSlice, clock: Clock
) -> WriteStatus:
    """Merge the base and log files of a slice into the file group's next base file.

    Args:    reading: its columns are the meta columns and the stored columns of `spec`.
    Returns: the status of the new file. It is written even if no rows remain.
    Raises:  CorruptFile, UnsupportedTable, SchemaMismatch.
    """
    started_s = clock.monotonic_s()
    merge = SliceMerge.of(reading, file_slice, reading.schema)
    read_s = clock.monotonic_s()
    with ExitStack() as stack:
        base = file_slice.base_file
        reader = stack.enter_context(reading.open_base(base.path)) if base is not None else None
        file = _write(spec, task, file_slice, merge, reader, clock)
        stat = file.close_rewritten(base, merge, (started_s, read_s), clock)
    totals = with_log_totals(stat, merge, file_slice)
    return WriteStatus(totals, rows_read=merge.log.records, column_stats=file.column_stats())


def _write(
    spec: WriteSpec,
    task: TaskContext,
    file_slice: FileSlice,
    merge: SliceMerge,
    reader: BaseFileReader | None,
    clock: Clock,
) -> NewBaseFile:
    records = merge.records
    footer, stored_rows = (reader.footer, reader.num_rows) if reader is not None else (Footer(), 0)
    is_delete = records.is_delete
    deleted = records.keys(np.flatnonzero(is_delete))
    keys = ReusedFooter.of(spec, footer, stored_rows, deleted, int(np.count_nonzero(~is_delete)))
    partition_path, file_id = file_slice.group.partition_path, file_slice.group.file_id
    io_type = CREATE if reader is None else MERGE
    file = NewBaseFile(
        spec, task, partition_path, file_id, io_type, clock, bloom=keys.bloom, keys=keys.key_range
    )  # fmt: skip
    group_rows = spec.file.row_group_rows
    try:
        for rows in merge.base_rows(reader, group_rows, keep_dictionaries=True) if reader is not None else ():
            if keys.rebuild_bloom or keys.rebuild_range:
                record_keys = rows.column(RECORD_KEY)
                file.add_keys(record_keys, to_bloom=keys.rebuild_bloom, to_range=keys.rebuild_range)
            file.write(with_file_name(spec, file, rows))
        for rows in merge.log_rows(group_rows):
            file.add_keys(rows.column(RECORD_KEY))
            file.write(with_file_name(spec, file, rows))
    except BaseException:
        file.abandon()
        raise
    return file


def with_file_name(spec: WriteSpec, file: NewBaseFile, rows: pa.Table) -> pa.Table:
    """Set the file's name in the rows' meta columns, or drop meta columns in tables that have none."""
    if spec.populate_meta_fields:
        return file.copied_rows(rows.drop_columns([FILE_NAME]))
    names = stored_columns(spec).names
    columns = [*([no_values(len(rows))] * len(META_COLUMNS)), *(rows.column(name) for name in names)]
    return pa.Table.from_arrays(columns, names=[*META_COLUMNS, *names])


def with_log_totals(stat: WriteStat, merge: SliceMerge, file_slice: FileSlice) -> WriteStat:
    """Add the totals of a compacted slice's log files to its stat."""
    return replace(
        stat,
        total_log_records=merge.log.records,
        total_log_files_compacted=len(file_slice.log_files),
        total_log_size_compacted=sum(log.size_bytes for log in file_slice.log_files),
        total_updated_records_compacted=len(merge.records),
        total_log_blocks=merge.log.blocks,
        total_corrupt_log_block=merge.log.corrupt_blocks,
        total_rollback_blocks=merge.log.rollback_blocks,
        total_log_read_time_ms=stat.scan_time_ms,
    )


@dataclass(frozen=True, slots=True)
class CompactLogs:
    """Fan-out work of a log compaction: one slice, one new log file.

    `run`: part of the write tokens, so that two runs of one plan never make files of the same name.
    """

    spec: WriteSpec
    reading: SliceSpec
    run: int
    clock: Clock
    logs: LogOptions

    def __call__(self, task: TaskContext, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        stage_task = replace(task, stage_id=self.run)
        for status in compact_logs(self.spec, self.reading, stage_task, file_slice, self.clock, self.logs):
            yield to_batch([status])


def compact_logs(
    spec: WriteSpec,
    reading: SliceSpec,
    task: TaskContext,
    file_slice: FileSlice,
    clock: Clock,
    logs: LogOptions,
) -> Iterator[WriteStatus]:
    """Write the log records of a slice, one version per key, into one new log file; the base file is not read.

    If the blocks that count hold no record, nothing is written and no status is returned.
    Raises CorruptFile, UnsupportedTable, SchemaMismatch.
    """
    started_s = clock.monotonic_s()
    merge = SliceMerge.of(reading, replace(file_slice, base_file=None), reading.schema)
    read_ms = int((clock.monotonic_s() - started_s) * 1000)
    files = LogFiles(spec, task, file_slice, logs, clock)
    blocks = _Blocks(spec, file_slice, merge, logs)
    for block, rows in blocks.data():
        files.append(block, rows, updates=len(rows))
    deleted = np.flatnonzero(merge.records.is_delete)
    if len(deleted):
        files.append_deletes(blocks.deletes(deleted), len(deleted))
    for status in files.finish(started_s):
        stat = replace(status.stat, scan_time_ms=read_ms, prev_commit=file_slice.base_instant)
        yield replace(status, stat=with_log_totals(stat, merge, file_slice), rows_read=merge.log.records)


class _Blocks:
    """Makes the blocks of one log-compacted slice."""

    def __init__(self, spec: WriteSpec, file_slice: FileSlice, merge: SliceMerge, logs: LogOptions) -> None:
        self._spec, self._slice, self._records, self._logs = spec, file_slice, merge.records, logs
        self._header: Mapping[HeaderKey, str] = {
            HeaderKey.INSTANT_TIME: spec.instant_time,
            HeaderKey.COMPACTED_BLOCK_TIMES: ",".join(merge.log.instants),
        }

    def data(self) -> Iterator[tuple[bytes, pa.Table]]:
        """The data blocks with their rows, one for each set of columns."""
        live = np.flatnonzero(~self._records.is_delete)
        for positions, absent in _by_absent_columns(self._records, live):
            rows = self._records.take(positions)
            step = max(1, int(len(rows) * min(1.0, self._logs.block_max_bytes / max(1, rows.nbytes))))
            for first in range(0, len(rows), step):
                part = rows.slice(first, step)
                yield self._data_block(part, absent)

    def _data_block(self, rows: pa.Table, absent: frozenset[str]) -> tuple[bytes, pa.Table]:
        spec = self._spec
        schema = pa.schema([column for column in spec.stored_schema if column.name not in absent])
        schema_json = avro_from_arrow(schema, spec.table_name, with_meta=True)
        header = {**self._header, HeaderKey.IS_PARTIAL: "true"} if absent else self._header
        if not spec.populate_meta_fields:
            for at, name in enumerate(META_COLUMNS):  # the key was computed only for the merge
                rows = rows.set_column(at, name, pa.nulls(len(rows), pa.string()))
        rows = rows.select([*META_COLUMNS, *schema.names])
        if self._logs.block_format.lower() != "parquet":
            rows = project(rows, arrow_from_avro(schema_json))
        (batch,) = rows.combine_chunks().to_batches()
        block = data_block(batch, schema_json, self._logs.block_format, header, page_checksums=spec.file.page_checksums)
        return block, rows

    def deletes(self, positions: Positions) -> bytes:
        """The delete block."""
        keys = pa.RecordBatch.from_arrays(
            [self._records.keys(positions), pa.repeat(self._slice.group.partition_path, len(positions))],
            names=[RECORD_KEY, PARTITION_PATH],
        )
        ordering = self._records.ordering(positions)
        schema_json = avro_from_arrow(self._spec.stored_schema, self._spec.table_name, with_meta=True)
        header = {**self._header, HeaderKey.SCHEMA: schema_json}
        return encode_block(BlockType.DELETE, header, delete.encode(keys, ordering))


def _by_absent_columns(records: LogRecords, positions: Positions) -> Iterator[tuple[Positions, frozenset[str]]]:
    """Group positions whose rows lack the same columns."""
    if not len(positions):
        return
    codes = np.zeros(len(positions), np.int64)
    names = [name for name in records.absent if name not in META_COLUMNS]
    for name in names:
        # Group numbers stay below the number of rows, whatever the number of columns.
        codes = np.unique(codes * 2 + records.absent[name][positions], return_inverse=True)[1]
    for code in range(int(codes.max()) + 1):
        members = positions[codes == code]
        yield members, frozenset(name for name in names if records.absent[name][members[0]])
