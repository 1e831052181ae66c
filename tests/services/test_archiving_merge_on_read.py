"""Archiving of merge-on-read tables: what compaction and the slices of log files need stays known."""

from __future__ import annotations

import pytest

from pyhudi.formats.timeline.instant_files import encode_commit
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import ActionKind
from pyhudi.transaction.instants import TimelineWriter
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.archived import (
    active,
    archived,
    history,
    upserts,
)
from tests.support.tables.merge_on_read import VERSIONS, MergeOnRead

pytestmark = pytest.mark.filterwarnings("ignore:.*is not above hoodie.clean.commits.retained.*")


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_merge_on_read_keeps_the_delta_commits_that_compaction_waits_for(version: str) -> None:
    table = MergeOnRead(version, archive_automatic="false")
    times = upserts(table, 9)
    rows = table.rows()

    assert archived(table).instant_times == tuple(times[:4])
    assert archived(table, compact_inline_max_delta_commits="3").instant_times == (times[4], times[5])
    assert table.rows() == rows


@pytest.mark.thorough
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
