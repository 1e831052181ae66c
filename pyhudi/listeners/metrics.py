"""Metrics with Hudi's names: gauges of each action, timers and counters, in one set for each reporter.

    METRICS of options → a row of REPORTERS → one reporter and one set of numbers per process → names with a prefix

A reporter is one file of `reporters/` and one row here; options name a user's own as "module:Class".
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from pyhudi.errors import ConfigError
from pyhudi.listeners.delivery import wait_for_all
from pyhudi.listeners.notification import ActionCompleted
from pyhudi.listeners.numbers import gauges_of
from pyhudi.listeners.reporters.base import MetricSet, Reporter
from pyhudi.model.instant import ActionKind
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.reporting import MetricsOptions
from pyhudi.registry import Registry
from pyhudi.storage.clock import Clock
from pyhudi.warnings import warn_caller

__all__ = ["REPORTERS", "MetricsListener", "count", "flush_metrics", "metrics", "set_gauges", "time"]

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
_METHODS = ("place", "report", "flush")
_places: dict[tuple[type[Reporter], str], str | Exception] = {}  # by class and options
_owners: dict[str, type[Reporter]] = {}  # the class of each place
_sets: dict[str, MetricSet] = {}
_reporters: dict[str, Reporter] = {}
_lock = threading.Lock()


class MetricsListener:
    """Records the numbers of an action and passes them to the reporter."""

    def is_on(self, options: WriteOptions) -> bool:
        """True if metrics are on."""
        return options.metrics.is_on

    def check(self, options: WriteOptions) -> None:
        """Raise ConfigError if the reporter's class breaks the contract of `Reporter`."""
        _check_reporter(options.metrics)

    def record(self, completed: ActionCompleted, options: WriteOptions) -> None:
        """Set the gauges and the timer of the action."""
        prefix = prefix_of(options.metrics, completed.table_name)
        numbers = _set_of(options.metrics)
        numbers.set(_prefixed_gauges(completed, options))
        numbers.time(f"{prefix}{_timer_of(completed)}.timer", completed.duration_s)
        for phase, name in _TIMED_PHASES.items():
            if phase in completed.seconds:
                numbers.time(f"{prefix}{name}.timer", completed.seconds[phase])
        if completed.action in (ActionKind.COMPACTION.value, ActionKind.LOGCOMPACTION.value):
            numbers.count(f"{prefix}compaction.compaction.completed.counter")

    def on_action(self, completed: ActionCompleted, options: WriteOptions, clock: Clock) -> None:
        """Pass the gauges to the reporter."""
        reporter = _reporter_of(options.metrics)
        if reporter is not None:
            reporter.report(completed.table, _prefixed_gauges(completed, options))


def _prefixed_gauges(completed: ActionCompleted, options: WriteOptions) -> dict[str, float]:
    prefix = prefix_of(options.metrics, completed.table_name)
    gauges = gauges_of(completed, log_blocks=options.metrics.has_log_blocks)
    return {f"{prefix}{name}": value for name, value in gauges.items()}


def _timer_of(completed: ActionCompleted) -> str:
    """Return the action whose name Hudi's timer has: a compaction is timed as a commit, a restore as a rollback."""
    services = (ActionKind.COMPACTION.value, ActionKind.LOGCOMPACTION.value)
    if completed.action == ActionKind.RESTORE.value:
        return ActionKind.ROLLBACK.value
    return ActionKind.COMMIT.value if completed.action in services else completed.action


def prefix_of(options: MetricsOptions, table_name: str) -> str:
    """Return the prefix of a table's metrics, with its dot."""
    prefix = (options.prefix or table_name).replace(".", "_")
    return f"{prefix}." if prefix else ""


def count(options: WriteOptions, table_name: str, name: str, by: int = 1) -> None:
    """Increment a counter, if metrics are on."""
    if options.metrics.is_on:
        _set_of(options.metrics).count(f"{prefix_of(options.metrics, table_name)}{name}", by)


def set_gauges(options: WriteOptions, table_name: str, gauges: Mapping[str, float]) -> None:
    """Set gauges, if metrics are on."""
    if options.metrics.is_on:
        prefix = prefix_of(options.metrics, table_name)
        _set_of(options.metrics).set({f"{prefix}{name}": value for name, value in gauges.items()})


def time(options: WriteOptions, table_name: str, name: str, seconds: float) -> None:
    """Add a run to a timer, if metrics are on."""
    if options.metrics.is_on:
        _set_of(options.metrics).time(f"{prefix_of(options.metrics, table_name)}{name}", seconds)


def metrics() -> dict[str, float]:
    """Return the metrics of all tables that this process has written with `hoodie.metrics.on`, by Hudi's names.

    A timer has a count and a sum in seconds: `trips.commit.timer.count`, `trips.commit.timer.sum`.

    Returns: name → value, sorted by name; empty before the first action. See docs/metrics.md.
    """
    numbers: dict[str, float] = {}
    for one in tuple(_sets.values()):
        numbers |= one.numbers()
        for name, timer in one.timers().items():
            numbers |= {f"{name}.count": timer.count, f"{name}.sum": timer.sum_s}
    return dict(sorted(numbers.items()))


def flush_metrics() -> None:
    """Push metrics to their gateways now, without waiting for the next push. See docs/metrics.md.

    Waits at most 30 s for callbacks and reporters that are still running.

    Raises: OSError if a gateway can't be reached.
    """
    wait_for_all()
    for reporter in tuple(_reporters.values()):
        reporter.flush()


def _check_reporter(options: MetricsOptions) -> None:
    """Refuse a reporter that lacks a method or shares its place with another class. Raises ConfigError."""
    kind, name = _class_of(options), options.reporter_class or options.reporter
    missing = [one for one in _METHODS if not callable(getattr(kind, one, None))]
    if not callable(kind) or missing:
        raise ConfigError(
            f"The metrics reporter {name} has no method {', '.join(missing) or '__init__'}: a reporter is a class with "
            f"{', '.join(_METHODS)} (docs/contributing/add-a-reporter.md). Nothing was written."
        )
    try:
        place = _ask_place(options, kind)
    except Exception:
        return  # becomes a warning after the write
    if not isinstance(place, str) or not place:
        raise ConfigError(
            f"The metrics reporter {name} has the place {place!r}; place() returns a text that names where it reports "
            "to. Nothing was written."
        )
    other = _owners.setdefault(place, kind)
    if _full_name(other) != _full_name(kind):
        raise ConfigError(
            f"The metrics reporters {_full_name(other)} and {_full_name(kind)} have one place, {place!r}, and only one "
            "of them would report. Let place() return another text for each. Nothing was written."
        )


def _full_name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _class_of(options: MetricsOptions) -> type[Reporter]:
    """Return the user's class if the options name one, else the class of the named reporter."""
    return REPORTERS.load(options.reporter_class or options.reporter or "")


def _ask_place(options: MetricsOptions, kind: type[Reporter]) -> str:
    """Return the place that a class names, asked once for equal options. Raises whatever `place` raises."""
    key = kind, repr(options)
    if key not in _places:
        try:
            _places[key] = kind.place(options)
        except Exception as error:
            _places[key] = error
    place = _places[key]
    if isinstance(place, Exception):
        raise place
    return place


def _place_or_name(options: MetricsOptions) -> str:
    """Return the place of the numbers: the class's own, or its name if `place` fails."""
    try:
        return _ask_place(options, _class_of(options))
    except Exception:
        return options.reporter_class or options.reporter or ""


def _set_of(options: MetricsOptions) -> MetricSet:
    place = _place_or_name(options)
    with _lock:
        return _sets.setdefault(place, MetricSet())


def _reporter_of(options: MetricsOptions) -> Reporter | None:
    """Return the reporter, created at the first action. If that fails, warn and return None.

    Called in the listener's thread only.
    """
    kind = _class_of(options)
    place, numbers = _ask_place(options, kind), _set_of(options)
    make: Callable[[MetricSet, MetricsOptions], Reporter] = kind
    if place not in _reporters:
        try:
            _reporters[place] = make(numbers, options)
        except Exception as error:
            warn_caller(f"Metrics are counted, but not reported: {place} can't be opened: {error}")
            return None
    return _reporters[place]
