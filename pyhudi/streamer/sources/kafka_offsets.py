"""Offsets of a topic: Hudi's text of them, and which events a batch takes.

    orders,0:5120,1:4987        the next offset to read of each partition

Source: Hudi's KafkaOffsetGen and CheckpointUtils.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyhudi.errors import ConfigError

__all__ = ["Offsets", "dealt", "offsets_of", "text_of_offsets"]

Offsets = Mapping[int, int]  # partition → offset

_TEXT = re.compile(r"(?P<topic>[^,]+)(?P<parts>(,\d+:\d+)+)", re.ASCII)


def offsets_of(text: str, topic: str) -> dict[int, int]:
    """The offsets of a checkpoint. Raises ConfigError for another text, or another topic's."""
    matched = _TEXT.fullmatch(text.strip())
    if matched is None:
        raise ConfigError(
            f"The checkpoint {text!r:.200} is none of Kafka, which is topic,partition:offset,…: it is another source's."
            " Give one by checkpoint, or start over by ignore-checkpoint."
        )
    if matched["topic"] != topic:
        raise ConfigError(
            f"The checkpoint {text!r:.200} is of the topic {matched['topic']!r}, and the pipeline reads {topic!r}. "
            "Start over by ignore-checkpoint, or say by checkpoint where."
        )
    pairs = (part.split(":") for part in matched["parts"].strip(",").split(","))
    return {int(partition): int(offset) for partition, offset in pairs}


def text_of_offsets(topic: str, offsets: Offsets) -> str:
    """Hudi's text."""
    return ",".join([topic, *(f"{partition}:{offsets[partition]}" for partition in sorted(offsets))])


def dealt(starts: Offsets, ends: Offsets, limit: int) -> dict[int, int]:
    """Where a batch of so many events ends in each partition: each gets the same, as long as it has some."""
    taken = dict(starts)
    left = {
        partition: ends[partition] - starts[partition] for partition in starts if ends[partition] > starts[partition]
    }
    while left and limit > 0:
        share = max(1, limit // len(left))
        for partition in sorted(left):
            count = min(share, left[partition], limit)
            taken[partition] += count
            limit -= count
            left[partition] -= count
        left = {partition: count for partition, count in left.items() if count}
    return taken
