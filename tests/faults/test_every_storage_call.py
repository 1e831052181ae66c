"""A process dies at any storage call of any write: readers see before or after, the next writer puts things right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyhudi import HudiTable
from pyhudi.errors import HudiError
from pyhudi.model.options import WriteOptions
from pyhudi.schema.changes import MoveColumn
from tests.support.tables.small import DEFAULTS, TestTable, rollback_write
from tests.support.writers.dying import on_clone
from tests.support.writers.every_fault import (
    START,
    WITH_LOGS,
    Rows,
    empty,
    empty_merge_on_read,
    loaded,
    survive_every_fault,
    with_logs,
)


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
    table = empty(version)
    table.options = {**table.options, "hoodie.metadata.enable": "true"}
    table.bulk_insert(*START)
    return table


def roll_back_last(table: TestTable) -> None:
    last = table.meta.timeline.last_commit()
    assert last is not None
    rollback_write(table.storage, last.requested_time, WriteOptions.parse(DEFAULTS), table.engine)


def twice(version: str) -> TestTable:
    table = loaded(version)
    table.upsert(("a", "x", 2, 55), ("new", "z", 1, 1))
    return table


def altered_last(version: str) -> TestTable:
    table = loaded(version)
    HudiTable(table.meta).alter(MoveColumn("ts", after="v"))
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
    "alter": (loaded, lambda t: HudiTable(t.meta).alter(MoveColumn("ts", after="v")), [*START], [*START]),
    "rollback of an alter": (altered_last, roll_back_last, [*START], [*START]),
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


@pytest.mark.filterwarnings("ignore:.*metadata table.*", "ignore:.*the compaction after it failed.*")
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("name", ACTIONS)
def test_a_reader_never_sees_a_part_and_the_next_writer_succeeds(name: str, version: str) -> None:
    make, act, before, after = ACTIONS[name]
    survive_every_fault(make(version), act, before, after, may_finish_later=name.endswith("rollback"))
