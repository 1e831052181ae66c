"""Log compaction of the metadata table: the log blocks of a slice become one log file, base files stay. Off by default.

    <T>.logcompaction.requested   the plan: each slice with blocks enough
    <T>.logcompaction.inflight    empty
    <partition>/<log file>        its blocks name the instants whose blocks they stand for
    <T> completed                 a delta commit

It comes after the compaction that would be due, and before the delta commit of an instant of the table, under the
table's lock. The new blocks take the place of the newest one that they stand for. So there is none while an instant of
the table is pending that is older than that: what it writes would come before all of them, and what it has written may
be taken back. A plan that waits is of a process that died: it is dropped with its files.
Source: docs/formats/metadata-table.md, "Log compaction", "Merging records"; docs/formats/table-services.md,
"Log compaction plan".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyhudi.formats.damage import as_corrupt
from pyhudi.formats.log.reader import LogBlock
from pyhudi.formats.timeline.plans import encode_compaction_plan
from pyhudi.metadata.compaction import service_time
from pyhudi.metadata.delta_commit import complete_delta_commit, next_log_name
from pyhudi.metadata.group_files import GroupFiles, encoded_records
from pyhudi.metadata.group_reader import GroupReader
from pyhudi.metadata.merging import merged_logs
from pyhudi.metadata.schema import MetadataKind, kind_of, of_schema, record_fields
from pyhudi.metadata.table import MetadataTable
from pyhudi.metadata.undo import files_written_by
from pyhudi.model.commit import OperationType, WriteStat
from pyhudi.model.file_group import FileSlice
from pyhudi.model.instant import ActionKind
from pyhudi.model.new_table import LOG_COMPACTED_STATISTICS
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.model.plans import CompactionPlan, CompactionStrategyInfo
from pyhudi.transaction.instants import drop, request_at, start
from pyhudi.transaction.undo import take_off
from pyhudi.view.pending_plans import operation_of

__all__ = ["MAX_LOG_COMPACTED_BYTES", "drop_pending_log_compactions", "log_compact_if_due"]

# Of the log files of one slice: their records become one block, which is in memory whole.
MAX_LOG_COMPACTED_BYTES = 64 * 1024 * 1024
_EXECUTOR = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"
_BLOCKS_A_FILE = 2  # records and deletes: so many blocks a log file of the metadata table has at most
_SUFFIX = "005"  # below version 8: behind the last delta commit's time


def log_compact_if_due(table: MetadataTable, options: MetadataOptions) -> MetadataTable:
    """Merge the log blocks of the slices that have enough of them; the table as it is then.

    Raises: MetadataTableDamaged, CorruptFile.
    """
    if not options.log_compaction or _may_change(table):
        return table
    due = [found for name in table.partitions for found in _due(table, name, options.log_blocks_min)]
    instant_time = service_time(table, _SUFFIX) if due else None
    return table if instant_time is None else _run(table, instant_time, due)


def drop_pending_log_compactions(table: MetadataTable) -> MetadataTable:
    """Take plans that wait off the timeline, with the files of a run that died; the table as it is then."""
    for instant in table.meta.timeline.pending().of([ActionKind.LOGCOMPACTION]):
        take_off(instant, table.meta, files_written_by(table, instant.requested_time))
        table = table.reloaded()
    return table


def _may_change(table: MetadataTable) -> bool:
    """Is an instant of the table pending that writes here, and is not later than all that there is?"""
    newest = max((i.requested_time for i in table.meta.timeline.completed()), default="")
    return any(
        i.requested_time <= newest and i.action not in (ActionKind.INDEXING, ActionKind.SAVEPOINT)
        for i in table.data.timeline.pending()
    )


def _due(table: MetadataTable, partition: str, blocks_min: int) -> Iterator[tuple[FileSlice, Sequence[LogBlock]]]:
    """Slices with blocks enough, of more than one instant: what one run has merged is not merged again alone."""
    is_counted = kind_of(partition) is MetadataKind.COLUMN_STATS
    if is_counted and table.data.config.table_version < LOG_COMPACTED_STATISTICS:
        return
    for found in table.slices(partition):
        logs = replace(found, base_file=None)
        if len(logs.log_files) * _BLOCKS_A_FILE < blocks_min:
            continue
        if sum(log.size_bytes for log in logs.log_files) > MAX_LOG_COMPACTED_BYTES:
            continue
        blocks = _reader(table, logs).blocks
        if len(blocks) >= blocks_min and len({block.instant_time for block in blocks}) > 1:
            yield found, blocks


def _reader(table: MetadataTable, logs: FileSlice) -> GroupReader:
    return GroupReader(table.meta, logs, kind_of(logs.group.partition_path).payloads, table.counts)


def _run(table: MetadataTable, instant_time: str, due: Sequence[tuple[FileSlice, Sequence[LogBlock]]]) -> MetadataTable:
    version = table.data.config.table_version
    operations = tuple(operation_of(found) for found, _ in due)
    plan = CompactionPlan(operations, CompactionStrategyInfo(_EXECUTOR), preserve_meta_columns=True)
    body = encode_compaction_plan(plan, version)
    inflight = start(request_at(instant_time, ActionKind.LOGCOMPACTION, table.meta, body), table.meta)
    stats: dict[str, list[WriteStat]] = {}
    for found, blocks in due:
        for stat in _merged(table, instant_time, found, blocks):
            stats.setdefault(found.group.partition_path, []).append(stat)
    if not stats:
        drop(inflight, table.meta)
        return table.reloaded()
    complete_delta_commit(table, inflight, stats, OperationType.LOG_COMPACT, compacted=True)
    return table.reloaded()


def _merged(
    table: MetadataTable, instant_time: str, found: FileSlice, blocks: Sequence[LogBlock]
) -> Iterator[WriteStat]:
    """The log file of one slice; none when its records can't be told from its log files alone."""
    version, partition = table.data.config.table_version, found.group.partition_path
    with as_corrupt(f"{table.meta.storage.root}/{partition}", "its records"):
        versions = _reader(table, replace(found, base_file=None)).all()
        merged = merged_logs(versions, kind_of(partition))
    if merged is None:
        return
    records, deleted = merged
    rows = of_schema(records, record_fields(version, kind_of(partition))) if records.num_rows else records
    name = next_log_name(table, found, instant_time)
    files = GroupFiles(table.meta.storage, version, instant_time)
    keys = rows.column("key").combine_chunks()
    values = encoded_records(rows.drop_columns(["key"]), version) if len(keys) else keys  # deletes alone: of none
    path, size_bytes = files.log_file(partition, name, keys, values, deleted, stands_for=_instants(blocks))
    yield WriteStat(
        file_id=name.file_id,
        path=path,
        partition_path=partition,
        prev_commit=found.base_instant,
        num_writes=rows.num_rows,
        num_update_writes=rows.num_rows,
        num_deletes=len(deleted),
        total_write_bytes=size_bytes,
        file_size_in_bytes=size_bytes,
        log_version=name.version,
        log_offset=0,
        base_file="" if found.base_file is None else found.base_file.name,
        log_files=(str(name),),
        total_log_records=versions.num_rows,
        total_log_files_compacted=len(found.log_files),
        total_log_size_compacted=sum(log.size_bytes for log in found.log_files),
        total_updated_records_compacted=rows.num_rows,
        total_log_blocks=len(blocks),
    )


def _instants(blocks: Sequence[LogBlock]) -> tuple[str, ...]:
    """The instants that wrote the blocks; a former log compaction stands for its own."""
    return tuple(dict.fromkeys(block.instant_time for block in blocks))
