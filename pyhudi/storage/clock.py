"""Clock: the only access to wall-clock time, waiting and new ids.

Code that needs one of them takes a Clock, so that tests control the time.
"""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

__all__ = ["Clock", "FixedClock", "SystemClock"]


@runtime_checkable
class Clock(Protocol):
    """The interface of time for PyHudi."""

    def now_ms(self) -> int:
        """Return the wall-clock time in milliseconds since the epoch."""
        ...

    def sleep_s(self, seconds: float) -> None:
        """Wait; zero and less return at once."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never go backwards, for measuring durations."""
        ...

    def new_uuid(self) -> str:
        """Return a fresh random id, as 36 characters."""
        ...


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The machine's clock. Picklable."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep_s(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)

    def monotonic_s(self) -> float:
        return time.perf_counter()

    def new_uuid(self) -> str:
        return str(uuid.uuid4())


_FIRST_UUID = 0xA << 124  # an id of eight digits would name a bucket


class FixedClock:
    """A clock for tests: moves only when it is read (by `step_ms`) or slept on; its ids are numbered.

    Threads may share one. A pickled copy continues from the same time, independent of the original.
    """

    def __init__(self, start_ms: int, step_ms: int = 1) -> None:
        self._lock = threading.Lock()
        self._now_ms = start_ms
        self._step_ms = step_ms
        self._slept_s = 0.0
        self._uuids = 0

    @property
    def slept_s(self) -> float:
        """The total time of all sleeps."""
        return self._slept_s

    def now_ms(self) -> int:
        with self._lock:
            now = self._now_ms
            self._now_ms += self._step_ms
            return now

    def sleep_s(self, seconds: float) -> None:
        if seconds > 0:
            with self._lock:
                self._now_ms += max(1, round(seconds * 1000))
                self._slept_s += seconds

    def monotonic_s(self) -> float:
        return self.now_ms() / 1000

    def new_uuid(self) -> str:
        with self._lock:
            self._uuids += 1
            return str(uuid.UUID(int=_FIRST_UUID + self._uuids, version=4))

    def advance(self, milliseconds: int) -> None:
        """Move the time, also backwards, as a machine's clock may."""
        with self._lock:
            self._now_ms += milliseconds

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())
