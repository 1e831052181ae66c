"""The indexes GLOBAL_RECORD_LEVEL_INDEX and RECORD_LEVEL_INDEX, which look keys up in the metadata table.

A batch goes one of three ways:

    rows in this process    keys by file group of the index → one task each, with its keys
    Spark                   keys go to the tasks by file group of the index, and no key to the planner
    keys of all blocks      are searched in the base files, if that takes less time (`files_are_cheaper`)

A few keys touch a few blocks of the index. Thousands of keys touch all of them, and decoding a key with its record
takes twice as long as decoding it from a Parquet column. `files_are_cheaper` compares the two ways by sizes alone; both
find the same locations. docs/measurements.md, "Metadata table", has the measurements.

Every answer of the index is checked: if it names a file group that the table lacks, the index is wrong. If the record
index is missing, out of date, wrong or unreadable, GLOBAL_SIMPLE or SIMPLE finds the rows.

Source: docs/formats/indexes.md, "Finding keys", "Record index".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.engine.base import Frame, TaskContext
from pyhudi.errors import HudiError
from pyhudi.index.base import LOCATION_PARTITION, Index, Lookup, Tagged
from pyhudi.index.key_join import counted, join_locations
from pyhudi.index.key_lookup import GlobalSimpleIndex, KeyLookupIndex, SimpleIndex
from pyhudi.index.stored_keys import StoredKeys, candidates, in_shares
from pyhudi.metadata.locations import RecordLookup
from pyhudi.model.file_group import FileGroupId, FileSlice
from pyhudi.model.keys import LOCATION, PARTITION_PATH, RECORD_KEY
from pyhudi.storage.place import is_local
from pyhudi.warnings import warn_caller

__all__ = ["GlobalRecordIndex", "PartitionRecordIndex", "RecordIndexIgnored", "files_are_cheaper"]


_BLOCK_BYTES = 10 << 10  # of a block of the index, compressed
_INDEX_BYTE_NS, _FILES_BYTE_NS = 17, 8  # to find keys, per byte of the index: in it, and in the key columns
_OPEN_LOCAL_NS, _OPEN_REMOTE_NS = 1.5e6, 40e6  # to open a base file and read its footer


def files_are_cheaper(lookup: Lookup, index: Iterable[FileSlice]) -> bool:
    """True if searching all base files for the keys of a batch is cheaper than looking them up in the index."""
    if lookup.keygen is not None:
        return False
    slices = lookup.view.all_slices()
    if not slices or any(file_slice.log_files or file_slice.base_file is None for file_slice in slices):
        return False
    index_bytes = sum(file_slice.size_bytes for file_slice in index)
    key_count = sum(partition_rows.rows for partition_rows in lookup.batch.values())
    touched = 1 - math.exp(-key_count * _BLOCK_BYTES / max(1, index_bytes))
    opening = len(slices) * (_OPEN_LOCAL_NS if is_local(lookup.storage) else _OPEN_REMOTE_NS)
    return touched * index_bytes * _INDEX_BYTE_NS > index_bytes * _FILES_BYTE_NS + opening


_GROUP = "_pyhudi_index_group"  # int32: number of the file group of the record index
_KEYS_HERE = 20_000  # up to this many, one thread is faster than a task per file group
_KEYS_AT_ONCE = 1 << 18  # keys of a task looked up together
_HITS = pa.schema([(name, pa.string()) for name in (RECORD_KEY, LOCATION_PARTITION, LOCATION)])


class RecordIndexIgnored(UserWarning):
    """The files were searched for keys, because the record index is missing or not trusted."""


def _warn_ignored(index_type: str, why: str) -> None:
    """Warn that the files are read instead."""
    warn_caller(
        f"{why} hoodie.index.type={index_type} finds keys without it, as GLOBAL_SIMPLE or SIMPLE does: slower, but "
        "correct.",
        RecordIndexIgnored,
    )


@dataclass(frozen=True, slots=True)
class GlobalRecordIndex(Index):
    """GLOBAL_RECORD_LEVEL_INDEX, called RECORD_INDEX before: a key is unique in the table."""

    is_global: ClassVar[bool] = True
    reads_records: ClassVar[bool] = True
    fallback: ClassVar[type[KeyLookupIndex]] = GlobalSimpleIndex

    def tag(self, rows: Frame, lookup: Lookup) -> Tagged:
        if lookup.records is None:
            if lookup.no_records and lookup.view.all_slices():
                _warn_ignored(self._name, lookup.no_records)
            return self.fallback(self.settings).tag(rows, lookup)
        files, records = self.fallback(self.settings), lookup.records
        try:
            reads_files = self.is_global and not files.is_large(lookup) and files_are_cheaper(lookup, records.slices)
            if not reads_files:
                return self._tagged(rows, lookup, records)
        except (HudiError, _WrongPlaces) as error:
            _warn_ignored(self._name, f"{lookup.storage.root}: the record index can't be used: {error}")
        return files.tag(rows, lookup)

    @property
    def _name(self) -> str:
        return "GLOBAL_RECORD_LEVEL_INDEX" if self.is_global else "RECORD_LEVEL_INDEX"

    def _tagged(self, rows: Frame, lookup: Lookup, records: RecordLookup) -> Tagged:
        if records.is_partitioned == self.is_global:
            raise _WrongPlaces(f"it {'has' if self.is_global else 'lacks'} file groups for each partition.")
        engine = lookup.engine
        cached: tuple[Frame, ...] = ()
        if getattr(engine, "shares_memory", False):
            keys = engine.collect(engine.select(rows, [RECORD_KEY, PARTITION_PATH]))
            hits = _hits_here(keys, lookup, records)
        else:
            hits = engine.cache(_hits_by_tasks(rows, lookup, records))
            cached = (hits,)
        try:
            _check_places(hits, lookup)
            if self.is_global:
                placed = _with_ordering(rows, hits, lookup) if len(lookup.ordering) else hits
                return Tagged(
                    engine.join(rows, placed, [RECORD_KEY], "left", right_is_large=bool(cached)), None, cached
                )
            in_partition = engine.map(hits, _InStoredPartition(), _InStoredPartition.schema)
            if not cached:
                table = join_locations(engine.collect(rows), engine.collect(in_partition))
                if table is not None:
                    return Tagged(engine.from_arrow(table), counted(table))
            joined = engine.join(rows, in_partition, [RECORD_KEY, PARTITION_PATH], "left", right_is_large=bool(cached))
            return Tagged(joined, None, cached)
        except BaseException:
            for frame in cached:
                engine.release(frame)
            raise


@dataclass(frozen=True, slots=True)
class PartitionRecordIndex(GlobalRecordIndex):
    """RECORD_LEVEL_INDEX: a key is unique in its partition."""

    is_global: ClassVar[bool] = False
    fallback: ClassVar[type[KeyLookupIndex]] = SimpleIndex

    def everywhere(self) -> GlobalSimpleIndex:
        """An index that reads files, for keys of unknown partitions: the index has file groups for each partition."""
        return GlobalSimpleIndex(self.settings)


class _WrongPlaces(Exception):
    """The record index is not of this table's kind, or names file groups that the table lacks."""


# ---- looking up ------------------------------------------------------------------------------------------------------


def _hits_here(keys: pa.Table, lookup: Lookup, records: RecordLookup) -> Frame:
    """The locations of the keys. For many keys, or on remote storage, each file group of the index gets a task.
    Otherwise all records are decoded together, which takes as long as decoding those of one file group.
    """
    texts, paths = (keys.column(name).combine_chunks() for name in (RECORD_KEY, PARTITION_PATH))
    groups = records.groups_of(texts, paths)
    tasks = [(int(group), texts.filter(pa.array(groups == group))) for group in np.unique(groups)]
    in_index = [task for task in tasks if task[0] < records.groups]
    if len(texts) <= _KEYS_HERE and is_local(lookup.storage):
        return lookup.engine.from_arrow(_hits(records.places(in_index)))
    hits = lookup.engine.collect(lookup.engine.fan_out(in_index, FindPlaces(records).of_task, _HITS))
    return lookup.engine.from_arrow(hits)


def _hits_by_tasks(rows: Frame, lookup: Lookup, records: RecordLookup) -> Frame:
    """Like `_hits_here`, with keys shuffled to the task of their file group."""
    engine = lookup.engine
    keys = engine.select(rows, [RECORD_KEY, PARTITION_PATH])
    schema = pa.schema([pa.field(_GROUP, pa.int32(), nullable=False)])
    numbered = engine.extend(keys, [RECORD_KEY, PARTITION_PATH], NumberGroups(records), schema)
    work = FindPlaces(records)
    numbered_keys = engine.select(numbered, [RECORD_KEY, _GROUP])
    groups = range(records.groups + 1)
    return engine.map_groups(numbered_keys, _GROUP, groups, work, _HITS, sort=[RECORD_KEY])


@dataclass(frozen=True, slots=True)
class NumberGroups:
    """Column work: (RECORD_KEY, PARTITION_PATH) → number of the file group of the record index."""

    records: RecordLookup

    def __call__(self, context: TaskContext, batch: pa.RecordBatch) -> pa.RecordBatch:
        groups = pa.array(self.records.groups_of(*batch.columns), pa.int32())
        return pa.RecordBatch.from_arrays([groups], names=[_GROUP])


@dataclass(frozen=True, slots=True)
class FindPlaces:
    """Group work: ordered keys of one file group of the record index → the locations of those that it has."""

    records: RecordLookup

    def __call__(self, context: TaskContext, group: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for keys in _portions(batches):
            if group < self.records.groups:
                yield from self.of_task(context, (group, keys))

    def of_task(self, context: TaskContext, task: tuple[int, pa.Array]) -> Iterator[pa.RecordBatch]:
        """Fan-out work: a file group with its keys."""
        yield from _hits(self.records.places([task])).to_batches()


def _hits(places: pa.Table) -> pa.Table:
    return pa.table(places.columns, schema=_HITS)


def _portions(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Array]:
    """Ordered keys, each once, in portions that are worth a look-up."""
    portion: list[pa.Array] = []
    last: str | None = None
    for batch in batches:
        keys = pc.unique(batch.column(RECORD_KEY))
        keys = keys.filter(pc.not_equal(keys, last)) if last is not None else keys
        if len(keys):
            portion.append(keys)
            last = keys[-1].as_py()
        if sum(map(len, portion)) >= _KEYS_AT_ONCE:
            yield pa.concat_arrays(portion)
            portion = []
    if portion:
        yield pa.concat_arrays(portion)


# ---- hits ------------------------------------------------------------------------------------------------------------


def _check_places(hits: Frame, lookup: Lookup) -> None:
    """Raise _WrongPlaces for file groups that the table lacks: their rows would be lost or written twice."""
    engine = lookup.engine
    listed = engine.collect(engine.map(hits, _Groups(), _Groups.schema))
    table_groups = {file_slice.group for file_slice in lookup.view.all_slices()}
    for row in listed.to_pylist():
        group = FileGroupId(row[LOCATION_PARTITION], row[LOCATION])
        if group not in table_groups:
            raise _WrongPlaces(
                f"it names the file group {group.file_id} in {group.partition_path!r}, which the table lacks."
            )


@dataclass(frozen=True, slots=True)
class _Groups:
    """Stream work: the file groups among the locations of a task. `moved`: only of rows that change their partition."""

    moved: bool = False
    schema: ClassVar[pa.Schema] = pa.schema([(name, pa.string()) for name in (LOCATION_PARTITION, LOCATION)])

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        groups_of_task: set[tuple[str, str]] = set()
        for batch in batches:
            if self.moved:
                batch = batch.filter(pc.not_equal(batch.column(PARTITION_PATH), batch.column(LOCATION_PARTITION)))
            groups = pa.Table.from_batches([batch]).group_by(self.schema.names, use_threads=False).aggregate([])
            # A row of this loop is a file group, not a record.
            groups_of_task |= {(row[LOCATION_PARTITION], row[LOCATION]) for row in groups.to_pylist()}
        columns = [pa.array([group[at] for group in sorted(groups_of_task)], pa.string()) for at in (0, 1)]
        yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _with_ordering(rows: Frame, hits: Frame, lookup: Lookup) -> Frame:
    """Add the stored rows' ordering values to the locations, for file groups that rows may leave."""
    engine = lookup.engine
    arrived = engine.join(engine.select(rows, [RECORD_KEY, PARTITION_PATH]), hits, [RECORD_KEY], "inner")
    moved = engine.collect(engine.map(arrived, _Groups(moved=True), _Groups.schema)).to_pylist()
    groups = {FileGroupId(row[LOCATION_PARTITION], row[LOCATION]) for row in moved}
    to_search = [candidate for candidate in candidates(lookup, everywhere=True, live=True) if candidate.group in groups]
    work = StoredKeys.of(lookup, LOCATION_PARTITION)
    with_ordering = engine.fan_out(in_shares(to_search, engine.parallelism * 3), work, work.schema)
    return engine.join(hits, with_ordering, _HITS.names, "left", right_is_large=True)


@dataclass(frozen=True, slots=True)
class _InStoredPartition:
    """Stream work: the locations of keys, with the partition where the rows are stored."""

    schema: ClassVar[pa.Schema] = pa.schema([(name, pa.string()) for name in (RECORD_KEY, PARTITION_PATH, LOCATION)])

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (pa.RecordBatch.from_arrays(batch.columns, schema=self.schema) for batch in batches)
