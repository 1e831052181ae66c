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

__all__ = ["measured", "resolved"]


@contextmanager
def measured(
    held: AbstractContextManager[None], options: WriteOptions, table_name: str, clock: Clock
) -> Iterator[None]:
    """Hold a lock, and count how often, how long it took to get and how long it was held."""
    began_s = clock.monotonic_s()
    metrics.count(options, table_name, "lock.acquire.attempts")
    taken_s: float | None = None
    try:
        with held:
            taken_s = clock.monotonic_s()
            metrics.count(options, table_name, "lock.acquire.success")
            metrics.time(options, table_name, "lock.request.latency", taken_s - began_s)
            yield
    except LockTimeout:
        if taken_s is None:
            metrics.count(options, table_name, "lock.acquire.failure")
            metrics.time(options, table_name, "lock.request.latency", clock.monotonic_s() - began_s)
        raise
    finally:
        if taken_s is not None:
            metrics.time(options, table_name, "lock.acquire.duration", clock.monotonic_s() - taken_s)


def resolved(checks: Callable[[], None], options: WriteOptions, table_name: str, clock: Clock) -> None:
    """Check for conflicts with other writers, and count whether there were any."""
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
