"""Plans of queries for changes: the change of each commit of a range to each file group, and the files that hold it.

    range → commits → write stats and replaced file groups → GroupChange each → ReadPlan

Changes are in the order of the commits; within a commit, deletes of whole file groups come first. If rows may have
moved between file groups, all deletes of the commit come first.

Write stats name the files that hold the changes; images need listings, too. The files give the changes as follows:

    change logs named                       their records
    base file of new rows only              all its rows are inserts
    base file of a delete, no row left      all rows of the previous one are deletes
    log files                               the slices before and after them are compared
    replaced file group                     all rows of its last slice are deletes

Source: docs/formats/incremental.md, "Changes".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from pyhudi.errors import CorruptFile, RangeNotReadable
from pyhudi.expressions.binding import bind
from pyhudi.expressions.where import parse_where
from pyhudi.lazy_property import lazy_property
from pyhudi.merge.rules import MergeRules
from pyhudi.meta_client import MetaClient
from pyhudi.model.change_logs import CHANGE_LOG_SUFFIX, DATA_BEFORE_AFTER
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStat
from pyhudi.model.file_group import BaseFile, CommittedBytes, FileGroup, FileGroupId, FileSlice, LogFile
from pyhudi.model.filenames import BaseFileName, LogFileName, data_path
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.queries.change_rows import (
    CHANGES_SCHEMA,
    DELETED,
    INSERTED,
    LOGGED,
    MERGED,
    NO_DELETES,
    ONLY_DELETES,
    ChangeReading,
    GroupChange,
)
from pyhudi.queries.incremental_range import (
    CommitsInRange,
    commits_in_range,
    is_service,
    not_readable,
)
from pyhudi.queries.plan import ReadPlan, ReadSlice, schema_history, selected
from pyhudi.queries.query import IncrementalRange, Query
from pyhudi.queries.read_slice import slice_spec
from pyhudi.queries.schema import read_schema
from pyhudi.queries.skip.paths import PathColumns
from pyhudi.view.file_system_view import LISTING_THREADS, Visibility, listed_partitions

__all__ = ["ChangedGroup", "ChangesOfCommits", "changes_of_commits", "plan_changes"]


@dataclass(frozen=True, slots=True)
class ChangedGroup:
    """A change and its file group."""

    group: FileGroupId
    change: GroupChange


@dataclass(slots=True)
class ChangesOfCommits:
    """`missing`: paths of missing files, each with the commit that needs it. `unlogged`: file groups that a
    commit rewrote without a change log.
    """

    changes: list[ChangedGroup] = field(default_factory=list)
    missing: dict[str, Instant] = field(default_factory=dict)
    unlogged: list[tuple[FileGroupId, Instant]] = field(default_factory=list)


def changes_of_commits(meta: MetaClient, writes: Sequence[tuple[Instant, CommitMetadata]]) -> ChangesOfCommits:
    """The changes of completed writes, given in the order of their times; table services change no rows."""
    finder = _Finder(meta)
    for instant, body in writes:
        if not is_service(instant, body):
            finder.add(instant, body)
    finder.check_files()
    return finder.changes


class _Finder:
    def __init__(self, meta: MetaClient) -> None:
        self._meta = meta
        self._is_before_8 = not meta.config.format.has_own_log_files
        self._looks_up = meta.config.logging_mode != DATA_BEFORE_AFTER
        self._partitions: dict[str, Mapping[str, FileGroup]] = {}
        self._needed: dict[str, Instant] = {}
        self.changes = ChangesOfCommits()

    def add(self, instant: Instant, body: CommitMetadata) -> None:
        """Add the changes of one commit."""
        first = len(self.changes.changes)
        if instant.action is ActionKind.REPLACECOMMIT:
            for group in _replaced(body):
                self._replaced(group, instant)
        logs: dict[FileGroupId, list[WriteStat]] = {}
        for stat in body.stats():
            partition_path, _, name = (stat.path or "").rpartition("/")
            if (base := BaseFileName.parse(name)) is not None:
                self._base_file(FileGroupId(partition_path, base.file_id), stat, instant, body.operation_type)
            elif (log := LogFileName.parse(name)) is not None and not log.suffix:
                logs.setdefault(FileGroupId(partition_path, log.file_id), []).append(stat)
        for group, stats in logs.items():
            self._log_files(group, stats, instant)
        self.changes.changes[first:] = _deletes_first(self.changes.changes[first:], _counts(body))

    def check_files(self) -> None:
        """Add the needed files that are missing to the result."""
        paths = list(self._needed)
        with ThreadPoolExecutor(LISTING_THREADS, thread_name_prefix="hudi-changes") as pool:
            for path, info in zip(paths, pool.map(self._meta.storage.stat, paths), strict=True):
                if info is None:
                    self.changes.missing[path] = self._needed[path]

    def _note(self, group: FileGroupId, change: GroupChange) -> None:
        self.changes.changes.append(ChangedGroup(group, change))

    def _need(self, path: str, instant: Instant) -> None:
        self._needed[path] = instant

    # ---- base files

    def _base_file(self, group: FileGroupId, stat: WriteStat, instant: Instant, operation: str) -> None:
        time = instant.requested_time
        if stat.cdc_stats:
            before = self._previous(group, stat, instant) if self._looks_up else None
            after = self._slice(group, stat.path or "", instant) if self._looks_up else None
            for path in stat.cdc_stats:
                self._check_change_log(group, path, instant)
                self._need(path, instant)
            self._note(group, GroupChange(time, LOGGED, before, after, tuple(sorted(stat.cdc_stats))))
        elif operation == OperationType.DELETE and not stat.num_writes and stat.num_deletes:
            self._note(group, GroupChange(time, DELETED, before=self._previous(group, stat, instant)))
        elif not stat.num_update_writes and not stat.num_deletes and stat.num_writes == stat.num_inserts:
            self._note(group, GroupChange(time, INSERTED, after=self._slice(group, stat.path or "", instant)))
        else:
            self.changes.unlogged.append((group, instant))

    def _previous(self, group: FileGroupId, stat: WriteStat, instant: Instant) -> FileSlice | None:
        """The base file that a write replaced."""
        if stat.prev_base_file:
            return self._slice(group, data_path(group.partition_path, stat.prev_base_file), instant)
        for file_slice in self._slices(group):
            if file_slice.base_file is not None and file_slice.base_instant == stat.prev_commit:
                return replace(file_slice, log_files=())
        self.changes.missing[data_path(group.partition_path, f"{group.file_id}_*_{stat.prev_commit}")] = instant
        return None

    def _slice(self, group: FileGroupId, path: str, instant: Instant) -> FileSlice:
        folder, _, text = path.rpartition("/")
        name = BaseFileName.parse(text)
        if name is None or FileGroupId(folder, name.file_id) != group:
            raise self._strange(path, group, instant)
        self._need(path, instant)
        return FileSlice(group, name.instant_time, BaseFile(path, folder, name.file_id, name.instant_time, 0))

    def _check_change_log(self, group: FileGroupId, path: str, instant: Instant) -> None:
        folder, _, text = path.rpartition("/")
        name = LogFileName.parse(text)
        is_one = name is not None and name.suffix == CHANGE_LOG_SUFFIX and name.instant_time == instant.requested_time
        if name is None or not is_one or FileGroupId(folder, name.file_id) != group:
            raise self._strange(path, group, instant)

    def _strange(self, path: str, group: FileGroupId, instant: Instant) -> CorruptFile:
        return CorruptFile(
            f"{self._meta.storage.root}: {instant.action.value} {instant.requested_time} names {path!r:.300} as a file "
            f"of {group.file_id} in {group.partition_path!r}, which it is not. Look at the commit, or begin after it."
        )

    # ---- slices

    def _log_files(self, group: FileGroupId, stats: Sequence[WriteStat], instant: Instant) -> None:
        sizes = {stat.path: stat.file_size_in_bytes for stat in stats if stat.path}
        file_slice = next((s for s in self._slices(group) if any(log.path in sizes for log in s.log_files)), None)
        logs_by_path = {} if file_slice is None else {log.path: log for log in file_slice.log_files}
        missing = [path for path in sizes if path not in logs_by_path]
        if file_slice is not None and file_slice.base_file is None:
            missing += [data_path(group.partition_path, stat.base_file) for stat in stats if stat.base_file]
        if file_slice is None or missing:
            self.changes.missing.update(dict.fromkeys(missing, instant))
            return
        earlier = self._until(file_slice, instant)
        written = {path: _with_bytes(logs_by_path[path], instant, size) for path, size in sizes.items()}
        logs = [log for log in earlier.log_files if log.path not in written]
        before = earlier if self._is_before_8 else replace(earlier, log_files=tuple(logs))
        together = sorted([*logs, *written.values()], key=lambda log: (log.instant_time, log.version, log.write_token))
        after = replace(file_slice, log_files=tuple(together))
        self._note(group, GroupChange(instant.requested_time, MERGED, before, after, tuple(sorted(written))))

    def _replaced(self, group: FileGroupId, instant: Instant) -> None:
        slices = self._slices(group)
        last = next((s for s in slices if s.base_instant < instant.requested_time), None)
        if last is None:
            self.changes.missing[data_path(group.partition_path, f"{group.file_id}_*")] = instant
            return
        self._note(group, GroupChange(instant.requested_time, DELETED, before=self._until(last, instant)))

    def _until(self, file_slice: FileSlice, instant: Instant) -> FileSlice:
        """The slice as it was before a commit. Below version 8 a log file has blocks of several commits; blocks are
        chosen when they are read.
        """
        if self._is_before_8:
            return file_slice
        completed = instant.completion_time or instant.requested_time
        times = self._rules.completion_times
        logs = [log for log in file_slice.log_files if times.get(log.instant_time, log.instant_time) < completed]
        return replace(file_slice, log_files=tuple(logs))

    def _slices(self, group: FileGroupId) -> tuple[FileSlice, ...]:
        """All existing slices of a group, newest first, replaced ones too."""
        path = group.partition_path
        if path not in self._partitions:
            files = [file for _, folder_files in listed_partitions(self._meta.storage, [path]) for file in folder_files]
            self._partitions[path] = {g.group.file_id: g for g in self._rules.file_groups(path, files)}
        file_group = self._partitions[path].get(group.file_id)
        return () if file_group is None else file_group.slices

    @lazy_property
    def _rules(self) -> Visibility:
        return replace(Visibility.of(self._meta, None), replaced=frozenset())


@dataclass(slots=True)
class _Counts:
    """The numbers of rows of a file group that a commit deleted, inserted and updated, by its write stats."""

    deletes: int = 0
    inserts: int = 0
    updates: int = 0


def _counts(body: CommitMetadata) -> Mapping[FileGroupId, _Counts]:
    counts: dict[FileGroupId, _Counts] = {}
    for stat in body.stats():
        partition_path, _, name = (stat.path or "").rpartition("/")
        file_name = BaseFileName.parse(name) or LogFileName.parse(name)
        if file_name is not None:
            each = counts.setdefault(FileGroupId(partition_path, file_name.file_id), _Counts())
            each.deletes += stat.num_deletes
            each.inserts += stat.num_inserts
            each.updates += stat.num_update_writes
    return counts


def _deletes_first(changes: list[ChangedGroup], counts: Mapping[FileGroupId, _Counts]) -> list[ChangedGroup]:
    """The changes of one commit, with the deletes of all file groups first if a row may have moved from one of them to
    another. A file group with deletes and other changes is then read twice.
    """
    none = _Counts()
    deleting = {each.group for each in changes if counts.get(each.group, none).deletes}
    inserting = {each.group for each in changes if counts.get(each.group, none).inserts}
    if not deleting or not inserting or len(deleting | inserting) == 1:
        return changes
    deletes, others = list[ChangedGroup](), list[ChangedGroup]()
    for each in changes:
        count = counts.get(each.group, none)
        if each.change.kind == DELETED or not (count.inserts or count.updates):
            deletes.append(each)
        elif each.group not in deleting:
            others.append(each)
        else:
            deletes.append(replace(each, change=replace(each.change, only=ONLY_DELETES)))
            others.append(replace(each, change=replace(each.change, only=NO_DELETES)))
    return [*deletes, *others]


def _replaced(body: CommitMetadata) -> Iterator[FileGroupId]:
    groups: Iterable[tuple[str, tuple[str, ...]]] = (body.partition_to_replace_file_ids or {}).items()
    for partition_path, file_ids in groups:
        for file_id in file_ids:
            yield FileGroupId(partition_path, file_id)


def _with_bytes(log: LogFile, instant: Instant, size_bytes: int) -> LogFile:
    committed = (CommittedBytes(instant.requested_time, size_bytes),) if size_bytes > 0 else ()
    return replace(log, committed=committed)


def plan_changes(meta: MetaClient, requested: IncrementalRange, query: Query) -> ReadPlan:
    """Plan a query for changes; a plan is repeated if a file is deleted while it is made.

    Args:    as in `plan_incremental`; columns and filter are about CHANGES_SCHEMA.
    Raises:  RangeNotReadable when commits of the range were archived or their files cleaned, or when a commit logged no
             changes; what `plan_snapshot` raises.
    """
    predicate = bind(parse_where(query.where), CHANGES_SCHEMA)
    schema = CHANGES_SCHEMA if query.columns is None else selected(CHANGES_SCHEMA, query.columns)
    commits = commits_in_range(requested, meta, one_by_one=True)
    changes = changes_of_commits(meta, commits.writes)
    if commits.lost or changes.missing:
        raise not_readable(requested, meta, commits, changes.missing)
    if changes.unlogged:
        raise _not_logged(requested, meta, commits, changes.unlogged)
    full = read_schema(meta, None)
    merges = any(_has_logs(each.change.before, each.change.after) for each in changes.changes)
    rules = None if merges else MergeRules()
    history = schema_history(meta, None)
    spec = slice_spec(meta, full, query, history=history, rules=rules)
    columns = PathColumns(meta.config, full)

    def read(each: ChangedGroup) -> ReadSlice:
        partition = each.group.partition_path
        file_slice = each.change.after or each.change.before or FileSlice(each.group, each.change.instant_time, None)
        from_path, parsed = columns.values(partition), columns.parsed(partition)
        return ReadSlice(file_slice, from_path, file_slice.needs_merge, parsed, each.change)

    partitions = {each.group.partition_path for each in changes.changes}
    newest = meta.timeline.last_commit()
    return ReadPlan(
        schema,
        CHANGES_SCHEMA,
        predicate,
        tuple(map(read, changes.changes)),
        None,
        "incremental",
        history,
        partitions_total=len(partitions),
        partitions_read=len(partitions),
        files_total=len(changes.changes),
        newest_commit=None if newest is None else newest.requested_time,
        checkpoint=commits.checkpoint,
        changes=ChangeReading(spec, full),
    )


def _has_logs(*slices: FileSlice | None) -> bool:
    return any(each is not None and each.needs_merge for each in slices)


def _not_logged(
    requested: IncrementalRange,
    meta: MetaClient,
    commits: CommitsInRange,
    unlogged: Iterable[tuple[FileGroupId, Instant]],
) -> RangeNotReadable:
    groups = list(unlogged)
    group, newest = max(groups, key=lambda each: commits.time_of(each[1]))
    return RangeNotReadable(
        f"{meta.storage.root}: {len(groups)} file groups were rewritten in {requested} without a change log, such as "
        f"{group.file_id} in {group.partition_path!r} by {newest.requested_time}: their changes are unknown. The "
        f"table began to log changes later, or that writer logs none. Begin at {commits.time_of(newest)}."
    )
