"""commit: the only way to complete an instant, in one transaction for every kind of action.

    files synced       new files and deletions outlast a power cut
    lock, reload       the table as it is now
    inflight           the instant is still inflight: no other process considered this one dead
    alive, conflicts   further checks of the kind of action
    still held         the lock, before anything is changed under it
    body               with the newest schema and the values carried over; with it, the table's changes
    participant        the metadata table, which this floor does not know: the changes are written there; readers
                       ignore them until the instant is completed
    completion time
    still held         once more: drawing a time waits until all clocks have passed it
    completed file     readers see the instant; when the call returns, it outlasts a power cut, too

An error before the last step leaves the instant inflight; a failure after it becomes a warning (`after_commit`).
Source: docs/architecture.md; docs/formats/timeline.md, "Completion times", "Steps of an instant";
docs/formats/writers.md, "Conflicts", "Steps of a write".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pyhudi.completed import Completion, completing
from pyhudi.errors import WriteConflict
from pyhudi.formats.timeline.clean_plans import encode_clean_metadata
from pyhudi.formats.timeline.instant_files import encode_commit, encode_rollback_metadata
from pyhudi.formats.timeline.plans import encode_index_metadata
from pyhudi.formats.timeline.savepoints import encode_restore_metadata, encode_savepoint
from pyhudi.listeners import ActionCompleted, notify
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import Body, CommitMetadata, OperationType, TableChange, WriteStatus, change_of
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.plans import CleanMetadata, IndexPlan, RestoreMetadata, RollbackMetadata, SavepointMetadata
from pyhudi.model.timeline import Timeline
from pyhudi.storage.staged_table import StagedTable
from pyhudi.transaction.context import ContextT, TableContext
from pyhudi.transaction.instants import TimelineWriter, draw_completion_time
from pyhudi.warnings import warn_caller

__all__ = [
    "Check",
    "Committed",
    "Participant",
    "TakenOver",
    "after_commit",
    "check_same_kind",
    "commit",
    "commit_locked",
    "commit_part",
]

BodyT = TypeVar("BodyT", CommitMetadata, CleanMetadata, RollbackMetadata, RestoreMetadata, SavepointMetadata, IndexPlan)
AnyContext = TypeVar("AnyContext", bound=TableContext, contravariant=True)

Check = Callable[[ContextT], None]  # takes the table as it is now; raises WriteConflict


class Participant(Protocol[AnyContext]):
    """A table that follows the changed one: the metadata table. Its readers ignore the records of an instant that is
    not complete, so it is written first.
    """

    def write_changes(
        self, inflight: Instant, body: Body, change: TableChange, statuses: tuple[WriteStatus, ...], now: AnyContext
    ) -> str | None:
        """Write the instant's changes, under the lock; return the completion time, None if nothing was written.

        Args:    change: the instant's changes, as `body` returned them. statuses: the reports of its tasks.
        Raises:  HudiError; nothing is complete then.
        """
        ...


class TakenOver(WriteConflict):
    """Another process considered this one dead and has completed this instant, or rolled it back. Nothing is left to
    undo.
    """


@dataclass(frozen=True, slots=True)
class Committed(Generic[BodyT]):
    """A completed instant with its body and its changes to the table; `timeline`: with the instant."""

    instant: Instant
    body: BodyT
    change: TableChange
    timeline: Timeline

    @property
    def completion_time(self) -> str:
        return self.instant.completion_time or ""


def _nothing(now: TableContext) -> None:
    pass


def commit(
    inflight: Instant,
    context: ContextT,
    body: Callable[[ContextT], BodyT],
    *,
    participant: Participant[ContextT],
    paths_to_sync: Iterable[str],
    began_s: float,
    seconds: Mapping[str, float] | None = None,
    alive: Check[ContextT] = _nothing,
    conflicts: Check[ContextT] = _nothing,
    last: Check[ContextT] = _nothing,
    statuses: tuple[WriteStatus, ...] = (),
) -> Committed[BodyT]:
    """Complete an instant, and notify the listeners that the options turn on.

    Args:
        body: makes the body from the table as it is now; it may also make changes that need the lock.
        participant: the table that follows this one.
        paths_to_sync: files that any process made or deleted for the action and that are not synced yet.
        began_s: the clock's `monotonic_s` as the action began; seconds: of its phases so far.
        alive: raises if other processes consider this one dead; conflicts: raises if their changes conflict with it.
        last: deletes files that must not exist beside the completed instant; called after all checks.
        statuses: the reports of the tasks, for the participant.
    Raises: TakenOver when the instant is no longer inflight, WriteConflict when the lock was lost, and the errors of
            the participant and the checks. Nothing is complete then.
    """
    context.meta.storage.sync(paths_to_sync)  # before locking: others need not wait for the disk
    with context.locked():
        committed = commit_locked(
            inflight,
            context,
            body,
            participant=participant,
            alive=alive,
            conflicts=conflicts,
            last=last,
            statuses=statuses,
        )
    if context.options.metrics.is_on or context.options.callback.is_on:
        notify(_action_completed(committed, inflight, context, began_s, seconds or {}), context.options, context.clock)
    return committed


def _action_completed(
    committed: Committed[BodyT],
    inflight: Instant,
    context: TableContext,
    began_s: float,
    seconds: Mapping[str, float],
) -> ActionCompleted:
    is_clustering = (
        isinstance(committed.body, CommitMetadata) and committed.body.operation_type == OperationType.CLUSTER
    )
    return ActionCompleted(
        context.meta.storage.root,
        context.meta.config.table_name,
        action=ActionKind.CLUSTERING.value if is_clustering else inflight.action.value,
        duration_s=context.clock.monotonic_s() - began_s,
        ended_ms=context.clock.now_ms(),
        instant=committed.instant,
        body=committed.body,
        timeline=committed.timeline,
        seconds=seconds,
    )


def commit_locked(
    inflight: Instant,
    context: ContextT,
    body: Callable[[ContextT], BodyT],
    *,
    participant: Participant[ContextT],
    alive: Check[ContextT] = _nothing,
    conflicts: Check[ContextT] = _nothing,
    last: Check[ContextT] = _nothing,
    statuses: tuple[WriteStatus, ...] = (),
) -> Committed[BodyT]:
    """Like `commit`, for an action that has held the lock since before its instant began."""
    now = context.reloaded()
    _check_inflight(inflight, now)
    check_same_kind(context.meta, now.meta)
    alive(now)
    conflicts(now)
    _check_still_held(inflight, now)
    metadata = body(now)
    change = change_of(metadata)
    followed = participant.write_changes(inflight, metadata, change, statuses, now)
    last(now)
    completion_time = draw_completion_time(inflight, now, after=followed)
    encoded = _encode(metadata, inflight, now.meta)
    _check_still_held(inflight, now)
    with completing(_completion(inflight, now)):
        completed = _complete(inflight, completion_time, encoded, now.meta)
    others: list[Instant] = [instant for instant in now.meta.timeline if not _is_same(instant, inflight)]
    return Committed(completed, metadata, change, Timeline((*others, completed)))


def commit_part(
    inflight: Instant,
    meta: MetaClient,
    body: CommitMetadata | CleanMetadata,
    completion_time: str,
    *,
    paths_to_sync: Iterable[str],
) -> Instant:
    """Complete an instant of a participant.

    The lock of the table that it follows has been held since before the instant began, and keeps all others from this
    timeline too. So no checks are needed. The time orders this timeline alone, and the caller chooses it.
    """
    meta.storage.sync(paths_to_sync)
    return _complete(inflight, completion_time, _encode(body, inflight, meta), meta)


def after_commit(what: str, instant: Instant, context: TableContext, work: Callable[[], object]) -> None:
    """Do the work that follows a commit. A failure there becomes a warning: readers already see the commit.

    Args:    what: a phrase for `work`, as a subject.
    """
    try:
        work()
    except Exception as error:
        warn_caller(
            f"{context.meta.storage.root}: {instant.action.value} {instant.requested_time} is done, but {what} failed; "
            f"the next write to the table does it. {type(error).__name__}: {error}"
        )


def _completion(inflight: Instant, now: TableContext) -> Completion:
    def is_complete() -> bool:
        storage = now.meta.storage
        place = (
            storage.storage if isinstance(storage, StagedTable) else storage
        )  # a new table takes effect when it replaces the old one
        current = MetaClient.load(place, now.clock).timeline.find(inflight.requested_time, inflight.action)
        return current is not None and current.is_completed

    return Completion(now.meta.storage.root, inflight.action.value, inflight.requested_time, is_complete)


def _is_same(instant: Instant, inflight: Instant) -> bool:
    same_action = instant.action.completed_as is inflight.action.completed_as
    return instant.requested_time == inflight.requested_time and same_action


def _check_inflight(inflight: Instant, now: TableContext) -> None:
    current = now.meta.timeline.find(inflight.requested_time, inflight.action)
    if current is not None and current.state is State.INFLIGHT:
        return
    state = "missing" if current is None else current.state.name.lower()
    raise TakenOver(
        f"{now.meta.storage.root}: {inflight.action.value} {inflight.requested_time} is {state} by now: another "
        f"process considered this one dead and completed it, or rolled it back. Nothing was completed here; look at "
        f"the table, and run it again if need be."
    )


def check_same_kind(began: MetaClient, now: MetaClient) -> None:
    """Raise WriteConflict when the table has another version or type than when an action began: its files and instants
    have the old form.
    """
    before, after = (_kind_of(meta) for meta in (began, now))
    if before != after:
        raise WriteConflict(
            f"{now.storage.root}: the table was {before} when this began, and is {after} by now: another process "
            f"changed it. Nothing of this is visible; run it again."
        )


def _kind_of(meta: MetaClient) -> str:
    return f"{meta.config.table_type} of version {meta.config.table_version}"


def _check_still_held(inflight: Instant, now: TableContext) -> None:
    """Raise WriteConflict when the lock expired or was taken away: another writer may have it."""
    if not now.lock.is_held:
        raise WriteConflict(
            f"{now.meta.storage.root}: the table's lock ran out, or was removed by another writer, before "
            f"{inflight.requested_time} could complete. Nothing of it is visible; write again, and if it happens often "
            f"give the lock a longer validity (docs/locks.md)."
        )


def _encode(body: Body, inflight: Instant, meta: MetaClient) -> bytes:
    """Encode the bytes of the completed file."""
    if isinstance(body, CommitMetadata):
        return encode_commit(body, inflight.action, meta.config.table_version)
    if isinstance(body, CleanMetadata):
        return encode_clean_metadata(body)
    if isinstance(body, RollbackMetadata):
        return encode_rollback_metadata(body)
    if isinstance(body, RestoreMetadata):
        return encode_restore_metadata(body)
    if isinstance(body, IndexPlan):
        return encode_index_metadata(body)
    return encode_savepoint(body)


def _complete(inflight: Instant, completion_time: str, body: bytes, meta: MetaClient) -> Instant:
    return TimelineWriter(meta.storage, meta.config).complete(inflight, completion_time, body)
