"""A process dies at any storage call of a compaction or log compaction: no row changes, the next run does it all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyhudi.engine.local import LocalEngine
from tests.support.tables.compacted import Compacted
from tests.support.tables.small import Row
from tests.support.writers.dying import deaths, died_before_completing, on_clone

ROWS: list[Row] = [("a", "x", 2, 11), ("c", "y", 5, 30)]
LATER: Row = ("a", "x", 9, 99)


def made(version: str) -> Compacted:
    table = Compacted(version)
    table.engine = LocalEngine(1)
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 5, 30))
    table.upsert(("a", "x", 2, 11), ("c", "y", 4, 99))
    table.delete(("b", "x"))
    return table


def with_plan(version: str) -> Compacted:
    """A plan waits, and a write has gone on since."""
    table = made(version)
    table.compact(schedule_only=True)
    table.upsert(("c", "y", 6, 31))
    return table


def with_dead_run(version: str) -> Compacted:
    """A run died when it had written its files."""
    table = made(version)
    table.compact(schedule_only=True)
    return died_before_completing(table, lambda attempt: attempt.compact())


AFTER_PLAN = [ROWS[0], ("c", "y", 6, 31)]
ACTIONS: dict[str, tuple[Callable[[str], Compacted], Callable[[Compacted], object], list[Row]]] = {
    "compaction": (made, lambda table: table.compact(), ROWS),
    "compaction of a plan with a write on top": (with_plan, lambda table: table.compact(), AFTER_PLAN),
    "compaction after a dead run": (with_dead_run, lambda table: table.compact(), ROWS),
    "log compaction": (made, lambda table: table.log_compact(), ROWS),
}


@pytest.mark.parametrize("version", ["6", pytest.param("8", marks=pytest.mark.slow), "9"])
@pytest.mark.parametrize("name", ACTIONS)
def test_no_row_changes_and_the_next_run_does_it_all(name: str, version: str) -> None:
    make, act, rows = ACTIONS[name]
    table = make(version)
    counted = on_clone(table)
    act(counted)
    assert counted.rows() == rows
    data_files = len(counted.paths())

    for attempt, where in deaths(table, act):
        assert attempt.rows() == rows, where

        again = on_clone(attempt)
        act(again)
        assert again.rows() == rows, where
        assert not again.pending(), where
        assert len(again.paths()) == data_files, f"{where}: {again.paths()}"

        attempt.upsert(LATER)  # writers go on, whatever state the service was left in
        assert attempt.rows() == [LATER, *rows[1:]], where
        attempt.compact()
        assert attempt.rows() == [LATER, *rows[1:]], where
        attempt.log_compact()
        assert not attempt.pending(), where
