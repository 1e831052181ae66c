"""Archiving: old instants leave the active timeline, and nothing that anybody still needs leaves with them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.errors import ConfigError
from pyhudi.model.instant import ActionKind
from pyhudi.model.options import WriteOptions
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.snapshot import read_batches
from pyhudi.storage.memory import InjectedFault
from pyhudi.timeline.archived_timeline import archive_log, load_archived_timeline
from pyhudi.transaction.instants import TimelineWriter
from pyhudi.view.readable_history import load_readable_history
from tests.support.storages.torn import TornStorage
from tests.support.tables.archived import (
    KEEP,
    ONE_CLEANED,
    active,
    archived,
    clean,
    history,
    rows_of_one,
    savepoint,
    table_of,
    upserts,
)
from tests.support.tables.merge_on_read import VERSIONS
from tests.support.tables.small import TestTable

pytestmark = pytest.mark.filterwarnings("ignore:.*is not above hoodie.clean.commits.retained.*")


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
    for kept in load_archived_timeline(table.storage, table.meta.config).instants():
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


@pytest.mark.thorough
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


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_the_newest_clean_stays_and_older_ones_go(version: str) -> None:
    table = table_of(version)
    upserts(table, 2)
    cleans = [clean(table, version, active(table)[-1]) for _ in range(4)]
    upserts(table, 5)

    gone = archived(table).instant_times

    # Version 6: by their own number. The first of those that took the most stays, and the newest.
    assert [time for time in cleans if time in gone] == (cleans[1:2] if version == "6" else cleans[1:3])


@pytest.mark.thorough
def test_the_clean_that_took_the_most_stays_so_that_nobody_reads_what_is_gone() -> None:
    table = table_of()
    times = upserts(table, 5)
    most = clean(table, "9", times[4])
    for n in range(3):
        clean(table, "9", times[n])
    upserts(table, 5)

    assert most not in archived(table).instant_times
    assert [load_readable_history(table.meta).is_readable(time) for time in times] == [False, False, False, False, True]


@pytest.mark.thorough
def test_cleaning_that_keeps_more_raises_what_stays() -> None:
    table = table_of()
    times = upserts(table, 9)
    assert not archived(table, clean_commits_retained="8").archived
    assert archived(table, clean_commits_retained="5").instant_times == tuple(times[:3])


def test_max_must_be_above_min() -> None:
    with pytest.raises(ConfigError, match=r"hoodie.keep.max.commits=5 must be greater than hoodie.keep.min.commits=7"):
        WriteOptions.parse({"hoodie.keep.max.commits": "5", "hoodie.keep.min.commits": "7"})


@pytest.mark.thorough
def test_a_run_of_version_6_after_one_that_died_archives_nothing_twice() -> None:
    """By the entries themselves, for the reader of the archive lets an instant count once however often it is there."""
    table = table_of("6")
    times = upserts(table, 6)
    rehearsal = TestTable(table.memory.clone(), table.options)
    archived(rehearsal)
    timeline = table.meta.config.timeline_path
    first_delete = next(
        n
        for n, (verb, path) in enumerate(rehearsal.memory.log, 1)
        if verb == "delete" and path.startswith(f"{timeline}/{times[0]}.")
    )
    table.memory.reset_faults()
    table.memory.fail_at(first_delete)
    with pytest.raises(InjectedFault):
        archived(table)
    table.memory.reset_faults()
    assert (active(table), history(table)) == (times, times[:4])

    assert archived(table).files == ()

    assert (active(table), history(table)) == (times[4:], times[:4])
    upserts(table, 4)
    archived(table)
    entries = archive_log(table.storage, table.meta.config).entries()
    keys = [(entry["commitTime"], entry["actionType"], entry["actionState"]) for entry in entries]
    assert len(keys) == len(set(keys))
    assert {time for time, _, _ in keys} >= set(times[:4])


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


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_an_archiving_that_falls_into_the_listing_of_a_reader_hides_no_rows(version: str) -> None:
    table = table_of(version)
    for n in range(8):
        table.upsert((f"k{n}", f"p{n}", n, n))
    rows = table.rows()
    # The older half is shown as it was before, the newer one as it is after the archiving.
    torn = TornStorage(table.memory, table.meta.config.timeline_path, [lambda: archived(table)])

    assert TestTable(torn).rows() == rows
    assert history(table)


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_markers_that_were_left_go_with_their_instant_and_others_stay(version: str) -> None:
    table = table_of(version)
    times = upserts(table, 6)
    for time in (times[0], times[-1]):
        table.storage.write(f".hoodie/.temp/{time}/x/f_0-0-0_{time}.parquet.marker.CREATE", b"")
    gone = archived(table).instant_times

    assert times[0] in gone
    assert times[-1] not in gone
    assert [entry.name for entry in table.storage.list(".hoodie/.temp")] == [times[-1]]
