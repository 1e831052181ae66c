"""Kinesis as a source: records of JSON, by Hudi's checkpoints. `pip install "pyhudi[kinesis]"`.

    positions of the checkpoint → shards of the stream → records of each up to the batch's share → rows

A shard without a position is read from its first record; or, if the pipeline began with LATEST or at a time,
from that time on, which each commit stores (`SINCE`).
"""

from __future__ import annotations

from pyhudi.errors import ConfigError
from pyhudi.streamer.checkpoints import Start
from pyhudi.streamer.json_messages import RowColumns
from pyhudi.streamer.sources.aws_calls import AwsCalls, Patience, aws_client
from pyhudi.streamer.sources.kinesis.positions import Position, positions_of, text_of_positions
from pyhudi.streamer.sources.kinesis.records import rows_of_records
from pyhudi.streamer.sources.kinesis.shards import ShardReading
from pyhudi.streamer.sources.source import Batch, SourceSetting

__all__ = ["LOST_SHARDS", "SINCE", "JsonKinesis"]

SINCE = "pyhudi.streamer.kinesis.since"  # keys of extra metadata
LOST_SHARDS = "pyhudi.streamer.lost.shards"
_SECONDS_DIGITS = 10


class JsonKinesis:
    """Records of JSON objects."""

    writes_v2 = False
    reads_all = False

    def __init__(self, setting: SourceSetting) -> None:
        self._options = options = setting.settings.options.kinesis
        if options.stream is None:
            raise ConfigError(f"{setting.settings.place}: hoodie.streamer.source.kinesis.stream.name is missing.")
        if bool(options.access_key) != bool(options.secret_key):
            raise ConfigError(
                f"{setting.settings.place}: hoodie.streamer.source.kinesis.access.key and …secret.key belong together; "
                "found one of them."
            )
        self._stream = options.stream
        keys = {"aws_access_key_id": options.access_key, "aws_secret_access_key": options.secret_key}
        client = aws_client("kinesis", "kinesis", options.region, options.endpoint_url, keys)
        where = f"Kinesis stream {self._stream!r} ({options.endpoint_url or client.meta.region_name})"
        patience = Patience(options.first_pause_s, options.longest_pause_s, options.throttle_timeout_s)
        self._calls = AwsCalls(client, where, setting.clock, patience)

    def read(self, start: Start, limit: int | None, columns: RowColumns) -> Batch | None:
        """The records after the checkpoint, up to the limits."""
        before, since_ms = self._begin(start)
        reading = ShardReading(self._calls, self._options, before, since_ms)
        if start.text is None and self._options.starts == "LATEST":
            since_ms = reading.begin_now()
        records = reading.records(min(limit or self._options.max_events, self._options.max_events))
        is_first = start.text is None or start.is_given
        if not (records or reading.said or is_first) and reading.positions == before:
            return None
        rows, rejected = rows_of_records(self._stream, records, columns, appends_places=self._options.appends_places)
        notes = {} if since_ms is None else {SINCE: str(since_ms)}
        if reading.lost_shards:
            notes[LOST_SHARDS] = ",".join(reading.lost_shards)
        return Batch(rows, text_of_positions(self._stream, reading.positions), rejected, notes, reading.said)

    def close(self) -> None:
        """Close the connections."""
        self._calls.client.close()

    def _begin(self, start: Start) -> tuple[dict[str, Position], int | None]:
        """The positions, and the start time of shards without one."""
        if start.text is None:
            return {}, None
        if start.is_given and start.text.isdecimal() and start.text.isascii():
            return {}, int(start.text) * (1000 if len(start.text) == _SECONDS_DIGITS else 1)
        since_text = None if start.is_given else (start.notes or {}).get(SINCE, "")
        return positions_of(start.text, self._stream), int(
            since_text
        ) if since_text and since_text.isdecimal() else None
