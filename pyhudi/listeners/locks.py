"""Metrics of locks and of conflicts between writers, by Hudi's names, such as `lock.acquire.attempts`.

Source: Hudi's HoodieLockMetrics and HoodieMetrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from pyhudi.errors import LockTimeout, WriteConflict
from pyhudi.listeners import metrics
from pyhudi.model.options import WriteOptions
from pyhudi.storage.clock import Clock

__all__ = ["check_conflicts", "with_lock_metrics"]


@contextmanager
def with_lock_metrics(
    lock: AbstractContextManager[None], options: WriteOptions, table_name: str, clock: Clock
) -> Iterator[None]:
    """Hold a lock. Count its acquisitions, and time the wait for it and how long it is held."""
    began_s = clock.monotonic_s()
    metrics.count(options, table_name, "lock.acquire.attempts")
    acquired_s: float | None = None
    try:
        with lock:
            acquired_s = clock.monotonic_s()
            metrics.count(options, table_name, "lock.acquire.success")
            metrics.time(options, table_name, "lock.request.latency", acquired_s - began_s)
            yield
    except LockTimeout:
        if acquired_s is None:
            metrics.count(options, table_name, "lock.acquire.failure")
            metrics.time(options, table_name, "lock.request.latency", clock.monotonic_s() - began_s)
        raise
    finally:
        if acquired_s is not None:
            metrics.time(options, table_name, "lock.acquire.duration", clock.monotonic_s() - acquired_s)


def check_conflicts(checks: Callable[[], None], options: WriteOptions, table_name: str, clock: Clock) -> None:
    """Check for conflicts with other writers, and count successes and failures."""
    if not options.metrics.has_locks:
        checks()
        return
    began_s = clock.monotonic_s()
    try:
        checks()
        metrics.count(options, table_name, "conflict_resolution.success.counter")
    except WriteConflict:
        metrics.count(options, table_name, "conflict_resolution.failure.counter")
        raise
    finally:
        metrics.time(options, table_name, "conflict_resolution.timer", clock.monotonic_s() - began_s)
