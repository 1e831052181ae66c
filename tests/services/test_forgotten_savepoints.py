"""Savepoints that go: nothing archived may disappear with them, and nobody stumbles over a missing one."""

from __future__ import annotations

from functools import partial

import pytest

from pyhudi.model.instant import ActionKind
from pyhudi.model.options import WriteOptions
from pyhudi.services.clean.planner import savepointed_files
from pyhudi.services.savepoint import delete_savepoint, load_savepoints
from pyhudi.table.calls import serve
from pyhudi.timeline.table_properties import load_table_config
from tests.support.tables.archived import active, archived, history, savepoint, table_of
from tests.support.tables.small import TestTable

VERSIONS = ("6", "8", "9")


def forget(table: TestTable, time: str) -> None:
    options = WriteOptions.parse({}, table=load_table_config(table.storage))
    serve(table.storage, partial(delete_savepoint, instant_time=time), options, table.engine)


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_that_archiving_has_passed_leaves_with_its_savepoint(version: str) -> None:
    table = table_of(version)
    times = [table.upsert((f"k{n}", f"p{n}", n, n)).instant_time for n in range(7)]  # each has a file of its own
    savepoint(table, times[1])
    archived(table, archive_beyond_savepoint="true")
    assert active(table) == [times[1], *times[-2:]]
    rows, then = table.rows(), table.rows(as_of=times[3])
    assert len(rows) == 7

    forget(table, times[1])

    assert table.rows() == rows
    assert active(table) == times[-2:]
    assert history(table) == times[:-2]
    assert table.rows(as_of=times[3]) == then
    table.upsert(("new", "p0", 1, 1))
    assert len(table.rows()) == 8


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_that_archiving_has_not_passed_stays(version: str) -> None:
    table = table_of(version)
    times = [table.upsert((f"k{n}", f"p{n}", n, n)).instant_time for n in range(4)]
    savepoint(table, times[1])
    forget(table, times[1])
    assert active(table) == times
    assert history(table) == []


def test_a_savepoint_that_is_deleted_at_this_moment_protects_nothing() -> None:
    table = table_of()
    time = table.upsert(("a", "x", 1, 1)).instant_time
    savepoint(table, time)
    seen = table.meta
    assert seen.timeline.of([ActionKind.SAVEPOINT]).instants
    forget(table, time)

    assert savepointed_files(seen) == {}
    assert load_savepoints(seen) == []
