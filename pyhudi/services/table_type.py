"""Changes the type of a table in place: copy-on-write to merge-on-read, and back.

    to merge-on-read    the property hoodie.table.type, below version 8 also the payload class; files stay as they are
    to copy-on-write    failed writes undone, waiting plans run, every file group with log files compacted; then the
                        property

Apache Hudi sees only commits and replace commits of a copy-on-write table, so its readers would miss base files that
active delta commits have written. The compaction takes these file groups, too.
Source: docs/formats/table-config.md, "Keys"; docs/formats/file-names.md, "File groups and slices".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyhudi.actions.action import ActionContext
from pyhudi.actions.clustering_updates import groups_in_pending_plans
from pyhudi.actions.undo.rollback import roll_back_failed_writes
from pyhudi.errors import ConfigError, UnsupportedTable, WriteConflict
from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import FileSlice
from pyhudi.model.instant import ActionKind
from pyhudi.model.new_table import merging_of_version_6_logs
from pyhudi.model.plans import CompactionPlan
from pyhudi.result import Result
from pyhudi.services.compact.compaction import COMPACTION, LOG_COMPACTION, plan_compaction
from pyhudi.services.planned import call, pending_plans, pending_writes, run_waiting
from pyhudi.timeline.table_properties import update_table_config
from pyhudi.view.file_system_view import FileSystemView
from pyhudi.view.pending_plans import operation_of

__all__ = ["TypeChange", "change_type"]

_TYPE = "hoodie.table.type"
_TYPES = {"COPY_ON_WRITE": "COPY_ON_WRITE", "COW": "COPY_ON_WRITE", "MERGE_ON_READ": "MERGE_ON_READ",
          "MOR": "MERGE_ON_READ"}  # fmt: skip
_COMMITS = (ActionKind.COMMIT, ActionKind.REPLACECOMMIT)  # the actions that Apache Hudi reads in a copy-on-write table
_ATTEMPTS = 3  # to find no pending work; a writer may begin after each attempt


@dataclass(frozen=True, slots=True, repr=False)
class TypeChange(Result):
    """From type `source` to `target`. `rolled_back`: failed writes that were undone first; `compacted`: compactions
    that ran first. `file_groups`: how many they rewrote, or would (dry run).
    """

    table: str
    source: str
    target: str
    file_groups: int = 0
    rolled_back: tuple[str, ...] = ()
    compacted: tuple[str, ...] = ()
    dry_run: bool = False

    def __str__(self) -> str:
        if self.source == self.target:
            return f"{self.table} is {self.target} already"
        verb = "would become" if self.dry_run else "became"
        first = f", {self.file_groups:,} file groups compacted first" if self.file_groups else ""
        return f"{self.table}: {self.source} {verb} {self.target}{first}"


def change_type(context: ActionContext, to: str, *, dry_run: bool = False) -> TypeChange:
    """Give the table another type. No other process may write to it at the same time.

    Raises: ConfigError for an unknown type, WriteConflict while others write, UnsupportedTable when a pending
        clustering holds log files. After an error the table has its old type.
    """
    target = _TYPES.get(str(to).upper().replace("-", "_"))
    if target is None:
        raise ConfigError(f"A table is COPY_ON_WRITE or MERGE_ON_READ (cow, mor), found {to!r:.100}.")
    meta = context.meta
    change = TypeChange(meta.storage.root, meta.config.table_type, target, dry_run=dry_run)
    to_copy_on_write = target == "COPY_ON_WRITE" and meta.config.is_merge_on_read
    if dry_run or change.source == target:
        return replace(change, file_groups=len(_slices_to_rewrite(meta)) if to_copy_on_write else 0)
    for _ in range(_ATTEMPTS):
        change = _made_ready(context.reloaded(), change)
        with context.locked():
            now = context.reloaded()
            if not pending_writes(now) and not (to_copy_on_write and _slices_to_rewrite(now.meta)):
                update_table_config(now.meta.storage, {_TYPE: target, **_merging(now, target)}, clock=now.clock)
                return change
            if to_copy_on_write:
                _check_compactable(now.meta)
    raise WriteConflict(
        f"{meta.storage.root}: other writers interfered {_ATTEMPTS} times. The type of a table changes only "
        f"while no process writes to it: stop its writers, then call again."
    )


def _merging(context: ActionContext, target: str) -> dict[str, str]:
    """The merge properties of a merge-on-read table below version 8; in a copy-on-write table each write sets them."""
    config, options = context.meta.config, context.options
    if target != "MERGE_ON_READ" or config.format.stores_merging or config.payload_class or config.merge_strategy_id:
        return {}
    return merging_of_version_6_logs(options.payload_class, options.merge_mode)


def _made_ready(context: ActionContext, change: TypeChange) -> TypeChange:
    """Undo failed writes, run waiting plans and compact. Raises WriteConflict when writers are alive."""
    undone = roll_back_failed_writes(context)
    context = context.reloaded()
    alive = pending_writes(context)
    if alive:
        raise WriteConflict(
            f"{context.meta.storage.root}: {', '.join(alive[:3])} are being written. The type of a table changes only "
            f"while no process writes to it: stop its writers, then call again. Nothing was changed."
        )
    if not context.meta.config.is_merge_on_read:
        return replace(change, rolled_back=change.rolled_back + undone)
    logs = run_waiting(LOG_COMPACTION, pending_plans(LOG_COMPACTION, context), context)
    whole = replace(COMPACTION, planning=_whole_plan)
    trigger_free = replace(context.options, compaction=replace(context.options.compaction, trigger_is_given=False))
    ran = call(whole, replace(context.reloaded(), options=trigger_free))
    return replace(
        change,
        file_groups=change.file_groups + sum(run.file_slices for run in ran.runs),
        rolled_back=change.rolled_back + undone,
        compacted=(*change.compacted, *(run.instant_time for run in logs), *ran.instant_times),
    )


def _whole_plan(context: ActionContext) -> CompactionPlan:
    """The plan of all slices that readers of a copy-on-write table would not see whole."""
    checked = plan_compaction(context)  # raises for tables and log files that can't be compacted
    return replace(checked, operations=tuple(operation_of(one) for one in _slices_to_rewrite(context.meta)))


def _slices_to_rewrite(meta: MetaClient) -> tuple[FileSlice, ...]:
    """Newest slices with log files, or with a base file of an active delta commit."""
    deltas = {one.requested_time for one in meta.timeline.commits() if one.action not in _COMMITS}
    return tuple(one for one in FileSystemView.load(meta).all_slices() if one.log_files or one.base_instant in deltas)


def _check_compactable(meta: MetaClient) -> None:
    groups = groups_in_pending_plans(meta, ()).intersection(one.group for one in _slices_to_rewrite(meta))
    if groups:
        raise UnsupportedTable(
            f"{meta.storage.root}: {len(groups):,} file groups to compact are in the plan of a pending clustering. Run "
            f"or cancel the clustering first. The table has its old type."
        )
