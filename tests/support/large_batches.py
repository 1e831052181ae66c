"""Tables whose keys a write has to find, whatever holds them; written step by step, on either road of the indexes.

A key is in a base file of Parquet or ORC, stored or not, alive or deleted in a log, moved away, moved back into another
file group: in two places. `play` writes them, and says what came of each step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.index import chosen
from pyhudi.index.base import IndexSettings
from pyhudi.meta_client import MetaClient
from pyhudi.model.keys import RECORD_KEY
from pyhudi.model.options import WriteOptions
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.snapshot import read_batches
from pyhudi.storage.base import Storage
from pyhudi.table.write import write_table
from pyhudi.timeline.table_properties import load_table_config, table_exists
from tests.support.tables.small import DEFAULTS, Row, rows_of

MERGE_ON_READ = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",  # new rows make new file groups
}
WITHOUT_KEYS = {"hoodie.populate.meta.fields": "false"}
ORC = {"hoodie.table.base.file.format": "ORC"}
STAYS = {"hoodie.simple.index.update.partition.path": "false", "hoodie.bloom.index.update.partition.path": "false"}
GLOBAL_RECORDS = {
    "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "2",
    "hoodie.record.index.update.partition.path": "true",
}
RECORDS = {
    "hoodie.index.type": "RECORD_LEVEL_INDEX",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.level.index.enable": "true",
}
COMMIT_TIME = {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}


@dataclass(frozen=True)
class Step:
    """One write. `options` are for this one alone."""

    operation: str
    rows: tuple[Row, ...]
    options: Mapping[str, str] = field(default_factory=dict)


def upsert(*rows: Row, **options: str) -> Step:
    return Step("upsert", rows, {"hoodie." + name.replace("_", "."): text for name, text in options.items()})


def numbered(start: int, stop: int, partition: Callable[[int], str], ts: int, v: int = 0) -> tuple[Row, ...]:
    return tuple((f"k{n:03}", partition(n), ts, v + n) for n in range(start, stop))


def by_three(n: int) -> str:
    return f"p{n % 3}"


def shifted(n: int) -> str:
    return f"p{(n + 1) % 3}"


LOADED = upsert(*numbered(0, 60, by_three, 5))
STEPS = (
    LOADED,
    upsert(*numbered(40, 80, by_three, 6, 1000)),
    Step("delete", numbered(10, 20, by_three, 6)),
    upsert(*numbered(0, 30, by_three, 7, 2000)),
)
# Of the rows that move some are newer than the stored ones, some older; then keys come back to where they were.
MOVES = (
    LOADED,
    upsert(*numbered(0, 20, shifted, 6, 1000), *numbered(20, 40, shifted, 4, 1000), ("new", "p1", 1, 1)),
    Step("delete", numbered(0, 6, shifted, 7)),
    upsert(*numbered(0, 30, by_three, 8, 2000), *numbered(50, 70, by_three, 8, 2000)),
)
# A global index moves keys away and back; then an index of partitions finds them in two file groups of theirs. A key
# that the log of its only file group deletes, by a later row than the batch has, stays where it is, and dead.
BACK_AND_FORTH = (
    LOADED,
    upsert(*numbered(0, 20, shifted, 6), index_type="GLOBAL_SIMPLE"),
    upsert(*numbered(0, 20, by_three, 7), index_type="GLOBAL_SIMPLE"),
    Step("flagged", numbered(40, 50, by_three, 20)),
    upsert(*numbered(0, 50, by_three, 9, 3000), *numbered(60, 70, by_three, 9, 3000)),
)
KNOWN_KEYS = (
    LOADED,
    Step("delete", numbered(10, 20, by_three, 6)),
    Step("insert", numbered(0, 70, by_three, 9, 1000), {"hoodie.datasource.insert.dup.policy": "drop"}),
)


@dataclass(frozen=True)
class Case:
    """A table and what is written to it."""

    options: Mapping[str, str]
    steps: tuple[Step, ...]


CASES: dict[str, Case] = {
    "simple": Case({"hoodie.index.type": "SIMPLE"}, STEPS),
    "bloom": Case({"hoodie.index.type": "BLOOM"}, STEPS),
    "simple, no stored keys": Case({"hoodie.index.type": "SIMPLE", **WITHOUT_KEYS}, STEPS),
    "simple, ORC": Case({"hoodie.index.type": "SIMPLE", **ORC}, STEPS),
    "simple, log files": Case({"hoodie.index.type": "SIMPLE", **MERGE_ON_READ}, STEPS),
    "simple, keys in two places": Case({"hoodie.index.type": "SIMPLE", **MERGE_ON_READ}, BACK_AND_FORTH),
    "simple, inserts of known keys": Case({"hoodie.index.type": "SIMPLE", **MERGE_ON_READ}, KNOWN_KEYS),
    "global simple": Case({"hoodie.index.type": "GLOBAL_SIMPLE"}, MOVES),
    "global simple, commit time": Case({"hoodie.index.type": "GLOBAL_SIMPLE", **COMMIT_TIME}, MOVES),
    "global simple, stays": Case({"hoodie.index.type": "GLOBAL_SIMPLE", **STAYS}, MOVES),
    "global simple, no stored keys": Case({"hoodie.index.type": "GLOBAL_SIMPLE", **WITHOUT_KEYS}, MOVES),
    "global simple, log files": Case({"hoodie.index.type": "GLOBAL_SIMPLE", **MERGE_ON_READ}, MOVES),
    "global bloom": Case({"hoodie.index.type": "GLOBAL_BLOOM"}, MOVES),
    "global bloom, ORC": Case({"hoodie.index.type": "GLOBAL_BLOOM", **ORC}, MOVES),
    "global bloom, log files, stays": Case({"hoodie.index.type": "GLOBAL_BLOOM", **MERGE_ON_READ, **STAYS}, MOVES),
    "global records": Case(GLOBAL_RECORDS, MOVES),
    "global records, log files": Case({**GLOBAL_RECORDS, **MERGE_ON_READ}, MOVES),
    "global records, stays": Case(
        {**GLOBAL_RECORDS, **MERGE_ON_READ, "hoodie.record.index.update.partition.path": "false"}, MOVES
    ),
    "records": Case(RECORDS, STEPS),
    "records, log files": Case({**RECORDS, **MERGE_ON_READ}, KNOWN_KEYS),
    "in memory": Case({"hoodie.index.type": "INMEMORY"}, MOVES),
}

Outcome = list[tuple[int, int, int, list[tuple[Any, ...]]]]


def play(case: Case, storage: Storage, engine: Any) -> Outcome:
    """Write all steps. For each: rows inserted, updated, deleted, and what the table then holds."""
    outcome = []
    for step in case.steps:
        data, operation = rows_of(*step.rows), step.operation
        if operation == "flagged":
            data, operation = data.append_column("_hoodie_is_deleted", pa.repeat(True, len(data))), "upsert"
        if operation == "delete":
            data = data.select(["id", "p"])
        given = {**DEFAULTS, **case.options, **step.options, "hoodie.datasource.write.operation": operation}
        given["hoodie.write.set.null.for.missing.columns"] = "true"
        config = load_table_config(storage) if table_exists(storage) else None
        # In two pieces: rows of a key are not together, as in any frame of an engine.
        frame = engine.union([engine.from_arrow(data.slice(0, 25)), engine.from_arrow(data.slice(25))])
        result = write_table(storage, frame, engine, WriteOptions.parse(given, table=config))
        met = result.updated + result.unchanged
        outcome.append((result.inserted, met, result.deleted, _stored_rows(storage)))
    return outcome


def _stored_rows(storage: Storage) -> list[tuple[Any, ...]]:
    plan = plan_snapshot(MetaClient.load(storage))
    names = ["id", "p", "ts", "v"]
    found = [row for batch in read_batches(plan, storage) for row in batch.select(names).to_pylist()]
    return sorted(tuple(row[name] for name in names) for row in found)


def large_from(monkeypatch: pytest.MonkeyPatch, key_bytes: int) -> None:
    """Batches of more bytes than this are large to indexes."""
    monkeypatch.setattr(
        chosen, "IndexSettings", lambda **given: IndexSettings(**given, key_bytes_in_tasks_max=key_bytes)
    )


def collects_keys(columns: list[list[str]]) -> bool:
    """Did a table with record keys come to the planner? `columns`: of each table that came."""
    return any(RECORD_KEY in names for names in columns)
