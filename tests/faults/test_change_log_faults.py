"""A process dies at any storage call of a write that logs changes: the changes that can be read are those of before or
after, and no change log is left that no commit names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest

from pyhudi.model.options.queries import IncrementalOptions
from pyhudi.queries.incremental import plan_incremental
from pyhudi.queries.incremental_range import incremental_range
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches
from tests.support.tables.small import TestTable
from tests.support.writers.dying import READING, dies, on_clone, places_to_die
from tests.support.writers.every_fault import NEXT, START, empty

CDC = {"hoodie.table.cdc.enabled": "true"}


def logged(version: str) -> TestTable:
    table = empty(version)
    table.options = {**table.options, **CDC}
    table.bulk_insert(*START)
    return table


def changes(table: TestTable) -> list[tuple[str, str | None, str | None]]:
    wanted = incremental_range(table.meta, "incremental", "earliest", None, options=IncrementalOptions(format="cdc"))
    assert wanted is not None
    planned = plan_incremental(table.meta, wanted, Query(columns=["op", "before", "after"], where="op <> 'i'"))
    rows = pa.Table.from_batches(read_batches(planned, table.storage), planned.schema).to_pylist()
    return sorted((row["op"], row["before"], row["after"]) for row in rows)


def named_change_logs(table: TestTable) -> set[str]:
    """Change logs that completed writes name."""
    bodies = [table.meta.commits.metadata(instant) for instant in table.meta.timeline.commits()]
    return {path for body in bodies for stat in body.stats() for path in stat.cdc_stats or ()}


def stored_change_logs(table: TestTable) -> set[str]:
    return {info.path for info in table.storage.walk("") if info.path.endswith(".cdc")}


WRITES: dict[str, Callable[[TestTable], object]] = {
    "upsert": lambda table: table.upsert(("a", "x", 2, 11), ("e", "z", 1, 50)),
    "delete": lambda table: table.delete(("b", "x")),
}


@pytest.mark.parametrize(("name", "version"), [("upsert", "9"), ("delete", "6"), ("upsert", "8")])
def test_a_death_leaves_no_change_log_that_counts(name: str, version: str) -> None:
    table = logged(version)
    write = WRITES[name]
    counted = on_clone(table)
    write(counted)
    calls = counted.memory.log
    before, after = changes(table), changes(counted)
    assert before != after
    outcomes = set()
    for kind, n in places_to_die(calls):
        where = f"{kind} call {n}: {calls[n - 1]}"
        if calls[n - 1][0] in READING:
            continue
        attempt = on_clone(table)
        dies(attempt, partial(write, attempt), kind, n)
        found = changes(attempt)
        assert found in (before, after), where
        outcomes.add(found == after)

        attempt.upsert(NEXT)
        assert stored_change_logs(attempt) == named_change_logs(attempt), where
    assert outcomes == {True, False}
