"""The numbers that reporters are handed, and what a reporter promises."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pyhudi.model.options.reporting import MetricsOptions

__all__ = ["MetricSet", "Reporter", "TimerValues"]

_SAMPLES = 100  # Hudi's timers of locks have as many
QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)


@dataclass(frozen=True, slots=True)
class TimerValues:
    """A timer as it is now: how often it has run, its seconds in all, and quantiles of the newest runs."""

    count: int
    sum_s: float
    quantiles: Mapping[float, float]


@dataclass(slots=True)
class _Timer:
    count: int = 0
    sum_s: float = 0.0
    newest: deque[float] = field(default_factory=lambda: deque(maxlen=_SAMPLES))


class MetricSet:
    """Gauges, counters and timers by name. For several threads."""

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
        """Raise a counter."""
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
        """Gauges and counters, by name."""
        with self._lock:
            return {**self._gauges, **self._counters}

    def timers(self) -> dict[str, TimerValues]:
        """Timers, by name."""
        with self._lock:
            return {
                name: TimerValues(t.count, t.sum_s, _quantiles(sorted(t.newest))) for name, t in self._timers.items()
            }


def _quantiles(newest: list[float]) -> dict[float, float]:
    return {q: newest[min(int(q * len(newest)), len(newest) - 1)] for q in QUANTILES}


class Reporter(Protocol):
    """Brings the numbers of a set to somebody. There is one for each `place` in a process, made by
    `Class(metrics, options)`, in the listeners' thread. How to add one: docs/contributing/add-a-reporter.md.
    """

    @staticmethod
    def place(options: MetricsOptions) -> str:
        """Names where it reports to: options with the same place share a reporter and its numbers. Asked once for equal
        options, by the writer; does nothing else.
        """
        ...

    def report(self, table: str, changed: Mapping[str, float]) -> None:
        """Called after each action, in the listeners' thread, with a copy of the gauges that it set."""
        ...

    def flush(self) -> None:
        """Bring what has not been brought yet."""
        ...
