"""Cleaning: files that no allowed query needs are deleted.

    <T>.clean.requested   the plan: names of the files to delete         under the lock
    <T>.clean.inflight    the plan again; empty from table version 9 on
    files deleted         those that are gone already count as deleted
    empty partitions      their metadata and folders go                   under the lock, if no write is pending
    <T>.clean             what was deleted                                under the lock

Every step may be repeated. A clean that found an end in between is finished, by its plan, before the next one is made.
Source: spec, timeline 4.2, 4.7; metadata and indexes 5.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from pyhudi.actions.action import ActionContext
from pyhudi.actions.rolling_metadata import with_rolling_values
from pyhudi.actions.runner import instant_times
from pyhudi.actions.services.clean_drafting import CleanDraft, commits_since_clean, draft_clean, savepointed_files
from pyhudi.actions.services.clean_result import CleanResult, CleanRun
from pyhudi.actions.services.rollback import roll_back_failed_writes
from pyhudi.errors import TableError
from pyhudi.formats.clean_plans import decode_clean_plan, encode_clean_metadata, encode_clean_plan
from pyhudi.locks import hold
from pyhudi.metadata.file_system_view import LISTING_THREADS, is_partition_metadata
from pyhudi.metadata.removal import check_metadata_table_gone
from pyhudi.model.clean_plan import KEEP_LATEST_COMMITS, CleanedPartition, CleanMetadata, CleanPlan
from pyhudi.model.filenames import data_path
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.timeline import Timeline
from pyhudi.storage.base import Storage
from pyhudi.timeline.write import TimelineWriter

__all__ = ["clean", "clean_after_write", "pending_cleans"]

_DRAFTS = 3  # so many drafts are made beside writers at work; the next one is made under the lock
_EMPTY_INFLIGHT_FROM_VERSION = 9
_FEW_FILES = 8  # fewer are deleted one after the other
# What may make a draft wrong that was made before it: these need old files, or bring old slices back.
_GUARDED = frozenset(
    {
        ActionKind.SAVEPOINT,
        ActionKind.ROLLBACK,
        ActionKind.RESTORE,
        ActionKind.COMPACTION,
        ActionKind.LOGCOMPACTION,
        ActionKind.CLUSTERING,
        ActionKind.CLEAN,
    }
)


def clean(
    context: ActionContext, *, dry_run: bool = False, schedule_only: bool = False, instant_time: str | None = None
) -> CleanResult:
    """Delete files that no allowed query needs. Cleans that wait are executed first.

    Args:
        dry_run: only say which files would go, and why. schedule_only: leave the plan for another run or process.
        instant_time: execute just this pending clean.
    Raises: errors of the family. What was deleted stays deleted; the next clean finishes this one.
    """
    table, options = context.meta.storage.root, context.options.cleaning
    if dry_run:
        return _result(draft_clean(context) if _is_due(context) else CleanDraft(options.policy, None), context)
    if instant_time is not None:
        return CleanResult(table, options.policy, runs=_run_all((_waiting(instant_time, context),), context))
    undone: tuple[str, ...] = ()
    if context.options.failed_writes_policy == "LAZY":
        undone = roll_back_failed_writes(context)
        context = context.reloaded() if undone else context
    runs = () if schedule_only else _run_all(pending_cleans(context.meta.timeline), context)
    context = context.reloaded() if runs else context
    if not _is_due(context):
        return CleanResult(table, options.policy, runs=runs, rolled_back=undone)
    draft, instant = _schedule(context)
    if instant is not None and not schedule_only:
        runs = (*runs, *_run_all((instant,), context))
    return _result(draft, context, instant, runs, undone)


def clean_after_write(context: ActionContext) -> tuple[str, ...]:
    """What a write does when it is complete: clean, when its options and the trigger say so.

    Args:    context: the table before the write. Below the number of commits to retain nothing is read at all.
    Returns: the instants that were completed.
    """
    options = context.options.cleaning
    waiting = pending_cleans(context.meta.timeline)
    few = options.policy == KEEP_LATEST_COMMITS and len(context.meta.timeline.commits()) < options.commits_retained
    if not options.automatic or (few and not waiting):
        return ()
    context = context.reloaded()
    runs = _run_all(pending_cleans(context.meta.timeline), context)
    context = context.reloaded() if runs else context
    if commits_since_clean(context.meta) >= options.trigger_commits:
        _, instant = _schedule(context, after_write=True)
        if instant is not None:
            runs = (*runs, *_run_all((instant,), context))
    return tuple(run.instant_time for run in runs)


def pending_cleans(timeline: Timeline) -> tuple[Instant, ...]:
    """Cleans that are not completed, oldest first."""
    return tuple(instant for instant in timeline.pending() if instant.action is ActionKind.CLEAN)


def _waiting(instant_time: str, context: ActionContext) -> Instant:
    waiting = pending_cleans(context.meta.timeline)
    found = next((instant for instant in waiting if instant.requested_time == instant_time), None)
    if found is None:
        known = ", ".join(instant.requested_time for instant in waiting) or "none"
        raise TableError(f"{context.meta.storage.root}: no clean {instant_time} is waiting; pending ones: {known}.")
    return found


def _is_due(context: ActionContext) -> bool:
    """A call cleans what there is, unless it says what to wait for."""
    options = context.options.cleaning
    return not options.trigger_is_given or commits_since_clean(context.meta) >= options.trigger_commits


def _result(
    draft: CleanDraft,
    context: ActionContext,
    instant: Instant | None = None,
    runs: tuple[CleanRun, ...] = (),
    undone: tuple[str, ...] = (),
) -> CleanResult:
    return CleanResult(
        context.meta.storage.root,
        draft.policy,
        None if draft.earliest is None else draft.earliest.requested_time,
        draft.going,
        draft.deserted,
        None if instant is None else instant.requested_time,
        runs,
        undone,
    )


# ---- scheduling ------------------------------------------------------------------------------------------------------


def _schedule(context: ActionContext, *, after_write: bool = False) -> tuple[CleanDraft, Instant | None]:
    """Put a plan on the timeline; None when there is nothing to do. Listing needs no lock."""
    for _ in range(_DRAFTS):
        draft = draft_clean(context, after_write=after_write)
        if draft.is_empty:
            return draft, None
        with hold(context.lock, context.options.lock.wait_timeout_s):
            now = context.reloaded()
            if _guards(now) == _guards(context):
                return draft, _request(draft, now)
        context = now
    with hold(context.lock, context.options.lock.wait_timeout_s):
        now = context.reloaded()
        draft = draft_clean(now, after_write=after_write)
        return draft, None if draft.is_empty else _request(draft, now)


def _guards(context: ActionContext) -> frozenset[tuple[str, ActionKind, State]]:
    meta = context.meta
    pending = {i for i in meta.timeline.pending() if i.action is ActionKind.REPLACECOMMIT}
    guarded = pending | {i for i in meta.timeline if i.action in _GUARDED}
    return frozenset((i.requested_time, i.action, i.state) for i in guarded)


def _request(draft: CleanDraft, context: ActionContext) -> Instant:
    storage, config = context.meta.storage, context.meta.config
    check_metadata_table_gone(context.meta)
    time = instant_times(context).draw(context.meta.timeline.latest_time)
    body = encode_clean_plan(draft.plan(), lambda path: _absolute(storage, path))
    return TimelineWriter(storage, config).request(time, ActionKind.CLEAN, body)


def _absolute(storage: Storage, path: str) -> str:
    """As Hudi writes it: absolute, without scheme on a local disk."""
    full = storage.full_path(path)
    return full.removeprefix("file://").removeprefix("file:")


# ---- executing -------------------------------------------------------------------------------------------------------


def _run_all(instants: Sequence[Instant], context: ActionContext) -> tuple[CleanRun, ...]:
    runs = (_run(instant, context) for instant in instants)
    return tuple(run for run in runs if run is not None)


def _run(instant: Instant, context: ActionContext) -> CleanRun | None:
    """Execute a plan; None when there is none in the file (its writer died), or another process was faster."""
    storage, config = context.meta.storage, context.meta.config
    writer = TimelineWriter(storage, config)
    started_s = context.clock.monotonic_s()
    body = writer.read_body(instant, State.REQUESTED)
    if not body:
        writer.delete_files(instant)
        return None
    plan = decode_clean_plan(body, f"{storage.root}: {instant.requested_time}.clean.requested")
    if instant.state is State.REQUESTED:
        instant = writer.start(instant, b"" if config.table_version >= _EMPTY_INFLIGHT_FROM_VERSION else body)
    deleted = _delete(plan, context)
    with hold(context.lock, context.options.lock.wait_timeout_s):
        now = context.reloaded()
        if instant not in pending_cleans(now.meta.timeline):
            return None
        check_metadata_table_gone(now.meta)
        gone = _remove_partitions(plan.partitions, now)
        taken_ms = int((context.clock.monotonic_s() - started_s) * 1000)
        extra = with_rolling_values(plan.extra_metadata, now.meta, now.options.commits)
        metadata = _metadata(instant, plan, deleted, gone, taken_ms, extra)
        latest = max(filter(None, (instant.requested_time, now.meta.timeline.latest_time)))
        time = instant_times(now).draw_completion(latest)
        completed = writer.complete(instant, time, encode_clean_metadata(metadata))
    assert completed.completion_time is not None
    return CleanRun(
        instant.requested_time,
        completed.completion_time,
        metadata.earliest or None,
        sum(map(len, deleted.values())),
        gone,
        context.clock.monotonic_s() - started_s,
    )


def _delete(plan: CleanPlan, context: ActionContext) -> Mapping[str, tuple[str, ...]]:
    """Delete the files of a plan, but those that a savepoint made since then protects. By partition what is gone."""
    saved = savepointed_files(context.meta)
    going = {
        path: tuple(name for name in names if not any(name in files.get(path, ()) for files in saved.values()))
        for path, names in plan.files.items()
    }
    paths = [data_path(path, name) for path, names in going.items() for name in names]
    if len(paths) < _FEW_FILES:
        for path in paths:
            context.meta.storage.delete(path)
    else:
        with ThreadPoolExecutor(LISTING_THREADS, thread_name_prefix="hudi-clean") as pool:
            for _ in pool.map(context.meta.storage.delete, paths):
                pass
    return going


def _remove_partitions(partitions: Sequence[str], context: ActionContext) -> tuple[str, ...]:
    """Take folders without data out of the table. While a write is pending they stay: it may be about to use one.

    A write that begins afterwards, under the same lock, finds no partition metadata and makes its own.
    """
    if any(i.action.is_write for i in context.meta.timeline.pending()):
        return ()
    storage, gone = context.meta.storage, []
    for path in partitions:
        entries = storage.list(path)
        if path and all(not e.is_dir and (is_partition_metadata(e.name) or e.name.endswith(".crc")) for e in entries):
            # The metadata first: a crash leaves a folder that is no partition.
            for entry in entries:
                storage.delete(entry.path)
            storage.delete_tree(path)
            gone.append(path)
    return tuple(gone)


def _metadata(
    instant: Instant,
    plan: CleanPlan,
    deleted: Mapping[str, tuple[str, ...]],
    gone: tuple[str, ...],
    taken_ms: int,
    extra_metadata: Mapping[str, str],
) -> CleanMetadata:
    return CleanMetadata(
        start_time=instant.requested_time,
        time_taken_ms=taken_ms,
        earliest=plan.earliest_time,
        last_commit=plan.last_commit,
        partitions={path: CleanedPartition(plan.policy, names, (), path in gone) for path, names in deleted.items()},
        extra_metadata=extra_metadata,
    )
