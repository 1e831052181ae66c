"""An undoing, or what takes the table or partitions as a whole, beside a writer: whoever comes second gives way."""

from __future__ import annotations

import pytest

from pyhudi.actions.open_table import prepare
from pyhudi.actions.undo.rollback import rollback
from pyhudi.engine.base import as_engine
from pyhudi.errors import WriteConflict
from pyhudi.model.options import WriteOptions
from tests.support.simulation.play import Play, chosen, run
from tests.support.simulation.scheduler import Event
from tests.support.tables.small import TestTable

WHOLE = (
    "rollback", "rollback to", "restore", "change of type", "change of version", "savepoint", "delete of a savepoint",
    "delete of a partition", "overwrite of a partition", "overwrite of the table",
)  # fmt: skip
TABLES = ((6, False), (6, True), (8, True), (9, False), (9, True))
POINTS = range(4, 320, 12)


@pytest.mark.parametrize("at", POINTS)
@pytest.mark.parametrize("writer", ["upsert", "update"])
@pytest.mark.parametrize("whole", WHOLE)
def test_a_writer_and_it_leave_a_serial_history_wherever_the_writer_comes_between(
    whole: str, writer: str, at: int
) -> None:
    version, merge_on_read = TABLES[(at // 12 + WHOLE.index(whole)) % len(TABLES)]

    run(Play((whole, writer), version, merge_on_read, events=((at, Event("switch", 0)),)))


@pytest.mark.parametrize("at", POINTS)
@pytest.mark.parametrize("writer", ["upsert", "update"])
@pytest.mark.parametrize("whole", WHOLE)
def test_a_writer_and_it_leave_a_serial_history_wherever_it_comes_between(whole: str, writer: str, at: int) -> None:
    version, merge_on_read = TABLES[(at // 12 + WHOLE.index(whole)) % len(TABLES)]

    run(Play((writer, whole), version, merge_on_read, events=((at, Event("switch", 0)),)))


def test_the_schedule_that_found_rows_of_a_rolled_back_commit_is_right() -> None:
    run(chosen(Play(("insert", "rollback"), 6), seed=23))


def test_a_rollback_gives_way_to_a_write_that_completes_between_its_checks_and_the_lock() -> None:
    table = TestTable()
    table.upsert(("a", "x", 1, 1))
    table.upsert(("b", "x", 1, 2))
    newest = table.meta.timeline.last_commit()
    assert newest is not None
    options = WriteOptions.parse(table.options, table=table.meta.config)
    before, _ = prepare(table.meta, as_engine(table.engine), options, table.clock)
    table.upsert(("c", "x", 1, 3))

    with pytest.raises(WriteConflict, match=r"completed while the rollback of \d+ began.*Nothing was undone") as raised:
        rollback(before, newest.requested_time)

    assert raised.value.retryable
    assert [row[0] for row in table.rows()] == ["a", "b", "c"]
