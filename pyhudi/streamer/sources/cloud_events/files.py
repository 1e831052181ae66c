"""Files that a table of events names, as S3EventsSource writes it: each is read once. Source: S3EventsHoodieIncrSource.

    commits behind the checkpoint → their events, by commit and key → the first ones up to the limit → files → rows

The checkpoint is Hudi's: the commit that was read last, `T`, or `T#key` in the middle of a commit. Commits go by their
requested times, and none behind a write that is not complete is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError, HudiError, PathNotFound, StorageError
from pyhudi.meta_client import MetaClient
from pyhudi.model.keys import COMMIT_TIME
from pyhudi.model.options.queries import BEGIN, END, IncrementalOptions
from pyhudi.queries.incremental_range import first_hole
from pyhudi.queries.query import IncrementalRange
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.streamer.checkpoints import Start
from pyhudi.streamer.json_messages import RowColumns, typed_columns
from pyhudi.streamer.sources.cloud_events.columns import GCS, S3, FileChoice, NotificationColumns
from pyhudi.streamer.sources.cloud_events.read_events import READ_EVENTS, ReadEvents, digest_of
from pyhudi.streamer.sources.files.formats import FORMATS, BatchColumns, grouped
from pyhudi.streamer.sources.source import Batch, Fetched, Rejected, SourceSetting, SplitSource
from pyhudi.table import HudiTable

__all__ = ["GcsFiles", "S3Files"]

_LIMIT_BYTES = 512 << 20
_THREADS = 8  # a request to a store takes longer than a small file
_ZERO = "00000000000000"
_TEXT = re.compile(r"(?P<commit>\d{14}|\d{17})(#(?P<key>.*))?", re.ASCII | re.DOTALL)
_EVERYTHING = {"hoodie.datasource.read.incr.fallback.fulltablescan.enable": "true"}
_MERGED_ROWS = 100_000  # events that are held while the first ones are looked for


@dataclass(frozen=True, slots=True)
class _At:
    """A checkpoint. `key`: of the last object of the commit that was read; None: all were."""

    commit: str
    key: str | None

    @classmethod
    def of(cls, text: str | None) -> _At:
        matched = _TEXT.fullmatch(text or _ZERO)
        if matched is None:
            raise ConfigError(
                f"The checkpoint {text!r:.200} is none of files that events name, which is the time of a commit, or "
                "TIME#KEY: it is another source's. Give one by checkpoint, or start over by ignore-checkpoint."
            )
        return cls(matched["commit"], matched["key"] or None)

    def __str__(self) -> str:
        return self.commit if self.key is None else f"{self.commit}#{self.key}"


@dataclass(frozen=True, slots=True)
class EventFile:
    """An object of a bucket."""

    bucket: str
    key: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Plan:
    """`events`: their digests, of which the commit notes the newest."""

    files: Sequence[EventFile]
    checkpoint: str
    seen: ReadEvents
    events: Sequence[int]


class EventFiles(SplitSource[_Plan, Sequence[EventFile]]):
    """What the stores share."""

    columns: NotificationColumns

    def __init__(self, setting: SourceSetting) -> None:
        options = setting.settings.options
        if options.hudi.path is None:
            raise ConfigError(
                f"{setting.settings.place}: hoodie.streamer.source.hoodieincr.path is missing: the table of events."
            )
        self._path, self._commits_max = options.hudi.path, options.hudi.num_instants
        self._options = options.event_files
        self._choice = FileChoice.of(self._options, has_csv_header=options.files.has_csv_header)
        self._settings, self._store = setting.settings, setting.settings.store
        self._scheme = self.columns.scheme or self._options.scheme.lower()
        self._meta = MetaClient.load(open_storage(self._path, self._store))
        self._buckets: dict[str, Storage] = {}

    def plan(self, start: Start, limit: int | None) -> _Plan | None:
        """The files of the next events."""
        at, seen = _At.of(start.text), ReadEvents.of(start)
        known = seen.digests
        self._meta = self._meta.reload()
        commits = self._commits_behind(at)
        if not commits:
            return None
        events, is_all = self._first(self._events(at, commits), limit or _LIMIT_BYTES)
        last = _At(commits[-1], None)
        if not is_all:
            last = _At(events[COMMIT_TIME][-1].as_py(), events["raw_key"][-1].as_py())
        files: dict[tuple[str, str], tuple[str, int, EventFile]] = {}
        for row in events.to_pylist():
            name, digest = (row["bucket"], row["key"]), digest_of(row["bucket"], row["raw_key"], row["version"])
            time = row["time"] or ""
            if digest not in known and (name not in files or files[name][0] <= time):
                files[name] = (time, digest, EventFile(*name, row["size"]))
        return _Plan(
            [file for _, _, file in files.values()], str(last), seen, [digest for _, digest, _ in files.values()]
        )

    def splits(self, plan: _Plan, parts: int) -> Sequence[Sequence[EventFile]]:
        """Groups of files."""
        return grouped(plan.files, [file.size_bytes for file in plan.files], parts)

    def fetch(self, split: Sequence[EventFile], columns: RowColumns) -> Fetched:
        """The rows of files, each by a thread."""
        tables: list[pa.Table] = []
        rejected: list[Rejected] = []
        said: list[str] = []
        fitting = BatchColumns(columns, self._settings)
        for file in split:
            self._bucket(file.bucket)
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="hudi-files") as pool:
            for file, part in zip(split, pool.map(lambda one: self._rows(one, columns), split), strict=True):
                if part is None:
                    said.append(f"{file.bucket}/{file.key} was removed before it was read")
                    continue
                rows, refused = part
                if problem := fitting.problem_of(rows):
                    rejected.append(Rejected(f"{file.bucket}/{file.key}", "", problem))
                    continue
                rejected += refused
                if rows.num_columns:
                    tables.append(rows)
        return Fetched(typed_columns(tables) if tables else columns.schema.empty_table(), rejected, "", said)

    def batch(self, plan: _Plan, fetched: Iterable[tuple[Sequence[EventFile], Fetched]], columns: RowColumns) -> Batch:
        """All of them together."""
        parts = [part for _, part in fetched]
        tables = [part.rows for part in parts if part.rows.num_columns]
        rows = typed_columns(tables) if tables else columns.schema.empty_table()
        text = plan.seen.with_batch(plan.events).note() if plan.events else plan.seen.text
        notes = {READ_EVENTS: text} if text else {}
        rejected = [one for part in parts for one in part.rejected]
        said = [line for part in parts for line in part.said]
        return Batch(rows, plan.checkpoint, rejected, notes, said, splits=range(len(parts)))

    def close(self) -> None:
        """Nothing is open."""

    # ---- events

    def _commits_behind(self, at: _At) -> list[str]:
        """The requested times of the commits whose events come next, also of one that was read in part. The events of
        archived commits come with those of the first one that was not.
        """
        completed = self._meta.timeline.commits().instants
        behind = IncrementalRange(at.commit, None, IncrementalOptions(holes="BLOCK"))
        hole = first_hole(behind, self._meta, list(completed))
        times = sorted(
            one.requested_time
            for one in completed
            if (behind.has(one.requested_time) or (at.key is not None and one.requested_time == at.commit))
            and (hole is None or one.requested_time < hole)
        )
        return times[: self._commits_max]

    def _events(self, at: _At, commits: Sequence[str]) -> Iterator[pa.Table]:
        """The events of these commits, in parts."""
        table = HudiTable.open(self._path, storage_options=self._store)
        names = [COMMIT_TIME, *self.columns.read(table.schema().names, self._path)]
        changes = table.changes(columns=names, options={**self._range(at, commits), **_EVERYTHING})
        for batch in changes.to_batches():
            events = self.columns.flat(pa.Table.from_batches([batch]))
            time = events[COMMIT_TIME]
            is_new = pc.and_(pc.greater_equal(time, at.commit), pc.less_equal(time, commits[-1]))
            read = pc.equal(time, at.commit)
            if at.key is not None:
                read = pc.and_(read, pc.less_equal(events["raw_key"], at.key))
            yield self._choice.of_events(events.filter(pc.and_(is_new, pc.invert(read))))

    def _range(self, at: _At, commits: Sequence[str]) -> Mapping[str, str]:
        """The range of an incremental query that has all rows of these commits; it may have more."""
        by_completion = self._meta.config.format.orders_by_completion
        times = {
            one.requested_time: (one.completion_time if by_completion else None) or one.requested_time
            for one in self._meta.timeline.commits().instants
        }
        first = min(times[commit] for commit in commits)
        before = max((time for time in times.values() if time < first), default=_ZERO)
        since = self._meta.timeline.active_since
        if since is None or at.commit < since:
            before = _ZERO  # some may be archived
        return {BEGIN: before, END: max(times[commit] for commit in commits)}

    def _first(self, parts: Iterable[pa.Table], limit_bytes: int) -> tuple[pa.Table, bool]:
        """The first events by commit and key, and whether these are all. Memory holds little more than them."""
        held: list[pa.Table] = []
        is_all = True
        for part in parts:
            held.append(part)
            if sum(one.num_rows for one in held) > _MERGED_ROWS + self._options.max_files:
                first, is_whole = self._cut(held, limit_bytes)
                held, is_all = [first], is_all and is_whole
        first, is_whole = self._cut(held, limit_bytes)
        return first, is_all and is_whole

    def _cut(self, parts: Sequence[pa.Table], limit_bytes: int) -> tuple[pa.Table, bool]:
        if not parts:
            return NotificationColumns.none(), True
        events = pa.concat_tables(parts).sort_by([(COMMIT_TIME, "ascending"), ("raw_key", "ascending")])
        behind_bytes = np.cumsum(events["size"].to_numpy())
        count = min(max(1, int(np.count_nonzero(behind_bytes <= limit_bytes))), self._options.max_files)
        if count >= events.num_rows:
            return events, True
        # Objects of one key in two buckets are one position.
        commits, keys = (events[name].to_pylist() for name in (COMMIT_TIME, "raw_key"))
        while count < len(keys) and (commits[count], keys[count]) == (commits[count - 1], keys[count - 1]):
            count += 1
        return events.slice(0, count), count == len(keys)

    # ---- files

    def _bucket(self, name: str) -> Storage:
        if name not in self._buckets:
            self._buckets[name] = open_storage(f"{self._scheme}://{name}", self._store)
        return self._buckets[name]

    def _rows(self, file: EventFile, columns: RowColumns) -> tuple[pa.Table, list[Rejected]] | None:
        """The rows of a file, and what of it is none; None for one that is gone."""
        try:
            rows, refused = FORMATS[self._options.format](self._buckets[file.bucket], file.key, columns)
        except PathNotFound:
            return None
        except (HudiError, pa.ArrowException, OSError, ValueError, EOFError) as error:
            if isinstance(error, StorageError):
                raise
            place = f"{file.bucket}/{file.key}"
            return columns.schema.empty_table(), [Rejected(place, "", f"the file can't be read: {error}"[:500])]
        for name in self._options.path_columns:
            matched = re.search(f"{re.escape(name)}=([^/]*)", file.key)
            array = pa.repeat(pa.scalar(matched[1] if matched else None, pa.string()), rows.num_rows)
            at = rows.schema.get_field_index(name)
            rows = rows.append_column(name, array) if at < 0 else rows.set_column(at, name, array)
        return rows, [Rejected(f"{file.bucket}/{one.position}", one.text, one.reason) for one in refused]


class S3Files(EventFiles):
    """Objects of S3."""

    columns = S3


class GcsFiles(EventFiles):
    """Objects of Google's storage."""

    columns = GCS
