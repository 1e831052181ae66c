"""What many writers do to one table, and what must be in it then: batches follow from their names alone.

A batch's name is in its commit's metadata, so the timeline says which batches are in, whoever died before he could
report. Replayed one after the other in the order of their completion they give the one right snapshot.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.changes.change import ChangeRows
from pyhudi.actions.changes.clauses import Clause, When
from pyhudi.actions.result import WriteResult
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import LockTimeout, PathNotFound, WriteConflict
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import Instant
from pyhudi.model.options import WriteOptions
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.snapshot import read_batches
from pyhudi.storage.base import Storage
from pyhudi.table.write import change_table, write_table
from pyhudi.timeline.archived_timeline import load_archived_timeline
from pyhudi.timeline.table_properties import load_table_config, table_exists

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.string()), ("n", pa.int64())])
PARTITIONS = ("p0", "p1", "p2")
SHARED = 12  # rows that everybody changes
RETAINED = 8  # commits whose files no cleaning takes: whoever is slower than these comes too late
NAME = "_batch"  # key in the commit's metadata
SEED = "seed"

Row = tuple[str, str, int]  # partition, value, counter
State = dict[str, Row]


@dataclass(frozen=True)
class Play:
    """A table and how it is written: `options` of all writers, `services` between which the serving process chooses."""

    options: Mapping[str, str]
    services: tuple[str, ...]


_COMMON = {
    "hoodie.table.name": "shared",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "FILESYSTEM",
    "hoodie.write.num.retries.on.conflict.failures": "5",
    "hoodie.time.generator.max_expected_clock_skew_ms": "1",
    "hoodie.client.heartbeat.interval_in_ms": "2000",
    "hoodie.client.heartbeat.tolerable.misses": "10",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.clean.commits.retained": str(RETAINED),
    "hoodie.keep.min.commits": "10",
    "hoodie.keep.max.commits": "12",
    "hoodie.index.bloom.num_entries": "50",
    "hoodie.bloom.index.filter.dynamic.max.entries": "200",
    "hoodie.index.bloom.fpp": "0.001",
}
_BUCKETS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "3",
}
_INDEXED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
_AS_IT_COMES = {  # no word of other writers, locks or services: whatever the defaults are
    "hoodie.table.name": "shared",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
}
_MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
_RECORD_INDEX = {
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
}
PLAYS = {
    "by default, copy on write": Play(_AS_IT_COMES, ("clean", "archive")),
    "by default, merge on read": Play({**_AS_IT_COMES, **_MERGE_ON_READ}, ("compact", "clean")),
    "by default, copy on write with a record index": Play({**_AS_IT_COMES, **_RECORD_INDEX}, ("archive",)),
    "by default, merge on read with a record index": Play(
        {**_AS_IT_COMES, **_MERGE_ON_READ, **_RECORD_INDEX}, ("compact", "archive")
    ),
    "copy on write": Play(_COMMON, ("clean", "archive", "cluster")),
    "buckets of merge on read": Play({**_COMMON, **_BUCKETS}, ("compact", "log_compact", "clean", "archive")),
    "merge on read, version 6": Play(
        {
            **_COMMON,
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.write.table.version": "6",
            "hoodie.parquet.small.file.limit": "0",
        },
        ("compact", "clean", "archive"),
    ),
    "copy on write, found by a record index": Play(
        {**_COMMON, **_INDEXED, "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX"}, ("clean", "archive", "cluster")
    ),
    "buckets of merge on read, with a metadata table": Play(
        {**_COMMON, **_BUCKETS, **_INDEXED}, ("compact", "log_compact", "clean", "archive")
    ),
}


def shared_rows() -> State:
    return {f"s{i}": (PARTITIONS[i % len(PARTITIONS)], SEED, 0) for i in range(SHARED)}


def own_row(batch: str) -> tuple[str, Row]:
    return f"own-{batch}", (random.Random(batch + "/own").choice(PARTITIONS), batch, 1)


def picked(batch: str) -> list[str]:
    return sorted(
        random.Random(batch).sample(sorted(shared_rows()), random.Random(batch + "/count").choice((1, 1, 2, 3)))
    )


def counts_up(batch: str) -> bool:
    """Does the batch add one to the counters that it picks, or write their rows anew?"""
    return batch != SEED and random.Random(batch + "/kind").random() < 0.4


def rows_of(batch: str) -> State:
    """The rows that a batch which does not count up writes."""
    if batch == SEED:
        return shared_rows()
    anew = {key: (shared_rows()[key][0], batch, 0) for key in picked(batch)}
    return {**anew, **dict([own_row(batch)])}


def played(batches: Iterable[str]) -> State:
    """The one right snapshot after these batches."""
    state: State = {}
    for batch in batches:
        if counts_up(batch):
            state.update({key: (state[key][0], batch, state[key][2] + 1) for key in picked(batch)})
        else:
            state.update(rows_of(batch))
    return state


def write(storage: Storage, play: Play, batch: str) -> WriteResult:
    """Bring a batch in, whatever it takes: it may give way to others again and again, and come too late to a file."""
    while True:
        before = _commits(storage)
        try:
            return attempt(storage, play, batch)
        except (WriteConflict, LockTimeout):
            continue
        except PathNotFound:
            if len(_commits(storage) - before) < RETAINED:
                raise  # no cleaning may have deleted the file yet


def _commits(storage: Storage) -> set[str]:
    """Requested times of the commits on the active timeline."""
    if not table_exists(storage):
        return set()
    return {instant.requested_time for instant in MetaClient.load(storage).timeline.commits()}


def attempt(storage: Storage, play: Play, batch: str) -> WriteResult:
    """Bring a batch in, or give way."""
    engine = LocalEngine(1)
    config = load_table_config(storage) if table_exists(storage) else None
    given = {**play.options, NAME: batch, "hoodie.datasource.write.operation": "upsert"}
    options = WriteOptions.parse(given, table=config)
    if counts_up(batch):
        clause = Clause(When.NOT_MATCHED_BY_SOURCE, "update", None, {"n": pc.field("n") + 1, "v": pa.scalar(batch)})
        where = "id in (" + ", ".join(f"'{key}'" for key in picked(batch)) + ")"
        return change_table(storage, ChangeRows((clause,), where), engine, options)
    rows = [dict(zip(SCHEMA.names, (key, *row), strict=True)) for key, row in sorted(rows_of(batch).items())]
    return write_table(storage, pa.Table.from_pylist(rows, SCHEMA), engine, options)


class Reader:
    """Reads snapshots, and checks each against the batches that its timeline has. Remembers archived batches."""

    def __init__(self, storage: Storage, retained: int = RETAINED) -> None:
        self.storage, self.retained = storage, retained
        self.batches: dict[str, tuple[str, str]] = {}  # requested time → completion time, batch

    def check(self) -> list[str]:
        """The batches in the order of their completion, after a snapshot with just their rows was read."""
        meta = MetaClient.load(self.storage)
        try:
            plan = plan_snapshot(meta)
            table = pa.Table.from_batches(list(read_batches(plan, self.storage)), plan.schema)
        except PathNotFound:
            newer = [i for i in MetaClient.load(self.storage).timeline.commits() if i not in meta.timeline.instants]
            assert len(newer) >= self.retained, "a file is gone that no cleaning may have deleted yet"
            return self.check()
        newest = meta.timeline.last_commit()
        if newest is not None and plan.newest_commit != newest.requested_time:
            return self.check()  # archiving has passed all commits of `meta` meanwhile: the plan is of a later moment
        order = self._order(meta)
        found: State = {}
        for row in table.to_pylist():
            assert row["id"] not in found, f"{row['id']} is there twice"
            found[row["id"]] = (row["p"], row["v"], row["n"])
        assert len(order) == len(set(order)), "a batch was committed twice"
        expected = played(order)
        wrong = {key: (found.get(key), row) for key, row in expected.items() if found.get(key) != row}
        assert found == expected, f"no serial history gives this snapshot: {wrong}, {found.keys() - expected.keys()}"
        return order

    def _order(self, meta: MetaClient) -> list[str]:
        for instant in meta.timeline.commits():
            self._note(instant, meta.commits.metadata(instant))
        first = meta.timeline.active_since or ""  # a clean or rollback may be older than writes that were archived
        for archived in load_archived_timeline(self.storage, meta.config).instants(until=first):
            known = archived.instant.requested_time in self.batches
            body = None if known or archived.instant.requested_time >= first else archived.commit()
            if body is not None:
                self._note(archived.instant, body)
        visible = {instant.requested_time for instant in meta.timeline.commits()}
        visible_batches = [
            (done, batch) for time, (done, batch) in self.batches.items() if time in visible or time < first
        ]
        return [batch for _, batch in sorted(visible_batches)]

    def _note(self, instant: Instant, body: CommitMetadata) -> None:
        if NAME in body.extra_metadata:
            self.batches[instant.requested_time] = (instant.completion_time or "", body.extra_metadata[NAME])
