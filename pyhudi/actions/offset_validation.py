"""SparkKafkaOffsetValidator: the offsets of a batch from Kafka against the rows of its commit.

    orders,0:100,1:40  →  orders,0:150,1:60,2:5      75 events; each is a row written, a delete, or a row set aside

Source: Hudi's StreamingOffsetValidator. docs/compatibility.md says where the sides differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyhudi.actions.streamer_checkpoints import SET_ASIDE, TEXT_V1, newest_checkpoint
from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.validation import VALIDATORS

__all__ = ["OFFSET_VALIDATOR", "check_is_of_kafka", "offset_problem"]

OFFSET_VALIDATOR = "SparkKafkaOffsetValidator"
_OFFSETS = re.compile(r"([^,]+)((?:,\d+:\d+)+)", re.ASCII)


def check_is_of_kafka(options: WriteOptions) -> None:
    """Raise ConfigError for a write whose commit has no offsets of Kafka."""
    text = options.extra_metadata.get(TEXT_V1, "")
    if _OFFSETS.fullmatch(text) is None:
        raise ConfigError(
            f"{VALIDATORS}={OFFSET_VALIDATOR} is of the Streamer's batches from Kafka; the checkpoint of this write is "
            f"{text!r:.100}. Nothing was written."
        )


def offset_problem(tolerance_percent: float, before: MetaClient, body: CommitMetadata) -> str:
    """What is wrong with a commit, "" for nothing: the first batch has no offsets to be compared with."""
    newest = newest_checkpoint(before)
    earlier = None if newest is None else _OFFSETS.fullmatch(newest.text)
    now = _OFFSETS.fullmatch(body.extra_metadata.get(TEXT_V1, ""))
    if earlier is None or now is None or earlier[1] != now[1]:
        return ""
    events = _events(_offsets(earlier[2]), _offsets(now[2]))
    written = sum(stat.num_inserts + stat.num_update_writes + stat.num_deletes for stat in body.stats())
    aside = int(body.extra_metadata.get(SET_ASIDE, 0))
    rows = written + aside
    if events == rows == 0:
        return ""
    percent = 100.0 * abs(events - rows) / events if events and rows else 100.0
    if percent <= tolerance_percent:
        return ""
    return (
        f"{events:,} events lie between the offsets {earlier[0]} and {now[0]}, and {written:,} rows were written"
        f"{f', {aside:,} set aside' if aside else ''}: a difference of {percent:.2f}%, where "
        f"{VALIDATORS}.streaming.offset.tolerance.percentage allows {tolerance_percent:g}. Rows with one key in a "
        "batch, filters, tombstones and compacted topics need a tolerance"
    )


def _offsets(text: str) -> Mapping[int, int]:
    pairs = (part.split(":") for part in text.strip(",").split(","))
    return {int(partition): int(offset) for partition, offset in pairs}


def _events(earlier: Mapping[int, int], now: Mapping[int, int]) -> int:
    """A partition that is new, or whose offsets went back since the topic was made anew, counts from 0."""
    differences = ((offset, offset - earlier.get(partition, 0)) for partition, offset in now.items())
    return sum(offset if difference < 0 else difference for offset, difference in differences)
