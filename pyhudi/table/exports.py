"""Exports of a table: its rows in one file, its instants as JSON, or a copy of the whole table as of a commit.

A copy has the files of the slices that were the newest at the commit, byte by byte, so commit times and keys are kept.
Its timeline is that of the table up to the commit, plus a clean that marks older instants unreadable: older file slices
are not copied. The metadata table is rebuilt. `hoodie.properties` is written last; without it there is no table.

Below version 8 a log file may continue with blocks of later commits; the copy ends before them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.actions.create_table import check_files_writable
from pyhudi.arrow.kinds import is_bytes
from pyhudi.engine.base import as_engine
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError, CorruptFile, HudiError, PathNotFound, TableError, TableExists
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.formats.timeline.clean_plans import encode_clean_plan
from pyhudi.formats.timeline.instant_files import decode_avro_record
from pyhudi.interrupts import uninterrupted
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.partitions.registry import is_supported_in
from pyhudi.model.filenames import (
    EXPORTS_FOLDER,
    HEARTBEAT_FOLDER,
    INDEX_PIECES_FOLDER,
    LOCKS_FOLDER,
    META_FOLDER,
    METADATA_TABLE_FOLDER,
    PROPERTIES_PATH,
    TEMPORARY_FOLDER,
    InstantFileName,
)
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.options import WriteOptions
from pyhudi.model.plans import KEEP_LATEST_COMMITS, CleanPlan, RetainedInstant
from pyhudi.model.table_config import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT, METADATA_TO_BUILD
from pyhudi.progress_line import working
from pyhudi.result import Result, plain
from pyhudi.storage.base import FileInfo, Storage, as_storage_error
from pyhudi.table.calls import TableHandle, serve
from pyhudi.table.scan import Scan
from pyhudi.timeline.listing import instant_path, list_instant_files
from pyhudi.timeline.lsm_manifest import Manifest, load_manifest, write_manifest
from pyhudi.timeline.table_properties import create_table, load_table_config, table_exists
from pyhudi.transaction.instants import request
from pyhudi.view.file_system_view import LISTING_THREADS, FileSystemView, is_partition_metadata, listed_partitions

__all__ = ["EXPORTED_ACTIONS", "ExportedFile", "TableCopy", "copy_table", "export_instants", "export_rows"]


# ---- rows


@dataclass(frozen=True, slots=True, repr=False)
class ExportedFile(Result):
    """A file on this machine, or a folder of files. `items`: the number of items of the kind `kind`."""

    path: str
    items: int
    kind: Literal["rows", "instants"] = "rows"

    def __str__(self) -> str:
        return f"{self.path}: {self.items:,} {self.kind}"


_SUFFIXES = (".parquet", ".csv", ".arrow")


def export_rows(rows: Scan, path: str) -> ExportedFile:
    """`HudiTable.export`."""
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise ConfigError(
            f"export writes {', '.join(_SUFFIXES[:-1])} and {_SUFFIXES[-1]} files, found a name that ends in "
            f"{suffix!r}."
        )
    batches, temporary = rows.to_batches(), f"{path}.part"
    try:
        count = _write(batches, temporary, suffix)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return ExportedFile(path, count)


def _write(rows: pa.RecordBatchReader, path: str, suffix: str) -> int:
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    count = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for batch in rows:
            count += batch.num_rows
            yield batch

    if suffix == ".parquet":
        with pq.ParquetWriter(path, rows.schema, compression="zstd") as parquet:
            for batch in counted():
                parquet.write_batch(batch)
    elif suffix == ".csv":
        schema = pa.schema([pa.field(f.name, pa.string()) if _is_text_in_csv(f.type) else f for f in rows.schema])
        with pc.CSVWriter(path, schema) as lines:
            for batch in counted():
                columns = [_in_csv(column) for column in batch.columns]
                lines.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    else:
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, rows.schema) as arrow:
            for batch in counted():
                arrow.write_batch(batch)
    return count


def _is_text_in_csv(data_type: pa.DataType) -> bool:
    return is_bytes(data_type) or pa.types.is_nested(data_type)


def _in_csv(column: pa.Array) -> pa.Array:
    """A column as text that CSV can't hold otherwise: nested values as JSON, bytes as hexadecimal digits."""
    if not _is_text_in_csv(column.type):
        return column
    values = map(plain, column.to_pylist())
    is_nested = pa.types.is_nested(column.type)
    texts = [json.dumps(one, ensure_ascii=False) if is_nested and one is not None else one for one in values]
    return pa.array(texts, pa.string())


# ---- instants


EXPORTED_ACTIONS = ("clean", "commit", "deltacommit", "replacecommit", "rollback", "savepoint", "restore", "indexing")


def export_instants(
    meta: MetaClient,
    folder: str,
    actions: Collection[str] = EXPORTED_ACTIONS,
    limit: int | None = None,
    newest_first: bool = False,
) -> ExportedFile:
    """`HistoryGroup.export`."""
    kinds = {kind.value for kind in ActionKind}
    unknown = sorted(set(actions) - kinds)
    if unknown:
        raise ConfigError(f"There is no action {unknown[0]!r:.100}; instants have {', '.join(sorted(kinds))}.")
    instants = [instant for instant in meta.timeline.completed() if instant.action.value in actions]
    instants = (instants[::-1] if newest_first else instants)[:limit]
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for instant in instants:
        name = instant_path(instant, meta.config).rpartition("/")[2]
        (place / name).write_text(_as_json(meta, instant), encoding="utf-8")
    return ExportedFile(str(place), len(instants), "instants")


def _as_json(meta: MetaClient, instant: Instant) -> str:
    body = meta.reader.read_body(instant, State.COMPLETED)
    if body[:1] == b"{" or not body:
        return body.decode("utf-8", "replace")
    record: Mapping[str, object] = decode_avro_record(body, f"{instant.requested_time}.{instant.action.value}")
    return json.dumps(record, default=str, indent=2, ensure_ascii=False)


# ---- the whole table


@dataclass(frozen=True, slots=True, repr=False)
class TableCopy(Result):
    """`instant_time`: the newest commit of the copy. `files`, `size_bytes`: of its data; `metadata`: partitions of its
    metadata table.
    """

    path: str
    instant_time: str
    files: int
    size_bytes: int
    metadata: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path} as of {self.instant_time}: {self.files:,} files, {self.size_bytes:,} bytes"


@dataclass(frozen=True, slots=True)
class _Part:
    """One file to copy. `size_bytes`: the number of bytes to copy from its begin; None: all."""

    info: FileInfo
    size_bytes: int | None = None


_CHUNK_BYTES = 8 << 20
# Valid for one place and one moment only: locks, running writes, exports.
_LEFT_OUT = tuple(
    f"{folder}/"
    for folder in (
        *(METADATA_TABLE_FOLDER, TEMPORARY_FOLDER, HEARTBEAT_FOLDER, LOCKS_FOLDER),
        *(INDEX_PIECES_FOLDER, EXPORTS_FOLDER),
    )
)
_BEGINS_WITH_TIME = re.compile(r"(\d{14}|\d{17})(?!\d)", re.ASCII)


def copy_table(handle: TableHandle, commit: Instant, target: Storage) -> TableCopy:
    """`HudiTable.maintenance.copy_to`."""
    from pyhudi.services.metadata_table import rebuild_metadata

    meta = handle.meta
    check_files_writable(meta.config)
    if table_exists(target):
        raise TableExists(f"There is a Hudi table at {target.root} already. Copy to another path.")
    if target.list(""):
        raise ConfigError(f"{target.root} is not empty, and a copy needs an empty folder. Give another path.")
    names = (n for n in meta.config.metadata_partitions if is_supported_in(n, meta.config.table_version))
    to_build = {METADATA_TO_BUILD: ",".join(names)} if meta.config.metadata_partitions else {}
    with working("copy", target.root) as work, _removed_on_error(target):
        history = meta.config.history_path
        manifest = load_manifest(meta.storage, history) if meta.config.layout.has_history_tree else None
        data = list(_data_parts(meta, commit))
        parts = [*data, *_meta_parts(meta, commit, manifest)]
        _copy(parts, meta.storage, target)
        if manifest is not None and manifest.version:
            write_manifest(target, history, manifest)
        for part in _timeline_parts(meta, commit):  # in order, because a store may set the times of files by itself
            _copy_file(part, meta.storage, target)
        target.sync([part.info.path for part in parts])
        create_table(
            target, meta.config.with_changes(to_build, (METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT)).properties
        )
        _serve(target, partial(_retain, commit=commit))
        if load_table_config(target).metadata_to_build:
            _serve(target, rebuild_metadata)
        sizes = [p.size_bytes or p.info.size_bytes for p in data if not is_partition_metadata(p.info.name)]
        built = load_table_config(target).metadata_partitions
        work.result = result = TableCopy(target.root, commit.requested_time, len(sizes), sum(sizes), built)
    return result


@contextmanager
def _removed_on_error(target: Storage) -> Iterator[None]:
    """Around a copy: delete its files if it fails."""
    try:
        yield
    except BaseException:
        with uninterrupted(), suppress(HudiError, OSError):  # the first error says more
            target.delete(PROPERTIES_PATH)
            for entry in target.list(""):
                target.delete_tree(entry.path) if entry.is_dir else target.delete(entry.path)
        raise


def _data_parts(meta: MetaClient, commit: Instant) -> Iterator[_Part]:
    """The files of the slices that the commit's readers saw, and the metadata files of their partitions."""
    files_by_partition = dict(listed_partitions(meta.storage))
    view = FileSystemView.load(meta, as_of=commit.requested_time, listed=files_by_partition)
    is_appended_to = not meta.config.format.has_own_log_files
    for partition in view.partitions():
        slices = view.slices(partition)
        logs = {log.path for one in slices for log in one.log_files}
        paths = logs | {one.base_file.path for one in slices if one.base_file is not None}
        for info in files_by_partition[partition]:
            if info.path in paths:
                end = _end_of(meta.storage, info.path, commit) if is_appended_to and info.path in logs else None
                if end != 0:  # 0: all of its blocks are later; its name only has the slice's time
                    yield _Part(info, end)
            elif slices and is_partition_metadata(info.name):
                yield _Part(info)


def _end_of(storage: Storage, path: str, commit: Instant) -> int | None:
    """The position of the first block of a later commit in a log file; None if there is none."""
    blocks = (block for block in scan_log(storage, path) if isinstance(block, LogBlock))
    return next((block.frame.offset for block in blocks if block.instant_time > commit.requested_time), None)


def _timeline_parts(meta: MetaClient, commit: Instant) -> list[_Part]:
    """The files of the instants up to the commit that a reader of its files needs.

    Savepoints are not copied, because their files are not; nor are saved commits older than archived ones: the timeline
    would seem to begin with them. The plan of a pending compaction is copied, because it assigns log files to slices.
    Below version 8 pending writes are copied as pending, because log files may have their blocks.
    """
    other_savepoints = {i.requested_time for i in meta.timeline.of([ActionKind.SAVEPOINT])} - {commit.requested_time}
    since = meta.timeline.active_since or ""
    newest: dict[tuple[str, ActionKind], State] = {}  # the last copied state of each instant
    for one in meta.timeline.up_to(commit.requested_time):
        is_passed = one.requested_time in other_savepoints and one.requested_time < since
        if one.action is ActionKind.SAVEPOINT or is_passed:
            continue
        if one.is_completed or (not meta.config.format.has_own_log_files and one.action is ActionKind.DELTACOMMIT):
            newest[one.requested_time, one.action] = one.state
        elif one.action is ActionKind.COMPACTION:
            newest[one.requested_time, one.action] = State.REQUESTED
    parts = []
    for info in list_instant_files(meta.storage, meta.config):
        name = None if info.is_dir else InstantFileName.parse(info.name, meta.config.layout_version)
        if name is None:
            continue
        states = [newest.get((name.requested_time, action)) for action in (name.action, name.action.completed_as)]
        if any(state is not None and name.state <= state for state in states):
            parts.append(_Part(info))
    return sorted(parts, key=lambda part: part.info.name)


def _meta_parts(meta: MetaClient, commit: Instant, manifest: Manifest | None) -> list[_Part]:
    """Other files of `.hoodie` as of the commit: archived instants, schemas, rings of buckets, definitions of indexes.

    Args: manifest: names the files of the history; None below version 8, where all files belong to it.
    """
    timeline, history = meta.config.timeline_path, meta.config.history_path
    history_files = None if manifest is None else {file.name for file in manifest.files}
    parts = []
    for info in meta.storage.walk(META_FOLDER):
        folder = info.path.rpartition("/")[0]
        time = _BEGINS_WITH_TIME.match(info.name)
        is_later = time is not None and time[1] > commit.requested_time
        if folder == history:
            is_of_then = history_files is None or info.name in history_files
        else:
            is_of_then = folder not in (META_FOLDER, timeline) and not info.path.startswith(_LEFT_OUT) and not is_later
        if is_of_then:
            parts.append(_Part(info))
    return parts


def _copy(parts: Sequence[_Part], source: Storage, target: Storage) -> None:
    with ThreadPoolExecutor(LISTING_THREADS, thread_name_prefix="hudi-copy") as pool:
        for _ in pool.map(lambda part: _copy_file(part, source, target), parts):
            pass


def _copy_file(part: _Part, source: Storage, target: Storage) -> None:
    path = part.info.path
    remaining = part.info.size_bytes if part.size_bytes is None else part.size_bytes
    try:
        with (
            source.open_input(path) as read,
            as_storage_error(target.full_path(path)),
            target.open_output(path) as output,
        ):
            while remaining > 0 and (chunk := read.read(min(remaining, _CHUNK_BYTES))):
                output.write(chunk)
                remaining -= len(chunk)
    except PathNotFound as error:
        raise TableError(
            f"{source.full_path(path)} was deleted while it was copied, by a clean. The copy was removed; copy again."
        ) from error
    if remaining > 0:
        raise CorruptFile(f"{source.full_path(path)}: expected {remaining:,} bytes more. Copy again.")
    target.set_modified(path, part.info.modified_ms)


def _serve(target: Storage, service: Callable[[ActionContext], object]) -> None:
    options = WriteOptions.parse({}, {}, load_table_config(target))
    serve(target, service, options, as_engine(LocalEngine()))


def _retain(context: ActionContext, commit: Instant) -> None:
    """Complete a clean without files that retains this commit, so that readers refuse the missing older slices."""
    from pyhudi.services.clean.cleaning import plan_path
    from pyhudi.services.clean.runs import run_cleans

    retained = RetainedInstant(commit.requested_time, commit.action.value, commit.state.name)
    plan = CleanPlan(KEEP_LATEST_COMMITS, retained, commit.requested_time, {})
    storage = context.meta.storage
    with context.locked():
        body = encode_clean_plan(plan, lambda path: plan_path(storage, path))
        instant = request(ActionKind.CLEAN, body, context.reloaded())
    run_cleans((instant,), context.reloaded(), plan)
