"""Execution of cleans, and `CleanResult`, which reports them to the caller.

`run_cleans` deletes the files of a plan, then the empty partitions, and then completes the clean. Every step may be
repeated: if a process dies, the next one finishes the work. A file that was protected after planning is kept.

`CleanResult` lists the slices that a call plans to delete, each with its reason, and the cleans that it executed. After
a dry run it has only the plan.
Source: docs/formats/timeline.md, "Bodies"; docs/formats/table-services.md, "Cleaning plan".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from html import escape

from pyhudi.actions.action import ActionContext
from pyhudi.actions.metadata_participant import METADATA_TABLE
from pyhudi.actions.writes.preparation import with_rolling_values
from pyhudi.display import html_lines
from pyhudi.errors import WriteConflict
from pyhudi.model.filenames import data_path, instant_of
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.plans import CleanedPartition, CleanMetadata, CleanPlan
from pyhudi.model.timeline import Timeline
from pyhudi.result import Result
from pyhudi.services.clean.planner import savepointed_files
from pyhudi.services.clean.policies import Deletions
from pyhudi.transaction.commit import Committed, TakenOver, commit
from pyhudi.transaction.instants import drop
from pyhudi.transaction.plans import start_again
from pyhudi.view.file_system_view import LISTING_THREADS, FileSystemView, is_partition_metadata
from pyhudi.view.readable_history import load_readable_history

__all__ = ["CleanResult", "CleanRun", "check_no_restore", "run_cleans"]


_SHOWN = 20


@dataclass(frozen=True, slots=True, repr=False)
class CleanRun(Result):
    """One completed clean. `earliest`: the table can be read as of this instant and later ones; None when the policy
    names no instant. `partitions_removed`: partitions without remaining files.
    """

    instant_time: str
    completion_time: str
    earliest: str | None
    files_deleted: int
    partitions_removed: tuple[str, ...]
    total_s: float

    def __str__(self) -> str:
        return (
            f"clean {self.instant_time} (complete {self.completion_time}): {self.files_deleted:,} files deleted"
            f"{_and_partitions(self.partitions_removed)}{_since(self.earliest)}; {self.total_s:.2f} s"
        )


@dataclass(frozen=True, slots=True, repr=False)
class CleanResult(Result):
    """`planned`: slices of the plan that this call made, or would make (dry run). `scheduled`: its instant, None when
    nothing was scheduled. `earliest`: the table can be read as of this instant and later ones once the plan is
    executed, or now if there is nothing to do; None when the policy names no instant and nothing was cleaned. `runs`:
    plans that this call executed. `rolled_back`: writes of dead writers. `waiting`: the instants of pending plans that
    it would execute first (dry run).
    """

    table: str
    policy: str
    earliest: str | None = None
    planned: Deletions = field(default_factory=Deletions)
    partitions_planned: tuple[str, ...] = ()
    scheduled: str | None = None
    runs: tuple[CleanRun, ...] = ()
    rolled_back: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()

    @property
    def instant_times(self) -> tuple[str, ...]:
        """The completed instants."""
        return tuple(run.instant_time for run in self.runs)

    @property
    def files_planned(self) -> tuple[str, ...]:
        """Paths of the files of the plan, relative to the table."""
        return tuple(
            data_path(partition_path, name)
            for partition_path, names in self.planned.names_by_partition()
            for name in names
        )

    def __str__(self) -> str:
        if self.runs:
            return "\n".join(map(str, self.runs))
        pending_lines = [f"clean would run the waiting plan {instant_time}" for instant_time in self.waiting]
        if not self.planned and not self.partitions_planned:
            return "\n".join(pending_lines) or f"clean ({self.policy}): nothing to do{_since(self.earliest)}"
        files = self.planned.file_count
        state = f"scheduled as {self.scheduled}" if self.scheduled else f"({self.policy}) would delete"
        head = f"clean {state}: {files:,} files{_and_partitions(self.partitions_planned)}{_since(self.earliest)}"
        lines = [
            f"  {deletion.partition_path or '.'}: {', '.join(deletion.names)}: {deletion.reason}"
            for deletion in self.planned[:_SHOWN]
        ]
        more = [f"  and {len(self.planned) - _SHOWN:,} more slices"] if len(self.planned) > _SHOWN else []
        return "\n".join([*pending_lines, head, *lines, *more])

    def _repr_html_(self) -> str:
        head = str(self).split("\n  ")[0]
        if self.runs or not self.planned:
            return html_lines(str(self))
        rows = "".join(
            f"<tr><td>{escape(d.partition_path)}</td><td>{escape(', '.join(d.names))}</td><td>{escape(d.reason)}</td>"
            f"</tr>"
            for d in self.planned[:_SHOWN]
        )
        names = "".join(f"<th>{name}</th>" for name in ("partition", "files", "why"))
        return f"{html_lines(head)}<table><tr>{names}</tr>{rows}</table>"


def _and_partitions(partitions: tuple[str, ...]) -> str:
    return f" and {len(partitions):,} empty partitions" if partitions else ""


def _since(earliest: str | None) -> str:
    return f", readable as of {earliest} and later" if earliest else ""


_FEW_FILES = 8  # up to this number, files are deleted one after the other


def check_no_restore(context: ActionContext) -> None:
    """Raise WriteConflict while a restore is running: it needs old files, and undoes instants one by one."""
    pending = [i for i in context.meta.timeline.pending() if i.action is ActionKind.RESTORE]
    if pending:
        raise WriteConflict(
            f"{context.meta.storage.root}: the restore {pending[0].requested_time} is not complete, so nothing can be "
            "cleaned now. Wait for it; one whose process died is finished by calling restore again."
        )


def run_cleans(
    instants: Sequence[Instant], context: ActionContext, fresh_plan: CleanPlan | None = None
) -> tuple[CleanRun, ...]:
    """Execute plans; those that another process has completed are skipped. Raises HudiError.

    Args: fresh_plan: the plan of the only instant, if this call made it; others are read and checked.
    """
    runs = (_run(instant, context, fresh_plan) for instant in instants)
    return tuple(run for run in runs if run is not None)


def _run(instant: Instant, context: ActionContext, fresh_plan: CleanPlan | None) -> CleanRun | None:
    """Execute a plan; None when the file holds none (its writer died), or another process was faster."""
    started_s = context.clock.monotonic_s()
    plan = fresh_plan or context.meta.reader.clean_plan(instant)
    if plan is None:
        drop(instant, context.meta)
        return None
    instant = start_again(instant, context.meta)
    context = context.reloaded()
    check_no_restore(context)
    deleted = _delete(plan, instant, fresh_plan is not None, context)
    removed: list[str] = []

    def metadata(now: ActionContext) -> CleanMetadata:
        removed.extend(_remove_partitions(plan.partitions, now))
        taken_ms = int((context.clock.monotonic_s() - started_s) * 1000)
        extra = with_rolling_values(plan.extra_metadata, now.meta, now.options.commits)
        return _metadata(instant, plan, deleted, tuple(removed), taken_ms, extra)

    try:
        # Files that a completed clean deleted must not come back: an archived write may have replaced them.
        deleted_paths = [data_path(path, name) for path, names in deleted.items() for name in names]
        committed: Committed[CleanMetadata] = commit(
            instant,
            context,
            metadata,
            participant=METADATA_TABLE,
            paths_to_sync=deleted_paths,
            began_s=started_s,
        )
    except TakenOver:
        return None
    return CleanRun(
        instant.requested_time,
        committed.completion_time,
        _readable_since(committed.body, context),
        sum(map(len, deleted.values())),
        tuple(removed),
        context.clock.monotonic_s() - started_s,
    )


def _readable_since(clean: CleanMetadata, context: ActionContext) -> str | None:
    """The earliest instant that can be read: the clean's, or a later one if an earlier clean retained less."""
    return (
        max(clean.earliest, load_readable_history(context.reloaded().meta).earliest or "") if clean.earliest else None
    )


def _delete(plan: CleanPlan, instant: Instant, is_own: bool, context: ActionContext) -> Mapping[str, tuple[str, ...]]:
    """Delete the files of a plan, except those that must be kept now; return the deleted ones by partition.

    These are the files of savepoints, and the newest versions, which a rollback or restore may have changed. A plan
    read from the timeline may name anything, so newest versions and files of pending writes or writes newer than the
    plan are kept, too.
    """
    to_keep: list[Mapping[str, Collection[str]]] = [*savepointed_files(context.meta).values()]
    if not is_own or any(
        i.action.is_undoing and i.requested_time > instant.requested_time for i in context.meta.timeline
    ):
        to_keep.append(_newest_files(plan.files, context))
    if not is_own:
        to_keep.append(_newer_files(plan, instant, context.meta.timeline))
    to_delete = {
        path: tuple(name for name in names if not any(name in files.get(path, ()) for files in to_keep))
        for path, names in plan.files.items()
    }
    paths = [data_path(path, name) for path, names in to_delete.items() for name in names]
    if len(paths) < _FEW_FILES:
        for path in paths:
            context.meta.storage.delete(path)
    else:
        with ThreadPoolExecutor(LISTING_THREADS, thread_name_prefix="hudi-clean") as pool:
            for _ in pool.map(context.meta.storage.delete, paths):
                pass
    return to_delete


def _newer_files(plan: CleanPlan, instant: Instant, timeline: Timeline) -> Mapping[str, frozenset[str]]:
    """Names of files of writes unknown to the plan or not complete, by partition."""
    pending = {i.requested_time for i in timeline.pending() if i.action.is_write}

    def is_newer(name: str) -> bool:
        written = instant_of(name)
        return written is not None and (written >= instant.requested_time or written in pending)

    return {path: frozenset(filter(is_newer, names)) for path, names in plan.files.items()}


def _newest_files(partitions: Iterable[str], context: ActionContext) -> Mapping[str, frozenset[str]]:
    """Names of the files of the newest slices, by partition."""
    view = FileSystemView.load(context.meta, partitions=partitions)
    return {
        path: frozenset(
            name
            for file_slice in view.slices(path)
            for name in (
                *([file_slice.base_file.name] if file_slice.base_file is not None else []),
                *(log.name for log in file_slice.log_files),
            )
        )
        for path in view.partitions()
    }


def _remove_partitions(partitions: Sequence[str], context: ActionContext) -> tuple[str, ...]:
    """Remove folders without data from the table, unless a write is pending, which may be about to use one.

    A write that begins later, under the same lock, finds no partition metadata and writes it again.
    """
    if any(i.action.is_write for i in context.meta.timeline.pending()):
        return ()
    storage, removed = context.meta.storage, []
    for path in partitions:
        entries = storage.list(path)
        if path and all(not e.is_dir and (is_partition_metadata(e.name) or e.name.endswith(".crc")) for e in entries):
            # The metadata first: a crash then leaves a folder that is not a partition.
            for entry in entries:
                storage.delete(entry.path)
            storage.delete_tree(path)
            removed.append(path)
    return tuple(removed)


def _metadata(
    instant: Instant,
    plan: CleanPlan,
    deleted: Mapping[str, tuple[str, ...]],
    removed: tuple[str, ...],
    taken_ms: int,
    extra_metadata: Mapping[str, str],
) -> CleanMetadata:
    return CleanMetadata(
        start_time=instant.requested_time,
        time_taken_ms=taken_ms,
        earliest=plan.earliest_time,
        last_commit=plan.last_commit,
        partitions={path: CleanedPartition(plan.policy, names, (), path in removed) for path, names in deleted.items()},
        extra_metadata=extra_metadata,
    )
