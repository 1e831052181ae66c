"""A process dies at any storage call of a savepoint, restore or rollback to an instant: readers see a state that was
committed, and the next writer brings the table to where the dead one was going, or leaves it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from pyhudi.actions.undo.restore import restore, roll_back
from pyhudi.engine.local import LocalEngine
from pyhudi.model.filenames import BaseFileName, LogFileName
from pyhudi.model.instant import ActionKind
from pyhudi.queries.validation import validate
from pyhudi.services.savepoint import delete_savepoint, savepoint
from tests.support.tables.small import TestTable
from tests.support.tables.undone import clustering, compact, copy_on_write, data_files, merge_on_read, served
from tests.support.writers.dying import deaths, dies, on_clone


def made(make: Callable[[str], TestTable], version: str) -> tuple[TestTable, str, list[list[tuple[Any, ...]]]]:
    """A table, the instant to go back to, and the rows of all states from there on."""
    table = make(version)
    table.engine = LocalEngine(1)
    table.bulk_insert(("a", "x", 1, 1), ("b", "x", 1, 2))
    time = table.upsert(("a", "x", 2, 10)).instant_time
    states = [table.rows()]
    table.upsert(("a", "x", 3, 30), ("n", "z", 1, 1))
    states.append(table.rows())
    compact(table) if make is merge_on_read else clustering(table)
    table.delete(("b", "x"))
    states.append(table.rows())
    return table, time, states


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("make", [copy_on_write, merge_on_read])
def test_a_restore_is_finished_by_the_next_writer(make: Callable[[str], TestTable], version: str) -> None:
    table, time, states = made(make, version)
    done = on_clone(table)
    served(done, partial(restore, to=time))
    files = data_files(done)

    outcomes = []
    for attempt, where in deaths(table, lambda t: served(t, partial(restore, to=time))):
        found = attempt.rows()
        assert found in states, where
        begun = bool(attempt.meta.timeline.of([ActionKind.RESTORE]).instants)

        again = on_clone(attempt)
        served(again, partial(restore, to=time))
        assert again.rows() == states[0], where
        # A command block that was cut off is written again, into another log file of its slice.
        more = [path for path in data_files(again) if path not in files]
        assert len(more) + len(files) == len(data_files(again)), where
        assert all(path.endswith("_1-0-1") and slice_of(path) in set(map(slice_of, files)) for path in more), where
        assert not again.meta.timeline.pending().instants, where
        assert not again.meta.timeline.of([ActionKind.ROLLBACK]).instants, where

        attempt.upsert(("late", "x", 1, 1))
        expected = states[0] if begun else found
        assert attempt.rows() == sorted([*expected, ("late", "x", 1, 1)], key=repr), where
        assert not attempt.meta.timeline.pending().instants, where
        outcomes.append(found)
    assert states[0] in outcomes
    assert states[-1] in outcomes


def slice_of(path: str) -> tuple[str, str]:
    """File id and base instant in the name of a base file or, below version 8, of a log file."""
    name = path.rpartition("/")[2]
    parsed = BaseFileName.parse(name) or LogFileName.parse(name)
    assert parsed is not None, path
    return parsed.file_id, parsed.instant_time


def died_at_its_end(table: TestTable, time: str) -> TestTable:
    """A copy of the table, whose restore died when all was undone and only its completed file was missing."""
    done, attempt = on_clone(table), on_clone(table)
    served(done, partial(restore, to=time))
    completed = next(n for n, (verb, path) in enumerate(done.memory.log, 1) if path.endswith(".restore"))
    assert done.memory.log[completed - 1][0] == "create_new"
    assert dies(attempt, partial(served, attempt, partial(restore, to=time)), "before", completed)
    assert attempt.meta.timeline.pending().of([ActionKind.RESTORE]).instants
    return attempt


def test_a_restore_that_another_process_finishes_keeps_the_log_files_that_stay_in_the_metadata_table() -> None:
    """Version 6: log files of undone writes stay, each with a command block in a further one."""
    table = merge_on_read("6")
    table.metadata_by_default = True
    table.bulk_insert(("a", "x", 1, 1))
    time = table.upsert(("a", "x", 2, 10)).instant_time
    table.upsert(("a", "x", 3, 20))
    attempt = died_at_its_end(table, time)

    served(attempt, partial(restore, to=time))

    assert [path for path in data_files(attempt) if path.endswith("_1-0-1")]
    assert validate(attempt.meta) == ()
    assert attempt.rows() == [("a", "x", 2, 10)]


@pytest.mark.thorough
def test_a_restore_that_died_when_all_was_undone_leaves_no_log_file_of_a_slice_that_is_gone() -> None:
    """Version 6: the delete is taken back by a command block in the slice that the compaction made, which goes next."""
    table, time, states = made(merge_on_read, "6")
    done, attempt = on_clone(table), died_at_its_end(table, time)
    served(done, partial(restore, to=time))

    served(attempt, partial(restore, to=time))

    assert data_files(attempt) == data_files(done)
    assert attempt.rows() == states[0]
    assert not attempt.meta.timeline.pending().instants


@pytest.mark.thorough
@pytest.mark.parametrize(("make", "version"), [(copy_on_write, "9"), (merge_on_read, "6")])
def test_rollbacks_to_an_instant_stop_between_two_writes(make: Callable[[str], TestTable], version: str) -> None:
    table, time, states = made(make, version)
    for attempt, where in deaths(table, lambda t: served(t, partial(roll_back, to=time))):
        assert attempt.rows() in states, where
        again = on_clone(attempt)
        served(again, partial(roll_back, to=time))
        assert again.rows() == states[0], where

        attempt.upsert(("late", "x", 1, 1))
        assert attempt.rows() in [sorted([*rows, ("late", "x", 1, 1)], key=repr) for rows in states], where
        assert not attempt.meta.timeline.pending().instants, where


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["9"])
def test_a_savepoint_is_there_or_not(version: str) -> None:
    table, time, states = made(copy_on_write, version)
    for attempt, where in deaths(table, lambda t: served(t, partial(savepoint, instant_time=time))):
        made_it = bool(attempt.meta.timeline.completed().of([ActionKind.SAVEPOINT]).instants)
        if not made_it:
            served(attempt, partial(savepoint, instant_time=time))
        for gone, where_then in deaths(attempt, lambda t: served(t, partial(delete_savepoint, instant_time=time))):
            if gone.meta.timeline.of([ActionKind.SAVEPOINT]).instants:
                served(gone, partial(delete_savepoint, instant_time=time))
            assert not gone.meta.timeline.of([ActionKind.SAVEPOINT]).instants, where + where_then
            assert gone.rows() == states[-1], where
