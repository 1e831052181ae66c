"""The one order of beats for every action: schedule, prepare, execute, summarise.

    schedule          refuse what can be refused          nothing on disk
    request           instant time drawn under the lock   <T>.<action>.requested
    prepare, start    rows to tasks                       <T>.inflight with the workload profile
    execute, sweep    data files                          markers first; leftovers of failed attempts deleted
    complete          under the lock: look for conflicts, draw the completion time, make the completed file

A failure anywhere before the last step leaves an instant that is not completed: readers never see it, and it is undone
here, or by the next writer if this process can't. Source: house 3.5; spec, timeline 3.4, 3.5, 8.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi.actions.action import Action, ActionContext, Order, Schedule, Stopwatch
from pyhudi.actions.conflicts import check_conflicts, check_new_compactions, replaced_groups
from pyhudi.actions.result import WriteResult
from pyhudi.actions.services.rollback import undo
from pyhudi.errors import HudiError, WriteConflict
from pyhudi.filegroup.markers import delete_markers, sweep
from pyhudi.formats.instant_files import encode_commit
from pyhudi.locks import hold
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.pending_compactions import pending_compactions
from pyhudi.metadata.removal import check_metadata_table_gone
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.write_status import WriteStatus
from pyhudi.timeline.heartbeat import Heartbeat
from pyhudi.timeline.instant_time import InstantTimes
from pyhudi.timeline.write import TimelineWriter

__all__ = ["instant_times", "run"]


def run(action: Action, context: ActionContext, rolled_back: tuple[str, ...] = ()) -> WriteResult:
    """Take an action from nothing to completed.

    Args:    rolled_back: instants that were undone before, for the result.
    Raises:  errors of the family; unless the completed file is there, nothing of the action is visible.
    """
    watch = Stopwatch(context.clock)
    schedule: Schedule = watch.time("schedule", lambda: action.schedule(context))
    schedule, context, instant = watch.time("request", lambda: _request(action, schedule, context))
    options = context.options
    heartbeat = Heartbeat(context.meta.storage, instant.requested_time, context.clock, options.heartbeat_interval_ms)
    with undone_on_error(instant, context, heartbeat):
        if options.failed_writes_policy == "LAZY":
            heartbeat.start()  # with EAGER nobody looks at it
        statuses, completed, body = _perform(action, schedule, instant, context, watch, heartbeat)
    delete_markers(context.meta.storage, instant.requested_time)
    heartbeat.stop()
    assert completed.completion_time is not None
    return WriteResult.of(
        statuses,
        replaced=replaced_groups(body),
        table=context.meta.storage.root,
        operation=action.operation,
        instant_time=instant.requested_time,
        completion_time=completed.completion_time,
        seconds=watch.seconds,
        rolled_back=rolled_back,
    )


def _perform(
    action: Action, schedule: Schedule, instant: Instant, context: ActionContext, watch: Stopwatch, heartbeat: Heartbeat
) -> tuple[tuple[WriteStatus, ...], Instant, CommitMetadata]:
    storage, config = context.meta.storage, context.meta.config
    writer = TimelineWriter(storage, config)
    order: Order = watch.time("prepare", lambda: action.prepare(schedule, instant, context))
    try:
        profile = order.profile
        body = b"" if profile is None else encode_commit(profile, instant.action, config.table_version)
        inflight = writer.start(instant, body)
        statuses: tuple[WriteStatus, ...] = watch.time("execute", lambda: action.execute(order, context))
    finally:
        for frame in order.kept:
            context.engine.release(frame)
    kept = [status.stat.path for status in statuses if status.stat.path is not None]
    watch.time("sweep", lambda: sweep(storage, instant.requested_time, kept))
    metadata = action.summarise(order, statuses, context)
    completed = watch.time("commit", lambda: _complete(metadata, order, inflight, statuses, context, heartbeat))
    return statuses, completed, metadata


def _request(action: Action, schedule: Schedule, context: ActionContext) -> tuple[Schedule, ActionContext, Instant]:
    """Draw the instant time and make the requested file; the context that comes back is the table as of then."""
    with hold(context.lock, context.options.lock.wait_timeout_s):
        now = context.reloaded()
        if now.meta.timeline.commits() != context.meta.timeline.commits():
            schedule = action.schedule(now)  # the table's schema may have changed
        time = instant_times(now).draw(now.meta.timeline.latest_time)
        instant = TimelineWriter(now.meta.storage, now.meta.config).request(time, action.kind, schedule.body)
    return schedule, now, instant


def _complete(
    body: CommitMetadata,
    order: Order,
    inflight: Instant,
    statuses: tuple[WriteStatus, ...],
    context: ActionContext,
    heartbeat: Heartbeat,
) -> Instant:
    """Make the write visible, unless another one got in its way. `context` is the table as the write began."""
    known = frozenset(
        instant.requested_time
        for instant in context.meta.timeline
        if instant.action is ActionKind.COMPACTION or instant.is_completed
    )
    options = context.options
    if options.failed_writes_policy == "LAZY" and heartbeat.is_expired(options.heartbeat_misses):
        raise WriteConflict(
            f"{context.meta.storage.root}: the heartbeat of {inflight.requested_time} expired while it was running, so "
            "other writers may have taken it for dead. Nothing of it is visible; write again, or raise "
            "hoodie.client.heartbeat.interval_in_ms."
        )
    with hold(context.lock, options.lock.wait_timeout_s):
        now = context.meta.reload()
        check_metadata_table_gone(now)
        since = [instant for instant in now.timeline.commits() if instant.requested_time not in known]
        bodies = ((instant, now.commits.metadata(instant)) for instant in since)
        own_logs = now.config.table_version >= 8
        check_conflicts(
            inflight, statuses, bodies, now.storage.root, logs_are_parted=own_logs, replaced=replaced_groups(body)
        )
        if now.config.is_merge_on_read:
            planned = {group: time for group, time in pending_compactions(now).items() if time not in known}
            check_new_compactions(inflight, statuses, planned, now.storage.root, logs_are_parted=own_logs)
        _check_schema(inflight, order.schedule, context, now)
        latest = max(filter(None, (now.timeline.latest_time, inflight.requested_time)))
        time = instant_times(context).draw_completion(latest)
        encoded = encode_commit(body, inflight.action, now.config.table_version)
        return TimelineWriter(now.storage, now.config).complete(inflight, time, encoded)


def _check_schema(ours: Instant, schedule: Schedule, began: ActionContext, now: MetaClient) -> None:
    """A commit carries the table's schema: one that began before another changed it would change it back."""
    before = began.meta.commits.latest_schema_json(began.meta.timeline)
    latest = now.commits.latest_schema_json(now.timeline)
    if latest not in (before, schedule.schema_json):
        raise WriteConflict(
            f"{now.storage.root}: another write changed the table's schema while {ours.requested_time} was running. "
            f"Nothing of it is visible; run the write again, it will start from the new schema."
        )


def instant_times(context: ActionContext) -> InstantTimes:
    """Times for this table; the expected skew of clocks is the lock provider's unless the caller gave one."""
    options = context.options
    given = "hoodie.time.generator.max_expected_clock_skew_ms" in options.explicit
    return InstantTimes(
        context.clock,
        context.meta.config.timeline_zone,
        context.lock,
        options.max_clock_skew_ms if given else None,
        options.lock.wait_timeout_s,
    )


@contextmanager
def undone_on_error(instant: Instant, context: ActionContext, heartbeat: Heartbeat) -> Iterator[None]:
    """Undo the instant when the block fails, and let the error go on its way.

    When undoing fails too (the store is gone, the lock is taken) the instant stays pending; the next writer undoes it.
    """
    try:
        yield
    except Exception as error:
        try:
            heartbeat.stop()
            undo(instant.at(State.REQUESTED), context)
        except (HudiError, OSError) as second:
            note = (
                f"{instant.requested_time} could not be undone yet ({second}); the next write to the table will do it."
            )
            if hasattr(error, "add_note"):  # Python 3.11
                error.add_note(note)
        raise
