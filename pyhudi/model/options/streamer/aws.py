"""Options of the Streamer's sources at AWS: Kinesis, S3's events in a queue, and the files that events name.

Source: Hudi's KinesisSourceConfig, S3SourceConfig, CloudSourceConfig and S3EventsHoodieIncrSourceConfig.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.errors import ConfigError
from pyhudi.model.options.declare import milliseconds, option
from pyhudi.model.options.spec import Kind, OptionScope

__all__ = ["EventFilesOptions", "KinesisOptions", "S3QueueOptions"]

_STREAM = frozenset({OptionScope.STREAM})
_KINESIS = "hoodie.streamer.source.kinesis."
_QUEUE = "hoodie.streamer.s3.source.queue."
_CLOUD = "hoodie.streamer.source.cloud.data."
_S3 = "hoodie.streamer.source.s3incr."
_READER = f"{_CLOUD}datasource.options"
_LONGEST_POLL_S = 20  # of SQS


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


def _seconds_of_poll(text: str) -> int:
    if int(text) > _LONGEST_POLL_S:
        raise ConfigError(f"{_QUEUE}long.poll.wait: expected 0 to {_LONGEST_POLL_S}, found {text}.")
    return int(text)


@dataclass(frozen=True, slots=True)
class S3QueueOptions:
    """Options of a queue with S3's events as a source."""

    url: str | None = option(f"{_QUEUE}url", None, "The SQS queue that S3's events come to.", Kind.TEXT, scopes=_STREAM)
    region: str | None = option(
        f"{_QUEUE}region", None, "The region of the queue. Unset: the environment's.", Kind.TEXT, scopes=_STREAM
    )
    wait_s: int = option(
        f"{_QUEUE}long.poll.wait",
        20,
        "Seconds to wait for a first message, up to 20.",
        minimum=0,
        convert=_seconds_of_poll,
        scopes=_STREAM,
    )
    max_messages: int = option(
        f"{_QUEUE}max.messages.per.batch",
        1000,
        "The most messages of a batch; `source-limit` counts messages, too, and the smaller one holds.",
        minimum=1,
        scopes=_STREAM,
    )
    per_request: int = option(
        f"{_QUEUE}max.messages.per.request",
        10,
        "The most messages of one request; SQS gives no more than 10.",
        minimum=1,
        scopes=_STREAM,
    )
    visibility_timeout_s: int = option(
        f"{_QUEUE}visibility.timeout",
        30,
        "Seconds in which others don't see messages that were read: longer than a batch takes.",
        minimum=0,
        scopes=_STREAM,
    )


@dataclass(frozen=True, slots=True)
class EventFilesOptions:
    """Options of files that a table of events names, as a source."""

    format: str = option(
        f"{_CLOUD}datafile.format",
        "parquet",
        "The format of the files.",
        choices=("parquet", "json", "csv", "orc", "avro"),
        aliases=("hoodie.streamer.source.hoodieincr.file.format",),
        scopes=_STREAM,
    )
    endings: tuple[str, ...] = option(
        f"{_CLOUD}select.file.extension",
        (),
        "What the names of the files end with, several with commas. Unset: the format.",
        scopes=_STREAM,
    )
    prefix: str | None = option(
        f"{_CLOUD}select.relpath.prefix",
        None,
        "What the keys of the files begin with.",
        Kind.TEXT,
        aliases=(f"{_S3}key.prefix",),
        scopes=_STREAM,
    )
    pattern: str | None = option(
        f"{_CLOUD}select.relative.path.regex",
        None,
        "A regular expression that is found in the keys of the files, behind the prefix if there is one.",
        Kind.TEXT,
        scopes=_STREAM,
    )
    ignored_prefix: str | None = option(
        f"{_CLOUD}ignore.relpath.prefix",
        None,
        "Files whose keys begin so are left out.",
        Kind.TEXT,
        aliases=(f"{_S3}ignore.key.prefix",),
        scopes=_STREAM,
    )
    ignored_part: str | None = option(
        f"{_CLOUD}ignore.relpath.substring",
        None,
        "Files whose keys have this in them are left out.",
        Kind.TEXT,
        aliases=(f"{_S3}ignore.key.substring",),
        scopes=_STREAM,
    )
    path_columns: tuple[str, ...] = option(
        f"{_CLOUD}partition.fields.from.path",
        (),
        'Columns whose values are in the keys: of `day=5/a.json` the column `day` is "5".',
        scopes=_STREAM,
    )
    reader: str | None = option(
        _READER,
        None,
        'Of CSV: {"header": "true"}, which says that the first line has the columns.',
        Kind.TEXT,
        aliases=(f"{_S3}spark.datasource.options",),
        scopes=_STREAM,
    )
    scheme: str = option(f"{_S3}fs.prefix", "s3", "The scheme by which files of S3 are read.", scopes=_STREAM)
    max_files: int = option(
        f"{_CLOUD}max.files.per.sync", 10_000, "The most files of a batch.", minimum=1, scopes=_STREAM
    )
