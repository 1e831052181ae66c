"""What an instant changes, written to the metadata table before that instant completes: one step after the other.

    step           only when                                  what it leaves
    settle         something is undone                        no plan that names files which are about to go
    judge          something is undone                        which of it can't be taken out any more, and from where
    start_over     a restore, and that is so of `files`       a new metadata table; no step follows
    take_back      there are delta commits to take out        none of what is undone, nor of a dead attempt at this
    stop           something is undone, and nothing is left   no step follows: the metadata table is as it should be
    serve          nothing is undone                          cleaned and compacted, if that is due
    rebuild        partitions can't be taken back             these, built of the table as it is
    update         always                                     the records for all others, in memory
    complete       always                                     a delta commit of the instant's time

The steps are a tuple, each one a function of what the steps before it have left. A death between two of them leaves a
metadata table that readers use as it was, since they leave out what belongs to a pending instant; where it does not,
the table's properties say what the next write has to build. Hold the table's lock. The picture:
docs/metadata-table-life.md. Source: docs/formats/metadata-table.md, "Writing", "Taking back".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pyhudi.caller_warnings import warn_caller
from pyhudi.errors import CorruptFile, WriteConflict
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.build import MetadataTableRebuilt, build_anew, rebuild_partitions
from pyhudi.metadata.compaction import settle_pending_compactions
from pyhudi.metadata.delta_commit import write_delta_commit
from pyhudi.metadata.listing import missing_instants
from pyhudi.metadata.partitions.base import PartitionUpdate, TableCommit
from pyhudi.metadata.partitions.registry import PARTITIONS, is_supported
from pyhudi.metadata.schema import MetadataKind, kind_of
from pyhudi.metadata.services import drop_pending_log_compactions, run_services
from pyhudi.metadata.table import SOLO, MetadataTable
from pyhudi.metadata.undo import forget, is_built_of, is_compacted, is_log_compaction
from pyhudi.model.commit import TableChange
from pyhudi.model.filenames import data_path
from pyhudi.model.instant import INSTANT_TIME_DIGITS, ActionKind
from pyhudi.model.options.metadata import REFUSE

__all__ = ["STEPS", "Progress", "apply_commit"]

_FILES = MetadataKind.FILES.value.prefix


@dataclass(frozen=True, slots=True)
class Progress:
    """What the steps so far have left.

    `undone`: instants that `commit` takes out of the table. `merged`: those of them whose delta commits can't be taken
    out any more. `stale`: partitions that were built of what is undone. `rebuilt`: partitions that need no records.
    `updates`: records by partition. `is_over`: no step follows. `completed`: when the last instant of the metadata
    table completed, None where nothing had to be written.
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
        """Several instants are undone at once, which attempts that died may have begun with."""
        return self.commit.instant.action is ActionKind.RESTORE

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partitions that take what instants write: those that are built, and those that are being built."""
        building = self.table.data.config.metadata_partitions_inflight
        begun = (name for name in building if is_supported(name) and self.table.meta.storage.list(name))
        return (*self.table.partitions, *begun)


Step = Callable[[Progress], Progress]


def apply_commit(data: MetaClient, commit: TableCommit) -> str | None:
    """Write what an instant changed; when that completed. None when there is no metadata table, or nothing to write.

    A metadata table that is found damaged is built anew first, unless the options say to refuse.

    Args:   data: the table as it is now, the instant inflight.
    Raises: WriteConflict when the metadata table lacks a completed instant, which it had before: another writer did not
            keep it up. MetadataTableDamaged, CorruptFile.
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
        rebuilt = MetadataTable.open(build_anew(data, commit.options))
        assert rebuilt is not None
        warn_caller(f"{error} It was built anew during this write.", MetadataTableRebuilt)
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
            f"{table.data.storage.root}: another writer completed {missing[0]} meanwhile and did not keep the metadata "
            f"table up. Nothing of this write is visible; write again, which builds the metadata table anew."
        )


# ---- the steps -------------------------------------------------------------------------------------------------------


def settle(at: Progress) -> Progress:
    """When something is undone: compactions that wait name files that are about to go. From version 8 on they are taken
    off the timeline, below they are executed; log compactions that wait are dropped.

    A restore also undoes what an attempt at it that died has undone already.
    """
    undone = tuple(dict.fromkeys((*at.undone, *_undone_before(at.table)))) if at.is_restore else at.undone
    if not undone:
        return at
    return replace(at, undone=undone, table=drop_pending_log_compactions(settle_pending_compactions(at.table)))


def judge(at: Progress) -> Progress:
    """When something is undone: a delta commit of it can't be taken out any more when a compaction has merged it, and
    a partition that was built when an instant was complete has what that did in its base files.
    """
    table, undone = at.table, at.undone
    merged = tuple(one for one in undone if is_compacted(table, one) or is_built_of(table, _FILES, one))
    stale = frozenset(name for name in table.partitions for one in undone if is_built_of(table, name, one))
    return replace(at, merged=merged, stale=stale)


def start_over(at: Progress) -> Progress:
    """When a restore undoes what `files` can't be rid of: only the table itself, as it is now, says what is left. It is
    built anew, all partitions of it.

    A rollback undoes one instant, whose files it knows: `update` says of them that they are gone.
    """
    if not (at.merged and at.is_restore):
        return at
    table = MetadataTable.open(build_anew(at.table.data, at.commit.options))
    completed = None if table is None else max((i.completion_time or "" for i in table.meta.timeline), default=None)
    return replace(at, is_over=True, completed=completed)


def take_back(at: Progress) -> Progress:
    """When there are delta commits of what is undone, or of this instant, which an attempt at it has left that died."""
    times = (*at.undone, at.commit.instant.requested_time)
    taken_back = [forget(at.table, time) for time in times if time not in at.merged]
    return replace(at, table=at.table.reloaded()) if any(taken_back) else at


def stop(at: Progress) -> Progress:
    """When something is undone, all of it was taken back, and no file came in its place: there is nothing to write."""
    is_left = at.merged or at.stale or any(changed.written for changed in at.commit.change.partitions.values())
    return replace(at, is_over=True) if at.undone and not is_left else at


def serve(at: Progress) -> Progress:
    """When nothing is undone: compact and clean, if that is due. What is undone must stay apart until it is gone."""
    return at if at.undone else replace(at, table=run_services(at.table, at.commit.options))


def rebuild(at: Progress) -> Progress:
    """When what is undone can't be taken out of partitions: they are built anew, of the table as it is, without the
    files that this instant has deleted. `files` knows these, and stays.
    """
    names = tuple(name for name in at.partitions if name != _FILES and (at.merged or name in at.stale))
    if not names:
        return at
    changes = at.commit.change.partitions.items()
    deleted = frozenset(data_path(path, name) for path, changed in changes for name in changed.deleted)
    table = rebuild_partitions(replace(at.table, deleted=deleted), names, at.commit.options)
    return replace(at, rebuilt=names, table=table)


def update(at: Progress) -> Progress:
    """Always: the records that say what the instant changed, of all partitions but those that were built just now."""
    names = [name for name in at.partitions if name not in at.rebuilt]
    at.table.load_slices(names)
    return replace(at, updates={name: _update(at.table, name, at.commit) for name in names})


def complete(at: Progress) -> Progress:
    """Always: a delta commit, even without records, for it says that the metadata table knows of the instant."""
    completed = write_delta_commit(at.table, at.commit.instant.requested_time, at.updates)
    return replace(at, is_over=True, completed=completed)


STEPS: tuple[Step, ...] = (settle, judge, start_over, take_back, stop, serve, rebuild, update, complete)


def _update(table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
    kind = PARTITIONS[kind_of(partition)]
    if partition in table.partitions:
        return kind.update(table, partition, commit)
    try:
        return kind.update(table, partition, commit)
    except WriteConflict:
        # It began before the index did, so that its tasks did not report what this needs. Who builds the index knows
        # which instants were pending then, and reads the table when they are complete.
        return kind.update(table, partition, replace(commit, change=TableChange()))


def _undone_before(table: MetadataTable) -> tuple[str, ...]:
    """Instants that the metadata table has and the table does not: an attempt at a restore that died undid them."""
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
