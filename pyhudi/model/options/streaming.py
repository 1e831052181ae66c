"""Options of streams: writing a stream's batches to a table, and following a table with a stream.

Source: Hudi's documented keys; docs/formats/incremental.md, "Checkpoint of a sink"; sides taken are in
docs/compatibility.md.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyhudi.errors import ConfigError
from pyhudi.model.options.declare import Values, milliseconds, option, parse, row
from pyhudi.model.options.spec import ON_READ, Kind

__all__ = [
    "APPLIED_CHANGES",
    "BATCH_ID",
    "CHANGES_AFTER",
    "CHANGES_NOTE",
    "DEFAULT_SOURCE",
    "IDENTIFIER",
    "MAX_BYTES",
    "MAX_COMMITS",
    "QUERY_ID",
    "SINK_CHECKPOINT",
    "SINK_QUERY",
    "START_OFFSET",
    "STREAMER_AFTER",
    "STREAMER_NOTES",
    "SourceOptions",
    "StreamOptions",
    "sink_checkpoint",
]

SINK_CHECKPOINT = "_hudi_streaming_sink_checkpoint"  # a key of extra metadata
APPLIED_CHANGES = "pyhudi.apply.changes"  # ours: how changes are applied, and the events that rows don't show
SINK_QUERY = "_pyhudi_streaming_sink_query"  # ours: the query of the batch
QUERY_ID = "hoodie.pyhudi.streaming.query.id"
BATCH_ID = "hoodie.internal.spark.streaming.batch.id"
IDENTIFIER = "hoodie.datasource.write.streaming.checkpoint.identifier"
START_OFFSET = "hoodie.datasource.streaming.startOffset"
MAX_COMMITS = "hoodie.pyhudi.streaming.max.commits.per.batch"
MAX_BYTES = "hoodie.pyhudi.streaming.max.bytes.per.batch"
STREAMER_AFTER = "hoodie.pyhudi.streamer.after"
STREAMER_NOTES = "hoodie.pyhudi.streamer.notes"
CHANGES_AFTER = "hoodie.pyhudi.apply.changes.after"
CHANGES_NOTE = "hoodie.pyhudi.apply.changes.note"
_UNNAMED = "default_single_writer"
_NOTES_ROW = row(
    STREAMER_NOTES,
    None,
    "The checkpoint that comes into the table with a batch of the Streamer, as JSON. The Streamer sets it.",
    Kind.TEXT,
)
_CHANGES_ROW = row(
    CHANGES_NOTE,
    None,
    "What the commit of applied changes notes of them, as JSON. `apply_changes` sets it.",
    Kind.TEXT,
)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Options of a stream's batches, and of the table services next to it. `batch_id` None: not a batch of a stream."""

    batch_id: int | None = option(
        BATCH_ID,
        None,
        "Number of the stream's batch that is written. The commit stores it, and a batch that is already in the table "
        "is refused. The sink sets it.",
        Kind.INTEGER,
        minimum=0,
    )
    identifier: str = option(
        IDENTIFIER,
        _UNNAMED,
        "Name of the stream. Unnamed streams are distinguished by the query ids of their checkpoints. For named "
        "streams only the name counts, so a new checkpoint location needs a new name.",
    )
    streamer_after: str | None = option(
        STREAMER_AFTER,
        None,
        "The write is a batch of the Streamer that was read from the checkpoint of this commit (`none`: without one). "
        "It is refused when another commit has brought a checkpoint since. The Streamer sets it.",
        Kind.TEXT,
        also=(_NOTES_ROW,),
    )
    changes_after: str | None = option(
        CHANGES_AFTER,
        None,
        "The write is a batch of applied changes whose rows were computed after those of this commit (`none`: the "
        "first ones). It is refused when another commit has applied changes since. `apply_changes` sets it.",
        Kind.TEXT,
        also=(_CHANGES_ROW,),
    )
    query: str | None = option(
        QUERY_ID,
        None,
        "Id of the batch's streaming query; the commit stores it with the batch number. The sink sets it.",
    )
    retry_count: int = option(
        "hoodie.datasource.write.streaming.retry.count",
        3,
        "How often the sink tries to write a batch before the stream fails.",
        minimum=0,
    )
    retry_interval_s: float = milliseconds(
        "hoodie.datasource.write.streaming.retry.interval.ms",
        2.0,
        "Milliseconds between the first two attempts to write a batch; they double with each attempt.",
        minimum=0,
    )
    ignore_failed_batch: bool = option(
        "hoodie.datasource.write.streaming.ignore.failed.batch",
        False,
        "Skip a batch that can't be written, with a warning, and continue the stream. Its rows are lost.",
    )
    disable_compaction: bool = option(
        "hoodie.datasource.write.streaming.disable.compaction",
        False,
        "A stream into a merge-on-read table neither plans compactions nor runs them; another process does.",
    )
    async_compaction: bool = option(
        "hoodie.datasource.compaction.async.enable",
        True,
        "Streams into merge-on-read tables plan a compaction when it is due, and run it next to their batches. With "
        "`false`, or `hoodie.compact.inline=true`, a batch compacts after it completes, like other writes.",
    )
    async_clean: bool = option(
        "hoodie.clean.async.enabled",
        False,
        "Streams clean next to their batches. Other writes clean after they complete.",
        aliases=("hoodie.clean.async",),
    )

    @property
    def is_named(self) -> bool:
        return self.identifier != _UNNAMED


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options of a stream that follows a table."""

    start: str = option(
        START_OFFSET,
        "earliest",
        "Start of a new stream: the first commit (earliest), the next commit (latest), or the first commit after a "
        "time, as in `hoodie.datasource.read.begin.instanttime`. A stream with a checkpoint continues from there.",
        aliases=(START_OFFSET.lower(),),  # Spark passes options to a Python data source in lower case
        scopes=ON_READ,
    )
    max_commits: int | None = option(
        MAX_COMMITS, None, "Maximum number of commits in a batch of a stream.", Kind.INTEGER, minimum=1, scopes=ON_READ
    )
    max_bytes: int | None = option(
        MAX_BYTES,
        None,
        "A batch of a stream ends with the commit whose files bring its total to this many bytes.",
        Kind.INTEGER,
        minimum=1,
        scopes=ON_READ,
    )


DEFAULT_SOURCE = SourceOptions()


def sink_checkpoint(values: Values) -> dict[str, str]:
    """The extra metadata that identifies the commit of a batch; none for other writes."""
    options = parse(StreamOptions, values)
    applied = {} if options.changes_after is None else {APPLIED_CHANGES: values.texts.get(CHANGES_NOTE, "{}")}
    if options.streamer_after is not None:
        return applied | _notes(values.texts.get(STREAMER_NOTES, "{}"))
    if options.batch_id is None:
        return applied
    notes = {SINK_CHECKPOINT: str(options.batch_id), SINK_QUERY: options.query}
    batch = {key: json.dumps({options.identifier: text}, separators=(",", ":")) for key, text in notes.items() if text}
    return applied | batch


def _notes(text: str) -> dict[str, str]:
    """The notes of the Streamer. Raises ConfigError."""
    try:
        return {str(key): str(value) for key, value in json.loads(text).items()}
    except (ValueError, AttributeError) as error:
        raise ConfigError(f"{STREAMER_NOTES}: expected a JSON object of texts, found {text!r:.200}.") from error
