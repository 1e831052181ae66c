"""What an export has to add and to take away: the files that each commit since the last export changed.

    files that the export has         of its own newest version
    files that are visible now        base files of the newest slices, which a read-optimised query reads
    commits that completed since      in the order of their completion, each with the table as it was then

The last commit takes the difference between what the export has by then and what is visible now. So the export is right
whatever happened: a commit that completed late, a rollback, a restore, an archived or a cleaned timeline. The bodies of
commits only divide the difference among them. A commit whose files are gone is one with the next.

Partition columns have values of their own where every partition path gives them exactly, as in our own reads
(queries/skip/paths.py). Otherwise the export is not partitioned, and the columns come from the files.
Source: docs/exports.md; docs/formats/timeline.md, "What a reader sees"; docs/formats/file-names.md, "Visible slices".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from pyhudi.errors import UnsupportedTable
from pyhudi.exports.stored_types import unreadable_column
from pyhudi.filegroup.stats import side_by_side
from pyhudi.formats.base import open_base_file
from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import BaseFile, FileGroupId
from pyhudi.model.filenames import base_file_parts
from pyhudi.model.instant import Instant
from pyhudi.model.timeline import Timeline
from pyhudi.queries.schema import read_schema
from pyhudi.queries.skip.paths import PathColumns
from pyhudi.queries.skip.skip import metadata_source
from pyhudi.schema.casts import cast
from pyhudi.storage.base import FileInfo, Storage
from pyhudi.view.consistent_read import read_consistently, stale_reads
from pyhudi.view.file_system_view import FileSystemView, Visibility, listed_partitions

__all__ = ["DataFile", "ExportCommit", "ExportedState", "Pending", "load_pending"]

Listing = Mapping[str, Sequence[FileInfo]]
ROLLED_BACK = "rollback"  # the action of what is left when a write was undone, and none came after it


@dataclass(frozen=True, slots=True)
class DataFile:
    """A base file. `path`: relative to the table, as it is on the store. `partition_values`: of the partition columns
    of the export, in their Arrow types' Python values; empty when it has none.
    """

    path: str
    size_bytes: int
    row_count: int
    partition_path: str
    partition_values: Mapping[str, object | None]


@dataclass(frozen=True, slots=True)
class ExportCommit:
    """What a commit changed, or several that can't be told apart. `instant`: the newest of them; `action`: its action.
    `added`, `removed`: files, `removed` by path. `schema`: the columns of a reader then, meta columns first.
    `completion_time`: to be stored with `instant`; the next export begins after it.
    `partition_columns`: those whose values `added` has.
    """

    instant: str
    added: tuple[DataFile, ...]
    removed: tuple[str, ...]
    schema: pa.Schema
    action: str
    completion_time: str
    partition_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportedState:
    """What an export has: the instant and the completion time that its newest version names, and the files of that.
    `partition_columns`: as it has been made; a table can't get them later.
    """

    instant: str
    completion_time: str
    files: frozenset[str]
    partition_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pending:
    """The work of an export, seen at one moment. `log_names`: log files whose rows no base file has."""

    meta: MetaClient
    exported: ExportedState | None
    view: FileSystemView = field(repr=False)
    visible: Mapping[str, BaseFile] = field(repr=False)
    partition_columns: tuple[str, ...]
    log_names: frozenset[str] = field(repr=False)
    listing: Listing = field(repr=False)

    def commits(self) -> Iterator[ExportCommit]:
        """The commits to export, oldest first; the last one ends with what is visible.

        Raises: StaleRead when files were cleaned meanwhile: what was exported is right; begin again with the rest.
        """
        with stale_reads(self.meta):
            if self.exported is None:
                yield from self._all(self.visible.values())
            else:
                yield from self._since(self.exported)

    def whole(self) -> Iterator[ExportCommit]:
        """One commit that adds everything, for an export that has to be made again. Raises as `commits`."""
        with stale_reads(self.meta):
            yield from self._all(self.visible.values())

    def _all(self, files: Iterable[BaseFile]) -> Iterator[ExportCommit]:
        newest = self.meta.timeline.last_commit()
        if newest is not None or self.exported is not None:
            yield self._commit(newest, self.meta, files, ())

    def _since(self, exported: ExportedState) -> Iterator[ExportCommit]:
        """The commits in between as far as their files are there, and at the end the whole difference."""
        commits = self._completed_since(exported)
        state = _State.of(exported.files)
        if len(commits) > 1:
            yield from self._between(commits[:-1], state)
        added = [file for path, file in self.visible.items() if path not in state.files]
        removed = sorted(path for path in state.files if path not in self.visible)
        is_undone = any(
            instant.is_completed and instant.action.is_undoing and _time(instant) > exported.completion_time
            for instant in self.meta.timeline
        )
        if commits or added or removed or is_undone:
            last = commits[-1] if commits else None
            yield self._commit(last, self.meta, added, removed)

    def _completed_since(self, exported: ExportedState) -> list[Instant]:
        """In the order of completion. At most the newest one when archiving has passed the exported one: it may have
        passed others, too.
        """
        timeline = self.meta.timeline
        if self.meta.config.format.orders_by_completion:
            commits = [one for one in timeline.commits() if _time(one) > exported.completion_time]
        else:  # no completion times: what completed late is in the last difference
            commits = [one for one in timeline.commits() if one.requested_time > exported.instant]
        commits.sort(key=_order)
        since = timeline.active_since
        return commits[-1:] if since is None or exported.instant < since else commits

    def _between(self, commits: Sequence[Instant], state: _State) -> Iterator[ExportCommit]:
        by_group = _by_group(self.listing)
        missing = {path for path in state.files if path not in by_group.paths}
        touched: set[FileGroupId] = set()
        for commit in commits:
            body = self.meta.commits.metadata(commit)
            written = {stat.path for stat in body.stats() if stat.path is not None and _is_base_file(stat.path)}
            touched |= {FileGroupId(stat.partition_path or "", stat.file_id) for stat in body.stats()}
            for path, file_ids in (body.partition_to_replace_file_ids or {}).items():
                touched |= {FileGroupId(path, file_id) for file_id in file_ids}
            if not written <= by_group.paths:
                continue  # cleaned: the next commit says what it has become
            then = _as_of(self.meta, commit)
            added, removed = state.moved(touched, Visibility.of(then, None), by_group)
            missing -= removed
            touched.clear()
            state.put_off(added, removed)
            if not missing and self._tells(added.values()):
                yield self._commit(commit, then, *state.taken())

    def _tells(self, files: Iterable[BaseFile]) -> bool:
        """Do the paths of these files give the values of the partition columns? A partition may be gone by now."""
        if not self.partition_columns:
            return True
        columns = PathColumns(self.meta.config, read_schema(self.meta, None, self.view))
        return all(_is_told(columns, path, self.partition_columns) for path in {one.partition_path for one in files})

    def _commit(
        self, commit: Instant | None, meta: MetaClient, added: Iterable[BaseFile], removed: Iterable[str]
    ) -> ExportCommit:
        """`commit`: None when there is only something undone."""
        newest = commit or self.meta.timeline.last_commit()
        done = [_time(one) for one in meta.timeline.completed() if one.action.is_commit or one.action.is_undoing]
        before = self.exported
        schema = read_schema(meta, None, self.view)
        return ExportCommit(
            newest.requested_time if newest is not None else before.instant if before is not None else "",
            tuple(self._data_files(sorted(added, key=lambda file: file.path), schema)),
            tuple(sorted(removed)),
            schema,
            commit.action.value if commit is not None else ROLLED_BACK,
            max([*done, before.completion_time if before is not None else ""]),
            self.partition_columns,
        )

    def _data_files(self, files: Sequence[BaseFile], schema: pa.Schema) -> Iterator[DataFile]:
        columns = PathColumns(self.meta.config, schema)
        values: dict[str, Mapping[str, object | None]] = {}
        by_path = {file.path: file for file in files}
        for path, (rows, problem) in side_by_side(by_path, partial(_looked_at, self.meta.storage, schema)):
            if problem is not None:
                raise UnsupportedTable(
                    f"{self.meta.storage.root}: {path} has {problem}, which readers of other formats don't read as the "
                    "same. Rewrite the files of before the change: cluster() does. Nothing of it was exported."
                )
            file = by_path[path]
            if file.partition_path not in values:
                values[file.partition_path] = _values(columns, file.partition_path, schema, self.partition_columns)
            yield DataFile(path, file.size_bytes, rows, file.partition_path, values[file.partition_path])


def load_pending(meta: MetaClient, exported: ExportedState | None) -> Pending:
    """What is to be exported now. `exported`: what the export has; None: nothing. Raises HudiError."""
    return read_consistently(meta, partial(_pending, exported))


def _pending(exported: ExportedState | None, meta: MetaClient) -> Pending:
    source = metadata_source(meta)
    listing = source.files() if source is not None else None
    if listing is None:
        listing = dict(listed_partitions(meta.storage))
    view = FileSystemView.load(meta, listed=listing)
    visible = {file.path: file for file in view.all_base_files()}
    columns = None if exported is None else exported.partition_columns
    names = _partition_columns(meta, view, columns)
    return Pending(meta, exported, view, visible, names, _unmerged_logs(view), listing)


def _unmerged_logs(view: FileSystemView) -> frozenset[str]:
    """Names of the log files that are newer than the base file of their group."""
    names = set[str]()
    for groups in view.groups.values():
        for group in groups:
            for _, base, logs in group.parts:
                names.update(log.name for log in logs)
                if base is not None:
                    break
    return frozenset(names)


# ---- partition columns


def _partition_columns(meta: MetaClient, view: FileSystemView, exported: tuple[str, ...] | None) -> tuple[str, ...]:
    """The partition columns of the table, if each path with files gives their values; () if one does not."""
    fields = meta.config.partition_fields
    if not fields or exported == ():
        return ()
    schema = read_schema(meta, None, view)
    columns = PathColumns(meta.config, schema)
    for path, groups in view.groups.items():
        if groups and not _is_told(columns, path, fields):
            return ()
    return fields


def _is_told(columns: PathColumns, partition_path: str, names: Sequence[str]) -> bool:
    return {name for name, _ in columns.parsed(partition_path)} == set(names)


def _values(
    columns: PathColumns, partition_path: str, schema: pa.Schema, names: Sequence[str]
) -> Mapping[str, object | None]:
    if not names:
        return {}
    texts = dict(columns.parsed(partition_path))
    return {name: _value(texts[name], schema.field(name).type) for name in names}


def _value(text: str | None, kind: pa.DataType) -> object | None:
    value: object | None = None if text is None else cast(pa.array([text], pa.string()), kind)[0].as_py()
    return value


# ---- the table as it was


@dataclass(frozen=True, slots=True)
class _ByGroup:
    """Every file of the listing: its path, and those of each file group."""

    paths: frozenset[str]
    files: Mapping[FileGroupId, Sequence[FileInfo]]


def _by_group(listing: Listing) -> _ByGroup:
    files: dict[FileGroupId, list[FileInfo]] = defaultdict(list)
    for partition, infos in listing.items():
        for info in infos:
            parts = base_file_parts(info.name)
            if parts is not None:
                files[FileGroupId(partition, parts[0])].append(info)
    return _ByGroup(frozenset(info.path for infos in files.values() for info in infos), files)


@dataclass(slots=True)
class _State:
    """The files of the export after each commit. `by_group`: the same by file group; `later_*`: what the next commit
    has to change, too.
    """

    files: set[str]
    by_group: dict[FileGroupId, str]
    later_added: dict[str, BaseFile] = field(default_factory=dict)
    later_removed: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, files: Iterable[str]) -> _State:
        return cls(set(files), {_group_of(path): path for path in files})

    def moved(
        self, groups: Iterable[FileGroupId], rules: Visibility, listed: _ByGroup
    ) -> tuple[dict[str, BaseFile], set[str]]:
        """Bring these groups to what is visible by the rules. Returns: files added, and removed."""
        by_partition: dict[str, list[FileInfo]] = defaultdict(list)
        touched = list(groups)
        for group in touched:
            by_partition[group.partition_path].extend(listed.files.get(group, ()))
        bases = {
            file.group: file
            for path, infos in by_partition.items()
            for file in FileSystemView({path: rules.file_groups(path, infos)}).all_base_files()
        }
        added, removed = dict[str, BaseFile](), set[str]()
        for group in touched:
            before, now = self.by_group.get(group), bases.get(group)
            if before == (None if now is None else now.path):
                continue
            if before is not None:
                removed.add(before)
                del self.by_group[group]
            if now is not None:
                added[now.path] = now
                self.by_group[group] = now.path
        return added, removed

    def put_off(self, added: Mapping[str, BaseFile], removed: Iterable[str]) -> None:
        """Leave a change to the next commit."""
        for path in removed:
            if self.later_added.pop(path, None) is None:
                self.later_removed.add(path)
        for path, file in added.items():
            if path in self.later_removed:
                self.later_removed.remove(path)
            else:
                self.later_added[path] = file

    def taken(self) -> tuple[list[BaseFile], list[str]]:
        """What was put off; `files` has it from now on."""
        added, removed = list(self.later_added.values()), list(self.later_removed)
        self.files.difference_update(removed)
        self.files.update(self.later_added)
        self.later_added, self.later_removed = {}, set()
        return added, removed


def _as_of(meta: MetaClient, commit: Instant) -> MetaClient:
    """The table when a commit completed: without those that completed later."""
    kept = (
        one for one in meta.timeline if not (one.is_completed and one.action.is_commit) or _order(one) <= _order(commit)
    )
    return replace(meta, timeline=Timeline(tuple(kept), meta.timeline.active_since))


def _time(instant: Instant) -> str:
    return instant.completion_time or instant.requested_time


def _order(instant: Instant) -> tuple[str, str]:
    return _time(instant), instant.requested_time


def _group_of(path: str) -> FileGroupId:
    partition, _, name = path.rpartition("/")
    return FileGroupId(partition, name.partition("_")[0])


def _is_base_file(path: str) -> bool:
    return base_file_parts(path.rpartition("/")[2]) is not None


def _looked_at(storage: Storage, schema: pa.Schema, path: str) -> tuple[int, str | None]:
    """The number of rows in a file, and what others would read wrongly in it."""
    with open_base_file(storage, path) as reader:
        return reader.num_rows, unreadable_column(reader.schema, schema)
