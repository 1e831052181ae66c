"""A process dies at any storage call of any write: readers see before or after, the next writer puts things right."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.errors import HudiError, TableNotFound
from pyhudi.model.options import WriteOptions
from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline.table_properties import update_table_config
from tests.actions.tables import DEFAULTS, Row, TestTable, rollback_write
from tests.faults.dying import READING, dies, on_clone, places_to_die

START: list[Row] = [("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 1, 30)]
NEXT: Row = ("next", "y", 1, 99)

Rows = list[tuple[Any, ...]]


def empty(version: str) -> TestTable:
    return TestTable(MemoryStorage(), {"hoodie.write.table.version": version}, engine=LocalEngine(1))


def loaded(version: str) -> TestTable:
    table = empty(version)
    table.bulk_insert(*START)
    return table


def with_dead_writer(version: str) -> TestTable:
    """A table whose last writer died after it had written its files."""
    table = loaded(version)
    table.storage.reset_faults()
    attempt = on_clone(table)
    attempt.upsert(("a", "x", 2, 77))
    calls = [path for verb, path in attempt.storage.log if verb == "create_new"]
    completed = attempt.storage.log.index(("create_new", next(p for p in reversed(calls) if p.endswith(".commit"))))
    table.storage.fail_at(completed + 1, "before")
    with pytest.raises(HudiError):
        table.upsert(("a", "x", 2, 77))
    table.storage.reset_faults()
    assert table.meta.timeline.pending().instants
    return table


def with_metadata_table(version: str) -> TestTable:
    """A table that seems to have a metadata table."""
    table = loaded(version)
    update_table_config(table.storage, {"hoodie.table.metadata.partitions": "column_stats,files"})
    for name in ("hoodie.properties", "x", "y"):
        table.storage.write(f".hoodie/metadata/.hoodie/{name}", b"#\n")
    return table


def roll_back_last(table: TestTable) -> None:
    last = table.meta.timeline.last_commit()
    assert last is not None
    rollback_write(table.storage, last.requested_time, WriteOptions.parse(DEFAULTS), table.engine)


def twice(version: str) -> TestTable:
    table = loaded(version)
    table.upsert(("a", "x", 2, 55), ("new", "z", 1, 1))
    return table


ACTIONS: dict[str, tuple[Callable[[str], TestTable], Callable[[TestTable], object], Rows, Rows]] = {
    "create and bulk_insert": (empty, lambda t: t.bulk_insert(*START), [], [*START]),
    "insert": (loaded, lambda t: t.insert(("d", "y", 1, 40)), [*START], [*START, ("d", "y", 1, 40)]),
    "upsert": (
        loaded,
        lambda t: t.upsert(("a", "x", 2, 11), ("e", "z", 1, 50)),
        [*START],
        [("a", "x", 2, 11), *START[1:], ("e", "z", 1, 50)],
    ),
    "delete": (loaded, lambda t: t.delete(("b", "x"), ("c", "y")), [*START], START[:1]),
    "rollback": (twice, roll_back_last, [("a", "x", 2, 55), *START[1:], ("new", "z", 1, 1)], [*START]),
    "upsert after a dead writer": (
        with_dead_writer,
        lambda t: t.upsert(("a", "x", 2, 11)),
        [*START],
        [("a", "x", 2, 11), *START[1:]],
    ),
    "upsert with a metadata table": (
        with_metadata_table,
        lambda t: t.upsert(("a", "x", 2, 11)),
        [*START],
        [("a", "x", 2, 11), *START[1:]],
    ),
}


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


def with_two_delta_commits(version: str) -> TestTable:
    table = with_logs(version)
    table.upsert(("a", "x", 2, 55), ("c", "y", 2, 33), ("new", "z", 1, 1))
    return table


def with_dead_delta_commit(version: str) -> TestTable:
    """The last writer died when its log files were there and its commit was not."""
    table = with_logs(version)
    table.storage.reset_faults()
    attempt = on_clone(table)
    attempt.upsert(("a", "x", 2, 77), ("new", "z", 1, 1))
    calls = [path for verb, path in attempt.storage.log if verb == "create_new"]
    last = next(path for path in reversed(calls) if path.endswith(".deltacommit"))
    table.storage.fail_at(attempt.storage.log.index(("create_new", last)) + 1, "before")
    with pytest.raises(HudiError):
        table.upsert(("a", "x", 2, 77), ("new", "z", 1, 1))
    table.storage.reset_faults()
    assert table.meta.timeline.pending().instants
    return table


ACTIONS |= {
    "merge on read: create and bulk_insert": (empty_merge_on_read, lambda t: t.bulk_insert(*START), [], [*START]),
    "merge on read: upsert": (
        with_logs,
        lambda t: t.upsert(("a", "x", 2, 11), ("e", "z", 1, 50)),
        WITH_LOGS,
        [("a", "x", 2, 11), *WITH_LOGS[1:], ("e", "z", 1, 50)],
    ),
    "merge on read: delete": (with_logs, lambda t: t.delete(("b", "x"), ("c", "y")), WITH_LOGS, START[:1]),
    "merge on read: rollback": (
        with_two_delta_commits,
        roll_back_last,
        [("a", "x", 2, 55), WITH_LOGS[1], ("c", "y", 2, 33), ("new", "z", 1, 1)],
        WITH_LOGS,
    ),
    "merge on read: upsert after a dead writer": (
        with_dead_delta_commit,
        lambda t: t.upsert(("a", "x", 2, 11)),
        WITH_LOGS,
        [("a", "x", 2, 11), *WITH_LOGS[1:]],
    ),
}


def read(table: TestTable) -> Rows:
    try:
        return table.rows()
    except TableNotFound:
        return []


def in_order(rows: Rows) -> Rows:
    return sorted(rows, key=repr)


@pytest.mark.filterwarnings("ignore:.*metadata table.*", "ignore:.*the compaction after it failed.*")
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("name", ACTIONS)
def test_a_reader_never_sees_a_part_and_the_next_writer_succeeds(name: str, version: str) -> None:
    make, act, before, after = ACTIONS[name]
    survive_every_fault(make(version), act, before, after, may_finish_later=name.endswith("rollback"))


def survive_every_fault(
    table: TestTable, act: Callable[[TestTable], object], before: Rows, after: Rows, *, may_finish_later: bool = False
) -> None:
    """Let an action die at every storage call. `may_finish_later`: the next writer may complete what it began."""
    counted = on_clone(table)
    act(counted)
    assert counted.rows() == in_order(after)
    calls = counted.storage.log

    seen = set()
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
        seen.add(found == in_order(after))

        attempt.upsert(NEXT)
        # A rollback that was planned is finished by the next writer; a write that was not complete is undone.
        allowed = [found, in_order(after)] if may_finish_later else [found]
        assert attempt.rows() in [in_order([*rows, NEXT]) for rows in allowed], where
        assert not attempt.meta.timeline.pending().instants, where
        for folder in (".hoodie/metadata", ".hoodie/.temp", ".hoodie/.heartbeat"):
            assert not list(attempt.storage.walk(folder)), where
    assert seen == {True} if before == after else seen == {True, False}
