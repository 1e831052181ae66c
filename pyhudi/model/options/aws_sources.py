"""Options of the Streamer's sources at AWS: Kinesis. Source: Hudi's KinesisSourceConfig."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.declare import milliseconds, option
from pyhudi.model.options.spec import Kind, OptionScope

__all__ = ["KinesisOptions"]

_STREAM = frozenset({OptionScope.STREAM})
_KINESIS = "hoodie.streamer.source.kinesis."


@dataclass(frozen=True, slots=True)
class KinesisOptions:
    """Options of Kinesis as a source."""

    stream: str | None = option(f"{_KINESIS}stream.name", None, "The stream that is read.", Kind.TEXT, scopes=_STREAM)
    region: str | None = option(
        f"{_KINESIS}region", None, "The region of the stream. Unset: the environment's.", Kind.TEXT, scopes=_STREAM
    )
    endpoint_url: str | None = option(
        f"{_KINESIS}endpoint.url", None, "Where Kinesis is, if not at AWS.", Kind.TEXT, scopes=_STREAM
    )
    access_key: str | None = option(
        f"{_KINESIS}access.key", None, "Unset: the environment's credentials.", Kind.TEXT, scopes=_STREAM, secret=True
    )
    secret_key: str | None = option(
        f"{_KINESIS}secret.key", None, "Of the access key.", Kind.TEXT, scopes=_STREAM, secret=True
    )
    starts: str = option(
        f"{_KINESIS}starting.position",
        "LATEST",
        "Where a run without a checkpoint begins: LATEST, with what comes from now on; EARLIEST or TRIM_HORIZON, with "
        "the oldest record.",
        choices=("LATEST", "EARLIEST", "TRIM_HORIZON"),
        scopes=_STREAM,
    )
    max_events: int = option(
        f"{_KINESIS}max.events",
        5_000_000,
        "The most records of a batch; `source-limit` counts records, too, and the smaller one holds.",
        aliases=("hoodie.streamer.kinesis.source.maxEvents",),
        minimum=1,
        scopes=_STREAM,
    )
    appends_places: bool = option(
        f"{_KINESIS}append.offsets",
        False,
        "Rows get `_hoodie_kinesis_source_sequence_number`, `_hoodie_kinesis_source_shard_id`, "
        "`_hoodie_kinesis_source_partition_key` and `_hoodie_kinesis_source_timestamp`.",
        scopes=_STREAM,
    )
    takes_apart: bool = option(
        f"{_KINESIS}enable.deaggregation",
        True,
        "Records that Amazon's producer library put together are taken apart.",
        scopes=_STREAM,
    )
    fails_on_loss: bool = option(
        f"{_KINESIS}fail.on.data.loss.enable",
        False,
        "Records that Kinesis has no longer are an error. false: the shard goes on with its oldest record, and the "
        "loss is said.",
        aliases=(f"{_KINESIS}enable.failOnDataLoss",),
        scopes=_STREAM,
    )
    max_per_request: int = option(
        f"{_KINESIS}max.records.per.request",
        10_000,
        "The most records of one request; Kinesis gives no more than 10,000.",
        aliases=(f"{_KINESIS}getRecords.maxRecords",),
        minimum=1,
        scopes=_STREAM,
    )
    interval_s: float = milliseconds(
        f"{_KINESIS}get.records.interval.ms",
        0.2,
        "Milliseconds between two requests to one shard, which answers five in a second.",
        aliases=(f"{_KINESIS}getRecords.intervalMs",),
        minimum=0,
        scopes=_STREAM,
    )
    first_pause_s: float = milliseconds(
        f"{_KINESIS}retry.initial.interval.ms",
        1.0,
        "Milliseconds before a request that was one too many is made again; they double from try to try.",
        minimum=0,
        scopes=_STREAM,
    )
    longest_pause_s: float = milliseconds(
        f"{_KINESIS}retry.max.interval.ms", 10.0, "The most of these milliseconds.", minimum=0, scopes=_STREAM
    )
    throttle_timeout_s: float = milliseconds(
        f"{_KINESIS}retry.throttle.timeout.ms",
        600.0,
        "After so many milliseconds without an answer the batch fails.",
        minimum=0,
        scopes=_STREAM,
    )
