"""A stream of Kinesis in memory, as AWS behaves where moto does not: shards close when they are split or merged and
keep their records, a closed shard's iterator ends, trimmed sequence numbers are refused, and requests are throttled.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

__all__ = ["Kinesis", "refusal"]

_NOW_MS = 1_700_000_000_000


def refusal(code: str, operation: str = "GetRecords") -> Exception:
    from botocore.exceptions import ClientError

    made: Exception = ClientError({"Error": {"Code": code, "Message": "as AWS says"}}, operation)
    return made


@dataclass
class _Shard:
    parents: tuple[str, ...] = ()
    records: list[dict[str, Any]] = field(default_factory=list)
    trimmed: int = 0  # the sequence numbers up to this one are gone
    end: int | None = None


@dataclass
class Kinesis:
    """Stands for a client of boto3. `calls`: how many of each; `failures`: raised by the next requests of a name.
    `behind_ms`: what an answer says where there is more, and `empty`: answers without records before the next one.
    """

    shards: dict[str, _Shard] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    failures: dict[str, list[Exception]] = field(default_factory=dict)
    empty: int = 0
    sequence: int = 10**55
    meta: Any = field(default_factory=lambda: SimpleNamespace(region_name="here"))

    def opened(self, *parents: str) -> str:
        name = f"shardId-{len(self.shards):012}"
        self.shards[name] = _Shard(parents)
        return name

    def put(self, shard: str, *rows: object, key: str = "k", ms: int | None = None) -> None:
        for row in rows:
            self.sequence += 7
            arrived = datetime.fromtimestamp(
                (_NOW_MS + self.sequence % 10**6 if ms is None else ms) / 1000, timezone.utc
            )
            data = row if isinstance(row, bytes) else json.dumps(row).encode()
            record = {"Data": data, "PartitionKey": key, "SequenceNumber": str(self.sequence)}
            self.shards[shard].records.append({**record, "ApproximateArrivalTimestamp": arrived})

    def closed(self, *shards: str) -> None:
        for shard in shards:
            self.sequence += 7
            self.shards[shard].end = self.sequence

    def split(self, shard: str) -> tuple[str, str]:
        self.closed(shard)
        return self.opened(shard), self.opened(shard)

    def merged(self, one: str, other: str) -> str:
        self.closed(one, other)
        return self.opened(one, other)

    def trim(self, shard: str, count: int) -> None:
        gone, self.shards[shard].records = self.shards[shard].records[:count], self.shards[shard].records[count:]
        self.shards[shard].trimmed = int(gone[-1]["SequenceNumber"])

    # ---- requests

    def list_shards(self, **asked: str) -> dict[str, Any]:
        """Two shards a page; AWS takes either the stream's name or a token."""
        self._asked("list_shards")
        assert len(asked) == 1
        first = int(asked.get("NextToken", 0))
        shown = [self._shown(name) for name in list(self.shards)[first : first + 2]]
        more = {"NextToken": str(first + 2)} if first + 2 < len(self.shards) else {}
        return {"Shards": shown, **more}

    def get_shard_iterator(self, **asked: Any) -> dict[str, Any]:
        self._asked("get_shard_iterator")
        shard = self.shards[asked["ShardId"]]
        after = 0
        if asked["ShardIteratorType"] == "AFTER_SEQUENCE_NUMBER":
            after = int(asked["StartingSequenceNumber"])
            if after < shard.trimmed:
                raise refusal("InvalidArgumentException", "GetShardIterator")
        elif asked["ShardIteratorType"] == "AT_TIMESTAMP":
            # boto3 sends whole seconds
            since = asked["Timestamp"].replace(microsecond=0)
            older = [one for one in shard.records if one["ApproximateArrivalTimestamp"] < since]
            after = int(older[-1]["SequenceNumber"]) if older else 0
        return {"ShardIterator": f"{asked['ShardId']}:{after}"}

    def get_records(self, **asked: Any) -> dict[str, Any]:
        self._asked("get_records")
        name, _, after = asked["ShardIterator"].partition(":")
        shard = self.shards[name]
        behind = [one for one in shard.records if int(one["SequenceNumber"]) > int(after)]
        if behind and self.empty:
            self.empty -= 1
            return {"Records": [], "NextShardIterator": asked["ShardIterator"], "MillisBehindLatest": 5}
        records, left = behind[: asked["Limit"]], behind[asked["Limit"] :]
        answer: dict[str, Any] = {"Records": records, "MillisBehindLatest": 1000 * len(left)}
        if left or shard.end is None:
            last = records[-1]["SequenceNumber"] if records else after
            answer["NextShardIterator"] = f"{name}:{last}"
        return answer

    def close(self) -> None:
        pass

    def _asked(self, name: str) -> None:
        self.calls[name] += 1
        if self.failures.get(name):
            raise self.failures[name].pop(0)

    def _shown(self, name: str) -> dict[str, Any]:
        shard = self.shards[name]
        keys = dict(zip(("ParentShardId", "AdjacentParentShardId"), shard.parents, strict=False))
        end = {} if shard.end is None else {"EndingSequenceNumber": str(shard.end)}
        return {"ShardId": name, **keys, "SequenceNumberRange": {"StartingSequenceNumber": "1", **end}}
