"""Metrics that stay in this process: `pyhudi.metrics()` shows them."""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.listeners.reporters.base import MetricSet
from pyhudi.model.options.reporting import MetricsOptions

__all__ = ["MemoryReporter"]


class MemoryReporter:
    """Brings them nowhere."""

    def __init__(self, metrics: MetricSet, options: MetricsOptions) -> None:
        pass

    @staticmethod
    def place(options: MetricsOptions) -> str:
        """One memory is for all."""
        return "memory"

    def report(self, table: str, changed: Mapping[str, float]) -> None:
        """The set has them already."""

    def flush(self) -> None:
        """Nothing waits."""
