"""Which files hold the rows of commits: from their write stats, without listing a folder.

    commit        its base file takes the place of all files of the group before; its log files join them
    overwrite     replaced groups leave
    compaction    its base file takes the place of what it was made of, if that was of the range; else it is left out
    clustering    where it replaced groups of the range, its files of those partitions are read in their place

Source: docs/formats/incremental.md, "Files of a range".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStat
from pyhudi.model.file_group import BaseFile, CommittedBytes, FileGroupId, FileSlice, LogFile
from pyhudi.model.filenames import BaseFileName, LogFileName
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.queries.incremental_range import is_service
from pyhudi.view.file_system_view import LISTING_THREADS

__all__ = ["FilesOfCommits", "files_of_commits"]


@dataclass(frozen=True, slots=True)
class FilesOfCommits:
    """`slices`: the files that hold the rows, as slices. `instants`: requested times of the writes, no table services.

    `missing`: paths that are not there any more, with the newest write that named each. `rows`: how many rows these
    writes say they changed, each of them by itself; other writers may leave that out.
    """

    slices: tuple[FileSlice, ...]
    instants: frozenset[str]
    missing: Mapping[str, Instant]
    rows: int = 0


@dataclass(slots=True)
class _Group:
    """What the commits so far made of one file group: paths with the bytes that each write put into them."""

    base: str | None = None
    logs: dict[str, list[CommittedBytes]] = field(default_factory=dict)


def files_of_commits(meta: MetaClient, writes: Sequence[tuple[Instant, CommitMetadata]]) -> FilesOfCommits:
    """The files of completed writes, given in the order of their times."""
    groups: dict[FileGroupId, _Group] = {}
    named: dict[str, Instant] = {}
    data: set[str] = set()
    rows = 0
    for instant, body in writes:
        replaced = _replaced(instant, body)
        if not is_service(instant, body, meta):
            data.add(instant.requested_time)
            rows += sum(stat.changed_rows for stat in body.stats())
            _take_out(groups, replaced)
            _add(groups, named, instant, body.stats())
        elif body.operation_type == OperationType.CLUSTER:
            partitions = {group.partition_path for group in _take_out(groups, replaced)}
            _add(groups, named, instant, (s for s in body.stats() if _folder(s.path) in partitions))
        else:
            _compact(groups, named, instant, body.stats(), by_completion=meta.config.table_version >= 8)
    sizes = _sizes(meta, groups.values())
    missing = {path: named[path] for path, size in sizes.items() if size is None}
    there = {path: size for path, size in sizes.items() if size is not None}
    slices = (_slice(group, files, there) for group, files in sorted(groups.items()))
    return FilesOfCommits(tuple(s for s in slices if s is not None), frozenset(data), missing, rows)


def _replaced(instant: Instant, body: CommitMetadata) -> set[FileGroupId]:
    if instant.action is not ActionKind.REPLACECOMMIT:
        return set()
    groups = (body.partition_to_replace_file_ids or {}).items()
    return {FileGroupId(partition, file_id) for partition, file_ids in groups for file_id in file_ids}


def _take_out(groups: dict[FileGroupId, _Group], replaced: set[FileGroupId]) -> set[FileGroupId]:
    """Those of the groups that were replaced; they leave."""
    out = replaced & groups.keys()
    for group in out:
        del groups[group]
    return out


def _add(
    groups: dict[FileGroupId, _Group], named: dict[str, Instant], instant: Instant, stats: Iterable[WriteStat]
) -> None:
    """What one write put into files."""
    for stat in stats:
        if not stat.path:
            continue
        folder, name = _folder(stat.path), stat.path.rpartition("/")[2]
        if (log := LogFileName.parse(name)) is not None:
            if log.suffix:
                continue  # a change log
            files = groups.setdefault(FileGroupId(folder, log.file_id), _Group())
            files.logs.setdefault(stat.path, []).append(CommittedBytes(instant.requested_time, stat.file_size_in_bytes))
        elif (base := BaseFileName.parse(name)) is not None:
            # It holds all rows of the group as they were then: log files before it are in it.
            groups[FileGroupId(folder, base.file_id)] = _Group(stat.path)
        else:
            continue
        named[stat.path] = instant


def _compact(
    groups: dict[FileGroupId, _Group],
    named: dict[str, Instant],
    instant: Instant,
    stats: Iterable[WriteStat],
    *,
    by_completion: bool,
) -> None:
    """Base files of a compaction take the place of what they were made of: files of before it was planned."""
    for stat in stats:
        name = BaseFileName.parse((stat.path or "").rpartition("/")[2])
        if stat.path is None or name is None:
            continue
        group = FileGroupId(_folder(stat.path), name.file_id)
        before = groups.get(group)
        if before is None:
            continue
        later = {
            path: committed
            for path, committed in before.logs.items()
            if _begins_with(path, named[path], by_completion) >= instant.requested_time
        }
        if before.base is None and len(later) == len(before.logs):
            continue
        groups[group] = _Group(stat.path, later)
        named[stat.path] = instant


def _begins_with(path: str, writer: Instant, by_completion: bool) -> str:
    """What says the slice of a log file: below version 8 its name, from 8 on when its write completed."""
    if by_completion:
        return writer.completion_time or writer.requested_time
    name = LogFileName.parse(path.rpartition("/")[2])
    assert name is not None
    return name.instant_time


def _folder(path: str | None) -> str:
    return (path or "").rpartition("/")[0]


def _sizes(meta: MetaClient, groups: Iterable[_Group]) -> dict[str, int | None]:
    """Path → bytes, None for a file that is not there."""
    paths = [path for group in groups for path in (group.base, *group.logs) if path is not None]

    def size_of(path: str) -> int | None:
        found = meta.storage.stat(path)
        return None if found is None else found.size_bytes

    if len(paths) < 2:
        return {path: size_of(path) for path in paths}
    with ThreadPoolExecutor(LISTING_THREADS, thread_name_prefix="hudi-sizes") as pool:
        return dict(zip(paths, pool.map(size_of, paths), strict=True))


def _slice(group: FileGroupId, files: _Group, sizes: Mapping[str, int]) -> FileSlice | None:
    """The files that are there, as one slice."""
    base: BaseFile | None = None
    if files.base is not None and files.base in sizes:
        name = BaseFileName.parse(files.base.rpartition("/")[2])
        assert name is not None
        base = BaseFile(files.base, group.partition_path, group.file_id, name.instant_time, sizes[files.base])
    logs = sorted(
        (_log_file(path, group, committed, sizes[path]) for path, committed in files.logs.items() if path in sizes),
        key=lambda log: (log.instant_time, log.version, log.write_token),
    )
    if base is None and not logs:
        return None
    return FileSlice(group, base.instant_time if base is not None else logs[0].instant_time, base, tuple(logs))


def _log_file(path: str, group: FileGroupId, committed: Sequence[CommittedBytes], size_bytes: int) -> LogFile:
    name = LogFileName.parse(path.rpartition("/")[2])
    assert name is not None
    writes = tuple(each for each in committed if each.size_bytes > 0)
    known = (name.file_id, name.instant_time, name.version, name.write_token or "", size_bytes)
    return LogFile(path, group.partition_path, *known, committed=writes)
