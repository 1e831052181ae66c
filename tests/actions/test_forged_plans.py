"""Plans and markers are files that anyone may have put there: they delete nothing that they have no right to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyhudi.errors import CorruptFile, HudiError, TableError
from pyhudi.filegroup.write.markers import sweep
from pyhudi.formats.timeline.clean_plans import encode_clean_plan
from pyhudi.formats.timeline.instant_files import encode_rollback_plan
from pyhudi.formats.timeline.savepoints import encode_restore_plan
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.plans import CleanPlan, InstantInfo, RestorePlan, RollbackPlan, RollbackRequest
from pyhudi.storage import MemoryStorage
from pyhudi.timeline.listing import instant_path
from pyhudi.transaction.instants import TimelineWriter
from pyhudi.transaction.undo import check_plan
from tests.support.tables.archived import archived, savepoint, upserts
from tests.support.tables.merge_on_read import MergeOnRead
from tests.support.tables.small import TestTable
from tests.support.writers.dying import die_before_completing

NEW = ("n", "y", 1, 1)


@pytest.fixture(params=["6", "9"])
def table(request: pytest.FixtureRequest) -> TestTable:
    made = TestTable(options={"hoodie.write.table.version": request.param})
    made.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    return made


def data_files(table: TestTable) -> tuple[str, ...]:
    found = (info.path for info in table.storage.walk("") if not info.path.startswith(".hoodie/"))
    return tuple(path for path in found if path.endswith(".parquet"))


def forge(table: TestTable, action: ActionKind, body: bytes) -> str:
    """A plan on the timeline; its instant."""
    time = str(int(table.meta.timeline.latest_time or "") + 1)
    TimelineWriter(table.storage, table.meta.config).request(time, action, body)
    return time


def forge_rollback(table: TestTable, time: str, *files: str, partition: str = "x", action: str = "commit") -> str:
    request = RollbackRequest(partition, files_to_be_deleted=files)
    return forge(table, ActionKind.ROLLBACK, encode_rollback_plan(RollbackPlan(InstantInfo(time, action), (request,))))


def forge_pending(table: TestTable, time: str, action: ActionKind = ActionKind.COMMIT) -> None:
    writer = TimelineWriter(table.storage, table.meta.config)
    writer.start(writer.request(time, action))


def assert_refuses_and_keeps(table: TestTable, error: type[HudiError], words: str) -> None:
    """The next write says what is wrong, and nothing is lost."""
    rows, files = table.rows(), data_files(table)
    with pytest.raises(error, match=words):
        table.upsert(NEW)
    assert data_files(table) == files
    assert table.rows() == rows


@pytest.mark.parametrize("target", ["2", "0", "20", "21", "2026"])
def test_a_rollback_plan_deletes_no_file_whose_instant_only_contains_its_own(table: TestTable, target: str) -> None:
    forge_rollback(table, target, f"/t/x/f_0-1-0_{target}.parquet", data_files(table)[0])
    assert_refuses_and_keeps(table, CorruptFile, "did not write")


@pytest.mark.parametrize("target", ["2", "21"])
@pytest.mark.parametrize("io_type", ["CREATE", "MERGE"])
def test_a_marker_of_a_pending_instant_deletes_no_file_of_another(table: TestTable, target: str, io_type: str) -> None:
    forge_pending(table, target)
    table.storage.write(f".hoodie/.temp/{target}/{data_files(table)[0]}.marker.{io_type}", b"")
    files, timeline = data_files(table), table.meta.timeline.instants
    with pytest.raises(CorruptFile, match="did not write"):
        table.upsert(NEW)
    assert data_files(table) == files
    assert table.meta.timeline.instants == timeline  # no plan waits there for good


def test_a_marker_of_a_write_deletes_no_file_of_another(table: TestTable) -> None:
    for name in data_files(table):
        table.storage.write(f".hoodie/.temp/2/{name}.marker.CREATE", b"")
    files = data_files(table)
    with pytest.raises(CorruptFile, match="did not write"):
        sweep(table.storage, "2", ())
    assert data_files(table) == files


@pytest.mark.parametrize("partition", ["../other", ".hoodie", "/etc", "x/../y"])
def test_a_rollback_plan_names_no_folder_that_is_no_partition(table: TestTable, partition: str) -> None:
    dead = die_before_completing(table, ("a", "x", 2, 99))
    forge_rollback(table, dead, f"f_0-1-0_{dead}.parquet", partition=partition)
    assert_refuses_and_keeps(table, CorruptFile, "did not write")


def test_a_rollback_plan_with_an_action_of_no_release_is_refused(table: TestTable) -> None:
    forge_rollback(table, "21", action="explode")
    assert_refuses_and_keeps(table, CorruptFile, "'explode'")


def test_a_rollback_plan_undoes_no_commit_that_later_ones_follow(table: TestTable) -> None:
    first = table.meta.timeline.instants[0].requested_time
    table.upsert(("a", "x", 2, 11))
    forge_rollback(table, first, *(name for name in data_files(table) if first in name))
    assert_refuses_and_keeps(table, TableError, "later writes are complete")


def test_a_rollback_plan_undoes_no_commit_that_has_a_savepoint(table: TestTable) -> None:
    (first,) = table.meta.timeline.instants
    savepoint(table, first.requested_time)
    forge_rollback(table, first.requested_time, *data_files(table))
    assert_refuses_and_keeps(table, TableError, "it has a savepoint")


def test_a_rollback_plan_undoes_no_service(table: TestTable) -> None:
    writer = TimelineWriter(table.storage, table.meta.config)
    time = str(int(table.meta.timeline.latest_time or "") + 1)
    instant = writer.start(writer.request(time, ActionKind.CLEAN))
    writer.complete(instant, str(int(time) + 1), b"")
    forge_rollback(table, time, action="clean")
    assert_refuses_and_keeps(table, TableError, "it is a clean")


def test_a_rollback_plan_deletes_no_file_of_an_archived_commit() -> None:
    table = TestTable()
    times = upserts(table, 6)
    archived(table)
    assert times[0] not in {instant.requested_time for instant in table.meta.timeline}
    rows = table.rows()
    files = [path for path in data_files(table) if times[0] in path]
    forge_rollback(table, times[0], *files)

    table.upsert(NEW)

    assert set(files) <= set(data_files(table))
    assert set(rows) < set(table.rows())


def test_log_blocks_of_an_archived_commit_are_not_taken_back() -> None:
    table = MergeOnRead("6")
    table.bulk_insert(("a", "x", 1, 10))
    written = table.upsert(("a", "x", 2, 11)).instant_time
    table.upsert(("b", "x", 1, 5))
    log = min(info.path for info in table.storage.walk("x") if ".log." in info.name)
    # As archiving leaves it.
    for state in State:
        table.storage.delete(instant_path(Instant(written, ActionKind.DELTACOMMIT, state), table.meta.config))
    for instant in [i for i in table.meta.timeline if i.requested_time < written]:
        for state in State:
            table.storage.delete(instant_path(instant.at(state), table.meta.config))
    rows = table.rows()
    file_id, _, rest = log.rpartition("/")[2].removeprefix(".").partition("_")
    blocks = {table.storage.full_path(log): 1}
    request = RollbackRequest("x", file_id, rest.partition(".")[0], (), blocks)
    plan = RollbackPlan(InstantInfo(written, "deltacommit"), (request,))
    forge(table, ActionKind.ROLLBACK, encode_rollback_plan(plan))

    table.upsert(NEW)

    assert set(rows) < set(table.rows())


def test_a_pending_write_with_the_time_of_a_commit_is_not_undone(table: TestTable) -> None:
    time = table.meta.timeline.instants[0].requested_time
    forge_pending(table, time, ActionKind.DELTACOMMIT)
    files, timeline = data_files(table), table.meta.timeline.instants
    with pytest.raises(CorruptFile, match="a write of the same instant time is committed"):
        table.upsert(NEW)
    assert data_files(table) == files
    assert table.meta.timeline.instants == timeline


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_pending_write_with_the_time_of_an_archived_commit_is_not_undone(version: str) -> None:
    table = TestTable(options={"hoodie.write.table.version": version})
    times = upserts(table, 6)
    archived(table)
    files = data_files(table)
    forge_pending(table, times[0])
    with pytest.raises(CorruptFile, match="a write of the same instant time is committed"):
        table.upsert(NEW)
    assert data_files(table) == files


def test_a_restore_plan_undoes_no_savepointed_commit(table: TestTable) -> None:
    first = table.meta.timeline.instants[0].requested_time
    second = table.upsert(("a", "x", 2, 11)).instant_time
    savepoint(table, second)
    forge(table, ActionKind.RESTORE, encode_restore_plan(RestorePlan((InstantInfo(second, "commit"),), first)))
    assert_refuses_and_keeps(table, TableError, "which has a savepoint")


def test_a_restore_plan_does_not_undo_what_it_goes_back_to(table: TestTable) -> None:
    (first,) = table.meta.timeline.instants
    plan = RestorePlan((InstantInfo(first.requested_time, "commit"),), first.requested_time)
    forge(table, ActionKind.RESTORE, encode_restore_plan(plan))
    assert_refuses_and_keeps(table, TableError, "is what it goes back to")


def test_a_clean_plan_deletes_neither_newest_files_nor_those_of_later_writes(table: TestTable) -> None:
    table.upsert(("a", "x", 2, 11))
    old, *_ = (path for path in data_files(table) if table.meta.timeline.instants[0].requested_time in path)
    assert old.startswith("x/")
    time = str(int(table.meta.timeline.latest_time or "") + 1)
    later = str(int(time) + 1)
    table.storage.write(f"x/f-0_0-1-0_{later}.parquet", b"of a write that runs")
    names = {p: tuple(f.name for f in table.storage.list(p) if f.name.endswith(".parquet")) for p in ("x", "y")}
    assert len(names["x"]) == 3
    writer = TimelineWriter(table.storage, table.meta.config)
    writer.request(time, ActionKind.CLEAN, encode_clean_plan(CleanPlan("P", None, "", names, (), {}), str))
    rows = table.rows()

    table.upsert(NEW, clean_commits_retained="1")

    assert table.meta.timeline.find(time, ActionKind.CLEAN).is_completed  # type: ignore[union-attr]
    assert table.storage.stat(old) is None
    assert table.storage.stat(f"x/f-0_0-1-0_{later}.parquet") is not None
    assert set(rows) < set(table.rows())


@pytest.mark.parametrize("path", ["../x", ".hoodie", "/x"])
def test_a_clean_plan_names_no_folder_that_is_no_partition(table: TestTable, path: str) -> None:
    plan = CleanPlan("P", None, "", {path: ("f_0-1-0_1.parquet",)}, (), {})
    forge(table, ActionKind.CLEAN, encode_clean_plan(plan, str))
    files = data_files(table)
    with pytest.warns(UserWarning, match="which is not a partition"):
        table.upsert(NEW, clean_commits_retained="1")
    assert set(files) <= set(data_files(table))


@pytest.mark.parametrize(("file_id", "base"), [("../x", "1"), ("x", "../1")])
def test_a_rollback_plan_names_no_log_file_of_another_folder(file_id: str, base: str) -> None:
    request = RollbackRequest("p", file_id, base, log_blocks_to_be_deleted={"/t/p/.x_1.log.1_0-1-0": 10})
    plan = RollbackPlan(InstantInfo("2", "deltacommit"), (request,))
    with pytest.raises(CorruptFile, match="did not write"):
        check_plan(plan, MemoryStorage())
    own = replace(request, file_id="x", latest_base_instant="1")
    check_plan(replace(plan, requests=(own,)), MemoryStorage())
