"""The shards of a stream, read from their positions: parents before their children, with equal shares for each.

Splitting or merging a stream closes shards, and opens others. A child is read once its parents are read to their
ends, in the same batch if there is room. So the events of a key are in order, and none is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any

from pyhudi.errors import ConfigError
from pyhudi.model.options.streamer.aws import KinesisOptions
from pyhudi.streamer.sources.aws_calls import AwsCalls
from pyhudi.streamer.sources.kinesis.positions import Position
from pyhudi.streamer.sources.kinesis.records import UserRecord, user_records

__all__ = ["ShardReading"]

_EXPIRED = ("ExpiredIteratorException",)


@dataclass(frozen=True, slots=True)
class _Shard:
    """A shard. `end`: sequence of its last record, None while it is open."""

    id: str
    parents: tuple[str, ...]
    end: str | None


class ShardReading:
    """One batch. `positions`: reached so far; `said`: messages on losses, `lost_shards`: the shards with losses."""

    def __init__(
        self, calls: AwsCalls, options: KinesisOptions, before: Mapping[str, Position], since_ms: int | None
    ) -> None:
        """`since_ms`: arrival time from which shards without a position are read; None: from their first record."""
        self._calls, self._options, self._since_ms = calls, options, since_ms
        self.said: list[str] = []
        self.lost_shards: list[str] = []
        self.server_ms = 0
        self._shards = self._listed()
        self._at_tip: set[str] = set()
        self._ended: set[str] = set()
        self.positions = {shard: position for shard, position in before.items() if shard in self._shards}
        for shard in sorted(before.keys() - self._shards.keys()):
            if not before[shard].is_at_end:
                self._lose(shard, "the shard expired before it was read to its end")

    def begin_now(self) -> int:
        """Begin with records that arrive from now on, by the server's clock; return that time."""
        self._since_ms = self.server_ms
        return self.server_ms

    def records(self, limit: int) -> list[UserRecord]:
        """The next records; more than `limit` if the last one is an aggregate."""
        batch: list[UserRecord] = []
        remaining = limit
        while remaining > 0 and (ready := self._ready()):
            share = max(1, remaining // len(ready))
            for shard in ready:
                if remaining > 0:
                    count, records = self._taken(shard, min(share, remaining))
                    batch += records
                    remaining -= count
            if self._ended:
                self._note_ends()
        return batch

    def _listed(self) -> dict[str, _Shard]:
        shards: dict[str, _Shard] = {}
        arguments: dict[str, Any] = {"StreamName": self._options.stream}
        while arguments:
            answer = self._calls.ask("list_shards", **arguments) or {}
            for one in answer.get("Shards", ()):
                parents = (one.get("ParentShardId"), one.get("AdjacentParentShardId"))
                end = one["SequenceNumberRange"].get("EndingSequenceNumber")
                shards[one["ShardId"]] = _Shard(one["ShardId"], tuple(parent for parent in parents if parent), end)
            arguments = {"NextToken": answer["NextToken"]} if answer.get("NextToken") else {}
            date = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
            self.server_ms = int(parsedate_to_datetime(date).timestamp() * 1000) if date else self._calls.clock.now_ms()
        return shards

    def _ready(self) -> list[_Shard]:
        """The shards that may have more records, and whose parents have none left."""
        return [
            shard
            for shard in self._shards.values()
            if not (self._is_read(shard.id) or shard.id in self._at_tip)
            and all(self._is_read(parent) for parent in shard.parents if parent in self._shards)
        ]

    def _is_read(self, shard: str) -> bool:
        position = self.positions.get(shard)
        return shard in self._ended or (position is not None and position.is_at_end)

    def _taken(self, shard: _Shard, room: int) -> tuple[int, list[UserRecord]]:
        """Records of a shard, and their count."""
        selected: list[UserRecord] = []
        count = 0
        iterator: str | None = self._iterator(shard)
        since_ms = None if shard.id in self.positions else self._since_ms  # a request has whole seconds
        while True:
            request_limit = min(room - count, self._options.max_per_request)
            answer = self._calls.ask("get_records", _EXPIRED, ShardIterator=iterator, Limit=request_limit)
            if answer is None:  # after a long pause
                iterator = self._iterator(shard)
                continue
            records, iterator = answer["Records"], answer.get("NextShardIterator")
            for record in records:
                users = user_records(shard.id, record, takes_apart=self._options.takes_apart)
                count += max(1, len(users))
                selected += [one for one in users if since_ms is None or one.arrived_ms >= since_ms]
            if records:
                last = records[-1]
                arrived_ms = round(last["ApproximateArrivalTimestamp"].timestamp() * 1000)
                self.positions[shard.id] = Position(last["SequenceNumber"], arrived_ms, shard.end)
            is_behind = bool(answer.get("MillisBehindLatest")) or len(records) >= request_limit
            if iterator is None or (shard.end is not None and not records and not is_behind):
                self._ended.add(shard.id)
                return count, selected
            if shard.end is None and not is_behind:
                self._at_tip.add(shard.id)
                return count, selected
            if count >= room:
                return count, selected
            self._calls.clock.sleep_s(self._options.interval_s)

    def _iterator(self, shard: _Shard) -> str:
        """The iterator at a shard's position."""
        position = self.positions.get(shard.id)
        begin: dict[str, Any] = {"ShardIteratorType": "TRIM_HORIZON"}
        if position is not None:
            begin = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": position.sequence}
        elif self._since_ms is not None:
            since = datetime.fromtimestamp(self._since_ms / 1000, timezone.utc)
            begin = {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": since}
        expired_codes = ("InvalidArgumentException",) if position is not None else ()
        of = {"StreamName": self._options.stream, "ShardId": shard.id}
        answer = self._calls.ask("get_shard_iterator", expired_codes, **of, **begin)
        if answer is None:
            assert position is not None
            self._lose(shard.id, f"its record {position.sequence} is gone, or of another stream of this name")
            del self.positions[shard.id]
            return self._iterator(shard)
        return str(answer["ShardIterator"])

    def _note_ends(self) -> None:
        """Set the ends of shards that were read to them; the stream may list the ends, and the children, only now."""
        self._shards = self._listed()
        for shard in self._ended:
            position = self.positions.get(shard)
            end = self._shards[shard].end if shard in self._shards else None
            end = end or (None if position is None else position.sequence)
            if end is not None:
                self.positions[shard] = Position(end, None if position is None else position.arrived_ms, end)

    def _lose(self, shard: str, why: str) -> None:
        text = f"{self._calls.where}, {shard}: {why}; records may be lost, and Kinesis does not say how many"
        if self._options.fails_on_loss:
            raise ConfigError(
                f"{text}. Nothing was written, as hoodie.streamer.source.kinesis.fail.on.data.loss.enable=true says. "
                "Continue without them by false, or set a position by checkpoint."
            )
        self.said.append(text)
        self.lost_shards.append(shard)
