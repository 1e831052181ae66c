"""One write to the metadata table: a delta commit with one new log file for each file group that gets records.

It completes before the data table's instant of the same time; until that instant is complete, readers ignore it. Hold
the data table's lock. Source: docs/formats/metadata-table.md, "Timeline", "Writing".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.formats.timeline.instant_files import encode_commit
from pyhudi.metadata.group_files import GroupFiles, encoded_records
from pyhudi.metadata.keys import KeysByGroup, group_numbers, groups_by_prefix
from pyhudi.metadata.partitions.base import PartitionUpdate
from pyhudi.metadata.schema import numbered_file_id, record_schema
from pyhudi.metadata.staged_index import staged_by_group, staged_content
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.commit import CommitMetadata, WriteStat
from pyhudi.model.file_group import FileGroupId, FileSlice
from pyhudi.model.filenames import LogFileName
from pyhudi.model.instant import (
    INSTANT_TIME_DIGITS,
    ActionKind,
    Instant,
    format_instant_time,
    next_instant_time,
)
from pyhudi.transaction.commit import commit_part
from pyhudi.transaction.instants import request_at, start

__all__ = [
    "begin_delta_commit",
    "complete_delta_commit",
    "completion_time_after",
    "next_log_name",
    "write_delta_commit",
]

_UPDATE = "UPSERT_PREPPED"  # operation of all updates
_ROWS_OF_ONE_THREAD = 50_000  # above this, several threads sort and compress faster
_THREADS = min(4, os.cpu_count() or 1)
_TOKEN = "0-1-0"  # write token: files of a dead attempt are deleted before another one begins


def write_delta_commit(table: MetadataTable, instant_time: str, updates: Mapping[str, PartitionUpdate]) -> str:
    """Write `updates` (partition → its update) and complete; return the completion time.

    Raises: MetadataTableDamaged when a partition has no file groups; WriteConflict when the instant exists.
    """
    profile = CommitMetadata({}, operation_type=_UPDATE)
    body = encode_commit(profile, ActionKind.DELTACOMMIT, table.data.config.table_version)
    inflight = begin_delta_commit(table, instant_time, body)
    stats = {
        partition: tuple(_log_files(table, partition, instant_time, update))
        for partition, update in updates.items()
        if not update.is_empty
    }
    return complete_delta_commit(table, inflight, stats, _UPDATE)


def begin_delta_commit(table: MetadataTable, instant_time: str, profile: bytes = b"") -> Instant:
    """Start a new delta commit; return its inflight instant. Raises WriteConflict if it already exists."""
    return start(request_at(instant_time, ActionKind.DELTACOMMIT, table.meta), table.meta, profile)


def complete_delta_commit(
    table: MetadataTable,
    inflight: Instant,
    stats: Mapping[str, Sequence[WriteStat]],
    operation: str,
    *,
    compacted: bool = False,
) -> str:
    """Sync the files that the stats name and complete the instant; return the completion time. Also for compactions."""
    body = CommitMetadata(
        {partition: tuple(of_partition) for partition, of_partition in stats.items()},
        {"schema": record_schema(table.data.config.table_version)},
        operation,
        compacted=compacted,
    )
    time = completion_time_after(table, inflight.requested_time)
    paths = [stat.path for of_partition in stats.values() for stat in of_partition if stat.path is not None]
    commit_part(inflight, table.meta, body, time, paths_to_sync=paths)
    return time


def completion_time_after(table: MetadataTable, instant_time: str) -> str:
    """A time later than `instant_time` and than all times on the metadata table's timeline.

    The time orders this timeline only. Only the holder of the data table's lock writes to it, so no clock has to be
    waited for.
    """
    now_ms = table.data.clock.now_ms()
    moment = datetime.fromtimestamp(now_ms // 1000, timezone.utc).replace(microsecond=now_ms % 1000 * 1000)
    now = format_instant_time(moment, table.data.config.timeline_zone)
    # Below version 8 an instant time may end in digits that name the operation; they are not part of the time.
    earlier = (instant_time, table.meta.timeline.latest_time or "")
    latest = max(time[:INSTANT_TIME_DIGITS] for time in earlier)
    return now if now > latest else next_instant_time(latest)


def _log_files(table: MetadataTable, partition: str, instant_time: str, update: PartitionUpdate) -> Iterator[WriteStat]:
    """Write one log file for each file group that gets records or deletes."""
    slices = {slice.group.file_id: slice for slice in table.slices(partition)}
    by_prefix = groups_by_prefix(slices)
    if not update.of_groups:
        for file_ids in by_prefix.values():
            yield from _logs_of_groups(table, [slices[file_id] for file_id in file_ids], instant_time, update)
        return
    for prefix, group_update in update.of_groups.items():
        if group_update.is_empty:
            continue
        if prefix in by_prefix:
            groups: Sequence[FileSlice] = [slices[file_id] for file_id in by_prefix[prefix]]
        else:
            groups = _new_groups(table, partition, prefix, instant_time, update.new_groups)
        yield from _logs_of_groups(table, groups, instant_time, group_update)


def _new_groups(table: MetadataTable, partition: str, prefix: str, instant_time: str, count: int) -> list[FileSlice]:
    """Create new file groups of this instant, each with its empty log file."""
    files = GroupFiles(table.meta.storage, table.data.config.table_version, instant_time)
    ids = [numbered_file_id(prefix, number) for number in range(count)]
    table.meta.storage.sync([files.empty_log(partition, file_id) for file_id in ids])
    return [FileSlice(FileGroupId(partition, file_id), instant_time, None) for file_id in ids]


def _logs_of_groups(
    table: MetadataTable, groups: Sequence[FileSlice], instant_time: str, update: PartitionUpdate
) -> Iterator[WriteStat]:
    """Write the log files of file groups that share one set of keys."""
    if update.records.num_rows <= _ROWS_OF_ONE_THREAD and not update.pieces:
        yield from map(*_writing(table, groups, instant_time, update, None))
        return
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="hudi-index") as pool:
        yield from pool.map(*_writing(table, groups, instant_time, update, pool))


def _writing(
    table: MetadataTable,
    groups: Sequence[FileSlice],
    instant_time: str,
    update: PartitionUpdate,
    pool: ThreadPoolExecutor | None,
) -> tuple[Callable[[int], WriteStat], list[int]]:
    """Return the function that writes the log file of one file group, and the numbers of the groups that get one."""
    version, partition = table.data.config.table_version, groups[0].group.partition_path
    files = GroupFiles(table.meta.storage, version, instant_time)
    keys = update.records.column("key")
    is_gone = pc.invert(pc.is_in(update.deleted, value_set=keys)) if len(update.deleted) else None
    deleted = update.deleted if is_gone is None else update.deleted.filter(is_gone)
    keys_by_group = KeysByGroup.of(partition, keys, len(groups), version, pool)
    own_deleted = group_numbers(partition, deleted, len(groups), version)
    encoded = encoded_records(update.records.drop_columns(["key"]), version, pool=pool)
    of_group = staged_by_group(update.pieces)

    def written(number: int) -> WriteStat:
        name = next_log_name(table, groups[number], instant_time)
        rows, in_order = keys_by_group.rows(number)
        values = encoded.take(rows)
        removed = deleted.filter(pa.array(own_deleted == number))
        pieces = of_group.get(number, ())
        contents = (staged_content(table.data.storage, piece) for piece in pieces)
        path, size_bytes = files.log_file(partition, name, in_order, values, removed, pieces=contents)
        records = len(rows) + sum(piece.records for piece in pieces)
        return _stat(groups[number], name, path, size_bytes, records, len(removed))

    return written, sorted({*keys_by_group.groups().tolist(), *own_deleted.tolist(), *of_group})


def next_log_name(table: MetadataTable, slice: FileSlice, instant_time: str) -> LogFileName:
    """The name of the next log file: from version 8 on the instant's own; below, the slice's next version in the
    folder.
    """
    group = slice.group
    if table.data.config.format.has_own_log_files:
        return LogFileName(group.file_id, instant_time, 1, _TOKEN)
    names = (LogFileName.parse(entry.name) for entry in table.meta.storage.list(group.partition_path))
    of_group = (name for name in names if name is not None and name.file_id == group.file_id)
    versions = [name.version for name in of_group if name.instant_time == slice.base_instant]
    return LogFileName(group.file_id, slice.base_instant, max(versions, default=0) + 1, _TOKEN)


def _stat(slice: FileSlice, name: LogFileName, path: str, size_bytes: int, records: int, deletes: int) -> WriteStat:
    base = slice.base_file
    older = (log.name for log in slice.log_files) if name.instant_time == slice.base_instant else ()
    return WriteStat(
        file_id=name.file_id,
        path=path,
        partition_path=slice.group.partition_path,
        prev_commit=name.instant_time,
        num_writes=records,
        num_update_writes=records,
        num_deletes=deletes,
        total_write_bytes=size_bytes,
        file_size_in_bytes=size_bytes,
        log_version=name.version,
        log_offset=0,
        base_file="" if base is None or name.instant_time != base.instant_time else base.name,
        log_files=(*older, str(name)),
    )
