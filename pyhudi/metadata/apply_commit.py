"""The steps that write an instant's changes to the metadata table before that instant completes.

    step           only when                                  result
    settle         something is undone                        no plan that names files about to be deleted
    judge          something is undone                        which instants can no longer be taken out, and from where
    start_over     a restore can't take back `files`          a new metadata table; no step follows
    take_back      there are delta commits to take out        no records of undone instants or of a dead attempt
    stop           something is undone, and nothing is left   no step follows: the metadata table is as it should be
    serve          nothing is undone                          cleaned and compacted, if that is due
    rebuild        partitions can't be taken back             these, rebuilt from the table as it is
    update         always                                     the records for all others, in memory
    complete       always                                     a delta commit of the instant's time

The steps are a tuple, each one a function of the `Progress` that the step before it returned. After a crash between two
steps, readers use the metadata table as it was: they ignore the records of a pending instant. Where that is not enough,
the table's properties list the partitions that the next write has to build. Hold the table's lock. The picture:
docs/metadata-table-life.md. Source: docs/formats/metadata-table.md, "Writing", "Taking back".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pyhudi.errors import CorruptFile, WriteConflict
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.build import MetadataTableRebuilt, rebuild_partitions, rebuild_table
from pyhudi.metadata.compaction import settle_pending_compactions
from pyhudi.metadata.delta_commit import write_delta_commit
from pyhudi.metadata.listing import listed_files, missing_instants
from pyhudi.metadata.partitions.base import PartitionUpdate, TableCommit
from pyhudi.metadata.partitions.registry import PARTITIONS, is_supported
from pyhudi.metadata.schema import MetadataKind, kind_of
from pyhudi.metadata.services import drop_pending_log_compactions, run_services
from pyhudi.metadata.table import SOLO, MetadataTable
from pyhudi.metadata.undo import is_built_of, is_compacted, is_log_compaction, roll_back
from pyhudi.model.commit import TableChange
from pyhudi.model.filenames import data_path
from pyhudi.model.instant import INSTANT_TIME_DIGITS, ActionKind
from pyhudi.model.options.metadata import REFUSE
from pyhudi.warnings import warn_caller

__all__ = ["STEPS", "Progress", "apply_commit"]

_FILES = MetadataKind.FILES.value.prefix


@dataclass(frozen=True, slots=True)
class Progress:
    """The state after the steps so far.

    `undone`: instants that `commit` takes out of the table. `merged`: the undone instants whose delta commits can no
    longer be taken out. `stale`: partitions that were built from undone instants. `rebuilt`: partitions that need no
    records.
    `updates`: records by partition. `is_over`: no step follows. `completed`: the completion time of the last instant
    of the metadata table, None if nothing had to be written.
    """

    table: MetadataTable
    commit: TableCommit
    undone: tuple[str, ...]
    merged: tuple[str, ...] = ()
    stale: frozenset[str] = frozenset()
    rebuilt: tuple[str, ...] = ()
    updates: Mapping[str, PartitionUpdate] = field(default_factory=dict)
    is_over: bool = False
    completed: str | None = None

    @property
    def is_restore(self) -> bool:
        """True if several instants are undone at once; a dead attempt may already have undone some of them."""
        return self.commit.instant.action is ActionKind.RESTORE

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partitions that instants write to: the built ones, and those being built."""
        building = self.table.data.config.metadata_partitions_inflight
        started = (name for name in building if is_supported(name) and self.table.meta.storage.list(name))
        return (*self.table.partitions, *started)


Step = Callable[[Progress], Progress]


def apply_commit(data: MetaClient, commit: TableCommit) -> str | None:
    """Write an instant's changes; return the completion time, None without a metadata table or without changes.

    A damaged metadata table is rebuilt first, unless the options say to refuse.

    Args:   data: the table as it is now, the instant inflight.
    Raises: WriteConflict when the metadata table lacks a completed instant that it had before: another writer did not
            update it. MetadataTableDamaged, CorruptFile.
    """
    table = MetadataTable.open(data)
    if table is None or commit.instant.action in (ActionKind.SAVEPOINT, ActionKind.INDEXING):
        return None
    _check_up_to_date(table)
    try:
        return _after_all_steps(table, commit)
    except CorruptFile as error:
        if commit.options.if_stale == REFUSE:
            raise
        rebuilt = MetadataTable.open(rebuild_table(data, commit.options))
        assert rebuilt is not None
        warn_caller(f"{error} It was rebuilt during this write.", MetadataTableRebuilt)
        return _after_all_steps(rebuilt, commit)


def _after_all_steps(table: MetadataTable, commit: TableCommit) -> str | None:
    progress = Progress(table, commit, commit.change.undone)
    for step in STEPS:
        progress = step(progress)
        if progress.is_over:
            break
    return progress.completed


def _check_up_to_date(table: MetadataTable) -> None:
    missing = missing_instants(table)
    if missing:
        raise WriteConflict(
            f"{table.data.storage.root}: another writer completed {missing[0]} during this write and did not update "
            f"the metadata table. Nothing of this write is visible; write again, which rebuilds the metadata table."
        )


# ---- the steps -------------------------------------------------------------------------------------------------------


def settle(at: Progress) -> Progress:
    """Settle pending compactions if something is undone: they name files that are about to be deleted. From version 8
    on they are taken off the timeline; below, they are executed. Pending log compactions are dropped.

    A restore also undoes the instants that a dead attempt at it has already undone.
    """
    undone = tuple(dict.fromkeys((*at.undone, *_undone_before(at.table)))) if at.is_restore else at.undone
    if not undone:
        return at
    return replace(at, undone=undone, table=drop_pending_log_compactions(settle_pending_compactions(at.table)))


def judge(at: Progress) -> Progress:
    """Find the instants that can't be taken out, if something is undone. A delta commit can't be taken out once a
    compaction has merged it. A partition built after an instant completed has that instant's changes in its base files.
    """
    table, undone = at.table, at.undone
    merged = tuple(one for one in undone if is_compacted(table, one) or is_built_of(table, _FILES, one))
    stale = frozenset(name for name in table.partitions for one in undone if is_built_of(table, name, one))
    return replace(at, merged=merged, stale=stale)


def start_over(at: Progress) -> Progress:
    """Rebuild all partitions if a restore undoes an instant that can't be taken out of `files`: only the table itself
    shows which files remain.

    A rollback undoes one instant and knows its files: `update` records their deletion.
    """
    if not (at.merged and at.is_restore):
        return at
    table = MetadataTable.open(rebuild_table(at.table.data, at.commit.options))
    completed = None if table is None else max((i.completion_time or "" for i in table.meta.timeline), default=None)
    return replace(at, is_over=True, completed=completed)


def take_back(at: Progress) -> Progress:
    """Take out the delta commits of undone instants and of dead attempts at this instant, if there are any."""
    times = (*at.undone, at.commit.instant.requested_time)
    rolled_back = [roll_back(at.table, time) for time in times if time not in at.merged]
    return replace(at, table=at.table.reloaded()) if any(rolled_back) else at


def stop(at: Progress) -> Progress:
    """Stop if something is undone, all of it was taken back, and no file replaces it: there is nothing to write.

    Below version 8 a rollback lists log files of the slice it writes to. Undoing that slice's instant deletes them.
    """
    if not at.undone:
        return at
    is_left = at.merged or at.stale or any(changed.written for changed in at.commit.change.partitions.values())
    return at if is_left or _lists_deleted_files(at) else replace(at, is_over=True)


def serve(at: Progress) -> Progress:
    """Compact and clean if due, unless something is undone: undone instants must not be merged before their removal."""
    return at if at.undone else replace(at, table=run_services(at.table, at.commit.options))


def rebuild(at: Progress) -> Progress:
    """Rebuild the partitions that undone instants can't be taken out of, from the table as it is, without the files
    that this instant has deleted. `files` is kept: its update records the deletions.
    """
    names = tuple(name for name in at.partitions if name != _FILES and (at.merged or name in at.stale))
    if not names:
        return at
    changes = at.commit.change.partitions.items()
    deleted = frozenset(data_path(path, name) for path, changed in changes for name in changed.deleted)
    table = rebuild_partitions(replace(at.table, deleted=deleted), names, at.commit.options)
    return replace(at, rebuilt=names, table=table)


def update(at: Progress) -> Progress:
    """Make the records of the instant's changes, for all partitions except those that were just rebuilt."""
    names = [name for name in at.partitions if name not in at.rebuilt]
    at.table.load_slices(names)
    return replace(at, updates={name: _update(at.table, name, at.commit) for name in names})


def complete(at: Progress) -> Progress:
    """Write a delta commit, even without records: it marks the instant as known to the metadata table."""
    completed = write_delta_commit(at.table, at.commit.instant.requested_time, at.updates)
    return replace(at, is_over=True, completed=completed)


STEPS: tuple[Step, ...] = (settle, judge, start_over, take_back, stop, serve, rebuild, update, complete)


def _lists_deleted_files(at: Progress) -> bool:
    deleted = {path: changed.deleted for path, changed in at.commit.change.partitions.items() if changed.deleted}
    listed = listed_files(at.table, list(deleted)) if deleted else {}
    return any(file.name in deleted[path] for path, files in listed.items() for file in files)


def _update(table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
    kind = PARTITIONS[kind_of(partition)]
    if partition in table.partitions:
        return kind.update(table, partition, commit)
    try:
        return kind.update(table, partition, commit)
    except WriteConflict:
        # The instant began before the index build, so its tasks did not report the keys. The builder of the index
        # knows which instants were pending then, and reads the table when they are complete.
        return kind.update(table, partition, replace(commit, change=TableChange()))


def _undone_before(table: MetadataTable) -> tuple[str, ...]:
    """Instants that the metadata table has and the table does not: a dead attempt at a restore undid them."""
    since = table.data.timeline.active_since
    active = {i.requested_time for i in table.data.timeline}
    return tuple(
        i.requested_time
        for i in table.meta.timeline
        if i.action is ActionKind.DELTACOMMIT
        and len(i.requested_time) == INSTANT_TIME_DIGITS
        and not i.requested_time.startswith(SOLO)
        and i.requested_time not in active
        and since is not None
        and i.requested_time > since
        and not is_log_compaction(table, i)
    )
