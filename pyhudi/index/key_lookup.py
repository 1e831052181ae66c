"""What SIMPLE, BLOOM, their global forms and INMEMORY share: read the keys of candidate files, keep the matches.

Existing keys are read where the files are, never shuffled: the incoming keys travel to the tasks, only hits come back.
A file is opened once; its footer says by key range (and bloom filter) whether its key column is worth reading. A batch
with more key bytes than `key_bytes_in_tasks_max` is joined with a scan of the key columns instead.

Log files hold no keys that their base file lacks, so for the place of a key base files are enough. Whether it is still
alive there the merged slice says, for global indexes (a key that moved away stays in the old base file, deleted in its
log) and wherever a key was found in two file groups.
Source: spec, metadata and indexes part 4 (BLOOM details).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.engine.base import Frame, TaskContext
from pyhudi.filegroup.read import SliceSpec, read_file_slice
from pyhudi.formats.base import open_base_file
from pyhudi.formats.base.statistics import Ranges, RangeTest
from pyhudi.formats.bloom import BloomFilter
from pyhudi.index.base import LOCATION_PARTITION, STORED_ORDERING, IndexSettings, Lookup, Tagged
from pyhudi.keygen.base import KeyGenerator, read_field
from pyhudi.model.file_group import BaseFile, FileSlice
from pyhudi.model.keys import LOCATION, PARTITION_PATH, RECORD_KEY
from pyhudi.model.predicate import Column
from pyhudi.storage.base import Storage

__all__ = ["FindKeys", "KeyLookupIndex"]

_EVERYWHERE = None  # key of the wanted keys of a global index
_KEYS_COMPARED_MAX = 20_000  # with more keys, only the smallest and the greatest are compared with row groups' ranges
_READ_ROWS = 1 << 20  # `is_in` builds its hash set once per call, so key columns are read in large pieces


@dataclass(frozen=True, slots=True)
class KeyLookupIndex:
    """An index that reads key columns of base files."""

    settings: IndexSettings = field(default_factory=IndexSettings)
    is_global: bool = False
    places_inserts: bool = False
    uses_bloom: bool = False

    def tag(self, rows: Frame, lookup: Lookup) -> Tagged:
        files = lookup.candidates(everywhere=self.is_global)
        logs = lookup.slices_with_logs(everywhere=self.is_global) if lookup.merged is not None else {}
        live = lookup.only_live or self.is_global
        key_bytes = sum(part.key_bytes for part in lookup.batch.values())
        if key_bytes > self.settings.key_bytes_in_tasks_max and not (logs and live) and self._can_scan(files, lookup):
            return Tagged(self._joined(rows, self._scanned(rows, files, lookup), lookup))
        keys = lookup.engine.collect(lookup.engine.select(rows, [RECORD_KEY, PARTITION_PATH]))
        hits = self.find(keys, files, lookup)
        if logs and not live and _in_two_places(hits):
            hits = self.find(keys, files, replace(lookup, only_live=True))
        tagged = self._joined(rows, lookup.engine.from_arrow(hits), lookup)
        return Tagged(tagged, None if self.is_global else _counts(keys, hits, lookup))

    def find(self, keys: pa.Table, files: Sequence[BaseFile], lookup: Lookup) -> pa.Table:
        """The places of `keys` among `files`: RECORD_KEY, PARTITION_PATH of the file, LOCATION, stored ordering "
        "values."""
        work = self.work(_wanted(keys, self.is_global), lookup)
        tasks = _chunks(files, lookup.engine.parallelism * 3)
        hits: pa.Table = lookup.engine.collect(lookup.engine.fan_out(tasks, work, work.schema))
        return hits

    def work(self, wanted: Mapping[str | None, pa.Array], lookup: Lookup) -> FindKeys:
        """What runs in the tasks."""
        live = lookup.merged is not None and (lookup.only_live or self.is_global)
        slices = lookup.slices_with_logs(everywhere=self.is_global) if live else {}
        return FindKeys(lookup.storage, wanted, self.uses_bloom, lookup.keygen, lookup.ordering, lookup.merged, slices)

    def new_file_id(self, location: str, new_uuid: str) -> str:
        raise AssertionError(f"location {location} is a file id that the view does not know")

    def _can_scan(self, files: Sequence[BaseFile], lookup: Lookup) -> bool:
        if getattr(lookup.engine, "shares_memory", False):
            return False
        # Only Parquet can be scanned, and only stored keys joined; a move also needs the stored ordering values.
        return lookup.keygen is None and not lookup.ordering.names and all(f.path.endswith(".parquet") for f in files)

    def _scanned(self, rows: Frame, files: Sequence[BaseFile], lookup: Lookup) -> Frame:
        """Hits by a join of the incoming keys with a scan of the stored ones."""
        engine = lookup.engine
        paths = [lookup.storage.full_path(file.path) for file in files]
        stored = engine.scan(paths, [RECORD_KEY], pa.schema([pa.field(RECORD_KEY, pa.string())]), "_pyhudi_file_name")
        named = engine.extend(stored, ["_pyhudi_file_name"], _PlaceOfFile.of(files), _PLACE_SCHEMA)
        placed = engine.select(named, [RECORD_KEY, PARTITION_PATH, LOCATION])
        keys = engine.select(rows, [RECORD_KEY] if self.is_global else [RECORD_KEY, PARTITION_PATH])
        distinct = engine.map(keys, DistinctRows(), engine.schema(keys))
        return engine.join(distinct, placed, engine.schema(keys).names, "inner")

    def _joined(self, rows: Frame, hits: Frame, lookup: Lookup) -> Frame:
        if not self.is_global:
            return lookup.engine.join(rows, hits, [RECORD_KEY, PARTITION_PATH], "left")
        elsewhere = pa.schema([pa.field(LOCATION_PARTITION, pa.string())])
        renamed = lookup.engine.extend(hits, [PARTITION_PATH], _as_location_partition, elsewhere)
        columns = [name for name in lookup.engine.schema(renamed).names if name != PARTITION_PATH]
        return lookup.engine.join(rows, lookup.engine.select(renamed, columns), [RECORD_KEY], "left")


@dataclass(frozen=True)
class FindKeys:
    """Fan-out work: which of the wanted keys are in these files.

    `wanted`: partition path → distinct keys; under None those of a global index, wanted in every file. `keygen`: set
    when files hold no keys. `ordering`: fields to bring along. `slices`: base file path → its slice, where log files
    decide which keys are alive; `merged` says how to read them.
    """

    storage: Storage
    wanted: Mapping[str | None, pa.Array]
    uses_bloom: bool
    keygen: KeyGenerator | None
    ordering: pa.Schema
    merged: SliceSpec | None = None
    slices: Mapping[str, FileSlice] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        stored = [pa.field(f"{STORED_ORDERING}{i}", f.type) for i, f in enumerate(self.ordering)]
        return pa.schema([*(pa.field(name, pa.string()) for name in (RECORD_KEY, PARTITION_PATH, LOCATION)), *stored])

    def __call__(self, context: TaskContext, files: Sequence[BaseFile]) -> Iterator[pa.RecordBatch]:
        for file in files:
            wanted = self.wanted.get(file.partition_path, self.wanted.get(_EVERYWHERE))
            if wanted is not None and len(wanted):
                yield from self.hits(file, wanted)

    def every_key(self, file: BaseFile) -> Iterator[pa.RecordBatch]:
        """All rows of one file."""
        reader = open_base_file(self.storage, file.path)
        try:
            for keys, batch in self._stored(reader):
                yield self._batch(file, keys, batch)
        finally:
            reader.close()

    def hits(self, file: BaseFile, wanted: pa.Array) -> Iterator[pa.RecordBatch]:
        """Rows of one file whose key is wanted."""
        if file.path in self.slices:
            yield from self._live_hits(file, wanted)
            return
        reader = open_base_file(self.storage, file.path)
        try:
            footer = reader.footer
            wanted = _in_range(wanted, footer.min_key, footer.max_key)
            if self.uses_bloom and footer.bloom_base64 and len(wanted):
                bloom = BloomFilter.from_base64(footer.bloom_base64, footer.bloom_type)
                wanted = wanted.filter(pa.array(bloom.might_contain(wanted)))
            if len(wanted) == 0:
                return
            for keys, batch in self._stored(reader, _may_hold(wanted) if self.keygen is None else None):
                found = pc.is_in(keys, value_set=wanted)
                if pc.any(found).as_py():
                    yield self._batch(file, keys.filter(found), batch.filter(found))
        finally:
            reader.close()

    def _live_hits(self, file: BaseFile, wanted: pa.Array) -> Iterator[pa.RecordBatch]:
        """The same of the merged slice; its record keys are there also when the files hold none."""
        assert self.merged is not None
        columns = dict.fromkeys([RECORD_KEY, *(name.partition(".")[0] for name in self.ordering.names)])
        for batch in read_file_slice(self.merged, self.slices[file.path], list(columns), _READ_ROWS):
            found = pc.is_in(batch.column(RECORD_KEY), value_set=wanted)
            if pc.any(found).as_py():
                rows = batch.filter(found)
                yield self._batch(file, rows.column(RECORD_KEY), rows)

    def _stored(self, reader: Any, may_match: RangeTest | None = None) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
        ordering = [name.partition(".")[0] for name in self.ordering.names]
        if self.keygen is None:
            columns = [RECORD_KEY]
        else:
            columns = list(self.keygen.input_columns or reader.schema.names)
        names = list(dict.fromkeys([*columns, *ordering]))
        for batch in reader.batches(names, batch_rows=_READ_ROWS, may_match=may_match):
            keys = batch.column(RECORD_KEY) if self.keygen is None else self.keygen.columns(batch).record_key
            yield keys.cast(pa.string()), batch

    def _batch(self, file: BaseFile, keys: pa.Array, rows: pa.RecordBatch) -> pa.RecordBatch:
        constants = [pa.repeat(pa.scalar(text, pa.string()), len(keys)) for text in (file.partition_path, file.file_id)]
        stored = [_stored_ordering(rows, field) for field in self.ordering]
        return pa.RecordBatch.from_arrays([keys, *constants, *stored], schema=self.schema)


def _in_range(keys: pa.Array, smallest: str | None, largest: str | None) -> pa.Array:
    """Keys that a file with this key range can hold."""
    if smallest is None or largest is None:
        return keys
    # Java wrote the range in the order of UTF-16 units, Arrow compares bytes. The two agree against a bound whose
    # characters lie below the surrogates.
    if max(smallest + largest, default="") >= "\ud800":
        return keys
    return keys.filter(pc.and_(pc.greater_equal(keys, smallest), pc.less_equal(keys, largest)))


def _may_hold(wanted: pa.Array) -> RangeTest:
    """Can a part of a file hold one of these keys, by the range of its keys?"""
    exact = len(wanted) <= _KEYS_COMPARED_MAX
    ends = pc.min_max(wanted).as_py()
    keys: list[str] = wanted.sort().to_pylist() if exact else [ends["min"], ends["max"]]

    def may_match(ranges: Ranges) -> bool:
        known = ranges(Column((RECORD_KEY,)))
        if known is None or not isinstance(known.low, str) or not isinstance(known.high, str):
            return True
        if not exact:
            return bool(known.low <= keys[1] and keys[0] <= known.high)
        at = bisect_left(keys, known.low)  # texts compare by code point, as UTF-8 bytes do
        return at < len(keys) and keys[at] <= known.high

    return may_match


def _stored_ordering(rows: pa.RecordBatch, wanted: pa.Field) -> pa.Array:
    column = read_field(rows, wanted.name)
    # A file of before the column was added has none of its values.
    return pa.nulls(len(rows), wanted.type) if column is None else column.cast(wanted.type)


def _in_two_places(hits: pa.Table) -> bool:
    """Is a key of one partition in several file groups?"""
    places = hits.group_by([RECORD_KEY, PARTITION_PATH]).aggregate([(LOCATION, "count_distinct")])
    return bool(pc.any(pc.greater(places.column(f"{LOCATION}_count_distinct"), 1)).as_py())


def _wanted(keys: pa.Table, everywhere: bool) -> dict[str | None, pa.Array]:
    if everywhere:
        return {_EVERYWHERE: pc.unique(keys.column(RECORD_KEY))}
    ordered = keys.sort_by(PARTITION_PATH)
    runs = pc.run_end_encode(ordered.column(PARTITION_PATH).combine_chunks()) if ordered.num_rows else None
    wanted: dict[str | None, pa.Array] = {}
    start = 0
    for path, stop in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True) if runs is not None else ():
        wanted[path] = pc.unique(ordered.column(RECORD_KEY).slice(start, stop - start))
        start = stop
    return wanted


def _chunks(files: Sequence[BaseFile], chunks_max: int) -> list[tuple[BaseFile, ...]]:
    """Files shared out over tasks, the largest first, each to the task with the fewest bytes."""
    chunks: list[list[BaseFile]] = [[] for _ in range(min(len(files), max(1, chunks_max)))]
    sizes = [0] * len(chunks)
    for file in sorted(files, key=lambda f: (-f.size_bytes, f.path)):
        lightest = sizes.index(min(sizes))
        chunks[lightest].append(file)
        sizes[lightest] += file.size_bytes + (1 << 16)  # opening a file costs something too
    return [tuple(chunk) for chunk in chunks]


def _counts(keys: pa.Table, hits: pa.Table, lookup: Lookup) -> dict[tuple[str, str | None], int]:
    """Rows of the batch by partition and file id, of keys and hits that are both here."""
    counts: Counter[tuple[str, str | None]] = Counter()
    joined = keys.join(hits.select([RECORD_KEY, PARTITION_PATH, LOCATION]), [RECORD_KEY, PARTITION_PATH])
    grouped = joined.group_by([PARTITION_PATH, LOCATION]).aggregate([(RECORD_KEY, "count")])
    for row in grouped.to_pylist():
        counts[(row[PARTITION_PATH], row[LOCATION])] = row[f"{RECORD_KEY}_count"]
    return dict(counts)


def _as_location_partition(context: TaskContext, batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([batch.column(0)], names=[LOCATION_PARTITION])


@dataclass(frozen=True, slots=True)
class DistinctRows:
    """Stream work: each different row of a task's stream once. Its memory is the distinct rows."""

    def __call__(self, context: TaskContext, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrived = [batch for batch in batches if batch.num_rows]
        if arrived:
            table = pa.Table.from_batches(arrived)
            yield from table.group_by(table.column_names).aggregate([]).to_batches()


_PLACE_SCHEMA = pa.schema([pa.field(PARTITION_PATH, pa.string()), pa.field(LOCATION, pa.string())])


@dataclass(frozen=True, slots=True)
class _PlaceOfFile:
    """Column work: partition path and file id of each file name."""

    names: pa.Array
    partitions: pa.Array
    file_ids: pa.Array

    @classmethod
    def of(cls, files: Sequence[BaseFile]) -> _PlaceOfFile:
        return cls(
            pa.array([file.name for file in files], pa.string()),
            pa.array([file.partition_path for file in files], pa.string()),
            pa.array([file.file_id for file in files], pa.string()),
        )

    def __call__(self, context: TaskContext, batch: pa.RecordBatch) -> pa.RecordBatch:
        at = pc.index_in(batch.column(0), value_set=self.names)
        return pa.RecordBatch.from_arrays([self.partitions.take(at), self.file_ids.take(at)], schema=_PLACE_SCHEMA)
