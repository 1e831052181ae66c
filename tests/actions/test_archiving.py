"""Archiving: old instants leave the active timeline, and nothing that anybody still needs leaves with them."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.actions.services.archive.archiving import archive
from pyhudi.actions.services.archive.planning import ArchiveLimit, select_instants
from pyhudi.actions.services.archive.result import ArchiveResult
from pyhudi.errors import ConfigError
from pyhudi.formats.instant_files import encode_avro_record, encode_commit
from pyhudi.metadata.file_system_view import FileSystemView
from pyhudi.metadata.retention import load_retention
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.options import WriteOptions
from pyhudi.model.timeline import Timeline
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.snapshot import read_batches
from pyhudi.serving import serve
from pyhudi.timeline.history import load_history
from pyhudi.timeline.table_properties import load_table_config
from pyhudi.timeline.write import TimelineWriter
from tests.actions.merge_on_read import VERSIONS, MergeOnRead
from tests.actions.tables import TestTable

pytestmark = pytest.mark.filterwarnings("ignore:.*is not above hoodie.clean.commits.retained.*")
BY_HAND = {"hoodie.archive.automatic": "false", "hoodie.clean.automatic": "false"}
KEEP = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.timeline.compaction.batch.size": "3"}
ONE_CLEANED = {"hoodie.clean.commits.retained": "1"}


def table_of(version: str = "9", **options: str) -> TestTable:
    given = {"hoodie." + name.replace("_", "."): text for name, text in options.items()}
    return TestTable(options={"hoodie.write.table.version": version, **BY_HAND, **given})


def archived(table: TestTable, dry_run: bool = False, **options: str) -> ArchiveResult:
    given = {**KEEP, **ONE_CLEANED, **{"hoodie." + name.replace("_", "."): text for name, text in options.items()}}
    parsed = WriteOptions.parse(given, table=load_table_config(table.storage))
    return serve(table.storage, partial(archive, dry_run=dry_run), parsed, table.engine, dry_run=dry_run)


def upserts(table: TestTable, count: int) -> list[str]:
    return [table.upsert(("a", "x", n, n), (f"k{n}", "x", n, n)).instant_time for n in range(count)]


def active(table: TestTable) -> list[str]:
    return [i.requested_time for i in table.meta.timeline.commits()]


def history(table: TestTable) -> list[str]:
    return [i.requested_time for i in load_history(table.storage, table.meta.config).times()]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_newest_commits_stay_and_the_others_are_in_the_history(version: str) -> None:
    table = table_of(version)
    times = upserts(table, 3)
    assert not archived(table).archived  # not more than the maximum

    times += upserts(table, 3)
    rows = table.rows()
    bodies = {t: table.meta.commits.metadata(i) for t in times if (i := table.meta.timeline.find(t)) is not None}
    completions = {i.requested_time: i.completion_time for i in table.meta.timeline}
    result = archived(table)

    assert result.instant_times == tuple(times[:4])
    assert (active(table), history(table)) == (times[4:], times[:4])
    assert table.rows() == rows
    for kept in load_history(table.storage, table.meta.config).instants():
        time = kept.instant.requested_time
        commit = kept.commit()
        assert commit is not None
        assert kept.instant.completion_time == completions[time]
        assert commit.operation_type == bodies[time].operation_type
        assert [(s.file_id, s.num_writes) for s in commit.stats()] == [
            (s.file_id, s.num_writes) for s in bodies[time].stats()
        ]
        assert commit.extra_metadata == bodies[time].extra_metadata
    assert not [path for path in table.storage.walk(".hoodie") if "_tmp" in path.path]


@pytest.mark.parametrize("version", VERSIONS)
def test_writes_archive_by_themselves(version: str) -> None:
    table = table_of(version, archive_automatic="true")
    table.options = {**table.options, **KEEP, **ONE_CLEANED}
    times = upserts(table, 10)

    assert len(active(table)) <= 3
    assert history(table) + active(table) == times
    assert table.rows() == sorted([("a", "x", 9, 9), *((f"k{n}", "x", n, n) for n in range(10))], key=repr)


def test_far_from_the_limit_a_write_asks_the_store_for_nothing_more() -> None:
    with_it, without = table_of(archive_automatic="true"), table_of()
    calls = []
    for table in (with_it, without):
        upserts(table, 2)
        before = len(table.memory.log)
        table.upsert(("a", "x", 9, 9))
        calls.append(len(table.memory.log) - before)
    assert calls[0] == calls[1]


def test_a_dry_run_says_what_would_go_and_why_no_more() -> None:
    table = table_of()
    times = upserts(table, 6)
    savepoint(table, times[3])
    result = archived(table, dry_run=True)

    assert result.instant_times == tuple(times[:3])
    assert "would archive 3 commit" in str(result)
    assert "savepoint" in str(result)
    assert "savepoint" in result._repr_html_()
    assert active(table) == times
    assert history(table) == []


def savepoint(table: TestTable, time: str) -> None:
    writer = TimelineWriter(table.storage, table.meta.config)
    body = encode_avro_record(
        "HoodieSavepointMetadata",
        {"savepointedBy": "", "savepointedAt": 0, "comments": "", "partitionMetadata": {}, "version": 1},
    )
    latest = table.meta.timeline.latest_time or ""
    writer.complete(writer.start(Instant(time, ActionKind.SAVEPOINT, State.REQUESTED)), str(int(latest) + 1), body)


@pytest.mark.parametrize("version", VERSIONS)
def test_beyond_a_savepoint_its_commit_stays_readable(version: str) -> None:
    table = table_of(version)
    times = upserts(table, 6)
    savepoint(table, times[1])
    saved = table.rows(as_of=times[1])

    assert archived(table).instant_times == (times[0],)
    result = archived(table, archive_beyond_savepoint="true")

    assert result.instant_times == (times[2], times[3])
    assert active(table) == [times[1], *times[4:]]
    assert table.rows(as_of=times[1]) == saved
    assert len(table.rows()) == 7


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_passes_a_pending_write(version: str) -> None:
    table = table_of(version)
    times = upserts(table, 3)
    writer = TimelineWriter(table.storage, table.meta.config)
    pending = str(int(times[-1]) + 1)
    writer.start(writer.request(pending, ActionKind.COMMIT))
    table.failed_writes_policy = "NEVER"
    times += upserts(table, 4)

    result = archived(table)

    assert result.instant_times == tuple(times[:2])
    assert pending in (result.kept_for or "")


def test_a_savepoint_that_its_writer_never_finished_keeps_nothing() -> None:
    table = table_of()
    times = upserts(table, 5)
    table.storage.write(f"{table.meta.config.timeline_path}/{times[0]}.savepoint.inflight", b"")
    assert archived(table).instant_times == tuple(times[:3])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_replacecommit_stays_until_its_files_are_cleaned(version: str) -> None:
    table = table_of(version)
    table.bulk_insert(("a", "x", 1, 1))
    replaced = table.write("insert_overwrite", rows_of_one("b"))
    upserts(table, 5)
    rows = table.rows()

    assert len(archived(table).archived) == 1
    assert table.rows() == rows
    assert replaced.instant_time in active(table)

    clean(table, version, earliest=active(table)[2])
    assert replaced.instant_time in archived(table).instant_times


def rows_of_one(key: str) -> pa.Table:
    return pa.table({"id": [key], "p": ["x"], "ts": pa.array([1], pa.int64()), "v": pa.array([1], pa.int64())})


def clean(table: TestTable, version: str, earliest: str) -> str:
    """A completed clean that kept all from `earliest` on and deleted the files of replaced groups."""
    meta = table.meta
    for partition, replaced in (
        item
        for i in meta.timeline.of([ActionKind.REPLACECOMMIT])
        for item in (meta.commits.metadata(i).partition_to_replace_file_ids or {}).items()
    ):
        for entry in table.storage.list(partition):
            if entry.name.startswith(replaced):
                table.storage.delete(entry.path)
    plan = {
        "earliestInstantToRetain": {"timestamp": earliest, "action": "commit", "state": "COMPLETED"},
        "policy": "KEEP_LATEST_COMMITS", "version": 2, "lastCompletedCommitTimestamp": earliest,
        "filesToBeDeletedPerPartition": {}, "filePathsToBeDeletedPerPartition": {}, "partitionsToBeDeleted": [],
        "extraMetadata": {},
    }  # fmt: skip
    done = {
        "startCleanTime": "", "timeTakenInMillis": 1, "totalFilesDeleted": 1, "earliestCommitToRetain": earliest,
        "lastCompletedCommitTimestamp": earliest, "partitionMetadata": {}, "version": 2,
        "bootstrapPartitionMetadata": {}, "extraMetadata": {},
    }  # fmt: skip
    writer = TimelineWriter(table.storage, meta.config)
    time = str(int(meta.timeline.latest_time or "") + 1)
    instant = writer.request(time, ActionKind.CLEAN, encode_avro_record("HoodieCleanerPlan", plan))
    body = encode_avro_record("HoodieCleanMetadata", done)
    writer.complete(writer.start(instant), str(int(time) + 1), body)
    return time


@pytest.mark.parametrize("version", VERSIONS)
def test_the_newest_clean_stays_and_older_ones_go(version: str) -> None:
    table = table_of(version)
    upserts(table, 2)
    cleans = [clean(table, version, active(table)[-1]) for _ in range(4)]
    upserts(table, 5)

    gone = archived(table).instant_times

    # Version 6: by their own number. The first of those that took the most stays, and the newest.
    assert [time for time in cleans if time in gone] == (cleans[1:2] if version == "6" else cleans[1:3])


def test_the_clean_that_took_the_most_stays_so_that_nobody_reads_what_is_gone() -> None:
    table = table_of()
    times = upserts(table, 5)
    most = clean(table, "9", times[4])
    for n in range(3):
        clean(table, "9", times[n])
    upserts(table, 5)

    assert most not in archived(table).instant_times
    assert [load_retention(table.meta).is_readable(time) for time in times] == [False, False, False, False, True]


def test_cleaning_that_keeps_more_raises_what_stays() -> None:
    table = table_of()
    times = upserts(table, 9)
    assert not archived(table, clean_commits_retained="8").archived
    assert archived(table, clean_commits_retained="5").instant_times == tuple(times[:3])


def test_max_must_be_above_min() -> None:
    with pytest.raises(ConfigError, match=r"hoodie.keep.max.commits=5 must be greater than hoodie.keep.min.commits=7"):
        WriteOptions.parse({"hoodie.keep.max.commits": "5", "hoodie.keep.min.commits": "7"})


@pytest.mark.parametrize("version", VERSIONS)
def test_a_reader_that_began_before_archiving_reads_on(version: str) -> None:
    table = table_of(version)
    table.bulk_insert(("a", "x", 1, 1))
    table.write("insert_overwrite", rows_of_one("b"))
    upserts(table, 5)
    reader, rows = table.meta, table.rows()
    clean(table, version, earliest=active(table)[-1])
    assert len(archived(table).archived) == 5

    plan = plan_snapshot(reader)
    found = pa.Table.from_batches(list(read_batches(plan, table.storage)), plan.schema)
    assert found.num_rows == len(rows)
    assert reader.commits.metadata(reader.timeline.commits().instants[1]).operation_type == "INSERT_OVERWRITE"


# ---- merge on read ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_merge_on_read_keeps_the_delta_commits_that_compaction_waits_for(version: str) -> None:
    table = MergeOnRead(version, archive_automatic="false")
    times = upserts(table, 9)
    rows = table.rows()

    assert archived(table).instant_times == tuple(times[:4])
    assert archived(table, compact_inline_max_delta_commits="3").instant_times == (times[4], times[5])
    assert table.rows() == rows


@pytest.mark.parametrize("version", VERSIONS)
def test_random_looking_merge_on_read_histories_read_the_same_before_and_after(version: str) -> None:
    table = MergeOnRead(version, archive_automatic="false")
    for round_ in range(4):
        upserts(table, 3)
        table.delete((f"k{round_}", "x"))
        if round_ % 2:
            table.compact_now()
        times = active(table)
        before = {time: table.rows(as_of=time) for time in times}
        archived(table, compact_inline_max_delta_commits="1")
        assert table.rows() == before[times[-1]]
        for time in active(table):
            assert table.rows(as_of=time) == before[time], time
    assert history(table)


@pytest.mark.parametrize("version", ["8", "9"])
def test_the_log_of_an_archived_late_delta_commit_stays_in_the_slice_that_it_completed_in(version: str) -> None:
    """A delta commit began before a compaction was planned and completed after: its log is of the newer slice."""
    table = MergeOnRead(version, archive_automatic="false")
    table.upsert(("a", "x", 1, 1))
    meta = table.meta
    (file_slice,) = FileSystemView.load(meta).all_slices()
    late = str(int(meta.timeline.latest_time or "") + 1)
    writer = TimelineWriter(table.storage, meta.config)
    inflight = writer.start(writer.request(late, ActionKind.DELTACOMMIT))
    table.failed_writes_policy = "NEVER"
    donor = MergeOnRead(version, archive_automatic="false")
    donor.storage = table.memory.clone()
    donor.failed_writes_policy = "NEVER"
    at = donor.upsert(("a", "x", 7, 7)).instant_time
    (with_log,) = FileSystemView.load(donor.meta).all_slices()
    (log,) = with_log.log_files
    table.upsert(("a", "x", 2, 2))
    table.compact_now()
    data = donor.storage.read(log.path).replace(at.encode(), late.encode())
    table.storage.write(log.path.replace(at, late), data)
    body = CommitMetadata({}, table.meta.commits.metadata(table.meta.timeline.commits().instants[0]).extra_metadata)
    done = str(int(table.meta.timeline.latest_time or "") + 1)
    writer.complete(inflight, done, encode_commit(body, ActionKind.DELTACOMMIT, int(version)))
    assert table.rows() == [("a", "x", 7, 7)]
    for n in range(4):
        table.upsert(("b", "x", n, n))

    gone = archived(table, compact_inline_max_delta_commits="1").instant_times

    assert late in gone
    assert table.rows() == [("a", "x", 7, 7), ("b", "x", 3, 3)]
    (newest,) = (s for s in FileSystemView.load(table.meta).all_slices() if s.group == file_slice.group)
    assert late in {log.instant_time for log in newest.log_files}


# ---- against a model -------------------------------------------------------------------------------------------------

KINDS = st.sampled_from(["commit", "commit", "commit", "clean", "rollback", "pending", "savepoint"])


@settings(max_examples=150, deadline=None)
@given(
    kinds=st.lists(KINDS, max_size=25),
    kept=st.integers(1, 6),
    limit=st.none() | st.integers(0, 30),
    beyond=st.booleans(),
    by_number=st.booleans(),
)
def test_what_leaves_is_the_oldest_and_nothing_that_is_needed(
    kinds: list[str], kept: int, limit: int | None, beyond: bool, by_number: bool
) -> None:
    instants: list[Instant] = []
    saved: set[str] = set()
    for n, kind in enumerate(kinds):
        time = f"{100 + n}"
        if kind == "savepoint":
            commits = [i for i in instants if i.action is ActionKind.COMMIT and i.is_completed]
            if commits:
                saved.add(commits[-1].requested_time)
        elif kind == "pending":
            instants.append(Instant(time, ActionKind.COMMIT, State.INFLIGHT))
        else:
            instants.append(Instant(time, ActionKind(kind), State.COMPLETED, time + "5"))
    limits = [ArchiveLimit(f"{100 + limit}", "why")] if limit is not None else []
    timeline = Timeline((*instants, *(Instant(t, ActionKind.SAVEPOINT, State.COMPLETED, "999") for t in saved)))

    plan = select_instants(
        timeline,
        kept,
        limits,
        frozenset(saved) if beyond else frozenset(),
        frozenset(timeline.of([ActionKind.CLEAN]).instants[-1:]),
        (kept, kept + 1) if by_number else None,
    )

    left = Timeline(tuple(i for i in timeline if i not in plan.instants))
    commits_left = left.commits().instants
    spared = saved if beyond else set()
    assert len([i for i in commits_left if i.requested_time not in spared]) >= min(
        kept, len([i for i in timeline.commits() if i.requested_time not in spared])
    )
    assert all(i.is_completed for i in plan.instants)
    assert all(limit is None or i.requested_time < f"{100 + limit}" for i in plan.instants)
    gone = [i for i in plan.instants if i.action is ActionKind.COMMIT]
    older = [i for i in commits_left if gone and i.requested_time < gone[-1].requested_time]
    assert {i.requested_time for i in older} <= spared  # what goes is the oldest
    assert not {i.requested_time for i in gone} & spared
    newest_clean = timeline.of([ActionKind.CLEAN]).instants[-1:]
    assert not set(newest_clean) & set(plan.instants)
    # Readers go on seeing the files of what left, and of nothing else.
    pending = [i for i in timeline if not i.is_completed]
    if not pending or not gone or gone[-1] < pending[0]:
        assert all(left.is_visible(i.requested_time) for i in timeline.commits()) or not commits_left
