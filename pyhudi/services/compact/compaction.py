"""Compaction and log compaction: log files are merged into base files, or log blocks into one log file.

`CompactionService` is the service behind both. Its plans name file slices whose log files are merged.

`COMPACTION` merges log files into base files. The strategies choose among the newest slices with log files whose file
groups are in no other pending plan. The trigger decides when, by delta commits and time. Below table version 8 no write
may be pending when a plan is made, because its log files would have the name of the old slice. From 8 on completion
times decide to which slice they belong.

`LOG_COMPACTION` merges the log blocks of a slice into one log file; base files stay.

A user runs either service with `services.planned.call`. At the end of a write, `compact_after_write` compacts, only
schedules, or compacts logs, depending on the write's options.
Source: docs/formats/table-services.md, "Compaction plan", "Log compaction plan"; docs/formats/writers.md,
"Table services and concurrent writers"; docs/formats/file-names.md, "File groups and slices"; docs/formats/log.md,
"Which blocks count"; docs/compatibility.md for when a write compacts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from pyhudi.actions.action import ActionContext
from pyhudi.actions.clustering_updates import groups_in_pending_plans
from pyhudi.engine.base import FanOutWork
from pyhudi.errors import UnsupportedTable, WriteConflict
from pyhudi.filegroup.read.log_blocks import BlockRules, blocks_to_merge
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.filegroup.rewrite.compact import CompactLogs, CompactSlices
from pyhudi.filegroup.write.append import LogOptions
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.formats.bootstrap import source_uri
from pyhudi.formats.log.reader import LogBlock
from pyhudi.formats.timeline.plans import encode_compaction_plan
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStatus
from pyhudi.model.file_group import FileSlice
from pyhudi.model.instant import COMPACTIONS, ActionKind, Instant, parse_instant_time
from pyhudi.model.plans import CompactionPlan, CompactionStrategyInfo
from pyhudi.model.timeline import Timeline
from pyhudi.services.compact.strategies import DeltaCommits, is_due, narrowed, ordered
from pyhudi.services.plan_files import check_logs, delete_files_of_run
from pyhudi.services.planned import Called, call, pending_plans, pending_writes, run_waiting, schedule_plan
from pyhudi.services.results import CompactionResult, CompactionRun
from pyhudi.view.committed_logs import with_committed_bytes
from pyhudi.view.file_system_view import FileSystemView
from pyhudi.view.pending_plans import operation_of, slices_of

__all__ = [
    "COMPACTION",
    "LOG_COMPACTION",
    "CompactionService",
    "check_merge_on_read",
    "compact_after_write",
    "compact_waiting",
    "compaction_is_due",
    "delta_commits",
]


@dataclass(frozen=True, slots=True)
class CompactionService:
    """One of the two services. `planning`: makes a plan for the context's table. `working`: makes the tasks' work from
    the way files are written, the way slices are read, and the number of the run.
    """

    kind: ActionKind
    operation: str
    planning: Callable[[ActionContext], CompactionPlan]
    working: Callable[[ActionContext, WriteSpec, SliceSpec, int], FanOutWork[FileSlice]]

    def wants(self, context: ActionContext) -> bool:
        """True if a plan is due: always, unless the call names a trigger."""
        if self.kind is ActionKind.LOGCOMPACTION or not context.options.compaction.trigger_is_given:
            return True
        return compaction_is_due(context)

    def plan(self, context: ActionContext) -> CompactionPlan | None:
        plan = self.planning(context)
        return plan if plan.operations else None

    def encode(self, plan: CompactionPlan, meta: MetaClient) -> bytes:
        sources = (source_uri(meta.storage, one.partition_path, one.data_file_name) for one in plan.operations)
        operations = zip(plan.operations, sources, strict=True)
        plan = replace(plan, operations=tuple(replace(one, bootstrap_file_path=uri) for one, uri in operations))
        return encode_compaction_plan(plan, meta.config.table_version)

    def read(self, instant: Instant, meta: MetaClient) -> CompactionPlan:
        return meta.reader.compaction_plan(instant)

    def is_own(self, instant: Instant, meta: MetaClient) -> bool:
        return instant.action is self.kind

    def check(self, instant: Instant, plan: CompactionPlan, meta: MetaClient, began: MetaClient | None = None) -> None:
        """Always pass: log files written since belong to the slice after the compaction."""

    def tasks(self, plan: CompactionPlan, context: ActionContext) -> Sequence[FileSlice]:
        slices = slices_of(plan.operations, context.meta)
        committed = with_committed_bytes(context.meta, slices, find_missing=False)
        return sorted(committed, key=lambda file_slice: file_slice.size_bytes, reverse=True)

    def work(
        self, plan: CompactionPlan, context: ActionContext, spec: WriteSpec, reading: SliceSpec, run: int
    ) -> FanOutWork[FileSlice]:
        return self.working(context, spec, reading, run)

    def delete_files(
        self, instant: Instant, plan: CompactionPlan, meta: MetaClient, *, keep: Iterable[str], by_listing: bool
    ) -> None:
        delete_files_of_run(instant, plan, meta, keep=keep, by_listing=by_listing)

    def finish(
        self, plan: CompactionPlan, instant: Instant, body: CommitMetadata, context: ActionContext
    ) -> CommitMetadata:
        return replace(body, compacted=True)

    def completed(self, instant: Instant, plan: CompactionPlan, context: ActionContext) -> None:
        """Do nothing: no work remains."""

    def failed(self, instant_time: str, error: WriteConflict, context: ActionContext) -> None:
        """Do nothing: a plan of this service can always be executed."""

    def report(
        self,
        completed: Instant,
        plan: CompactionPlan,
        statuses: Sequence[WriteStatus],
        seconds: Mapping[str, float],
    ) -> CompactionRun:
        assert completed.completion_time is not None
        return CompactionRun.of(completed.requested_time, completed.completion_time, plan.operations, statuses, seconds)

    def summarise(self, called: Called[CompactionPlan, CompactionRun]) -> CompactionResult:
        planned = () if called.plan is None else called.plan.operations
        return CompactionResult(called.table, self.operation, planned, called.scheduled, called.runs, called.waiting)


def plan_compaction(context: ActionContext) -> CompactionPlan:
    """The plan of a compaction of the table as it is now.

    Raises UnsupportedTable for a copy-on-write table, ConfigError for options of strategies, DamagedLog, and
    WriteConflict while a write is pending and the table version is below 8.
    """
    check_merge_on_read(context)
    _check_no_pending_writes(context)
    options = context.options.compaction
    view = FileSystemView.load(context.meta)
    pending_groups = groups_in_pending_plans(context.meta, (ActionKind.COMPACTION,))
    today = _now(context).date()
    operations = [
        operation_of(file_slice)
        for path in narrowed(view.partitions(), options, today)
        for file_slice in view.slices(path)
        if file_slice.log_files and file_slice.group not in pending_groups
    ]
    chosen = ordered(operations, options)
    check_logs((operation.group for operation in chosen), view, context)
    return CompactionPlan(chosen)


def _compaction_work(context: ActionContext, spec: WriteSpec, reading: SliceSpec, run: int) -> FanOutWork[FileSlice]:
    return CompactSlices(spec, reading, run, context.clock)


COMPACTION = CompactionService(ActionKind.COMPACTION, OperationType.COMPACT, plan_compaction, _compaction_work)


def check_merge_on_read(context: ActionContext) -> None:
    """Raise UnsupportedTable for tables without log files."""
    if not context.meta.config.is_merge_on_read:
        raise UnsupportedTable(
            f"{context.meta.storage.root}: a {context.meta.config.table_type} table has no log files to compact."
        )


def _check_no_pending_writes(context: ActionContext) -> None:
    """Raise WriteConflict when pending writes prevent a plan."""
    pending = () if context.meta.config.format.has_own_log_files else pending_writes(context)
    if pending:
        raise WriteConflict(
            f"{context.meta.storage.root}: tables below version 8 can't be compacted while "
            f"writes are pending: {', '.join(pending[:3])}. Wait for them; the next write undoes "
            f"those of dead writers."
        )


# ---- when ------------------------------------------------------------------------------------------------------------


def compaction_is_due(context: ActionContext) -> bool:
    """True if the trigger asks for a compaction of the table as it is now."""
    return is_due(delta_commits(context.meta.timeline, _now(context)), context.options.compaction)


def delta_commits(timeline: Timeline, now: datetime) -> DeltaCommits:
    """The numbers that triggers compare. `now`: aware, in the timeline's zone."""
    deltas = [i for i in timeline.completed() if i.action is ActionKind.DELTACOMMIT]
    compactions = [i.requested_time for i in timeline.completed() if i.action is ActionKind.COMMIT]
    requests = [*compactions, *(i.requested_time for i in timeline.pending() if i.action is ActionKind.COMPACTION)]
    since = max(compactions, default="")
    first = since or min((i.requested_time for i in deltas), default="")
    elapsed_s = (now - parse_instant_time(first, now.tzinfo)).total_seconds() if first else 0.0
    return DeltaCommits(
        since_compaction=sum(_is_after(i, since) for i in deltas),
        since_request=sum(_is_after(i, max(requests, default="")) for i in deltas),
        elapsed_s=elapsed_s,
    )


def _is_after(instant: Instant, compaction: str) -> bool:
    """True if a compaction left out the log files of a delta commit, which completed after the scheduling."""
    return max(instant.requested_time, instant.completion_time or "") > compaction


def _now(context: ActionContext) -> datetime:
    moment = datetime.fromtimestamp(context.clock.now_ms() / 1000, timezone.utc)
    return moment.astimezone(context.meta.config.timeline_zone)


_EXECUTOR = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"


def plan_log_compaction(context: ActionContext) -> CompactionPlan:
    """The plan of a log compaction of the table as it is now: slices with enough blocks.

    No write may be pending. The new block comes after those of earlier instants. If a write began before and completes
    after it, readers that don't know log compactions would treat the write as older than the merged blocks.
    Raises UnsupportedTable for a copy-on-write table, DamagedLog, WriteConflict while a write is pending.
    """
    check_merge_on_read(context)
    pending = pending_writes(context)
    if pending:
        raise WriteConflict(
            f"{context.meta.storage.root}: a log compaction can't be scheduled while writes are pending: "
            f"{', '.join(pending[:3])}. Wait for them; those of dead writers are undone by the next write."
        )
    meta, enough = context.meta, context.options.compaction.log_blocks_min
    view = FileSystemView.load(meta)
    pending_groups = groups_in_pending_plans(meta, COMPACTIONS)
    rules = BlockRules(meta.config.table_version, meta.timeline.is_visible)
    operations = [
        operation_of(file_slice)
        for file_slice in view.all_slices()
        if file_slice.log_files
        and file_slice.group not in pending_groups
        and _pays(blocks_to_merge(meta.storage, file_slice.log_files, rules), enough)
    ]
    check_logs((operation.group for operation in operations), view, context)
    return CompactionPlan(tuple(operations), CompactionStrategyInfo(_EXECUTOR), preserve_meta_columns=True)


def _pays(blocks: Sequence[LogBlock], enough: int) -> bool:
    """True for enough blocks of more than one instant. A merged block is not merged again alone."""
    return len(blocks) >= enough and len({block.instant_time for block in blocks}) > 1


def _log_compaction_work(
    context: ActionContext, spec: WriteSpec, reading: SliceSpec, run: int
) -> FanOutWork[FileSlice]:
    options = context.options
    logs = LogOptions(options.log_block_format, options.log_file_max_bytes, options.log_block_max_bytes)
    return CompactLogs(spec, reading, run, context.clock, logs)


LOG_COMPACTION = CompactionService(
    ActionKind.LOGCOMPACTION, OperationType.LOG_COMPACT, plan_log_compaction, _log_compaction_work
)


def compact_after_write(context: ActionContext) -> tuple[str, ...]:
    """After a complete write to a merge-on-read table: compact, only schedule, or compact logs, depending on its
    options. Returns the completed instants.
    """
    if not context.meta.config.is_merge_on_read:
        return ()
    return _compacted(context.reloaded()) if context.options.compaction.inline else _scheduled(context.reloaded())


def _compacted(context: ActionContext) -> tuple[str, ...]:
    runs = [*run_waiting(COMPACTION, pending_plans(COMPACTION, context), context)]
    if _may_plan(context) and compaction_is_due(context):
        scheduled = schedule_plan(COMPACTION, context)
        if scheduled is not None:
            runs += run_waiting(COMPACTION, scheduled[:1], context)
    if not runs and context.options.compaction.log_inline:
        runs += call(LOG_COMPACTION, context).runs
    return tuple(run.instant_time for run in runs)


def _scheduled(context: ActionContext) -> tuple[str, ...]:
    options = context.options.compaction
    if options.schedule_inline and _may_plan(context) and compaction_is_due(context):
        schedule_plan(COMPACTION, context)
    if options.log_inline:
        return call(LOG_COMPACTION, context).instant_times
    return ()


def _may_plan(context: ActionContext) -> bool:
    return context.meta.config.format.has_own_log_files or not pending_writes(context)


def compact_waiting(context: ActionContext) -> tuple[str, ...]:
    """Execute pending compactions, and plan none. Returns the completed instants."""
    runs = run_waiting(COMPACTION, pending_plans(COMPACTION, context), context)
    return tuple(run.instant_time for run in runs)
