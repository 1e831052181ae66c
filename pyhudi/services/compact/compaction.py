"""Compaction: log files are merged into base files.

Which slices: the newest ones with log files whose file groups no other pending plan works on, as the strategies choose.
When: the trigger looks at delta commits and time. Below table version 8 no write may be pending when a plan is made,
for its log files would carry the name of the old slice; from 8 on completion times part them.
Source: docs/formats/table-services.md, "Compaction plan"; docs/formats/writers.md,
"Table services and concurrent writers"; docs/formats/file-names.md, "File groups and slices".
"""

from __future__ import annotations

from datetime import datetime, timezone

from pyhudi.actions.action import ActionContext
from pyhudi.actions.clustering_updates import groups_in_pending_plans
from pyhudi.engine.base import FanOutWork
from pyhudi.errors import UnsupportedTable, WriteConflict
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.filegroup.rewrite.compact import CompactSlices
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.model.commit import OperationType
from pyhudi.model.file_group import FileSlice
from pyhudi.model.instant import ActionKind, Instant, parse_instant_time
from pyhudi.model.plans import CompactionPlan
from pyhudi.model.timeline import Timeline
from pyhudi.services.compact.service import CompactionService
from pyhudi.services.compact.strategies import DeltaCommits, is_due, narrowed, ordered
from pyhudi.services.damaged_logs import check_logs
from pyhudi.services.planned import pending_writes
from pyhudi.view.file_system_view import FileSystemView
from pyhudi.view.pending_plans import operation_of

__all__ = ["COMPACTION", "check_merge_on_read", "compaction_is_due", "delta_commits"]


def plan_compaction(context: ActionContext) -> CompactionPlan:
    """What a compaction of the table as it is now would do.

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
    """Raises UnsupportedTable for tables without log files."""
    if not context.meta.config.is_merge_on_read:
        raise UnsupportedTable(
            f"{context.meta.storage.root}: a {context.meta.config.table_type} table has no log files to compact."
        )


def _check_no_pending_writes(context: ActionContext) -> None:
    """Raises WriteConflict when a plan can't be made because of writes that are not complete."""
    pending = pending_writes(context) if context.meta.config.table_version < 8 else ()
    if pending:
        raise WriteConflict(
            f"{context.meta.storage.root}: tables below version 8 can't be compacted while "
            f"writes are pending: {', '.join(pending[:3])}. Wait for them; the next write undoes "
            f"those of dead writers."
        )


# ---- when ------------------------------------------------------------------------------------------------------------


def compaction_is_due(context: ActionContext) -> bool:
    """Does the trigger ask for a compaction of the table as it is now?"""
    return is_due(delta_commits(context.meta.timeline, _now(context)), context.options.compaction)


def delta_commits(timeline: Timeline, now: datetime) -> DeltaCommits:
    """What triggers look at. `now`: aware, in the timeline's zone."""
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
    """Were the log files of a delta commit left out of a compaction? Those that completed after it was scheduled."""
    return max(instant.requested_time, instant.completion_time or "") > compaction


def _now(context: ActionContext) -> datetime:
    moment = datetime.fromtimestamp(context.clock.now_ms() / 1000, timezone.utc)
    return moment.astimezone(context.meta.config.timeline_zone)
