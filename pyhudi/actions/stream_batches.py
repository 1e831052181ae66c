"""Batches of a stream that are in the table: each once, however often the stream tries to write them.

The commit of a batch names the stream and the number of the batch in its extra metadata, so the batch and the note that
it is done become visible together. Source: docs/formats/incremental.md, "Checkpoint of a sink".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pyhudi.errors import CorruptFile, StandingConflict
from pyhudi.formats.json_text import parse_json
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.options.streaming import SINK_CHECKPOINT, StreamOptions
from pyhudi.timeline.archived_timeline import load_archived_timeline

__all__ = ["check_is_missing", "check_is_new", "last_batch"]

_NUMBER = re.compile(r"\d{1,19}", re.ASCII)  # a Java long


def last_batch(meta: MetaClient, identifier: str) -> int | None:
    """The number of the newest batch of a stream that is in the table, None when there is none.

    The newest write that names the stream tells; others may have written since, and archived what it wrote.
    Raises CorruptFile for a note that can't be read.
    """
    for instant_time, body in _newest_first(meta):
        found = _batch(body, identifier, f"{meta.storage.root}: the commit {instant_time}")
        if found is not None:
            return found
    return None


def check_is_new(options: StreamOptions, began: MetaClient, now: MetaClient) -> None:
    """Raises StandingConflict when the batch has come into the table while it was written: by a writer that was
    believed dead. `began`: the table as this write began.
    """
    if options.batch_id is None:
        return
    known = {instant.requested_time for instant in began.timeline.commits()}
    for instant in now.timeline.commits():
        if instant.requested_time in known:
            continue
        where = f"{now.storage.root}: the commit {instant.requested_time}"
        found = _batch(now.commits.metadata(instant), options.identifier, where)
        if found is not None and found >= options.batch_id:
            raise StandingConflict(
                f"{where} has brought batch {found} of the stream {options.identifier!r} into the table while batch "
                f"{options.batch_id} was written. Nothing of this write is visible; let one process run the stream."
            )


def check_is_missing(options: StreamOptions, meta: MetaClient) -> None:
    """Raises StandingConflict when the batch is in the table: another process brought it between two attempts."""
    newest = None if options.batch_id is None else last_batch(meta, options.identifier)
    if newest is not None and options.batch_id is not None and newest >= options.batch_id:
        raise StandingConflict(
            f"{meta.storage.root}: another process has brought batch {newest} of the stream {options.identifier!r} "
            f"into the table while batch {options.batch_id} waited to be written again. Nothing of this write is "
            f"visible; let one process run the stream."
        )


def _newest_first(meta: MetaClient) -> Iterator[tuple[str, CommitMetadata]]:
    for instant in reversed(meta.timeline.commits().instants):
        yield instant.requested_time, meta.commits.metadata(instant)
    for archived in load_archived_timeline(meta.storage, meta.config).instants():
        body = archived.commit() if archived.instant.action.is_write else None
        if body is not None:
            yield archived.instant.requested_time, body


def _batch(body: CommitMetadata, identifier: str, where: str) -> int | None:
    text = body.extra_metadata.get(SINK_CHECKPOINT)
    if not text:
        return None
    batches = parse_json(text.encode(), where, f"a JSON object as {SINK_CHECKPOINT}")
    if not isinstance(batches, Mapping):
        raise CorruptFile(f"{where}: expected a JSON object as {SINK_CHECKPOINT}, found {text!r:.200}.")
    found = batches.get(identifier)
    if found is None:
        return None
    if not _NUMBER.fullmatch(str(found)):
        raise CorruptFile(f"{where}: expected the number of a batch in {SINK_CHECKPOINT}, found {text!r:.200}.")
    return int(str(found))
