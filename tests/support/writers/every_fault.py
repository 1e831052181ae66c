"""An action dies at every storage call; what readers and the next writer find then."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pyhudi.engine.local import LocalEngine
from pyhudi.errors import TableNotFound
from pyhudi.queries.validation import validate
from pyhudi.storage.memory import MemoryStorage
from tests.support.tables.small import Row, TestTable
from tests.support.writers.dying import READING, dies, on_clone, places_to_die

START: list[Row] = [("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 1, 30)]
NEXT: Row = ("next", "y", 1, 99)
Rows = list[tuple[Any, ...]]


def empty(version: str) -> TestTable:
    return TestTable(MemoryStorage(), {"hoodie.write.table.version": version}, engine=LocalEngine(1))


def loaded(version: str) -> TestTable:
    table = empty(version)
    table.bulk_insert(*START)
    return table


MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}


def empty_merge_on_read(version: str) -> TestTable:
    table = empty(version)
    table.options = {**table.options, **MERGE_ON_READ}
    return table


def with_logs(version: str) -> TestTable:
    table = empty_merge_on_read(version)
    table.bulk_insert(*START)
    table.upsert(("b", "x", 2, 22))
    return table


WITH_LOGS: Rows = [START[0], ("b", "x", 2, 22), START[2]]


def read(table: TestTable) -> Rows:
    try:
        return table.rows()
    except TableNotFound:
        return []


def in_order(rows: Rows) -> Rows:
    return sorted(rows, key=repr)


def survive_every_fault(
    table: TestTable,
    act: Callable[[TestTable], object],
    before: Rows,
    after: Rows,
    *,
    may_finish_later: bool = False,
    next_row: Row = NEXT,
) -> None:
    """Let an action die at every storage call.

    `may_finish_later`: the next writer may complete what it began. `next_row`: what that writes.
    """
    counted = on_clone(table)
    act(counted)
    assert counted.rows() == in_order(after)
    calls = counted.storage.log

    outcomes = set()
    for kind, n in places_to_die(calls):
        attempt = on_clone(table)
        died = dies(attempt, partial(act, attempt), kind, n)
        verb, path = calls[n - 1]
        where = f"{kind} call {n}: {verb} {path}"
        if verb in READING:  # nobody takes a read that failed for an answer; what is left, the next change looks at
            assert died or read(attempt) == in_order(after), where
            continue

        found = read(attempt)
        assert found in (in_order(before), in_order(after)), where
        assert died or found == in_order(after), where
        outcomes.add(found == in_order(after))

        attempt.upsert(next_row)
        # A rollback that was planned is finished by the next writer; a write that was not complete is undone.
        allowed = [found, in_order(after)] if may_finish_later else [found]
        assert attempt.rows() in [in_order([*rows, next_row]) for rows in allowed], where
        assert not attempt.meta.timeline.pending().instants, where
        for folder in (".hoodie/.temp", ".hoodie/.heartbeat"):
            assert not list(attempt.storage.walk(folder)), where
        assert attempt.meta.config.metadata_partitions == counted.meta.config.metadata_partitions, where
        assert validate(attempt.meta) == (), where
    assert outcomes == {True} if before == after else outcomes == {True, False}
