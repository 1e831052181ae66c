"""Clocks."""

from __future__ import annotations

import pickle
import time
import uuid

from pyhudi.storage import Clock, FixedClock, SystemClock


def test_both_are_clocks() -> None:
    assert isinstance(SystemClock(), Clock)
    assert isinstance(FixedClock(0), Clock)


def test_the_system_clock_is_the_machines() -> None:
    clock = SystemClock()

    before_ms = int(time.time() * 1000)
    assert before_ms <= clock.now_ms() <= int(time.time() * 1000) + 1
    assert clock.monotonic_s() <= clock.monotonic_s()
    assert clock.new_uuid() != clock.new_uuid()
    clock.sleep_s(-1)


def test_a_fixed_clock_moves_by_its_step_and_by_sleeping() -> None:
    clock = FixedClock(1000, step_ms=5)

    assert [clock.now_ms(), clock.now_ms()] == [1000, 1005]
    clock.sleep_s(2)
    assert clock.now_ms() == 3010
    assert clock.slept_s == 2


def test_a_fixed_clock_gives_the_same_valid_ids_every_time() -> None:
    first, second = ([clock.new_uuid() for _ in range(3)] for clock in (FixedClock(0), FixedClock(0)))

    assert first == second
    assert len(set(first)) == 3
    assert all(uuid.UUID(text).version == 4 for text in first)


def test_a_fixed_clock_can_travel() -> None:
    clock = FixedClock(1000)
    clock.now_ms()

    assert pickle.loads(pickle.dumps(clock)).now_ms() == 1001
