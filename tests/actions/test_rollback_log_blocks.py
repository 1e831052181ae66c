"""Rollbacks below version 8: what a write put into the slices of others is taken back by a command block.

While the instant is known to be gone nobody reads its blocks anyway; once the timeline begins after it, readers take
whatever is older for committed, and the command block alone keeps them out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest

from pyhudi.filegroup.write.markers import APPEND, create_marker, delete_markers
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.model.plans import InstantInfo, RollbackPlan
from pyhudi.transaction.undo import requests_of, undo_files
from pyhudi.view.file_system_view import FileSystemView
from tests.support.storages.film import InterruptedStorage
from tests.support.tables.archived import active, archived
from tests.support.tables.merge_on_read import MergeOnRead
from tests.support.tables.small import Row, rows_of
from tests.support.writers.dying import died_before_completing, on_clone

pytestmark = pytest.mark.filterwarnings("ignore:.*is not above hoodie.clean.commits.retained.*")

LATER, LATEST = "30000101000000000", "30000102000000000"
BEFORE: list[Row] = [("a", "x", 2, 11), ("b", "x", 1, 20), ("c", "x", 1, 30)]


def table_of_one_slice() -> MergeOnRead:
    """A base file with a log file; every row that is written from now on has a block of its own."""
    table = MergeOnRead("6", archive_automatic="false", logfile_data_block_max_size="1")
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "x", 1, 30))
    table.upsert(("a", "x", 2, 11))
    assert table.rows() == BEFORE
    return table


def change(table: MergeOnRead) -> None:
    """Two data blocks and a delete block, in the slice of the others."""
    data = rows_of(("a", "x", 3, 98), ("b", "x", 3, 99), ("c", "x", 3, 0))
    table.write("upsert", data.append_column("_hoodie_is_deleted", pa.array([False, False, True])))


def archive_what_is_there(table: MergeOnRead) -> list[Row]:
    """Writes elsewhere, and nothing older than they on the active timeline; their rows."""
    until = table.meta.timeline.latest_time or ""
    rows: list[Row] = [("later", "y", n, n) for n in range(5)]
    for row in rows:
        table.upsert(row)
    archived(table, compact_inline_max_delta_commits="1")
    assert active(table)[0] > until
    return rows[-1:]


def blocks_of(table: MergeOnRead, instant_time: str) -> list[LogBlock]:
    """Data and delete blocks of an instant, undone ones too."""
    found = [block for path in table.logs() for block in scan_log(table.storage, path)]
    return [
        block
        for block in found
        if isinstance(block, LogBlock) and block.instant_time == instant_time and block.rollback_target is None
    ]


def as_it_died(table: MergeOnRead, dead: str) -> None:
    """The markers name the log files."""


def without_markers(table: MergeOnRead, dead: str) -> None:
    """What it was going to update is in its inflight file."""
    delete_markers(table.storage, dead)


def with_markers_of_old_writers(table: MergeOnRead, dead: str) -> None:
    """Writers before 0.15 name the base file to whose logs they append."""
    delete_markers(table.storage, dead)
    for base_file in FileSystemView.load(table.meta).base_files("x"):
        create_marker(table.storage, dead, base_file.path, APPEND)


@pytest.mark.thorough
@pytest.mark.parametrize("left", [as_it_died, without_markers, with_markers_of_old_writers])
def test_log_blocks_of_a_dead_write_are_undone_for_good(left: Callable[[MergeOnRead, str], None]) -> None:
    table = died_before_completing(table_of_one_slice(), change)
    (pending,) = table.meta.timeline.pending()
    dead = pending.requested_time
    assert len(blocks_of(table, dead)) == 3
    left(table, dead)
    files = table.paths()

    assert table.upsert(("later", "y", 0, 0)).rolled_back == (dead,)

    assert [path for path in files if path not in table.paths()] == []
    assert table.rows() == [*BEFORE, ("later", "y", 0, 0)]
    assert [*BEFORE, *archive_what_is_there(table)] == table.rows()


@pytest.mark.thorough
def test_all_log_blocks_of_a_write_are_undone_for_good_by_one_command() -> None:
    table = table_of_one_slice()
    change(table)
    last = table.meta.timeline.last_commit()
    assert last is not None
    table.roll_back(last.requested_time)

    assert len(blocks_of(table, last.requested_time)) == 3
    assert len([path for path in table.logs() if path.endswith("_1-0-1")]) == 1
    assert table.rows() == BEFORE
    assert [*BEFORE, *archive_what_is_there(table)] == table.rows()


def test_two_rollbacks_at_once_leave_the_command_of_each() -> None:
    """The second is done before each call of the first: they look for the slice's next version alike."""
    table = table_of_one_slice()
    plans = []
    for _ in range(2):
        change(table)
        (*_, last) = table.meta.timeline.commits()
        target = InstantInfo(last.requested_time, str(last.action))
        plans.append(RollbackPlan(target, requests_of(last, table.meta)))
    first, second = plans
    counted = InterruptedStorage(on_clone(table).memory)
    undo_files(first, LATER, counted)

    for n in range(1, len(counted.verbs) + 1):
        attempt = on_clone(table)
        undo_files(
            first, LATER, InterruptedStorage(attempt.memory, n, partial(undo_files, second, LATEST, attempt.memory))
        )
        blocks = [block for path in attempt.logs() for block in scan_log(attempt.storage, path)]
        targets = {block.rollback_target for block in blocks if isinstance(block, LogBlock)} - {None}
        assert targets == {plan.instant_to_rollback.commit_time for plan in plans}, f"call {n}"
