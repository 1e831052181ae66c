"""Metrics that stay in this process; `pyhudi.metrics()` reads them."""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.listeners.reporters.base import MetricSet
from pyhudi.model.options.reporting import MetricsOptions

__all__ = ["MemoryReporter"]


class MemoryReporter:
    """Keeps metrics in memory; `pyhudi.metrics()` reads them."""

    def __init__(self, metrics: MetricSet, options: MetricsOptions) -> None:
        pass

    @staticmethod
    def place(options: MetricsOptions) -> str:
        """All tables share one set."""
        return "memory"

    def report(self, table: str, changed: Mapping[str, float]) -> None:
        """Do nothing: the set already has the gauges."""

    def flush(self) -> None:
        """Do nothing: nothing is held back."""
