"""Metrics in Python's logging: one INFO record of the logger `pyhudi.metrics` after each action."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyhudi.listeners.reporters.base import MetricSet
from pyhudi.model.options.reporting import MetricsOptions

__all__ = ["LogReporter"]

_log = logging.getLogger("pyhudi.metrics")


class LogReporter:
    """Logs the gauges of an action as one line, sorted by name."""

    def __init__(self, metrics: MetricSet, options: MetricsOptions) -> None:
        pass

    @staticmethod
    def place(options: MetricsOptions) -> str:
        """All tables share one logger."""
        return "log"

    def report(self, table: str, changed: Mapping[str, float]) -> None:
        """Log the gauges."""
        _log.info("%s: %s", table, ", ".join(f"{name}={value:g}" for name, value in sorted(changed.items())))

    def flush(self) -> None:
        """Do nothing: no record is held back."""
