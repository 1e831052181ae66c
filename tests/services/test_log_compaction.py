"""Log compaction of tables in memory: blocks are merged, base files stay."""

from __future__ import annotations

import pytest

from pyhudi.model.instant import ActionKind
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.compacted import EVERYTHING, ROWS, Compacted
from tests.support.tables.merge_on_read import BLOCK_FORMATS, VERSIONS


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("block_format", BLOCK_FORMATS)
def test_a_log_compaction_merges_blocks_and_changes_no_row(version: str, block_format: str) -> None:
    table = Compacted(version, logfile_data_block_format=block_format).start()
    before, bases, logs = table.rows(EVERYTHING), table.base_names(), table.logs()
    result = table.log_compact()
    assert table.rows(EVERYTHING) == before
    assert table.base_names() == bases
    (new,) = set(table.logs()) - set(logs)
    assert new.startswith("x/"), "the slice in y has one block only"
    (run,) = result.runs
    assert (run.file_slices, run.log_files, run.log_records) == (1, 2, 2)
    last = table.meta.timeline.last_commit()
    assert last is not None
    body = table.meta.commits.metadata(last)
    assert (last.action, body.operation_type, body.compacted) == (ActionKind.DELTACOMMIT, "LOG_COMPACT", True)
    (stat,) = body.stats()
    base_instant = FileSystemView.load(table.meta).slices("x")[0].base_instant
    assert (stat.prev_commit, stat.num_update_writes, stat.num_deletes) == (base_instant, 1, 1)
    assert (stat.total_log_files_compacted, stat.total_log_blocks) == (2, 2)
    table.upsert(("a", "x", 3, 12), ("b", "x", 9, 21))
    rows = [("a", "x", 3, 12), ("b", "x", 9, 21), ROWS[1]]
    assert table.rows() == rows
    table.log_compact()
    assert table.rows() == rows
    table.compact()
    assert table.rows() == rows
    assert not any(s.log_files for s in FileSystemView.load(table.meta).all_slices())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_log_compaction_that_waits_merges_what_it_planned(version: str) -> None:
    table = Compacted(version).start()
    scheduled = table.log_compact(schedule_only=True).scheduled
    table.upsert(("a", "x", 3, 12))
    rows = [("a", "x", 3, 12), ROWS[1]]
    assert table.rows() == rows
    assert table.log_compact(instant=scheduled).instant_times == (scheduled,)
    assert table.rows() == rows


@pytest.mark.parametrize("version", VERSIONS)
def test_a_compaction_overtakes_a_log_compaction(version: str) -> None:
    table = Compacted(version).start()
    scheduled = table.log_compact(schedule_only=True).scheduled
    table.compact()
    table.upsert(("a", "x", 3, 12))
    table.log_compact(instant=scheduled)
    rows = [("a", "x", 3, 12), ROWS[1]]
    assert table.rows() == rows
    table.compact()
    assert table.rows() == rows


def test_a_log_compaction_reads_no_base_file() -> None:
    table = Compacted("9").start()
    before, storage = table.rows(), table.meta.storage
    scheduled = table.log_compact(schedule_only=True).scheduled
    bases = {base.path: storage.read(base.path) for base in FileSystemView.load(table.meta).all_base_files()}
    for path in bases:
        storage.write(path, b"no Parquet")

    assert table.log_compact(instant=scheduled).instant_times == (scheduled,)

    for path, data in bases.items():
        storage.write(path, data)
    assert bases
    assert table.rows() == before
