"""The bytes that completed writes put into the log files of a table, according to their write stats.

    log files of slices ← stats of the delta commits since the oldest of these slices began
    a stat without a file = the log file is missing

Bodies of archived writes are read only for a log file that looks damaged.
Source: docs/formats/log.md, "Damaged log files"; docs/formats/timeline.md, "Commit metadata";
docs/formats/file-names.md, "File groups and slices".
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from pyhudi.errors import CorruptFile, PathNotFound
from pyhudi.filegroup.read.log_blocks import BlockRules, DamageRules
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.file_group import CommittedBytes, FileSlice, LogFile
from pyhudi.model.filenames import LogFileName
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.table_config import TableConfig
from pyhudi.model.timeline import Timeline
from pyhudi.storage.base import Storage
from pyhudi.storage.place import is_local
from pyhudi.timeline.archived_timeline import load_archived_timeline
from pyhudi.timeline.commits import CommitBodies
from pyhudi.view.file_system_view import LISTING_THREADS

__all__ = ["ArchivedLogWrites", "CommittedColumns", "block_rules", "damage_rules", "with_committed_bytes"]

_FEW_BODIES = 16  # in local storage
_WRITES_LOGS = frozenset({ActionKind.DELTACOMMIT, ActionKind.REPLACECOMMIT})


def damage_rules(meta: MetaClient, *, raises: bool, advice: str) -> DamageRules:
    """Return rules for the log files of a table; see `DamageRules`."""
    since = meta.timeline.active_since
    archived = None if since is None else ArchivedLogWrites(meta.storage, meta.config, since)
    return DamageRules(raises, advice, archived)


def block_rules(meta: MetaClient, latest_instant: str | None = None) -> BlockRules:
    """Return rules for the log blocks of a table; see `BlockRules`."""
    timeline, config = meta.timeline, meta.config
    columns = CommittedColumns(timeline, meta.commits, frozenset(config.dropped_partition_fields))
    return BlockRules(config.table_version, timeline.is_visible, latest_instant, committed_columns=columns)


@dataclass(frozen=True, slots=True)
class CommittedColumns:
    """Returns the data columns of an active commit's files according to its body; None if unknown.

    `dropped`: partition columns that files leave out. Picklable.
    """

    timeline: Timeline
    commits: CommitBodies
    dropped: frozenset[str]

    def __call__(self, instant_time: str) -> frozenset[str] | None:
        instant = self.timeline.commits().find(instant_time)
        try:
            text = None if instant is None else self.commits.metadata(instant).schema_json
            return None if text is None else frozenset(f["name"] for f in json.loads(text)["fields"]) - self.dropped
        except (CorruptFile, PathNotFound, ValueError, LookupError, TypeError):
            return None


def with_committed_bytes(
    meta: MetaClient, slices: Sequence[FileSlice], *, as_of: str | None = None, find_missing: bool = True
) -> tuple[FileSlice, ...]:
    """Return slices whose log files have the bytes of completed writes, and with missing log files added.

    Args:    slices: the newest of their groups, as of `as_of`; find_missing: False for slices of a plan, which has no
                 later log files.
    Raises:  PathNotFound when a write was rolled back since.
    """
    if not slices or not (meta.config.is_merge_on_read or any(s.log_files for s in slices)):
        return tuple(slices)
    named = _named_logs(meta, min(s.base_instant for s in slices), as_of)
    if not named:
        return tuple(slices)
    listed = {log.path for s in slices for log in s.log_files}
    missing = _missing(meta, slices, named, listed) if find_missing else {}
    return tuple(_with_bytes(s, named, missing.get((s.group.partition_path, s.group.file_id), ())) for s in slices)


@dataclass(frozen=True, slots=True)
class _Named:
    """The stats of one log file. `completed`: when its newest write completed."""

    committed: tuple[CommittedBytes, ...]
    completed: str


def _named_logs(meta: MetaClient, since: str, as_of: str | None) -> dict[str, _Named]:
    """Return, by path, the log files of writes that completed at `since` or later."""
    instants = [
        instant
        for instant in meta.timeline.commits()
        if instant.action in _WRITES_LOGS
        and _completed(instant) >= since
        and (as_of is None or instant.requested_time <= as_of)
    ]
    named: dict[str, _Named] = {}
    for instant, body in zip(instants, _bodies(meta, instants), strict=True):
        for path, size_bytes in () if body is None else _log_bytes(body):
            before = named.get(path)
            written = CommittedBytes(instant.requested_time, size_bytes)
            committed = (written,) if before is None else (*before.committed, written)
            named[path] = _Named(committed, max(_completed(instant), "" if before is None else before.completed))
    return named


def _completed(instant: Instant) -> str:
    return max(instant.requested_time, instant.completion_time or "")


def _bodies(meta: MetaClient, instants: Sequence[Instant]) -> Iterable[CommitMetadata | None]:
    """Return bodies of completed writes; None for an unreadable one, whose log files are not checked."""

    def body(instant: Instant) -> CommitMetadata | None:
        try:
            return meta.commits.metadata(instant)
        except CorruptFile:
            return None

    in_memory = [meta.commits.peek_metadata(instant) for instant in instants]
    unread = [instant for instant, commit in zip(instants, in_memory, strict=True) if commit is None]
    if len(unread) < 2 or (len(unread) <= _FEW_BODIES and is_local(meta.storage)):
        read = iter([body(instant) for instant in unread])
    else:
        with ThreadPoolExecutor(LISTING_THREADS, thread_name_prefix="hudi-bodies") as pool:
            read = iter(list(pool.map(body, unread)))
    return [next(read) if commit is None else commit for commit in in_memory]


def _log_bytes(body: CommitMetadata) -> Iterator[tuple[str, int]]:
    """Yield (path, bytes) of the log files of a write, change logs left out."""
    for stat in body.stats():
        if stat.path is None or ".log." not in stat.path or stat.file_size_in_bytes <= 0:
            continue
        name = LogFileName.parse(stat.path.rpartition("/")[2])
        if name is not None and not name.suffix:
            yield stat.path, stat.file_size_in_bytes


def _missing(
    meta: MetaClient, slices: Iterable[FileSlice], named: Mapping[str, _Named], listed: set[str]
) -> dict[tuple[str, str], list[LogFile]]:
    """Return, by partition path and file id, log files of these slices that stats name but that do not exist."""
    base_instants = {(s.group.partition_path, s.group.file_id): s.base_instant for s in slices}
    missing_logs: dict[tuple[str, str], list[LogFile]] = defaultdict(list)
    for path, writes in named.items():
        if path in listed:
            continue
        partition_path, _, file_name = path.rpartition("/")
        name = LogFileName.parse(file_name)
        group = (partition_path, name.file_id if name is not None else "")
        if name is None or group not in base_instants:
            continue
        # Files belong to slices by their name below version 8, by the completion time of their write from 8 on.
        belongs = writes.completed if meta.config.format.has_own_log_files else name.instant_time
        if belongs >= base_instants[group] and meta.storage.stat(path) is None:
            missing_logs[group].append(_missing_log(path, partition_path, name))
    return missing_logs


def _missing_log(path: str, partition_path: str, name: LogFileName) -> LogFile:
    parts = (name.file_id, name.instant_time, name.version, name.write_token)
    return LogFile(path, partition_path, *parts, size_bytes=0, is_missing=True)


def _with_bytes(file_slice: FileSlice, named: Mapping[str, _Named], missing: Sequence[LogFile]) -> FileSlice:
    if not file_slice.log_files and not missing:
        return file_slice
    logs = (*file_slice.log_files, *missing)
    return replace(
        file_slice,
        log_files=tuple(
            replace(log, committed=named[log.path].committed) if log.path in named else log for log in logs
        ),
    )


@dataclass(frozen=True, slots=True)
class ArchivedLogWrites:
    """The bytes that archived writes put into a log file. Picklable. `active_since`: older instants were archived."""

    storage: Storage
    config: TableConfig
    active_since: str

    def __call__(self, log: LogFile) -> tuple[CommittedBytes, ...]:
        """Return the archived writes of a log file. Raises CorruptFile when the history can't be read."""
        if log.instant_time >= self.active_since:
            return ()
        # From version 8 on the name has the only writer; below, the oldest possible one.
        until = log.instant_time if self.config.format.has_own_log_files else self.active_since
        history = load_archived_timeline(self.storage, self.config)
        return tuple(
            CommittedBytes(archived.instant.requested_time, size_bytes)
            for archived in history.instants(log.instant_time, until)
            if archived.instant.action in _WRITES_LOGS and archived.instant.requested_time < self.active_since
            for path, size_bytes in _log_bytes_of(archived.commit())
            if path == log.path
        )


def _log_bytes_of(body: CommitMetadata | None) -> Iterator[tuple[str, int]]:
    return iter(()) if body is None else _log_bytes(body)
