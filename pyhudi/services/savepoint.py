"""Savepoints: protected commits. Cleaning keeps their files, archiving stops before them, and `restore` takes the table
back to them.

    <T>.savepoint.inflight   empty; T is the instant time of the saved commit
    <T>.savepoint            names of the files of its newest slices, by partition

Source: docs/formats/timeline.md, "Savepoint and restore".
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from pyhudi.actions.action import ActionContext
from pyhudi.actions.metadata_participant import METADATA_TABLE
from pyhudi.actions.undo.checks import check_not_being_undone
from pyhudi.errors import ConfigError, CorruptFile, TableError
from pyhudi.interrupts import uninterrupted
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.plans import SavepointMetadata
from pyhudi.redaction import is_text
from pyhudi.result import Result, ResultList
from pyhudi.services.archive.archiving import archive_out_of_turn
from pyhudi.services.clean.planner import savepoint_bodies
from pyhudi.transaction.commit import Committed, commit_locked
from pyhudi.transaction.instants import drop_if_pending, drop_savepoint, start
from pyhudi.view.file_system_view import FileSystemView
from pyhudi.view.readable_history import load_readable_history

__all__ = ["Savepoint", "Savepoints", "delete_savepoint", "load_savepoints", "savepoint"]


@dataclass(frozen=True, slots=True, repr=False)
class Savepoint(Result):
    """`instant_time`: the saved commit. `completion_time`: when the savepoint completed. `files`: number of files it
    keeps.
    """

    instant_time: str
    completion_time: str
    user: str
    comment: str
    partitions: int
    files: int

    def __str__(self) -> str:
        return f"savepoint of {self.instant_time}: keeps {self.files:,} files in {self.partitions:,} partitions"


class Savepoints(ResultList[Savepoint]):
    """A list of savepoints that prints as a table."""

    entry_type = Savepoint
    header = ("instant", "made", "by", "comment", "partitions", "files")

    def _row(self, entry: Savepoint) -> Sequence[object]:
        return (entry.instant_time, entry.completion_time, entry.user, entry.comment, entry.partitions, entry.files)


def savepoint(context: ActionContext, instant_time: str | None = None, user: str = "", comment: str = "") -> Savepoint:
    """Save a completed commit (None: the newest one).

    Raises TableError when there is no such commit, it is saved already, or cleaning has removed files of it;
    ConfigError for a user or comment that is not text.
    """
    for name, text in (("user", user), ("comment", comment)):
        if not isinstance(text, str) or not is_text(text):
            raise ConfigError(f"The savepoint's {name} is no text: {text!r}. Nothing was saved.")
    meta = context.meta
    with context.locked():
        meta = meta.reload()
        check_not_being_undone(meta, "a savepoint")
        target = _target(meta, instant_time)
        view = FileSystemView.load(meta, as_of=target.requested_time)
        files = {
            partition: tuple(
                name
                for file_slice in view.slices(partition)
                for name in (
                    *([file_slice.base_file.name] if file_slice.base_file is not None else []),
                    *(log.path.rpartition("/")[2] for log in file_slice.log_files),
                )
            )
            for partition in view.partitions()
            if view.slices(partition)
        }
        metadata = SavepointMetadata(user, context.clock.now_ms(), comment, files)
        instant = Instant(target.requested_time, ActionKind.SAVEPOINT, State.INFLIGHT)
        drop_savepoint(instant, meta)  # its writer died at this point
        try:
            inflight = start(instant, meta)
            committed: Committed[SavepointMetadata] = commit_locked(
                inflight, context, lambda now: metadata, participant=METADATA_TABLE
            )
        except BaseException:
            with uninterrupted(), suppress(Exception):  # otherwise the next savepoint of the commit deletes it
                drop_if_pending(instant, meta.reload())
            raise
    return _described(committed.instant, committed.body)


def delete_savepoint(context: ActionContext, instant_time: str, *, dry_run: bool = False) -> Savepoint:
    """Release a saved commit; return its former savepoint. Raises TableError if it has none."""
    if dry_run:
        return _readable(_savepoint_of(instant_time, context.meta), context.meta)
    with context.locked():
        context = context.reloaded()
        instant = _savepoint_of(instant_time, context.meta)
        deleted = _readable(instant, context.meta)
        archive_out_of_turn(context, instant_time)
        drop_savepoint(instant, context.meta)
        return deleted


def _readable(instant: Instant, meta: MetaClient) -> Savepoint:
    """A savepoint for display. It can be deleted even if its body is damaged or was never written."""
    unknown = Savepoint(instant.requested_time, instant.completion_time or "", "", "", 0, 0)
    with suppress(CorruptFile):
        return next((one for one in load_savepoints(meta) if one.instant_time == instant.requested_time), unknown)
    return unknown


def _savepoint_of(instant_time: str, meta: MetaClient) -> Instant:
    savepoints = meta.timeline.of([ActionKind.SAVEPOINT])
    matches = [instant for instant in savepoints if instant.requested_time == instant_time]
    if not matches:
        times = ", ".join(instant.requested_time for instant in savepoints) or "none"
        raise TableError(f"{meta.storage.root}: {instant_time} has no savepoint; savepoints: {times}.")
    return matches[0]


def load_savepoints(meta: MetaClient) -> Savepoints:
    """The savepoints of a table, oldest first."""
    savepoints = Savepoints()
    for instant, body in savepoint_bodies(meta):
        savepoints.append(_described(instant, body))
    return savepoints


def _target(meta: MetaClient, instant_time: str | None) -> Instant:
    commits, where = meta.timeline.commits(), meta.storage.root
    target = commits.last_commit() if instant_time is None else commits.find(instant_time)
    if target is None:
        raise TableError(
            f"{where}: there is no completed commit {instant_time or ''} on the active timeline to save; "
            f"it has those from {commits.first_time} to {commits.latest_time}."
        )
    time = target.requested_time
    if any(i.requested_time == time for i in meta.timeline.completed().of([ActionKind.SAVEPOINT])):
        raise TableError(f"{where}: {time} has a savepoint already.")
    readable_history = load_readable_history(meta)
    if not readable_history.is_readable(time):
        raise TableError(
            f"{where}: {time} can't be saved: cleaning has removed file versions older than "
            f"{readable_history.earliest}. Save that commit or a later one."
        )
    return target


def _described(instant: Instant, metadata: SavepointMetadata) -> Savepoint:
    return Savepoint(
        instant.requested_time,
        instant.completion_time or "",
        metadata.savepointed_by,
        metadata.comments,
        len(metadata.files),
        sum(len(names) for names in metadata.files.values()),
    )
