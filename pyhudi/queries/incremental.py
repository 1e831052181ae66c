"""Plans of incremental queries: the rows that the commits of a range wrote, in their newest version of the range.

    range → commits → files of their write stats → ReadPlan, with the commit time as one more filter

Deletes return no rows. In log files only blocks of these commits count.

`files_of_commits` finds the files that hold the rows. It reads write stats and lists no folder:

    commit        its base file replaces all earlier files of the group; its log files are added to them
    overwrite     replaced groups are left out
    compaction    its base file replaces the files that it merged, if these are in the range; else it is left out
    clustering    if it replaced groups of the range, its files of those partitions are read instead

Log files of the range may hold partial updates. The other columns of such rows are in the slice to which the log files
belong, and `WholeSlices` finds it:

    log files of the range → the newest slice with one of them → its state at the end of the range

The slice is looked up only when a log file is read and one of its blocks is a partial update.

Source: docs/formats/incremental.md, "Files of a range"; docs/formats/log.md, "Partial blocks".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pyarrow as pa

from pyhudi.expressions.binding import bind
from pyhudi.expressions.filters import top_level_columns
from pyhudi.expressions.predicates import Column, In, Predicate, conjunction
from pyhudi.expressions.where import parse_where
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStat
from pyhudi.model.file_group import BaseFile, CommittedBytes, FileGroupId, FileSlice, LogFile
from pyhudi.model.filenames import BaseFileName, LogFileName
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.keys import COMMIT_TIME
from pyhudi.queries.changes import plan_changes
from pyhudi.queries.incremental_range import (
    CommitsInRange,
    commits_in_range,
    is_service,
    not_readable,
    path_pattern,
)
from pyhudi.queries.plan import ReadPlan, ReadSlice, plan_snapshot, result_schema, schema_history
from pyhudi.queries.query import ALL_ROWS, IncrementalRange, Query
from pyhudi.queries.read_slice import slice_spec
from pyhudi.queries.schema import read_schema
from pyhudi.queries.skip.paths import PathColumns
from pyhudi.storage.base import Storage
from pyhudi.view.committed_logs import with_committed_bytes
from pyhudi.view.consistent_read import read_consistently
from pyhudi.view.file_system_view import LISTING_THREADS, Visibility, listed_partitions

__all__ = ["FilesOfCommits", "WholeSlices", "files_of_commits", "plan_incremental"]


@dataclass(frozen=True, slots=True)
class FilesOfCommits:
    """`slices`: the files that hold the rows, as slices. `instants`: requested times of the writes, no table services.

    `missing`: paths of missing files, each with the newest write that named it. `rows`: the sum of the changed rows in
    these writes' stats; other writers may leave that out.
    """

    slices: tuple[FileSlice, ...]
    instants: frozenset[str]
    missing: Mapping[str, Instant]
    rows: int = 0


@dataclass(slots=True)
class _Group:
    """One file group after the commits so far: paths with the bytes that each write added."""

    base: str | None = None
    logs: dict[str, list[CommittedBytes]] = field(default_factory=dict)


def files_of_commits(meta: MetaClient, writes: Sequence[tuple[Instant, CommitMetadata]]) -> FilesOfCommits:
    """The files of completed writes, given in the order of their times."""
    groups: dict[FileGroupId, _Group] = {}
    writes_by_path: dict[str, Instant] = {}
    data: set[str] = set()
    rows = 0
    for instant, body in writes:
        replaced = _replaced(instant, body)
        if not is_service(instant, body):
            data.add(instant.requested_time)
            rows += sum(stat.changed_rows for stat in body.stats())
            _take_out(groups, replaced)
            _add(groups, writes_by_path, instant, body.stats())
        elif body.operation_type == OperationType.CLUSTER:
            partitions = {group.partition_path for group in _take_out(groups, replaced)}
            _add(groups, writes_by_path, instant, (s for s in body.stats() if _folder(s.path) in partitions))
        else:
            _compact(
                groups, writes_by_path, instant, body.stats(), by_completion=meta.config.format.orders_by_completion
            )
    sizes = _sizes(meta, groups.values())
    missing = {path: writes_by_path[path] for path, size in sizes.items() if size is None}
    existing = {path: size for path, size in sizes.items() if size is not None}
    slices = (_slice(group, files, existing) for group, files in sorted(groups.items()))
    return FilesOfCommits(tuple(s for s in slices if s is not None), frozenset(data), missing, rows)


def _replaced(instant: Instant, body: CommitMetadata) -> set[FileGroupId]:
    if instant.action is not ActionKind.REPLACECOMMIT:
        return set()
    groups = (body.partition_to_replace_file_ids or {}).items()
    return {FileGroupId(partition, file_id) for partition, file_ids in groups for file_id in file_ids}


def _take_out(groups: dict[FileGroupId, _Group], replaced: set[FileGroupId]) -> set[FileGroupId]:
    """Remove the replaced groups; return their ids."""
    removed = replaced & groups.keys()
    for group in removed:
        del groups[group]
    return removed


def _add(
    groups: dict[FileGroupId, _Group], writes_by_path: dict[str, Instant], instant: Instant, stats: Iterable[WriteStat]
) -> None:
    """Add the files and bytes of one write."""
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
            # It holds all rows of the group at that time, including those of earlier log files.
            groups[FileGroupId(folder, base.file_id)] = _Group(stat.path)
        else:
            continue
        writes_by_path[stat.path] = instant


def _compact(
    groups: dict[FileGroupId, _Group],
    writes_by_path: dict[str, Instant],
    instant: Instant,
    stats: Iterable[WriteStat],
    *,
    by_completion: bool,
) -> None:
    """Replace the files that a compaction merged, those from before it was planned, by its base files."""
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
            if _begins_with(path, writes_by_path[path], by_completion) >= instant.requested_time
        }
        if before.base is None and len(later) == len(before.logs):
            continue
        groups[group] = _Group(stat.path, later)
        writes_by_path[stat.path] = instant


def _begins_with(path: str, writer: Instant, by_completion: bool) -> str:
    """The begin of a log file's slice: below version 8 from its name, from 8 on the time when its write completed."""
    if by_completion:
        return writer.completion_time or writer.requested_time
    name = LogFileName.parse(path.rpartition("/")[2])
    assert name is not None
    return name.instant_time


def _folder(path: str | None) -> str:
    return (path or "").rpartition("/")[0]


def _sizes(meta: MetaClient, groups: Iterable[_Group]) -> dict[str, int | None]:
    """Path → bytes, None for a missing file."""
    paths = [path for group in groups for path in (group.base, *group.logs) if path is not None]

    def size_of(path: str) -> int | None:
        info = meta.storage.stat(path)
        return None if info is None else info.size_bytes

    if len(paths) < 2:
        return {path: size_of(path) for path in paths}
    with ThreadPoolExecutor(LISTING_THREADS, thread_name_prefix="hudi-sizes") as pool:
        return dict(zip(paths, pool.map(size_of, paths), strict=True))


def _slice(group: FileGroupId, files: _Group, sizes: Mapping[str, int]) -> FileSlice | None:
    """The existing files, as one slice."""
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
    parts = (name.file_id, name.instant_time, name.version, name.write_token or "", size_bytes)
    return LogFile(path, group.partition_path, *parts, committed=writes)


@dataclass(frozen=True, slots=True)
class WholeSlices:
    """Finds the slices of a table as of the end of a range of commits. Picklable.

    `until`: the time of the last commit of the range, as ranges count: when it completed from version 8 on.
    """

    storage: Storage
    until: str

    def __call__(self, part: FileSlice) -> FileSlice | None:
        """The slice of these log files of the range, None if it no longer exists.

        Raises:  PathNotFound if a write has been rolled back since.
        """
        meta = MetaClient.load(self.storage)
        # An overwrite after the range may have replaced the group: its files exist until they are cleaned.
        rules = replace(Visibility.of(meta, None), replaced=frozenset())
        group = part.group
        files_by_partition = listed_partitions(self.storage, [group.partition_path])
        files = [file for _, folder_files in files_by_partition for file in folder_files if group.file_id in file.name]
        slices = next((g.slices for g in rules.file_groups(group.partition_path, files) if g.group == group), ())
        paths = {log.path for log in part.log_files}
        newest = next((s for s in slices if paths & {log.path for log in s.log_files}), None)
        if newest is None:
            return None
        committed = with_committed_bytes(meta, (newest,))[0]
        if not meta.config.format.has_own_log_files:
            return committed
        return replace(committed, log_files=tuple(log for log in committed.log_files if self._is_in_time(log, rules)))

    def _is_in_time(self, log: LogFile, rules: Visibility) -> bool:
        """True if the write of a log file was complete at the end of the range."""
        if log.instant_time > self.until:
            return False
        completed = rules.completion_times.get(log.instant_time)
        return (completed or rules.archived.completion_of(log.instant_time)) <= self.until


def plan_incremental(meta: MetaClient, requested: IncrementalRange, query: Query = ALL_ROWS) -> ReadPlan:
    """Plan an incremental query.

    Args:    requested: the range, from `incremental_range`; query: its moment and type are ignored, the range replaces
             them.
    Raises:  RangeNotReadable when commits of the range were archived or their files cleaned, unless the options ask for
             a full scan then; what `plan_snapshot` raises.
    """
    where = conjunction(tuple(map(parse_where, (query.where, *requested.options.filters))))
    # The filter is by commits, so a full scan does not ask the record index for keys.
    whole = replace(query, where=where, as_of=None, query_type="snapshot", unique_keys=False)
    ranged = _Ranged(requested, whole)
    return ranged.only_matching_paths(meta, read_consistently(meta, ranged.plan))


@dataclass(frozen=True, slots=True)
class _Ranged:
    """A query of the rows of a range, independent of the state of the table."""

    requested: IncrementalRange
    query: Query

    def plan(self, meta: MetaClient) -> ReadPlan:
        """The plan. Raises PathNotFound if a file is deleted while it is made."""
        if self.requested.options.returns_changes:
            return plan_changes(meta, self.requested, self.query)
        commits = commits_in_range(self.requested, meta)
        if commits.is_whole:
            return self._full_scan(meta, commits, None)
        files = files_of_commits(meta, commits.writes)
        if commits.lost or files.missing:
            if not self.requested.options.full_scan:
                raise not_readable(self.requested, meta, commits, files.missing)
            lost_times = frozenset(i.requested_time for i in commits.lost)
            return self._full_scan(meta, commits, files.instants | lost_times)
        return self._plan_of(meta, commits, files)

    def _plan_of(self, meta: MetaClient, commits: CommitsInRange, files: FilesOfCommits) -> ReadPlan:
        full = read_schema(meta, None)
        predicate = bind(self._written_by(files.instants), full, self.query.zone)
        schema = result_schema(full, self.query)
        needed = {*schema.names, *top_level_columns(predicate, full)}
        read_columns = pa.schema([f for f in full if f.name in needed])
        history = schema_history(meta, None)
        partitions = sorted({s.group.partition_path for s in files.slices})
        all_columns, columns = PathColumns(meta.config, full), PathColumns(meta.config, read_columns)
        skipped = frozenset(all_columns.skipped(partitions, predicate))
        slices = tuple(
            ReadSlice(
                file_slice,
                columns.values(file_slice.group.partition_path),
                file_slice.needs_merge,
                columns.parsed(file_slice.group.partition_path),
            )
            for file_slice in files.slices
            if file_slice.group.partition_path not in skipped
        )
        merge = None
        if any(read.merges for read in slices):
            spec = slice_spec(meta, full, self.query, history=history)
            whole = WholeSlices(meta.storage, commits.checkpoint)
            merge = replace(spec, blocks=replace(spec.blocks, instants=files.instants), whole=whole)
        most_rows = self.requested.options.driver_rows
        return ReadPlan(
            schema,
            read_columns,
            predicate,
            slices,
            None,
            "incremental",
            history,
            partitions_total=len(partitions),
            partitions_read=len(partitions) - len(skipped),
            files_total=len(files.slices),
            merge=merge,
            newest_commit=_newest(meta),
            checkpoint=commits.checkpoint,
            driver_rows=most_rows if files.rows <= most_rows else 0,
            check_pages=self.query.damage.page_checksums,
            driver_log_bytes=self.query.driver_log_bytes,
        )

    def _full_scan(self, meta: MetaClient, commits: CommitsInRange, written_by: frozenset[str] | None) -> ReadPlan:
        """The rows of these writes in the newest state of the table; None: all rows."""
        query = self.query if written_by is None else replace(self.query, where=self._written_by(written_by))
        plan = plan_snapshot(meta, query)
        return replace(plan, query_type="incremental", checkpoint=commits.checkpoint)

    def _written_by(self, instants: frozenset[str]) -> Predicate:
        """The filter that keeps only rows of these commits."""
        of_commits = In(Column((COMMIT_TIME,)), tuple(sorted(instants)))
        return conjunction((parse_where(self.query.where), of_commits))

    def only_matching_paths(self, meta: MetaClient, plan: ReadPlan) -> ReadPlan:
        """The plan with only those slices that have a file matching `hoodie.datasource.read.incr.path.glob`."""
        if not self.requested.options.path_glob:
            return plan
        pattern = path_pattern(self.requested.options.path_glob)
        return replace(plan, slices=tuple(read for read in plan.slices if _matches(pattern, meta, read)))


def _matches(pattern: re.Pattern[str], meta: MetaClient, read: ReadSlice) -> bool:
    base = read.file_slice.base_file
    paths = [*([base.path] if base is not None else []), *(log.path for log in read.file_slice.log_files)]
    return any(pattern.fullmatch(meta.storage.full_path(path)) for path in paths)


def _newest(meta: MetaClient) -> str | None:
    newest = meta.timeline.last_commit()
    return None if newest is None else newest.requested_time
