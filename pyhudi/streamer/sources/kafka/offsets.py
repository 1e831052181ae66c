"""Offsets of a topic: Hudi's text for them, and the events of a batch.

    orders,0:5120,1:4987        the next offset to read of each partition

Source: Hudi's KafkaOffsetGen and CheckpointUtils.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyhudi.errors import ConfigError

__all__ = ["OffsetRanges", "Offsets", "cut", "dealt", "offsets_of", "text_of_offsets"]

Offsets = Mapping[int, int]  # partition → offset


@dataclass(frozen=True, slots=True)
class OffsetRanges:
    """The offsets from a start to an end, exclusive, in each partition."""

    starts: Offsets
    ends: Offsets

    @property
    def count(self) -> int:
        """The number of offsets."""
        return sum(max(0, end - self.starts[partition]) for partition, end in self.ends.items())


_TEXT = re.compile(r"(?P<topic>[^,]+)(?P<parts>(,\d+:\d+)+)", re.ASCII)


def offsets_of(text: str, topic: str) -> dict[int, int]:
    """The offsets of a checkpoint. Raises ConfigError for another text, or another topic's."""
    matched = _TEXT.fullmatch(text.strip())
    if matched is None:
        raise ConfigError(
            f"The checkpoint {text!r:.200} is not one of Kafka, topic,partition:offset,…: it belongs to another source."
            " Set one by checkpoint, or start over by ignore-checkpoint."
        )
    if matched["topic"] != topic:
        raise ConfigError(
            f"The checkpoint {text!r:.200} is of the topic {matched['topic']!r}, and the pipeline reads {topic!r}. "
            "Start over by ignore-checkpoint, or set one by checkpoint."
        )
    pairs = (part.split(":") for part in matched["parts"].strip(",").split(","))
    return {int(partition): int(offset) for partition, offset in pairs}


def text_of_offsets(topic: str, offsets: Offsets) -> str:
    """Hudi's text."""
    return ",".join([topic, *(f"{partition}:{offsets[partition]}" for partition in sorted(offsets))])


def dealt(starts: Offsets, ends: Offsets, limit: int) -> dict[int, int]:
    """The ends of a batch of `limit` events in each partition: each gets the same number, as far as it has any."""
    ends_by_partition = dict(starts)
    remaining = {
        partition: ends[partition] - starts[partition] for partition in starts if ends[partition] > starts[partition]
    }
    while remaining and limit > 0:
        share = max(1, limit // len(remaining))
        for partition in sorted(remaining):
            count = min(share, remaining[partition], limit)
            ends_by_partition[partition] += count
            limit -= count
            remaining[partition] -= count
        remaining = {partition: count for partition, count in remaining.items() if count}
    return ends_by_partition


def cut(ranges: OffsetRanges, parts: int) -> list[OffsetRanges]:
    """Cut ranges into about `parts` parts of similar size. A part has a piece of one partition, or several whole ones,
    so that an unfinished part delays no other partition.
    """
    size = max(1, -(-ranges.count // parts))
    cuts: list[OffsetRanges] = []
    small: list[int] = []
    small_count = 0
    for partition in sorted(ranges.starts):
        first, end = ranges.starts[partition], ranges.ends[partition]
        if end - first > size:
            pieces = -(-(end - first) // size)
            bounds = [first + (end - first) * at // pieces for at in range(pieces + 1)]
            cuts += [OffsetRanges({partition: a}, {partition: b}) for a, b in pairwise(bounds)]
            continue
        if small and small_count + end - first > size:
            cuts.append(_of(ranges, small))
            small, small_count = [], 0
        small.append(partition)
        small_count += end - first
    return [*cuts, _of(ranges, small)] if small or not cuts else cuts


def _of(ranges: OffsetRanges, partitions: Sequence[int]) -> OffsetRanges:
    return OffsetRanges({one: ranges.starts[one] for one in partitions}, {one: ranges.ends[one] for one in partitions})
