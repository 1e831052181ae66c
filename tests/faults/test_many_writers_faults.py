"""One of many writers dies at any storage call, the lock's among them: readers see before or after, others go on."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.storage.clock import FixedClock
from pyhudi.storage.memory import MemoryStorage
from tests.support.tables.small import Row, TestTable
from tests.support.writers.dying import READING, dies, places_to_die

START: list[Row] = [("a", "x", 1, 10), ("b", "y", 1, 20)]
NEXT: Row = ("next", "y", 1, 99)
TEN_MINUTES_MS = 600_000  # heartbeats have stopped by then, and leases have run out
OPTIMISTIC = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "STORAGE",
}
NON_BLOCKING = {
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "STORAGE",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.compact.inline": "false",
}
EARLY = {**OPTIMISTIC, "hoodie.write.concurrency.early.conflict.detection.enable": "true"}


def loaded(options: dict[str, str]) -> TestTable:
    clock = FixedClock(1_760_000_000_000)
    made = TestTable(MemoryStorage(clock=clock), options, clock, LocalEngine(1), failed_writes_policy="LAZY")
    made.upsert(*START)
    return made


def copy_of(table: TestTable) -> TestTable:
    return TestTable(table.storage.clone(), table.options, table.clock, table.engine, failed_writes_policy="LAZY")


def in_order(rows: list[Any]) -> list[Any]:
    return sorted(rows, key=repr)


@pytest.mark.filterwarnings("ignore:.*table_lock.json.*", "ignore:.*the compaction after it failed.*")
@pytest.mark.parametrize("options", [OPTIMISTIC, NON_BLOCKING, EARLY], ids=["optimistic", "non-blocking", "early"])
def test_the_next_writer_succeeds_and_leaves_nothing_behind(options: dict[str, str]) -> None:
    table = loaded(options)
    act = ("a", "x", 2, 11), ("c", "z", 1, 30)
    counted = copy_of(table)
    counted.upsert(*act)
    before, after = in_order(START), in_order([act[0], START[1], act[1]])
    calls = counted.storage.log
    assert counted.rows() == after

    outcomes = set()
    for kind, n in places_to_die(calls):
        attempt = copy_of(table)
        died = dies(attempt, partial(attempt.upsert, *act), kind, n)
        verb, path = calls[n - 1]
        where = f"{kind} call {n}: {verb} {path}"
        if verb in READING:  # nobody takes a read that failed for an answer; what is left, the next change looks at
            assert died or attempt.rows() == after, where
            continue
        found = attempt.rows()
        assert found in (before, after), where
        assert died or found == after, where
        outcomes.add(found == after)

        table.clock.advance(TEN_MINUTES_MS)
        attempt.upsert(NEXT)
        assert attempt.rows() == in_order([*found, NEXT]), where
        assert not attempt.meta.timeline.pending().instants, where
        for folder in (".hoodie/.temp", ".hoodie/.heartbeat"):
            assert not list(attempt.storage.walk(folder)), where
    assert outcomes == {True, False}
