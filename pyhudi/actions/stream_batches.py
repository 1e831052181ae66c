"""Batches of a stream in the table: each is written once, however often the stream retries it.

The commit of a batch names the stream, the number of the batch and its query in its extra metadata, so the batch and
its note become visible together. Source: docs/formats/incremental.md, "Checkpoint of a sink".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyhudi.errors import ConfigError, CorruptFile, StandingConflict
from pyhudi.formats.json_text import parse_json
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.options.streaming import IDENTIFIER, SINK_CHECKPOINT, SINK_QUERY, StreamOptions
from pyhudi.timeline.archived_timeline import load_archived_timeline

__all__ = ["WRITER", "check_is_missing", "check_is_new", "is_written", "last_batch"]

WRITER = "writer:"  # prefix of a writer's id, which is used where the query is unknown

_NUMBER = re.compile(r"\d{1,19}", re.ASCII)  # a Java long


def last_batch(meta: MetaClient, identifier: str) -> int | None:
    """The number of the newest batch of a stream in the table, None if there is none.

    The newest write that names the stream decides; others may have written since, and archived it.
    Raises CorruptFile for a note that can't be read.
    """
    return next((note.number for note in _notes(meta, identifier)), None)


def is_written(meta: MetaClient, stream: StreamOptions, batch_id: int) -> bool:
    """True if this batch is in the table. Spark repeats the newest batch when it can't be sure of its commit.

    Batches of other streams count from 0, too. Streams without a name are distinguished by their queries; commits of
    Hudi and of older releases note none, and count for all streams. Raises ConfigError where the table has a later
    batch of the stream, or a batch whose stream is unknown; CorruptFile.
    """
    passed = False
    for note in _notes(meta, stream.identifier):
        if _is_another_query(note, stream):
            passed = True
            continue
        if note.number < batch_id:
            return False
        doubtful = note.query != stream.query and (passed or note.query is not None) and batch_id == 0
        if note.number > batch_id or doubtful:
            raise ConfigError(
                f"{meta.storage.root}: the stream {stream.identifier!r} begins batch {batch_id}, but the table has its "
                f"batch {note.number}: its checkpoint location is new, or an older copy, or two streams have this "
                f"name. Nothing was written. Go on with the checkpoint that wrote batch {note.number}, or give this "
                f"stream a name of its own ({IDENTIFIER})."
            )
        return True
    return False


def check_is_new(options: StreamOptions, began: MetaClient, now: MetaClient) -> None:
    """Raise StandingConflict when another writer, which was considered dead, committed the batch during this write.
    `began`: the table as this write began.
    """
    if options.batch_id is None:
        return
    requested_times = {instant.requested_time for instant in began.timeline.commits()}
    for instant in now.timeline.commits():
        if instant.requested_time in requested_times:
            continue
        where = f"{now.storage.root}: the commit {instant.requested_time}"
        note = _note(now.commits.metadata(instant), options.identifier, where)
        if note is not None and note.number >= options.batch_id and not _is_another_query(note, options):
            raise StandingConflict(
                f"{where} has brought batch {note.number} of the stream {options.identifier!r} into the table while "
                f"batch {options.batch_id} was written. Nothing of this write is visible; let one process run the "
                "stream."
            )


def check_is_missing(options: StreamOptions, meta: MetaClient) -> None:
    """Raise StandingConflict when the batch is in the table: another process wrote it between two attempts."""
    if options.batch_id is None:
        return
    notes = (note for note in _notes(meta, options.identifier) if not _is_another_query(note, options))
    newest = next(notes, None)
    if newest is not None and newest.number >= options.batch_id:
        raise StandingConflict(
            f"{meta.storage.root}: another process has brought batch {newest.number} of the stream "
            f"{options.identifier!r} into the table while batch {options.batch_id} waited to be written again. Nothing "
            f"of this write is visible; let one process run the stream."
        )


@dataclass(frozen=True, slots=True)
class _Note:
    """A commit's note about a stream. `query`: None where it names none."""

    number: int
    query: str | None


def _is_another_query(note: _Note, stream: StreamOptions) -> bool:
    """True if the batch certainly belongs to another stream without a name."""
    comparable = _is_query_id(note.query) and _is_query_id(stream.query)
    return not stream.is_named and comparable and note.query != stream.query


def _is_query_id(text: str | None) -> bool:
    """True for the id of a query; a writer's id, which changes with a restart, is none."""
    return text is not None and not text.startswith(WRITER)


def _notes(meta: MetaClient, identifier: str) -> Iterator[_Note]:
    """The notes of commits about the stream, newest first."""
    for instant_time, body in _newest_first(meta):
        note = _note(body, identifier, f"{meta.storage.root}: the commit {instant_time}")
        if note is not None:
            yield note


def _newest_first(meta: MetaClient) -> Iterator[tuple[str, CommitMetadata]]:
    for instant in reversed(meta.timeline.commits().instants):
        yield instant.requested_time, meta.commits.metadata(instant)
    for archived in load_archived_timeline(meta.storage, meta.config).instants():
        body = archived.commit() if archived.instant.action.is_write else None
        if body is not None:
            yield archived.instant.requested_time, body


def _note(body: CommitMetadata, identifier: str, where: str) -> _Note | None:
    number = _noted(body, SINK_CHECKPOINT, identifier, where)
    if number is None:
        return None
    if not _NUMBER.fullmatch(number):
        text = body.extra_metadata.get(SINK_CHECKPOINT)
        raise CorruptFile(f"{where}: expected the number of a batch in {SINK_CHECKPOINT}, found {text!r:.200}.")
    return _Note(int(number), _noted(body, SINK_QUERY, identifier, where))


def _noted(body: CommitMetadata, key: str, identifier: str, where: str) -> str | None:
    """The text for the stream in one of the notes, each a JSON object from streams to texts."""
    text = body.extra_metadata.get(key)
    if not text:
        return None
    by_stream = parse_json(text.encode(), where, f"a JSON object as {key}")
    if not isinstance(by_stream, Mapping):
        raise CorruptFile(f"{where}: expected a JSON object as {key}, found {text!r:.200}.")
    note = by_stream.get(identifier)
    return None if note is None else str(note)
