"""Rollbacks: of dead writers before the next write, and of the newest commit on demand."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.actions.undo.restore_result import RollbackResult
from pyhudi.errors import TableError
from pyhudi.formats.timeline.instant_files import decode_rollback_metadata, decode_rollback_plan, encode_rollback_plan
from pyhudi.model.instant import ActionKind, State
from pyhudi.model.options import WriteOptions
from pyhudi.model.plans import InstantInfo, RollbackPlan, RollbackRequest
from pyhudi.storage.clock import SystemClock
from pyhudi.storage.local import LocalStorage
from pyhudi.transaction.instants import TimelineWriter
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.merge_on_read import MergeOnRead
from tests.support.tables.small import DEFAULTS, TestTable, rollback_write
from tests.support.writers.dying import die_before_completing


@pytest.fixture(params=["6", "8", "9"])
def table(request: pytest.FixtureRequest) -> TestTable:
    made = TestTable(options={"hoodie.write.table.version": request.param})
    made.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    return made


def roll_back(table: TestTable, instant_time: str) -> RollbackResult:
    return rollback_write(table.storage, instant_time, WriteOptions.parse(DEFAULTS), table.engine)


def test_the_next_writer_undoes_a_dead_one(table: TestTable) -> None:
    dead = die_before_completing(table, ("a", "x", 2, 99))
    result = table.upsert(("b", "y", 2, 21))

    assert result.rolled_back == (dead,)
    assert table.rows() == [("a", "x", 1, 10), ("b", "y", 2, 21)]
    assert not [info for info in table.storage.walk("") if f"_{dead}." in info.path]
    assert not table.storage.list(f".hoodie/.temp/{dead}")


def test_a_rollback_of_a_dead_writer_says_what_hudi_says(table: TestTable) -> None:
    dead = die_before_completing(table, ("a", "x", 2, 99))
    table.upsert(("b", "y", 2, 21))

    meta = table.meta
    (instant,) = (i for i in meta.timeline if i.action is ActionKind.ROLLBACK)
    reader = meta.reader
    plan = decode_rollback_plan(reader.read_body(instant, State.REQUESTED))
    done = decode_rollback_metadata(reader.read_body(instant, State.COMPLETED))
    assert reader.read_body(instant, State.INFLIGHT) == b""
    # As in the golden tables state_failed_then_rolled_back of Hudi 0.15.0 and 1.2.0: a request per file, with file id
    # and instant because it comes from a marker, absolute paths.
    (request,) = plan.requests
    assert (plan.instant_to_rollback.commit_time, plan.instant_to_rollback.action) == (dead, "commit")
    assert (request.partition_path, request.latest_base_instant) == ("x", dead)
    (path,) = request.files_to_be_deleted
    assert path.startswith(f"{meta.storage.root}/x/{request.file_id}_")
    assert path.endswith(f"_{dead}.parquet")
    assert done.start_rollback_time == instant.requested_time
    assert done.commits_rollback == (dead,)
    assert done.instants_rollback == (plan.instant_to_rollback,)
    assert done.total_files_deleted == 1
    assert done.partitions["x"].success_delete_files == (path,)


def test_the_newest_commit_is_undone_on_demand(table: TestTable) -> None:
    result = table.upsert(("a", "x", 2, 11), ("c", "z", 1, 30))
    done = roll_back(table, result.instant_time)

    assert table.rows() == [("a", "x", 1, 10), ("b", "y", 1, 20)]
    assert table.meta.timeline.find(result.instant_time) is None
    assert (done.instant_times, done.files_deleted) == ((result.instant_time,), 2)
    table.upsert(("c", "z", 1, 31))
    assert table.rows() == [("a", "x", 1, 10), ("b", "y", 1, 20), ("c", "z", 1, 31)]


def test_a_plan_from_a_commit_names_no_file_groups(table: TestTable) -> None:
    result = table.upsert(("a", "x", 2, 11))
    roll_back(table, result.instant_time)

    meta = table.meta
    (instant,) = (i for i in meta.timeline if i.action is ActionKind.ROLLBACK)
    plan = decode_rollback_plan(meta.reader.read_body(instant, State.REQUESTED))
    assert [(request.file_id, request.latest_base_instant) for request in plan.requests] == [("", "")]


def test_a_commit_with_later_commits_is_not_undone(table: TestTable) -> None:
    first = table.upsert(("a", "x", 2, 11))
    second = table.upsert(("a", "x", 3, 12))
    with pytest.raises(TableError, match=second.instant_time):
        roll_back(table, first.instant_time)
    assert table.rows() == [("a", "x", 3, 12), ("b", "y", 1, 20)]


def test_an_unknown_instant_is_not_undone(table: TestTable) -> None:
    with pytest.raises(TableError, match="20200101000000000"):
        roll_back(table, "20200101000000000")


def test_a_pending_write_without_markers_is_undone_by_its_file_names(table: TestTable) -> None:
    dead = die_before_completing(table, ("a", "x", 2, 99))
    table.storage.delete_tree(f".hoodie/.temp/{dead}")
    table.upsert(("b", "y", 2, 21))

    assert not [info for info in table.storage.walk("") if f"_{dead}." in info.path]


def test_a_lazy_writer_leaves_others_alone_until_their_heartbeat_expires(table: TestTable) -> None:
    dead = die_before_completing(table, ("a", "x", 2, 99))
    beat = f".hoodie/.heartbeat/{dead}"
    table.storage.write(beat, b"")
    table.storage.set_modified(beat, SystemClock().now_ms())
    table.failed_writes_policy = "LAZY"
    table.upsert(("b", "y", 2, 21))
    assert table.meta.timeline.find(dead) is not None

    table.storage.set_modified(beat, 1)
    table.upsert(("b", "y", 3, 22))
    assert table.meta.timeline.find(dead) is None


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_log_file_that_a_plan_of_hudi_names_by_its_blocks_is_deleted(version: str) -> None:
    """From version 8 on one write makes a log file, so that nothing else can be in it."""
    table = MergeOnRead(version)
    table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    before = table.paths()
    dead = table.upsert(("a", "x", 2, 11)).instant_time
    (path,) = table.logs()
    meta = table.meta
    (base,) = (s.base_file for s in FileSystemView.load(meta).slices("x"))
    completed = meta.timeline.find(dead)
    assert base is not None
    assert completed is not None
    writer = TimelineWriter(meta.storage, meta.config)
    writer.revert_to_inflight(completed)
    blocks = {meta.storage.full_path(path): len(meta.storage.read(path))}
    request = RollbackRequest("x", base.file_id, base.instant_time, (), blocks)
    plan = RollbackPlan(InstantInfo(dead, "deltacommit"), (request,))
    time = str(int(meta.timeline.latest_time or "") + 1)
    writer.request(time, ActionKind.ROLLBACK, encode_rollback_plan(plan))

    assert table.upsert(("b", "y", 2, 21)).rolled_back == (dead,)

    assert [name for name in table.paths() if name.startswith("x/")] == [n for n in before if n.startswith("x/")]
    assert table.rows() == [("a", "x", 1, 10), ("b", "y", 2, 21)]
    (instant,) = table.meta.timeline.of([ActionKind.ROLLBACK])
    done = decode_rollback_metadata(table.meta.reader.read_body(instant, State.COMPLETED))
    assert (done.total_files_deleted, done.partitions["x"].success_delete_files) == (1, tuple(blocks))
    assert not done.partitions["x"].rollback_log_files


def test_paths_in_plans_have_no_scheme(tmp_path: Path) -> None:
    table = TestTable(LocalStorage(str(tmp_path)))
    table.bulk_insert(("a", "x", 1, 10))
    result = table.upsert(("a", "x", 2, 11))
    roll_back(table, result.instant_time)

    meta = table.meta
    (instant,) = (i for i in meta.timeline if i.action is ActionKind.ROLLBACK)
    body = meta.reader.read_body(instant, State.COMPLETED)
    (path,) = decode_rollback_metadata(body).partitions["x"].success_delete_files
    assert path.startswith(f"{tmp_path}/x/")
