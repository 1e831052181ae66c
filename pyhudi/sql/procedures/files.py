"""Procedures on files: file slices, sizes, the fate of one file, broken files, log blocks and records, folders."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np
import pyarrow as pa

from pyhudi.errors import CorruptFile
from pyhudi.formats.base import open_base_file
from pyhudi.formats.log.envelope import CorruptRange
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import Body, change_of
from pyhudi.model.file_group import FileSlice, LogFile
from pyhudi.model.filenames import LogFileName, data_path, instant_of
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.timeline import Timeline
from pyhudi.sql.procedures.procedure import TABLE, ProcedureCall, Row, Rows, procedure
from pyhudi.storage import open_storage
from pyhudi.storage.base import FileInfo, Storage
from pyhudi.view.consistent_read import read_consistently
from pyhudi.view.file_system_view import FileSystemView, Visibility, is_partition_metadata, listed_partitions

__all__ = ["log_sizes", "matches", "view_with_replaced"]

_ALL = "ALL_PARTITIONS"
_VIEW = (
    f"{TABLE}, max_instant string=, include_max boolean=false, include_in_flight boolean=false, "
    f"exclude_compaction boolean=false, limit integer=10, path_regex string={_ALL}, filter string="
)
_SLICE = (
    "partition string, file_id string, base_instant string, data_file string, data_file_size long, "
    "num_delta_files long, total_delta_file_size long"
)
_LOGS = f"{TABLE}, log_file_path_pattern string!"


def matches(partition_path: str, pattern: str) -> bool:
    """True if a partition's path matches a pattern; "" and ALL_PARTITIONS match all."""
    return pattern in ("", _ALL) or fnmatchcase(partition_path, pattern.strip("/"))


def view_with_replaced(meta: MetaClient, as_of: str | None = None) -> FileSystemView:
    """The visible file groups, and the replaced ones that are not cleaned yet."""
    rules = replace(Visibility.of(meta, as_of), replaced=frozenset())
    partitions = sorted(listed_partitions(meta.storage))
    return FileSystemView({path: rules.file_groups(path, files) for path, files in partitions}, as_of)


def log_sizes(file_slice: FileSlice) -> tuple[int, int]:
    """The bytes of a slice's first log files (below version 8: of all), and of its later ones."""
    first, later = _logs(file_slice)
    return sum(log.size_bytes for log in first), sum(log.size_bytes for log in later)


def _logs(file_slice: FileSlice) -> tuple[list[LogFile], list[LogFile]]:
    """A slice's log files, newest first: those of its base instant, and the others."""
    logs = file_slice.log_files[::-1]
    first = [log for log in logs if log.instant_time == file_slice.base_instant]
    return first, [log for log in logs if log.instant_time != file_slice.base_instant]


# ---- slices


@procedure(_VIEW, f"{_SLICE}, delta_files string")
def show_fsview_all(call: ProcedureCall) -> Rows:
    """All slices of all file groups, `path_regex` a pattern of partition paths with `*`."""
    for path, groups in _view(call, view_with_replaced).groups.items():
        if matches(path, call.text("path_regex")):
            for file_slice in (file_slice for group in groups for file_slice in group.slices):
                yield *_slice(call, file_slice), _logs_text(call, file_slice.log_files[::-1], ", ")


@procedure(
    f"{_VIEW}, partition_path string={_ALL}, merge boolean=true",
    f"{_SLICE}, delta_size_compaction_scheduled long, delta_size_compaction_unscheduled long, "
    "delta_to_base_radio_compaction_scheduled double, delta_to_base_radio_compaction_unscheduled double, "
    "delta_files_compaction_scheduled string, delta_files_compaction_unscheduled string",
)
def show_fsview_latest(call: ProcedureCall) -> Rows:
    """The newest slice of each file group."""
    one, other = call.text("path_regex"), call.text("partition_path")
    if _ALL not in (one, other):
        raise call.error("give path_regex or partition_path, not both.")
    view = _view(call, FileSystemView.load)
    for path in view.partitions():
        if matches(path, other if one == _ALL else one):
            for file_slice in view.slices(path):
                row = _slice(call, file_slice)
                base_bytes, log_bytes = int(str(row[4])), int(str(row[6]))
                # The write of every visible log file is complete, so the next compaction will merge all of them.
                ratios = (log_bytes / base_bytes, 0.0) if base_bytes else (-1.0, -1.0)
                yield *row, log_bytes, 0, *ratios, *(_logs_text(call, logs, ",") for logs in _logs(file_slice))


def _slice(call: ProcedureCall, file_slice: FileSlice) -> Row:
    base, logs = file_slice.base_file, file_slice.log_files
    base_fields = ("", 0) if base is None else (call.storage.full_path(base.path), base.size_bytes)
    sizes = (len(logs), sum(log.size_bytes for log in logs))
    return file_slice.group.partition_path, file_slice.group.file_id, file_slice.base_instant, *base_fields, *sizes


def _logs_text(call: ProcedureCall, logs: Iterable[LogFile], separator: str) -> str:
    texts = (f"HoodieLogFile(pathStr={call.storage.full_path(log.path)}, fileSize={log.size_bytes})" for log in logs)
    return f"[{separator.join(texts)}]"


def _view(call: ProcedureCall, newest: Callable[[MetaClient], FileSystemView]) -> FileSystemView:
    """The table's files as of the instant in the arguments; `newest`: the current files."""
    last, including = call.text("max_instant"), call.flag("include_max")

    def load(meta: MetaClient) -> FileSystemView:
        counted = [_completed(instant, call) for instant in meta.timeline]
        meta = replace(meta, timeline=Timeline(tuple(counted), meta.timeline.active_since))
        if not last:
            return newest(meta)
        times = [i.requested_time for i in counted]
        times = [time for time in times if time < last or (including and time == last)]
        return FileSystemView.load(meta, as_of=max(times, default=""))

    return read_consistently(call.table.state(), load)


def _completed(instant: Instant, call: ProcedureCall) -> Instant:
    """An instant; with include_in_flight a pending write counts as completed."""
    if call.flag("include_in_flight") and instant.state is State.INFLIGHT and instant.action.is_commit:
        return instant.at(State.COMPLETED)
    return instant


# ---- files


@procedure(
    "table string!, partition_path string=, limit integer=10",
    "commit_time string, min long, 10th double, 50th double, avg double, 95th double, max long, "
    "num_files integer, std_dev double",
)
def stats_file_sizes(call: ProcedureCall) -> Rows:
    """Sizes in bytes of the files of each instant, and of all."""
    sizes: dict[str, list[int]] = {}
    for path, files in listed_partitions(call.storage):
        if matches(path, call.text("partition_path")):
            for file in files:
                sizes.setdefault(_instant_of(file), []).append(file.size_bytes)
    sizes.pop("", None)
    yield from ((time, *_distribution(sizes[time])) for time in sorted(sizes))
    yield "ALL", *_distribution([size for instant_sizes in sizes.values() for size in instant_sizes])


def _instant_of(file: FileInfo) -> str:
    return "" if is_partition_metadata(file.name) else instant_of(file.name) or ""


def _distribution(sizes: Sequence[int]) -> Row:
    """Smallest, 10th, 50th percentile, mean, 95th percentile, largest, count, standard deviation of a sample."""
    if not sizes:
        return (0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0)
    ordered = np.sort(np.asarray(sizes, np.float64))
    tenth, half, most = np.percentile(ordered, (10, 50, 95), method="weibull").tolist()
    deviation = float(np.std(ordered, ddof=1)) if len(ordered) > 1 else 0.0
    return min(sizes), tenth, half, float(np.mean(ordered)), most, max(sizes), len(sizes), deviation


@procedure(
    f"{TABLE}, partition string, file string!, filter string=",
    "status string!, action string, instant string, timeline string, full_path string",
)
def show_file_status(call: ProcedureCall) -> Rows:
    """Tell whether a file exists, or which action deleted it."""
    name, partition = call.text("file"), call.text("partition")
    if call.meta.config.partition_fields and "partition" not in call.values:
        raise call.error(f"{call.table.path} has partitions; say in which one the file is.")
    reader = call.meta.reader
    bodies: dict[ActionKind, Callable[[Instant], Body]] = {
        ActionKind.CLEAN: reader.clean_metadata,
        ActionKind.ROLLBACK: reader.rollback_metadata,
        ActionKind.RESTORE: reader.restore_metadata,
    }
    for action, body in bodies.items():
        for instant in call.completed(action):
            if any(name in change.deleted for change in change_of(body(instant)).partitions.values()):
                return [("deleted", action.value, instant.requested_time, "active", "")]
    info = call.storage.stat(data_path(partition, name))
    if info is None:
        return [("unknown", "", "", "", "")]
    return [("exist", "", "", "active", call.storage.full_path(info.path).removeprefix("file:"))]


@procedure(
    "path string!, parallelism integer=100, limit integer=100, needDelete boolean=false, partitions string=, "
    "instants string=, filter string=",
    "path string",
)
def show_invalid_parquet(call: ProcedureCall) -> Rows:
    """Base files that can't be opened; `needDelete => true` deletes them."""
    partitions = [path.strip("/ ") for path in call.texts("partitions")]
    instants = call.texts("instants")
    for _, files in listed_partitions(call.storage, partitions or None):
        for file in files:
            is_base_file = file.name.endswith(".parquet") and not is_partition_metadata(file.name)
            if is_base_file and (not instants or _instant_of(file) in instants) and _is_broken(call, file):
                yield (call.storage.full_path(file.path),)


def _is_broken(call: ProcedureCall, file: FileInfo) -> bool:
    """True if a base file can't be opened. `needDelete` then deletes it."""
    try:
        with open_base_file(call.storage, file.path):
            return False
    except CorruptFile:
        if call.flag("needDelete"):
            call.storage.delete(file.path)
        return True


# ---- log files


def _log_files(call: ProcedureCall) -> list[str]:
    """The log files whose paths match the pattern, which may begin with the table's folder."""
    root = call.storage.full_path("").rstrip("/")
    pattern = call.text("log_file_path_pattern")
    for start in (root, root.partition(":")[2], call.storage.root):
        pattern = pattern.removeprefix(start.rstrip("/"))
    files = (file for _, files in listed_partitions(call.storage) for file in files if LogFileName.parse(file.name))
    return sorted(file.path for file in files if fnmatchcase(file.path, pattern.lstrip("/")))


def _blocks(call: ProcedureCall, paths: Iterable[str]) -> Iterator[LogBlock | CorruptRange]:
    return (block for path in paths for block in scan_log(call.storage, path))


@procedure(
    f"{_LOGS}, limit integer=10, filter string=",
    "instant_time string, record_count integer, block_type string, header_metadata string, footer_metadata string",
)
def show_logfile_metadata(call: ProcedureCall) -> Rows:
    """The blocks of log files; the pattern is a path with `*`."""
    for block in _blocks(call, _log_files(call)):
        if isinstance(block, CorruptRange):
            yield "", 0, "CORRUPT_BLOCK", "{}", "{}"
            continue
        records = block.rows().num_rows if block.is_data else block.deletes().keys.num_rows if block.is_delete else 0
        header = json.dumps({key.name: value for key, value in block.frame.header.items()}, separators=(",", ":"))
        yield block.instant_time, records, f"{block.frame.block_type.name}_BLOCK", header, "{}"


@procedure(f"{_LOGS}, merge boolean=false, limit integer=10, filter string=", "records string")
def show_logfile_records(call: ProcedureCall) -> Rows:
    """The records of log files as JSON; if merged, only the last one of each key."""
    paths = _log_files(call)
    if not paths:
        raise call.error(f"no log file has the form {call.text('log_file_path_pattern')!r:.300}.")
    return _records(call, paths)


def _records(call: ProcedureCall, paths: Iterable[str]) -> Iterator[Row]:
    newest: dict[object, str] = {}
    for block in _blocks(call, paths):
        if isinstance(block, CorruptRange) or not block.is_data:
            continue
        for batch in _plain(block.rows()).to_batches():
            for record in batch.to_pylist():
                text = json.dumps(record, default=_text, ensure_ascii=False)
                if call.flag("merge"):
                    newest[record.get("_hoodie_record_key")] = text
                else:
                    yield (text,)
    yield from ((text,) for text in newest.values())


def _plain(rows: pa.Table) -> pa.Table:
    """Convert dates to days and times to their stored numbers, as in Avro."""
    for place, column in enumerate(rows.schema):
        if pa.types.is_temporal(column.type):
            kind = pa.int32() if column.type.bit_width == 32 else pa.int64()
            rows = rows.set_column(place, column.name, rows.column(place).cast(kind))
    return rows


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


# ---- folders

_UNITS = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB"))
_UNLIMITED = -1  # a file system's value for no quota


@procedure(
    "path string!, is_sub boolean=false, sort boolean=true, limit integer=100, filter string=",
    "path_num long, file_num long, storage_size long, storage_size(unit) string, storage_path string, "
    "space_consumed long, quota long, space_quota long",
)
def show_fs_path_detail(call: ProcedureCall) -> Rows:
    """Folders, files and bytes below a path, or below each of its entries."""
    storage = open_storage(call.text("path"), call.storage_options)
    places = [entry.path for entry in storage.list("")] if call.flag("is_sub") else [""]
    by = 2 if call.flag("sort") else 1
    return sorted((_summary(storage, place) for place in places), key=lambda row: int(str(row[by])), reverse=True)


def _summary(storage: Storage, place: str) -> Row:
    info = storage.stat(place) if place else None
    if info is not None and not info.is_dir:
        folders, files, size = 0, 1, info.size_bytes
    else:
        entries = list(storage.walk(place))
        paths = [entry.path for entry in entries if not entry.is_dir]
        below = {parent for path in paths for parent in _parents(path, place)}
        below |= {entry.path for entry in entries if entry.is_dir}
        folders, files, size = len(below) + 1, len(paths), sum(e.size_bytes for e in entries if not e.is_dir)
    readable = next((f"{size / unit:.2f}{name}" for unit, name in _UNITS if size >= unit), f"{size}B")
    # The last columns have Hudi's names and values.
    return folders, files, size, readable, storage.full_path(place).rstrip("/"), _UNLIMITED, size, _UNLIMITED


def _parents(path: str, place: str) -> list[str]:
    """The folders between a place and a file."""
    parts = path.removeprefix(place).strip("/").split("/")[:-1]
    return ["/".join([place, *parts[: count + 1]]).strip("/") for count in range(len(parts))]
