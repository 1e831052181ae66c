"""`VersionStep`: one upgrade or downgrade between two table versions, and the preparation of a table for it.

A step has three parts:

    properties   which keys of hoodie.properties change: a pure function, called for all steps before anything changes
    convert      files that only readers of the target version use; no process reads them yet
    (the properties are replaced: from now on the table has the target version)
    tidy         files that only readers of the source version used

Every part may be repeated, so a dead step is simply repeated.

`rollback_and_compact` prepares the table: it rolls back pending writes, runs pending plans and compacts log files.
Versions name and merge log files differently, so Apache Hudi, too, compacts them before a step.
Source: docs/formats/table-config.md, "Steps between versions".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pyhudi.actions.action import ActionContext
from pyhudi.actions.clustering_updates import groups_in_pending_plans
from pyhudi.actions.undo.rollback import roll_back_failed_writes
from pyhudi.errors import UnsupportedTable, WriteConflict
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.services import CompactionOptions
from pyhudi.model.table_config import TableConfig
from pyhudi.services.compact.compaction import COMPACTION, LOG_COMPACTION
from pyhudi.services.planned import call, pending_plans, pending_writes, run_waiting
from pyhudi.view.file_system_view import FileSystemView

__all__ = [
    "Converted",
    "PropertyChange",
    "RolledBackAndCompacted",
    "VersionStep",
    "is_ready_for_step",
    "rollback_and_compact",
]


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """Keys of `hoodie.properties` to set, and to remove."""

    set: Mapping[str, str] = field(default_factory=dict)
    remove: tuple[str, ...] = ()

    def applied(self, config: TableConfig) -> TableConfig:
        """The config with the change."""
        return config.with_changes(self.set, self.remove)


@dataclass(frozen=True, slots=True)
class Converted:
    """Numbers of rewritten instants on the active timeline and in the archive."""

    instants: int = 0
    archived: int = 0


def _no_change(config: TableConfig, options: WriteOptions) -> PropertyChange:
    return PropertyChange()


def _nothing(context: ActionContext, target: TableConfig) -> Converted:
    return Converted()


def _tidy_nothing(context: ActionContext) -> None:
    return None


@dataclass(frozen=True, slots=True)
class VersionStep:
    """One step.

    `properties` raises UnsupportedTable for a table that the target version can't hold; the caller sets version and
    timeline layout. `check` may read the table and raises, too. `rolls_back_and_compacts`: failed writes are undone and
    log files compacted first. `convert` is called under the table's lock with the present table and its future config,
    `tidy` with the converted table (also when an earlier call took the step).
    """

    source: int
    target: int
    properties: Callable[[TableConfig, WriteOptions], PropertyChange] = _no_change
    check: Callable[[ActionContext], None] = lambda context: None
    rolls_back_and_compacts: bool = False
    convert: Callable[[ActionContext, TableConfig], Converted] = _nothing
    tidy: Callable[[ActionContext], None] = _tidy_nothing


_UNBOUNDED = "org.apache.hudi.table.action.compact.strategy.UnBoundedCompactionStrategy"


@dataclass(frozen=True, slots=True)
class RolledBackAndCompacted:
    """Undone instants, and instants of executed compactions."""

    rolled_back: tuple[str, ...] = ()
    compacted: tuple[str, ...] = ()


def rollback_and_compact(context: ActionContext) -> RolledBackAndCompacted:
    """Roll back failed writes, run pending plans, compact all log files.

    Raises: WriteConflict when writers are alive, UnsupportedTable when a pending clustering prevents the compaction of
            log files.
    """
    undone = roll_back_failed_writes(context)
    context = context.reloaded()
    alive = pending_writes(context)
    if alive:
        raise WriteConflict(
            f"{context.meta.storage.root}: {', '.join(alive[:3])} are being written. The version of a table changes "
            f"only while no process writes to it: stop its writers, then call again. If they are dead, wait until "
            f"their heartbeats have expired. Nothing was changed."
        )
    if not context.meta.config.is_merge_on_read:
        return RolledBackAndCompacted(undone)
    logs = run_waiting(LOG_COMPACTION, pending_plans(LOG_COMPACTION, context), context)
    compacted = [run.instant_time for run in logs]
    options = replace(context.options, compaction=CompactionOptions(strategies=(_UNBOUNDED,)))
    context = replace(context.reloaded(), options=options)
    compacted += call(COMPACTION, context).instant_times
    return RolledBackAndCompacted(undone, tuple(compacted))


def is_ready_for_step(context: ActionContext) -> bool:
    """True if the table has no pending writes and no log files. Repeated under the lock. Raises UnsupportedTable."""
    meta = context.meta
    if pending_writes(context) or any(pending_plans(s, context) for s in (COMPACTION, LOG_COMPACTION)):
        return False
    if not meta.config.is_merge_on_read:
        return True
    with_logs = [s.group for s in FileSystemView.load(meta).all_slices() if s.log_files]
    groups = groups_in_pending_plans(meta, ()).intersection(with_logs)
    if groups:
        raise UnsupportedTable(
            f"{meta.storage.root}: {len(groups):,} file groups with log files are in the plan of a pending clustering, "
            f"so their log files can't be compacted before the version changes. Run or cancel the clustering first. "
            f"Nothing was changed."
        )
    return not with_logs
