"""A clustering that would take file groups away from a writer at work: who gives way is for the strategy to say."""

from __future__ import annotations

from typing import Any

import pytest

from pyhudi.errors import WriteConflict
from pyhudi.model.filenames import heartbeat_path
from tests.support.tables.clustered import OPTIMISTIC, TYPES, Clustered
from tests.support.tables.small import TestTable
from tests.support.writers.interrupted import InterruptedEngine

PREFER = {**OPTIMISTIC, "write_lock_conflict_resolution_strategy": "PREFER_WRITER"}
SIMPLE = {**OPTIMISTIC, "write_lock_conflict_resolution_strategy": "SIMPLE"}


def table_of(table_type: str, options: dict[str, str]) -> Clustered:
    table = Clustered("9", table_type, **options)
    table.failed_writes_policy = "LAZY"
    table.insert(("a", "x", 1, 1))
    table.insert(("b", "x", 1, 1))
    return table


def write_during_clustering(table: Clustered, options: dict[str, str], dead: bool = False) -> list[str]:
    """An upsert of "a" whose tasks wait until a clustering of all file groups is done; what became of that."""
    outcomes: list[str] = []

    def cluster() -> None:
        if dead:
            (writer,) = (i for i in table.meta.timeline.pending() if i.action.is_write)
            table.storage.delete(heartbeat_path(writer.requested_time))
        try:
            table.cluster(**options)
            outcomes.append("done")
        except WriteConflict as error:
            outcomes.append(str(error))

    slow = TestTable(table.storage, table.options, engine=InterruptedEngine(cluster), failed_writes_policy="LAZY")
    try:
        slow.upsert(("a", "x", 2, 22))
        outcomes.append("written")
    except WriteConflict as error:
        outcomes.append(str(error))
    return outcomes


@pytest.mark.parametrize("table_type", TYPES)
def test_a_preferred_writer_commits_and_the_clustering_gives_way(table_type: str) -> None:
    table = table_of(table_type, PREFER)

    clustering, write = write_during_clustering(table, PREFER)

    assert "prefers writers" in clustering
    assert write == "written"
    assert table.rows() == [("a", "x", 2, 22), ("b", "x", 1, 1)]
    assert table.pending() == ["clustering.requested"], "the plan waits, and is dropped when it is run"


@pytest.mark.parametrize("table_type", TYPES)
def test_without_the_preference_the_one_that_completes_last_gives_way(table_type: str) -> None:
    table = table_of(table_type, SIMPLE)

    clustering, write = write_during_clustering(table, SIMPLE)

    assert clustering == "done"
    assert "changed file groups" in write
    assert table.rows() == [("a", "x", 1, 1), ("b", "x", 1, 1)]


def test_a_dead_writer_is_not_waited_for() -> None:
    table = table_of("COPY_ON_WRITE", PREFER)
    assert write_during_clustering(table, PREFER, dead=True)[0] == "done"


def test_a_writer_of_other_file_groups_is_not_waited_for() -> None:
    table = table_of("COPY_ON_WRITE", PREFER)
    clusterings: list[Any] = []
    engine = InterruptedEngine(lambda: clusterings.append(table.cluster(**PREFER)))
    slow = TestTable(table.storage, table.options, engine=engine, failed_writes_policy="LAZY")
    slow.upsert(("c", "y", 1, 1))
    assert len(clusterings[0].runs) == 1
    assert table.rows() == [("a", "x", 1, 1), ("b", "x", 1, 1), ("c", "y", 1, 1)]
