"""Options of notifications about actions: metrics for reporters, commits for callbacks.

Source: Hudi's documented keys (HoodieMetricsConfig, HoodieWriteCommitCallbackConfig).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TypeAlias

from pyhudi.errors import ConfigError, MissingLibrary
from pyhudi.model.options.declare import Values, option, parse, part
from pyhudi.model.options.spec import Kind

__all__ = [
    "CALLBACK_CLASS",
    "HTTP_CALLBACK",
    "SECRET_KEYS",
    "CallbackOptions",
    "Message",
    "MetricsOptions",
    "PushGatewayOptions",
    "callback_options",
    "metrics_options",
]

Message: TypeAlias = Mapping[str, object]

_ON = "hoodie.metrics.on"
_REPORTER = "hoodie.metrics.reporter.type"
_LOCK = "hoodie.metrics.lock.enable"
_LABELS = "hoodie.metrics.pushgateway.report.labels"
_PROMETHEUS = ("PROMETHEUS", "PROMETHEUS_PUSHGATEWAY")


def _labels_of(text: str) -> Mapping[str, str]:
    pairs = [part.partition(":") for part in text.split(",") if part.strip()]
    wrong = [name for name, colon, value in pairs if not (colon and name.strip() and value.strip())]
    if wrong:
        raise ConfigError(f"{_LABELS}: expected name:value,name:value, found {text!r}. See docs/metrics.md.")
    return {name.strip(): value.strip() for name, _, value in pairs}


@dataclass(frozen=True, slots=True)
class PushGatewayOptions:
    """The push gateway for metrics, and how often they are pushed."""

    host: str = option("hoodie.metrics.pushgateway.host", "localhost", "Host of the push gateway.")
    port: int = option(
        "hoodie.metrics.pushgateway.port", 9091, "Port of the push gateway; with 443 HTTPS is used.", minimum=1
    )
    job: str = option("hoodie.metrics.pushgateway.job.name", "", "The name of the job under which metrics are pushed.")
    has_random_suffix: bool = option(
        "hoodie.metrics.pushgateway.random.job.name.suffix",
        True,
        "Append a random number to the job name, so that processes don't replace each other's metrics.",
    )
    labels: Mapping[str, str] = option(
        _LABELS,
        {},
        "Labels of all pushed metrics, as `name:value,name:value`.",
        Kind.TEXT,
        "",
        _labels_of,
    )
    period_s: int = option(
        "hoodie.metrics.pushgateway.report.period.seconds",
        30,
        "Seconds between two pushes; metrics are also pushed when the process ends.",
        minimum=1,
    )
    deletes_at_end: bool = option(
        "hoodie.metrics.pushgateway.delete.on.shutdown",
        True,
        "Delete the job's metrics from the gateway when the process ends. Set `false` for jobs of a few seconds, which "
        "Prometheus would otherwise miss.",
    )


@dataclass(frozen=True, slots=True)
class MetricsOptions:
    """`has_locks`: locks and conflicts are counted, too. `reporter_class`: the user's own class, which wins."""

    is_on: bool = option(_ON, False, "Count what writes and table services do, and report it (docs/metrics.md).")
    reporter: str | None = option(
        _REPORTER,
        None,
        "Receiver of the metrics: PROMETHEUS (an endpoint of this process), PROMETHEUS_PUSHGATEWAY, SLF4J and CONSOLE "
        "(Python's logging), INMEMORY (`pyhudi.metrics()`). Required, as Hudi's default, GRAPHITE, is not supported.",
        choices=(*_PROMETHEUS, "SLF4J", "CONSOLE", "INMEMORY"),
        later=("GRAPHITE", "JMX", "DATADOG", "CLOUDWATCH", "M3"),
    )
    reporter_class: str | None = option(
        "hoodie.metrics.reporter.class",
        None,
        "Your own reporter as `module:Class`, instead of `hoodie.metrics.reporter.type`.",
        Kind.TEXT,
    )
    prefix: str | None = option(
        "hoodie.metrics.reporter.metricsname.prefix",
        None,
        "Prefix of the metrics' names. Unset: the table's name. A dot in it becomes `_`.",
        Kind.TEXT,
    )
    has_locks: bool = option(
        _LOCK, False, "Count locks and resolved conflicts, too. Unset: same as `hoodie.metrics.on`."
    )
    has_log_blocks: bool = option(
        "hoodie.metricscompaction.log.blocks.on",
        False,
        "Compactions report damaged and rolled-back log blocks.",
    )
    prometheus_port: int = option(
        "hoodie.metrics.prometheus.port", 9090, "Port of the endpoint that Prometheus scrapes.", minimum=0
    )
    gateway: PushGatewayOptions = part(PushGatewayOptions)


def metrics_options(values: Values) -> MetricsOptions:
    """The options of a call. Raises ConfigError if metrics have no reporter, MissingLibrary if it is not installed."""
    options = parse(MetricsOptions, values)
    if not options.is_on:
        return options
    if options.reporter_class is not None and ":" not in options.reporter_class:
        raise ConfigError(
            f"hoodie.metrics.reporter.class={options.reporter_class}: a reporter of one's own is named as "
            "'module:Class'; Java classes can't be used. See docs/metrics.md."
        )
    if not (options.reporter_class or options.reporter):
        raise ConfigError(
            f"{_ON}=true needs {_REPORTER}: PROMETHEUS, PROMETHEUS_PUSHGATEWAY, SLF4J, CONSOLE or INMEMORY. Hudi's "
            "default, GRAPHITE, is not there; Prometheus can feed Graphite. Nothing was written."
        )
    if options.reporter_class is None and options.reporter in _PROMETHEUS and find_spec("prometheus_client") is None:
        raise MissingLibrary(
            f"{_REPORTER}={options.reporter} needs prometheus-client, which is not installed: "
            'pip install "pyhudi[metrics]". Nothing was written.'
        )
    return options if values.is_given(_LOCK) else replace(options, has_locks=True)


# ---- callbacks -------------------------------------------------------------------------------------------------------

CALLBACK_CLASS = "hoodie.write.commit.callback.class"
HTTP_CALLBACK = "org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback"
_CALLBACK_ON = "hoodie.write.commit.callback.on"
_URL = "hoodie.write.commit.callback.http.url"
_API_KEY = "hoodie.write.commit.callback.http.api.key"
_HEADERS = "hoodie.write.commit.callback.http.custom.headers"
# Values that appear in no message, no log, no representation and no file of the table.
SECRET_KEYS = frozenset({_API_KEY, _HEADERS})
_QUEUES = re.compile(r"(?i)\b(kafka|pulsar)\b|HoodieWriteCommit(Kafka|Pulsar)Callback")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def _headers_of(text: str) -> Mapping[str, str]:
    pairs = [part.partition(":") for part in text.split(";") if part.strip()]
    headers = {name.strip(): value.strip() for name, _, value in pairs}
    if not all(_HEADER_NAME.fullmatch(name) and value.isprintable() and value for name, value in headers.items()):
        raise ConfigError(f"{_HEADERS}: expected Name:value;Name:value; the value, a secret, is not shown.")
    return headers


@dataclass(frozen=True, slots=True)
class CallbackOptions:
    """`function`: the caller's own function instead of a class name."""

    is_on: bool = option(_CALLBACK_ON, False, "Call back after each completed commit of a write.")
    class_name: str = option(
        CALLBACK_CLASS,
        HTTP_CALLBACK,
        "The callback: Hudi's HTTP callback, or your own function as `module:name`; in Python also the function "
        "itself. It is called with the message as a dict.",
    )
    url: str | None = option(
        _URL, None, "Address to which the HTTP callback posts its message, Hudi's JSON.", Kind.TEXT
    )
    timeout_s: int = option(
        "hoodie.write.commit.callback.http.timeout.seconds",
        30,
        "Seconds that the HTTP callback waits for a connection and for an answer, in each of three attempts.",
        minimum=1,
    )
    api_key: str = option(
        _API_KEY,
        "hudi_write_commit_http_callback",
        "Sent as the header HUDI-CALLBACK-KEY. It is never shown.",
        secret=True,
    )
    headers: Mapping[str, str] = option(
        _HEADERS,
        {},
        "More headers, as `Name:value;Name:value`. They are never shown.",
        Kind.TEXT,
        "",
        _headers_of,
        secret=True,
    )
    function: Callable[[Message], object] | None = field(default=None, repr=False)


def callback_options(values: Values, arguments: Mapping[str, object]) -> CallbackOptions:
    """The options of a call. `arguments`: the caller's, which may include a function.

    Raises: ConfigError for Hudi's other classes, and for an HTTP callback without an address.
    """
    options = parse(CallbackOptions, values)
    argument = arguments.get(CALLBACK_CLASS)
    if callable(argument):
        options = replace(options, function=argument)
    if not options.is_on or options.function is not None or ":" in options.class_name:
        return options
    if queue := _QUEUES.search(options.class_name):
        raise ConfigError(
            f"{CALLBACK_CLASS}={options.class_name}: PyHudi sends to no {(queue[1] or queue[2]).capitalize()} itself. "
            "Name a function of yours that does, as 'module:name' (docs/metrics.md). Nothing was written."
        )
    if options.class_name not in (HTTP_CALLBACK, "HTTP"):
        raise ConfigError(
            f"{CALLBACK_CLASS}={options.class_name}: expected {HTTP_CALLBACK}, or a function of yours as "
            "'module:name'; Java classes can't be used. Nothing was written."
        )
    if options.url is None or not re.match(r"(?i)https?://[^\s/]", options.url):
        raise ConfigError(f"{_CALLBACK_ON}=true: the HTTP callback needs {_URL}, an address with http:// or https://.")
    return options
