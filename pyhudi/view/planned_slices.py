"""File slices as plans of table services name them, and the slices that a plan names.

Source: docs/formats/table-services.md, "Compaction plan", "Clustering plan"; docs/formats/file-names.md,
"File groups and slices".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyhudi.errors import TableError
from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import BaseFile, FileGroupId, FileSlice, LogFile
from pyhudi.model.filenames import BaseFileName, LogFileName
from pyhudi.model.plans import ClusteringSlice, CompactionOperation
from pyhudi.storage.base import FileInfo

__all__ = ["metrics_of", "operation_of", "slices_of"]

_MB = 1024 * 1024
_WRITTEN_WITHOUT_BASE_BYTES = 120 * _MB  # Hudi's guess for a slice of logs only: a full base file


def operation_of(file_slice: FileSlice) -> CompactionOperation:
    """A slice as plans name it."""
    return CompactionOperation(
        partition_path=file_slice.group.partition_path,
        file_id=file_slice.group.file_id,
        base_instant=file_slice.base_instant,
        data_file_name=file_slice.base_file.name if file_slice.base_file is not None else None,
        log_file_names=tuple(log.name for log in file_slice.log_files),
        metrics=metrics_of(file_slice),
    )


def metrics_of(file_slice: FileSlice) -> dict[str, float]:
    """The numbers that strategies and plans speak of, under Hudi's names; MB are whole ones."""
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
    """The file slices that a plan names. Raises TableError when a file of one is missing."""
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
