"""Cleaning with savepoints, other writers and dead ones: nothing goes that somebody still needs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from pyhudi.actions.action import ActionContext
from pyhudi.actions.open_table import table_lock
from pyhudi.errors import CorruptFile, WriteConflict
from pyhudi.formats.timeline.clean_plans import decode_clean_plan, encode_clean_plan
from pyhudi.formats.timeline.instant_files import encode_avro_record
from pyhudi.model.instant import ActionKind
from pyhudi.model.options import WriteOptions
from pyhudi.model.plans import CleanPlan
from pyhudi.services.clean import cleaning
from pyhudi.services.clean.cleaning import clean
from pyhudi.services.clean.planner import PlannedClean
from pyhudi.services.savepoint import savepoint
from pyhudi.storage.memory import InjectedFault
from pyhudi.table.calls import serve
from tests.support.tables.cleaned import NEVER, RETAINED, START, VERSIONS, call, commits, files, table_of, update
from tests.support.tables.small import DEFAULTS, TestTable, rollback_write, rows_of
from tests.support.writers.interrupted import WatchedStorage


@pytest.mark.thorough
def test_savepointed_files_stay_until_the_savepoint_is_gone() -> None:
    table = table_of(**NEVER)
    update(table, 1)
    saved = table.meta.timeline.last_commit()
    assert saved is not None
    names = [name for name in files(table) if saved.requested_time in name]
    partition = {"partitionPath": "x", "savepointDataFile": names}
    body = {
        "savepointedBy": "",
        "savepointedAt": 0,
        "comments": "",
        "version": 1,
        "partitionMetadata": {"x": partition},
    }
    path = f".hoodie/timeline/{saved.requested_time}_{saved.completion_time}.savepoint"
    table.storage.write(path, encode_avro_record("HoodieSavepointMetadata", body))
    update(table, 5)

    call(table, clean_commits_retained="1")
    assert set(names) < set(files(table))
    assert len(files(table)) == 3
    (cleaned,) = table.meta.timeline.of([ActionKind.CLEAN])
    plan = table.meta.reader.clean_plan(cleaned)
    assert plan is not None
    assert plan.files
    assert not {name for planned in dict(plan.files).values() for name in planned} & set(names), "not even planned"

    table.storage.delete(path)
    update(table, 1)
    call(table, clean_commits_retained="1")
    assert len(files(table)) == 2
    assert not set(names) & set(files(table))


def test_a_plan_of_strange_files_deletes_nothing() -> None:
    def body(partition: str, path: str, gone: tuple[str, ...] = ()) -> bytes:
        return encode_clean_plan(CleanPlan("p", None, "", {partition: (path,)}, gone), lambda p: f"/t/{p}")

    for damaged in (
        body("x", "../../etc/passwd"),
        body("..", "a-0_0-1-1_001.parquet"),
        body(".hoodie", "a-0_0-1-1_001.parquet"),
        body("x", "a-0_0-1-1_001.parquet", ("../other",)),
    ):
        with pytest.raises(CorruptFile):
            decode_clean_plan(damaged)
    assert decode_clean_plan(body("x", "a-0_0-1-1_001.parquet")).files == {"x": ("a-0_0-1-1_001.parquet",)}


def test_an_empty_plan_of_a_dead_writer_is_taken_away() -> None:
    table = table_of(**NEVER)
    update(table, 2)
    table.storage.write(".hoodie/timeline/20300101000000000.clean.requested", b"")
    table.storage.write(".hoodie/timeline/20300101000000000.clean.inflight", b"")
    call(table)
    assert not [i for i in table.meta.timeline if i.action is ActionKind.CLEAN]


def test_a_deserted_partition_that_a_write_is_about_to_use_stays() -> None:
    """The write has found the partition's metadata, and its file is not there yet when the clean comes by."""
    table = table_of(**NEVER)
    table.write("delete_partition", rows_of(("c", "y", 1, 3)))
    update(table, 2)
    removed: list[tuple[str, ...]] = []

    def clean_before_the_file(verb: str, path: str) -> None:
        if path.startswith("y/") and not removed:
            removed.extend(run.partitions_removed for run in call(table, clean_commits_retained="1").runs)

    TestTable(WatchedStorage(table.storage, clean_before_the_file), table.options).upsert(("c", "y", 1, 7))

    assert removed == [()]
    assert table.rows() == [("a", "x", 4, 3), ("b", "x", 1, 2), ("c", "y", 1, 7)]


def test_a_failing_clean_does_not_fail_the_write_that_began_it() -> None:
    table = table_of(**{RETAINED: "1"})
    update(table, 1)
    attempt = TestTable(table.storage.clone(), table.options)
    attempt.storage.reset_faults()
    update(attempt, 1)
    deletes = [n for n, (verb, path) in enumerate(attempt.storage.log, start=1) if verb == "delete" and path[0] == "x"]
    table.storage.reset_faults()
    table.storage.fail_at(deletes[0], "before")
    with pytest.warns(UserWarning, match="the clean after it failed"):
        update(table, 1)
    table.storage.reset_faults()
    assert ("a", "x", 3, 2) in table.rows()
    update(table, 1)
    assert not table.meta.timeline.pending().instants
    assert len(files(table)) == 2


def test_a_rollback_waits_for_a_plan_that_may_delete_what_it_would_bring_back() -> None:
    table = table_of(**NEVER)
    update(table, 2)
    call(table, schedule_only=True, clean_fileversions_retained="1")
    rows = table.rows()

    with pytest.raises(WriteConflict, match="is at work, and may delete what") as refused:
        rollback_write(table.storage, commits(table)[-1], WriteOptions.parse(DEFAULTS), table.engine)

    assert refused.value.retryable
    assert table.rows() == rows
    assert call(table).runs
    assert table.rows() == rows


def save(table: TestTable, time: str) -> None:
    serve(table.storage, partial(savepoint, instant_time=time), WriteOptions.parse({}), table.engine)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_that_waits_takes_nothing_that_another_program_savepointed_since(version: str) -> None:
    """Real Hudi asks completed cleans only whether a commit can be saved."""
    table = table_of(version, **NEVER)
    update(table, 3)
    gone, saved = commits(table)[:2]
    before_the_plan = TestTable(table.memory.clone(), table.options)
    save(before_the_plan, saved)
    call(table, schedule_only=True, clean_commits_retained="1")
    for info in before_the_plan.storage.list(table.meta.config.timeline_path):
        if ".savepoint" in info.name:
            table.storage.write(info.path, before_the_plan.storage.read(info.path))

    assert call(table).runs

    assert [name for name in files(table) if saved in name]
    assert not [name for name in files(table) if gone in name]
    assert table.rows(as_of=saved) == [("a", "x", 2, 1), *START[1:]]
    assert not table.meta.timeline.pending().instants


def test_of_two_at_once_one_cleans(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(**NEVER)
    update(table, 3)
    planned, others = cleaning.plan_clean, []

    def slow(context: ActionContext, **how: bool) -> PlannedClean:
        made = planned(context, **how)
        if not others:
            others.append(None)
            others.append(call(table, schedule_only=True, clean_commits_retained="1").scheduled)
        return made

    monkeypatch.setattr(cleaning, "plan_clean", slow)
    result = call(table, clean_commits_retained="1")

    assert result.scheduled is None
    assert [i.requested_time for i in table.meta.timeline.pending()] == others[1:]


def test_a_savepoint_that_is_made_meanwhile_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(**NEVER)
    update(table, 3)
    planned, saved = cleaning.plan_clean, []

    def slow(context: ActionContext, **how: bool) -> PlannedClean:
        made = planned(context, **how)
        if not saved:
            saved.append(commits(table)[1])
            serve(table.storage, partial(savepoint, instant_time=saved[0]), WriteOptions.parse({}), table.engine)
        return made

    monkeypatch.setattr(cleaning, "plan_clean", slow)
    call(table, clean_commits_retained="1")

    assert [name for name in files(table) if saved[0] in name]
    assert table.rows(as_of=saved[0]) == [("a", "x", 2, 1), *START[1:]]


def test_nothing_is_cleaned_while_a_restore_is_under_way() -> None:
    table = table_of(**NEVER)
    update(table, 2)
    table.storage.write(".hoodie/timeline/20300101000000000.restore.requested", b"")
    options = WriteOptions.parse({RETAINED: 1})
    lock = table_lock(options, table.storage, table.clock)
    with pytest.raises(WriteConflict, match="restore"):
        clean(ActionContext(table.meta, options, lock, table.clock, table.engine))


def test_lazy_cleaning_undoes_dead_writers() -> None:
    table = table_of(**NEVER)
    attempt = TestTable(table.storage.clone(), table.options)
    attempt.storage.reset_faults()
    update(attempt, 1)
    made = next(n for n, (v, p) in enumerate(attempt.storage.log, 1) if v == "create_new" and p.endswith(".commit"))
    table.storage.reset_faults()
    table.storage.fail_at(made, "before")
    with pytest.raises(InjectedFault):
        update(table, 1)
    table.storage.reset_faults()
    (dead,) = table.meta.timeline.pending()

    eager, lazy = (replace(WriteOptions.parse(DEFAULTS), failed_writes_policy=policy) for policy in ("EAGER", "LAZY"))
    assert not serve(table.storage, clean, eager, table.engine).rolled_back
    assert serve(table.storage, clean, lazy, table.engine).rolled_back == (dead.requested_time,)
    assert not table.meta.timeline.pending().instants


@pytest.mark.parametrize("version", VERSIONS)
def test_change_logs_and_files_of_retried_tasks_go_with_their_slice(version: str) -> None:
    table = table_of(version, **NEVER)
    update(table, 4)
    times = commits(table)
    for instant in (times[1], times[-1]):
        file_id = next(name for name in files(table) if instant in name).partition("_")[0]
        table.storage.write(f"x/.{file_id}_{instant}.log.1_0-1-0.cdc", b"changes")
        table.storage.write(f"x/{file_id}_7-7-7_{instant}.parquet", b"of a task that was tried twice")

    call(table, clean_commits_retained="1")

    left = files(table)
    assert not [name for name in left if times[1] in name]
    assert len([name for name in left if times[-1] in name]) == 3
