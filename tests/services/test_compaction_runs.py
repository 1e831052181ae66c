"""Compactions that fail, die, run twice, or follow a write."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.errors import HudiError, TableError, WriteConflict
from pyhudi.filegroup.rewrite.compact import CompactSlices
from pyhudi.model.filenames import heartbeat_path, marker_folder
from pyhudi.model.instant import ActionKind, State
from pyhudi.services import planned
from pyhudi.services.compact import compaction
from pyhudi.services.planned import pending_plans
from pyhudi.storage.memory import MemoryStorage
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.compacted import ROWS, Compacted
from tests.support.tables.merge_on_read import VERSIONS, MergeOnRead


class Broken(Exception):
    pass


@pytest.mark.thorough
def test_a_run_that_fails_is_taken_back_to_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    for version in VERSIONS:
        table = Compacted(version).start()
        files = table.paths()
        with monkeypatch.context() as patch:
            patch.setattr(CompactSlices, "__call__", _fails_after_writing)
            with pytest.raises(Broken):
                table.compact()
        assert table.paths() == files
        (instant,) = table.meta.timeline.pending().instants
        assert (instant.action, instant.state) == (ActionKind.COMPACTION, State.REQUESTED)
        assert not table.storage.list(marker_folder(instant.requested_time))
        assert table.rows() == ROWS
        assert table.compact().instant_times == (instant.requested_time,)
        assert table.rows() == ROWS


_real_call = CompactSlices.__call__


def _fails_after_writing(self: CompactSlices, task: Any, file_slice: Any) -> Any:
    list(_real_call(self, task, file_slice))
    raise Broken


def _dead_run(table: Compacted) -> str:
    """A compaction whose process died after it had written its files."""
    scheduled = table.compact(schedule_only=True).scheduled
    assert scheduled is not None
    memory = table.storage
    assert isinstance(memory, MemoryStorage)
    counted = memory.clone()
    attempt = Compacted()
    attempt.storage, attempt.options, attempt.engine = counted, table.options, LocalEngine(1)
    attempt.compact()
    creations = [at for at, (verb, path) in enumerate(counted.log) if verb == "create_new" and path.endswith("commit")]
    table.engine = LocalEngine(1)
    memory.reset_faults()
    memory.fail_at(creations[-1] + 1, "before")
    with pytest.raises(HudiError):
        table.compact()
    memory.reset_faults()
    assert [instant.state for instant in table.meta.timeline.pending()] == [State.INFLIGHT]
    return scheduled


@pytest.mark.parametrize("version", VERSIONS)
def test_a_dead_run_is_taken_back_by_the_next_one(version: str) -> None:
    table = Compacted(version).start()
    dead = _dead_run(table)
    left = [path for path in table.base_names() if dead in path]
    assert left
    assert table.rows() == ROWS
    assert table.compact().instant_times == (dead,)
    assert table.rows() == ROWS
    assert len([path for path in table.base_names() if dead in path]) == len(left), "nothing is left of the dead run"


@pytest.mark.thorough
def test_writing_goes_on_over_a_dead_run() -> None:
    for version in VERSIONS:
        table = Compacted(version).start()
        _dead_run(table)
        table.upsert(("a", "x", 8, 80))
        assert table.rows() == [("a", "x", 8, 80), ROWS[1]]
        table.compact()
        assert table.rows() == [("a", "x", 8, 80), ROWS[1]]
        assert not table.pending()


def test_a_run_with_a_fresh_heartbeat_is_left_alone() -> None:
    table = Compacted("9").start()
    dead = _dead_run(table)
    table.storage.write(heartbeat_path(dead), b"")
    table.storage.set_modified(heartbeat_path(dead), table.clock.now_ms())
    with pytest.raises(WriteConflict, match="heartbeat is fresh"):
        table.compact(policy="LAZY")
    table.storage.set_modified(heartbeat_path(dead), table.clock.now_ms() - 10 * 60_000)
    assert table.compact(policy="LAZY").instant_times == (dead,)
    assert table.storage.stat(heartbeat_path(dead)) is None


@pytest.mark.thorough
def test_of_two_runs_of_one_plan_one_completes_and_no_row_is_lost() -> None:
    """The slower run is taken for dead: its files go, and it must not complete with them."""
    for version in VERSIONS:
        table = Compacted(version).start()
        scheduled = table.compact(schedule_only=True).scheduled
        other = Compacted(version)
        other.storage, other.options = table.storage, table.options

        class Overtaken(LocalEngine):
            def collect(self, frame: Any) -> Any:
                result = super().collect(frame)
                assert other.compact().instant_times == (scheduled,)  # noqa: B023
                return result

        table.engine = Overtaken(1)
        with pytest.raises(WriteConflict):
            table.compact()
        table.engine = LocalEngine(1)
        assert table.rows() == ROWS
        assert not table.pending()
        assert table.compact().runs == ()


@pytest.mark.parametrize("at_end_of", ["a call", "a write"])
def test_a_plan_that_another_process_carries_out_while_this_one_waits_for_the_lock_is_no_error(
    at_end_of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Compacted().start()
    scheduled = table.compact(schedule_only=True).scheduled
    others: list[Any] = []
    module = planned if at_end_of == "a call" else compaction
    real = pending_plans

    def seen_before_another_was_quicker(service: Any, context: Any) -> Any:
        waiting = real(service, context)
        if waiting and not others:
            others.append(None)
            other = Compacted()
            other.storage, other.options = table.storage, table.options
            others.append(other.compact().instant_times)
        return waiting

    monkeypatch.setattr(module, "pending_plans", seen_before_another_was_quicker)
    if at_end_of == "a call":
        assert table.compact().runs == ()
        expected = ROWS
    else:
        table.options = {**table.options, "hoodie.compact.inline": "true"}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert table.upsert(("a", "x", 8, 80)).compacted == ()
        expected = [("a", "x", 8, 80), ROWS[1]]
    assert others[1][0] == scheduled
    assert table.rows() == expected
    assert not table.pending()


# ---- at the end of a write


@pytest.mark.thorough
def test_a_write_compacts_when_the_trigger_says_so() -> None:
    for version in VERSIONS:
        table = MergeOnRead(version, compact_inline="true")
        results = [table.upsert(("a", "x", n, n), ("b", "y", n, n)) for n in range(1, 11)]
        assert [bool(result.compacted) for result in results] == [n % 5 == 0 for n in range(1, 11)]
        assert "compaction" in results[4].seconds
        assert table.rows() == [("a", "x", 10, 10), ("b", "y", 10, 10)]
        assert not any(s.log_files for s in FileSystemView.load(table.meta).all_slices())


def test_a_write_only_schedules_when_asked() -> None:
    table = Compacted("9", compact_schedule_inline="true", compact_inline_max_delta_commits="2")
    table.upsert(("a", "x", 1, 1))
    assert not table.pending()
    table.upsert(("a", "x", 2, 2))
    assert len(table.pending()) == 1
    assert table.rows() == [("a", "x", 2, 2)]


def test_a_write_merges_log_blocks_when_asked() -> None:
    table = Compacted("9", log_compaction_inline="true", log_compaction_blocks_threshold="3")
    results = [table.upsert(("a", "x", n, n)) for n in range(5)]
    assert [bool(result.compacted) for result in results] == [False, False, False, True, False]
    assert table.rows() == [("a", "x", 4, 4)]


def test_a_compaction_that_fails_after_a_write_is_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Compacted("9", compact_inline="true", compact_inline_max_delta_commits="2")
    table.upsert(("a", "x", 1, 1))

    def fails(*_: Any) -> Any:
        raise TableError("no luck")

    monkeypatch.setattr(CompactSlices, "__call__", fails)
    with pytest.warns(UserWarning, match="the write is complete, but the compaction after it failed.*no luck"):
        table.upsert(("a", "x", 2, 2))
    assert table.rows() == [("a", "x", 2, 2)]
    assert len(table.pending()) == 1
    monkeypatch.undo()
    assert table.upsert(("a", "x", 3, 3)).compacted
    assert table.rows() == [("a", "x", 3, 3)]
