"""Two writers at once: the one that would overwrite what the other has just committed gives way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.actions.action import ActionContext
from pyhudi.actions.open_table import table_lock
from pyhudi.actions.result import WriteResult
from pyhudi.actions.undo.rollback import roll_back_failed_writes
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError, HudiError, WriteConflict
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.storage import FixedClock
from tests.support.tables.small import DEFAULTS, Row, TestTable, rows_of
from tests.support.writers.interrupted import InterruptedEngine, WatchedStorage

MODE = "hoodie.write.concurrency.mode"
MANY = {MODE: "OPTIMISTIC_CONCURRENCY_CONTROL", "hoodie.write.lock.provider": "IN_PROCESS"}
RETRIES = "hoodie.write.num.retries.on.conflict.failures"
STRATEGY = "hoodie.write.lock.conflict.resolution.strategy"


def race(table: TestTable, ours: Any, theirs: pa.Table, options: dict[str, str] | None = None) -> WriteResult:
    """`theirs` is committed while `ours` runs. LAZY, since an eager writer takes every other one for dead."""
    given = options or {}
    other = TestTable(table.storage, given, failed_writes_policy="LAZY")
    engine = InterruptedEngine(lambda: other.write("upsert", theirs))
    slow = TestTable(table.storage, given, engine=engine, failed_writes_policy="LAZY")
    return slow.write("upsert", ours)


@pytest.fixture
def table() -> TestTable:
    made = TestTable()
    made.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    return made


def test_writers_of_the_same_file_group_conflict(table: TestTable) -> None:
    with pytest.raises(WriteConflict) as caught:
        race(table, rows_of(("a", "x", 3, 12)), rows_of(("a", "x", 2, 11)))

    theirs = table.meta.timeline.last_commit()
    assert theirs is not None
    assert theirs.requested_time in str(caught.value)
    assert table.rows() == [("a", "x", 2, 11), ("b", "y", 1, 20)]
    assert caught.value.retryable
    assert not table.meta.timeline.pending().instants, "the loser has undone itself"


@pytest.mark.parametrize(("groups", "more"), [(2, ""), (3, ""), (4, " and 1 more")])
def test_a_conflict_names_three_file_groups_and_counts_the_others(groups: int, more: str) -> None:
    table = TestTable()
    rows = [(f"k{number}", f"p{number}", 1, 10) for number in range(groups)]
    table.bulk_insert(*rows)

    with pytest.raises(WriteConflict) as caught:
        race(table, rows_of(*((key, path, 3, 12) for key, path, *_ in rows)), rows_of(*rows))

    shown = min(groups, 3)
    assert [f" in 'p{number}'" in str(caught.value) for number in range(groups)].count(True) == shown
    assert f" in 'p{shown - 1}'{more}" in str(caught.value)
    assert (" more" in str(caught.value)) == bool(more)


def test_writers_of_different_file_groups_both_commit(table: TestTable) -> None:
    race(table, rows_of(("a", "x", 3, 12)), rows_of(("b", "y", 2, 21)))

    assert table.rows() == [("a", "x", 3, 12), ("b", "y", 2, 21)]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_write_completes_after_another_that_completed_meanwhile_by_a_clock_that_is_ahead(version: str) -> None:
    options = {**MANY, "hoodie.write.table.version": version}
    now_ms = 1_700_000_000_000
    slow = TestTable(options=options, clock=FixedClock(now_ms), failed_writes_policy="LAZY")
    slow.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    ahead = TestTable(slow.storage, options, FixedClock(now_ms + 30_000), failed_writes_policy="LAZY")
    theirs: list[WriteResult] = []
    slow.engine = InterruptedEngine(lambda: theirs.append(ahead.upsert(("b", "y", 2, 21))))

    ours = slow.upsert(("a", "x", 2, 11))

    assert ours.instant_time < theirs[0].instant_time < theirs[0].completion_time < ours.completion_time
    assert slow.meta.timeline.latest_time == ours.completion_time
    assert slow.rows() == [("a", "x", 2, 11), ("b", "y", 2, 21)]


def wider(name: str, *rows: Row) -> pa.Table:
    return rows_of(*rows).append_column(name, pa.array(["new"] * len(rows)))


def test_a_write_during_one_that_adds_a_column_takes_the_column_over(table: TestTable) -> None:
    race(table, rows_of(("a", "x", 3, 12)), wider("note", ("b", "y", 2, 21)))

    assert "note" in table.meta.table_schema().names
    assert table.rows(("id", "v", "note")) == [("a", 12, None), ("b", 21, "new")]


def test_two_writes_that_change_the_schema_differently_collide(table: TestTable) -> None:
    with pytest.raises(WriteConflict, match="schema"):
        race(table, wider("remark", ("a", "x", 3, 12)), wider("note", ("b", "y", 2, 21)))

    assert "note" in table.meta.table_schema().names
    assert "remark" not in table.meta.table_schema().names


def test_two_writes_that_add_the_same_column_both_commit(table: TestTable) -> None:
    race(table, wider("note", ("a", "x", 3, 12)), wider("note", ("b", "y", 2, 21)))

    assert table.rows(("id", "note")) == [("a", "new"), ("b", "new")]


def test_without_the_guard_two_schemas_do_not_collide(table: TestTable) -> None:
    off = {"hoodie.write.concurrency.schema.conflict.resolution.enable": "false"}
    race(table, wider("remark", ("a", "x", 3, 12)), wider("note", ("b", "y", 2, 21)), off)

    assert table.rows(("id", "v")) == [("a", 12), ("b", 21)]


# ---- retries ---------------------------------------------------------------------------------------------------------


def test_a_write_that_gave_way_runs_again_on_the_new_rows(table: TestTable) -> None:
    race(table, rows_of(("a", "x", 3, 12)), rows_of(("a", "x", 2, 11), ("c", "x", 1, 30)), {**MANY, RETRIES: "1"})

    assert table.rows() == [("a", "x", 3, 12), ("b", "y", 1, 20), ("c", "x", 1, 30)]
    assert not table.meta.timeline.pending().instants


def test_the_result_says_how_often_a_write_ran_again(table: TestTable) -> None:
    result = race(table, rows_of(("a", "x", 3, 12)), rows_of(("a", "x", 2, 11)), {**MANY, RETRIES: "3"})

    assert result.retries == 1
    assert "1 retry" in str(result)


def test_without_retries_left_the_conflict_is_raised(table: TestTable) -> None:
    with pytest.raises(WriteConflict, match="changed file groups"):
        race(table, rows_of(("a", "x", 3, 12)), rows_of(("a", "x", 2, 11)), {**MANY, RETRIES: "0"})


def test_rows_of_a_small_stream_are_kept_for_another_attempt(table: TestTable) -> None:
    stream = rows_of(("a", "x", 3, 12)).to_reader()

    result = race(table, stream, rows_of(("a", "x", 2, 11)), {RETRIES: "3"})

    assert result.retries == 1
    assert table.rows() == [("a", "x", 3, 12), ("b", "y", 1, 20)]


def test_a_large_stream_is_not_read_twice(table: TestTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyhudi.table.write.KEPT_BYTES", 1)
    stream = rows_of(("a", "x", 3, 12)).to_reader()
    with pytest.raises(WriteConflict, match="read once only"):
        race(table, stream, rows_of(("a", "x", 2, 11)), {**MANY, RETRIES: "3"})

    assert table.rows() == [("a", "x", 2, 11), ("b", "y", 1, 20)]


# ---- strategies ------------------------------------------------------------------------------------------------------

BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}


def test_two_writers_of_a_new_bucket_collide() -> None:
    table = TestTable(options=BUCKETS)
    table.upsert(("b", "y", 1, 20))
    with pytest.raises(WriteConflict, match="00000000-"):
        race(table, rows_of(("a", "x", 3, 12)), rows_of(("c", "x", 2, 11)), {**BUCKETS, **MANY})

    assert table.rows() == [("b", "y", 1, 20), ("c", "x", 2, 11)]


@pytest.mark.parametrize(
    "name",
    [
        "SIMPLE",
        "PREFER_WRITER",
        "org.apache.hudi.client.transaction.SimpleConcurrentFileWritesConflictResolutionStrategy",
        "org.apache.hudi.client.transaction.PreferWriterConflictResolutionStrategy",
        "org.apache.hudi.client.transaction.IngestionPrimaryWriterBasedConflictResolutionStrategy",
        "org.apache.hudi.client.transaction.BucketIndexConcurrentFileWritesConflictResolutionStrategy",
    ],
)
def test_every_strategy_finds_two_writers_of_one_file_group(name: str, table: TestTable) -> None:
    strategy = {"hoodie.write.lock.conflict.resolution.strategy": name}
    with pytest.raises(WriteConflict, match="changed file groups"):
        race(table, rows_of(("a", "x", 3, 12)), rows_of(("a", "x", 2, 11)), {**MANY, **strategy})


def test_an_unknown_strategy_is_refused_with_those_there_are(table: TestTable) -> None:
    with pytest.raises(ConfigError, match="PREFER_WRITER"):
        race(table, rows_of(("a", "x", 3, 12)), rows_of(("b", "y", 2, 11)), {**MANY, STRATEGY: "PREFER_SERVICE"})


# ---- early -----------------------------------------------------------------------------------------------------------

EARLY = {**MANY, "hoodie.write.concurrency.early.conflict.detection.enable": "true"}
EARLY_COMMITS = {**EARLY, "hoodie.write.concurrency.early.conflict.check.commit.conflict": "true"}


def lazy(storage: Any, options: dict[str, str], engine: LocalEngine | None = None) -> TestTable:
    return TestTable(storage, options, engine=engine or LocalEngine(1), failed_writes_policy="LAZY")


def race_in_tasks(table: TestTable, options: dict[str, str], theirs: tuple[Row, ...]) -> list[str]:
    """Another write begins when the files of the first are announced; what became of it."""
    outcomes = []

    def begin_another(verb: str, path: str) -> None:
        if verb == "open_output" and not outcomes:
            outcomes.append("")
            try:
                lazy(table.storage, options).upsert(*theirs)
                outcomes.append("committed")
            except WriteConflict as error:
                outcomes.append(str(error))

    watched = WatchedStorage(table.storage, begin_another)
    lazy(watched, options).upsert(("a", "x", 3, 12))
    return outcomes[1:]


def test_a_file_group_that_a_live_writer_has_announced_is_left_to_it(table: TestTable) -> None:
    assert "early conflict detection" in race_in_tasks(table, EARLY, (("a", "x", 4, 99),))[0]

    assert table.rows() == [("a", "x", 3, 12), ("b", "y", 1, 20)]
    assert not table.meta.timeline.pending().instants


def test_other_file_groups_are_no_early_conflict(table: TestTable) -> None:
    assert race_in_tasks(table, EARLY, (("b", "y", 4, 99),)) == ["committed"]

    assert table.rows() == [("a", "x", 3, 12), ("b", "y", 4, 99)]


def test_without_early_detection_the_first_to_complete_wins(table: TestTable) -> None:
    with pytest.raises(WriteConflict, match="changed file groups"):
        race_in_tasks(table, MANY, (("a", "x", 4, 99),))

    assert table.rows() == [("a", "x", 4, 99), ("b", "y", 1, 20)]


def test_the_announcement_of_a_dead_writer_is_no_early_conflict(table: TestTable) -> None:
    marker = (
        ".hoodie/.temp/20200101000000000/x/" + group_of(table, "x") + "_0-0-0_20200101000000000.parquet.marker.MERGE"
    )
    table.storage.write(marker, b"")
    lazy(table.storage, EARLY).upsert(("a", "x", 3, 12))

    assert table.rows()[0] == ("a", "x", 3, 12)


def test_commits_are_looked_at_before_files_are_made(table: TestTable) -> None:
    """Between reading the table and making files another write commits."""
    other = lazy(table.storage, EARLY_COMMITS)
    calls = []

    class Between(LocalEngine):
        def extend(self, *args: Any, **kwargs: Any) -> Any:
            if not calls:
                calls.append(1)
                other.upsert(("a", "x", 2, 11))
                table.storage.reset_faults()
            return super().extend(*args, **kwargs)

    with pytest.raises(WriteConflict, match="changed file groups"):
        lazy(table.storage, EARLY_COMMITS, Between(1)).upsert(("a", "x", 3, 12))
    assert not [path for verb, path in table.storage.log if verb == "open_output" and path.startswith("x/")]


def group_of(table: TestTable, partition: str) -> str:
    names = [info.name for info in table.storage.list(partition) if info.name.endswith(".parquet")]
    return names[0].partition("_")[0]


# ---- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hoodie.clean.failed.writes.policy": "EAGER"}, r"\(LAZY\)"),
        ({MODE: "NON_BLOCKING_CONCURRENCY_CONTROL"}, "expected MERGE_ON_READ.*expected BUCKET"),
    ],
)
def test_a_mode_without_what_it_stands_on_is_refused(options: dict[str, str], words: str) -> None:
    given = {key: text for key, text in {**MANY, **options}.items() if text}
    with pytest.raises(ConfigError, match=words):
        WriteOptions.parse(given)


def test_with_many_writers_only_those_without_heartbeat_are_undone() -> None:
    assert WriteOptions.parse(MANY).failed_writes_policy == "LAZY"


# ---- heartbeats and rollbacks ----------------------------------------------------------------------------------------


def test_the_heart_beats_before_the_instant_can_be_seen(table: TestTable) -> None:
    table.storage.reset_faults()
    TestTable(table.storage, failed_writes_policy="LAZY").upsert(("a", "x", 2, 11))

    calls = list(table.storage.log)
    beat = next(n for n, (verb, path) in enumerate(calls) if verb == "write" and ".heartbeat/" in path)
    requested = next(n for n, (_, path) in enumerate(calls) if path.endswith(".commit.requested"))
    assert beat < requested


def test_a_write_that_completes_while_another_takes_it_for_dead_is_not_undone(table: TestTable) -> None:
    """The other has seen it pending, without heartbeat by now, because it has completed."""
    context = pending_then_complete(table)

    assert roll_back_failed_writes(context) == ()
    assert table.rows() == [("a", "x", 3, 12), ("b", "y", 1, 20)]


def pending_then_complete(table: TestTable) -> ActionContext:
    """The table as it was while a write was pending that is complete by now."""
    contexts = []
    options = replace(WriteOptions.parse(DEFAULTS, table=table.meta.config), failed_writes_policy="LAZY")

    def look() -> None:
        lock = table_lock(options, table.storage, table.clock)
        contexts.append(ActionContext(table.meta, options, lock, table.clock, table.engine))

    TestTable(table.storage, engine=InterruptedEngine(look), failed_writes_policy="LAZY").upsert(("a", "x", 3, 12))
    assert contexts[0].meta.timeline.pending().instants
    return contexts[0]


def test_a_rollback_that_two_processes_finish_is_completed_once(table: TestTable) -> None:
    stale = pending_rollback(table)
    options = WriteOptions.parse(DEFAULTS, table=table.meta.config)
    contexts = [
        ActionContext(stale, options, table_lock(options, table.storage, table.clock), table.clock, table.engine)
        for _ in range(2)
    ]
    for context in contexts:
        roll_back_failed_writes(context)

    rollbacks = [info.name for info in table.storage.list(".hoodie/timeline") if info.name.endswith(".rollback")]
    assert len(rollbacks) == 1


def pending_rollback(table: TestTable) -> MetaClient:
    """The table while the rollback of a dead writer is half done."""
    copy = table.storage.clone()
    dead = TestTable(copy)
    copy.fail_at(_call_of(table, lambda path: path.endswith(".commit")), "before")
    with pytest.raises(HudiError):
        dead.upsert(("a", "x", 3, 12))
    copy.reset_faults()
    table.storage = copy
    rehearsal = TestTable(copy.clone())
    rehearsal.upsert(("b", "y", 2, 21))
    calls = rehearsal.storage.log
    copy.fail_at(1 + next(n for n, (_, path) in enumerate(calls) if path.endswith(".rollback")), "before")
    with pytest.raises(HudiError):
        TestTable(copy).upsert(("b", "y", 2, 21))
    copy.reset_faults()
    assert [i.action.value for i in table.meta.timeline.pending()][-1] == "rollback"
    return table.meta


def _call_of(table: TestTable, wanted: Callable[[str], bool]) -> int:
    rehearsal = TestTable(table.storage.clone())
    rehearsal.upsert(("a", "x", 3, 12))
    calls = [(verb, path) for verb, path in rehearsal.storage.log]
    return 1 + next(n for n, (verb, path) in enumerate(calls) if verb == "create_new" and wanted(path))


def test_an_eager_writer_takes_the_other_for_dead(table: TestTable) -> None:
    single = {MODE: "SINGLE_WRITER"}
    other = TestTable(table.storage, single)
    slow = TestTable(table.storage, single, engine=InterruptedEngine(lambda: other.upsert(("b", "y", 2, 21))))
    with pytest.raises(WriteConflict, match="rolled it back"):
        slow.upsert(("a", "x", 3, 12))

    assert table.rows() == [("a", "x", 1, 10), ("b", "y", 2, 21)]


# ---- new keys --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_RECORD_LEVEL_INDEX"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_two_upserts_of_one_new_key_leave_one_row(index: str, table_type: str) -> None:
    options = {"hoodie.datasource.write.table.type": table_type, "hoodie.index.type": index}
    indexed = {"hoodie.metadata.enable": "true", "hoodie.metadata.global.record.level.index.enable": "true"}
    options |= indexed if "RECORD" in index else {}
    table = TestTable(options=options)
    table.bulk_insert(("b", "y", 1, 20))

    result = race(
        table, rows_of(("a", "x", 3, 12), ("n", "x", 1, 1)), rows_of(("a", "x", 2, 11)), {**options, RETRIES: "3"}
    )

    assert result.retries == 1
    assert table.rows() == [("a", "x", 3, 12), ("b", "y", 1, 20), ("n", "x", 1, 1)]


def test_of_two_upserts_of_one_new_key_into_two_partitions_a_global_index_leaves_one_row() -> None:
    options = {"hoodie.index.type": "GLOBAL_SIMPLE"}
    table = TestTable(options=options)
    table.bulk_insert(("b", "y", 1, 20))

    race(table, rows_of(("a", "z", 3, 12)), rows_of(("a", "x", 2, 11)), {**options, RETRIES: "3"})

    assert table.rows() == [("a", "z", 3, 12), ("b", "y", 1, 20)]


def test_upserts_of_different_new_keys_do_not_collide(table: TestTable) -> None:
    result = race(table, rows_of(("a2", "z", 1, 1)), rows_of(("a1", "z", 1, 1), ("a3", "z", 1, 1)), {})

    assert result.retries == 0
    assert len(table.rows()) == 5


def test_who_names_a_mode_has_hudis_conflicts_alone(table: TestTable) -> None:
    race(table, rows_of(("n", "z", 1, 1)), rows_of(("n", "z", 1, 2)), MANY)

    assert [row[0] for row in table.rows()].count("n") == 2
