"""The numbers that reporters get, and the contract of a reporter."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pyhudi.model.options.reporting import MetricsOptions

__all__ = ["MetricSet", "Reporter", "TimerValues"]

_SAMPLES = 100  # as many as Hudi's timers of locks keep
QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)


@dataclass(frozen=True, slots=True)
class TimerValues:
    """A snapshot of a timer: its number of runs, their total seconds, and quantiles of the latest runs."""

    count: int
    sum_s: float
    quantiles: Mapping[float, float]


@dataclass(slots=True)
class _Timer:
    count: int = 0
    sum_s: float = 0.0
    newest: deque[float] = field(default_factory=lambda: deque(maxlen=_SAMPLES))


class MetricSet:
    """Gauges, counters and timers by name. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._gauges: dict[str, float] = {}
        self._counters: dict[str, int] = defaultdict(int)
        self._timers: dict[str, _Timer] = defaultdict(_Timer)

    def set(self, gauges: Mapping[str, float]) -> None:
        """Set gauges."""
        with self._lock:
            self._gauges.update(gauges)

    def count(self, name: str, by: int = 1) -> None:
        """Increment a counter."""
        with self._lock:
            self._counters[name] += by

    def time(self, name: str, seconds: float) -> None:
        """Add a run to a timer."""
        with self._lock:
            timer = self._timers[name]
            timer.count += 1
            timer.sum_s += seconds
            timer.newest.append(seconds)

    def numbers(self) -> dict[str, float]:
        """Return gauges and counters, by name."""
        with self._lock:
            return {**self._gauges, **self._counters}

    def timers(self) -> dict[str, TimerValues]:
        """Return timers, by name."""
        with self._lock:
            return {
                name: TimerValues(t.count, t.sum_s, _quantiles(sorted(t.newest))) for name, t in self._timers.items()
            }


def _quantiles(newest: list[float]) -> dict[float, float]:
    return {q: newest[min(int(q * len(newest)), len(newest) - 1)] for q in QUANTILES}


class Reporter(Protocol):
    """The contract of a reporter, which delivers the numbers of a set.

    A process has one reporter for each `place`, created by `Class(metrics, options)` in the listeners' thread. How to
    add one: docs/contributing/add-a-reporter.md.
    """

    @staticmethod
    def place(options: MetricsOptions) -> str:
        """Name the destination. Options with the same place share a reporter and its numbers.

        The writer asks once for equal options. The method has no side effects.
        """
        ...

    def report(self, table: str, changed: Mapping[str, float]) -> None:
        """Called after each action, in the listeners' thread, with a copy of the gauges that it set."""
        ...

    def flush(self) -> None:
        """Deliver everything that has not been delivered yet."""
        ...
