"""The files that an export has to add and remove: those that each commit since the last export changed.

    files that the export has         from its own newest version
    files that are visible now        base files of the newest slices, which a read-optimised query reads
    commits that completed since      in the order of completion, each with the table's state at that time

The last commit takes the difference between the export's files and the visible ones. So the export is right even after
a commit that completed late, a rollback, a restore, or an archived or cleaned timeline. The bodies of commits only
divide the difference among them. A commit whose files are deleted is joined with the next one.

The export is partitioned if every partition path gives the values of the partition columns exactly, as in PyHudi's
reads (queries/skip/paths.py). Otherwise it is not partitioned, and the columns come from the files. Source:
docs/exports.md; docs/formats/timeline.md, "What a reader sees"; docs/formats/file-names.md, "Visible slices".
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

_LISTED_ONE_BY_ONE = 50  # partitions: listing their folders takes less time than opening the metadata table
ROLLED_BACK = "rollback"  # the action of the remaining difference if a write was undone, and no commit followed


@dataclass(frozen=True, slots=True)
class DataFile:
    """A base file. `path`: relative to the table. `partition_values`: of the partition columns
    of the export, as Python values of their Arrow types; empty without partition columns.
    """

    path: str
    size_bytes: int
    row_count: int
    partition_path: str
    partition_values: Mapping[str, object | None]


@dataclass(frozen=True, slots=True)
class ExportCommit:
    """The changes of a commit, or of several that can't be separated. `instant`: the newest of them; `action`: its
    action. `added`, `removed`: files, `removed` by path. `schema`: the columns of a reader at that time, meta columns
    first. `completion_time`: stored with `instant`; the next export begins after it. `partition_columns`: the columns
    whose values `added` has.
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
    """The state of an export: the instant and the completion time of its newest version, and its files.
    `partition_columns`: of the export from the start; they can't be added later. `is_ours`: False if another writer of
    the format has made a version since; then all files are compared.
    """

    instant: str
    completion_time: str
    files: frozenset[str]
    partition_columns: tuple[str, ...] = ()
    is_ours: bool = True


@dataclass(frozen=True, slots=True)
class Pending:
    """The work of an export at one moment. `log_names`: log files whose rows no base file has. `partitions`: only these
    are compared; None: all.
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
        """The commits to export, oldest first; the last one ends with the visible files.

        Raises: StaleRead if files have been cleaned: the exported commits are right; start again with the others.
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
        """The commits since whose files exist, and finally the remaining difference."""
        commits = _completed_since(self.meta, exported)
        partitions = self.partitions
        files = exported.files
        if partitions is not None:
            files = frozenset(path for path in files if path.rpartition("/")[0] in partitions)
        state = ExportedFiles.of(files)
        if len(commits) > 1 and _is_continuation(self.meta, exported):
            yield from self._between(commits[:-1], state)
        added = [file for path, file in self.visible.items() if path not in state.paths]
        removed = [path for path in state.paths if path not in self.visible]
        if commits or added or removed or _has_undone(self.meta, exported):
            completion_time = max(_latest(self.meta), exported.completion_time)
            yield self._commit(commits[-1] if commits else None, self.meta, added, removed, completion_time)

    def _between(self, commits: Sequence[Instant], state: ExportedFiles) -> Iterator[ExportCommit]:
        listed_files = ListedFiles.of(self.listing)
        missing = {path for path in state.paths if path not in listed_files.paths}
        touched: set[FileGroupId] = set()
        for commit in commits:
            body = self.meta.commits.metadata(commit)
            touched |= {FileGroupId(stat.partition_path or "", stat.file_id) for stat in body.stats()}
            touched |= change_of(body).groups_replaced
            if not listed_files.has_all(stat.path for stat in body.stats()):
                continue  # cleaned: the next commit has its successor
            past = _as_of(self.meta, commit)
            missing -= state.move(touched, Visibility.of(past, None), listed_files)
            touched.clear()
            if not missing and self._tells(state.later_added.values()):
                yield self._commit(commit, past, *state.taken(), _time(commit))

    def _tells(self, files: Iterable[BaseFile]) -> bool:
        """True if paths give the partition columns' values for these files, whose partitions may no longer exist."""
        if not self.partition_columns:
            return True
        columns = PathColumns(self.meta.config, read_schema(self.meta, None, self.view))
        paths = {one.partition_path for one in files}
        return all(_gives_values(columns, path, self.partition_columns) for path in paths)

    def _commit(
        self,
        commit: Instant | None,
        meta: MetaClient,
        added: Iterable[BaseFile],
        removed: Iterable[str],
        completion_time: str,
    ) -> ExportCommit:
        """One commit to export. `commit`: None if writes were only undone."""
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
        for path, (rows, problem) in side_by_side(by_path, partial(_rows_and_problem, self.meta.storage, schema)):
            if problem is not None:
                raise UnsupportedTable(
                    f"{self.meta.storage.root}: {path} has {problem}, which readers of other formats read "
                    "differently. Rewrite the files from before the change: cluster() does. Nothing of it was exported."
                )
            file = by_path[path]
            if file.partition_path not in values:
                values[file.partition_path] = _values(columns, file.partition_path, schema, self.partition_columns)
            yield DataFile(path, file.size_bytes, rows, file.partition_path, values[file.partition_path])


def load_pending(meta: MetaClient, exported: ExportedState | None) -> Pending:
    """The work to export. `exported`: the export's state, None for a new one. Raises HudiError."""
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
    """The partitions in which commits since the export wrote or replaced files. None: all have to be compared.

    All commits since are known if completion times order them, and nothing was undone or archived. Rows of log files
    are counted in the whole table, and a schema history concerns each file.
    """
    if not (_is_continuation(meta, exported) and meta.config.format.orders_by_completion):
        return None
    if meta.config.is_merge_on_read or schema_history(meta, None):
        return None
    bodies = (meta.commits.metadata(one) for one in _completed_since(meta, exported))
    return frozenset(path for body in bodies for path in change_of(body).partitions)


def _is_continuation(meta: MetaClient, exported: ExportedState) -> bool:
    """True if only commits on the active timeline separate the export from now. Otherwise only the whole difference
    shows the changes.
    """
    exported_instant, since = meta.timeline.find(exported.instant), meta.timeline.active_since
    is_active = (
        exported_instant is not None
        and exported_instant.is_completed
        and since is not None
        and exported.instant >= since
    )
    return is_active and exported.is_ours and not _has_undone(meta, exported)


def _completed_since(meta: MetaClient, exported: ExportedState) -> list[Instant]:
    """Commits in the order of completion. Only the newest one if the exported one is archived: others may be archived,
    too.
    """
    timeline = meta.timeline
    if meta.config.format.orders_by_completion:
        commits = [one for one in timeline.commits() if _time(one) > exported.completion_time]
    else:  # without completion times, late commits are in the last difference
        commits = [one for one in timeline.commits() if one.requested_time > exported.instant]
    commits.sort(key=_order)
    since = timeline.active_since
    return commits[-1:] if since is None or exported.instant < since else commits


def _has_undone(meta: MetaClient, exported: ExportedState) -> bool:
    """True if a write was undone since."""
    undone = (one for one in meta.timeline.completed() if one.action.is_undoing)
    return any(_time(one) > exported.completion_time for one in undone)


def _latest(meta: MetaClient) -> str:
    """The newest completion time of a commit or undo."""
    completed = (one for one in meta.timeline.completed() if one.action.is_commit or one.action.is_undoing)
    return max(map(_time, completed), default="")


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
        if groups and not _gives_values(columns, path, fields):
            return ()
    return fields


def _gives_values(columns: PathColumns, partition_path: str, names: Sequence[str]) -> bool:
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


# ---- earlier states of the table


def _as_of(meta: MetaClient, commit: Instant) -> MetaClient:
    """The table when a commit completed, without later completed ones."""
    instants = (
        one for one in meta.timeline if not (one.is_completed and one.action.is_commit) or _order(one) <= _order(commit)
    )
    return replace(meta, timeline=Timeline(tuple(instants), meta.timeline.active_since))


def _time(instant: Instant) -> str:
    return instant.completion_time or instant.requested_time


def _order(instant: Instant) -> tuple[str, str]:
    return _time(instant), instant.requested_time


def _rows_and_problem(storage: Storage, schema: pa.Schema, path: str) -> tuple[int, str | None]:
    """The number of rows in a file, and a column that other readers would read wrongly, as text."""
    with open_base_file(storage, path) as reader:
        return reader.num_rows, unreadable_column(reader.schema, schema)
