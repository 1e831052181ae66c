"""A process dies while it makes or drops an index, or its tasks write one: the table works on, and the next call
finishes or clears away.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local import LocalEngine
from pyhudi.metadata import staged_index
from pyhudi.model.filenames import INDEX_PIECES_FOLDER
from pyhudi.queries.validation import validate
from pyhudi.services.clean.cleaning import clean
from pyhudi.storage.memory import MemoryStorage
from tests.support.tables.record_indexed import places
from tests.support.tables.small import TestTable
from tests.support.tables.staged_index import small_staged_files
from tests.support.tables.undone import served
from tests.support.writers.dying import deaths, dies, on_clone

ROWS = [("a", "x", 1, 10), ("b", "x", 1, 20)]
INDEX = "secondary_index_by_v"
OPTIONS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "1",
    "hoodie.metadata.global.record.level.index.max.filegroup.count": "1",
    "hoodie.metadata.index.column.stats.enable": "false",
}
FEW = {key: text for key, text in OPTIONS.items() if "filegroup" in key}


def create(table: TestTable) -> None:
    HudiTable(table.meta).indexes.create("by_v", columns="v", options=FEW)


def drop(table: TestTable) -> None:
    HudiTable(table.meta).indexes.drop("by_v")


def schedule(table: TestTable) -> None:
    HudiTable(table.meta).indexes.create("by_v", columns="v", schedule_only=True, options=FEW)


def build(table: TestTable) -> None:
    HudiTable(table.meta).indexes.build(options=FEW)


def names(table: TestTable) -> list[str]:
    return [one.name for one in HudiTable(table.meta).indexes.list()]


@pytest.mark.parametrize("act", [create, drop])
def test_a_death_while_an_index_is_made_or_dropped_leaves_a_table_that_works(
    act: Callable[[TestTable], object],
) -> None:
    table = TestTable(MemoryStorage(), OPTIONS, engine=LocalEngine(1))
    table.bulk_insert(*ROWS)
    if act is drop:
        create(table)
    outcomes = set()
    for attempt, where in deaths(table, act):
        if where.startswith("torn") and where.endswith("index.json"):
            continue  # only stores that can't replace a file in one step leave half of it; with Hudi, too
        has_index = INDEX in names(attempt)
        outcomes.add(has_index)
        attempt.upsert(("a", "x", 2, 11))
        assert attempt.rows(("id", "v")) == [("a", 11), ("b", 20)], where
        assert (INDEX in names(attempt)) == has_index, where
        assert validate(attempt.meta) == (), where
        if has_index:
            drop(attempt)
        create(attempt)
        assert INDEX in names(attempt), where
        assert not attempt.meta.timeline.pending().instants, where
        assert validate(attempt.meta) == (), where
    assert outcomes == {True, False}


@pytest.mark.thorough
@pytest.mark.parametrize("act", [schedule, build])
def test_a_death_while_an_index_is_built_beside_writers_leaves_one_that_the_next_builder_finishes(
    act: Callable[[TestTable], object],
) -> None:
    table = TestTable(MemoryStorage(), OPTIONS, engine=LocalEngine(1))
    table.bulk_insert(*ROWS)
    if act is build:
        schedule(table)
        table.upsert(("b", "x", 2, 21))
    outcomes = set()
    for attempt, where in deaths(table, act):
        if where.startswith("torn") and where.endswith("index.json"):
            continue  # as above
        attempt.upsert(("a", "x", 2, 11))
        assert attempt.rows(("id", "v"))[0] == ("a", 11), where
        assert validate(attempt.meta) == (), where
        for heartbeat in attempt.storage.walk(".hoodie/.heartbeat"):
            attempt.storage.set_modified(heartbeat.path, 0)
        outcomes.add(INDEX in names(attempt))
        build(attempt)
        if INDEX not in names(attempt):
            create(attempt)
        assert INDEX in attempt.meta.config.metadata_partitions, where
        attempt.upsert(("a", "x", 3, 12))
        assert not attempt.meta.timeline.pending().instants, where
        assert validate(attempt.meta) == (), where
    assert outcomes == ({True, False} if act is schedule else {True})


def load(table: TestTable) -> None:
    table.bulk_insert(("c", "x", 1, 30), ("d", "y", 1, 40), ("e", "z", 1, 50), ("f", "x", 1, 60))


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "most_pieces"), [("9", 8), ("6", 2)])
def test_a_death_of_a_load_whose_tasks_write_the_index_leaves_no_key_in_it_and_no_pieces(
    version: str, most_pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_staged_files(monkeypatch)
    monkeypatch.setattr(staged_index, "_PIECES_MAX", most_pieces)
    options = {**OPTIONS, "hoodie.write.table.version": version}
    table = TestTable(MemoryStorage(), options, engine=LocalEngine(1))
    table.bulk_insert(*ROWS)
    outcomes = set()
    for attempt, where in deaths(table, load):
        loaded = len(attempt.rows()) == 6
        outcomes.add(loaded)
        attempt.upsert(("a", "x", 2, 11), ("c", "x", 2, 31))
        assert len(places(attempt.meta)) == (6 if loaded else 3), where
        assert validate(attempt.meta) == (), where
        attempt.upsert(("a", "x", 3, 12), clean_automatic="true")
        assert [entry.path for entry in attempt.storage.walk(INDEX_PIECES_FOLDER)] == [], where
    assert outcomes == {True, False}


@pytest.mark.parametrize("name", ["column_stats", "bloom_filters"])
def test_an_index_is_built_while_a_clean_is_at_work_or_has_died(name: str) -> None:
    """It reads all files that are listed, also older ones, of which the clean has deleted some."""
    table = TestTable(options={**OPTIONS, "hoodie.clean.automatic": "false"})
    for number in range(4):
        table.upsert(("a", "x", number, number), ("b", "y", number, number))
    at_once, cleaned = on_clone(table), partial(served, service=clean, clean_commits_retained="1")
    cleaned(at_once)
    deletions = [n for n, (verb, path) in enumerate(at_once.memory.log, 1) if verb == "delete" and path[0] in "xy"]
    assert dies(table, partial(cleaned, table), "after", deletions[1])

    HudiTable(table.meta).indexes.create(name, options=FEW)

    assert validate(table.meta) == ()
    cleaned(table)
    assert validate(table.meta) == ()
    assert table.rows() == [("a", "x", 3, 3), ("b", "y", 3, 3)]
