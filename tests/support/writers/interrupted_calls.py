"""Ctrl-C at every storage call of an action, in a process that lives on; what is left, and how the next write fares."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from tests.support.tables.small import TestTable
from tests.support.writers.dying import on_clone, places_to_die

__all__ = ["AT_ONCE", "MANY_WRITERS", "assert_stopped", "interruptions"]

Table = TypeVar("Table", bound=TestTable)

AT_ONCE = {
    "hoodie.write.lock.wait_time_ms": "2000",  # a lock that was not given back fails the test
    "hoodie.time.generator.max_expected_clock_skew_ms": "1",  # one machine has one clock
}
MANY_WRITERS = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "FILESYSTEM",
    "hoodie.clean.failed.writes.policy": "LAZY",
    **AT_ONCE,
}


def assert_stopped(table: TestTable, where: str) -> None:
    """No thread of the interrupted action is at work, and no heartbeat or lock of it stays."""
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith(("hudi-heartbeat", "hudi-lock"))], (where, names)
    assert not list(table.storage.walk(".hoodie/.heartbeat")), where
    assert table.storage.stat(".hoodie/lock") is None, where


def interruptions(
    table: Table, act: Callable[[Table], object], error: type[BaseException] = KeyboardInterrupt
) -> Iterator[tuple[Table, str]]:
    """What is left of an action that is interrupted at a storage call, and which one: for each of `places_to_die`."""
    counted = on_clone(table)
    act(counted)
    calls = counted.memory.log
    for kind, n in places_to_die(calls):
        attempt = on_clone(table)
        where = f"{kind} call {n}: {' '.join(calls[n - 1])}"
        attempt.memory.fail_at(n, kind, error)
        with pytest.raises(error):
            act(attempt)
        attempt.memory.reset_faults()
        assert_stopped(attempt, where)
        yield attempt, where
