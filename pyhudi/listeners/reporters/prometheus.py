"""Metrics for Prometheus: an endpoint in this process that it scrapes, and pushes to a push gateway.

Names are those of Hudi's reporters: any character but letters, digits, colons and underscores becomes `_`. Counters are
gauges, timers are summaries in seconds. `pip install "pyhudi[metrics]"` installs prometheus-client.
"""

from __future__ import annotations

import atexit
import random
import re
import threading
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, delete_from_gateway, pushadd_to_gateway, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pyhudi.listeners.reporters.base import MetricSet
from pyhudi.model.options.reporting import MetricsOptions, PushGatewayOptions
from pyhudi.warnings import warn_caller

__all__ = ["EndpointReporter", "PushGatewayReporter"]

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9:_]")
_PUSH_TIMEOUT_S = 10.0


class _HudiCollector(Collector):
    """The numbers of a set as Prometheus' metric families, read at each scrape."""

    def __init__(self, metrics: MetricSet) -> None:
        self._metrics = metrics

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: metrics appear as tables are written."""
        yield from ()

    def collect(self) -> Iterator[Metric]:
        """Yield all current numbers."""
        for name, value in sorted(self._metrics.numbers().items()):
            yield GaugeMetricFamily(_name(name), f"Hudi's {name}", value=value)
        for name, timer in sorted(self._metrics.timers().items()):
            family = Metric(_name(name), f"Hudi's {name}, in seconds", "summary")
            for quantile, seconds in timer.quantiles.items():
                family.add_sample(_name(name), {"quantile": f"{quantile:g}"}, seconds)
            family.add_sample(f"{_name(name)}_count", {}, timer.count)
            family.add_sample(f"{_name(name)}_sum", {}, timer.sum_s)
            yield family


def _name(name: str) -> str:
    text = _NOT_IN_NAMES.sub("_", name)
    return f"_{text}" if text[:1].isdigit() else text


def _registry(metrics: MetricSet) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_HudiCollector(metrics))
    return registry


class EndpointReporter:
    """Serves Prometheus at a port of this process, from the first action on. Raises OSError if the port is in use."""

    def __init__(self, metrics: MetricSet, options: MetricsOptions) -> None:
        self._server, _ = start_http_server(options.prometheus_port, registry=_registry(metrics))

    @property
    def port(self) -> int:
        """The port that the endpoint listens at."""
        return int(self._server.server_port)

    @staticmethod
    def place(options: MetricsOptions) -> str:
        """All tables that name a port share its endpoint."""
        return f"prometheus:{options.prometheus_port}"

    def report(self, table: str, changed: Mapping[str, float]) -> None:
        """Do nothing: Prometheus scrapes the endpoint."""

    def flush(self) -> None:
        """Do nothing: nothing is held back."""


class PushGatewayReporter:
    """Pushes all numbers periodically from a thread, and when the process ends.

    The first of several failed pushes in a row becomes a warning.
    """

    def __init__(self, metrics: MetricSet, options: MetricsOptions) -> None:
        self.gateway = gateway = options.gateway
        self._registry = _registry(metrics)
        scheme = "https" if gateway.port == 443 else "http"
        self._url = f"{scheme}://{gateway.host}:{gateway.port}"
        self._job = f"{gateway.job}{random.getrandbits(63)}" if gateway.has_random_suffix else gateway.job
        self._failed, self._ended = False, threading.Event()
        self._pushing = threading.Lock()
        threading.Thread(target=self._run, name="hudi-push", daemon=True).start()
        atexit.register(self._end)

    @staticmethod
    def place(options: MetricsOptions) -> str:
        """All tables with the same gateway, job and labels share a reporter."""
        return f"gateway:{_identity(options.gateway)}"

    def report(self, table: str, changed: Mapping[str, float]) -> None:
        """Do nothing: the thread pushes the numbers."""

    def flush(self) -> None:
        """Push all numbers now."""
        with self._pushing:
            pushadd_to_gateway(self._url, self._job, self._registry, dict(self.gateway.labels), _PUSH_TIMEOUT_S)

    def _run(self) -> None:
        while not self._ended.wait(self.gateway.period_s):
            self._try("pushed to", self.flush)

    def _end(self) -> None:
        self._ended.set()
        self._try("pushed to", self.flush)
        if self.gateway.deletes_at_end:
            self._try("deleted from", self._delete)

    def _delete(self) -> None:
        with self._pushing:
            delete_from_gateway(self._url, self._job, dict(self.gateway.labels), _PUSH_TIMEOUT_S)

    def _try(self, what: str, work: Callable[[], None]) -> None:
        try:
            work()
            self._failed = False
        except Exception as error:
            if not self._failed:
                warn_caller(f"Metrics could not be {what} {self._url}: {type(error).__name__}: {error}")
            self._failed = True


def _identity(gateway: PushGatewayOptions) -> str:
    labels = ",".join(f"{name}:{value}" for name, value in sorted(gateway.labels.items()))
    return f"{gateway.host}:{gateway.port}/{gateway.job}/{labels}"
