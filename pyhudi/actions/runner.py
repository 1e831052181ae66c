"""The order of phases of every action: schedule, prepare, execute, summarise.

    schedule          checks that need no rows            nothing on disk
    request           instant time drawn under the lock   <T>.<action>.requested
    prepare, start    rows to tasks                       <T>.inflight with the workload profile
    execute, sweep    data files                          markers first; leftovers of failed attempts deleted
    validate          the user's validators run           nothing on disk
    complete          under the lock: check for conflicts, make the completed file (`transaction/commit.py`)

A failure before the last step leaves an instant that is not completed: readers never see it, and it is undone here, or
by the next writer if this process can't. Source: docs/architecture.md, "How a table changes"; docs/formats/timeline.md,
"Completion times", "Steps of an instant"; docs/formats/writers.md, "Steps of a write".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.actions.action import Action, ActionContext, PlanT, PreparedWrite, Schedule, Stopwatch, action_span
from pyhudi.actions.applied_changes import check_changes
from pyhudi.actions.concurrency import check_early, check_no_files_removed, check_others, with_latest_schema
from pyhudi.actions.conflicts import groups_replaced_by
from pyhudi.actions.constraints import check_same_constraints
from pyhudi.actions.metadata_participant import METADATA_TABLE
from pyhudi.actions.result import WriteResult
from pyhudi.actions.stream_batches import check_is_new
from pyhudi.actions.streamer_checkpoints import check_checkpoint
from pyhudi.actions.undo.checks import check_not_being_undone
from pyhudi.actions.undo.restore import finish_restores
from pyhudi.actions.undo.rollback import finish_rollbacks, is_being_rolled_back, undo
from pyhudi.actions.validation import Validation, check_validators
from pyhudi.actions.writes.preparation import check_same_history, save_new_schema, with_rolling_metadata
from pyhudi.errors import StorageError, WriteConflict, add_note
from pyhudi.filegroup.write.markers import delete_markers, sweep
from pyhudi.formats.timeline.instant_files import encode_commit
from pyhudi.interrupts import uninterrupted
from pyhudi.listeners import notify_afterwards
from pyhudi.listeners.locks import check_conflicts
from pyhudi.locks import release_if_held
from pyhudi.metadata.staged_index import delete_staged_index
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStatus
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.options import WriteOptions
from pyhudi.schema.column_paths import ColumnChanges
from pyhudi.timeline.heartbeat import Heartbeat
from pyhudi.transaction.commit import Committed, after_commit, check_same_kind, commit
from pyhudi.transaction.instants import draw_time, drop, request_at, start

__all__ = ["run"]

_UNDOING = (ActionKind.ROLLBACK, ActionKind.RESTORE)
_UNDOINGS_MAX = 5  # rollbacks and restores that a write finishes before it begins


def run(action: Action[PlanT], context: ActionContext, rolled_back: tuple[str, ...] = ()) -> WriteResult:
    """Run an action up to its completed instant.

    Args:    rolled_back: instants that were undone before, for the result.
    Raises:  HudiError; unless the completed file exists, nothing of the action is visible.
    """
    with notify_afterwards(), action_span(action.operation, context) as trace_span:
        result = _run(action, context, rolled_back)
        if trace_span is not None:
            trace_span.set_attribute("hudi.instant", result.instant_time)
        return result


def _run(action: Action[PlanT], context: ActionContext, rolled_back: tuple[str, ...]) -> WriteResult:
    check_validators(context.options)
    watch = Stopwatch(context.clock)
    with watch.phase("schedule"):
        schedule = action.schedule(context)
    running = _RunningWrite(context)
    try:
        with watch.phase("request"):
            schedule, instant, heartbeat = _request(action, schedule, running)
        context = running.context
        statuses, committed, prepared = _perform(action, schedule, instant, context, watch, heartbeat)
        _clear(instant, statuses, committed is not None, context)
        running.end()
    except BaseException as error:
        running.undo(error)
        raise
    return WriteResult.of(
        statuses,
        replaced=frozenset() if committed is None else committed.change.groups_replaced,
        table=context.meta.storage.root,
        operation=action.operation,
        instant_time="" if committed is None else instant.requested_time,
        completion_time="" if committed is None else committed.completion_time,
        seconds=watch.seconds,
        rolled_back=rolled_back,
        not_found=prepared.not_found,
        combined=prepared.combined + sum(status.combined for status in statuses),
        columns=ColumnChanges() if committed is None else _column_changes(action, schedule, context),
    )


def _column_changes(action: Action[PlanT], schedule: Schedule, context: ActionContext) -> ColumnChanges:
    """The changes that rows made to the table's columns. `context`: the table as the write began."""
    if action.operation == OperationType.ALTER_SCHEMA:
        return ColumnChanges()
    dropped = context.meta.config.dropped_partition_fields
    before, after = (
        pa.schema([column for column in schema if column.name not in dropped])
        for schema in (context.meta.table_schema(), schedule.schema)
    )
    return ColumnChanges.between(before, after) if before.names else ColumnChanges()


def _clear(instant: Instant, statuses: Sequence[WriteStatus], is_committed: bool, context: ActionContext) -> None:
    """Delete the files that a finished write no longer needs, and those that late tasks have made since the sweep."""
    storage, time = context.meta.storage, instant.requested_time
    if context.tasks_may_outlive_it and is_committed:
        paths = _paths(statuses)
        after_commit("deleting files of late tasks", instant, context, lambda: sweep(storage, time, paths))
    after_commit("deleting its markers", instant, context, lambda: delete_markers(storage, time))
    if any(status.staged_index for status in statuses):
        after_commit("deleting staged files of its index", instant, context, lambda: delete_staged_index(storage, time))


def _perform(
    action: Action[PlanT],
    schedule: Schedule,
    instant: Instant,
    context: ActionContext,
    watch: Stopwatch,
    heartbeat: Heartbeat,
) -> tuple[tuple[WriteStatus, ...], Committed[CommitMetadata] | None, PreparedWrite[PlanT]]:
    storage, config = context.meta.storage, context.meta.config
    with watch.phase("prepare"):
        prepared = action.prepare(schedule, instant, context)
    try:
        profile = prepared.profile
        body = b"" if profile is None else encode_commit(profile, instant.action, config.table_version)
        check_early(instant, profile, context)
        inflight = start(instant, context.meta, body)
        with watch.phase("execute"):
            statuses = action.execute(prepared, context)
    finally:
        for frame in prepared.cached:
            context.engine.release(frame)
    paths = _paths(statuses)
    with watch.phase("sweep"):
        sweep(storage, instant.requested_time, paths)
    metadata = action.summarise(prepared, statuses, context)
    changes = statuses or groups_replaced_by(metadata) or action.operation == OperationType.ALTER_SCHEMA
    if not (changes or _may_be_empty(action, context.options)):
        drop(inflight, context.meta)
        return statuses, None, prepared
    save_new_schema(prepared.schedule, instant, context)
    validation = Validation(metadata, inflight, context)
    if validation.is_wanted:
        with watch.phase("validate"):
            validation.run()
    with watch.phase("commit"):
        committed = _complete(metadata, prepared, inflight, statuses, paths, context, heartbeat, validation, watch)
    return statuses, committed, prepared


def _paths(statuses: Sequence[WriteStatus]) -> list[str]:
    return [path for status in statuses for path in status.stat.paths]


def _may_be_empty(action: Action[PlanT], options: WriteOptions) -> bool:
    """True if it may commit without files. As in Hudi that is the default, but a delete that matches nothing commits
    only if an option asks for it.
    """
    is_explicit = "hoodie.allow.empty.commit" in options.explicit
    deletes = action.operation in (OperationType.DELETE, OperationType.DELETE_PARTITION)
    return options.commits.allow_empty and (is_explicit or not deletes)


def _request(action: Action[PlanT], schedule: Schedule, running: _RunningWrite) -> tuple[Schedule, Instant, Heartbeat]:
    """Draw the instant time and make the requested file; `running.context` becomes the table at this time.

    The heartbeat starts before the requested file is written: a pending instant without heartbeat counts as dead.
    """
    context = running.context
    for _ in range(_UNDOINGS_MAX):
        with context.locked():
            now = context.reloaded()
            check_same_kind(context.meta, now.meta)
            if not now.meta.timeline.pending().of(_UNDOING).instants or now.options.failed_writes_policy == "NEVER":
                return _request_now(action, schedule, running, now)
        finish_restores(context.reloaded())  # a write must not begin on a table where an undo is half done
        finish_rollbacks(context.reloaded())
    raise WriteConflict(
        f"{context.meta.storage.root}: other processes keep undoing writes as this one begins. Nothing of it "
        f"is visible; write again."
    )


def _request_now(
    action: Action[PlanT], schedule: Schedule, running: _RunningWrite, now: ActionContext
) -> tuple[Schedule, Instant, Heartbeat]:
    """The request, under the lock. `now`: the table as read under it."""
    context = running.context
    if now.meta.timeline.commits() != context.meta.timeline.commits():
        schedule = action.schedule(now)  # the table's schema may have changed
    time = schedule.time or draw_time(now)
    heartbeat = now.heartbeat(time)
    running.context, running.heartbeat = now, heartbeat
    with heartbeat.beating(context.options.failed_writes_policy == "LAZY"):  # with EAGER it is not used
        running.instant = instant = Instant(time, action.kind, State.REQUESTED)
        try:
            request_at(time, action.kind, now.meta, schedule.body)
        except WriteConflict:
            running.instant = None  # it is another writer's
            raise
    return schedule.at(time), instant, heartbeat


def _complete(
    body: CommitMetadata,
    prepared: PreparedWrite[PlanT],
    inflight: Instant,
    statuses: tuple[WriteStatus, ...],
    paths_to_sync: Sequence[str],
    began: ActionContext,
    heartbeat: Heartbeat,
    validation: Validation,
    watch: Stopwatch,
) -> Committed[CommitMetadata]:
    """Make the write visible, unless another one conflicts. `began`: the table as the write began."""

    def conflicts(now: ActionContext) -> None:
        check_conflicts(lambda: checks(now), began.options, began.meta.config.table_name, began.clock)
        validation.run_again(now)

    def checks(now: ActionContext) -> None:
        check_not_being_undone(now.meta, f"{inflight.action.value} {inflight.requested_time}")
        check_no_files_removed(inflight, began.meta, now.meta)
        check_others(inflight, statuses, body, began, now.meta)
        check_same_constraints(began.meta, now.meta)
        check_same_history(prepared.schedule, began.meta, now.meta)
        check_is_new(began.options.stream, began.meta, now.meta)
        check_checkpoint(began.options.stream, now.meta)
        check_changes(began.options, now.meta)

    def latest(now: ActionContext) -> CommitMetadata:
        metadata = with_latest_schema(body, inflight, prepared.schedule, began, now.meta)
        return with_rolling_metadata(metadata, now.meta, began.options.commits)

    return commit(
        inflight,
        began,
        latest,
        participant=METADATA_TABLE,
        paths_to_sync=paths_to_sync,
        began_s=watch.began_s,
        seconds=watch.seconds,
        alive=lambda now: _check_alive(inflight, now, heartbeat),
        conflicts=conflicts,
        statuses=statuses,
    )


def _check_alive(inflight: Instant, now: ActionContext, heartbeat: Heartbeat) -> None:
    """Raise WriteConflict when other writers may consider this one dead, or do so already."""
    is_expired = now.options.failed_writes_policy == "LAZY" and heartbeat.is_expired(now.options.heartbeat_misses)
    if is_expired or is_being_rolled_back(inflight, now.meta):
        what = (
            "expired while it was running, so others may have" if is_expired else "stopped for a while, so others have"
        )
        raise WriteConflict(
            f"{now.meta.storage.root}: the heartbeat of {inflight.requested_time} {what} considered it dead. Nothing "
            f"of it is visible; write again, or raise hoodie.client.heartbeat.interval_in_ms."
        )


@dataclass
class _RunningWrite:
    """The state of a running write. `context`: the table as it was when the write began."""

    context: ActionContext
    instant: Instant | None = None
    heartbeat: Heartbeat | None = None

    def end(self) -> None:
        """End a completed write."""
        if self.instant is not None and self.heartbeat is not None:
            after_commit("ending its heartbeat", self.instant, self.context, self.heartbeat.stop)

    def undo(self, error: BaseException) -> None:
        """Undo a failed write; Ctrl-C and a SIGTERM handler that raises count as errors, too.

        When undoing fails (no connection to the store, no lock) the instant stays pending; the next writer undoes it.
        """
        with uninterrupted():
            release_if_held(self.context.lock)
            try:
                try:
                    if self.instant is not None:
                        undo(self.instant, self.context, frees_space=isinstance(error, StorageError | OSError))
                finally:
                    if self.heartbeat is not None:
                        self.heartbeat.stop()  # not earlier: without it others would undo the instant, too
            except Exception as second:
                time = "it" if self.instant is None else self.instant.requested_time
                add_note(error, f"{time} could not be undone yet ({second}); the next write to the table will do it.")
