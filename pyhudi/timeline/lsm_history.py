"""The archived timeline from table version 8 on: a log-structured merge tree of Parquet files.

    archiving    one file of level 0: one row per instant, sorted by instant time
    compaction   ten files of a level become one of the next
    reading      the files of the newest manifest that overlap the time range; bodies only on access

Source: docs/formats/history.md, "Merge tree".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TypeVar

import pyarrow as pa

from pyhudi.errors import PathNotFound
from pyhudi.formats.timeline.clean_plans import clean_metadata_of, clean_plan_of
from pyhudi.formats.timeline.history_files import (
    TIME_COLUMNS,
    RowGroup,
    read_history_file,
    row_groups_of,
    write_history_file,
)
from pyhudi.formats.timeline.instant_files import decode_avro_record, decode_commit, decode_totals
from pyhudi.model.commit import CommitMetadata, CommitTotals
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.plans import CleanMetadata, CleanPlan
from pyhudi.storage.base import Storage
from pyhudi.timeline.lsm_manifest import HistoryFile, Manifest, clean_manifests, load_manifest, write_manifest

__all__ = ["LsmHistory", "LsmInstant"]

_ACTIONS = {kind.value: kind for kind in ActionKind}
_MAX_LEVEL = 9  # the level in a file's name is one digit
_ATTEMPTS = 3
_READ_THREADS = 8  # files read at the same time

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class LsmInstant:
    """A completed instant. Its bodies are decoded on access from their rows."""

    instant: Instant
    _rows: pa.Table = field(repr=False, compare=False)
    _row: int = field(repr=False, compare=False)

    @property
    def metadata(self) -> bytes | None:
        """The bytes of its completed file."""
        body: bytes | None = self._rows.column("metadata")[self._row].as_py()
        return body

    @property
    def plan(self) -> bytes | None:
        """The bytes of its plan, for actions whose plan Hudi archives."""
        body: bytes | None = self._rows.column("plan")[self._row].as_py()
        return body

    def commit(self) -> CommitMetadata | None:
        """Return the commit metadata of a write, None for other actions."""
        if not self.instant.action.is_write:
            return None
        return decode_commit(self.metadata or b"", self._name)

    def totals(self) -> CommitTotals | None:
        """Like `commit`, with the write stats in sum."""
        return decode_totals(self.metadata or b"", self._name) if self.instant.action.is_write else None

    def clean(self) -> CleanMetadata | None:
        """See `ArchivedInstant`."""
        body = self.metadata if self.instant.action is ActionKind.CLEAN else None
        return clean_metadata_of(decode_avro_record(body, self._name), self._name) if body else None

    def clean_plan(self) -> CleanPlan | None:
        """See `ArchivedInstant`."""
        body = self.plan if self.instant.action is ActionKind.CLEAN else None
        return clean_plan_of(decode_avro_record(body, self._name), self._name) if body else None

    @property
    def _name(self) -> str:
        return f"archived {self.instant.action.value} {self.instant.requested_time}"


@dataclass(frozen=True, slots=True)
class LsmHistory:
    """The history in one folder.

    `names_are_ranges`: files may be skipped by the times in their names. False in a table upgraded from version 6: its
    first files are named after their first and last row, and their rows are not sorted.
    """

    storage: Storage
    folder: str
    names_are_ranges: bool = False

    # ---- reading

    def times(self, since: str | None = None, until: str | None = None) -> tuple[Instant, ...]:
        """Return completed instants with a requested time in [since, until], oldest first; no bodies are read."""
        return self._retry_on_missing_file(lambda: self._times(since, until, None))

    def completed_after(self, time: str, until: str | None = None) -> tuple[Instant, ...]:
        """Return instants that completed after this time, with a requested time of `until` or less, oldest first.

        Files are not ordered by completion time: files whose instants all completed before are skipped by their footer.
        """
        instants = self._retry_on_missing_file(lambda: self._times(None, until, time))
        return tuple(i for i in instants if (i.completion_time or i.requested_time) > time)

    def instants(self, since: str | None = None, until: str | None = None) -> Iterator[LsmInstant]:
        """Yield completed instants with a requested time in [since, until] and their bodies, newest first.

        Memory holds the bodies of one row group at a time, or of a few if files overlap in time.
        """
        yielded: list[Instant] = []  # instants of the newest time yielded; older ones follow
        attempts = _ATTEMPTS
        while True:
            try:
                for entry in self._newest_first(since, until):
                    if entry.instant.requested_time != until:
                        yielded.clear()
                    if entry.instant not in yielded:
                        until = entry.instant.requested_time
                        yielded.append(entry.instant)
                        yield entry
                return
            except PathNotFound:  # compaction and cleaning deleted files of an older manifest
                attempts -= 1
                if not attempts:
                    raise

    def files(self, since: str | None = None, until: str | None = None) -> list[HistoryFile]:
        """Return files that may hold instants with a requested time in [since, until]; none is opened."""
        files = load_manifest(self.storage, self.folder).files
        if not self.names_are_ranges:
            return list(files)
        return [f for f in files if (until is None or f.first <= until) and (since is None or f.last >= since)]

    def _times(self, since: str | None, until: str | None, completed_after: str | None) -> tuple[Instant, ...]:
        def read(file: HistoryFile) -> pa.Table:
            path = self._path(file.name)
            return read_history_file(self.storage, path, TIME_COLUMNS, since, until, completed_after=completed_after)

        instants: dict[tuple[str, str], Instant] = {}
        with ThreadPoolExecutor(_READ_THREADS, thread_name_prefix="hudi-history") as pool:
            tables = list(pool.map(read, self.files(since, until)))
        for table in tables:
            for time, completion, word in zip(*(table.column(n).to_pylist() for n in TIME_COLUMNS), strict=True):
                action = _ACTIONS.get(word)
                if time and action is not None:
                    instants[time, word] = Instant(time, action.completed_as, State.COMPLETED, completion)
        return tuple(
            sorted(instants.values(), key=lambda i: (i.requested_time, i.action.value, i.completion_time or ""))
        )

    def _newest_first(self, since: str | None, until: str | None) -> Iterator[LsmInstant]:
        groups = [
            (group, file.name)
            for file in self.files(since, until)
            for group in row_groups_of(self.storage, self._path(file.name), since, until)
        ]
        for cluster in _clusters(groups):
            tables = [
                read_history_file(self.storage, self._path(name), None, since, until, [group.number])
                for group, name in cluster
            ]
            yield from _rows_newest_first(tables)

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def _retry_on_missing_file(self, read: Callable[[], Result]) -> Result:
        for _ in range(_ATTEMPTS - 1):
            try:
                return read()
            except PathNotFound:
                continue
        return read()

    # ---- writing; hold the table's lock

    def append(self, rows: pa.Table) -> str:
        """Add instants that are new in the history; return the file's name.

        Args:    rows: one or more rows of HISTORY_SCHEMA, sorted by instant time.
        """
        times = rows.column("instantTime")
        name = HistoryFile.name_of(times[0].as_py(), times[-1].as_py(), 0)
        manifest = load_manifest(self.storage, self.folder)
        size_bytes = write_history_file(self.storage, self._path(name), [rows])
        file = HistoryFile(name, size_bytes)
        write_manifest(self.storage, self.folder, Manifest(manifest.version + 1, (*manifest.files, file)), [file])
        return name

    def compact(self, batch_size: int, target_bytes: int) -> tuple[str, ...]:
        """Merge levels with `batch_size` files or more into the next one, up to `target_bytes` a time.

        Returns the names of the new files, one per merged level.
        """
        made = []
        for level in range(_MAX_LEVEL):
            manifest = load_manifest(self.storage, self.folder)
            files = sorted(file for file in manifest.files if file.level == level)
            if len(files) < batch_size:
                break
            sources = _up_to(files[:batch_size], target_bytes)
            if len(sources) < 2:
                break
            made.append(self._merge(sources, level + 1, manifest))
        return tuple(made)

    def clean(self, retained_versions: int) -> tuple[str, ...]:
        """Delete all but the newest `retained_versions` manifests, and files in none of these; return the deleted
        names.
        """
        return clean_manifests(self.storage, self.folder, retained_versions)

    def _merge(self, sources: Sequence[HistoryFile], level: int, manifest: Manifest) -> str:
        groups = [(s, group) for s in sources for group in row_groups_of(self.storage, self._path(s.name))]
        # By the content of the files: names in an upgraded table may be wrong.
        name = HistoryFile.name_of(min(g.first for _, g in groups), max(g.last for _, g in groups), level)
        tables = (
            read_history_file(self.storage, self._path(source.name), row_groups=[group.number])
            for source, group in groups
        )
        size_bytes = write_history_file(self.storage, self._path(name), map(_sort_rows, tables))
        merged = HistoryFile(name, size_bytes)
        files = (*(file for file in manifest.files if file not in sources), merged)
        write_manifest(self.storage, self.folder, Manifest(manifest.version + 1, files), [merged])
        return name


def _up_to(files: Sequence[HistoryFile], target_bytes: int) -> list[HistoryFile]:
    merged, size_bytes = [], 0
    for file in files:
        size_bytes += file.size_bytes
        if size_bytes > target_bytes:
            break
        merged.append(file)
    return merged


def _clusters(groups: Sequence[tuple[RowGroup, str]]) -> Iterator[list[tuple[RowGroup, str]]]:
    """Yield row groups that overlap in time together, newest first."""
    cluster: list[tuple[RowGroup, str]] = []
    first = ""
    for group, name in sorted(groups, key=lambda g: (g[0].last, g[0].first), reverse=True):
        if cluster and group.last < first:
            yield cluster
            cluster = []
        first = min(first, group.first) if cluster else group.first
        cluster.append((group, name))
    if cluster:
        yield cluster


def _sort_rows(table: pa.Table) -> pa.Table:
    return table.sort_by([("instantTime", "ascending")])


def _rows_newest_first(tables: Sequence[pa.Table]) -> Iterator[LsmInstant]:
    rows = pa.concat_tables(tables)
    columns = (rows.column(name).to_pylist() for name in ("instantTime", "action", "completionTime"))
    completed_as = {word: action.completed_as for word, action in _ACTIONS.items()}
    keys = [
        (time, completed_as[word], done, n)
        for n, (time, word, done) in enumerate(zip(*columns, strict=True))
        if time and word in completed_as
    ]
    last: tuple[str, ActionKind] | None = None
    for time, action, done, n in sorted(keys, key=itemgetter(0, 1), reverse=True):
        if (time, action) != last:  # archived twice
            last = (time, action)
            yield LsmInstant(Instant(time, action, State.COMPLETED, done), rows, n)
