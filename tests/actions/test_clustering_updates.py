"""Writes while a clustering waits: refused, let through, or they take it back; new rows keep off its groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import pytest

from pyhudi.errors import ConfigError, WriteConflict
from pyhudi.model.filenames import TEMPORARY_FOLDER
from pyhudi.services.cluster.clustering import StalePlan
from pyhudi.storage.base import FileInfo
from pyhudi.storage.clock import SystemClock
from pyhudi.timeline.heartbeat import Heartbeat
from pyhudi.transaction.instants import TimelineWriter
from tests.support.tables.clustered import ROWS, TYPES, Clustered, made
from tests.support.tables.merge_on_read import VERSIONS
from tests.support.tables.small import rows_of

WRITES: dict[str, Callable[[Clustered], object]] = {
    "upsert": lambda table: table.upsert(("b", "x", 3, 21)),
    "delete": lambda table: table.delete(("b", "x")),
}


def waiting(version: str = "9", table_type: str = "COPY_ON_WRITE", **options: str) -> Clustered:
    table = made(version, table_type, **options)
    table.cluster(schedule_only=True, clustering_plan_strategy_partition_selected="x")
    return table


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("name", WRITES)
def test_a_change_of_its_file_groups_is_refused_by_name(name: str, table_type: str, version: str) -> None:
    table = waiting(version, table_type)
    (plan,) = table.meta.timeline.pending()
    before = table.data_files()
    with pytest.raises(WriteConflict, match=rf"which the \w+ {plan.requested_time} is going to replace"):
        WRITES[name](table)
    assert table.rows() == ROWS
    assert table.data_files() == before
    table.upsert(("f", "y", 2, 8), ("new", "x", 1, 9))
    table.cluster(instant_time=plan.requested_time)
    assert table.rows() == [*ROWS[:4], ("f", "y", 2, 8), ("new", "x", 1, 9)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
def test_new_rows_keep_off_its_file_groups(version: str, table_type: str) -> None:
    table = waiting(version, table_type)
    small = {"parquet_small_file_limit": "104857600"}
    table.insert(("g", "x", 1, 1), **small)
    assert table.groups() == {"x": 4, "y": 1}
    table.insert(("h", "x", 1, 1), **small)
    assert table.groups() == {"x": 4, "y": 1}, "other small files are filled as ever"
    table.cluster()
    assert table.rows() == [*ROWS, ("g", "x", 1, 1), ("h", "x", 1, 1)]


@pytest.mark.parametrize(
    "strategy",
    ["ALLOW", "SparkAllowUpdateStrategy", "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"],
)
def test_a_change_that_is_let_through_wins(strategy: str) -> None:
    table = waiting()
    table.upsert(("b", "x", 3, 21), clustering_updates_strategy=strategy)
    with pytest.raises(StalePlan):
        table.cluster()
    assert table.rows() == [ROWS[0], ("b", "x", 3, 21), *ROWS[2:]]


def test_an_overwrite_of_the_table_is_refused_before_anything_is_on_the_timeline() -> None:
    table = waiting()
    before = table.meta.timeline.instants
    table.storage.reset_faults()

    with pytest.raises(WriteConflict, match="a pending clustering is going to rewrite it"):
        table.write("insert_overwrite_table", rows_of(("n", "x", 9, 9)))

    assert table.meta.timeline.instants == before
    assert [path for verb, path in table.storage.log if verb == "create_new" and path.endswith(".requested")] == []


@pytest.mark.parametrize("strategy", ["DUPLICATE", "SparkConsistentBucketDuplicateUpdateStrategy"])
def test_rows_are_not_written_twice(strategy: str) -> None:
    table = waiting()
    table.upsert(("b", "x", 3, 21), clustering_updates_strategy=strategy)
    assert not table.pending()
    assert table.rows() == [ROWS[0], ("b", "x", 3, 21), *ROWS[2:]]


def test_rows_do_not_take_back_a_clustering_that_is_being_executed() -> None:
    table = waiting()
    (planned,) = table.meta.timeline.pending()
    TimelineWriter(table.storage, table.meta.config).start(planned)
    heartbeat = Heartbeat(table.storage, planned.requested_time, table.clock, 60_000)
    with heartbeat.beating(True), pytest.raises(WriteConflict, match="is going to replace"):
        table.upsert(("b", "x", 3, 21), clustering_updates_strategy="DUPLICATE")
    heartbeat.stop()
    assert table.pending()


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ConfigError, match="clustering update strategy 'REFUSE'"):
        waiting().upsert(("b", "x", 3, 21), clustering_updates_strategy="REFUSE")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
def test_a_change_may_take_the_clustering_back(version: str, table_type: str) -> None:
    table = waiting(version, table_type)
    table.upsert(("b", "x", 3, 21), clustering_rollback_pending_replacecommit_on_conflict="true")
    assert not table.pending()
    rows = [ROWS[0], ("b", "x", 3, 21), *ROWS[2:]]
    assert table.rows() == rows
    table.cluster()
    assert table.rows() == rows


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_that_waited_for_too_long_is_rolled_back_by_the_next_write(version: str) -> None:
    table = waiting(version, "MERGE_ON_READ")
    expires = {"clustering_enable_expirations": "true"}
    with pytest.raises(WriteConflict):
        table.upsert(("b", "x", 3, 21), **expires)
    (plan,) = table.meta.timeline.pending()
    running = Heartbeat(table.storage, plan.requested_time, SystemClock())
    running.beat()
    expires |= {"clustering_expiration_threshold_mins": "0"}
    with pytest.raises(WriteConflict):
        table.upsert(("b", "x", 3, 21), **expires)
    running.stop()
    table.upsert(("b", "x", 3, 21), **expires)
    assert not table.pending()
    table.cluster(schedule_only=True)
    (run,) = table.cluster(**expires).runs
    assert run.instant_time != plan.requested_time, "it is planned anew"
    assert table.rows() == [ROWS[0], ("b", "x", 3, 21), *ROWS[2:]]


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_a_clustering_that_was_overtaken_while_it_ran_is_not_visible(version: str) -> None:
    """The change comes when new files are written, just before the clustering completes."""
    table = waiting(version, "MERGE_ON_READ")
    clustering = Clustered()
    change = partial(table.upsert, ("b", "x", 3, 21), clustering_updates_strategy="ALLOW")
    clustering.storage = Overtaken(table, change)  # type: ignore[assignment]
    with pytest.raises(StalePlan):
        clustering.cluster()
    assert table.rows() == [ROWS[0], ("b", "x", 3, 21), *ROWS[2:]]
    assert not table.pending()
    table.cluster()
    assert table.groups() == {"x": 1, "y": 1}
    assert len(table.data_files()) == len(set(table.data_files()))


@pytest.mark.thorough
def test_a_write_that_completed_while_a_clustering_read_its_log_file_is_not_lost() -> None:
    """Version 6: a log file is in the plan before its write is complete, and the run passes over its blocks."""
    table = made("6", "MERGE_ON_READ", clean_failed_writes_policy="NEVER")
    write = table.upsert(("b", "x", 3, 21))
    completed = f"{table.meta.config.timeline_path}/{write.instant_time}.deltacommit"
    body = table.storage.read(completed)
    table.storage.delete(completed)  # from here on the write is about to complete
    table.cluster(schedule_only=True, clean_failed_writes_policy="NEVER")
    assert table.rows() == ROWS
    clustering = Clustered()
    clustering.storage = Overtaken(table, partial(table.storage.write, completed, body))  # type: ignore[assignment]

    with pytest.raises(StalePlan, match=f"the deltacommit {write.instant_time} changed"):
        clustering.cluster(clean_failed_writes_policy="NEVER")

    rows = [ROWS[0], ("b", "x", 3, 21), *ROWS[2:]]
    assert table.rows() == rows
    table.cluster()
    assert table.groups() == {"x": 1, "y": 1}
    assert table.rows() == rows


class Overtaken:
    """The table's storage; when markers of a run are listed, all its files are written, and another writer makes a
    change.
    """

    def __init__(self, table: Clustered, change: Callable[[], object]) -> None:
        self._table, self._change, self._done = table, change, False

    def walk(self, path: str) -> Iterable[FileInfo]:
        if path.startswith(TEMPORARY_FOLDER) and not self._done:
            self._done = True
            self._change()
        return self._table.storage.walk(path)

    def __getattr__(self, name: str) -> object:
        return getattr(self._table.storage, name)
