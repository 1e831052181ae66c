"""Kafka as a source: assigned offsets, never a group's. What values are says a format (`formats.py`).

    plan     offsets of the checkpoint → lost ones → end of the batch in each partition
    fetch    a part of these ranges → events → rows; by a task of Spark with a client of its own
    batch    where the events of all parts end → checkpoint

Events become rows some at a time, so that memory holds the rows of a part and few of its events. A partition whose
offsets are gone goes on with its first event, the others where they were. The commit notes the topic's id: a topic that
was recreated is read from its first event on, also where it has as many events again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyhudi.errors import ConfigError, StorageError
from pyhudi.storage.clock import Clock
from pyhudi.streamer.checkpoints import Start
from pyhudi.streamer.json_messages import RowColumns, typed_columns
from pyhudi.streamer.sources.kafka.client import client_settings, kafka_errors, kafka_library
from pyhudi.streamer.sources.kafka.formats import AvroValues, Events, EventValues, JsonValues, TextValues
from pyhudi.streamer.sources.kafka.offsets import OffsetRanges, Offsets, cut, dealt, offsets_of, text_of_offsets
from pyhudi.streamer.sources.kafka.topic_id import TOPIC_ID, TopicId
from pyhudi.streamer.sources.source import Batch, Fetched, Rejected, SourceSetting, SplitSource

if TYPE_CHECKING:
    import pyarrow as pa
    from confluent_kafka import Consumer, Message

__all__ = ["LOST_EVENTS", "AvroKafka", "JsonKafka", "TextKafka"]

LOST_EVENTS = "pyhudi.streamer.lost.events"  # a key of extra metadata
_TIMEOUT_S = 30.0
_EVENTS_A_CALL = 50_000
_EVENTS_A_PART = 250_000  # the most of a part, where there are several: a task holds their rows in memory
_EVENTS_AT_ONCE = 100_000  # become rows
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class _Plan:
    """The offsets of a batch. `highs`: behind the last event of each partition; `lost`: events that the broker has no
    longer; `topic_id`: the broker's, else that of the checkpoint; `is_asked`: the broker's. `unnamed`: partitions of
    the checkpoint that the broker does not name; `shortened`: those that it ends before, with their offsets.
    """

    ranges: OffsetRanges
    highs: Offsets
    lost: int
    said: tuple[str, ...]
    unnamed: tuple[int, ...] = ()
    shortened: Offsets = field(default_factory=dict)
    topic_id: str | None = None
    is_asked: bool = False


class KafkaSource(SplitSource[_Plan, OffsetRanges]):
    """What the formats share."""

    values: Callable[[SourceSetting], EventValues]

    def __init__(self, setting: SourceSetting) -> None:
        self._options = setting.settings.options.kafka
        if self._options.topic is None:
            raise ConfigError(f"{setting.settings.place}: hoodie.streamer.source.kafka.topic is missing.")
        self._topic = self._options.topic
        self._library = kafka_library()
        self._client = client_settings(setting.settings)
        self._clock: Clock = setting.clock
        self._values = type(self).values(setting)
        self._where = f"Kafka topic {self._topic!r} at {self._client.settings.get('bootstrap.servers')}"
        with kafka_errors(self._where):
            self._consumer: Consumer = self._library.Consumer(self._client.settings)
        self._topic_id = TopicId(self._topic, self._client)

    def plan(self, start: Start, limit: int | None) -> _Plan | None:
        """The events from the checkpoint on, as many as the limits allow."""
        limit = min(limit or self._options.max_events, self._options.max_events)
        with kafka_errors(self._where):
            planned = self._planned(start, limit, is_recreated=False)
            if not (planned.ranges.count or start.text is None or planned.said or start.is_given):
                return None
            topic_id = self._topic_id.now()
            noted = None if start.is_given else (start.notes or {}).get(TOPIC_ID)
            if topic_id is not None and noted is not None and noted != topic_id:
                planned = self._planned(start, limit, is_recreated=True)
            elif topic_id is not None and noted == topic_id:
                self._check_same_topic(planned)
        return replace(planned, topic_id=topic_id or noted, is_asked=topic_id is not None)

    def splits(self, plan: _Plan, parts: int) -> Sequence[OffsetRanges]:
        """Ranges of offsets."""
        return cut(plan.ranges, max(parts, -(-plan.ranges.count // _EVENTS_A_PART))) if parts > 1 else [plan.ranges]

    def fetch(self, split: OffsetRanges, columns: RowColumns) -> Fetched:
        """The events of ranges as rows; `end`: the offsets behind them."""
        positions = dict(split.starts)
        tables: list[pa.Table] = []
        rejected: list[Rejected] = []
        with kafka_errors(self._where), closing(self._fetched(split, positions)) as fetched:
            for messages in fetched:
                events = Events.of(self._topic, messages)
                decoded = self._values.decode(events, columns)
                rows = decoded.rows
                if self._options.appends_offsets and rows.num_columns:
                    rows = events.at(decoded.numbers).with_offsets(rows)
                tables.append(rows)
                rejected += events.rejected(decoded.refused)
        return Fetched(typed_columns(tables), rejected, text_of_offsets(self._topic, positions))

    def batch(self, plan: _Plan, fetched: Iterable[tuple[OffsetRanges, Fetched]], columns: RowColumns) -> Batch:
        """All events up to the first gap in each partition."""
        positions = dict(plan.ranges.starts)
        parts: list[Fetched] = []
        numbers: list[int] = []
        for number, (split, part) in enumerate(fetched):
            # What lies behind a part that broke off is of a later batch.
            if all(positions[partition] == first for partition, first in split.starts.items()):
                positions |= offsets_of(part.end, self._topic)
                parts.append(part)
                numbers.append(number)
        if plan.is_asked and self._topic_id.now() not in (None, plan.topic_id):
            raise StorageError(f"{self._where} was recreated as it was read. Nothing was written; run it again.")
        starts = plan.ranges.starts
        lag = {str(partition): plan.highs[partition] - at for partition, at in sorted(positions.items())}
        return Batch(
            typed_columns([part.rows for part in parts]),
            text_of_offsets(self._topic, positions),
            [one for part in parts for one in part.rejected],
            {
                **({LOST_EVENTS: str(plan.lost)} if plan.lost else {}),
                **({TOPIC_ID: plan.topic_id} if plan.topic_id else {}),
            },
            plan.said,
            plan.lost,
            numbers,
            lag=lag,
            gauges={
                "kafkaMessageInCount": sum(positions.values()) - sum(starts.values()),
                "kafkaDelayCount": sum(plan.highs.values()) - sum(starts.values()),
            },
        )

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def _check_same_topic(self, planned: _Plan) -> None:
        """Raise StorageError for partitions of the checkpoint whose events would be read again."""
        if planned.unnamed:
            raise StorageError(
                f"{self._where}: the broker does not name partition {', '.join(map(str, planned.unnamed))} of the "
                "checkpoint; it may have just started. Nothing was written; run it again."
            )
        if planned.shortened:
            partition, offset = next(iter(sorted(planned.shortened.items())))
            high = planned.highs[partition]
            ends = {one: planned.highs[one] for one in planned.shortened}
            text = text_of_offsets(self._topic, {**planned.ranges.starts, **ends})
            raise StorageError(
                f"{self._where}, partition {partition}: the checkpoint is {offset}, and the broker ends at {high}, "
                "though the topic is the same: it may have just started, or lost events in an election of an unclean "
                "leader. Nothing was written; run it again. If the events are lost, say by checkpoint where to go on: "
                f"its end, {text}, or an earlier offset, whose events come again."
            )

    def _planned(self, start: Start, limit: int, *, is_recreated: bool) -> _Plan:
        bounds = self._bounds()
        lows = {partition: low for partition, (low, _) in bounds.items()}
        highs = {partition: high for partition, (_, high) in bounds.items()}
        starts = self._starts(start, lows, highs)
        lost, said = 0, []
        if is_recreated:
            said.append(f"{self._where} was recreated since the checkpoint, and is read from its first event on")
            starts = dict(lows)
        for partition, offset in sorted(starts.items()):
            if partition not in bounds:
                said.append(f"{self._where} has no partition {partition} any more")
            elif offset < lows[partition] or offset > highs[partition]:
                gone = max(0, lows[partition] - offset)
                what = f"{gone:,} events are gone" if gone else "it ends before: the topic was recreated, or cut"
                said.append(
                    f"{self._where}, partition {partition}: the checkpoint is {offset}, the events there are "
                    f"{lows[partition]} to {highs[partition] - 1}: {what}"
                )
                lost += gone
        if said and self._options.fails_on_loss:
            raise ConfigError(
                f"{'; '.join(said)}. Nothing was written, as hoodie.streamer.source.kafka.enable.failOnDataLoss=true "
                "says. Go on without them by false, or say by checkpoint where."
            )
        there = {
            partition: lows[partition]
            if partition not in starts or not lows[partition] <= starts[partition] <= highs[partition]
            else starts[partition]
            for partition in bounds
        }
        unnamed = tuple(sorted(set(starts) - set(bounds)))
        shortened = {one: at for one, at in starts.items() if one in highs and at > highs[one]}
        return _Plan(OffsetRanges(there, dealt(there, highs, limit)), highs, lost, tuple(said), unnamed, shortened)

    def _bounds(self) -> dict[int, tuple[int, int]]:
        """Partition → its first offset, and the one behind its last."""
        found = self._consumer.list_topics(self._topic, timeout=_TIMEOUT_S).topics[self._topic]
        if found.error is not None or not found.partitions:
            raise StorageError(f"{self._where}: {found.error or 'it has no partitions'}. Nothing was written.")
        bounds = {}
        for partition in found.partitions:
            at = self._library.TopicPartition(self._topic, partition)
            bounds[partition] = self._consumer.get_watermark_offsets(at, timeout=_TIMEOUT_S)
        return bounds

    def _starts(self, start: Start, lows: Offsets, highs: Offsets) -> dict[int, int]:
        """Where the round begins in each partition that the checkpoint names; new ones begin with their first."""
        if start.text is None:
            return dict(highs if self._client.begins_latest else lows)
        kind = self._options.checkpoint_type if start.is_given else "string"
        if kind == "string" or ":" in start.text:
            return offsets_of(start.text, self._topic)
        if not (start.text.isdecimal() and start.text.isascii()):
            raise ConfigError(f"checkpoint={start.text!r:.100} with checkpoint.type={kind}: expected digits.")
        if kind == "single_offset":
            if len(lows) != 1:
                raise ConfigError(f"{self._where} has {len(lows)} partitions; single_offset is for one.")
            return {next(iter(lows)): int(start.text)}
        milliseconds = int(start.text) * (1000 if len(start.text) == 10 else 1)
        asked = [self._library.TopicPartition(self._topic, partition, milliseconds) for partition in lows]
        found = self._consumer.offsets_for_times(asked, timeout=_TIMEOUT_S)
        return {at.partition: at.offset if at.offset >= 0 else highs[at.partition] for at in found}

    def _fetched(self, planned: OffsetRanges, positions: dict[int, int]) -> Generator[list[Message], None, None]:
        """The events of a range, some at a time, none at least once. `positions` come to where they end: before the
        range does, where the broker has no more of them.
        """
        ends = dict(planned.ends)
        open_partitions = {partition for partition, end in ends.items() if end > planned.starts[partition]}
        messages: list[Message] = []
        if not open_partitions:
            yield messages
            return
        at = [self._library.TopicPartition(self._topic, one, planned.starts[one]) for one in sorted(open_partitions)]
        self._consumer.assign(at)
        waited_since_s = self._clock.monotonic_s()
        try:
            while open_partitions:
                came = self._consumer.consume(_EVENTS_A_CALL, timeout=_POLL_S)
                if came:
                    waited_since_s = self._clock.monotonic_s()
                elif self._clock.monotonic_s() - waited_since_s > _TIMEOUT_S:
                    if positions == planned.starts:
                        raise StorageError(f"{self._where}: no event came for {_TIMEOUT_S:.0f} s. Nothing was written.")
                    break  # what came is a batch; the next round says what is wrong
                messages += self._taken(came, positions, ends, open_partitions)
                if self.is_cut and len(messages) >= _EVENTS_AT_ONCE:
                    yield messages
                    messages = []
        finally:
            self._consumer.unassign()
        messages, ends = self.of_batch(messages, positions)
        positions.update(ends)
        yield messages

    def of_batch(self, messages: list[Message], ends: dict[int, int]) -> tuple[list[Message], dict[int, int]]:
        """The events that a batch takes of those that came, and where they end; others wait for the next one. Where
        `is_cut` is true, of the last ones.
        """
        return messages, ends

    def _taken(
        self, came: list[Message], positions: dict[int, int], ends: Offsets, open_partitions: set[int]
    ) -> list[Message]:
        """Those of the events that are of the batch. Events behind a gap may be of the next one."""
        codes = self._library.KafkaError
        passing = (codes._TRANSPORT, codes._ALL_BROKERS_DOWN, codes._RESOLVE, codes._TIMED_OUT)
        taken = []
        for message in came:
            partition: Any = message.partition()
            offset: Any = message.offset()
            error = message.error()
            if error is not None:
                if error.code() in passing:  # the client connects again by itself
                    continue
                if error.code() != codes._PARTITION_EOF:
                    raise self._library.KafkaException(error)
                # Marks of transactions may follow the last event. The broker had an offset at the end of the range: an
                # EOF before it is of an earlier assignment, or of a partition that was cut, as the next plan says.
                if partition in open_partitions and offset >= ends[partition]:
                    positions[partition] = ends[partition]
                    open_partitions.discard(partition)
                continue
            if partition not in open_partitions or offset < positions[partition]:
                continue
            if offset < ends[partition]:
                taken.append(message)
            positions[partition] = min(offset + 1, ends[partition])
            if offset + 1 >= ends[partition]:
                open_partitions.discard(partition)
        return taken


class JsonKafka(KafkaSource):
    """JSON objects."""

    values = JsonValues


class TextKafka(KafkaSource):
    """Plain text, a column `value`."""

    values = TextValues


class AvroKafka(KafkaSource):
    """Avro of a Confluent registry: each value begins with the id of its schema."""

    values = AvroValues
