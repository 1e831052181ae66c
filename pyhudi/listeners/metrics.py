"""Metrics with Hudi's names: gauges of each action, timers, counters; a set of numbers for each reporter.

    METRICS of options → a row of REPORTERS → one reporter and one set of numbers in the process → names with a prefix

A reporter is one file of `reporters/` and one row here; a user's is named as "module:Class".
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyhudi.caller_warnings import warn_caller
from pyhudi.errors import HudiError
from pyhudi.listeners.done import ActionDone
from pyhudi.listeners.numbers import gauges_of
from pyhudi.listeners.reporters.base import MetricSet, Reporter
from pyhudi.model.instant import ActionKind
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.reporting import MetricsOptions
from pyhudi.registry import Registry
from pyhudi.storage.clock import Clock

__all__ = ["REPORTERS", "MetricsListener", "count", "flush_metrics", "metrics", "time"]

REPORTERS: Registry[type[Reporter]] = Registry(
    kind="metrics reporter",
    entries={
        "PROMETHEUS": "pyhudi.listeners.reporters.prometheus:EndpointReporter",
        "PROMETHEUS_PUSHGATEWAY": "pyhudi.listeners.reporters.prometheus:PushGatewayReporter",
        "SLF4J": "pyhudi.listeners.reporters.log:LogReporter",
        "CONSOLE": "pyhudi.listeners.reporters.log:LogReporter",
        "INMEMORY": "pyhudi.listeners.reporters.memory:MemoryReporter",
    },
)
_TIMED_PHASES = {"sweep": "finalize", "prepare": "source_read_and_index"}
_sets: dict[str, MetricSet] = {}
_reporters: dict[str, Reporter] = {}
_lock = threading.Lock()


class MetricsListener:
    """Sets the numbers of an action, and hands them to the reporter."""

    def wants(self, options: WriteOptions) -> bool:
        """When metrics are on."""
        return options.metrics.is_on

    def hear(self, done: ActionDone, options: WriteOptions, clock: Clock) -> None:
        """Set the gauges and the timer of the action."""
        prefix = prefix_of(options.metrics, done.table_name)
        gauges = gauges_of(done, log_blocks=options.metrics.has_log_blocks)
        named = {f"{prefix}{name}": value for name, value in gauges.items()}
        numbers = _set_of(options.metrics)
        numbers.set(named)
        numbers.time(f"{prefix}{_timer_of(done)}.timer", done.duration_s)
        for phase, name in _TIMED_PHASES.items():
            if phase in done.seconds:
                numbers.time(f"{prefix}{name}.timer", done.seconds[phase])
        if done.action in (ActionKind.COMPACTION.value, ActionKind.LOGCOMPACTION.value):
            numbers.count(f"{prefix}compaction.compaction.completed.counter")
        reporter = _reporter_of(options.metrics)
        if reporter is not None:
            reporter.report(done.table, named)


def _timer_of(done: ActionDone) -> str:
    """The action by whose name Hudi times it: a compaction is a commit there, a restore a rollback."""
    services = (ActionKind.COMPACTION.value, ActionKind.LOGCOMPACTION.value)
    if done.action == ActionKind.RESTORE.value:
        return ActionKind.ROLLBACK.value
    return ActionKind.COMMIT.value if done.action in services else done.action


def prefix_of(options: MetricsOptions, table_name: str) -> str:
    """The names' first part, with its dot."""
    prefix = (options.prefix or table_name).replace(".", "_")
    return f"{prefix}." if prefix else ""


def count(options: WriteOptions, table_name: str, name: str) -> None:
    """Raise a counter, when metrics are on."""
    if options.metrics.is_on:
        _set_of(options.metrics).count(f"{prefix_of(options.metrics, table_name)}{name}")


def time(options: WriteOptions, table_name: str, name: str, seconds: float) -> None:
    """Add a run to a timer, when metrics are on."""
    if options.metrics.is_on:
        _set_of(options.metrics).time(f"{prefix_of(options.metrics, table_name)}{name}", seconds)


def metrics() -> dict[str, float]:
    """The metrics of all tables that this process has written with `hoodie.metrics.on`, by Hudi's names.

    A timer is its count and its sum in seconds: `trips.commit.timer.count`, `trips.commit.timer.sum`.

    Returns: name → value, by name; empty before the first action. See docs/metrics.md.
    """
    numbers: dict[str, float] = {}
    for one in tuple(_sets.values()):
        numbers |= one.numbers()
        for name, timer in one.timers().items():
            numbers |= {f"{name}.count": timer.count, f"{name}.sum": timer.sum_s}
    return dict(sorted(numbers.items()))


def flush_metrics() -> None:
    """Push metrics to their gateways now, without waiting for the next push. See docs/metrics.md.

    Raises: OSError when a gateway can't be reached.
    """
    for reporter in tuple(_reporters.values()):
        reporter.flush()


def _class_of(options: MetricsOptions) -> type[Reporter]:
    """The user's own, else the one by its name."""
    return REPORTERS.load(options.reporter_class or options.reporter or "")


def _place(options: MetricsOptions) -> str:
    return _class_of(options).place(options)


def _set_of(options: MetricsOptions) -> MetricSet:
    place = _place(options)
    with _lock:
        return _sets.setdefault(place, MetricSet())


def _reporter_of(options: MetricsOptions) -> Reporter | None:
    """The reporter, made at the first action; None when it can't be made, which is warned of each time."""
    place, numbers = _place(options), _set_of(options)
    make: Callable[[MetricSet, MetricsOptions], Reporter] = _class_of(options)
    with _lock:
        if place not in _reporters:
            try:
                _reporters[place] = make(numbers, options)
            except (OSError, HudiError) as error:
                warn_caller(f"Metrics are counted, but not reported: {place} can't be opened: {error}")
                return None
        return _reporters[place]
