"""Cleaning of the metadata table: slices that compactions have replaced, and that no running query may still read.

The last commits' slices stay, and two of each file group in any case: a query that began before a compaction goes on
undisturbed. It runs some delta commits after a compaction, once for each. Hold the data table's lock.
Source: docs/formats/metadata-table.md, "Compaction and cleaning"; docs/formats/table-services.md, "Cleaning plan".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyhudi.formats.timeline.clean_plans import encode_clean_plan
from pyhudi.metadata.delta_commit import completion_time_after
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import FileSlice
from pyhudi.model.filenames import data_path, instant_of
from pyhudi.model.instant import ActionKind, Instant, next_instant_time
from pyhudi.model.new_table import BY_COMPLETION
from pyhudi.model.plans import (
    KEEP_LATEST_COMMITS,
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    RetainedInstant,
)
from pyhudi.storage.paths import inside
from pyhudi.transaction.commit import commit_part
from pyhudi.transaction.instants import drop, request_at
from pyhudi.transaction.plans import start_again
from pyhudi.transaction.undo import delete_files
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["clean_if_due", "run_pending_cleans"]

_COMMITS_RETAINED = 20  # of the metadata table, as Hudi has it: two compactions, as often as they are by default
_SLICES_KEPT = 2  # of each file group: the newest, and the one that running queries may read
_AFTER_COMPACTION = 3  # delta commits after a compaction until the slices before it may be cleaned
_SUFFIX = "002"  # below version 8: behind the last delta commit's time


def clean_if_due(table: MetadataTable, delta_commits_max: int) -> MetadataTable:
    """Clean when a compaction since the last clean is some delta commits old; the table as it is then.

    Args:   delta_commits_max: so many bring on the next compaction.
    """
    commits = table.meta.timeline.commits().instants
    if len(commits) <= _COMMITS_RETAINED or not _is_due(table, commits, min(_AFTER_COMPACTION, delta_commits_max)):
        return table
    earliest = commits[-_COMMITS_RETAINED]
    view = FileSystemView.load(table.meta, partitions=table.partitions)
    files = {partition: tuple(_old_files(view, partition, earliest)) for partition in table.partitions}
    files = {partition: names for partition, names in files.items() if names}
    instant_time = _instant_time(table, commits)
    if not files or instant_time is None:
        return table
    kept = RetainedInstant(earliest.requested_time, earliest.action.value, earliest.state.name)
    plan = CleanPlan(KEEP_LATEST_COMMITS, kept, commits[-1].requested_time, files)
    body = encode_clean_plan(plan, lambda path: _absolute(table, path))
    return _run(table, request_at(instant_time, ActionKind.CLEAN, table.meta, body), plan)


def run_pending_cleans(table: MetadataTable) -> MetadataTable:
    """Finish cleans that died; the table as it is then. Raises CorruptFile."""
    for instant in table.meta.timeline.pending().of([ActionKind.CLEAN]):
        plan = table.meta.reader.clean_plan(instant)
        if plan is None:
            drop(instant, table.meta)
            table = table.reloaded()
        else:
            table = _run(table, instant, plan)
    return table


def _is_due(table: MetadataTable, commits: Sequence[Instant], wanted: int) -> bool:
    """Some delta commits after the last compaction, if no clean came after it."""
    compaction = max((i.requested_time for i in commits if i.action is ActionKind.COMMIT), default="")
    since = [i for i in commits if max(i.requested_time, i.completion_time or "") > compaction]
    deltas = sum(i.action is ActionKind.DELTACOMMIT for i in since)
    cleans = table.meta.timeline.of([ActionKind.CLEAN]).instants
    cleaned = max((i.requested_time for i in cleans), default="")
    return bool(compaction) and compaction > cleaned and deltas >= wanted


def _instant_time(table: MetadataTable, commits: Sequence[Instant]) -> str | None:
    taken = {i.requested_time for meta in (table.meta, table.data) for i in meta.timeline}
    if table.data.config.table_version < BY_COMPLETION:
        time = max(i.requested_time for i in commits if i.action is ActionKind.DELTACOMMIT) + _SUFFIX
        return None if time in taken else time
    time = completion_time_after(table, "")
    while time in taken:
        time = next_instant_time(time)
    return time


def _old_files(view: FileSystemView, partition: str, earliest: Instant) -> Iterator[str]:
    """Names of the files of slices that are older than the one that was the newest at `earliest`."""
    for group in view.groups.get(partition, ()):
        at = next((n for n, s in enumerate(group.slices) if s.base_instant <= earliest.requested_time), None)
        if at is not None:
            for old in group.slices[max(at + 1, _SLICES_KEPT) :]:
                yield from _names(old)


def _names(file_slice: FileSlice) -> Iterator[str]:
    if file_slice.base_file is not None:
        yield file_slice.base_file.name
    yield from (log.name for log in file_slice.log_files)


def _run(table: MetadataTable, instant: Instant, plan: CleanPlan) -> MetadataTable:
    instant = start_again(instant, table.meta)
    deleted = _delete(table, instant, plan)
    metadata = CleanMetadata(
        start_time=instant.requested_time,
        time_taken_ms=0,
        earliest=plan.earliest_time,
        last_commit=plan.last_commit,
        partitions={name: CleanedPartition(plan.policy, names) for name, names in deleted.items()},
    )
    time = completion_time_after(table, instant.requested_time)
    commit_part(instant, table.meta, metadata, time, written=())
    return table.reloaded()


def _delete(table: MetadataTable, instant: Instant, plan: CleanPlan) -> Mapping[str, tuple[str, ...]]:
    """Delete the files of a plan but those of the newest slices, and those that are newer than the plan: a plan that
    was found may name anything, and they were never its to delete. By partition what was deleted.
    """
    storage = table.meta.storage
    deleted = {}
    for partition, names in plan.files.items():
        inside(partition, storage.root)
        newest = FileSystemView.load(table.meta, partitions=(partition,)).slices(partition)
        kept = {name for file_slice in newest for name in _names(file_slice)}
        own = tuple(name for name in names if name not in kept and (instant_of(name) or "") < instant.requested_time)
        delete_files([data_path(partition, name) for name in own], storage)
        deleted[partition] = own
    return deleted


def _absolute(table: MetadataTable, path: str) -> str:
    """As Hudi writes it: absolute, without scheme on a local disk."""
    return table.meta.storage.full_path(path).removeprefix("file://").removeprefix("file:")
