"""Cleaning of real tables: after writes, and by a call; what it leaves can be read."""

from __future__ import annotations

from typing import Any

import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import TableError
from pyhudi.formats.timeline.instant_files import decode_avro_record
from pyhudi.model.instant import ActionKind, State
from tests.support.tables.cleaned import NEVER, RETAINED, VERSIONS, call, cleans, commits, files, table_of, update
from tests.support.tables.small import rows_of

# ---- after writes ----------------------------------------------------------------------------------------------------


@pytest.mark.thorough
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


@pytest.mark.thorough
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


@pytest.mark.thorough
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
    reader = table.meta.reader
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


def test_in_a_notebook_a_plan_is_a_table_and_what_was_done_is_lines() -> None:
    table = table_of()
    assert "<table>" not in call(table, dry_run=True, clean_commits_retained="1")._repr_html_(), "nothing is planned"
    update(table, 3)
    planned = call(table, dry_run=True, clean_commits_retained="1")
    done = call(table, clean_commits_retained="1")

    names = [name for deletion in planned.planned for name in deletion.names]
    assert names
    assert all(f"<td>{name}</td>" in planned._repr_html_() for name in names)
    assert done.runs[0].files_deleted == len(names)
    assert "<table>" not in done._repr_html_()
    assert done.runs[0].instant_time in done._repr_html_()


@pytest.mark.parametrize("retained", ["1", "3"])
def test_after_a_deep_clean_a_clean_with_nothing_to_do_names_an_instant_that_can_be_read(retained: str) -> None:
    table = table_of(**NEVER)
    update(table, 6)
    call(table, clean_commits_retained="1")

    result = call(table, clean_commits_retained=retained)

    assert not result.runs
    assert result.earliest == commits(table)[-1]
    assert f"nothing to do, readable as of {result.earliest} and later" in str(result)
    table.rows(as_of=result.earliest)
    with pytest.raises(TableError):
        table.rows(as_of=commits(table)[-2])


@pytest.mark.thorough
def test_a_clean_that_retains_more_than_one_before_it_names_an_instant_that_can_be_read() -> None:
    table = table_of(**NEVER)
    update(table, 6)
    call(table, clean_commits_retained="1")
    deep = commits(table)[-1]
    update(table, 2)
    call(table, clean_fileversions_retained="1")
    result = call(table, clean_commits_retained="3")
    assert result.earliest is not None
    assert result.earliest > deep
    table.rows(as_of=result.earliest)
