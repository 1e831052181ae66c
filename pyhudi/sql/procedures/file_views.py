"""The table's files: slices, sizes, the fate of one file, broken files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np

from pyhudi.errors import ConfigError, CorruptFile
from pyhudi.formats.base import open_base_file
from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import FileSlice, LogFile
from pyhudi.model.filenames import BaseFileName, LogFileName, data_path
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.timeline import Timeline
from pyhudi.sql.procedures.procedure import Procedure, ProcedureCall, Row, Rows
from pyhudi.sql.procedures.timeline import rollbacks_of
from pyhudi.storage.base import FileInfo
from pyhudi.view.consistent_read import read_consistently
from pyhudi.view.file_system_view import FileSystemView, Visibility, is_partition_metadata, listed_partitions

__all__ = ["PROCEDURES", "log_sizes", "matches", "view_with_replaced"]

_ALL = "ALL_PARTITIONS"
_VIEW = (
    "table string, path string, max_instant string=, include_max boolean=false, include_in_flight boolean=false, "
    "exclude_compaction boolean=false, limit integer=10, path_regex string=ALL_PARTITIONS, filter string="
)
_SLICE = (
    "partition string, file_id string, base_instant string, data_file string, data_file_size long, "
    "num_delta_files long, total_delta_file_size long"
)


def matches(partition_path: str, pattern: str) -> bool:
    """Whether a partition's path has a pattern's form; "" and ALL_PARTITIONS fit all."""
    return pattern in ("", _ALL) or fnmatchcase(partition_path, pattern.strip("/"))


def view_with_replaced(meta: MetaClient, as_of: str | None = None) -> FileSystemView:
    """The visible file groups, and the replaced ones that wait for cleaning."""
    rules = replace(Visibility.of(meta, as_of), replaced=frozenset())
    partitions = sorted(listed_partitions(meta.storage))
    return FileSystemView({path: rules.file_groups(path, files) for path, files in partitions}, as_of)


def log_sizes(file_slice: FileSlice) -> tuple[int, int]:
    """Bytes of a slice's first log files (below version 8: of all), and of its later ones."""
    begun = sum(log.size_bytes for log in file_slice.log_files if log.instant_time == file_slice.base_instant)
    return begun, sum(log.size_bytes for log in file_slice.log_files) - begun


# ---- slices


def _show_all(call: ProcedureCall) -> Rows:
    view = _view(call, replaced=True)
    return call.limited(
        (*_slice(call, file_slice), _logs_text(call, reversed(file_slice.log_files), ", "))
        for path, groups in view.groups.items()
        if matches(path, call.text("path_regex"))
        for group in groups
        for file_slice in group.slices
    )


def _show_latest(call: ProcedureCall) -> Rows:
    one, other = call.text("path_regex"), call.text("partition_path")
    if _ALL not in (one, other):
        raise ConfigError(f"{call.procedure}: give path_regex or partition_path, not both.")
    pattern = other if one == _ALL else one
    view = _view(call)
    return call.limited(
        _latest_row(call, file_slice)
        for path in view.partitions()
        if matches(path, pattern)
        for file_slice in view.slices(path)
    )


def _latest_row(call: ProcedureCall, file_slice: FileSlice) -> Row:
    base_bytes = file_slice.base_file.size_bytes if file_slice.base_file is not None else 0
    log_bytes = sum(log.size_bytes for log in file_slice.log_files)
    # The write of every visible log file is complete, so all of them wait for the next compaction.
    ratios = (log_bytes / base_bytes, 0.0) if base_bytes else (-1.0, -1.0)
    logs = tuple(reversed(file_slice.log_files))
    begun = [log for log in logs if log.instant_time == file_slice.base_instant]
    later = [log for log in logs if log.instant_time != file_slice.base_instant]
    texts = (_logs_text(call, part, ",") for part in (begun, later))
    return (*_slice(call, file_slice), log_bytes, 0, *ratios, *texts)


def _slice(call: ProcedureCall, file_slice: FileSlice) -> Row:
    base = file_slice.base_file
    return (
        file_slice.group.partition_path,
        file_slice.group.file_id,
        file_slice.base_instant,
        call.storage.full_path(base.path) if base is not None else "",
        base.size_bytes if base is not None else 0,
        len(file_slice.log_files),
        sum(log.size_bytes for log in file_slice.log_files),
    )


def _logs_text(call: ProcedureCall, logs: Iterable[LogFile], separator: str) -> str:
    texts = (f"HoodieLogFile(pathStr={call.storage.full_path(log.path)}, fileSize={log.size_bytes})" for log in logs)
    return f"[{separator.join(texts)}]"


def _view(call: ProcedureCall, *, replaced: bool = False) -> FileSystemView:
    """The table's files as of the arguments' instant. `replaced`: also those that wait for cleaning."""
    last = call.text("max_instant")
    including = call.flag("include_max")

    def load(meta: MetaClient) -> FileSystemView:
        counted = [_completed(instant, call) for instant in meta.timeline]
        meta = replace(meta, timeline=Timeline(tuple(counted), meta.timeline.active_since))
        if not last:
            return FileSystemView.load(meta) if not replaced else view_with_replaced(meta)
        times = [
            i.requested_time for i in counted if i.requested_time < last or (including and i.requested_time == last)
        ]
        return FileSystemView.load(meta, as_of=max(times, default=""))

    return read_consistently(call.table.state(), load)


def _completed(instant: Instant, call: ProcedureCall) -> Instant:
    """An instant; include_in_flight makes a pending write count as a completed one."""
    if call.flag("include_in_flight") and instant.state is State.INFLIGHT and instant.action.is_commit:
        return instant.at(State.COMPLETED)
    return instant


# ---- sizes


def _stats_file_sizes(call: ProcedureCall) -> Rows:
    sizes: dict[str, list[int]] = {}
    for path, files in listed_partitions(call.storage):
        if matches(path, call.text("partition_path")):
            for file in files:
                sizes.setdefault(_instant_of(file) or "", []).append(file.size_bytes)
    sizes.pop("", None)
    every = [size for instant_sizes in sizes.values() for size in instant_sizes]
    rows = [(time, *_distribution(sizes[time])) for time in sorted(sizes)]
    return call.limited([*rows, ("ALL", *_distribution(every))])


def _instant_of(file: FileInfo) -> str | None:
    if is_partition_metadata(file.name):
        return None
    log = LogFileName.parse(file.name)
    if log is not None:
        return log.instant_time
    base = BaseFileName.parse(file.name)
    return base.instant_time if base is not None else None


def _distribution(sizes: Sequence[int]) -> Row:
    """Smallest, 10th, 50th percentile, mean, 95th percentile, largest, count, standard deviation of a sample."""
    if not sizes:
        return (0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0)
    ordered = np.sort(np.asarray(sizes, np.float64))
    tenth, half, most = np.percentile(ordered, (10, 50, 95), method="weibull")
    deviation = float(np.std(ordered, ddof=1)) if len(ordered) > 1 else 0.0
    mean = float(np.mean(ordered))
    return min(sizes), float(tenth), float(half), mean, float(most), max(sizes), len(sizes), deviation


# ---- one file


def _show_file_status(call: ProcedureCall) -> Rows:
    name, partition = call.text("file"), call.text("partition")
    if call.meta.config.partition_fields and "partition" not in call.values:
        raise ConfigError(f"{call.procedure}: {call.table.path} has partitions; say in which one the file is.")
    for instant in _deleters(call):
        if any(deleted.rpartition("/")[2] == name for deleted in _deleted_by(call, instant)):
            return [("deleted", instant.action.value, instant.requested_time, "active", "")]
    info = call.storage.stat(data_path(partition, name))
    if info is None:
        return [("unknown", "", "", "", "")]
    path = call.storage.full_path(info.path)
    return [("exist", "", "", "active", path.removeprefix("file:") if path.startswith("file:") else path)]


def _deleters(call: ProcedureCall) -> list[Instant]:
    return [
        *call.completed(ActionKind.CLEAN),
        *call.completed(ActionKind.ROLLBACK),
        *call.completed(ActionKind.RESTORE),
    ]


def _deleted_by(call: ProcedureCall, instant: Instant) -> Iterator[str]:
    if instant.action is ActionKind.CLEAN:
        for cleaned in call.meta.reader.clean_metadata(instant).partitions.values():
            yield from cleaned.deleted
        return
    for rollback in rollbacks_of(call.meta, instant):
        for partition in rollback.partitions.values():
            yield from partition.success_delete_files


def _show_invalid_parquet(call: ProcedureCall) -> Rows:
    partitions = [path.strip("/ ") for path in call.text("partitions").split(",") if path.strip()]
    instants = [time.strip() for time in call.text("instants").split(",") if time.strip()]
    return call.limited(
        (call.storage.full_path(file.path),)
        for path, files in listed_partitions(call.storage, partitions or None)
        for file in files
        if file.name.endswith(".parquet") and not is_partition_metadata(file.name)
        if not instants or _instant_of(file) in instants
        if _is_broken(call, file)
    )


def _is_broken(call: ProcedureCall, file: FileInfo) -> bool:
    """Whether a base file can't be opened. `needDelete` then deletes it."""
    try:
        with open_base_file(call.storage, file.path):
            return False
    except CorruptFile:
        if call.flag("needDelete"):
            call.storage.delete(file.path)
        return True


PROCEDURES = (
    Procedure.of(
        "show_fsview_all",
        _VIEW,
        f"{_SLICE}, delta_files string",
        _show_all,
        "All slices of all file groups, `path_regex` a pattern of partition paths with `*`.",
    ),
    Procedure.of(
        "show_fsview_latest",
        f"{_VIEW}, partition_path string=ALL_PARTITIONS, merge boolean=true",
        f"{_SLICE}, delta_size_compaction_scheduled long, delta_size_compaction_unscheduled long, "
        "delta_to_base_radio_compaction_scheduled double, delta_to_base_radio_compaction_unscheduled double, "
        "delta_files_compaction_scheduled string, delta_files_compaction_unscheduled string",
        _show_latest,
        "The newest slice of each file group.",
    ),
    Procedure.of(
        "stats_file_sizes",
        "table string!, partition_path string=, limit integer=10",
        "commit_time string, min long, 10th double, 50th double, avg double, 95th double, max long, "
        "num_files integer, std_dev double",
        _stats_file_sizes,
        "Sizes in bytes of the files of each instant, and of all.",
    ),
    Procedure.of(
        "show_file_status",
        "table string, path string, partition string, file string!, filter string=",
        "status string!, action string, instant string, timeline string, full_path string",
        _show_file_status,
        "Whether a file is there, and which action deleted it.",
    ),
    Procedure.of(
        "show_invalid_parquet",
        "path string!, parallelism integer=100, limit integer=100, needDelete boolean=false, partitions string=, "
        "instants string=, filter string=",
        "path string",
        _show_invalid_parquet,
        "Base files that can't be opened; `needDelete => true` deletes them.",
    ),
)
