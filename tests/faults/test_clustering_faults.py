"""A process dies at any storage call of a clustering: no row changes, the next run does it all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.errors import HudiError
from tests.support.tables.clustered import Clustered
from tests.support.tables.small import Row
from tests.support.writers.dying import deaths, died_before_completing, on_clone

ROWS: list[Row] = [("a", "x", 2, 11), ("c", "y", 5, 30), ("d", "x", 1, 4)]
ENGINE = {"index_type": "BUCKET", "index_bucket_engine": "CONSISTENT_HASHING"}
LATER: Row = ("a", "x", 9, 99)


def made(version: str, table_type: str) -> Clustered:
    table = Clustered(version, table_type)
    table.engine = LocalEngine(1)
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 5, 30))
    table.insert(("d", "x", 1, 4))
    table.upsert(("a", "x", 2, 11))
    table.delete(("b", "x"))
    return table


def with_plan(version: str, table_type: str) -> Clustered:
    table = made(version, table_type)
    table.cluster(schedule_only=True)
    return table


def with_dead_run(version: str, table_type: str) -> Clustered:
    """A run died when it had written its files."""
    table = with_plan(version, table_type)
    return died_before_completing(table, lambda attempt: attempt.cluster())


def with_stale_plan(version: str, table_type: str) -> Clustered:
    table = with_plan(version, table_type)
    table.upsert(("a", "x", 2, 11), clustering_updates_strategy="ALLOW")
    return table


def act(table: Clustered) -> None:
    table.cluster(clustering_plan_strategy_sort_columns="v")


ACTIONS: dict[str, Callable[[str, str], Clustered]] = {
    "clustering": made,
    "clustering of a plan": with_plan,
    "clustering after a dead run": with_dead_run,
    "clustering of a stale plan": with_stale_plan,
}


ON_6 = ("6", "MERGE_ON_READ")
ON_9 = ("9", "COPY_ON_WRITE")


@pytest.mark.parametrize(
    ("name", "version", "table_type"),
    [
        ("clustering", *ON_9),
        ("clustering of a plan", *ON_6),
        ("clustering after a dead run", *ON_9),
        ("clustering of a stale plan", *ON_6),
        pytest.param("clustering", *ON_6, marks=pytest.mark.slow),  # the slow ones run in `make stress`
        pytest.param("clustering of a plan", *ON_9, marks=pytest.mark.slow),
        pytest.param("clustering after a dead run", *ON_6, marks=pytest.mark.slow),
        pytest.param("clustering of a stale plan", *ON_9, marks=pytest.mark.slow),
    ],
)
def test_no_row_changes_and_the_next_run_does_it_all(name: str, version: str, table_type: str) -> None:
    table = ACTIONS[name](version, table_type)
    counted = on_clone(table)
    with suppress(HudiError):
        act(counted)
    assert counted.rows() == ROWS

    for attempt, where in deaths(table, act):
        assert attempt.rows() == ROWS, where

        again = on_clone(attempt)
        for _ in range(2):  # a stale plan is dropped first
            with suppress(HudiError):
                act(again)
        assert again.rows() == ROWS, where
        assert not again.pending(), where
        assert again.groups() == {"x": 1, "y": 1}, where
        visible = {stat.path for stat in again.clustering_body().stats()}
        assert len(visible) == 2, where
        assert not leftovers(again), where

        attempt.upsert(LATER, clustering_updates_strategy="ALLOW")  # writers go on, whatever state it was left in
        assert attempt.rows() == [LATER, *ROWS[1:]], where


def leftovers(table: Clustered) -> list[str]:
    """Data files that no completed instant has written."""
    named = {
        stat.path for instant in table.meta.timeline.commits() for stat in table.meta.commits.metadata(instant).stats()
    }
    return [path for path in table.data_files() if path not in named]


@pytest.mark.thorough
def test_buckets_are_split_whole_or_not_at_all() -> None:
    """Whatever call fails, every key is found where the hash ring says, before and after the next run."""
    rows: list[Row] = [(f"key{number:02d}", "x", 1, number) for number in range(12)]
    table = Clustered("9", "MERGE_ON_READ", **ENGINE, bucket_index_num_buckets="2")
    table.engine = LocalEngine(1)
    table.upsert(*rows)

    def split(attempt: Clustered) -> None:
        attempt.cluster(**ENGINE, bucket_index_max_num_buckets="3", parquet_max_file_size="1")

    counted = on_clone(table)
    split(counted)
    assert counted.groups() == {"x": 3}
    later: list[Row] = [(key, path, 2, v) for key, path, _, v in rows]
    for attempt, where in deaths(table, split):
        assert attempt.rows() == rows, where
        again = on_clone(attempt)
        again.cluster(**ENGINE)
        assert again.rows() == rows, where
        assert again.groups()["x"] >= 2, where
        for one in (again, attempt):
            one.upsert(*later, clustering_rollback_pending_replacecommit_on_conflict="true")
            assert one.rows() == later, where
