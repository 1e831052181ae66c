"""Metrics in Python's logging: a record at INFO after each action, by the logger `pyhudi.metrics`."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyhudi.listeners.reporters.base import MetricSet
from pyhudi.model.options.reporting import MetricsOptions

__all__ = ["LogReporter"]

_log = logging.getLogger("pyhudi.metrics")


class LogReporter:
    """Logs the gauges of an action in a line, by name."""

    def __init__(self, metrics: MetricSet, options: MetricsOptions) -> None:
        pass

    @staticmethod
    def place(options: MetricsOptions) -> str:
        """One logger is for all."""
        return "log"

    def report(self, table: str, changed: Mapping[str, float]) -> None:
        """Log them."""
        _log.info("%s: %s", table, ", ".join(f"{name}={value:g}" for name, value in sorted(changed.items())))

    def flush(self) -> None:
        """Nothing waits."""
