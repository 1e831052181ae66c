"""Positions in the shards of a stream: Hudi's text for them.

    orders,shardId-000000000000:4962…@1764039600000,shardId-000000000001:4970…|4970…

    sequence of the last record that was read [@ its arrival in milliseconds] [| the shard's last, once it is closed]

A shard is read to its end if both sequences are equal. A shard without a read record is not in the text.

Source: Hudi's KinesisOffsetGen and JsonKinesisSource.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.errors import ConfigError

__all__ = ["Position", "positions_of", "text_of_positions"]

_VALUE = re.compile(r"(?P<sequence>\d+)(@(?P<arrived>\d+))?(\|(?P<end>\d+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Position:
    """The position after a record. `end`: sequence number of the shard's last record, None while it is open."""

    sequence: str
    arrived_ms: int | None = None
    end: str | None = None

    @property
    def is_at_end(self) -> bool:
        """True if the shard was read to its end."""
        return self.end is not None and int(self.sequence) >= int(self.end)

    def __str__(self) -> str:
        arrived = "" if self.arrived_ms is None else f"@{self.arrived_ms}"
        return f"{self.sequence}{arrived}{'' if self.end is None else f'|{self.end}'}"


def positions_of(text: str, stream: str) -> dict[str, Position]:
    """Shard → position. Raises ConfigError for another source's text, or another stream's."""
    name, comma, rest = text.strip().partition(",")
    pairs = [part.partition(":") for part in rest.split(",") if part]
    values = {shard: _VALUE.fullmatch(value) for shard, _, value in pairs}
    if not (name and comma) or not all(values.values()):
        raise ConfigError(
            f"The checkpoint {text!r:.200} is not one of Kinesis, stream,shard:sequence,…: it belongs to another "
            "source. Set one by checkpoint, or start over by ignore-checkpoint."
        )
    if name != stream:
        raise ConfigError(
            f"The checkpoint {text!r:.200} is of the stream {name!r}, and the pipeline reads {stream!r}. "
            "Start over by ignore-checkpoint, or set one by checkpoint."
        )
    return {
        shard: Position(one["sequence"], None if one["arrived"] is None else int(one["arrived"]), one["end"])
        for shard, one in values.items()
        if one is not None
    }


def text_of_positions(stream: str, positions: Mapping[str, Position]) -> str:
    """Hudi's text."""
    return f"{stream},{','.join(f'{shard}:{positions[shard]}' for shard in sorted(positions))}"
