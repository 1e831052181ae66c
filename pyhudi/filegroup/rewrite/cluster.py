"""The clustering of one group: the rows of its slices are sorted and written to new file groups.

Rows keep their original meta columns, except for the file name.
Source: docs/formats/table-services.md, "Clustering plan"; docs/formats/timeline.md, "Commit metadata".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import pyarrow as pa

from pyhudi.engine.base import TaskContext
from pyhudi.errors import TableError
from pyhudi.filegroup.read.slice import SliceMerge, SliceSpec
from pyhudi.filegroup.rewrite.compact import with_file_name
from pyhudi.filegroup.rewrite.sort import SORT_MEMORY_BYTES, RowOrder, SortedRows, joined
from pyhudi.filegroup.write.base_file import NewBaseFile
from pyhudi.filegroup.write.markers import CREATE
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.filegroup.write.status import to_batch
from pyhudi.formats.base import open_base_file
from pyhudi.formats.hash_ring import places_on_ring
from pyhudi.merge.combine import single_array
from pyhudi.model.commit import WriteStatus
from pyhudi.model.file_group import FileSlice
from pyhudi.model.filenames import new_file_id
from pyhudi.model.keys import RECORD_KEY
from pyhudi.storage.clock import Clock

__all__ = ["ClusterGroup", "ClusterGroups", "NewFiles", "merged_rows"]

_LEAST_ROWS = 1000  # minimum rows of a row group, even beyond its size limit


@dataclass(frozen=True, slots=True)
class ClusterGroup:
    """A task: slices of one partition, and the greatest number of new file groups.

    `ring`: values and file ids of the nodes of a hash ring, ascending: each row goes to its node's file group, one of
    `children`.
    """

    partition_path: str
    slices: tuple[FileSlice, ...]
    files_max: int
    ring: tuple[tuple[int, str], ...] = ()
    children: frozenset[str] = frozenset()

    @property
    def stored_bytes(self) -> int:
        """Bytes of base and log files."""
        files = [file for s in self.slices for file in (s.base_file, *s.log_files) if file is not None]
        return sum(file.size_bytes for file in files)


@dataclass(frozen=True, slots=True)
class ClusterGroups:
    """Fan-out work of a clustering. `run`: part of the write tokens, so that two runs of one plan never make files of
    the same name; `target_bytes`: a file is closed at this size; `hash_fields`: the key fields that hash rings use.
    """

    spec: WriteSpec
    reading: SliceSpec
    order: RowOrder
    target_bytes: int
    run: int
    clock: Clock
    hash_fields: tuple[str, ...] = ()
    memory_bytes: int = SORT_MEMORY_BYTES

    def __call__(self, task: TaskContext, group: ClusterGroup) -> Iterator[pa.RecordBatch]:
        stage_task = replace(task, stage_id=self.run)
        for status in self._to_nodes(stage_task, group) if group.ring else self._clustered(stage_task, group):
            yield to_batch([status])

    def _to_nodes(self, task: TaskContext, group: ClusterGroup) -> Iterator[WriteStatus]:
        """Write each row to the file group of its node; a node has one base file of any size."""
        values = [value for value, _ in group.ring]
        with ExitStack() as stack:
            nodes: dict[int, SortedRows] = {}
            for table in merged_rows(self.spec, self.reading, group.slices):
                places = places_on_ring(single_array(table.column(RECORD_KEY)), self.hash_fields, values)
                for place in np.unique(places):
                    if place not in nodes:
                        room = self.memory_bytes // max(1, group.files_max)
                        nodes[place] = stack.enter_context(SortedRows(self.order, room))
                    nodes[place].add(table.filter(pa.array(places == place)))
            unexpected = [group.ring[place][1] for place in nodes if group.ring[place][1] not in group.children]
            if unexpected:
                raise TableError(
                    f"{self.spec.storage.root}: rows of {group.slices[0].group.file_id} in {group.partition_path!r} "
                    f"belong to the file group {unexpected[0]} by their hash, which the plan does not expect. The "
                    f"table was written with other hash fields; give the same hoodie.bucket.index.hash.field as before."
                )
            for place, rows in sorted(nodes.items()):
                new = NewFiles(self.spec, task, group.partition_path, iter([group.ring[place][1]]), self.clock)
                try:
                    for piece in rows.pieces(self._piece_rows(rows)):
                        new.write(piece)
                    yield new.close()
                except BaseException:
                    new.abandon()
                    raise

    def _piece_rows(self, rows: SortedRows) -> int:
        """The number of rows of a row group."""
        options = self.spec.file
        fitting = options.row_group_bytes * rows.rows // max(1, rows.bytes)
        return min(options.row_group_rows, max(_LEAST_ROWS, fitting))

    def _clustered(self, task: TaskContext, group: ClusterGroup) -> Iterator[WriteStatus]:
        read = merged_rows(self.spec, self.reading, group.slices)
        options = self.spec.file
        if not self.order.columns:
            pieces = _gathered(read, options.row_group_rows, options.row_group_bytes)
            yield from self._written(task, group, pieces, _base_rows(self.spec, group.slices))
            return
        with SortedRows(self.order, self.memory_bytes) as rows:
            for table in read:
                rows.add(table)
            yield from self._written(task, group, rows.pieces(self._piece_rows(rows)), rows.rows)

    def _written(
        self, task: TaskContext, group: ClusterGroup, pieces: Iterator[pa.Table], rows: int
    ) -> Iterator[WriteStatus]:
        """Write pieces, about `rows` rows in total, to files of about the same size."""
        files = min(group.files_max, max(1, -(-group.stored_bytes // self.target_bytes)))
        file_rows = max(1, -(-rows // files))
        ids = (new_file_id(prefix, number) for prefix in (self.clock.new_uuid(),) for number in count())
        new = NewFiles(self.spec, task, group.partition_path, ids, self.clock)
        closed = 0
        try:
            for piece in pieces:
                at = 0
                while at < len(piece):
                    is_last = closed == files - 1
                    part = piece.slice(at) if is_last else piece.slice(at, file_rows - new.open_rows)
                    new.write(part)
                    at += len(part)
                    if new.open_bytes >= self.target_bytes or (not is_last and new.open_rows >= file_rows):
                        yield new.close()
                        closed += 1
            if new.open_rows:
                yield new.close()
        except BaseException:
            new.abandon()
            raise


def _base_rows(spec: WriteSpec, slices: Iterable[FileSlice]) -> int:
    """The number of rows in the slices' base files."""
    rows = 0
    for file_slice in slices:
        if file_slice.base_file is not None:
            with open_base_file(spec.storage, file_slice.base_file.path) as reader:
                rows += reader.num_rows
    return rows


def _gathered(tables: Iterator[pa.Table], rows_max: int, bytes_max: int) -> Iterator[pa.Table]:
    """Regroup the rows into tables of about the size of a row group."""
    group: list[pa.Table] = []
    for table in tables:
        if not len(table):
            continue
        if sum(map(len, group)) + len(table) > rows_max and group:
            yield joined(group)
            group = []
        group.append(table)
        if sum(map(len, group)) >= rows_max or sum(one.nbytes for one in group) >= bytes_max:
            yield joined(group)
            group = []
    if group:
        yield joined(group)


def merged_rows(spec: WriteSpec, reading: SliceSpec, slices: Iterable[FileSlice]) -> Iterator[pa.Table]:
    """The current rows of slices, with meta columns and all stored columns, slice by slice."""
    for file_slice in slices:
        merge = SliceMerge.of(reading, file_slice, reading.schema)
        with ExitStack() as stack:
            base = file_slice.base_file
            if base is not None:
                reader = stack.enter_context(reading.open_base(base.path))
                yield from merge.base_rows(reader, keep_dictionaries=True)
            yield from merge.log_rows()


class NewFiles:
    """Writes existing rows to new file groups of one partition, one after the other."""

    def __init__(
        self, spec: WriteSpec, task: TaskContext, partition_path: str, file_ids: Iterator[str], clock: Clock
    ) -> None:
        self._spec, self._task, self._partition_path, self._clock = spec, task, partition_path, clock
        self._file_ids = file_ids
        self._file: NewBaseFile | None = None
        self._started_s = 0.0

    @property
    def open_rows(self) -> int:
        """The number of rows in the open file."""
        return self._file.rows if self._file is not None else 0

    @property
    def open_bytes(self) -> int:
        """The number of bytes written to the open file so far."""
        return self._file.written_bytes if self._file is not None else 0

    def write(self, rows: pa.Table) -> None:
        """Write rows as a row group of the open file, or of a new file."""
        file = self._file
        if file is None:
            self._started_s = self._clock.monotonic_s()
            file = NewBaseFile(self._spec, self._task, self._partition_path, next(self._file_ids), CREATE, self._clock)
            self._file = file
        if self._spec.populate_meta_fields:
            file.add_keys(rows.column(RECORD_KEY))
        file.note_new_keys(rows.column(RECORD_KEY))
        file.write(with_file_name(self._spec, file, rows))

    def close(self) -> WriteStatus:
        """Finish the open file."""
        file = self._file
        assert file is not None
        status = file.close_created(self._started_s, self._clock)
        self._file = None
        return status

    def abandon(self) -> None:
        """Abandon the open file after an error; its marker is kept."""
        if self._file is not None:
            self._file.abandon()
