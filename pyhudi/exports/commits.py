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

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from pyhudi.errors import UnsupportedTable
from pyhudi.exports.group_files import ExportedFiles, ListedFiles, Listing
from pyhudi.exports.stored_types import unreadable_column
from pyhudi.filegroup.stats import side_by_side
from pyhudi.formats.base import open_base_file
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import change_of
from pyhudi.model.file_group import BaseFile, FileGroupId
from pyhudi.model.instant import Instant
from pyhudi.model.timeline import Timeline
from pyhudi.queries.plan import schema_history
from pyhudi.queries.schema import read_schema
from pyhudi.queries.skip.paths import PathColumns
from pyhudi.queries.skip.skip import metadata_source
from pyhudi.schema.casts import cast
from pyhudi.storage.base import Storage
from pyhudi.view.consistent_read import read_consistently, stale_reads
from pyhudi.view.file_system_view import FileSystemView, Visibility, listed_partitions

__all__ = ["DataFile", "ExportCommit", "ExportedState", "Pending", "load_pending"]

_LISTED_ONE_BY_ONE = 50  # partitions: their folders are listed in less time than the metadata table is opened
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
    `partition_columns`: as it has been made; a table can't get them later. `is_ours`: False when another writer of the
    format has made a version since; then all files are compared.
    """

    instant: str
    completion_time: str
    files: frozenset[str]
    partition_columns: tuple[str, ...] = ()
    is_ours: bool = True


@dataclass(frozen=True, slots=True)
class Pending:
    """The work of an export, seen at one moment. `log_names`: log files whose rows no base file has. `partitions`: only
    these are looked at; None: all.
    """

    meta: MetaClient
    exported: ExportedState | None
    view: FileSystemView = field(repr=False)
    visible: Mapping[str, BaseFile] = field(repr=False)
    partition_columns: tuple[str, ...]
    log_names: frozenset[str] = field(repr=False)
    listing: Listing = field(repr=False)
    partitions: frozenset[str] | None = None

    def commits(self) -> Iterator[ExportCommit]:
        """The commits to export, oldest first; the last one ends with what is visible.

        Raises: StaleRead when files were cleaned meanwhile: what was exported is right; begin again with the rest.
        """
        with stale_reads(self.meta):
            if self.exported is None:
                yield from self._all(self.visible.values())
            else:
                yield from self._since(self.exported)

    def _all(self, files: Iterable[BaseFile]) -> Iterator[ExportCommit]:
        newest = self.meta.timeline.last_commit()
        if newest is not None:
            yield self._commit(newest, self.meta, files, (), _latest(self.meta))

    def _since(self, exported: ExportedState) -> Iterator[ExportCommit]:
        """The commits in between as far as their files are there, and at the end the whole difference."""
        commits = _completed_since(self.meta, exported)
        looked_at = self.partitions
        files = exported.files
        if looked_at is not None:
            files = frozenset(path for path in files if path.rpartition("/")[0] in looked_at)
        state = ExportedFiles.of(files)
        if len(commits) > 1 and _goes_on(self.meta, exported):
            yield from self._between(commits[:-1], state)
        added = [file for path, file in self.visible.items() if path not in state.paths]
        removed = [path for path in state.paths if path not in self.visible]
        if commits or added or removed or _has_undone(self.meta, exported):
            completion_time = max(_latest(self.meta), exported.completion_time)
            yield self._commit(commits[-1] if commits else None, self.meta, added, removed, completion_time)

    def _between(self, commits: Sequence[Instant], state: ExportedFiles) -> Iterator[ExportCommit]:
        listed = ListedFiles.of(self.listing)
        missing = {path for path in state.paths if path not in listed.paths}
        touched: set[FileGroupId] = set()
        for commit in commits:
            body = self.meta.commits.metadata(commit)
            touched |= {FileGroupId(stat.partition_path or "", stat.file_id) for stat in body.stats()}
            touched |= change_of(body).groups_replaced
            if not listed.has_all(stat.path for stat in body.stats()):
                continue  # cleaned: the next commit says what it has become
            then = _as_of(self.meta, commit)
            missing -= state.move(touched, Visibility.of(then, None), listed)
            touched.clear()
            if not missing and self._tells(state.later_added.values()):
                yield self._commit(commit, then, *state.taken(), _time(commit))

    def _tells(self, files: Iterable[BaseFile]) -> bool:
        """Do the paths of these files give the values of the partition columns? A partition may be gone by now."""
        if not self.partition_columns:
            return True
        columns = PathColumns(self.meta.config, read_schema(self.meta, None, self.view))
        return all(_is_told(columns, path, self.partition_columns) for path in {one.partition_path for one in files})

    def _commit(
        self,
        commit: Instant | None,
        meta: MetaClient,
        added: Iterable[BaseFile],
        removed: Iterable[str],
        completion_time: str,
    ) -> ExportCommit:
        """`commit`: None when there is only something undone."""
        newest = commit or self.meta.timeline.last_commit()
        schema = read_schema(meta, None, self.view)
        return ExportCommit(
            newest.requested_time if newest is not None else self.exported.instant if self.exported is not None else "",
            tuple(self._data_files(sorted(added, key=lambda file: file.path), schema)),
            tuple(sorted(removed)),
            schema,
            commit.action.value if commit is not None else ROLLED_BACK,
            completion_time,
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
    partitions = None if exported is None else _changed_partitions(meta, exported)
    listing = _listing(meta, partitions)
    view = FileSystemView.load(meta, listed=listing)
    visible = {file.path: file for file in view.all_base_files()}
    columns = None if exported is None else exported.partition_columns
    names = _partition_columns(meta, view, columns)
    return Pending(meta, exported, view, visible, names, _unmerged_logs(view), listing, partitions)


def _listing(meta: MetaClient, partitions: Collection[str] | None) -> Listing:
    if partitions is not None and len(partitions) <= _LISTED_ONE_BY_ONE:
        return dict(listed_partitions(meta.storage, sorted(partitions)))
    source = metadata_source(meta)
    listing = source.files() if source is not None else None
    if listing is None:
        return dict(listed_partitions(meta.storage, None if partitions is None else sorted(partitions)))
    return listing if partitions is None else {path: listing[path] for path in partitions if path in listing}


def _changed_partitions(meta: MetaClient, exported: ExportedState) -> frozenset[str] | None:
    """The partitions that the commits since the export wrote to or replaced files in. None: all have to be compared.

    All commits since are known where completion times order them, and nothing was undone or archived. Rows of log files
    are counted in the whole table, and a schema history says something of each file.
    """
    if not (_goes_on(meta, exported) and meta.config.format.orders_by_completion):
        return None
    if meta.config.is_merge_on_read or schema_history(meta, None):
        return None
    bodies = (meta.commits.metadata(one) for one in _completed_since(meta, exported))
    return frozenset(path for body in bodies for path in change_of(body).partitions)


def _goes_on(meta: MetaClient, exported: ExportedState) -> bool:
    """Is nothing between the export and now but commits on the active timeline? Otherwise only the whole difference
    says what changed.
    """
    then, since = meta.timeline.find(exported.instant), meta.timeline.active_since
    is_active = then is not None and then.is_completed and since is not None and exported.instant >= since
    return is_active and exported.is_ours and not _has_undone(meta, exported)


def _completed_since(meta: MetaClient, exported: ExportedState) -> list[Instant]:
    """Commits in the order of completion. At most the newest one when archiving has passed the exported one: it may
    have passed others, too.
    """
    timeline = meta.timeline
    if meta.config.format.orders_by_completion:
        commits = [one for one in timeline.commits() if _time(one) > exported.completion_time]
    else:  # no completion times: what completed late is in the last difference
        commits = [one for one in timeline.commits() if one.requested_time > exported.instant]
    commits.sort(key=_order)
    since = timeline.active_since
    return commits[-1:] if since is None or exported.instant < since else commits


def _has_undone(meta: MetaClient, exported: ExportedState) -> bool:
    """Has something been undone since?"""
    undone = (one for one in meta.timeline.completed() if one.action.is_undoing)
    return any(_time(one) > exported.completion_time for one in undone)


def _latest(meta: MetaClient) -> str:
    """The newest completion of what changes files."""
    done = (one for one in meta.timeline.completed() if one.action.is_commit or one.action.is_undoing)
    return max(map(_time, done), default="")


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


def _looked_at(storage: Storage, schema: pa.Schema, path: str) -> tuple[int, str | None]:
    """The number of rows in a file, and what others would read wrongly in it."""
    with open_base_file(storage, path) as reader:
        return reader.num_rows, unreadable_column(reader.schema, schema)
