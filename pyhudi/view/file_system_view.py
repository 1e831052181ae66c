"""`FileSystemView`: the files of a table as of now or of an earlier instant, and the listing of its folders.

The view takes the files from the metadata table, or from `listed_partitions`, which lists folders. It reads their
names:

    folder with .hoodie_partition_metadata   = partition
    base file <fileId>_<token>_<instant>.ext = opens the slice of its instant
    log file  .<fileId>_<instant>.log.<v>_.. = joins a slice of its group (other rules from version 8 on)

A file counts when its instant is committed and its group has not been replaced.
Source: docs/formats/file-names.md, "File groups and slices", "Visible slices", "Partition metadata";
docs/formats/timeline.md, "What a reader sees".
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import chain
from math import inf

from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.file_group import BaseFile, FileGroup, FileGroupId, FileSlice, LogFile, SliceParts, size_of_parts
from pyhudi.model.filenames import BaseFileName, LogFileName, base_file_parts
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.storage.base import FileInfo, Storage
from pyhudi.storage.clock import SystemClock
from pyhudi.storage.local import FolderLinks
from pyhudi.storage.place import is_local
from pyhudi.view.archived_times import ArchivedTimes
from pyhudi.warnings import warn_caller

__all__ = [
    "LISTING_THREADS",
    "FileSystemView",
    "Visibility",
    "is_partition_metadata",
    "listed_partitions",
    "load_replaced_groups",
]


LISTING_THREADS = 8  # folders listed at once; listing is bound by the store, not by the processor
# On a local disk, threads wait for Python's lock after each status, and take three times as long as one thread.
_QUICK_S, _QUICK_ENTRY_S = 0.2, 50e-6
_FOLDER_ENTRIES = 4  # opening a folder takes as long as this many statuses
_LISTED_AHEAD = 4 * LISTING_THREADS  # folders: names of a million files would fill the memory of a slow consumer
_PARTITION_METADATA = ".hoodie_partition_metadata"


def is_partition_metadata(name: str) -> bool:
    """True for the file that makes a folder a partition, in its text, Parquet or ORC form."""
    return name in (_PARTITION_METADATA, f"{_PARTITION_METADATA}.parquet", f"{_PARTITION_METADATA}.orc")


def listed_partitions(
    storage: Storage, partitions: Iterable[str] | None = None
) -> Iterator[tuple[str, list[FileInfo]]]:
    """Yield partition paths with their files, each as soon as it is listed; `partitions` None: all partitions.

    Folders are listed in parallel, those of a quick local disk one by one; `.hoodie` at the root is never entered.
    Raises StorageError for links in a circle.
    """
    descend, links = partitions is None, FolderLinks(storage.root)
    folders = deque(("",) if partitions is None else dict.fromkeys(partitions))
    clock, left_s = SystemClock(), _QUICK_S if is_local(storage) else -inf  # below zero: the disk is not quick
    with ThreadPoolExecutor(LISTING_THREADS, thread_name_prefix="hudi-list") as pool:
        pending: dict[Future[tuple[FileInfo, ...]], str] = {}
        while pending or folders:
            if not pending and (len(folders) == 1 or left_s >= 0):
                began_s = clock.monotonic_s()
                listed = [(path := folders.popleft(), entries := storage.list(path))]
                quick_s = (len(entries) + _FOLDER_ENTRIES) * _QUICK_ENTRY_S
                left_s = min(_QUICK_S, left_s + quick_s - (clock.monotonic_s() - began_s))
            else:
                while folders and len(pending) < _LISTED_AHEAD:
                    path = folders.popleft()
                    pending[pool.submit(storage.list, path)] = path
                done = wait(pending, return_when=FIRST_COMPLETED).done
                listed = [(pending.pop(future), future.result()) for future in done]
            for path, entries in listed:
                if descend:
                    for entry in entries:
                        if entry.is_dir and entry.path != ".hoodie":
                            links.follow(entry)
                            folders.append(entry.path)
                if any(is_partition_metadata(entry.name) for entry in entries):
                    yield path, [entry for entry in entries if not entry.is_dir]


_CDC_SUFFIX = ".cdc"
_UNKNOWN = ""  # not an instant time
_NOTHING_KNOWN = CommitMetadata({})  # the body in a file of zero bytes


@dataclass(frozen=True, slots=True)
class FileSystemView:
    """The visible file groups of each partition. `groups`: partition path → groups in order of file id."""

    groups: Mapping[str, tuple[FileGroup, ...]]
    as_of: str | None = None
    _latest: dict[str, tuple[FileSlice, ...]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def load(
        cls,
        meta: MetaClient,
        *,
        as_of: str | None = None,
        partitions: Iterable[str] | None = None,
        listed: Mapping[str, Sequence[FileInfo]] | None = None,
    ) -> FileSystemView:
        """List the table and build the view.

        Args:
            as_of: instant time; later files are left out. None: the newest state.
            partitions: list only these partition paths; None: find all partitions.
            listed: partition path → its files, from another source; None: folders are listed.
        """
        rules = Visibility.of(meta, as_of)
        parts = listed_partitions(meta.storage, partitions) if listed is None else listed.items()
        groups = {path: rules.file_groups(path, files) for path, files in parts}  # entries of few folders at a time
        return cls({path: groups[path] for path in sorted(groups)}, as_of)

    def partitions(self) -> tuple[str, ...]:
        """Return partition paths in text order, even without visible files; ("",) for a table without partitions."""
        return tuple(self.groups)

    def slices(self, partition_path: str) -> tuple[FileSlice, ...]:
        """Return the newest slice of each group of a partition, in order of file id; () for an unknown partition."""
        if partition_path not in self._latest:
            groups = self.groups.get(partition_path, ())
            self._latest[partition_path] = tuple(group.newest for group in groups)
        return self._latest[partition_path]

    def base_files(self, partition_path: str) -> tuple[BaseFile, ...]:
        """Return the newest base file of each group with one, as read by a read-optimised query."""
        base_files = []
        for group in self.groups.get(partition_path, ()):
            for _, base_file, _ in group.parts:
                if base_file is not None:
                    base_files.append(base_file)
                    break
        return tuple(base_files)

    def newest_parts(self) -> Iterator[tuple[str, str, SliceParts]]:
        """Yield `all_slices` as partition path, file id and parts, without creating slices."""
        return ((path, group.file_id, group.parts[0]) for path, groups in self.groups.items() for group in groups)

    def partition_totals(self) -> Iterator[tuple[str, int, int, int]]:
        """Each partition path with what its newest slices are: their number, their bytes, their log files."""
        for path, groups in self.groups.items():
            newest = [group.parts[0] for group in groups]
            logs = sum(len(log_files) for _, _, log_files in newest)
            yield path, len(newest), sum(map(size_of_parts, newest)), logs

    def count_base_files(self) -> int:
        """Return the number of `all_base_files`."""
        return sum(map(_has_base_file, chain.from_iterable(self.groups.values())))

    def all_slices(self) -> tuple[FileSlice, ...]:
        """Return `slices` of every partition, partition by partition."""
        return tuple(s for partition in self.groups for s in self.slices(partition))

    def all_base_files(self) -> tuple[BaseFile, ...]:
        """Return `base_files` of every partition, partition by partition."""
        return tuple(b for partition in self.groups for b in self.base_files(partition))


# ---- which files count, and in which slice ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Visibility:
    """The timeline's decisions about files: commits, completion times, replaced groups, pending compactions."""

    meta: MetaClient
    as_of: str | None
    completion_times: Mapping[str, str]
    archived: ArchivedTimes
    replaced: frozenset[FileGroupId]
    pending_compactions: frozenset[str]
    _visible: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)
    _ends: dict[str, str | None] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, meta: MetaClient, as_of: str | None) -> Visibility:
        timeline = meta.timeline if as_of is None else meta.timeline.up_to(as_of)
        completed = [i for i in timeline.instants if i.is_completed and i.action.is_write]
        return cls(
            meta,
            as_of,
            {i.requested_time: i.completion_time for i in completed if i.completion_time is not None},
            ArchivedTimes(meta),
            load_replaced_groups(meta, completed),
            frozenset(
                i.requested_time for i in timeline.instants if i.action is ActionKind.COMPACTION and not i.is_completed
            ),
        )

    def is_visible(self, instant_time: str) -> bool:
        """True if files of this instant count. A few instants have many files, so each is looked up once."""
        is_visible = self._visible.get(instant_time)
        if is_visible is None:
            is_later = self.as_of is not None and instant_time > self.as_of
            is_visible = self._visible[instant_time] = not is_later and self.meta.timeline.is_visible(instant_time)
        return is_visible

    def file_groups(self, partition_path: str, files: Iterable[FileInfo]) -> tuple[FileGroup, ...]:
        """Return the visible groups among the files of one partition folder."""
        bases: dict[str, BaseFile] = {}  # the first of each group; nearly all groups have only one
        more: dict[str, list[BaseFile]] = defaultdict(list)
        logs: dict[str, list[LogFile]] = defaultdict(list)
        start = len(partition_path) + 1 if partition_path else 0
        for info in files:
            name = info.path[start:]
            if (base := self._base_file(name)) is not None:
                file_id, instant_time = base
                if instant_time is not None:
                    file = BaseFile(info.path, partition_path, file_id, instant_time, info.size_bytes)
                    if bases.setdefault(file_id, file) is not file:
                        more[file_id].append(file)
            elif (log := LogFileName.parse(name)) is not None:
                logs[log.file_id].append(_log_file(log, info, partition_path))
        groups = []
        for file_id in sorted(bases.keys() | logs.keys() if logs else bases):
            if self.replaced and FileGroupId(partition_path, file_id) in self.replaced:
                continue
            base_file = bases.get(file_id)
            if base_file is not None and file_id not in more and file_id not in logs:
                groups.append(FileGroup(base_file))  # nearly every group in most tables
                continue
            group_files = [] if base_file is None else [base_file, *more.get(file_id, ())]
            slices = self.file_slices(FileGroupId(partition_path, file_id), group_files, logs.get(file_id, ()))
            if slices:
                groups.append(FileGroup(slices))
        return tuple(groups)

    def _base_file(self, name: str) -> tuple[str, str | None] | None:
        """The file id and the instant time (None if it does not count) in the name of a base file; None for another
        kind of file. Names of one instant's files have the same end, and each end is parsed once.
        """
        head, _, end = name.rpartition("_")
        file_id, _, token = head.partition("_")
        visible_time = self._ends.get(end, _UNKNOWN)
        if visible_time == _UNKNOWN or not file_id or not token or "_" in token or name.startswith("."):
            parts = base_file_parts(name)
            if parts is None:
                return None
            file_id, instant_time = parts[0], parts[2]
            visible_time = instant_time if self.is_visible(instant_time) else None
            if end.partition(".")[0] == instant_time:
                self._ends[end] = visible_time
        return file_id, visible_time

    def file_slices(
        self, group: FileGroupId, bases: Iterable[BaseFile], logs: Iterable[LogFile]
    ) -> tuple[FileSlice, ...]:
        """Return the slices of one group, newest first. Base files are filtered already."""
        by_instant: dict[str, BaseFile] = {}
        for base in bases:
            # Two base files of one instant: a retried task left one, perhaps cut off.
            other = by_instant.get(base.instant_time)
            by_instant[base.instant_time] = base if other is None else max(other, base, key=_attempt)
        attached: dict[str, list[LogFile]] = {instant: [] for instant in by_instant}
        data_logs = sorted((log for log in logs if log.suffix != _CDC_SUFFIX), key=_log_order)
        if not self.meta.config.format.has_own_log_files:
            for log in data_logs:
                if log.instant_time in attached or self.opens_slice(log.instant_time):
                    attached.setdefault(self.slice_below_8(log.instant_time, attached), []).append(log)
        else:
            for pending in self.pending_compactions:
                attached.setdefault(pending, [])
            for log in data_logs:
                if self.is_visible(log.instant_time):
                    attached.setdefault(self.slice_of(log, attached), []).append(log)
        slices = [
            FileSlice(group, instant, by_instant.get(instant), tuple(attached[instant]))
            for instant in sorted(attached, reverse=True)
        ]
        return self.merged(slices)

    def opens_slice(self, instant_time: str) -> bool:
        """True if, below version 8, a slice may begin at this instant without a base file."""
        if self.as_of is not None and instant_time > self.as_of:
            return False
        return instant_time in self.pending_compactions or self.meta.timeline.is_visible(instant_time)

    def slice_below_8(self, instant_time: str, slices: Collection[str]) -> str:
        """Return the slice of a log file: the instant in its name, unless a delta commit, from before a downgrade.

        Completion times would assign these better, but they are missing where modification times can't be set.
        """
        if instant_time in slices:
            return instant_time
        instant = self.meta.timeline.find(instant_time)
        by_compaction = instant is not None and instant.action is ActionKind.COMMIT
        if by_compaction or instant_time in self.pending_compactions:
            return instant_time
        return max((base_instant for base_instant in slices if base_instant <= instant_time), default=instant_time)

    def slice_of(self, log: LogFile, slices: Collection[str]) -> str:
        """Return, from version 8 on, the newest slice whose base instant is not after the log's completion; without
        one, the log's own slice.
        """
        completed = self.completion_times.get(log.instant_time)
        if completed is None:
            # Archived. Its completion time matters only if a slice began after it.
            began_later = any(base_instant > log.instant_time for base_instant in slices)
            completed = self.archived.completion_of(log.instant_time) if began_later else log.instant_time
        fitting = [base_instant for base_instant in slices if base_instant <= completed]
        return max(fitting, default=log.instant_time)

    def merged(self, slices: list[FileSlice]) -> tuple[FileSlice, ...]:
        """Join the slices that a pending compaction has split, and drop the empty slices that it opens
        (docs/formats/file-names.md, "File groups and slices").

        Readers see the slice of an incomplete compaction together with the one before it.
        """
        result: list[FileSlice] = []
        newer: FileSlice | None = None
        for current in slices:
            if newer is not None:
                current = replace(current, log_files=current.log_files + newer.log_files)
                newer = None
            if current.base_file is None and current.base_instant in self.pending_compactions:
                newer = current
            else:
                result.append(current)
        if newer is not None and newer.log_files:
            result.append(newer)
        return tuple(result)


def load_replaced_groups(meta: MetaClient, completed: Iterable[Instant]) -> frozenset[FileGroupId]:
    """Load file groups replaced by the replacecommits among `completed` (overwrites, clustering, dropped partitions).

    Warns of one whose file has zero bytes: it replaces nothing, as for Hudi's readers.
    """
    replaced: set[FileGroupId] = set()
    for instant in completed:
        if instant.action is ActionKind.REPLACECOMMIT:
            body = meta.commits.metadata(instant)
            if body == _NOTHING_KNOWN:
                warn_caller(
                    f"{meta.storage.root}: the file of replacecommit {instant.requested_time} is empty, so rows that "
                    "it replaced or deleted may be back. table.maintenance.repair.empty_instants() shows what can be "
                    "done."
                )
            for partition, file_ids in (body.partition_to_replace_file_ids or {}).items():
                replaced.update(FileGroupId(partition, file_id) for file_id in file_ids)
    return frozenset(replaced)


def _has_base_file(group: FileGroup) -> bool:
    # Nearly always true at once; with a hundred thousand groups each step counts.
    return isinstance(group.files, BaseFile) or any(base_file is not None for _, base_file, _ in group.parts)


def _attempt(base: BaseFile) -> tuple[list[int], str]:
    """Sort key for the attempts of a task: the numbers in their write tokens, so that 10 follows 9."""
    name = BaseFileName.parse(base.name)
    parts = name.write_token.split("-") if name is not None else ()
    return [int(part) for part in parts if part.isdecimal()], base.name


def _log_file(name: LogFileName, info: FileInfo, partition_path: str) -> LogFile:
    return LogFile(
        info.path,
        partition_path,
        name.file_id,
        name.instant_time,
        name.version,
        name.write_token or "",
        info.size_bytes,
        name.suffix or "",
    )


def _log_order(log: LogFile) -> tuple[str, int, str, str]:
    return (log.instant_time, log.version, log.write_token, log.suffix)
