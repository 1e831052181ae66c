"""Appends to one file slice: updates as data blocks, deletes as delete blocks, in new log files.

The names of the new files depend on the table version:

    version below 8   .<file id>_<base instant>.log.<next version>_<token>      the slice's next version
    from version 8    .<file id>_<own instant>.log.1_<token>                    each delta commit has its own files

The header of a block may hold the row numbers of its keys in the slice's base file (`BasePositions`).

Source: docs/formats/file-names.md, "Data files"; docs/formats/log.md, "Block frame", "Header", "Record positions";
docs/formats/timeline.md, "Commit metadata"; docs/formats/writers.md, "Markers".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.engine.base import TaskContext
from pyhudi.errors import SchemaMismatch
from pyhudi.filegroup.stats import LogStats
from pyhudi.filegroup.write.base_file import checked_rows, no_values, sequence_numbers, stored_columns
from pyhudi.filegroup.write.markers import APPEND, CREATE
from pyhudi.filegroup.write.partition_metadata import ensure_partition_metadata
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.formats.avro.schema import arrow_from_avro, avro_from_arrow
from pyhudi.formats.base import open_base_file
from pyhudi.formats.log.blocks import delete
from pyhudi.formats.log.envelope import BlockType, HeaderKey, encode_block
from pyhudi.formats.log.positions import POSITION_NOTES, encode_positions
from pyhudi.formats.log.writer import LogFileWriter, data_block
from pyhudi.formats.stored_ranges import ranges_to_bytes
from pyhudi.merge.combine import deletes_of, ordering_columns, single_array
from pyhudi.model.commit import WriteStat, WriteStatus
from pyhudi.model.file_group import BaseFile, FileSlice
from pyhudi.model.filenames import LogFileName, data_path
from pyhudi.model.keys import BASE_ROW, CHANGE, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from pyhudi.model.table_format import TableFormat
from pyhudi.schema.projection import project
from pyhudi.schema.required import check_required, required_columns
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock

__all__ = ["NOTHING_PARTIAL", "BasePositions", "LogFiles", "LogOptions", "append_log"]


Positions = npt.NDArray[np.int64]

_NOT_THERE = -1


class BasePositions:
    """Finds row positions in one base file: from the rows (BASE_ROW), or by a look-up of their keys.

    The keys are read on first access and cached. If `may_look` is False, rows without positions get none.
    """

    def __init__(self, storage: Storage, base_file: BaseFile, *, may_look: bool = True) -> None:
        self._storage, self._base_file, self._may_look = storage, base_file, may_look
        self._keys: pa.ChunkedArray | None = None

    def in_order(self, rows: pa.Table) -> tuple[pa.Table, Mapping[HeaderKey, str]]:
        """The rows ordered by position, and the header entries with the positions.

        If one of the keys is missing from the base file, or occurs twice, the rows keep their order and there are no
        entries.
        """
        positions = self._positions(rows)
        order = np.argsort(positions, kind="stable")
        ordered = positions[order]
        if not len(ordered) or ordered[0] == _NOT_THERE or not (np.diff(ordered) > 0).all():
            return rows, {}
        header = {
            HeaderKey.RECORD_POSITIONS: encode_positions(ordered),
            HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: self._base_file.instant_time,
        }
        return rows.take(pa.array(order)), header

    def _positions(self, rows: pa.Table) -> Positions:
        if BASE_ROW in rows.column_names:
            positions: Positions = pc.fill_null(single_array(rows.column(BASE_ROW)), _NOT_THERE).to_numpy()
            return positions
        if not self._may_look:
            return np.full(len(rows), _NOT_THERE, np.int64)
        return self._looked_up(single_array(rows.column(RECORD_KEY)))

    def _looked_up(self, keys: pa.Array) -> Positions:
        if self._keys is None:
            with open_base_file(self._storage, self._base_file.path) as base:
                batches = [batch.column(0) for batch in base.batches([RECORD_KEY])]
            self._keys = pa.chunked_array(batches, pa.string())
        # The search runs from base rows to keys, so that the hash table holds the few keys of a block.
        numbers = pc.fill_null(pc.index_in(self._keys, value_set=keys), _NOT_THERE).to_numpy()
        rows = np.flatnonzero(numbers != _NOT_THERE)
        positions = np.full(len(keys), _NOT_THERE, np.int64)
        if len(np.unique(numbers[rows])) == len(rows):
            positions[numbers[rows]] = rows
        return positions


NOTHING_PARTIAL: Mapping[int, frozenset[str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Settings of log files. `block_max_bytes` counts Arrow bytes before encoding. `record_positions`: blocks have the
    row numbers of their keys in the base file; None: only if the rows have them.
    """

    block_format: str = "parquet"
    file_max_bytes: int = 1 << 30
    block_max_bytes: int = 256 << 20
    record_positions: bool | None = None


@dataclass(frozen=True, slots=True)
class _Counts:
    """The rows and bytes of one log file."""

    updates: int = 0
    inserts: int = 0
    deletes: int = 0


def append_log(
    spec: WriteSpec, task: TaskContext, file_slice: FileSlice, incoming: pa.Table, clock: Clock,
    *, options: LogOptions = LogOptions(), inserts: pa.Array | None = None, first_seq: int = 0,
    partial: Mapping[int, frozenset[str]] = NOTHING_PARTIAL,
) -> Iterator[WriteStatus]:  # fmt: skip
    """Write rows and deletes of one file group into new log files of its newest slice.

    Args:
        file_slice: the newest slice; it has neither base file nor logs for a group that starts with a log file.
        incoming: columns of `spec.schema`, RECORD_KEY and PARTITION_PATH, one row per key; IS_DELETE marks deletes,
            BASE_ROW is the key's row number in the slice's base file. When all rows are deletes, data columns may be
            absent: such deletes have no ordering value.
        inserts: bool, which rows have new keys (only for the counts); None: no row.
        partial: for partial updates, by the number in a row's CHANGE: the data columns of its block. Rows with other
            numbers are written whole. From table version 8 on.
    Returns: a status per log file.
    Raises:  SchemaMismatch, KeyGenError; SchemaMismatch also for rows with a null ordering value if ordering decides:
             once such a row is in a log, Hudi's readers fail on the whole slice.
    """
    started_s = clock.monotonic_s()
    files = LogFiles(spec, task, file_slice, options, clock)
    deletes = deletes_of(incoming)
    rows = incoming.filter(pa.array(~deletes))
    _check_ordering(spec, rows)
    new = np.zeros(len(incoming), np.bool_) if inserts is None else inserts.to_numpy(zero_copy_only=False)
    new = new[~deletes]
    base_rows = _base_positions(spec, file_slice, options)
    for positions, columns in _by_columns(rows, partial):
        chosen = rows if len(positions) == len(rows) else rows.take(pa.array(positions))
        is_new = new[positions]
        for first, part in _parts(chosen, options.block_max_bytes):
            new_rows = int(is_new[first : first + len(part)].sum())
            block, written = _data_block(spec, task, file_slice, part, options, first_seq + first, columns, base_rows)
            files.append(block, written, len(part) - new_rows, new_rows)
        first_seq += len(chosen)
    if deletes.any():
        deleted = incoming.filter(pa.array(deletes))
        files.append_deletes(_delete_block(spec, deleted, base_rows), len(deleted))
    yield from files.finish(started_s)


def _base_positions(spec: WriteSpec, file_slice: FileSlice, options: LogOptions) -> BasePositions | None:
    """The look-up of base rows; None if blocks must not, or can't, have positions."""
    base = file_slice.base_file
    unwanted = options.record_positions is False or options.block_format.lower() == "hfile"
    has_positions = TableFormat(spec.table_version).has_record_positions and spec.populate_meta_fields
    if unwanted or base is None or not has_positions:
        return None
    return BasePositions(spec.storage, base, may_look=options.record_positions is True)


def _check_ordering(spec: WriteSpec, rows: pa.Table) -> None:
    if spec.merge_mode != "EVENT_TIME_ORDERING" or not len(rows):
        return
    for field, values in zip(spec.ordering_fields, ordering_columns(rows, spec.ordering_fields), strict=True):
        if values.null_count:
            key = rows.column(RECORD_KEY).filter(values.is_null())[0].as_py()
            raise SchemaMismatch(
                f"{values.null_count} rows have no value in the ordering field {field!r}, such as the one with the key "
                f"{key!r}. With EVENT_TIME_ORDERING Hudi can't read log files that hold such rows; fill the field."
            )


def _by_columns(
    rows: pa.Table, partial: Mapping[int, frozenset[str]]
) -> Iterator[tuple[npt.NDArray[np.int64], frozenset[str] | None]]:
    """Split rows by the columns of their blocks: the rows' positions, and the columns (None: all)."""
    if not partial or not len(rows):
        yield np.arange(len(rows)), None
        return
    numbers = rows.column(CHANGE).to_numpy()
    by_columns: dict[frozenset[str] | None, list[int]] = {}
    for number in np.unique(numbers).tolist():
        by_columns.setdefault(partial.get(number), []).append(number)
    for columns, members in by_columns.items():
        yield np.flatnonzero(np.isin(numbers, members)), columns


def _parts(rows: pa.Table, limit_bytes: int) -> Iterator[tuple[int, pa.Table]]:
    if not len(rows):
        return
    step = max(1, int(len(rows) * min(1.0, limit_bytes / max(1, rows.nbytes))))
    for first in range(0, len(rows), step):
        yield first, rows.slice(first, step)


def _data_block(
    spec: WriteSpec, task: TaskContext, file_slice: FileSlice, rows: pa.Table, options: LogOptions, first_seq: int,
    columns: frozenset[str] | None, base_rows: BasePositions | None,
) -> tuple[bytes, pa.Table]:  # fmt: skip
    """Make a block of whole rows, or of partial updates of these columns (docs/formats/log.md, "Partial blocks");
    return it with its rows as they are stored.
    """
    block_columns, schema = stored_columns(spec), spec.stored_schema
    header = {HeaderKey.INSTANT_TIME: spec.instant_time}
    notes: dict[bytes, str] = {}
    if base_rows is not None:
        rows, placed = base_rows.in_order(rows)
        if options.block_format.lower() == "parquet" and not options.record_positions:
            notes = {POSITION_NOTES[key]: text for key, text in placed.items()}
        else:
            header |= placed
    if columns is not None:
        block_columns, schema = (
            pa.schema([c for c in columns_of if c.name in columns]) for columns_of in (block_columns, schema)
        )
        header[HeaderKey.IS_PARTIAL] = "true"
    checked = checked_rows(rows, block_columns)
    check_required(checked, required_columns(schema), checked.column(RECORD_KEY))
    count = len(checked)
    if spec.populate_meta_fields:
        meta = [
            pa.repeat(pa.scalar(spec.instant_time), count),
            sequence_numbers(spec.instant_time, task.partition_id, first_seq, count),
            checked.column(RECORD_KEY),
            pa.repeat(pa.scalar(file_slice.group.partition_path), count),
            pa.repeat(pa.scalar(file_slice.group.file_id), count),  # in logs this column has the file id
        ]
    else:
        meta = [no_values(count)] * len(META_COLUMNS)
    schema_json = avro_from_arrow(schema, spec.table_name, with_meta=True)
    arrays = [*meta, *(checked.column(name) for name in block_columns.names)]
    table = pa.Table.from_arrays(arrays, names=[*META_COLUMNS, *block_columns.names])
    if options.block_format.lower() != "parquet":
        table = project(table, arrow_from_avro(schema_json))
    (batch,) = table.replace_schema_metadata(notes or None).combine_chunks().to_batches()
    return data_block(batch, schema_json, options.block_format, header, page_checksums=spec.file.page_checksums), table


def _delete_block(spec: WriteSpec, deleted: pa.Table, base_rows: BasePositions | None) -> bytes:
    deleted, placed = (deleted, {}) if base_rows is None else base_rows.in_order(deleted)
    keys = deleted.select([RECORD_KEY, PARTITION_PATH]).combine_chunks().to_batches()[0]
    fields = [f for f in spec.ordering_fields if f.partition(".")[0] in deleted.column_names]
    ordering = ordering_columns(deleted, fields) if len(fields) == len(spec.ordering_fields) else []
    header = {
        **placed,
        HeaderKey.INSTANT_TIME: spec.instant_time,
        HeaderKey.SCHEMA: avro_from_arrow(spec.stored_schema, spec.table_name, with_meta=True),
    }
    return encode_block(BlockType.DELETE, header, delete.encode(keys, ordering))


class LogFiles:
    """The log files of one append; a new file is started when the open one is full. `finish` returns their statuses."""

    def __init__(
        self, spec: WriteSpec, task: TaskContext, file_slice: FileSlice, options: LogOptions, clock: Clock
    ) -> None:
        self._spec, self._task, self._slice, self._options, self._clock = spec, task, file_slice, options, clock
        self._written: list[tuple[LogFileName, int, _Counts]] = []
        self._open: tuple[LogFileName, LogFileWriter, _Counts] | None = None
        self._stats: list[LogStats] = []  # one for each file; empty if the write does not need them

    def append(self, block: bytes, rows: pa.Table, updates: int, inserts: int = 0) -> None:
        """Write a data block that holds these rows."""
        self._put(block, _Counts(updates=updates, inserts=inserts))
        if self._stats:
            self._stats[-1].add(rows)

    def append_deletes(self, block: bytes, count: int) -> None:
        """Write a delete block."""
        self._put(block, _Counts(deletes=count))

    def _put(self, block: bytes, more: _Counts) -> None:
        if self._open is not None and self._open[1].size_bytes + len(block) > self._options.file_max_bytes:
            self._close()
        name, writer, counts = self._open or self._next()
        writer.append(block)
        total = _Counts(counts.updates + more.updates, counts.inserts + more.inserts, counts.deletes + more.deletes)
        self._open = (name, writer, total)

    def _next(self) -> tuple[LogFileName, LogFileWriter, _Counts]:
        spec, group = self._spec, self._slice.group
        is_new_file = TableFormat(spec.table_version).has_own_log_files
        instant_time = spec.instant_time if is_new_file else self._slice.base_instant
        version = self._first_version(is_new_file) + len(self._written)
        # Another writer may be about to create the same version.
        token = self._task.write_token if is_new_file else self._task.write_token_of(spec.instant_time)
        name = LogFileName(group.file_id, instant_time, version, token)
        path = data_path(group.partition_path, str(name))
        spec.announce(path, CREATE if is_new_file else APPEND)
        if self._slice.base_file is None and not self._slice.log_files:  # else a commit has named a file of the folder
            ensure_partition_metadata(spec.storage, group.partition_path, spec.instant_time, self._clock)
        if spec.stats_columns is not None:
            self._stats.append(LogStats(spec.stats_columns, spec.stored_schema))
        return name, LogFileWriter(spec.storage, path), _Counts()

    def _first_version(self, is_new_file: bool) -> int:
        """The version of the first new file: 1 from table version 8 on. Below, the slice's next version, counting all
        files in the folder, also those of dead writers.
        """
        if is_new_file:
            return 1
        names = (LogFileName.parse(entry.name) for entry in self._spec.storage.list(self._slice.group.partition_path))
        versions = [
            name.version
            for name in names
            if name is not None
            and name.file_id == self._slice.group.file_id
            and name.instant_time == self._slice.base_instant
        ]
        return max(versions, default=0) + 1

    def _close(self) -> None:
        if self._open is not None:
            name, writer, counts = self._open
            self._written.append((name, writer.close(), counts))
            self._spec.confirm(data_path(self._slice.group.partition_path, str(name)))
            self._open = None

    def finish(self, started_s: float) -> Iterator[WriteStatus]:
        """Close the open file; return a status per file."""
        self._close()
        names = [log.name for log in self._slice.log_files]
        for number, (name, size_bytes, counts) in enumerate(self._written):
            names.append(str(name))
            stats = ranges_to_bytes(self._stats[number].ranges(self._spec.table_version)) if self._stats else None
            stat = self._stat(name, size_bytes, counts, tuple(names), started_s)
            yield WriteStatus(stat, rows_read=0, column_stats=stats)

    def _stat(
        self, name: LogFileName, size_bytes: int, counts: _Counts, log_files: tuple[str, ...], started_s: float
    ) -> WriteStat:
        spec, group, base = self._spec, self._slice.group, self._slice.base_file
        is_new_file = TableFormat(spec.table_version).has_own_log_files
        # From version 8 on the slice is named only if queries of changes need the rows before this write.
        names_slice = not is_new_file or spec.change_log is not None
        return WriteStat(
            file_id=group.file_id,
            path=data_path(group.partition_path, str(name)),
            partition_path=group.partition_path,
            prev_commit=self._slice.base_instant if names_slice else spec.instant_time,
            num_writes=counts.updates + counts.inserts,
            num_update_writes=counts.updates,
            num_inserts=counts.inserts,
            num_deletes=counts.deletes,
            total_write_bytes=size_bytes,
            file_size_in_bytes=size_bytes,
            upsert_time_ms=int((self._clock.monotonic_s() - started_s) * 1000),
            log_version=name.version,
            log_offset=0,
            base_file=base.name if names_slice and base is not None else "",
            log_files=log_files,
        )
