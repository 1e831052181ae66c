"""What every action has in common when it completes; what each is refused for is in tests/faults/test_lost_lock.py."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from pyhudi.actions.undo import restore as restoring
from pyhudi.actions.undo.restore import roll_back
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import WriteConflict
from pyhudi.model.instant import ActionKind
from pyhudi.model.options import WriteOptions
from pyhudi.services.savepoint import savepoint
from pyhudi.storage.clock import FixedClock
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.calls import serve
from pyhudi.transaction.commit import TakenOver, commit
from tests.support.tables.small import TestTable


def made(version: str = "9") -> TestTable:
    clock = FixedClock(1_760_000_000_000)
    options = {"hoodie.write.table.version": version}
    table = TestTable(MemoryStorage(clock=clock), options, clock, LocalEngine(1))
    table.bulk_insert(("a", "x", 1, 10))
    table.upsert(("a", "x", 2, 11))
    return table


def served(table: TestTable, service: Any, **options: str) -> Any:
    parsed = WriteOptions.parse({f"hoodie.{n}": text for n, text in options.items()}, table=table.meta.config)
    return serve(table.storage, service, parsed, table.engine, clock=table.clock)


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_restore_that_another_process_has_finished_is_not_completed_again(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(version)
    first = table.meta.timeline.commits().first_time
    assert first is not None

    def late(*args: Any, **more: Any) -> Any:
        monkeypatch.undo()
        table.upsert(
            ("n", "x", 1, 1), write_concurrency_mode="SINGLE_WRITER"
        )  # takes the restore's process for dead, and finishes it
        return commit(*args, **more)

    monkeypatch.setattr(restoring, "commit", late)
    with pytest.raises(TakenOver, match="is completed by now"):
        served(table, partial(restoring.restore, to=first))

    assert len([path for path in table.memory.paths() if path.endswith(".restore")]) == 1
    assert table.rows() == [("a", "x", 1, 10), ("n", "x", 1, 1)]


def test_a_write_that_was_rolled_back_meanwhile_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made()
    other = TestTable(table.storage, table.options, table.clock, table.engine)

    def late(*args: Any, **more: Any) -> Any:
        monkeypatch.undo()
        other.upsert(("n", "x", 1, 1), write_concurrency_mode="SINGLE_WRITER")
        return commit(*args, **more)

    monkeypatch.setattr("pyhudi.actions.runner.commit", late)
    with pytest.raises(WriteConflict, match="is missing by now"):
        table.upsert(("a", "x", 3, 12))
    assert table.rows() == [("a", "x", 2, 11), ("n", "x", 1, 1)]
    assert not table.meta.timeline.pending().instants


@pytest.mark.parametrize(("service", "draws"), [(roll_back, 2), (savepoint, 1)], ids=["rollback", "savepoint"])
def test_times_of_every_action_wait_for_the_clock_skew_that_the_caller_expects(service: Any, draws: int) -> None:
    table = made()
    assert isinstance(table.clock, FixedClock)
    before_s = table.clock.slept_s
    served(table, service, **{"time.generator.max_expected_clock_skew_ms": "50"})
    assert table.clock.slept_s - before_s == pytest.approx(draws * 0.050)
    assert table.meta.timeline.completed().of([ActionKind.ROLLBACK, ActionKind.SAVEPOINT]).instants
