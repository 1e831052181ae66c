"""Compaction of the metadata table: its log files are merged into base files, so that reading it stays fast.

    <T>.compaction.requested    the plan: each slice that has log files
    <T>.compaction.inflight     empty
    <partition>/<base file>     one for each file group, even without records
    <T> completed               a commit

It runs while an instant of the table completes, before that instant's own delta commit. The lock is held then, and a
crash loses nothing: the next compaction executes the pending plan. Merged records can never be taken back. From version
8 on, a compaction merges the log files that completed before its instant time. The table's pending instants that the
metadata table already has belong to dead processes, so the compaction's time is the millisecond before the first of
them. Below version 8, log files belong to a slice by their names, so the compaction waits while the table has a pending
instant that is not later than the last delta commit here. Hold the data table's lock.
Source: docs/formats/metadata-table.md, "Compaction and cleaning", "Timeline".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa

from pyhudi.errors import MetadataTableDamaged, TableError
from pyhudi.formats.damage import as_corrupt
from pyhudi.formats.timeline.plans import encode_compaction_plan
from pyhudi.metadata.delta_commit import complete_delta_commit, completion_time_after
from pyhudi.metadata.group_files import GroupFiles, patch_of
from pyhudi.metadata.group_reader import GroupReader
from pyhudi.metadata.merging import merged_records
from pyhudi.metadata.schema import kind_of, of_schema, record_fields
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.commit import OperationType, WriteStat
from pyhudi.model.file_group import FileSlice
from pyhudi.model.filenames import BaseFileName
from pyhudi.model.instant import (
    ActionKind,
    Instant,
    format_instant_time,
    next_instant_time,
    parse_instant_time,
)
from pyhudi.model.plans import CompactionPlan
from pyhudi.storage.base import Storage
from pyhudi.transaction.instants import drop, request_at, start
from pyhudi.transaction.plans import revert_to_plan
from pyhudi.view.committed_logs import with_committed_bytes
from pyhudi.view.pending_plans import operation_of, slices_of

__all__ = [
    "compact_archived",
    "compact_if_due",
    "run_pending_compactions",
    "service_time",
    "settle_pending_compactions",
]

_SUFFIX = "001"  # below version 8: behind the last delta commit's time


def compact_if_due(table: MetadataTable, delta_commits_max: int) -> MetadataTable:
    """Compact after this many delta commits since the last compaction; return the table as it is then.

    Raises: MetadataTableDamaged, CorruptFile.
    """
    if _delta_commits(table) < delta_commits_max:
        return table
    instant_time = _instant_time(table)
    if instant_time is None:
        return table
    slices = [s for partition in table.partitions for s in _compactable(table, partition, instant_time)]
    return _scheduled_and_run(table, instant_time, slices) if slices else table


def compact_archived(table: MetadataTable) -> MetadataTable:
    """Compact the file groups with base files of archived instants, before an instant that begins with 14 zeros.

    From version 8 on such an instant builds a partition. It then comes first on the timeline, and readers would treat
    instants archived after it as uncommitted.
    Raises: MetadataTableDamaged when they can't be compacted now.
    """
    active = {i.requested_time for i in table.meta.timeline}
    if not table.data.config.format.orders_by_completion or not active:
        return table
    archived = [s for name in table.partitions for s in table.slices(name) if s.base_instant not in active]
    if not archived:
        return table
    instant_time = _instant_time(table)
    if instant_time is None:
        raise MetadataTableDamaged(
            f"{table.meta.storage.root}: file groups of archived instants can't be compacted now, so no partition can "
            f"be built next to them."
        )
    return _scheduled_and_run(table, instant_time, archived)


def _scheduled_and_run(table: MetadataTable, instant_time: str, slices: Sequence[FileSlice]) -> MetadataTable:
    plan = CompactionPlan(tuple(operation_of(s) for s in slices))
    body = encode_compaction_plan(plan, table.data.config.table_version)
    return _run(table, request_at(instant_time, ActionKind.COMPACTION, table.meta, body), slices)


def run_pending_compactions(table: MetadataTable) -> MetadataTable:
    """Execute the pending plans, and those whose processes died; return the table as it is then.

    From version 8 on, a plan that names deleted files is dropped: the files were taken back.
    Raises: MetadataTableDamaged, CorruptFile.
    """
    for instant in table.meta.timeline.pending().of([ActionKind.COMPACTION]):
        plan = table.meta.reader.compaction_plan(instant)
        requested = _taken_back(table, instant, plan)
        try:
            slices = with_committed_bytes(table.meta, slices_of(plan.operations, table.meta), find_missing=False)
        except TableError as error:
            if not table.data.config.format.orders_by_completion:
                raise MetadataTableDamaged(f"{table.meta.storage.root}: {error}") from error
            table = _dropped(table, requested)
            continue
        table = _run(table, requested, slices)
    return table


def settle_pending_compactions(table: MetadataTable) -> MetadataTable:
    """Settle pending plans before the files that they name are deleted; return the table as it is then.

    From version 8 on a plan starts no new slice, so it is taken off the timeline. Below, new log files belong to the
    next slice, so the plan is executed.
    """
    if not table.data.config.format.orders_by_completion:
        return run_pending_compactions(table)
    for instant in table.meta.timeline.pending().of([ActionKind.COMPACTION]):
        plan = table.meta.reader.compaction_plan(instant)
        table = _dropped(table, _taken_back(table, instant, plan))
    return table


# ---- when, and what --------------------------------------------------------------------------------------------------


def _delta_commits(table: MetadataTable) -> int:
    """Delta commits since the last compaction, those that built partitions included."""
    since = _last_compaction(table)
    by_completion = table.data.config.format.orders_by_completion
    deltas = (i for i in table.meta.timeline.completed() if i.action is ActionKind.DELTACOMMIT)
    when = (max(i.requested_time, i.completion_time or "") if by_completion else i.requested_time for i in deltas)
    return sum(time > since for time in when)


def _last_compaction(table: MetadataTable) -> str:
    completed = table.meta.timeline.completed().of([ActionKind.COMMIT])
    return max((i.requested_time for i in completed), default="")


def _instant_time(table: MetadataTable) -> str | None:
    """The instant time of a compaction that starts now; None if none may start."""
    pending = {i.requested_time for i in table.data.timeline.pending()}
    deltas = [i for i in table.meta.timeline.completed() if i.action is ActionKind.DELTACOMMIT]
    if not table.data.config.format.orders_by_completion:
        last = max(i.requested_time for i in deltas)
        return None if any(one <= last for one in pending) else service_time(table, _SUFFIX)
    dead = [i.requested_time for i in deltas if i.requested_time in pending]
    if not dead:
        return service_time(table, _SUFFIX)
    zone = table.data.config.timeline_zone
    time = format_instant_time(parse_instant_time(min(dead), zone) - timedelta(milliseconds=1), zone)
    return None if time in _times_in_use(table) or time <= _last_compaction(table) else time


def service_time(table: MetadataTable, suffix: str) -> str | None:
    """The instant time of a service that starts now. Below version 8 it is the last delta commit's time followed by the
    suffix, or None if that instant already exists.
    """
    times_in_use = _times_in_use(table)
    if not table.data.config.format.orders_by_completion:
        deltas = (i for i in table.meta.timeline.completed() if i.action is ActionKind.DELTACOMMIT)
        time = max(i.requested_time for i in deltas) + suffix
        return None if time in times_in_use else time
    time = completion_time_after(table, "")
    while time in times_in_use:
        time = next_instant_time(time)
    return time


def _times_in_use(table: MetadataTable) -> frozenset[str]:
    return frozenset(i.requested_time for meta in (table.meta, table.data) for i in meta.timeline)


def _compactable(table: MetadataTable, partition: str, instant_time: str) -> Iterator[FileSlice]:
    """The slices with log files, without the log files that must not be merged."""
    late = frozenset[str]()
    if table.data.config.format.orders_by_completion:
        late = frozenset(i.requested_time for i in table.meta.timeline if (i.completion_time or "9") >= instant_time)
    for slice in table.slices(partition):
        logs = tuple(log for log in slice.log_files if log.instant_time not in late)
        if logs and slice.base_instant < instant_time:
            yield replace(slice, log_files=logs)


# ---- doing it --------------------------------------------------------------------------------------------------------


def _run(table: MetadataTable, requested: Instant, slices: Sequence[FileSlice]) -> MetadataTable:
    storage, version = table.meta.storage, table.data.config.table_version
    inflight = start(requested, table.meta)
    files = GroupFiles(storage, version, requested.requested_time)
    stats: dict[str, list[WriteStat]] = {}
    for number, file_slice in enumerate(slices):
        stat = _compacted(table, file_slice, files, f"{number}-0-1")
        stats.setdefault(file_slice.group.partition_path, []).append(stat)
    complete_delta_commit(table, inflight, stats, OperationType.COMPACT, compacted=True)
    return table.reloaded()


def _compacted(table: MetadataTable, file_slice: FileSlice, files: GroupFiles, write_token: str) -> WriteStat:
    """Write the new base file of one file group; return its write stat."""
    partition, file_id = file_slice.group.partition_path, file_slice.group.file_id
    name = files.base_name(file_id, write_token)
    where = f"{table.meta.storage.root}/{partition}"
    with as_corrupt(where, "its records"), patch_of(table, file_slice, name) as patch:
        if patch is not None:
            path, size_bytes, count = files.patched_file(partition, name, patch)
        else:
            merged = _merged(table, file_slice)
            path, size_bytes, count = files.base_file(partition, name, merged, names_itself=True)
    return WriteStat(
        file_id=file_id,
        path=path,
        partition_path=partition,
        prev_commit=file_slice.base_instant,
        num_writes=count,
        num_update_writes=count,
        total_write_bytes=size_bytes,
        file_size_in_bytes=size_bytes,
        total_log_files_compacted=len(file_slice.log_files),
        total_log_size_compacted=sum(log.size_bytes for log in file_slice.log_files),
        total_updated_records_compacted=count,
    )


def _merged(table: MetadataTable, file_slice: FileSlice) -> Iterator[pa.Table]:
    """The live records of a slice, ascending by key, in pieces."""
    kind = kind_of(file_slice.group.partition_path)
    schema = record_fields(table.data.config.table_version, kind)
    for versions in GroupReader(table.meta, file_slice, kind.payloads, table.counts).runs():
        live = merged_records(versions, kind)
        if live.num_rows:
            yield of_schema(live, schema)


# ---- pending plans ---------------------------------------------------------------------------------------------------


def _taken_back(table: MetadataTable, instant: Instant, plan: CompactionPlan) -> Instant:
    """Delete the files of a dead run and set the plan back to requested; return its instant."""
    return revert_to_plan(instant, table.meta, _base_files_of(instant, plan, table.meta.storage))


def _base_files_of(instant: Instant, plan: CompactionPlan, storage: Storage) -> Iterator[str]:
    for partition in dict.fromkeys(operation.partition_path for operation in plan.operations):
        for entry in storage.list(partition):
            name = BaseFileName.parse(entry.name)
            if name is not None and name.instant_time == instant.requested_time:
                yield entry.path


def _dropped(table: MetadataTable, requested: Instant) -> MetadataTable:
    drop(requested, table.meta)
    return table.reloaded()
