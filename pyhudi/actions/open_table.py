"""All that happens to a table before it is changed: STEPS, one after the other.

They bring the metadata table up to date or remove it, undo dead writes and delete their files, and finish a restore. A
table service takes only the steps marked for it; it is not a writer, so it undoes no failed writes of others.

Source: docs/formats/writers.md, "Steps of a write", "Markers", "Heartbeats"; docs/formats/metadata-table.md,
"Building", "Is it up to date?".
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from pyhudi.actions.action import ActionContext
from pyhudi.actions.replacement import discard_replacement, finish_replacement
from pyhudi.actions.undo.damaged_plans import drop_damaged_plans
from pyhudi.actions.undo.restore import finish_restores
from pyhudi.actions.undo.rollback import clear_dead_indexing, roll_back_failed_writes
from pyhudi.completed import unnamed
from pyhudi.engine.base import Engine
from pyhudi.errors import CorruptFile, HudiError, MetadataTableDamaged
from pyhudi.filegroup.write.markers import delete_markers, sweep
from pyhudi.locks import LockProvider, open_lock
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.build import (
    MetadataTableRebuilt,
    add_partitions,
    build,
    finish_build,
    rebuild_table,
)
from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.listing import missing_instants
from pyhudi.metadata.partitions.registry import missing_partitions, partitions_of_options, unsupported_partitions
from pyhudi.metadata.removal import drop_partitions, remove_metadata_table
from pyhudi.metadata.staged_index import delete_staged_index
from pyhudi.metadata.table import MetadataTable, check_log_files, has_metadata_table
from pyhudi.model.filenames import (
    HEARTBEAT_FOLDER,
    INDEX_PIECES_FOLDER,
    REPLACEMENT_PREFIX,
    TEMPORARY_FOLDER,
    heartbeat_path,
)
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.metadata import REFUSE, MetadataOptions
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock
from pyhudi.storage.staged_table import StagedTable
from pyhudi.warnings import warn_caller

__all__ = ["STEPS", "MetadataTableRebuilt", "metadata_fault", "prepare", "table_lock"]

Opened: TypeAlias = tuple[ActionContext, tuple[str, ...]]  # the table after a step, and the instants that it undid


class Step(NamedTuple):
    """One step. `for_services`: table services take it, too."""

    take: Callable[[ActionContext], Opened]
    for_services: bool = False


def prepare(
    meta: MetaClient, engine: Engine, options: WriteOptions, clock: Clock, *, is_service: bool = False
) -> Opened:
    """The table, ready for a change, and the instants that were undone.

    Args:   is_service: only the steps for services are taken.
    Raises: WriteConflict when another process restores the table; MetadataTableDamaged, and errors of storage.
    """
    if isinstance(meta.storage, StagedTable) and meta.storage.is_complete:
        finish_replacement(meta.storage.storage, options.lock, clock)
        meta = meta.reload()
    context = ActionContext(meta, options, table_lock(options, meta.storage, clock), clock, engine)
    undone: list[str] = []
    with unnamed():
        for step in STEPS:
            if step.for_services or not is_service:
                context, times = step.take(context)
                undone += times
    return context, tuple(undone)


def table_lock(options: WriteOptions, storage: Storage, clock: Clock) -> LockProvider:
    """The table's lock as the options choose it, not yet taken. Raises ConfigError."""
    return open_lock(options.lock, storage, clock)


# ---- the steps


def settle_metadata_table(context: ActionContext) -> Opened:
    """Create, rebuild or remove the metadata table, as the options and the table's state require.

    This happens under the table's lock. A check without the lock comes first, so that most writes need not take it.
    """
    options = context.options
    if _is_settled(context.meta, options.metadata):
        return context, ()
    with context.locked():
        return replace(context, meta=_settled(context.meta.reload(), options.metadata)), ()


def drop_unreadable_plans(context: ActionContext) -> Opened:
    """For writers, where a power cut may have cut off files: undo pending instants whose plans can't be read."""
    return _reloaded(context, drop_damaged_plans(context))


def finish_dead_restores(context: ActionContext) -> Opened:
    """If a restore has died, finish it before anything else happens to the table."""
    return _reloaded(context, finish_restores(context))


def delete_orphaned_files(context: ActionContext) -> Opened:
    """For writers: delete markers, staged index files and heartbeats of instants that are complete or archived. Their
    writers died before deleting them, or a task outlived its write. Files that such a task has announced, and that the
    commit does not name, are deleted, too.

    New tables whose processes died before they could replace this one are deleted as well.

    The remaining leftovers are harmless, but would never be deleted: a rollback deletes only those of pending instants.
    Instants that began after the context was loaded are neither complete nor archived in it, so files of running
    writers are kept.
    """
    storage, timeline = context.meta.storage, context.meta.timeline
    completed = {instant.requested_time for instant in timeline.completed()}
    completed -= {instant.requested_time for instant in timeline.pending()}

    def is_over(instant_time: str) -> bool:
        return instant_time in completed or (timeline.first_time is not None and instant_time < timeline.first_time)

    for entry in storage.list(TEMPORARY_FOLDER):
        if entry.is_dir and is_over(entry.name):
            with suppress(CorruptFile):  # invalid markers don't say which files the tasks have made
                _delete_unnamed(entry.name, context.meta)
            delete_markers(storage, entry.name)
        if entry.name.startswith(REPLACEMENT_PREFIX) and context.is_dead(entry.name):
            discard_replacement(storage, entry.name)
    on_timeline = {instant.requested_time for instant in timeline}
    for entry in storage.list(INDEX_PIECES_FOLDER):
        # Apache Hudi does not know staged files, and may have undone the instant: it is gone, but later ones exist.
        was_undone = entry.name not in on_timeline and entry.name < (timeline.latest_time or "")
        if entry.is_dir and (is_over(entry.name) or was_undone):
            delete_staged_index(storage, entry.name)
    for entry in storage.list(HEARTBEAT_FOLDER):
        # A heartbeat starts before its instant exists: a writer that died in between left nothing else.
        if is_over(entry.name) or (entry.name not in on_timeline and context.is_dead(entry.name)):
            storage.delete(heartbeat_path(entry.name))
    return context, ()


def _delete_unnamed(instant_time: str, meta: MetaClient) -> None:
    """Delete the files that tasks of a completed write have announced, and that its commit does not name."""
    for instant in meta.timeline.commits():
        if instant.requested_time == instant_time:
            stats = meta.commits.metadata(instant).stats()
            sweep(meta.storage, instant_time, [path for stat in stats for path in stat.paths])


def clear_abandoned_index_builds(context: ActionContext) -> Opened:
    """For writers: delete plans of indexes whose builders died, if the index is built or was never listed."""
    context, _ = _reloaded(context, clear_dead_indexing(context))
    return context, ()


def undo_failed_writes(context: ActionContext) -> Opened:
    """For writers: undo pending writes of dead writers, depending on the policy for failed writes."""
    return _reloaded(context, roll_back_failed_writes(context))


def _reloaded(context: ActionContext, times: tuple[str, ...]) -> Opened:
    """The table as it is after instants were undone."""
    return (context.reloaded() if times else context), times


STEPS = (
    Step(settle_metadata_table, for_services=True),
    Step(drop_unreadable_plans),
    Step(finish_dead_restores, for_services=True),
    Step(delete_orphaned_files),
    Step(clear_abandoned_index_builds),
    Step(undo_failed_writes),
)


# ---- the metadata table


def _settled(meta: MetaClient, options: MetadataOptions) -> MetaClient:
    """The table, ready for a write: with an up-to-date metadata table, or without one.

    Hold the table's lock. Raises: MetadataTableDamaged when it is not up to date and the options say to refuse.
    """
    to_build = meta.config.metadata_to_build
    if not has_metadata_table(meta) and not to_build:
        return build(meta, partitions_of_options(meta.config, options), options) if options.enable else meta
    if options.enable is False:
        remove_metadata_table(meta, why="hoodie.metadata.enable=false was given.")
        return meta.reload()
    if to_build and not set(to_build) <= set(meta.config.metadata_partitions):
        return rebuild_table(meta, options)  # a process died while building it
    if to_build:
        meta = finish_build(meta)
    unsupported = unsupported_partitions(meta)
    for name, why in unsupported.items():
        drop_partitions(meta, (name,), why)
        meta = meta.reload()
    fault = metadata_fault(meta)
    meta = meta if fault is None else _rebuild(meta, fault, options)
    return add_partitions(meta, missing_partitions(meta, options), options)


def _is_settled(meta: MetaClient, options: MetadataOptions) -> bool:
    """True if a write may begin on the table as it is. Most writes check this without taking the lock."""
    if meta.config.metadata_to_build:
        return False
    if not has_metadata_table(meta):
        return not options.enable
    if options.enable is False or unsupported_partitions(meta) or missing_partitions(meta, options):
        return False
    return metadata_fault(meta) is None


def metadata_fault(meta: MetaClient) -> HudiError | None:
    """The reason why the metadata table must not be updated from its current state; None if it may be."""
    try:
        table = MetadataTable.open(meta)
        if table is None:
            return MetadataTableDamaged(
                f"{meta.storage.root}: there is a metadata table without the partition 'files'."
            )
        table.load_slices(table.partitions)
        for partition in table.partitions:
            check_log_files(table, partition)
        read_index_definitions(meta.storage)  # a crash may have left half of them
        missing = missing_instants(table)
    except HudiError as error:
        return error
    if not missing:
        return None
    return MetadataTableDamaged(
        f"{meta.storage.root}: the metadata table lacks the instant {missing[0]}: another writer did not keep it up."
    )


def _rebuild(meta: MetaClient, fault: HudiError, options: MetadataOptions) -> MetaClient:
    partitions = (*meta.config.metadata_partitions, *meta.config.metadata_partitions_inflight)
    if partitions and options.if_stale == REFUSE:
        raise MetadataTableDamaged(
            f"{fault} Nothing was written, as hoodie.pyhudi.metadata.stale=refuse says; with `rebuild` a write "
            f"rebuilds it."
        ) from fault
    if partitions:
        warn_caller(f"{fault} It was rebuilt before this write.", MetadataTableRebuilt)
        return rebuild_table(meta, options)
    remove_metadata_table(meta)
    meta = meta.reload()
    return build(meta, partitions_of_options(meta.config, options), options) if options.enable else meta
