"""Log compaction: the log blocks of a slice are merged into one log file; base files stay.

Source: docs/formats/table-services.md, "Log compaction plan"; docs/formats/log.md, "Which blocks count".
"""

from __future__ import annotations

from collections.abc import Sequence

from pyhudi.actions.action import ActionContext
from pyhudi.actions.clustering_updates import groups_in_pending_plans
from pyhudi.engine.base import FanOutWork
from pyhudi.errors import WriteConflict
from pyhudi.filegroup.read.log_blocks import BlockRules, blocks_to_merge
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.filegroup.rewrite.compact import CompactLogs
from pyhudi.filegroup.write.append import LogOptions
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.formats.log.reader import LogBlock
from pyhudi.model.commit import OperationType
from pyhudi.model.file_group import FileSlice
from pyhudi.model.instant import COMPACTIONS, ActionKind
from pyhudi.model.plans import CompactionPlan, CompactionStrategyInfo
from pyhudi.services.compact.compaction import check_merge_on_read
from pyhudi.services.compact.service import CompactionService
from pyhudi.services.damaged_logs import check_logs
from pyhudi.services.planned import pending_writes
from pyhudi.view.file_system_view import FileSystemView
from pyhudi.view.pending_plans import operation_of

__all__ = ["LOG_COMPACTION"]

_EXECUTOR = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"


def plan_log_compaction(context: ActionContext) -> CompactionPlan:
    """What a log compaction of the table as it is now would do: slices with blocks enough.

    No write may be pending: the new block comes after those of earlier instants, and a write that began before and
    completes after it would be taken for older than what it merges, by readers that do not know of log compactions.
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
    """Enough blocks, of more than one instant: what one log compaction has merged is not merged again alone."""
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
