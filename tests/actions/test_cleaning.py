"""Cleaning of real tables: after writes, by a call, again after a crash; what it leaves can be read."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.actions.action import ActionContext
from pyhudi.actions.opening import table_lock
from pyhudi.actions.services.clean import cleaning
from pyhudi.actions.services.clean.cleaning import clean
from pyhudi.actions.services.clean.drafting import CleanDraft, last_clean
from pyhudi.actions.services.clean.result import CleanResult
from pyhudi.actions.services.undo.savepoint import savepoint
from pyhudi.errors import CorruptFile, TableError, WriteConflict
from pyhudi.formats.clean_plans import decode_clean_plan, encode_clean_plan
from pyhudi.formats.instant_files import decode_avro_record, encode_avro_record
from pyhudi.model.clean_plan import CleanPlan
from pyhudi.model.instant import ActionKind, State
from pyhudi.model.options import HudiOptionWarning, WriteOptions
from pyhudi.serving import serve
from pyhudi.storage.memory import InjectedFault, MemoryStorage
from pyhudi.timeline.write import TimelineWriter
from tests.actions.tables import DEFAULTS, TestTable, rollback_write, rows_of

VERSIONS = ("6", "8", "9")
START = [("a", "x", 1, 0), ("b", "x", 1, 2), ("c", "y", 1, 3)]
RETAINED = "hoodie.clean.commits.retained"
NEVER = {"hoodie.clean.automatic": "false"}


def table_of(version: str = "9", **options: str) -> TestTable:
    table = TestTable(MemoryStorage(), {"hoodie.write.table.version": version, **options})
    table.bulk_insert(*START)
    return table


def update(table: TestTable, times: int) -> None:
    first = len(table.meta.timeline.commits())
    for i in range(first, first + times):
        table.upsert(("a", "x", i + 1, i))


def call(table: TestTable, dry_run: bool = False, schedule_only: bool = False, **options: str) -> CleanResult:
    given = {"hoodie." + name.replace("_", "."): text for name, text in options.items()}
    run = partial(clean, dry_run=dry_run, schedule_only=schedule_only)
    return serve(table.storage, run, WriteOptions.parse(given), table.engine, dry_run=dry_run)


def commits(table: TestTable) -> list[str]:
    return [instant.requested_time for instant in table.meta.timeline.commits()]


def cleans(table: TestTable) -> list[str]:
    return [i.requested_time for i in table.meta.timeline.completed() if i.action is ActionKind.CLEAN]


def files(table: TestTable, partition: str = "x") -> list[str]:
    return sorted(i.name for i in table.storage.list(partition) if not i.name.startswith(".hoodie"))


# ---- after writes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_writes_clean_by_themselves_and_every_retained_commit_can_be_read(version: str) -> None:
    table = table_of(version, **{RETAINED: "3"})

    update(table, 7)

    retained = commits(table)[-3:]
    for n, instant in enumerate(retained, start=5):
        assert ("a", "x", n + 1, n) in table.rows(as_of=instant)
    with pytest.raises(TableError, match=retained[0]):
        table.rows(as_of=commits(table)[2])
    assert len(files(table)) == 4, "three versions to read, and the one that a reader of the commit before may be at"
    assert len(files(table, "y")) == 1


def test_ten_commits_are_retained_unless_asked_otherwise() -> None:
    table = table_of()
    update(table, 11)
    assert len(files(table)) == 11
    assert len(cleans(table)) == 1


def test_a_write_says_what_it_cleaned() -> None:
    table = table_of(**{RETAINED: "1"})
    update(table, 1)
    result = table.upsert(("a", "x", 9, 9))
    assert result.services["clean"] == tuple(cleans(table)[-1:])


def test_nothing_is_cleaned_when_the_options_say_so() -> None:
    table = table_of(**{RETAINED: "1", **NEVER})
    update(table, 4)
    assert not cleans(table)


def test_a_trigger_lets_commits_pass() -> None:
    table = table_of(**{RETAINED: "1", "hoodie.clean.max.commits": "3"})
    update(table, 8)
    assert len(cleans(table)) == 3


def test_inserts_list_nothing_because_they_leave_nothing_behind() -> None:
    table = table_of(**{RETAINED: "1", "hoodie.parquet.small.file.limit": "0"})
    for i in range(3):
        table.insert((f"k{i}", "x", 1, i))
    table.storage.reset_faults()
    table.insert(("k9", "x", 1, 9))
    listed = [path for verb, path in table.storage.log if verb == "list" and not path.startswith(".hoodie")]
    assert listed.count("x") <= 1, "the write's own look at its partition"
    assert "y" not in listed
    assert not cleans(table)


def test_the_first_commits_read_nothing_more() -> None:
    cleaned, plain = table_of(), table_of(**NEVER)
    calls = []
    for table in (cleaned, plain):
        table.storage.reset_faults()
        update(table, 1)
        calls.append(len(table.storage.log))
    assert calls[0] == calls[1]


def test_only_partitions_that_changed_are_listed_again() -> None:
    table = table_of(**{RETAINED: "1"})
    update(table, 3)
    table.storage.reset_faults()
    update(table, 1)
    assert not [path for verb, path in table.storage.log if (verb, path) == ("list", "y")]
    assert len(files(table)) == 2


# ---- by a call -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_bodies_are_as_hudi_writes_them(version: str) -> None:
    table = table_of(version, **NEVER)
    update(table, 4)
    old = files(table)

    result = call(table, clean_commits_retained="2")

    (instant,) = (i for i in table.meta.timeline if i.action is ActionKind.CLEAN)
    reader = TimelineWriter(table.storage, table.meta.config)
    plan = decode_avro_record(reader.read_body(instant, State.REQUESTED))
    earliest = commits(table)[-2]
    gone = sorted(set(old) - set(files(table)))
    action = "commit"
    assert plan["earliestInstantToRetain"] == {"timestamp": earliest, "action": action, "state": "COMPLETED"}
    assert plan["lastCompletedCommitTimestamp"] == commits(table)[-1]
    assert (plan["policy"], plan["version"], plan["partitionsToBeDeleted"]) == ("KEEP_LATEST_COMMITS", 2, [])
    assert plan["filesToBeDeletedPerPartition"] == {}
    paths = [info["filePath"] for info in plan["filePathsToBeDeletedPerPartition"]["x"]]
    assert sorted(path.rpartition("/")[2] for path in paths) == gone
    assert all(path.endswith(f"/x/{name}") for path, name in zip(sorted(paths), gone, strict=True))
    inflight = reader.read_body(instant, State.INFLIGHT)
    assert inflight == (b"" if version == "9" else reader.read_body(instant, State.REQUESTED))
    done = decode_avro_record(reader.read_body(instant, State.COMPLETED))
    assert (done["startCleanTime"], done["totalFilesDeleted"], done["version"]) == (instant.requested_time, 2, 2)
    assert done["earliestCommitToRetain"] == earliest
    assert sorted(done["partitionMetadata"]["x"]["successDeleteFiles"]) == gone
    assert done["partitionMetadata"]["x"]["deletePathPatterns"] == done["partitionMetadata"]["x"]["successDeleteFiles"]
    assert result.instant_times == (instant.requested_time,)


def test_a_dry_run_says_which_files_would_go_and_why_and_touches_nothing() -> None:
    table = table_of(**NEVER)
    update(table, 3)
    table.write("delete_partition", rows_of(("c", "y", 1, 3)))
    update(table, 1)
    before = {info.path for info in table.storage.walk("")}

    result = call(table, dry_run=True, clean_commits_retained="1")

    assert {info.path for info in table.storage.walk("")} == before
    text = str(result)
    assert "would delete: 4 files and 1 empty partitions" in text
    assert f"readable as of {commits(table)[-1]} and later" in text
    assert "replaced by" in text
    assert "begin with the version of" in text
    assert set(result.files_planned) < before
    assert "<table>" in result._repr_html_()


def test_versions_are_kept_by_number() -> None:
    table = table_of(**NEVER)
    update(table, 5)
    call(table, clean_fileversions_retained="2")
    assert len(files(table)) == 2
    assert ("a", "x", 6, 5) in table.rows()


def test_a_deserted_partition_goes_and_may_come_back() -> None:
    table = table_of(**NEVER)
    table.write("delete_partition", rows_of(("c", "y", 1, 3)))
    update(table, 2)

    result = call(table, clean_commits_retained="1")

    assert result.runs[0].partitions_removed == ("y",)
    assert not list(table.storage.list("y"))
    table.upsert(("c", "y", 1, 7))
    assert table.rows()[-1] == ("c", "y", 1, 7)


def test_a_partition_with_a_pending_write_stays() -> None:
    table = table_of(**NEVER)
    table.write("delete_partition", rows_of(("c", "y", 1, 3)))
    update(table, 2)
    table.storage.write("y/g-0_0-1-1_29990101000000000.parquet", b"of a write that is not complete")

    assert not call(table, dry_run=True, clean_commits_retained="1").partitions_planned
    call(table, clean_commits_retained="1")
    assert [info.name for info in table.storage.list("y") if "2999" in info.name]


def test_a_plan_waits_until_it_is_run() -> None:
    table = table_of(**NEVER)
    update(table, 3)

    scheduled = call(table, schedule_only=True, clean_commits_retained="1").scheduled

    assert len(files(table)) == 4
    assert call(table).instant_times == (scheduled,)
    assert len(files(table)) == 2


def test_the_next_write_runs_a_plan_that_waits() -> None:
    table = table_of()
    update(table, 3)
    call(table, schedule_only=True, clean_commits_retained="1")
    update(table, 1)
    assert len(cleans(table)) == 1
    assert len(files(table)) == 3


def test_there_is_no_instant_when_there_is_nothing_to_clean() -> None:
    table = table_of()
    result = call(table, clean_commits_retained="1")
    assert not result.runs
    assert "nothing to do" in str(result)
    assert not [i for i in table.meta.timeline if i.action is ActionKind.CLEAN]


def test_the_table_object_cleans(tmp_path: Any) -> None:
    keys = {"record_key": "id", "partition_by": "p", "ordering": "ts"}
    for i in range(4):
        write_hudi(tmp_path / "t", rows_of(("a", "x", i, i)), **keys)
    table = HudiTable.open(tmp_path / "t")

    assert len(table.clean(dry_run=True, options={RETAINED: 2}).files_planned) == 1
    result = table.clean(options={RETAINED: 2})

    assert result.runs[0].files_deleted == 1
    assert "1 files deleted" in str(result)
    assert table.to_arrow(["v"]).column(0).to_pylist() == [3]


# ---- safety ----------------------------------------------------------------------------------------------------------


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


def test_a_plan_that_waits_takes_nothing_that_a_rollback_has_made_the_newest_again() -> None:
    table = table_of(**NEVER)
    update(table, 2)
    call(table, schedule_only=True, clean_fileversions_retained="1")
    rollback_write(table.storage, commits(table)[-1], WriteOptions.parse(DEFAULTS), table.engine)
    call(table)
    assert ("a", "x", 2, 1) in table.rows()
    assert len(files(table)) == 1


def test_of_two_at_once_one_cleans(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(**NEVER)
    update(table, 3)
    draft, others = cleaning.draft_clean, []

    def slow(context: ActionContext, **how: bool) -> CleanDraft:
        made = draft(context, **how)
        if not others:
            others.append(None)
            others.append(call(table, schedule_only=True, clean_commits_retained="1").scheduled)
        return made

    monkeypatch.setattr(cleaning, "draft_clean", slow)
    result = call(table, clean_commits_retained="1")

    assert result.scheduled is None
    assert [i.requested_time for i in table.meta.timeline.pending()] == others[1:]


def test_a_savepoint_that_is_made_meanwhile_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(**NEVER)
    update(table, 3)
    draft, saved = cleaning.draft_clean, []

    def slow(context: ActionContext, **how: bool) -> CleanDraft:
        made = draft(context, **how)
        if not saved:
            saved.append(commits(table)[1])
            serve(table.storage, partial(savepoint, instant_time=saved[0]), WriteOptions.parse({}), table.engine)
        return made

    monkeypatch.setattr(cleaning, "draft_clean", slow)
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
        clean(ActionContext(table.meta, table.engine, options, lock, table.clock))


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

    assert not call(table).rolled_back
    from dataclasses import replace

    lazy = replace(WriteOptions.parse(DEFAULTS), failed_writes_policy="LAZY")
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


# ---- options ---------------------------------------------------------------------------------------------------------


def test_a_number_alone_says_the_policy() -> None:
    parse = WriteOptions.parse
    assert parse({"hoodie.cleaner.fileversions.retained": 2}).cleaning.policy == "KEEP_LATEST_FILE_VERSIONS"
    assert parse({"hoodie.clean.hours.retained": 2}).cleaning.policy == "KEEP_LATEST_BY_HOURS"
    both = {"hoodie.clean.hours.retained": 2, "hoodie.clean.fileversions.retained": 2}
    assert parse(both).cleaning.policy == "KEEP_LATEST_COMMITS"


def test_retention_is_checked_against_archiving() -> None:
    with pytest.warns(HudiOptionWarning, match="so archiving keeps 41 at least"):
        WriteOptions.parse({RETAINED: 40, "hoodie.keep.min.commits": 30, "hoodie.keep.max.commits": 35})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WriteOptions.parse({RETAINED: 40})


def test_the_last_clean_is_what_the_newest_one_says() -> None:
    table = table_of(**{RETAINED: "1"})
    assert last_clean(table.meta) is None
    update(table, 4)
    found = last_clean(table.meta)
    assert found is not None
    assert (found.earliest, found.last_commit) == (commits(table)[-1], commits(table)[-1])


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.datasource.write.partitionpath.field": ""},
        {"hoodie.datasource.write.hive_style_partitioning": "true"},
        {"hoodie.datasource.write.partitionpath.field": "p,ts"},
        {"hoodie.table.base.file.format": "ORC"},
        {"hoodie.populate.meta.fields": "false"},
    ],
    ids=["no partitions", "hive style", "nested", "orc", "virtual keys"],
)
def test_every_kind_of_table_is_cleaned(options: dict[str, str]) -> None:
    table = TestTable(MemoryStorage(), {**NEVER, **options})
    odd = "a b%=c"
    table.bulk_insert(("a", odd, 1, 0), ("b", "y", 1, 0))
    for value in range(3):
        table.upsert(("a", odd, 1, value))
    rows = table.rows(["id", "v"])

    result = call(table, clean_commits_retained="1")

    assert result.runs[0].files_deleted == 2
    assert table.rows(["id", "v"]) == rows == [("a", 2), ("b", 0)]
    gone = set(result.files_planned)
    assert not gone & {info.path for info in table.storage.walk("")}
