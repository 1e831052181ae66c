"""Compaction of one slice: base and log files become the next base file of the file group.

Rows keep the meta columns that they were written with, but for the file name.
Source: docs/formats/merging.md, "Two versions of a key"; docs/formats/timeline.md, "Commit metadata";
docs/formats/table-services.md, "Compaction plan".
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.engine.base import TaskContext
from pyhudi.filegroup.markers import CREATE, MERGE
from pyhudi.filegroup.meta_columns import no_values
from pyhudi.filegroup.new_base_file import NewBaseFile, stored_columns
from pyhudi.filegroup.read import SliceMerge, SliceSpec
from pyhudi.filegroup.reused_footer import ReusedFooter
from pyhudi.filegroup.spec import WriteSpec
from pyhudi.filegroup.status import to_batch
from pyhudi.formats.base import BaseFileReader, Footer, open_base_file
from pyhudi.model.commit import WriteStat, WriteStatus
from pyhudi.model.file_group import FileSlice
from pyhudi.model.keys import FILE_NAME, META_COLUMNS, RECORD_KEY
from pyhudi.storage.clock import Clock

__all__ = ["CompactSlices", "compact_slice", "with_file_name", "with_log_totals"]


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
        own = replace(task, stage_id=self.run)
        return (to_batch([compact_slice(self.spec, self.reading, own, file_slice, self.clock)]),)


def compact_slice(
    spec: WriteSpec, reading: SliceSpec, task: TaskContext, file_slice: FileSlice, clock: Clock
) -> WriteStatus:
    """Write base and log files of a slice as the file group's next base file.

    Args:    reading: its columns are the meta columns and the stored columns of `spec`.
    Returns: the status of the new file. It is written even when no row is left.
    Raises:  CorruptFile, UnsupportedTable, SchemaMismatch.
    """
    started_s = clock.monotonic_s()
    merge = SliceMerge.of(reading, file_slice, reading.schema)
    read_s = clock.monotonic_s()
    with ExitStack() as stack:
        base = file_slice.base_file
        reader = stack.enter_context(open_base_file(spec.storage, base.path)) if base is not None else None
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
    keys = ReusedFooter.of(spec, footer, stored_rows, records.keys.filter(pa.array(records.is_delete)))
    partition_path, file_id = file_slice.group.partition_path, file_slice.group.file_id
    io_type = CREATE if reader is None else MERGE
    file = NewBaseFile(
        spec, task, partition_path, file_id, io_type, clock, bloom=keys.bloom, keys=keys.key_range
    )  # fmt: skip
    group_rows = spec.file.row_group_rows
    try:
        for rows in merge.base_rows(reader, group_rows, keep_dictionaries=True) if reader is not None else ():
            if keys.rebuild_bloom or keys.rebuild_range:
                found = rows.column(RECORD_KEY)
                file.add_keys(found, to_bloom=keys.rebuild_bloom, to_range=keys.rebuild_range)
            file.write(with_file_name(spec, file, rows))
        for rows in merge.log_rows(group_rows):
            file.add_keys(rows.column(RECORD_KEY))
            file.write(with_file_name(spec, file, rows))
    except BaseException:
        file.abandon()
        raise
    return file


def with_file_name(spec: WriteSpec, file: NewBaseFile, rows: pa.Table) -> pa.Table:
    """The rows with the file's name in their meta columns, or without any in tables that keep none."""
    if spec.populate_meta_fields:
        return file.copied_rows(rows.drop_columns([FILE_NAME]))
    stored = stored_columns(spec).names
    columns = [*([no_values(len(rows))] * len(META_COLUMNS)), *(rows.column(name) for name in stored)]
    return pa.Table.from_arrays(columns, names=[*META_COLUMNS, *stored])


def with_log_totals(stat: WriteStat, merge: SliceMerge, file_slice: FileSlice) -> WriteStat:
    """The stat of a compacted slice with what was read from its log files."""
    return replace(
        stat,
        total_log_records=merge.log.records,
        total_log_files_compacted=len(file_slice.log_files),
        total_log_size_compacted=sum(log.size_bytes for log in file_slice.log_files),
        total_updated_records_compacted=len(merge.records.keys),
        total_log_blocks=merge.log.blocks,
        total_corrupt_log_block=merge.log.corrupt_blocks,
        total_rollback_blocks=merge.log.rollback_blocks,
        total_log_read_time_ms=stat.scan_time_ms,
    )
