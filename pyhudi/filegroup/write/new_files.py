"""New base files: one partition's rows, or the rows of many partitions in any order.

Files of one writer are `<uuid>-0`, `<uuid>-1`, ...; when a file reaches the size limit it is closed and the next one is
opened. Memory is bounded: rows are buffered up to a row group, and over all partitions up to `_BUFFER_BYTES`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import cast

import numpy as np
import pyarrow as pa

from pyhudi.engine.base import TaskContext
from pyhudi.filegroup.write.base_file import NewBaseFile, checked_rows, stored_columns
from pyhudi.filegroup.write.markers import CREATE
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.model.commit import WriteStatus
from pyhudi.model.filenames import new_file_id
from pyhudi.model.keys import PARTITION_PATH, RECORD_KEY
from pyhudi.storage.clock import Clock

__all__ = ["create_files", "write_partitioned"]

_BUFFER_BYTES = 64 << 20  # buffered rows in all partitions of one task
_SPLIT_BYTES = 8 << 20  # rows collected before they are split by partition: enough for a cheap split
_SPLIT_ROWS = 65_536
_OPEN_FILES = 64
_FIRST_GUESS = 0.5  # file bytes per Arrow byte, before the first row group
_LEAST_ROWS = 1000  # minimum rows of a file or row group, even beyond its size limit


def create_files(
    spec: WriteSpec, task: TaskContext, partition_path: str, batches: Iterable[pa.RecordBatch],
    *, clock: Clock, file_id: str | None = None, first_seq: int = 0,
) -> Iterator[WriteStatus]:  # fmt: skip
    """Write rows of one partition into new base files.

    Args:
        batches: columns of `spec.schema` and RECORD_KEY; other columns are dropped.
        file_id: write one file of any size with this id; None: new ids, rolling over at the size limit.
        first_seq: row number of the first row in the sequence numbers.
    Returns: a status per file, as the files are finished; none when there are no rows.
    """
    rows = _Counter(first_seq)
    files = _PartitionFiles(spec, task, partition_path, clock, rows, file_id)
    try:
        for batch in batches:
            files.add(pa.Table.from_batches([batch]))
            yield from files.take_finished()
        files.finish()
    except BaseException:
        files.abandon()
        raise
    yield from files.take_finished()


def write_partitioned(
    spec: WriteSpec, task: TaskContext, batches: Iterable[pa.RecordBatch], clock: Clock,
    *, first_seq: int = 0, buffer_bytes: int = _BUFFER_BYTES,
) -> Iterator[WriteStatus]:  # fmt: skip
    """Write rows of any partitions, in any order, into new base files.

    Args:    batches: as for `create_files`, and PARTITION_PATH; buffer_bytes: Arrow bytes to buffer at most.
    Returns: a status per file, as the files are finished.
    """
    writer = _PartitionedWriter(spec, task, clock, first_seq, buffer_bytes)
    try:
        for batch in batches:
            writer.add(batch)
            yield from writer.take_finished()
        writer.finish()
    except BaseException:
        writer.abandon()
        raise
    yield from writer.take_finished()


class _Counter:
    """Counts the rows of one task, over all its files, so that sequence numbers are unique in the commit."""

    __slots__ = ("next",)

    def __init__(self, first: int) -> None:
        self.next = first

    def take(self, rows: int) -> int:
        first = self.next
        self.next += rows
        return first


class _PartitionFiles:
    """The files that one task writes in one partition, one after the other, and the rows buffered for a row group."""

    def __init__(
        self,
        spec: WriteSpec,
        task: TaskContext,
        partition_path: str,
        clock: Clock,
        counter: _Counter,
        file_id: str | None,
    ) -> None:
        self._spec, self._task, self._partition_path, self._clock = spec, task, partition_path, clock
        self._counter = counter
        self._fixed_id = file_id
        self._prefix = clock.new_uuid() if file_id is None else ""
        self._files = 0
        self._stored_columns = stored_columns(spec)
        self._waiting_tables: list[pa.Table] = []
        self._waiting_rows = 0
        self.waiting_bytes = 0
        self._file: NewBaseFile | None = None
        self._started_s = 0.0
        self._bytes_seen, self._rows_seen = 0, 0  # of finished files, to estimate sizes
        self._finished: list[WriteStatus] = []

    @property
    def has_open_file(self) -> bool:
        return self._file is not None

    def add(self, rows: pa.Table) -> None:
        """Add rows; write row groups as they fill."""
        if len(rows) == 0:
            return
        self._waiting_tables.append(rows)
        self._waiting_rows += len(rows)
        self.waiting_bytes += rows.nbytes
        options = self._spec.file
        if self._waiting_rows >= options.row_group_rows or self.waiting_bytes >= options.row_group_bytes:
            self._write_waiting(leave_rest=True)

    def flush(self) -> None:
        """Write the buffered rows as a row group."""
        self._write_waiting(leave_rest=False)

    def finish(self) -> None:
        """Write the buffered rows and close the open file."""
        self.flush()
        self._close()

    def take_finished(self) -> list[WriteStatus]:
        finished, self._finished = self._finished, []
        return finished

    def abandon(self) -> None:
        if self._file is not None:
            self._file.abandon()

    def _write_waiting(self, *, leave_rest: bool) -> None:
        if not self._waiting_tables:
            return
        table = pa.concat_tables(self._waiting_tables)
        self._waiting_tables, self._waiting_rows, self.waiting_bytes = [], 0, 0
        group_rows = self._spec.file.row_group_rows
        while len(table) >= group_rows or (len(table) and not leave_rest):
            self._write_group(table.slice(0, group_rows))
            table = table.slice(group_rows)
        if len(table) and leave_rest:
            if table.nbytes >= self._spec.file.row_group_bytes:
                self._write_group(table)
            else:
                self._waiting_tables, self._waiting_rows, self.waiting_bytes = [table], len(table), table.nbytes

    def _write_group(self, table: pa.Table) -> None:
        rows = checked_rows(table, self._stored_columns)
        while len(rows):
            file = self._file or self._open()
            room = self._room(file, rows)
            if room == 0:
                self._close()
                continue
            part = rows.slice(0, room)
            file.write(file.new_rows(part, self._counter.take(len(part))))
            file.add_keys(part.column(RECORD_KEY))
            file.note_new_keys(part.column(RECORD_KEY))
            rows = rows.slice(room)

    def _room(self, file: NewBaseFile, rows: pa.Table) -> int:
        """The number of `rows` that fit into the file; 0 if it is full."""
        if self._fixed_id is not None:
            return len(rows)
        seen_rows = self._rows_seen + file.rows
        seen_bytes = self._bytes_seen + file.written_bytes
        row_bytes = seen_bytes / seen_rows if seen_rows else _FIRST_GUESS * rows.nbytes / len(rows)
        limit = self._spec.file.max_file_size_bytes
        fits = int((limit - file.written_bytes) / max(row_bytes, 0.001))
        if fits >= len(rows):
            return len(rows)
        if file.rows == 0:
            return min(len(rows), max(fits, _LEAST_ROWS))
        # The last twentieth of a file is not worth a separate row group.
        return fits if fits * row_bytes >= limit / 20 and fits >= _LEAST_ROWS else 0

    def _open(self) -> NewBaseFile:
        file_id = self._fixed_id if self._fixed_id is not None else new_file_id(self._prefix, self._files)
        self._files += 1
        self._started_s = self._clock.monotonic_s()
        self._file = NewBaseFile(self._spec, self._task, self._partition_path, file_id, CREATE, self._clock)
        return self._file

    def _close(self) -> None:
        file = self._file
        if file is None:
            return
        status = file.close_created(self._started_s, self._clock)
        self._file = None
        self._bytes_seen += status.stat.file_size_in_bytes
        self._rows_seen += file.rows
        self._finished.append(status)


class _PartitionedWriter:
    """Distributes rows to partitions. If the buffer is full, the partition with the most buffered rows is written."""

    def __init__(self, spec: WriteSpec, task: TaskContext, clock: Clock, first_seq: int, buffer_bytes: int) -> None:
        self._spec, self._task, self._clock = spec, task, clock
        self._counter = _Counter(first_seq)
        self._buffer_bytes = buffer_bytes
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_rows, self._gathered_bytes = 0, 0
        self._partitions: OrderedDict[str, _PartitionFiles] = OrderedDict()  # last written last
        self._finished: list[WriteStatus] = []

    def add(self, batch: pa.RecordBatch) -> None:
        self._gathered.append(batch)
        self._gathered_rows += len(batch)
        self._gathered_bytes += batch.nbytes
        if self._gathered_rows >= _SPLIT_ROWS or self._gathered_bytes >= _SPLIT_BYTES:
            self._split()

    def finish(self) -> None:
        self._split()
        for files in self._partitions.values():
            files.finish()
            self._finished += files.take_finished()

    def take_finished(self) -> list[WriteStatus]:
        finished, self._finished = self._finished, []
        return finished

    def abandon(self) -> None:
        for files in self._partitions.values():
            files.abandon()

    def _split(self) -> None:
        """Distribute the collected rows to their partitions."""
        if not self._gathered_rows:
            return
        table = pa.Table.from_batches(self._gathered)
        self._gathered, self._gathered_rows, self._gathered_bytes = [], 0, 0
        paths = table.column(PARTITION_PATH).combine_chunks()
        if isinstance(paths, pa.ChunkedArray):
            paths = paths.combine_chunks()
        coded = cast("pa.DictionaryArray", paths if pa.types.is_dictionary(paths.type) else paths.dictionary_encode())
        names = cast("list[str]", coded.dictionary.to_pylist())
        codes = coded.indices.to_numpy(zero_copy_only=False)
        rows_of = np.bincount(codes, minlength=len(names))
        if np.count_nonzero(rows_of) == 1:
            self._deal(names[int(codes[0])], table)
        else:
            table = table.combine_chunks()
            order = np.argsort(codes, kind="stable")
            starts = np.cumsum(rows_of) - rows_of
            for code, name in enumerate(names):
                if rows_of[code]:
                    # Copied for each partition: a slice would keep the whole common table alive.
                    self._deal(name, table.take(pa.array(order[starts[code] : starts[code] + rows_of[code]])))
        self._relieve()

    def _deal(self, partition_path: str, rows: pa.Table) -> None:
        files = self._partitions.get(partition_path)
        if files is None:
            files = _PartitionFiles(self._spec, self._task, partition_path, self._clock, self._counter, None)
            self._partitions[partition_path] = files
        files.add(rows)
        self._note(partition_path, files)

    def _relieve(self) -> None:
        waiting_bytes = {name: files.waiting_bytes for name, files in self._partitions.items()}
        total = sum(waiting_bytes.values())
        while total > self._buffer_bytes:
            name = max(waiting_bytes, key=waiting_bytes.__getitem__)
            self._partitions[name].flush()
            self._note(name, self._partitions[name])
            total -= waiting_bytes.pop(name)
        self._close_oldest()

    def _note(self, partition_path: str, files: _PartitionFiles) -> None:
        self._finished += files.take_finished()
        self._partitions.move_to_end(partition_path)

    def _close_oldest(self) -> None:
        """Limit the number of open files. If more rows of a closed partition arrive, it gets another file."""
        open_files = [name for name, files in self._partitions.items() if files.has_open_file]
        for name in open_files[: max(0, len(open_files) - _OPEN_FILES)]:
            self._partitions[name].finish()
            self._note(name, self._partitions[name])
