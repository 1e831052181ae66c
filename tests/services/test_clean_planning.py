"""Which slices cleaning may take: held against the plain question "does any allowed query read it?"."""

from __future__ import annotations

from datetime import datetime, timezone

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.model.commit import CommitMetadata, WriteStat
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.options.retention import CleaningOptions
from pyhudi.model.plans import KEEP_LATEST_BY_HOURS, KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS
from pyhudi.model.timeline import Timeline
from pyhudi.services.clean.planner import PlannedClean
from pyhudi.services.clean.policies import (
    RetentionRules,
    deletions,
    earliest_retained,
    is_emptied,
    partitions_of,
    supersedes,
)
from pyhudi.view.stored_slices import StoredPartition, slices_of_files
from tests.support.sweeps import examples

# ---- since when ------------------------------------------------------------------------------------------------------

NOON = datetime(2024, 1, 2, 12, tzinfo=timezone.utc)


def at(hour: int) -> str:
    return f"20240102{hour:02d}0000000"


def commit(hour: int, action: ActionKind = ActionKind.COMMIT) -> Instant:
    return Instant(at(hour), action, State.COMPLETED, completion_time=at(hour)[:-1] + "9")


def pending(hour: int, action: ActionKind = ActionKind.COMMIT) -> Instant:
    return Instant(at(hour), action, State.INFLIGHT)


def earliest(instants: list[Instant], options: CleaningOptions, before: str = "") -> int | None:
    found = earliest_retained(Timeline(tuple(instants)), options, NOON, cleaned_before=before)
    return None if found is None else int(found.requested_time[8:10])


def test_the_nth_newest_commit_is_retained_when_there_are_more() -> None:
    options = CleaningOptions(commits_retained=3)
    assert earliest([commit(h) for h in range(1, 4)], options) is None
    assert earliest([commit(h) for h in range(1, 6)], options) == 3


def test_cleans_and_rollbacks_are_no_commits() -> None:
    services = [commit(h, ActionKind.CLEAN) for h in range(6, 9)]
    assert earliest([*(commit(h) for h in range(1, 6)), *services], CleaningOptions(commits_retained=3)) == 3


def test_nothing_is_cleaned_beyond_a_pending_write() -> None:
    options = CleaningOptions(commits_retained=2)
    commits = [commit(h) for h in (1, 2, 4, 5, 6)]
    assert earliest([*commits, pending(3)], options) == 2
    assert earliest([*commits, pending(3, ActionKind.COMPACTION)], options) == 2
    assert earliest([*commits, pending(7)], options) == 5
    assert earliest([commit(2), commit(3), commit(4), pending(1)], options) is None


def test_hours_are_those_of_the_timeline() -> None:
    options = CleaningOptions(policy=KEEP_LATEST_BY_HOURS, hours_retained=4)
    assert earliest([commit(h) for h in range(1, 12)], options) == 8
    assert earliest([commit(h) for h in range(1, 8)], options) is None


def test_a_policy_by_versions_names_no_instant() -> None:
    assert earliest([commit(h) for h in range(1, 12)], CleaningOptions(policy=KEEP_LATEST_FILE_VERSIONS)) is None


def test_a_table_that_was_long_not_cleaned_is_cleaned_in_steps() -> None:
    options = CleaningOptions(commits_retained=2, commits_cleaned_max=3)
    commits = [commit(h) for h in range(1, 12)]
    assert earliest(commits, options) == 4
    assert earliest(commits, options, at(4)) == 7
    assert earliest(commits, options, at(9)) == 10


# ---- which partitions ------------------------------------------------------------------------------------------------


def body(
    prev: str | None, log: int | None = None, replaced: dict[str, tuple[str, ...]] | None = None
) -> CommitMetadata:
    stat = WriteStat("g-0", "p/f", "p", prev_commit=prev, log_version=log)
    return CommitMetadata({"p": (stat,)}, partition_to_replace_file_ids=replaced)


def test_new_files_and_logs_leave_nothing_behind() -> None:
    assert not supersedes(body("null"))
    assert not supersedes(body("001", log=1))
    assert supersedes(body("001"))
    assert supersedes(body("null", replaced={"q": ("x-0",)}))


def test_partitions_that_groups_left_are_looked_at_too() -> None:
    assert partitions_of([body("null", replaced={"q": ("x-0",)}), body("001")]) == ("p", "q")


# ---- which slices ----------------------------------------------------------------------------------------------------

INSTANTS = [f"{i:03d}" for i in range(1, 13)]


def stored(groups: dict[str, list[str]], path: str = "p", pending_files: int = 0) -> StoredPartition:
    """A partition whose slices are as they are given here."""
    files = [(group, time, f"{group}_{time}") for group, times in groups.items() for time in times]
    columns = [pa.array(column, pa.string()) for column in zip(*files, strict=True)]
    slices = slices_of_files(pa.table(columns, names=["file_id", "base_instant", "name"]))
    return StoredPartition(path, slices, len(files) + pending_files)


def to_delete(groups: dict[str, list[str]], keep: RetentionRules) -> set[tuple[str, str]]:
    return {(deletion.file_id, deletion.base_instant) for deletion in deletions(stored(groups), keep)}


def read_as_of(times: list[str], instant: str, replaced: str | None) -> str | None:
    """The slice of a group that a query reads."""
    if replaced is not None and replaced <= instant:
        return None
    return max((time for time in times if time <= instant), default=None)


group_times = st.lists(st.sampled_from(INSTANTS), min_size=1, max_size=8, unique=True)


@settings(max_examples=examples(150), deadline=None)
@given(
    groups=st.dictionaries(st.sampled_from(["a", "b", "c"]), group_times, min_size=1),
    since=st.sampled_from(INSTANTS),
    replaced=st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(INSTANTS)),
    saved=st.sets(st.sampled_from(["a_002", "a_003", "b_004", "c_001"])),
)
def test_what_an_allowed_query_reads_stays_and_nothing_else(
    groups: dict[str, list[str]], since: str, replaced: dict[str, str], saved: set[str]
) -> None:
    keep = RetentionRules(
        KEEP_LATEST_COMMITS, since, replaced={"p": replaced, "q": {"c": "001"}}, savepointed={"p": frozenset(saved)}
    )
    found = to_delete(groups, keep)
    for group, times in groups.items():
        # A query as of the commit just before the earliest one may still run: it was allowed a moment ago.
        allowed = [i for i in (*INSTANTS, "999") if i >= since]
        gone = replaced.get(group)
        read = {read_as_of(times, instant, gone) for instant in allowed}
        if gone is not None and gone >= since:
            read |= set(times)  # the whole group waits for the instant that replaced it
        if gone is None or gone >= since:
            read.add(max((time for time in times if time < since), default=None))
        for time in times:
            wanted = time in read or f"{group}_{time}" in saved
            assert ((group, time) in found) == (not wanted), (group, time)


@settings(max_examples=examples(60), deadline=None)
@given(times=group_times, versions=st.integers(1, 4))
def test_versions_are_counted(times: list[str], versions: int) -> None:
    found = to_delete({"a": times}, RetentionRules(KEEP_LATEST_FILE_VERSIONS, versions=versions))
    assert {time for _, time in found} == set(sorted(times)[:-versions])


def test_what_a_pending_plan_reads_stays_and_counts_as_one_version() -> None:
    groups = {"a": ["001", "002", "003", "004"]}
    needed = {"p": {"a": "003"}}
    by_versions = RetentionRules(KEEP_LATEST_FILE_VERSIONS, versions=2, needed=needed)
    assert to_delete(groups, by_versions) == {("a", "001")}
    by_commits = RetentionRules(KEEP_LATEST_COMMITS, "012", needed={"p": {"a": "002"}})
    assert to_delete(groups, by_commits) == {("a", "001")}
    assert to_delete(
        groups, RetentionRules(KEEP_LATEST_FILE_VERSIONS, replaced={"p": {"a": "009"}}, needed=needed)
    ) == {
        ("a", "001"),
        ("a", "002"),
    }


def test_a_reason_is_given() -> None:
    groups = {"a": ["001", "002", "003"], "b": ["001"]}
    keep = RetentionRules(KEEP_LATEST_COMMITS, "009", replaced={"p": {"b": "005"}})
    reasons = [d.reason for d in deletions(stored(groups), keep)]
    assert (
        reasons
        == [
            "reads since 009 begin with the version of 003",
            "reads since 009 begin with the version of 003",
            "replaced by 005",
        ][-len(reasons) :]
    )


@pytest.mark.parametrize(("path", "pending_files", "expected"), [("p", 0, True), ("p", 1, False), ("", 0, False)])
def test_a_partition_is_deserted_when_no_file_is_left(path: str, pending_files: int, expected: bool) -> None:
    partition = stored({"b": ["001"]}, path, pending_files)
    keep = RetentionRules(KEEP_LATEST_COMMITS, "009", replaced={path: {"b": "005"}})
    assert is_emptied(partition, deletions(partition, keep)) is expected


def test_a_plan_names_the_savepoints_that_it_minded_with_commas() -> None:
    extra = PlannedClean("KEEP_LATEST_COMMITS", None, savepoints=("1", "2")).plan().extra_metadata
    assert list(extra.values()) == ["1,2"]
