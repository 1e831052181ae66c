"""The lock file with real Hudi's provider, which deletes it a second time when it closes, whoever has it by then."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.errors import WriteConflict
from pyhudi.locks import LockOptions, LockProvider, hold, open_lock
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.storage import FixedClock, MemoryStorage
from pyhudi.table.write import write_table

LOCK = ".hoodie/lock"
NOW_MS = 1_760_000_000_000
OF_HUDI = b""  # 0.15.0 and 1.2.0 write nothing into it


class ClockOfEvents(FixedClock):
    """Something happens at every sleep: the first of `events` at the first one, and so on."""

    def __init__(self, *events: Callable[[], object]) -> None:
        super().__init__(NOW_MS)
        self.events = list(events)

    def sleep_s(self, seconds: float) -> None:
        super().sleep_s(seconds)
        if self.events:
            self.events.pop(0)()


def lock_of(storage: MemoryStorage, clock: FixedClock) -> LockProvider:
    return open_lock(LockOptions("FILESYSTEM", retry_wait_ms=5), storage, clock)


def test_a_lock_that_hudi_deletes_when_it_closes_its_own_is_taken_again() -> None:
    storage = MemoryStorage()
    storage.create_new(LOCK, OF_HUDI)
    gives_back = closes = lambda: storage.delete(LOCK)
    clock = ClockOfEvents(gives_back, closes)
    lock = lock_of(storage, clock)

    assert lock.try_acquire(1)
    assert clock.events == [], "both deletions happened while it was waiting"
    assert lock.is_held
    assert not lock_of(storage, clock).try_acquire(0)
    lock.release()
    assert storage.stat(LOCK) is None


def test_another_hudi_writer_that_comes_when_hudi_closes_is_waited_for() -> None:
    storage = MemoryStorage()
    storage.create_new(LOCK, OF_HUDI)

    def closes_and_another_comes() -> None:
        storage.delete(LOCK)
        storage.create_new(LOCK, OF_HUDI)

    clock = ClockOfEvents(lambda: storage.delete(LOCK), closes_and_another_comes)
    lock = lock_of(storage, clock)

    assert not lock.try_acquire(0.1)
    assert not lock.is_held
    assert storage.read(LOCK) == OF_HUDI


def test_only_after_hudi_a_new_lock_is_looked_at_again() -> None:
    storage, clock = MemoryStorage(), ClockOfEvents()
    first, second = lock_of(storage, clock), lock_of(storage, clock)
    assert first.try_acquire(0)
    assert clock.slept_s == 0
    clock.events = [first.release]
    assert second.try_acquire(1)
    assert clock.slept_s == pytest.approx(0.005), "one pause between two attempts and nothing more"


@pytest.mark.parametrize("others", [None, OF_HUDI, b"somebody else's note"])
def test_a_lock_whose_file_is_gone_or_anothers_is_not_held(others: bytes | None) -> None:
    storage = MemoryStorage()
    lock = lock_of(storage, FixedClock(NOW_MS))
    assert lock.try_acquire(0)
    storage.delete(LOCK)
    if others is not None:
        storage.create_new(LOCK, others)

    assert not lock.is_held
    with pytest.warns(RuntimeWarning, match=r"real Hudi deleted it when it closed its own"):
        lock.release()
    assert (storage.stat(LOCK) is None) == (others is None)


def test_a_write_whose_lock_file_is_deleted_before_it_completes_does_not_commit() -> None:
    storage, rows = MemoryStorage(), pa.table({"id": ["a"], "v": [1]})
    many = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.lock.provider": "FILESYSTEM",
    }
    options, engine = WriteOptions.parse(many), LocalEngine(1)
    write_table(storage, rows, engine, options)
    deletions: list[bool] = []
    clock = ClockOfEvents(*[lambda: deletions.append(storage.delete(LOCK))] * 20)

    with pytest.warns(RuntimeWarning), pytest.raises(WriteConflict, match="removed by another writer"):
        write_table(storage, rows, engine, options, clock=clock)
    assert any(deletions), "the lock file was there and went"
    assert len(MetaClient.load(storage).timeline.commits()) == 1

    result = write_table(storage, rows, engine, options)
    assert result.updated == 1
    with hold(lock_of(storage, FixedClock(NOW_MS)), 0):
        assert storage.stat(LOCK) is not None
