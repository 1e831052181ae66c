"""Heartbeats."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from pyhudi.storage import FixedClock, LocalStorage, MemoryStorage
from pyhudi.storage.memory import MemoryStorage as Memory
from pyhudi.timeline.heartbeat import Heartbeat, is_expired

T = "20250713010535797"
PATH = f".hoodie/.heartbeat/{T}"
LONG_S = 300  # nothing takes so long, on a busy machine either


def test_a_beat_is_a_file_of_now_that_names_its_process() -> None:
    storage, clock = MemoryStorage(), FixedClock(5_000, step_ms=0)

    Heartbeat(storage, T, clock).beat()

    info = storage.stat(PATH)
    assert info is not None
    assert info.modified_ms == 5_000
    assert json.loads(storage.read(PATH))["pid"] == os.getpid()


def test_a_writer_is_dead_after_more_than_two_missed_beats() -> None:
    storage, clock = MemoryStorage(), FixedClock(1_000_000, step_ms=0)
    Heartbeat(storage, T, clock).beat()

    assert not is_expired(storage, T, 1_000_000 + 120_000)
    assert is_expired(storage, T, 1_000_000 + 120_001)
    assert not is_expired(storage, T, 1_000_000 + 120_001, misses=3)


def test_a_writer_without_a_file_is_dead() -> None:
    assert is_expired(MemoryStorage(), T, 1_760_000_000_000)


def test_the_heart_beats_in_the_background_until_it_is_stopped(tmp_path: Path) -> None:
    beats: list[int] = []
    enough = threading.Event()

    class Counted(LocalStorage):
        def set_modified(self, path: str, modified_ms: int) -> None:
            super().set_modified(path, modified_ms)
            info = self.stat(path)
            beats.append(-1 if info is None else info.modified_ms)
            if len(beats) == 4:
                enough.set()

    storage = Counted(str(tmp_path))
    heartbeat = Heartbeat(storage, T, FixedClock(1_000, step_ms=1_000), interval_ms=1)

    heartbeat.start()
    assert enough.wait(LONG_S)
    heartbeat.stop()

    assert beats[:4] == [1_000, 2_000, 3_000, 4_000]
    assert storage.stat(PATH) is None
    made = len(beats)
    assert not any(thread.name.endswith(T) for thread in threading.enumerate())
    heartbeat.stop()
    assert len(beats) == made


def test_a_beat_that_fails_is_made_up_for() -> None:
    enough = threading.Event()

    class Moody(Memory):
        beats = 0

        def write(self, path: str, data: bytes) -> None:
            self.beats += 1
            if self.beats == 2:
                self.fail_at(1)
            elif self.beats == 3:
                self.reset_faults()
            super().write(path, data)
            if self.beats >= 5:
                enough.set()

    storage = Moody()
    heartbeat = Heartbeat(storage, T, FixedClock(1_000), interval_ms=1)

    heartbeat.start()
    assert enough.wait(LONG_S), "the heart has stopped at the beat that failed"
    heartbeat.stop()


def test_a_writer_sees_that_it_counts_as_dead() -> None:
    clock = FixedClock(1_000_000, step_ms=0)
    heartbeat = Heartbeat(MemoryStorage(), T, clock, interval_ms=100)
    heartbeat.beat()

    assert not heartbeat.is_expired()
    clock.advance(201)
    assert heartbeat.is_expired()


def test_a_block_that_fails_ends_the_beating_and_its_error_goes_on() -> None:
    storage = MemoryStorage()
    heartbeat = Heartbeat(storage, T, FixedClock(1_000))

    def block() -> None:
        with heartbeat.beating(True):
            assert storage.stat(PATH) is not None
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        block()

    assert storage.stat(PATH) is None


def test_a_heart_that_is_not_wanted_does_not_beat() -> None:
    storage = MemoryStorage()

    with Heartbeat(storage, T, FixedClock(1_000)).beating(False):
        assert storage.stat(PATH) is None
