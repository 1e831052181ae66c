"""A write among other writers: its checks before it completes, and how it is retried after a conflict.

Source: docs/formats/writers.md, "Conflicts", "Non-blocking writers"; Hudi's schema conflict resolution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from pyhudi.actions.action import ActionContext, Schedule
from pyhudi.actions.conflicts import (
    OurWrite,
    check_conflicts,
    check_emptied,
    check_plans,
    conflict_strategy,
    groups_of,
    groups_replaced_by,
)
from pyhudi.actions.written_keys import check_inserted_keys
from pyhudi.engine.local_frame import LocalFrame
from pyhudi.errors import HudiError, StaleRead, StandingConflict, WriteConflict
from pyhudi.filegroup.write.markers import EarlyConflicts
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStatus
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.options import WriteOptions
from pyhudi.storage.clock import Clock
from pyhudi.view.consistent_read import is_cleaned, is_undone
from pyhudi.view.pending_plans import pending_clusterings, pending_compactions

__all__ = [
    "can_be_read_again",
    "check_early",
    "check_no_files_removed",
    "check_others",
    "check_preferred_writers",
    "early_conflicts",
    "with_latest_schema",
    "with_retries",
]

Result = TypeVar("Result")

_PAUSE_S = 0.02
_PAUSE_MAX_S = 2.0


def check_others(
    inflight: Instant, statuses: tuple[WriteStatus, ...], body: CommitMetadata, began: ActionContext, now: MetaClient
) -> None:
    """Raise WriteConflict when others changed the same file groups as this write. Hold the lock.

    Args: began: the table as it was when the write began; now: as it is.
    """
    options = began.options
    ours = OurWrite(
        inflight,
        now.storage.root,
        statuses,
        groups_replaced_by(body),
        conflict_strategy(options),
        logs_are_parted=now.config.format.has_own_log_files,
    )
    times_at_first = {instant.requested_time for instant in began.meta.timeline}
    if options.concurrency.is_non_blocking and body.operation_type != OperationType.BULK_INSERT:
        _check_only_logs(ours)
    else:
        check_conflicts(ours, _completed_since(began, now))
    check_emptied(ours, body, _completed_since(began, now))
    if options.concurrency.guards_new_keys and body.operation_type == OperationType.UPSERT:
        stats = [status.stat for status in statuses]
        check_inserted_keys(inflight, stats, _completed_since(began, now), replace(began, meta=now))
    times = {instant.requested_time for instant in now.timeline.pending()} - times_at_first
    if times:
        compactions = pending_compactions(now) if now.config.is_merge_on_read else {}
        clusterings = {group: instant.requested_time for group, instant in pending_clusterings(now).items()}
        check_plans(
            ours,
            {group: time for group, time in compactions.items() if time in times},
            {group: time for group, time in clusterings.items() if time in times},
        )


def early_conflicts(instant: Instant, context: ActionContext) -> EarlyConflicts | None:
    """The check for other writers in tasks of a write; None if the options don't ask for it, and for services."""
    options = context.options
    is_service = instant.action.is_table_service
    if not (options.concurrency.detects_early and options.concurrency.is_optimistic) or is_service:
        return None
    pending_services = (i.requested_time for i in context.meta.timeline.pending() if i.action.is_table_service)
    return EarlyConflicts(
        frozenset(pending_services), options.heartbeat_interval_ms, options.heartbeat_misses, context.clock
    )


def check_early(instant: Instant, profile: CommitMetadata | None, began: ActionContext) -> None:
    """Raise WriteConflict when a commit since the write began has changed file groups that it is about to change."""
    options = began.options.concurrency
    if profile is None or not (options.is_optimistic and options.detects_early and options.detects_commits_early):
        return
    planned = frozenset(group for group in groups_of(profile) if group.file_id)
    now = began.meta.reload()
    ours = OurWrite(instant, now.storage.root, (), planned, conflict_strategy(began.options))
    check_conflicts(ours, _completed_since(began, now))


def check_preferred_writers(service: Instant, body: CommitMetadata, now: ActionContext) -> None:
    """Raise WriteConflict when a table service replaces file groups that a running writer is about to change.

    It applies only where the strategy prefers writers; otherwise the one that completes last gives way. A writer
    announces its changes in its inflight file; one whose heartbeat has stopped is dead. Hold the lock.
    """
    meta, options = now.meta, now.options
    replaced = groups_replaced_by(body)
    if not replaced or not options.concurrency.has_many_writers or conflict_strategy(options).yields_to_plans:
        return
    for writer in meta.timeline.pending():
        time = writer.requested_time
        if not writer.action.is_commit or writer.state is not State.INFLIGHT or time == service.requested_time:
            continue
        if meta.reader.clustering_plan(writer) is not None:
            continue
        if now.is_dead(time):
            continue
        shared = sorted(replaced & groups_of(meta.reader.profile(writer)))
        if shared:
            raise WriteConflict(
                f"{meta.storage.root}: {service.action.value} {service.requested_time} gives way to the "
                f"{writer.action.value} {time}, which is about to change {shared[0].file_id} in "
                f"{shared[0].partition_path!r}: the conflict strategy prefers writers. Nothing of the service is "
                f"visible; run it again when the writer is done."
            )


def _completed_since(began: ActionContext, now: MetaClient) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Commits since the write began, without compactions that it knew: those change no rows."""
    earlier = {i.requested_time for i in began.meta.timeline if i.is_completed or i.action is ActionKind.COMPACTION}
    since = (instant for instant in now.timeline.commits() if instant.requested_time not in earlier)
    return ((instant, now.commits.metadata(instant)) for instant in since)


def _check_only_logs(ours: OurWrite) -> None:
    """Check that a non-blocking writer only appended: a base file would hide the others' log files."""
    based = sorted(ours.rewritten)
    if based:
        raise WriteConflict(
            f"{ours.table}: the non-blocking write {ours.instant.requested_time} made a base file in "
            f"{based[0].file_id} of {based[0].partition_path!r}, to which other writers may append. Nothing of it "
            f"is visible; use OPTIMISTIC_CONCURRENCY_CONTROL."
        )


def with_latest_schema(
    body: CommitMetadata, ours: Instant, schedule: Schedule, began: ActionContext, now: MetaClient
) -> CommitMetadata:
    """The body with the table's newest schema: a write that began before another changed it would change it back.

    A write that did not change the schema takes over the new one. Raises WriteConflict when both changed it.
    """
    if not began.options.concurrency.guards_schema:
        return body
    before = began.meta.commits.latest_schema_json(began.meta.timeline)
    latest = now.commits.latest_schema_json(now.timeline)
    if latest is None or latest in (before, schedule.schema_json):
        return body
    if before is not None and schedule.schema_json == before:
        return replace(body, extra_metadata={**body.extra_metadata, "schema": latest})
    raise WriteConflict(
        f"{now.storage.root}: another write changed the table's schema while {ours.requested_time} was running, which "
        f"changes it in another way. Nothing of it is visible; run the write again, it will start from the new schema."
    )


def check_no_files_removed(ours: Instant, began: MetaClient, now: MetaClient) -> None:
    """Raise WriteConflict when files that this write needed may have been deleted before it listed them.

    It would treat their rows as new, or keep rows of a write that was undone.
    """
    undone = is_undone(began, now)
    if undone or is_cleaned(began, now):
        what = "a write that it built on was rolled back" if undone else "cleaning deleted files that were current then"
        raise WriteConflict(
            f"{now.storage.root}: since {ours.requested_time} began {what}, so it may not have seen all rows. Nothing "
            f"of it is visible; write again."
        )


def with_retries(
    attempt: Callable[[int], Result],
    options: WriteOptions,
    rows: object,
    clock: Clock,
    *,
    after: tuple[type[HudiError], ...] = (WriteConflict, StaleRead),
) -> Result:
    """Run a write; with many writers run it again after a conflict, as often as the options allow.

    The pause before each further attempt grows and differs from writer to writer.

    Args:   attempt: the whole write, from loading the table on, called with its number, 0 for the first. rows: its
                input. after: the errors after which it is run again.
    Raises: WriteConflict and StaleRead after the last attempt, or when the rows can't be read again; StandingConflict
        at once.
    """
    retries = options.concurrency.conflict_retries if options.concurrency.has_many_writers else 0
    for number in range(retries + 1):
        try:
            return attempt(number)
        except after as error:
            if number == retries or isinstance(error, StandingConflict):
                raise
            if not can_be_read_again(rows):
                raise type(error)(
                    f"{error} It was not retried, because its rows come from a stream that can be read "
                    f"once only; pass a pyarrow Table, or a function that returns the rows each time it is called."
                ) from error
        clock.sleep_s(_pause_s(number, clock))
    raise AssertionError("unreachable")


def can_be_read_again(rows: object) -> bool:
    """False for rows of a large stream, which can be read only once."""
    return not isinstance(rows, LocalFrame) or rows.can_be_read


def _pause_s(number: int, clock: Clock) -> float:
    """The pause after attempt `number`, 0 for the first: between half and three halves of a value that doubles each
    time.
    """
    chance = int(clock.new_uuid()[:8], 16) / (1 << 32)
    return float(min(_PAUSE_MAX_S, _PAUSE_S * 2**number) * (0.5 + chance))
