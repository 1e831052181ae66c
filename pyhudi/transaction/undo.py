"""Undoing an instant: finding its files, deleting or revoking them, and taking the instant off the timeline.

    base files, and log files named by the instant      deleted
    blocks in log files of another instant's slice      revoked by a command block in the slice's next log file

Log files carry another instant in their names below table version 8 (that of the slice's base file), and in tables that
were upgraded from there. Every step may be repeated. Source: docs/formats/writers.md, "Markers";
docs/formats/timeline.md, "Rollback".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pyhudi.errors import CorruptFile, PathExists
from pyhudi.filegroup.write.markers import APPEND, create_marker, list_markers, marker_folder
from pyhudi.formats.log.blocks.command import rollback_block
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import META_FOLDER, BaseFileName, LogFileName, data_path, instant_of
from pyhudi.model.instant import Instant, State
from pyhudi.model.plans import RollbackPartition, RollbackPlan, RollbackRequest
from pyhudi.storage.base import Storage
from pyhudi.storage.local import FolderLinks
from pyhudi.storage.paths import parent
from pyhudi.transaction.instants import drop, reopen
from pyhudi.view.file_system_view import is_partition_metadata

__all__ = [
    "check_plan",
    "delete_files",
    "has_logs_of",
    "remove_instant",
    "requests_of",
    "requests_of_slices",
    "undo_files",
]

_COMMAND_TOKEN = "1-0-1"  # Hudi's token of logs that no task writes


# ---- planning --------------------------------------------------------------------------------------------------------


def requests_of(target: Instant, meta: MetaClient) -> tuple[RollbackRequest, ...]:
    """Return one request per file that the target wrote.

    A completed target's files are in its body; a pending one's are in its markers, or without markers in the folders.
    If a power cut may have lost some markers but not their files, both are read.
    """
    storage = meta.storage
    if target.is_completed:
        stats = meta.commits.metadata(target).stats()
        requests = _of_paths((path for stat in stats for path in stat.paths), target, storage)
        requests += requests_of_slices(target, meta)
    else:
        has_markers = bool(storage.list(marker_folder(target.requested_time)))
        marked = _of_markers(target, storage) if has_markers else []
        in_folders = _of_folders(target, meta, marked) if not has_markers or not storage.keeps_order else []
        requests = [*in_folders, *marked]
    unique = {(r.partition_path, r.files_to_be_deleted, *r.log_blocks_to_be_deleted): r for r in requests}
    return tuple(unique[key] for key in sorted(unique))


def requests_of_slices(target: Instant, meta: MetaClient) -> tuple[RollbackRequest, ...]:
    """Below version 8: the log files in the slices that the target opened, which carry its instant in their names.

    Later writes to them are undone already. If they stayed, they would count as slices without a base file and, once
    the timeline has moved on, as slices of an archived commit.
    """
    if meta.config.format.has_own_log_files or not meta.config.is_merge_on_read:
        return ()
    requests = []
    for path in _list_files(target, meta.storage):
        partition_path, _, name = path.rpartition("/")
        if LogFileName.parse(name) is not None:
            requests.append(RollbackRequest(partition_path, files_to_be_deleted=(_absolute(meta.storage, path),)))
    return tuple(sorted(requests, key=lambda request: request.files_to_be_deleted))


def has_logs_of(instant: Instant, storage: Storage) -> bool:
    """True if log files have the instant in their names. Below version 8, those of the slices that it opened do."""
    return any(LogFileName.parse(path.rpartition("/")[2]) is not None for path in _list_files(instant, storage))


def _of_paths(paths: Iterable[str], target: Instant, storage: Storage) -> list[RollbackRequest]:
    requests = []
    for path in paths:
        partition_path, _, name = path.rpartition("/")
        log = LogFileName.parse(name)
        if log is None or log.instant_time == target.requested_time:
            requests.append(RollbackRequest(partition_path, files_to_be_deleted=(_absolute(storage, path),)))
        elif (entry := storage.stat(path)) is not None:
            requests.append(
                _of_blocks(partition_path, log.file_id, log.instant_time, {path: entry.size_bytes}, storage)
            )
    return requests


def _of_blocks(
    partition_path: str, file_id: str, base_instant: str, logs: dict[str, int], storage: Storage
) -> RollbackRequest:
    # Hudi writes these paths with a scheme, and those of files to delete without one.
    blocks = {storage.full_path(path): size for path, size in logs.items()}
    return RollbackRequest(partition_path, file_id, base_instant, log_blocks_to_be_deleted=blocks)


def _of_markers(target: Instant, storage: Storage) -> list[RollbackRequest]:
    requests = []
    for marker in list_markers(storage, target.requested_time):
        partition_path, _, name = marker.data_path.rpartition("/")
        base = BaseFileName.parse(name)
        if marker.io_type == APPEND and base is not None:
            # Markers of writers before 0.15 name the base file whose logs they append to.
            requests += _of_slice(partition_path, base.file_id, base.instant_time, target, storage)
        elif base is not None:
            # As in Hudi, only plans made from markers name a base file's group and instant.
            files = (_absolute(storage, marker.data_path),)
            requests.append(RollbackRequest(partition_path, base.file_id, base.instant_time, files))
        else:
            requests += _of_paths([marker.data_path], target, storage)
    return requests


def _of_folders(target: Instant, meta: MetaClient, marked: list[RollbackRequest]) -> list[RollbackRequest]:
    """Find the files of a pending target in the folders, except slices with log blocks that markers have named."""
    storage = meta.storage
    slices = {(r.partition_path, r.file_id, r.latest_base_instant) for r in marked if r.log_blocks_to_be_deleted}
    blocks = [
        request
        for request in _of_profile(target, meta)
        if (request.partition_path, request.file_id, request.latest_base_instant) not in slices
    ]
    return [*_of_paths(_list_files(target, storage), target, storage), *blocks]


def _list_files(target: Instant, storage: Storage) -> Iterator[str]:
    """Data files with the instant in their names in all partitions, or in all folders if a power cut may have lost a
    folder's partition metadata.
    """
    folders, links = [""], FolderLinks(storage.root)
    while folders:
        entries = storage.list(folders.pop())
        for entry in (entry for entry in entries if entry.is_dir and entry.path != ".hoodie"):
            links.follow(entry)
            folders.append(entry.path)
        if storage.keeps_order and not any(is_partition_metadata(entry.name) for entry in entries):
            continue
        for entry in (entry for entry in entries if not entry.is_dir):  # a partition may have a file's name
            base, log = BaseFileName.parse(entry.name), LogFileName.parse(entry.name)
            instant_time = base.instant_time if base is not None else log.instant_time if log is not None else None
            if instant_time == target.requested_time:
                yield entry.path


def _of_profile(target: Instant, meta: MetaClient) -> list[RollbackRequest]:
    """Return log blocks of a pending write, in the slices that its inflight file announced for update."""
    if meta.config.format.has_own_log_files or target.state is not State.INFLIGHT:
        return []
    storage = meta.storage
    try:
        profile = meta.reader.profile(target)
    except CorruptFile:  # a power cut lost its content
        slices = _slices_with_logs(storage)
    else:
        slices = {
            (partition_path, stat.file_id, str(stat.prev_commit))
            for partition_path, stats in profile.partition_to_write_stats.items()
            for stat in stats
            if stat.file_id and stat.prev_commit not in (None, "null")
        }
    return [request for slice in sorted(slices) for request in _of_slice(*slice, target, storage)]


def _slices_with_logs(storage: Storage) -> set[tuple[str, str, str]]:
    """Return the partition path, file id and base instant of all slices with log files."""
    logs = ((parent(entry.path), LogFileName.parse(entry.name)) for entry in storage.walk(""))
    return {
        (partition_path, log.file_id, log.instant_time)
        for partition_path, log in logs
        if log is not None and not partition_path.startswith(META_FOLDER)
    }


def _of_slice(
    partition_path: str, file_id: str, base_instant: str, target: Instant, storage: Storage
) -> list[RollbackRequest]:
    """Return a request for the log files of a slice that hold blocks of the target."""
    logs = {
        path: size
        for path, size, _ in _logs(partition_path, file_id, base_instant, storage)
        if any(block.instant_time == target.requested_time for block in _blocks(storage, path))
    }
    return [_of_blocks(partition_path, file_id, base_instant, logs, storage)] if logs else []


def _logs(
    partition_path: str, file_id: str, base_instant: str, storage: Storage
) -> Iterator[tuple[str, int, LogFileName]]:
    """Yield the path, size in bytes and name of the log files of one slice, going by their names."""
    for entry in storage.list(partition_path):
        name = LogFileName.parse(entry.name)
        if name is not None and (name.file_id, name.instant_time) == (file_id, base_instant):
            yield entry.path, entry.size_bytes, name


def _blocks(storage: Storage, path: str) -> list[LogBlock]:
    """Return the valid blocks of a log file; none when a dead writer left it without a complete header."""
    try:
        return [block for block in scan_log(storage, path) if isinstance(block, LogBlock)]
    except CorruptFile:
        return []


def _absolute(storage: Storage, path: str) -> str:
    """Return the path as Hudi writes those of files to delete: absolute, without a scheme on a local disk."""
    root = storage.root.removeprefix("file://").removeprefix("file:")
    return f"{root.rstrip('/')}/{path}"


# ---- undoing ---------------------------------------------------------------------------------------------------------


def delete_files(paths: Iterable[str], storage: Storage) -> None:
    """Delete files of an instant; the deletions outlast a power cut."""
    storage.sync([path for path in paths if storage.delete(path)])


def remove_instant(instant: Instant, meta: MetaClient, paths: Iterable[str]) -> None:
    """Remove an instant from the timeline, with the files that it wrote. Hold the lock.

    A completed instant is made invisible first. A crash in between leaves it inflight, and the next call repeats this.
    """
    pending = reopen(instant, meta) if instant.is_completed else instant
    delete_files(paths, meta.storage)
    drop(pending, meta)


@dataclass
class _Undone:
    deleted: list[str] = field(default_factory=list)
    command_logs: dict[str, int] = field(default_factory=dict)
    failed_logs: dict[str, int] = field(default_factory=dict)


def undo_files(
    plan: RollbackPlan, rollback_time: str, storage: Storage, *, is_repeated: bool = False
) -> dict[str, RollbackPartition]:
    """Execute the plan; return the results by partition path.

    A moved table has other absolute paths, so only partition and file name count. Raises CorruptFile for a plan that
    names files which the target did not write.

    Args:   is_repeated: an earlier attempt has done all the work, so no command block is written again. The result
                names only existing log files: the undoing of another instant may have deleted its slice since.
    """
    target = plan.instant_to_rollback.commit_time
    undone: dict[str, _Undone] = {}
    check_plan(plan, storage)  # the whole plan, before the first file is deleted
    for request in plan.requests:
        partition = undone.setdefault(request.partition_path, _Undone())
        to_delete = [*request.files_to_be_deleted]
        commanded = False
        for path, size in request.log_blocks_to_be_deleted.items():
            log = LogFileName.parse(path.rpartition("/")[2])
            if log is not None and log.instant_time == target:
                to_delete.append(path)  # from version 8 on a log file has one writer
                continue
            commanded = True
            if not is_repeated or storage.stat(data_path(request.partition_path, path.rpartition("/")[2])) is not None:
                partition.failed_logs[path] = size
        for path in to_delete:
            storage.delete(data_path(request.partition_path, path.rpartition("/")[2]))
            partition.deleted.append(path)
        if commanded:
            command = _command(request, target, rollback_time, storage, is_repeated=is_repeated)
            if command is not None:
                partition.command_logs[storage.full_path(command[0])] = command[1]
    # Before the target's instant files are deleted: without them a reappearing file could not be identified.
    storage.sync(
        data_path(partition_path, path.rpartition("/")[2])
        for partition_path, partition in undone.items()
        for path in (*partition.deleted, *partition.command_logs)
    )
    return {
        path: RollbackPartition(path, tuple(partition.deleted), (), partition.command_logs, partition.failed_logs)
        for path, partition in undone.items()
    }


def check_plan(plan: RollbackPlan, storage: Storage) -> None:
    """Raise CorruptFile when a plan names files that its instant did not write: some file is wrong."""
    for request in plan.requests:
        _check(request, plan.instant_to_rollback.commit_time, storage)


def _check(request: RollbackRequest, target: str, storage: Storage) -> None:
    unexpected = [path for path in request.files_to_be_deleted if instant_of(path.rpartition("/")[2]) != target]
    if ".." in request.partition_path.split("/") or request.partition_path.startswith((".hoodie", "/")):
        unexpected.append(request.partition_path)
    if request.log_blocks_to_be_deleted and "/" in request.file_id + request.latest_base_instant:
        unexpected.append(request.file_id)
    if unexpected:
        raise CorruptFile(
            f"{storage.root}: the plan to roll back {target} names {unexpected[0]!r:.300}, which that instant did not "
            f"write. Nothing was deleted for it; check the rollback.requested file, and the markers in "
            f"{marker_folder(target)}."
        )


def _command(
    request: RollbackRequest, target: str, rollback_time: str, storage: Storage, *, is_repeated: bool
) -> tuple[str, int] | None:
    """Path and size of the log file that takes back the target's blocks of a slice; an earlier attempt's counts, and
    is not written again when `is_repeated`.
    """
    partition_path, file_id, base_instant = request.partition_path, request.file_id, request.latest_base_instant
    marked_paths = {marker.data_path for marker in list_markers(storage, rollback_time)}
    block = rollback_block(rollback_time, target)
    while True:
        version = 0
        for path, size, name in _logs(partition_path, file_id, base_instant, storage):
            blocks = _blocks(storage, path) if name.write_token == _COMMAND_TOKEN else []
            if any(each.rollback_target == target for each in blocks):
                return path, size
            if path in marked_paths and not blocks and storage.delete(path):
                continue  # an attempt died here: a file without a block must not be listed
            version = max(version, name.version)
        if is_repeated:
            return None
        path = data_path(partition_path, str(LogFileName(file_id, base_instant, version + 1, _COMMAND_TOKEN)))
        create_marker(storage, rollback_time, path, APPEND)
        try:
            storage.create_new(path, block)
        except PathExists:
            continue  # a command that another rollback is writing: it must stay
        return path, len(block)
