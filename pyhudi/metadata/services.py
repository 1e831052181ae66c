"""The services that keep a metadata table small: its compaction, cleaning and log compaction.

Hold the data table's lock. `run_services` runs all three (`compaction.py` has the first) before the delta commit of an
instant of the table, while that instant is inflight. So a reader never waits for them, and a compaction or a clean that
dies leaves a plan, which the next instant executes. The metadata table's timeline is archived together with the table's
(`services/archive`).

Cleaning deletes slices that compactions have replaced and that no running query may still read. It keeps the slices of
the last commits, and at least two of each file group, so that a query that began before a compaction can finish. Each
compaction leads to one clean, a few delta commits later.

A log compaction joins the log blocks of a slice in one log file; base files stay. It is off by default.

    <T>.logcompaction.requested   the plan: each slice with enough blocks
    <T>.logcompaction.inflight    empty
    <partition>/<log file>        its blocks name the instants whose blocks they replace
    <T> completed                 a delta commit

It runs after a due compaction. Its blocks take the position of the newest block that they replace. So it does not run
while the table has a pending instant older than this block: later blocks of that instant would precede all new blocks,
and its earlier blocks may be taken back. A pending plan belongs to a dead process: it is dropped with its files.

Source: docs/formats/metadata-table.md, "Compaction and cleaning", "Log compaction", "Merging records";
docs/formats/table-services.md, "Cleaning plan", "Log compaction plan".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pyhudi.formats.damage import as_corrupt
from pyhudi.formats.log.reader import LogBlock
from pyhudi.formats.timeline.clean_plans import encode_clean_plan
from pyhudi.formats.timeline.plans import encode_compaction_plan
from pyhudi.metadata.compaction import compact_if_due, run_pending_compactions, service_time
from pyhudi.metadata.delta_commit import complete_delta_commit, completion_time_after, next_log_name
from pyhudi.metadata.group_files import GroupFiles, encoded_records
from pyhudi.metadata.group_reader import GroupReader
from pyhudi.metadata.merging import merged_logs
from pyhudi.metadata.schema import MetadataKind, kind_of, of_schema, record_fields
from pyhudi.metadata.table import MetadataTable
from pyhudi.metadata.undo import files_written_by
from pyhudi.model.commit import OperationType, WriteStat
from pyhudi.model.file_group import FileSlice
from pyhudi.model.filenames import data_path, instant_of
from pyhudi.model.instant import ActionKind, Instant, next_instant_time
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.model.plans import (
    KEEP_LATEST_COMMITS,
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    CompactionPlan,
    CompactionStrategyInfo,
    RetainedInstant,
)
from pyhudi.storage.paths import inside
from pyhudi.transaction.commit import commit_part
from pyhudi.transaction.instants import drop, request_at, start
from pyhudi.transaction.plans import start_again
from pyhudi.transaction.undo import delete_files, remove_instant
from pyhudi.view.file_system_view import FileSystemView
from pyhudi.view.pending_plans import operation_of

__all__ = [
    "MAX_LOG_COMPACTED_BYTES",
    "clean_if_due",
    "drop_pending_log_compactions",
    "log_compact_if_due",
    "run_pending_cleans",
    "run_services",
]


_COMMITS_RETAINED = 20  # Hudi's value for the metadata table: two compactions, at their default frequency
_SLICES_KEPT = 2  # of each file group: the newest, and the one that running queries may still read
_AFTER_COMPACTION = 3  # delta commits after a compaction until the slices before it may be cleaned
_CLEAN_SUFFIX = "002"  # below version 8: behind the last delta commit's time


def clean_if_due(table: MetadataTable, delta_commits_max: int) -> MetadataTable:
    """Clean if a compaction since the last clean is a few delta commits old; return the table as it is then.

    Args:   delta_commits_max: the number that triggers the next compaction.
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
    retained = RetainedInstant(earliest.requested_time, earliest.action.value, earliest.state.name)
    plan = CleanPlan(KEEP_LATEST_COMMITS, retained, commits[-1].requested_time, files)
    body = encode_clean_plan(plan, lambda path: _absolute(table, path))
    return _run_clean(table, request_at(instant_time, ActionKind.CLEAN, table.meta, body), plan)


def run_pending_cleans(table: MetadataTable) -> MetadataTable:
    """Finish cleans that died; return the table as it is then. Raises CorruptFile."""
    for instant in table.meta.timeline.pending().of([ActionKind.CLEAN]):
        plan = table.meta.reader.clean_plan(instant)
        if plan is None:
            drop(instant, table.meta)
            table = table.reloaded()
        else:
            table = _run_clean(table, instant, plan)
    return table


def _is_due(table: MetadataTable, commits: Sequence[Instant], deltas_min: int) -> bool:
    """True if enough delta commits, and no clean, followed the last compaction."""
    compaction = max((i.requested_time for i in commits if i.action is ActionKind.COMMIT), default="")
    since = [i for i in commits if max(i.requested_time, i.completion_time or "") > compaction]
    deltas = sum(i.action is ActionKind.DELTACOMMIT for i in since)
    cleans = table.meta.timeline.of([ActionKind.CLEAN]).instants
    cleaned = max((i.requested_time for i in cleans), default="")
    return bool(compaction) and compaction > cleaned and deltas >= deltas_min


def _instant_time(table: MetadataTable, commits: Sequence[Instant]) -> str | None:
    times_in_use = {i.requested_time for meta in (table.meta, table.data) for i in meta.timeline}
    if not table.data.config.format.orders_by_completion:
        time = max(i.requested_time for i in commits if i.action is ActionKind.DELTACOMMIT) + _CLEAN_SUFFIX
        return None if time in times_in_use else time
    time = completion_time_after(table, "")
    while time in times_in_use:
        time = next_instant_time(time)
    return time


def _old_files(view: FileSystemView, partition: str, earliest: Instant) -> Iterator[str]:
    """The names of the files in slices older than the newest one at `earliest`."""
    for group in view.groups.get(partition, ()):
        at = next((n for n, s in enumerate(group.slices) if s.base_instant <= earliest.requested_time), None)
        if at is not None:
            for old in group.slices[max(at + 1, _SLICES_KEPT) :]:
                yield from _names(old)


def _names(file_slice: FileSlice) -> Iterator[str]:
    if file_slice.base_file is not None:
        yield file_slice.base_file.name
    yield from (log.name for log in file_slice.log_files)


def _run_clean(table: MetadataTable, instant: Instant, plan: CleanPlan) -> MetadataTable:
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
    commit_part(instant, table.meta, metadata, time, paths_to_sync=())
    return table.reloaded()


def _delete(table: MetadataTable, instant: Instant, plan: CleanPlan) -> Mapping[str, tuple[str, ...]]:
    """Delete the files of a plan; return the deleted files by partition. Files of the newest slices and files newer
    than the plan are kept: no valid plan names them, but a plan read from storage may name anything.
    """
    storage = table.meta.storage
    deleted = {}
    for partition, names in plan.files.items():
        inside(partition, storage.root)
        newest = FileSystemView.load(table.meta, partitions=(partition,)).slices(partition)
        newest_names = {name for file_slice in newest for name in _names(file_slice)}
        replaced_names = tuple(
            name for name in names if name not in newest_names and (instant_of(name) or "") < instant.requested_time
        )
        delete_files([data_path(partition, name) for name in replaced_names], storage)
        deleted[partition] = replaced_names
    return deleted


def _absolute(table: MetadataTable, path: str) -> str:
    """The path as Hudi writes it: absolute, without a scheme on a local disk."""
    return table.meta.storage.full_path(path).removeprefix("file://").removeprefix("file:")


# Bytes of one slice's log files: their records become one block, which is wholly in memory.
MAX_LOG_COMPACTED_BYTES = 64 * 1024 * 1024
_EXECUTOR = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"
_BLOCKS_A_FILE = 2  # at most, in a log file of the metadata table: records and deletes
_LOG_COMPACTION_SUFFIX = "005"  # below version 8: behind the last delta commit's time


def log_compact_if_due(table: MetadataTable, options: MetadataOptions) -> MetadataTable:
    """Merge the log blocks of the slices that have enough of them; return the table as it is then.

    Raises: MetadataTableDamaged, CorruptFile.
    """
    if not options.log_compaction or _may_change(table):
        return table
    due = [
        slice_and_blocks for name in table.partitions for slice_and_blocks in _due(table, name, options.log_blocks_min)
    ]
    instant_time = service_time(table, _LOG_COMPACTION_SUFFIX) if due else None
    return table if instant_time is None else _run_log_compaction(table, instant_time, due)


def drop_pending_log_compactions(table: MetadataTable) -> MetadataTable:
    """Take pending plans off the timeline, with the files of a dead run; return the table as it is then."""
    for instant in table.meta.timeline.pending().of([ActionKind.LOGCOMPACTION]):
        remove_instant(instant, table.meta, files_written_by(table, instant.requested_time))
        table = table.reloaded()
    return table


def _may_change(table: MetadataTable) -> bool:
    """True if the table has a pending instant that writes here and is not later than all existing ones."""
    newest = max((i.requested_time for i in table.meta.timeline.completed()), default="")
    return any(
        i.requested_time <= newest and i.action not in (ActionKind.INDEXING, ActionKind.SAVEPOINT)
        for i in table.data.timeline.pending()
    )


def _due(table: MetadataTable, partition: str, blocks_min: int) -> Iterator[tuple[FileSlice, Sequence[LogBlock]]]:
    """The slices with enough blocks of more than one instant: a single merged block is not merged again."""
    is_counted = kind_of(partition) is MetadataKind.COLUMN_STATS
    if is_counted and not table.data.config.format.compacts_logs_of_statistics:
        return
    for slice in table.slices(partition):
        logs = replace(slice, base_file=None)
        if len(logs.log_files) * _BLOCKS_A_FILE < blocks_min:
            continue
        if sum(log.size_bytes for log in logs.log_files) > MAX_LOG_COMPACTED_BYTES:
            continue
        blocks = _reader(table, logs).blocks
        if len(blocks) >= blocks_min and len({block.instant_time for block in blocks}) > 1:
            yield slice, blocks


def _reader(table: MetadataTable, logs: FileSlice) -> GroupReader:
    return GroupReader(table.meta, logs, kind_of(logs.group.partition_path).payloads, table.counts)


def _run_log_compaction(
    table: MetadataTable, instant_time: str, due: Sequence[tuple[FileSlice, Sequence[LogBlock]]]
) -> MetadataTable:
    version = table.data.config.table_version
    operations = tuple(operation_of(slice) for slice, _ in due)
    plan = CompactionPlan(operations, CompactionStrategyInfo(_EXECUTOR), preserve_meta_columns=True)
    body = encode_compaction_plan(plan, version)
    inflight = start(request_at(instant_time, ActionKind.LOGCOMPACTION, table.meta, body), table.meta)
    stats: dict[str, list[WriteStat]] = {}
    for slice, blocks in due:
        for stat in _merged(table, instant_time, slice, blocks):
            stats.setdefault(slice.group.partition_path, []).append(stat)
    if not stats:
        drop(inflight, table.meta)
        return table.reloaded()
    complete_delta_commit(table, inflight, stats, OperationType.LOG_COMPACT, compacted=True)
    return table.reloaded()


def _merged(
    table: MetadataTable, instant_time: str, slice: FileSlice, blocks: Sequence[LogBlock]
) -> Iterator[WriteStat]:
    """Write the log file of one slice; none if its records depend on its base file."""
    version, partition = table.data.config.table_version, slice.group.partition_path
    with as_corrupt(f"{table.meta.storage.root}/{partition}", "its records"):
        versions = _reader(table, replace(slice, base_file=None)).all()
        merged = merged_logs(versions, kind_of(partition))
    if merged is None:
        return
    records, deleted = merged
    rows = of_schema(records, record_fields(version, kind_of(partition))) if records.num_rows else records
    name = next_log_name(table, slice, instant_time)
    files = GroupFiles(table.meta.storage, version, instant_time)
    keys = rows.column("key").combine_chunks()
    values = encoded_records(rows.drop_columns(["key"]), version) if len(keys) else keys  # only deletes: no values
    path, size_bytes = files.log_file(partition, name, keys, values, deleted, stands_for=_instants(blocks))
    yield WriteStat(
        file_id=name.file_id,
        path=path,
        partition_path=partition,
        prev_commit=slice.base_instant,
        num_writes=rows.num_rows,
        num_update_writes=rows.num_rows,
        num_deletes=len(deleted),
        total_write_bytes=size_bytes,
        file_size_in_bytes=size_bytes,
        log_version=name.version,
        log_offset=0,
        base_file="" if slice.base_file is None else slice.base_file.name,
        log_files=(str(name),),
        total_log_records=versions.num_rows,
        total_log_files_compacted=len(slice.log_files),
        total_log_size_compacted=sum(log.size_bytes for log in slice.log_files),
        total_updated_records_compacted=rows.num_rows,
        total_log_blocks=len(blocks),
    )


def _instants(blocks: Sequence[LogBlock]) -> tuple[str, ...]:
    """The instants that wrote the blocks; an earlier log compaction stands for those it merged."""
    return tuple(dict.fromkeys(block.instant_time for block in blocks))


def run_services(table: MetadataTable, options: MetadataOptions) -> MetadataTable:
    """Finish pending services, run those that are due, and return the table as it is then.

    Raises: MetadataTableDamaged, CorruptFile.
    """
    table = drop_pending_log_compactions(run_pending_cleans(run_pending_compactions(table)))
    table = clean_if_due(table, options.delta_commits_max)
    return log_compact_if_due(compact_if_due(table, options.delta_commits_max), options)
