"""Savepoints, restores and rollbacks to an instant: the rows of then, and nothing of what came after."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from pyhudi.actions.undo.restore import restore, roll_back
from pyhudi.errors import TableError, WriteConflict
from pyhudi.formats.timeline.savepoints import decode_restore_metadata, decode_restore_plan, decode_savepoint
from pyhudi.model.instant import ActionKind, State
from pyhudi.services.savepoint import delete_savepoint, load_savepoints
from pyhudi.transaction.instants import TimelineWriter
from pyhudi.view.readable_history import load_readable_history
from tests.support.tables.archived import archived, clean
from tests.support.tables.cleaned import call as clean_now
from tests.support.tables.merge_on_read import VERSIONS
from tests.support.tables.small import TestTable
from tests.support.tables.undone import (
    TABLES,
    clustering,
    compact,
    data_files,
    delete,
    log_compact,
    overwrite,
    restored,
    rolled_back,
    saved,
    served,
    upsert,
)

AFTERWARDS: dict[str, tuple[Callable[[TestTable], object], ...]] = {
    "upserts": (upsert, delete, upsert),
    "overwrite": (overwrite, upsert),
    "clustering": (upsert, clustering, upsert),
    "compaction": (upsert, compact, upsert, delete),
    "compaction at once": (compact,),
    "compaction that waits": (upsert, partial(compact, schedule_only=True), upsert),
    "log compaction": (upsert, delete, log_compact, upsert),
    "everything": (upsert, compact, overwrite, upsert, clustering, upsert, delete, compact, upsert),
}
FOR_LOGS = {"compaction", "compaction at once", "compaction that waits", "log compaction", "everything"}
CASES = [
    (kind, version, name)
    for kind in TABLES
    for version in VERSIONS
    for name in AFTERWARDS
    if kind == "merge on read" or name not in FOR_LOGS
]


def started(kind: str, version: str) -> tuple[TestTable, str]:
    """A table and its newest instant."""
    table = TABLES[kind](version)
    table.bulk_insert(("a", "x", 1, 1), ("b", "x", 1, 2), ("c", "y", 1, 3))
    return table, table.upsert(("a", "x", 2, 10)).instant_time


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "version", "name"), CASES)
def test_a_restore_brings_back_the_rows_and_the_files_of_the_savepoint(kind: str, version: str, name: str) -> None:
    table, time = started(kind, version)
    rows, files = table.rows(), data_files(table)
    point = saved(table, time, user="ann", comment="before the change")
    for step in AFTERWARDS[name]:
        step(table)
    assert table.rows() != rows or name == "compaction at once"

    result = restored(table, time)

    assert table.rows() == rows
    assert [path for path in files if path not in data_files(table)] == []
    if version != "6":  # there, logs of delta commits stay, and command blocks take their rows back
        assert data_files(table) == files
    left = table.meta.timeline
    assert not left.pending().instants
    assert [i.requested_time for i in left.commits()][-1] == time
    assert not left.of([ActionKind.ROLLBACK]).instants
    assert result.instant_time == left.of([ActionKind.RESTORE]).instants[-1].requested_time
    assert time in str(result)
    assert not table.storage.list(".hoodie/.temp")
    assert point.instant_time == load_savepoints(table.meta)[0].instant_time == time
    assert table.rows(as_of=time) == rows

    table.upsert(("a", "x", 3, 30), ("after", "w", 1, 1))
    expected = [row for row in rows if row[0] != "a"] + [("a", "x", 3, 30), ("after", "w", 1, 1)]
    assert table.rows() == sorted(expected, key=repr)
    if kind == "merge on read":
        compact(table)
        assert table.rows() == sorted(expected, key=repr)


@pytest.mark.parametrize(("kind", "version", "name"), [c for c in CASES if c[2] != "compaction that waits"])
def test_rollbacks_to_an_instant_bring_back_its_rows_one_by_one(kind: str, version: str, name: str) -> None:
    table, time = started(kind, version)
    rows, files = table.rows(), data_files(table)
    for step in AFTERWARDS[name]:
        step(table)
    count = len(table.meta.timeline.commits().after(time))

    result = rolled_back(table, to=time)

    assert table.rows() == rows
    if version != "6":
        assert data_files(table) == files
    assert len(result.instant_times) == count
    assert list(result.instant_times) == sorted(result.instant_times, reverse=True)
    done = table.meta.timeline.completed()
    assert len(done.of([ActionKind.ROLLBACK])) == count
    table.upsert(("a", "x", 3, 30))
    assert table.rows() == sorted([row for row in rows if row[0] != "a"] + [("a", "x", 3, 30)], key=repr)


@pytest.mark.parametrize("version", VERSIONS)
def test_bodies_say_what_was_saved_and_what_was_undone(version: str) -> None:
    table, time = started("merge on read", version)
    saved(table, time, user="ann", comment="fine")
    reader = table.meta.reader
    (point,) = table.meta.timeline.of([ActionKind.SAVEPOINT])
    body = decode_savepoint(reader.read_body(point, State.COMPLETED))
    assert (body.savepointed_by, body.comments, set(body.files)) == ("ann", "fine", {"x", "y"})
    names = {path.rpartition("/")[2] for path in data_files(table)}
    assert {name for files in body.files.values() for name in files} == names

    later = [table.upsert(("a", "x", n, n), ("n", "z", n, n)).instant_time for n in (3, 4)]
    result = restored(table, time)

    (instant,) = table.meta.timeline.of([ActionKind.RESTORE])
    plan = decode_restore_plan(reader.read_body(instant, State.REQUESTED))
    assert plan.restore_to == time
    assert [i.commit_time for i in plan.instants] == later[::-1]
    done = decode_restore_metadata(reader.read_body(instant, State.COMPLETED))
    assert done.start_restore_time == instant.requested_time == result.instant_time
    assert [i.commit_time for i in done.instants] == later[::-1]
    assert set(done.rollbacks) == set(later)
    for time_, (metadata,) in done.rollbacks.items():
        assert metadata.commits_rollback == (time_,)
        assert set(metadata.partitions) == {"x", "z"}


@pytest.mark.parametrize("more", [1, 2])
def test_below_version_8_no_log_file_stays_that_a_compaction_was_to_begin_a_slice_for(more: int) -> None:
    """Log files of later writes bear its name; Hudi would take them for a slice without a base file."""
    table, time = started("merge on read", "6")
    rows = table.rows()
    compact(table, schedule_only=True)
    (planned,) = table.meta.timeline.pending()
    assert planned.state is State.REQUESTED
    for n in range(more):
        table.upsert(("a", "x", 20 + n, 20 + n))
    named_after_it = [path for path in data_files(table) if planned.requested_time in path]
    assert len(named_after_it) == more

    restored(table, time)

    assert [path for path in data_files(table) if planned.requested_time in path] == []
    assert table.rows() == rows
    table.upsert(("a", "x", 3, 30))
    assert table.rows() == [("a", "x", 3, 30), *rows[1:]]


def test_the_savepoints_are_listed_and_can_be_given_up() -> None:
    table, time = started("copy on write", "9")
    saved(table, comment="the newest")
    with pytest.raises(TableError, match="has a savepoint already"):
        saved(table, time)
    assert [(s.instant_time, s.comment, s.files) for s in load_savepoints(table.meta)] == [(time, "the newest", 2)]
    assert "the newest" in repr(load_savepoints(table.meta))
    assert time in load_savepoints(table.meta)._repr_html_()

    with pytest.raises(TableError, match="has a savepoint"):
        rolled_back(table)
    served(table, partial(delete_savepoint, instant_time=time))

    assert load_savepoints(table.meta) == []
    with pytest.raises(TableError, match="has no savepoint; savepoints: none"):
        served(table, partial(delete_savepoint, instant_time=time))
    assert rolled_back(table).instant_times == (time,)


def test_a_savepoint_whose_writer_died_is_made_by_the_next_call() -> None:
    table, time = started("copy on write", "9")
    (table.storage).write(f"{table.meta.config.timeline_path}/{time}.savepoint.inflight", b"")
    assert load_savepoints(table.meta) == []
    assert saved(table, time).files == 2


def test_what_can_not_be_saved_or_restored_is_said_with_the_reason() -> None:
    table, time = started("copy on write", "9")
    later = table.upsert(("b", "x", 2, 2)).instant_time
    with pytest.raises(TableError, match="no completed commit 19990101000000000"):
        saved(table, "19990101000000000")
    with pytest.raises(TableError, match=r"no completed commit 19990101000000000.*Savepoints: none"):
        restored(table, "19990101000000000")

    saved(table, later)
    with pytest.raises(TableError, match=rf"later commits have savepoints: {later}"):
        restored(table, time)
    assert "already" in str(restored(table, later))
    assert len(table.meta.timeline.of([ActionKind.RESTORE])) == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_goes_back_over_what_was_cleaned(version: str) -> None:
    table, time = started("copy on write", version)
    table.upsert(("b", "x", 2, 2))
    newest = table.upsert(("b", "x", 3, 3)).instant_time
    rows = table.rows()
    clean(table, version, earliest=newest)

    with pytest.raises(TableError, match=f"older than {newest}"):
        restored(table, time)
    with pytest.raises(TableError, match=f"older than {newest}"):
        saved(table, time)
    for path in data_files(table):
        if newest not in path and path.startswith("x/"):
            table.storage.delete(path)
    with pytest.raises(TableError, match="cleaning has deleted what it replaced"):
        rolled_back(table)
    assert table.rows() == rows


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_goes_back_over_what_was_cleaned_when_the_clean_is_archived(version: str) -> None:
    """Hudi archives cleans by their own number, below version 8 before the commits between which they were."""
    table, time = started("copy on write", version)
    table.upsert(("b", "x", 2, 2))
    table.upsert(("b", "x", 3, 3))
    (run,) = clean_now(table, clean_commits_retained="1").runs
    for info in list(table.storage.list(table.meta.config.timeline_path)):
        if info.name.startswith(run.instant_time):
            table.storage.delete(info.path)
    rows, files, instants = table.rows(), data_files(table), table.meta.timeline.instants
    assert load_readable_history(table.meta).is_readable(time), (
        "the timeline does not say any more that something was cleaned"
    )

    with pytest.raises(TableError, match="cleaning has deleted what it replaced: the version of"):
        restored(table, time)

    assert (table.rows(), data_files(table)) == (rows, files)
    assert table.meta.timeline.instants == instants, "no restore has begun"


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_goes_back_over_what_was_archived(version: str) -> None:
    table, time = started("copy on write", version)
    saved(table, time)
    for n in range(5):
        table.upsert(("b", "x", n, n))
    archived(table, archive_beyond_savepoint="true")

    with pytest.raises(TableError, match="later commits were archived"):
        restored(table, time)
    assert table.rows(as_of=time)


def test_a_restore_waits_for_nobody_and_says_who_writes() -> None:
    table, time = started("copy on write", "9")
    table.upsert(("b", "x", 2, 2))
    writer = TimelineWriter(table.storage, table.meta.config)
    at = str(int(table.meta.timeline.latest_time or "") + 1)
    writer.start(writer.request(at, ActionKind.COMMIT))
    table.storage.write(f".hoodie/.heartbeat/{at}", b"")

    with pytest.raises(WriteConflict, match=f"{at}.*is being written"):
        served(table, partial(restore, to=time), clean_failed_writes_policy="LAZY", write_lock_provider="IN_PROCESS")


@pytest.mark.parametrize(("policy", "beats"), [("LAZY", True), ("EAGER", False)])
def test_a_restore_shows_that_it_lives_where_others_look(policy: str, beats: bool) -> None:
    table, time = started("copy on write", "9")
    upsert(table)
    table.storage.reset_faults()

    served(table, partial(restore, to=time), clean_failed_writes_policy=policy, write_lock_provider="IN_PROCESS")

    (done,) = table.meta.timeline.completed().of([ActionKind.RESTORE])
    assert (("write", f".hoodie/.heartbeat/{done.requested_time}") in table.storage.log) == beats
    assert table.storage.stat(f".hoodie/.heartbeat/{done.requested_time}") is None


@pytest.mark.parametrize("version", ["8", "9"])
def test_what_completed_after_the_savepoint_goes_though_it_began_before(version: str) -> None:
    table, _ = started("merge on read", version)
    table.failed_writes_policy = "NEVER"
    early = str(int(table.meta.timeline.latest_time or "") + 1)
    writer = TimelineWriter(table.storage, table.meta.config)
    inflight = writer.start(writer.request(early, ActionKind.DELTACOMMIT))
    time = table.upsert(("b", "x", 5, 5)).instant_time
    rows = table.rows()
    at = table.upsert(("a", "x", 9, 9)).instant_time
    # The write that began first: with the log file and the body of the one that was just made, under its own name.
    made = table.meta.timeline.find(at)
    assert made is not None
    body = table.meta.reader.read_body(made, State.COMPLETED).replace(at.encode(), early.encode())
    for path in [path for path in data_files(table) if at in path]:
        data = table.storage.read(path).replace(at.encode(), early.encode())
        table.storage.write(path.replace(at, early), data)
    served(table, partial(roll_back, instant_time=at), clean_failed_writes_policy="NEVER")
    writer.complete(inflight, str(int(table.meta.timeline.latest_time or "") + 1), body)
    assert ("a", "x", 9, 9) in table.rows()

    assert [i.commit_time for i in restored(table, time).rolled_back] == [early]
    assert table.rows() == rows
