"""The indexes SIMPLE, BLOOM and their global forms, which read and match key columns of base files.

    SIMPLE, BLOOM    a key is unique in its partition: base files of the batch's partitions are candidates
    GLOBAL_*         a key is unique in the table: base files of all partitions are candidates
    *BLOOM           key ranges and bloom filters in footers decide which key columns are read; else only key ranges

`KeyLookupIndex` is their base, and the base of INMEMORY (`in_memory.py`).

The incoming keys of a moderate batch are sent to the tasks, and only hits come back. A task opens each file once and
reads its key column only if the footer says that it may hold one of the keys. If a batch has more bytes of keys and
locations than `key_bytes_in_tasks_max`, the engine joins it instead (`key_join.py`).

Log files hold no keys that their base file lacks, so base files suffice to locate a key. Only the merged slice shows
whether the key is still live there. It is read in three cases:

- A global index: a key that has moved remains in the old base file and is deleted in its log.
- An insert that checks for known keys.
- A key that two file groups of its partition hold.

Source: docs/formats/indexes.md, "Finding keys", "Bloom look-up".
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.engine.base import Frame, TaskContext
from pyhudi.expressions.predicates import Column
from pyhudi.formats.base import open_base_file
from pyhudi.formats.base.ranges import Ranges, RangeTest
from pyhudi.formats.bloom import BloomFilter
from pyhudi.index.base import LOCATION_PARTITION, Index, Lookup, Tagged
from pyhudi.index.key_join import counted, join_locations, keys_in_several_places, tag_by_join
from pyhudi.index.stored_keys import Candidate, StoredKeyBatch, StoredKeys, candidates, in_shares
from pyhudi.merge.combine import single_array
from pyhudi.model.keys import LOCATION, PARTITION_PATH, RECORD_KEY
from pyhudi.storage.place import is_local

__all__ = ["BloomIndex", "FindKeys", "GlobalBloomIndex", "GlobalSimpleIndex", "KeyLookupIndex", "SimpleIndex"]


_EVERYWHERE = None  # key of a global index's keys
_KEYS_COMPARED_MAX = 20_000  # with more, only the smallest and the greatest key are compared with row groups' ranges
_ROWS_AT_ONCE = 1 << 20  # stored keys that are compared in one call
_QUICK_BYTES = 16 << 20  # of candidates: reading their key columns takes some 20 ms
_HIT_BYTES = 48  # of a hit in addition to its key and partition path: the file id, and text offsets


@dataclass(frozen=True, slots=True)
class KeyLookupIndex(Index):
    """An index that reads key columns of base files."""

    uses_bloom: ClassVar[bool] = False

    def tag(self, rows: Frame, lookup: Lookup) -> Tagged:
        if self.is_large(lookup):
            return tag_by_join(rows, lookup, is_global=self.is_global)
        keys = lookup.engine.collect(lookup.engine.select(rows, self._key_columns))
        hits = self._hits(keys, lookup)
        if self.is_global:
            hits = hits.rename_columns({PARTITION_PATH: LOCATION_PARTITION})
        elif getattr(lookup.engine, "shares_memory", False):
            table = join_locations(lookup.engine.collect(rows), hits)
            if table is not None:
                return Tagged(lookup.engine.from_arrow(table), counted(table))
        tagged = lookup.engine.join(rows, lookup.engine.from_arrow(hits), self._key_columns, "left")
        return Tagged(tagged, None if self.is_global else _counts(keys, hits))

    def find(self, keys: pa.Table, to_search: Sequence[Candidate], lookup: Lookup) -> pa.Table:
        """The locations of `keys` among the candidates, in the columns of `StoredKeys`."""
        size_bytes = sum(candidate.size_bytes for candidate in to_search)
        work = FindKeys(
            StoredKeys.of(lookup),
            _keys_by_partition(keys, self.is_global),
            self.uses_bloom,
            is_quick=size_bytes <= _QUICK_BYTES and is_local(lookup.storage),
        )
        shares = in_shares(to_search, lookup.engine.parallelism * 3)
        hits: pa.Table = lookup.engine.collect(lookup.engine.fan_out(shares, work, work.stored_keys.schema))
        return hits

    @property
    def _key_columns(self) -> list[str]:
        return [RECORD_KEY] if self.is_global else [RECORD_KEY, PARTITION_PATH]

    def is_large(self, lookup: Lookup) -> bool:
        """True if the keys of the batch, or its hits, are too large for the planner and each task."""
        if getattr(lookup.engine, "shares_memory", False):
            return False
        parts = lookup.batch.values()
        held_bytes = sum(p.key_bytes + p.rows * (len(p.partition_path) + _HIT_BYTES) for p in parts)
        return held_bytes > self.settings.key_bytes_in_tasks_max

    def _hits(self, keys: pa.Table, lookup: Lookup) -> pa.Table:
        """The valid locations of `keys`."""
        merging = candidates(lookup, everywhere=self.is_global, live=True)
        if self.is_global or lookup.only_live or all(candidate.merging is None for candidate in merging):
            return self.find(keys, merging, lookup)
        hits = self.find(keys, [Candidate(candidate.file) for candidate in merging], lookup)
        several = keys_in_several_places(hits)
        if not several.num_rows:
            return hits
        # A location where the key is dead counts if it is the only one: a later row must be merged with the delete.
        only = hits.join(several, several.column_names, join_type="left anti")
        return pa.concat_tables([only, self.find(several, merging, lookup)])


@dataclass(frozen=True)
class FindKeys:
    """Fan-out work: search files for keys.

    `keys`: partition path → distinct keys; under None the keys of a global index, which any file may have.
    """

    stored_keys: StoredKeys
    keys: Mapping[str | None, pa.Array]
    uses_bloom: bool
    is_quick: bool = False

    def __call__(self, context: TaskContext, share: Sequence[Candidate]) -> Iterator[pa.RecordBatch]:
        for candidate in share:
            keys = self.keys.get(candidate.group.partition_path, self.keys.get(_EVERYWHERE))
            if keys is not None and len(keys):
                yield from self.hits(candidate, keys)

    def hits(self, candidate: Candidate, keys: pa.Array) -> Iterator[pa.RecordBatch]:
        """The rows of one file, or of its merged slice, that have one of the keys."""
        if candidate.merging is not None:
            yield from self._matches(candidate, self.stored_keys.of_slice(candidate.merging), keys)
            return
        assert candidate.file is not None
        reader = open_base_file(self.stored_keys.storage, candidate.file.path)
        try:
            footer = reader.footer
            keys = _in_range(keys, footer.min_key, footer.max_key)
            if self.uses_bloom and footer.bloom_base64 and len(keys):
                bloom = BloomFilter.from_base64(footer.bloom_base64, footer.bloom_type)
                keys = keys.filter(pa.array(bloom.might_contain(keys)))
            if len(keys):
                # For a file of one part the footer has already answered this.
                is_judged = footer.min_key is not None and len(reader.part_rows) == 1
                stored_keys = self.stored_keys.of_base(reader, None if is_judged else _may_hold(keys))
                yield from self._matches(candidate, stored_keys, keys)
        finally:
            reader.close()

    def _matches(
        self, candidate: Candidate, stored_keys: Iterator[StoredKeyBatch], keys: pa.Array
    ) -> Iterator[pa.RecordBatch]:
        for parts in _gathered(stored_keys):
            has_key = pc.is_in(pa.chunked_array([part.keys for part in parts], pa.string()), value_set=keys)
            first = 0
            for part in parts:
                has_key_here = single_array(has_key.slice(first, len(part.keys)))
                first += len(part.keys)
                if pc.any(has_key_here).as_py():
                    yield self.stored_keys.placed(candidate, part.filter(has_key_here))


def _gathered(stored_keys: Iterable[StoredKeyBatch]) -> Iterator[list[StoredKeyBatch]]:
    """Group batches so that a call of `is_in`, which builds a hash set, is worth its cost."""
    group: list[StoredKeyBatch] = []
    for part in stored_keys:
        group.append(part)
        if sum(len(one.keys) for one in group) >= _ROWS_AT_ONCE:
            yield group
            group = []
    if group:
        yield group


def _in_range(keys: pa.Array, smallest: str | None, largest: str | None) -> pa.Array:
    """The keys that a file with this key range can hold."""
    if smallest is None or largest is None:
        return keys
    # Java wrote the range in the order of UTF-16 units, Arrow compares bytes. The two agree for bounds whose characters
    # lie below the surrogates.
    if max(smallest + largest, default="") >= "\ud800":
        return keys
    return keys.filter(pc.and_(pc.greater_equal(keys, smallest), pc.less_equal(keys, largest)))


def _may_hold(sought: pa.Array) -> RangeTest:
    """A test that tells by its key range whether a part of a file can hold one of these keys."""
    exact = len(sought) <= _KEYS_COMPARED_MAX
    ends = pc.min_max(sought)
    keys = cast("list[str]", sought.sort().to_pylist() if exact else [ends["min"].as_py(), ends["max"].as_py()])

    def may_match(ranges: Ranges) -> bool:
        key_range = ranges(Column((RECORD_KEY,)))
        if key_range is None or not isinstance(key_range.low, str) or not isinstance(key_range.high, str):
            return True
        if not exact:
            return bool(key_range.low <= keys[1] and keys[0] <= key_range.high)
        at = bisect_left(keys, key_range.low)  # texts compare by code point, as UTF-8 bytes do
        return at < len(keys) and keys[at] <= key_range.high

    return may_match


def _keys_by_partition(keys: pa.Table, everywhere: bool) -> dict[str | None, pa.Array]:
    if everywhere:
        return {_EVERYWHERE: pc.unique(keys.column(RECORD_KEY))}
    ordered = keys.sort_by(PARTITION_PATH)
    runs = pc.run_end_encode(ordered.column(PARTITION_PATH).combine_chunks()) if ordered.num_rows else None
    by_path: dict[str | None, pa.Array] = {}
    start = 0
    ends = () if runs is None else cast("list[int]", runs.run_ends.to_pylist())
    for path, stop in zip(() if runs is None else runs.values.to_pylist(), ends, strict=True):
        by_path[path] = pc.unique(ordered.column(RECORD_KEY).slice(start, stop - start))
        start = stop
    return by_path


def _counts(keys: pa.Table, hits: pa.Table) -> dict[tuple[str, str | None], int]:
    """Count the batch's rows by partition and file id, from keys and hits in this process."""
    counts: Counter[tuple[str, str | None]] = Counter()
    joined = keys.join(hits.select([RECORD_KEY, PARTITION_PATH, LOCATION]), [RECORD_KEY, PARTITION_PATH])
    grouped = joined.group_by([PARTITION_PATH, LOCATION]).aggregate([(RECORD_KEY, "count")])
    for row in grouped.to_pylist():
        counts[(row[PARTITION_PATH], row[LOCATION])] = row[f"{RECORD_KEY}_count"]
    return dict(counts)


@dataclass(frozen=True, slots=True)
class SimpleIndex(KeyLookupIndex):
    """SIMPLE."""

    def everywhere(self) -> GlobalSimpleIndex:
        return GlobalSimpleIndex(self.settings)


@dataclass(frozen=True, slots=True)
class GlobalSimpleIndex(KeyLookupIndex):
    """GLOBAL_SIMPLE."""

    is_global: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class BloomIndex(KeyLookupIndex):
    """BLOOM."""

    uses_bloom: ClassVar[bool] = True

    def everywhere(self) -> GlobalBloomIndex:
        return GlobalBloomIndex(self.settings)


@dataclass(frozen=True, slots=True)
class GlobalBloomIndex(KeyLookupIndex):
    """GLOBAL_BLOOM."""

    is_global: ClassVar[bool] = True
    uses_bloom: ClassVar[bool] = True
