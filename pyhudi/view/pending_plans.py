"""Pending plans: the file groups that clusterings and compactions will change, their slices, and the files that cleans
delete.

A pending clustering will replace the file groups of `pending_clusterings`. Writes must not go to them, or the
clustering must not complete.

A pending compaction will rewrite the file groups of `pending_compactions`. Until then, log files go to the slices of
`slices_to_append_to`. Below table version 8 the plan opens a slice under its instant, and log files written from then
on name that instant. From version 8 on they name their delta commit, and completion times assign them to slices.

`operation_of` describes a file slice in the form of plans. `slices_of` returns the slices of a plan.
Source: docs/formats/table-services.md, "Clustering plan", "Compaction plan"; docs/formats/timeline.md, "Bodies";
docs/formats/writers.md, "Table services and concurrent writers"; docs/formats/file-names.md, "File groups and slices".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from pyhudi.errors import CorruptFile, PathNotFound, TableError, UnsupportedTable
from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import BaseFile, FileGroupId, FileSlice, LogFile
from pyhudi.model.filenames import BaseFileName, LogFileName, data_path
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.plans import ClusteringSlice, CompactionOperation
from pyhudi.storage.base import FileInfo
from pyhudi.view.file_system_view import FileSystemView

__all__ = [
    "files_being_cleaned",
    "metrics_of",
    "operation_of",
    "pending_clusterings",
    "pending_compactions",
    "slices_of",
    "slices_to_append_to",
]


def pending_clusterings(meta: MetaClient) -> dict[FileGroupId, Instant]:
    """File group → the pending clustering with the group in its plan. Raises CorruptFile."""
    groups: dict[FileGroupId, Instant] = {}
    for instant in meta.timeline.pending():
        plan = meta.reader.clustering_plan(instant)
        if plan is not None:
            groups.update((file_slice.group, instant) for file_slice in plan.slices)
    return groups


def pending_compactions(meta: MetaClient) -> dict[FileGroupId, str]:
    """File group → instant of the pending compaction with the group in its plan. Raises CorruptFile."""
    times: dict[FileGroupId, str] = {}
    for instant in meta.timeline.pending():
        if instant.action is ActionKind.COMPACTION:
            operations = meta.reader.compaction_plan(instant).operations
            times.update((operation.group, instant.requested_time) for operation in operations)
    return times


def slices_to_append_to(
    view: FileSystemView, partition_path: str, compacting: Mapping[FileGroupId, str], meta: MetaClient
) -> tuple[FileSlice, ...]:
    """Return the slice of each file group in a partition that takes the log files of a new delta commit."""
    slices = view.slices(partition_path)
    if meta.config.format.has_own_log_files or not compacting:
        return slices
    return tuple(_opened_slice(s, compacting[s.group]) if s.group in compacting else s for s in slices)


def _opened_slice(file_slice: FileSlice, compaction: str) -> FileSlice:
    """Return the slice that a pending compaction has opened, with its existing log files."""
    logs = tuple(log for log in file_slice.log_files if log.instant_time == compaction)
    return replace(file_slice, base_instant=compaction, base_file=None, log_files=logs)


_MB = 1024 * 1024
_WRITTEN_WITHOUT_BASE_BYTES = 120 * _MB  # Hudi's estimate for a slice with only logs: a full base file


def operation_of(file_slice: FileSlice) -> CompactionOperation:
    """Return a slice in the form of plans."""
    return CompactionOperation(
        partition_path=file_slice.group.partition_path,
        file_id=file_slice.group.file_id,
        base_instant=file_slice.base_instant,
        data_file_name=file_slice.base_file.name if file_slice.base_file is not None else None,
        log_file_names=tuple(log.name for log in file_slice.log_files),
        metrics=metrics_of(file_slice),
    )


def metrics_of(file_slice: FileSlice) -> dict[str, float]:
    """Return the metrics of strategies and plans, under Hudi's names; MB are whole numbers."""
    base_bytes = file_slice.base_file.size_bytes if file_slice.base_file is not None else 0
    log_bytes = sum(log.size_bytes for log in file_slice.log_files)
    read_mb = (base_bytes + log_bytes) // _MB
    write_mb = (base_bytes if file_slice.base_file is not None else _WRITTEN_WITHOUT_BASE_BYTES) // _MB
    return {
        "TOTAL_LOG_FILES": float(len(file_slice.log_files)),
        "TOTAL_LOG_FILES_SIZE": float(log_bytes),
        "TOTAL_IO_READ_MB": float(read_mb),
        "TOTAL_IO_WRITE_MB": float(write_mb),
        "TOTAL_IO_MB": float(read_mb + write_mb),
    }


def slices_of(planned: Sequence[CompactionOperation | ClusteringSlice], meta: MetaClient) -> tuple[FileSlice, ...]:
    """Return the file slices that a plan names. Raises TableError when a file of one is missing."""
    listed = {path: {info.name: info for info in meta.storage.list(path)} for path in _partitions(planned)}
    return tuple(_slice(one, listed[one.partition_path], meta) for one in planned)


def _partitions(planned: Iterable[CompactionOperation | ClusteringSlice]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.partition_path for one in planned))


def _slice(operation: CompactionOperation | ClusteringSlice, files: dict[str, FileInfo], meta: MetaClient) -> FileSlice:
    names = [*operation.log_file_names, *([operation.data_file_name] if operation.data_file_name else [])]
    missing = [name for name in names if name not in files]
    if missing:
        raise TableError(
            f"{meta.storage.root}: a pending plan needs files of {operation.file_id} in {operation.partition_path!r} "
            f"that are missing: {', '.join(missing[:3])}. A rollback or cleaning deleted them; drop the plan by "
            f"deleting its requested file, and compact again."
        )
    path, file_id = operation.partition_path, operation.file_id
    base = None
    if operation.data_file_name is not None:
        name = BaseFileName.parse(operation.data_file_name)
        assert name is not None  # checked when the plan was decoded
        info = files[operation.data_file_name]
        base = BaseFile(info.path, path, file_id, name.instant_time, info.size_bytes)
    logs = tuple(sorted((_log(files[name], path) for name in operation.log_file_names), key=_log_order))
    return FileSlice(FileGroupId(path, file_id), operation.base_instant, base, logs)


def _log(info: FileInfo, partition_path: str) -> LogFile:
    name = LogFileName.parse(info.name)
    assert name is not None  # checked when the plan was decoded
    return LogFile(
        info.path,
        partition_path,
        name.file_id,
        name.instant_time,
        name.version,
        name.write_token,
        info.size_bytes,
        name.suffix,
    )


def _log_order(log: LogFile) -> tuple[str, int, str, str]:
    return (log.instant_time, log.version, log.write_token, log.suffix)


def files_being_cleaned(meta: MetaClient) -> frozenset[str]:
    """Return the paths of the files that pending cleans delete: some are already gone, and no reader of the newest
    state needs the others. Plans that can't be read are skipped.
    """
    paths: set[str] = set()
    for instant in meta.timeline.pending().of([ActionKind.CLEAN]):
        with suppress(
            CorruptFile, PathNotFound, UnsupportedTable
        ):  # its process died before the plan was complete; it is complete now
            plan = meta.reader.clean_plan(instant)
            if plan is not None:
                paths.update(data_path(path, name) for path, names in plan.files.items() for name in names)
    return frozenset(paths)
