"""Checkpoints of Streamers in the commits of a table: finding the newest, and checking it when a batch completes.

A batch and its checkpoint are committed together. The batch was read from the checkpoint of an earlier
commit. Under the lock, as it completes, that commit must still be the newest with a checkpoint. So of two Streamers
that read from one checkpoint, even in different processes, at most one commits its batch.
Source: docs/formats/timeline.md, "Commit metadata"; Hudi's classes StreamerCheckpointV1 and V2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyhudi.errors import StandingConflict
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.options.streaming import StreamOptions
from pyhudi.timeline.archived_timeline import load_archived_timeline

__all__ = [
    "IGNORED",
    "NO_CHECKPOINT",
    "RESET_V1",
    "RESET_V2",
    "SET_ASIDE",
    "TEXT_V1",
    "TEXT_V2",
    "CheckpointMoved",
    "StreamerCheckpoint",
    "check_checkpoint",
    "commits_newest_first",
    "newest_checkpoint",
]

TEXT_V1, RESET_V1 = "deltastreamer.checkpoint.key", "deltastreamer.checkpoint.reset_key"
TEXT_V2, RESET_V2 = "streamer.checkpoint.key.v2", "streamer.checkpoint.reset.key.v2"
IGNORED = "deltastreamer.checkpoint.ignore_key"  # of both forms
SET_ASIDE = "pyhudi.streamer.set.aside.rows"  # how many rows of the source are not among those of the commit
NO_CHECKPOINT = "none"


class CheckpointMoved(StandingConflict):
    """Another process has committed a checkpoint since this batch was read."""


@dataclass(frozen=True, slots=True)
class StreamerCheckpoint:
    """A commit's checkpoint. `text`: "" if the commit notes only the text of a reset; `notes`: all that it notes."""

    instant_time: str
    text: str
    reset: str | None
    ignored: str | None
    is_v2: bool
    notes: Mapping[str, str]


def newest_checkpoint(meta: MetaClient) -> StreamerCheckpoint | None:
    """The newest checkpoint in the table; None without one.

    The newest commit with one of the four keys counts; commits of others and of services, later or archived since, do
    not hide it. Inside one commit the second form counts before the first. Empty texts are none.
    """
    for time, body in commits_newest_first(meta):
        notes = body.extra_metadata
        is_v2 = bool(notes.get(TEXT_V2) or notes.get(RESET_V2))
        text, reset = (notes.get(key) for key in ((TEXT_V2, RESET_V2) if is_v2 else (TEXT_V1, RESET_V1)))
        if text or reset:
            return StreamerCheckpoint(time, text or "", reset, notes.get(IGNORED), is_v2, notes)
    return None


def check_checkpoint(options: StreamOptions, now: MetaClient) -> None:
    """Raise CheckpointMoved if the checkpoint that a batch was read from is no longer the newest. Hold the lock."""
    if options.streamer_after is None:
        return
    newest = newest_checkpoint(now)
    time = NO_CHECKPOINT if newest is None else newest.instant_time
    if time != options.streamer_after:
        raise CheckpointMoved(
            f"{now.storage.root}: this batch was read from the checkpoint of the commit {options.streamer_after}, and "
            f"the newest checkpoint is that of {time} by now: another Streamer writes to the table, or a user set a "
            "checkpoint. Nothing of this batch is visible; read from the newest checkpoint."
        )


def commits_newest_first(meta: MetaClient) -> Iterator[tuple[str, CommitMetadata]]:
    """The instant time and the body of each write, the archived ones among them."""
    for instant in reversed(meta.timeline.commits().instants):
        yield instant.requested_time, meta.commits.metadata(instant)
    for archived in load_archived_timeline(meta.storage, meta.config).instants():
        body = archived.commit() if archived.instant.action.is_write else None
        if body is not None:
            yield archived.instant.requested_time, body
