"""What a running write has to notice before it completes: another write, a plan, or that others took it for dead."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.errors import HudiError, WriteConflict
from pyhudi.model.instant import ActionKind
from pyhudi.storage.clock import FixedClock
from pyhudi.storage.memory import MemoryStorage
from pyhudi.transaction.instants import TimelineWriter
from tests.support.tables.clustered import TYPES, Clustered
from tests.support.tables.merge_on_read import VERSIONS, MergeOnRead
from tests.support.tables.small import Row, TestTable
from tests.support.writers.dying import on_clone
from tests.support.writers.interrupted import InterruptedEngine

START: list[Row] = [("a", "x", 1, 10), ("b", "y", 1, 20)]
NOON_MS = 1_760_000_000_000
TEN_MINUTES_MS = 600_000  # by then a writer that gives no sign of life is dead
LONGEST_S = 60  # only a test that fails waits for so long


def loaded(clock: FixedClock | None = None) -> TestTable:
    clock = clock or FixedClock(NOON_MS)
    table = TestTable(MemoryStorage(clock=clock), clock=clock, engine=LocalEngine(1), failed_writes_policy="LAZY")
    table.bulk_insert(*START)
    return table


def timeline_words(table: TestTable) -> list[str]:
    return [f"{i.action.value}.{i.state.name.lower()}" for i in table.meta.timeline.pending()]


# ---- another write ---------------------------------------------------------------------------------------------------


def test_a_write_that_was_pending_when_ours_began_and_completes_before_it_is_a_conflict() -> None:
    table = loaded()
    has_begun, may_end = Event(), Event()

    def stay() -> None:
        has_begun.set()
        assert may_end.wait(LONGEST_S)

    first, second = on_this(table), on_this(table)
    first.engine = InterruptedEngine(stay)
    with ThreadPoolExecutor(1) as pool:
        earlier = pool.submit(first.upsert, ("a", "x", 2, 11))
        assert has_begun.wait(LONGEST_S)

        def let_the_first_end() -> None:
            assert timeline_words(table) == ["commit.inflight", "commit.inflight"]
            may_end.set()
            earlier.result(LONGEST_S)

        second.engine = InterruptedEngine(let_the_first_end)
        try:
            with pytest.raises(WriteConflict, match="changed file groups"):
                second.upsert(("a", "x", 2, 12), ("new", "x", 1, 30))
        finally:
            may_end.set()
    assert table.rows() == [("a", "x", 2, 11), START[1]]


def on_this(table: TestTable) -> TestTable:
    """Another writer of the table."""
    return TestTable(
        table.storage, table.options, clock=table.clock, engine=LocalEngine(1), failed_writes_policy="LAZY"
    )


# ---- a plan ----------------------------------------------------------------------------------------------------------


def compaction_planned_by_others(table: MergeOnRead) -> None:
    """By a program that does not wait for pending writes, as Hudi does not when there are many writers."""
    blind = on_clone(table)
    meta = blind.meta
    for instant in meta.timeline.pending():
        TimelineWriter(meta.storage, meta.config).delete_files(instant)
    before = set(blind.memory.paths())
    blind.compact_now(schedule_only=True)
    for path in set(blind.memory.paths()) - before:
        table.storage.write(path, blind.storage.read(path))


def test_below_version_8_log_files_give_way_to_a_compaction_that_was_planned_meanwhile() -> None:
    """They would go to the slice that the plan has read, where nobody looks for them once it is compacted."""
    table = MergeOnRead("6", clean_failed_writes_policy="LAZY")
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20))
    table.upsert(("a", "x", 2, 11))
    quiet, table.engine = table.engine, InterruptedEngine(lambda: compaction_planned_by_others(table))
    with pytest.raises(WriteConflict, match=r"the compaction \d+ was planned"):
        table.upsert(("b", "x", 2, 21))
    assert table.rows() == [("a", "x", 2, 11), ("b", "x", 1, 20)]
    assert timeline_words(table) == ["compaction.requested"]

    table.engine = quiet
    table.upsert(("b", "x", 3, 22))
    table.compact_now()
    assert table.rows() == [("a", "x", 2, 11), ("b", "x", 3, 22)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
def test_a_write_gives_way_to_a_clustering_of_its_file_groups_that_was_planned_meanwhile(
    table_type: str, version: str
) -> None:
    """Whoever runs the plan may not look for what came after it, so it is the write that has to."""
    table = Clustered(version, table_type, clean_failed_writes_policy="LAZY")
    table.insert(("a", "x", 1, 10))
    table.insert(("b", "x", 1, 20))
    table.engine = InterruptedEngine(lambda: table.cluster(schedule_only=True, clean_failed_writes_policy="LAZY"))
    with pytest.raises(WriteConflict, match=r"the clustering \d+ was planned"):
        table.upsert(("a", "x", 2, 11))

    (plan,) = table.meta.timeline.pending()
    assert table.meta.reader.clustering_plan(plan) is not None, "it is the plan that stays"
    assert table.rows() == [("a", "x", 1, 10), ("b", "x", 1, 20)]


# ---- taken for dead --------------------------------------------------------------------------------------------------


def test_a_writer_whose_heart_has_not_beaten_for_too_long_does_not_complete() -> None:
    clock = FixedClock(NOON_MS)
    table = loaded(clock)
    table.engine = InterruptedEngine(lambda: clock.advance(TEN_MINUTES_MS))
    with pytest.raises(WriteConflict, match=r"heartbeat of \d+ expired while it was running"):
        table.upsert(("a", "x", 2, 11))

    assert table.rows() == START
    assert not timeline_words(table), "it has undone itself"


def test_a_writer_whose_rollback_another_one_has_begun_does_not_complete() -> None:
    """Its own clock tells it nothing; who finishes the rollback would delete files of a write that is complete."""
    table = loaded()
    others = on_this(table)
    others.clock = FixedClock(NOON_MS + TEN_MINUTES_MS)

    def rolled_back_by_halves() -> None:
        rehearsal = on_clone(others)
        rehearsal.upsert(("b", "y", 2, 21))
        calls = rehearsal.memory.log
        begun = next(n for n, (_, path) in enumerate(calls, 1) if path.endswith(".rollback.inflight"))
        others.memory.fail_at(begun, "after")
        with pytest.raises(HudiError):
            others.upsert(("b", "y", 2, 21))
        others.memory.reset_faults()
        assert timeline_words(table) == ["commit.inflight", "rollback.inflight"]

    table.engine = InterruptedEngine(rolled_back_by_halves)
    with pytest.raises(WriteConflict, match="considered it dead"):
        table.upsert(("a", "x", 2, 11))

    assert table.rows() == START
    assert not timeline_words(table), "it has finished its own rollback"
    assert [i.is_completed for i in table.meta.timeline if i.action is ActionKind.ROLLBACK] == [True]
    others.upsert(("a", "x", 2, 12))
    assert table.rows() == [("a", "x", 2, 12), START[1]]
