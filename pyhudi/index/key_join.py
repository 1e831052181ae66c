"""Joins of rows with the locations of their keys, by the engine or in this process, and counts of rows.

For a large batch, `tag_by_join` lets the engine join the incoming keys with all stored ones. The planner holds neither:

    fan_out   tasks read every stored key of the candidates, with its location
    join      rows are left-joined with these keys

Each step streams or shuffles, so memory does not grow with the batch. A native scan of the key columns instead of the
fan-out was measured: it is no faster (docs/measurements.md), and can't read ORC, keys that are not stored, or logs.

Log files can delete keys. If only live keys count, a key counts as stored only if the merged slice has it. Otherwise
a key's location is its base file, live or not: a later row must be merged with a delete in the log. A row has two
locations only if base files of one partition hold its key twice, so only such keys must be checked in the merged
slice. They are rare, and each adds a second row. So the logs are read only if the number of tagged rows shows one.

`join_locations` looks up the locations of rows in this process and adds them as columns. A join would copy all rows.
`CountRows` counts the rows of a frame in its tasks, by partition path and by file group.

Source: docs/formats/indexes.md, "Finding keys".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.engine.base import Engine, Frame, TaskContext
from pyhudi.index.base import LOCATION_PARTITION, Lookup, Tagged
from pyhudi.index.stored_keys import Candidate, StoredKeys, candidates, in_shares
from pyhudi.model.keys import COMBINED, LOCATION, PARTITION_PATH, RECORD_KEY

__all__ = [
    "CountRows",
    "PlacesThatCount",
    "count_groups",
    "counted",
    "join_locations",
    "keys_in_several_places",
    "tag_by_join",
]


_MANY = 1 << 16  # rows; for fewer, starting threads takes longer than counting


def join_locations(rows: pa.Table, hits: pa.Table) -> pa.Table | None:
    """`rows` with the columns of the hit for their key and partition, null for rows without a hit.

    Args:
        hits: RECORD_KEY, PARTITION_PATH and the columns to add.
    Returns: None if a key has several locations, in one partition or in two.
    """
    hit_keys = hits.column(RECORD_KEY).combine_chunks()
    if pc.count_distinct(hit_keys).as_py() != len(hit_keys):
        return None
    # One call for the whole column: each call builds the hash table of the hits again.
    at = pc.index_in(rows.column(RECORD_KEY), value_set=hit_keys)
    is_same_partition = pc.equal(hits.column(PARTITION_PATH).take(at), rows.column(PARTITION_PATH))
    at = pc.if_else(is_same_partition, at, None)
    for column in hits.schema:
        if column.name not in (RECORD_KEY, PARTITION_PATH):
            rows = rows.append_column(column.with_nullable(True), hits.column(column.name).take(at))
    return rows


def counted(rows: pa.Table) -> dict[tuple[str, str | None], int]:
    """The number of rows for each partition and file id (None: rows with new keys)."""
    threads = len(rows) > _MANY
    groups = rows.group_by([PARTITION_PATH, LOCATION], use_threads=threads).aggregate([([], "count_all")])
    return {(row[PARTITION_PATH], row[LOCATION]): row["count_all"] for row in groups.to_pylist()}


@dataclass(frozen=True, slots=True)
class CountRows:
    """Stream work: count rows (and bytes of keys) for each combination of the columns in a task's stream. `combined`:
    also sum up COMBINED.
    """

    columns: tuple[str, ...]
    key_bytes: bool = False
    combined: bool = False

    @property
    def schema(self) -> pa.Schema:
        numbers = ["rows", "bytes", *([COMBINED] if self.combined else [])]
        return pa.schema([(name, pa.string()) for name in self.columns] + [(name, pa.int64()) for name in numbers])

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows: Counter[tuple[str | None, ...]] = Counter()
        sizes: Counter[tuple[str | None, ...]] = Counter()
        combined: Counter[tuple[str | None, ...]] = Counter()
        for batch in batches:
            sized = pc.binary_length(batch.column(RECORD_KEY)) if self.key_bytes else pa.repeat(0, batch.num_rows)
            out = batch.column(COMBINED) if self.combined else pa.repeat(0, batch.num_rows)
            columns_of = [*(batch.column(c) for c in self.columns), sized, out]
            table = pa.Table.from_arrays(columns_of, [*self.columns, "bytes", COMBINED])
            # Batches are too small for threads.
            groups = table.group_by(list(self.columns), use_threads=False).aggregate(
                [("bytes", "count"), ("bytes", "sum"), (COMBINED, "sum")]
            )
            columns = [groups.column(c).to_pylist() for c in self.columns]
            counted = cast("list[int]", groups.column("bytes_count").to_pylist())
            summed = cast("list[int]", groups.column("bytes_sum").to_pylist())
            taken_out = cast("list[int]", groups.column(f"{COMBINED}_sum").to_pylist())
            # A row of this loop is a file group or a partition, not a record.
            for group, count, size, fewer in zip(zip(*columns, strict=True), counted, summed, taken_out, strict=True):
                rows[group] += count
                sizes[group] += size
                combined[group] += fewer
        arrays = [pa.array([group[i] for group in rows], pa.string()) for i in range(len(self.columns))]
        counters = [rows, sizes, combined] if self.combined else [rows, sizes]
        arrays += [pa.array([counter[group] for group in rows], pa.int64()) for counter in counters]
        yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def count_groups(engine: Engine, tagged: Frame) -> dict[tuple[str, str | None], int]:
    """Count rows by (partition path, file id or None)."""
    work = CountRows((PARTITION_PATH, LOCATION))
    counted = engine.collect(engine.map(engine.select(tagged, [PARTITION_PATH, LOCATION]), work, work.schema))
    rows: Counter[tuple[str, str | None]] = Counter()
    for row in counted.to_pylist():
        rows[(row[PARTITION_PATH], row[LOCATION])] += row["rows"]
    return dict(rows)


_ALIVE = "_pyhudi_alive"
_KEY = (RECORD_KEY, PARTITION_PATH)


def tag_by_join(rows: Frame, lookup: Lookup, *, is_global: bool) -> Tagged:
    """Tag rows with the locations of their keys, like `KeyLookupIndex.tag`."""
    if is_global:
        to_search = candidates(lookup, everywhere=True, live=True)
        stored_keys = _read_stored(to_search, StoredKeys.of(lookup, LOCATION_PARTITION), lookup)
        return Tagged(lookup.engine.join(rows, stored_keys, [RECORD_KEY], "left", right_is_large=True))
    to_search = candidates(lookup, everywhere=False, live=lookup.only_live)
    joined = lookup.engine.join(
        rows, _read_stored(to_search, StoredKeys.of(lookup), lookup), _KEY, "left", right_is_large=True
    )
    doubtful = frozenset[str]() if lookup.only_live else _partitions_with_logs(lookup)
    if not doubtful:
        return Tagged(joined)
    cached = lookup.engine.cache(joined)
    counts = count_groups(lookup.engine, cached)
    if not _has_second_places(counts, doubtful, lookup):
        return Tagged(cached, counts, (cached,))
    lookup.engine.release(cached)
    settled = _settled(rows, lookup)
    return Tagged(lookup.engine.join(rows, settled, _KEY, "left", right_is_large=True))


def _read_stored(to_search: Sequence[Candidate], work: StoredKeys | _StoredStates, lookup: Lookup) -> Frame:
    return lookup.engine.fan_out(in_shares(to_search, lookup.engine.parallelism * 3), work, work.schema)


def _partitions_with_logs(lookup: Lookup) -> frozenset[str]:
    """The partitions of the batch in which log files can decide between two locations of a key."""
    if lookup.merged is None:
        return frozenset()
    with_logs = {s.group.partition_path for s in lookup.slices_with_logs(everywhere=False)}
    return frozenset(path for path in with_logs if len(lookup.view.slices(path)) > 1)


def _has_second_places(
    counts: Mapping[tuple[str, str | None], int], partitions: Collection[str], lookup: Lookup
) -> bool:
    """True if the join multiplied a row in these partitions."""
    rows_by_path = dict.fromkeys(partitions, 0)
    for (path, _), count in counts.items():
        if path in rows_by_path:
            rows_by_path[path] += count
    return any(count > lookup.batch[path].rows for path, count in rows_by_path.items())


def _settled(rows: Frame, lookup: Lookup) -> Frame:
    """The valid locations of the batch's keys, one row for each key and location."""
    engine = lookup.engine
    stored_keys = replace(StoredKeys.of(lookup), base_rows=False)
    work = _StoredStates(stored_keys)
    states = _read_stored(candidates(lookup, everywhere=False, live=True), work, lookup)
    hits = engine.join(engine.select(rows, _KEY), states, _KEY, "inner", right_is_large=True)
    together = engine.arrange(engine.select(hits, work.schema.names), partition_by=_KEY)
    return engine.map(together, PlacesThatCount(), stored_keys.schema)


@dataclass(frozen=True)
class _StoredStates:
    """Fan-out work: every key of the base files, marked as possibly dead if its slice has log files, followed by the
    live keys of that slice. Streamed, so that no task holds the keys of a slice.
    """

    stored_keys: StoredKeys

    @property
    def schema(self) -> pa.Schema:
        return self.stored_keys.schema.append(pa.field(_ALIVE, pa.bool_()))

    def __call__(self, context: TaskContext, share: Sequence[Candidate]) -> Iterator[pa.RecordBatch]:
        for candidate in share:
            yield from self._marked(Candidate(candidate.file), alive=candidate.merging is None)
            if candidate.merging is not None:
                yield from self._marked(candidate, alive=True)

    def _marked(self, candidate: Candidate, *, alive: bool) -> Iterator[pa.RecordBatch]:
        for batch in self.stored_keys.every_key(candidate):
            marks = pa.repeat(alive, batch.num_rows)
            yield pa.RecordBatch.from_arrays([*batch.columns, marks], schema=self.schema)


@dataclass(frozen=True, slots=True)
class PlacesThatCount:
    """Stream work: a key's only location, live or not; of several locations, those where it is live. Each once.

    A task's stream has all rows of its keys. The task holds its share of the batch's keys in memory.
    """

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrived = [batch for batch in batches if batch.num_rows]
        if not arrived:
            return
        hits = pa.Table.from_batches(arrived)
        places = hits.group_by([*_KEY, LOCATION]).aggregate([(_ALIVE, "max")])
        several = keys_in_several_places(places)
        elsewhere = places.filter(places.column(f"{_ALIVE}_max")).join(several, list(_KEY), join_type="left semi")
        only = places.join(several, list(_KEY), join_type="left anti")
        yield from pa.concat_tables([only, elsewhere]).select([*_KEY, LOCATION]).to_batches()


def keys_in_several_places(hits: pa.Table) -> pa.Table:
    """The keys (RECORD_KEY, PARTITION_PATH) that are in several file groups, each once."""
    places = hits.group_by(list(_KEY)).aggregate([(LOCATION, "count_distinct")])
    return places.filter(pc.greater(places.column(f"{LOCATION}_count_distinct"), 1)).select(list(_KEY))
