"""Two writers at once: the one that would overwrite what the other has just committed gives way."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.errors import WriteConflict
from tests.actions.tables import Row, TestTable, rows_of


class InterruptedEngine(LocalEngine):
    """Lets another write happen just before the tasks of its own run."""

    def __init__(self, other: Any) -> None:
        super().__init__(1)
        self._other = other

    def map_groups(self, *args: Any, **kwargs: Any) -> Any:
        other, self._other = self._other, None
        if other is not None:
            other()
        return super().map_groups(*args, **kwargs)


def race(table: TestTable, ours: Row, theirs: pa.Table) -> None:
    """`theirs` is committed while `ours` runs. LAZY, since an eager writer takes every other one for dead."""
    other = TestTable(table.storage, failed_writes_policy="LAZY")
    engine = InterruptedEngine(lambda: other.write("upsert", theirs))
    slow = TestTable(table.storage, engine=engine, failed_writes_policy="LAZY")
    slow.upsert(ours)


@pytest.fixture
def table() -> TestTable:
    made = TestTable()
    made.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    return made


def test_writers_of_the_same_file_group_conflict(table: TestTable) -> None:
    with pytest.raises(WriteConflict) as caught:
        race(table, ("a", "x", 3, 12), rows_of(("a", "x", 2, 11)))

    theirs = table.meta.timeline.last_commit()
    assert theirs is not None
    assert theirs.requested_time in str(caught.value)
    assert table.rows() == [("a", "x", 2, 11), ("b", "y", 1, 20)]
    assert caught.value.retryable
    assert not table.meta.timeline.pending().instants, "the loser has undone itself"


def test_writers_of_different_file_groups_both_commit(table: TestTable) -> None:
    race(table, ("a", "x", 3, 12), rows_of(("b", "y", 2, 21)))

    assert table.rows() == [("a", "x", 3, 12), ("b", "y", 2, 21)]


def test_a_write_that_would_take_back_a_new_column_gives_way(table: TestTable) -> None:
    wider = rows_of(("b", "y", 2, 21)).append_column("note", pa.array(["new"]))
    with pytest.raises(WriteConflict, match="schema"):
        race(table, ("a", "x", 3, 12), wider)

    assert "note" in table.meta.table_schema().names


def test_an_eager_writer_takes_the_other_for_dead(table: TestTable) -> None:
    other = TestTable(table.storage, table.options)
    slow = TestTable(table.storage, engine=InterruptedEngine(lambda: other.upsert(("b", "y", 2, 21))))
    with pytest.raises(WriteConflict, match="rolled it back"):
        slow.upsert(("a", "x", 3, 12))

    assert table.rows() == [("a", "x", 1, 10), ("b", "y", 2, 21)]
