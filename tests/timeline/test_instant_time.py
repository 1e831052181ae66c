"""Instant times only grow: over drawings, processes, clocks that are set back and hours that come twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import TableError
from pyhudi.locks import LockOptions, hold, open_lock
from pyhudi.model.instant import format_instant_time, next_instant_time, parse_instant_time
from pyhudi.storage import FixedClock, MemoryStorage, SystemClock
from pyhudi.timeline.instant_time import InstantTimes
from pyhudi.timeline.listing import time_of

UTC = timezone.utc
START = datetime(2025, 7, 13, 1, 5, 35, 797_000, tzinfo=UTC)


def clock(start: datetime = START, step_ms: int = 1) -> FixedClock:
    return FixedClock(round(start.timestamp() * 1000), step_ms)


def test_a_time_is_the_clock_in_17_digits() -> None:
    assert InstantTimes(clock(), UTC).draw() == "20250713010535797"


def test_a_time_is_in_the_zone_of_the_timeline() -> None:
    assert InstantTimes(clock(), timezone(timedelta(hours=5, minutes=30))).draw() == "20250713063535797"


def test_the_machines_zone_is_the_default() -> None:
    assert InstantTimes(clock(), None).draw()[:14] == START.astimezone().strftime("%Y%m%d%H%M%S")


def test_times_of_a_clock_that_stands_still_grow() -> None:
    times = InstantTimes(clock(step_ms=0), UTC, skew_ms=0)

    assert [times.draw() for _ in range(3)] == ["20250713010535797", "20250713010535798", "20250713010535799"]


@pytest.mark.parametrize(
    ("latest", "expected"),
    [
        ("20250713010535796", "20250713010535797"),
        ("20250713010535797", "20250713010535798"),
        ("20261231235959999", "20270101000000000"),
        ("20260101000000", "20260101000001000"),  # 14 digits count as ...999
        ("20260101000000123001", "20260101000000124"),  # what metadata tables of old releases add
        ("00000000000000000", "20250713010535797"),
    ],
)
def test_a_time_is_later_than_the_latest_on_the_timeline(latest: str, expected: str) -> None:
    drawn = InstantTimes(clock(), UTC).draw(latest)

    assert drawn == expected
    assert drawn > latest


def test_a_clock_that_was_set_back_does_not_take_time_back() -> None:
    machine = clock()
    times = InstantTimes(machine, UTC)
    first = times.draw()
    machine.advance(-3_600_000)

    assert times.draw() > first


def test_the_hour_that_comes_twice_is_no_step_back() -> None:
    """In local zones instant times are local times; on 26 October 2025 the hour from 2 to 3 comes twice in Berlin."""
    zone = ZoneInfo("Europe/Berlin")
    before = datetime(2025, 10, 26, 0, 59, 59, 0, tzinfo=UTC)  # 02:59:59, summer
    machine = clock(before)
    times = InstantTimes(machine, zone)
    first = times.draw()
    machine.advance(2_000)  # 02:00:01, winter

    second = times.draw()

    assert first == "20251026025959000"
    assert second > first


def test_a_completion_time_is_later_than_its_requested_time() -> None:
    times = InstantTimes(clock(step_ms=0), UTC, skew_ms=0)
    requested = times.draw()

    assert times.draw_completion(requested) > requested


@given(st.lists(st.integers(-10_000, 10_000), max_size=20))
def test_times_grow_whatever_the_clock_does(steps: list[int]) -> None:
    machine = clock()
    times = InstantTimes(machine, UTC, skew_ms=0)
    drawn = []
    for step in steps:
        machine.advance(step)
        drawn.append(times.draw(drawn[0] if drawn else None))

    assert drawn == sorted(set(drawn))


def test_the_lock_is_kept_until_every_clock_has_passed_the_time() -> None:
    """Two writers, the clock of the second is 150 ms behind: with a wait of 200 ms its time is still greater."""
    storage = MemoryStorage()
    first, second = clock(), clock(START - timedelta(milliseconds=150))
    lock = open_lock(LockOptions("FILESYSTEM"), storage, first)
    drawn = InstantTimes(first, UTC, lock).draw()
    second.sleep_s(first.slept_s)  # real time passes for both

    later = InstantTimes(second, UTC, open_lock(LockOptions("FILESYSTEM"), storage, second)).draw()

    assert first.slept_s == 0.2
    assert later > drawn


def test_in_one_process_the_wait_is_a_millisecond() -> None:
    machine = clock()
    InstantTimes(machine, UTC, open_lock(LockOptions(), MemoryStorage(), machine)).draw()

    assert machine.slept_s == 0.001


def test_a_lock_that_the_writer_holds_is_not_taken_again() -> None:
    machine = clock()
    lock = open_lock(LockOptions(), MemoryStorage(), machine)
    with hold(lock, 0):
        InstantTimes(machine, UTC, lock).draw()
        assert lock.is_held
    assert not lock.is_held


def test_writers_in_threads_never_draw_the_same_time() -> None:
    storage = MemoryStorage()

    def draw(_: int) -> list[str]:
        machine = SystemClock()
        times = InstantTimes(machine, UTC, open_lock(LockOptions(), storage, machine))
        return [times.draw() for _ in range(10)]

    with ThreadPoolExecutor(5) as pool:
        drawn = [time for times in pool.map(draw, range(5)) for time in times]

    assert len(set(drawn)) == len(drawn)


@pytest.mark.parametrize(
    "latest", ["99999999999999999", "99991231235959999", "9", "20261301000000000", "x", "²" * 17, "3" * 300]
)
def test_an_instant_after_which_no_time_comes_is_named(latest: str) -> None:
    with pytest.raises(TableError, match="is not an instant time"):
        InstantTimes(clock(), UTC).draw(latest)


@given(st.text(max_size=20) | st.from_regex(r"[0-9]{14}([0-9]{3})?", fullmatch=True))
def test_any_text_is_a_moment_or_no_instant_time(text: str) -> None:
    for zone in (UTC, None, ZoneInfo("Asia/Kolkata")):
        with suppress(TableError):
            assert format_instant_time(parse_instant_time(text, zone), zone)[:14] == text[:14]
    with suppress(TableError):
        assert next_instant_time(text) > text


@pytest.mark.parametrize("modified_ms", [-(2**63), -1, 0, 253_402_300_800_000, 2**63])
def test_any_modification_time_of_a_file_is_an_instant_time(modified_ms: int) -> None:
    for zone in (UTC, None, ZoneInfo("Pacific/Kiritimati"), ZoneInfo("Pacific/Niue")):
        assert len(time_of(modified_ms, zone)) == 17
