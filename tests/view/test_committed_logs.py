"""The sizes of log files according to the write stats of completed writes."""

from __future__ import annotations

import pytest

from pyhudi.model.file_group import CommittedBytes
from pyhudi.view.committed_logs import ArchivedLogWrites, with_committed_bytes
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.archived import archived, history
from tests.support.tables.merge_on_read import VERSIONS, MergeOnRead


def started(version: str) -> MergeOnRead:
    table = MergeOnRead(version)
    table.bulk_insert(("a", "x", 1, 1), ("b", "y", 1, 1))
    table.upsert(("a", "x", 2, 2))
    table.upsert(("a", "x", 3, 3))
    return table


@pytest.mark.parametrize("version", VERSIONS)
def test_every_log_file_knows_who_put_how_much_into_it(version: str) -> None:
    table = started(version)
    slices = FileSystemView.load(table.meta).all_slices()
    found = [log for s in with_committed_bytes(table.meta, slices) for log in s.log_files]
    updates = [instant.requested_time for instant in table.meta.timeline.commits()][1:]
    assert [log.committed for log in found] == [
        (CommittedBytes(time, log.size_bytes),) for time, log in zip(updates, found, strict=True)
    ]
    assert not any(log.is_missing for log in found)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_log_file_that_is_gone_is_missing_from_the_newest_slice_only(version: str) -> None:
    table = started(version)
    gone = table.logs()[0]
    data = table.memory.read(gone)
    table.storage.delete(gone)
    slices = FileSystemView.load(table.meta).all_slices()
    found = [log for s in with_committed_bytes(table.meta, slices) for log in s.log_files]
    assert sorted((log.path, log.is_missing) for log in found) == [(gone, True), (table.logs()[0], False)]

    table.storage.write(gone, data)
    table.compact_now()
    table.storage.delete(gone)
    later = FileSystemView.load(table.meta).all_slices()
    assert not any(s.log_files for s in with_committed_bytes(table.meta, later)), "it belonged to the slice before"


@pytest.mark.parametrize("version", VERSIONS)
def test_log_files_of_writes_that_complete_after_a_compaction_was_planned_belong_to_the_slice_they_are_read_with(
    version: str,
) -> None:
    table = started(version)
    table.compact_now(schedule_only=True)
    table.upsert(("a", "x", 4, 4))
    table.storage.delete(table.logs()[-1])
    slices = FileSystemView.load(table.meta).all_slices()
    found = [log for s in with_committed_bytes(table.meta, slices) for log in s.log_files]
    assert [log.is_missing for log in found] == [False, False, True]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_history_says_what_archived_writes_put_into_a_log_file(version: str) -> None:
    table = started(version)
    for n in range(4, 9):
        table.upsert(("a", "x", n, n))
    archived(table)
    meta = table.meta
    since = meta.timeline.active_since
    assert since is not None
    archived_writes = ArchivedLogWrites(meta.storage, meta.config, since)
    logs = [log for s in FileSystemView.load(meta).all_slices() for log in s.log_files]
    archived_bytes = {one.instant_time: one.size_bytes for log in logs for one in archived_writes(log)}
    updates = set(history(table)[1:])
    assert updates
    assert set(archived_bytes) == updates
    active = with_committed_bytes(meta, FileSystemView.load(meta).all_slices())
    known = {one.instant_time for s in active for log in s.log_files for one in log.committed}
    assert known.isdisjoint(updates)
    assert len(known | updates) == len(logs)
