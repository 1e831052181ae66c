"""Files in a folder or bucket, the oldest first, each once. Source: Hudi's DFSPathSelector.

The checkpoint is Hudi's: milliseconds of the newest file that was read. A file that arrives with an older time (a copy
that keeps its time, a slow upload) would be lost by it. So the commit also notes which files were read (`READ_FILES`):
a digest each, of the newest ones, and the time up to which all count as read.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import xxhash

from pyhudi.errors import ConfigError, CorruptFile, HudiError, PathNotFound, StorageError
from pyhudi.storage import open_storage
from pyhudi.storage.base import FileInfo, Storage
from pyhudi.streamer.checkpoints import Start
from pyhudi.streamer.json_messages import RowColumns, typed_columns
from pyhudi.streamer.sources.files.date_folders import DateFolders
from pyhudi.streamer.sources.files.formats import (
    BatchColumns,
    RowsOfFile,
    avro_rows,
    csv_rows,
    grouped,
    is_cut_line,
    json_rows,
    orc_rows,
    parquet_rows,
)
from pyhudi.streamer.sources.source import Batch, Fetched, Rejected, SourceSetting, SplitSource

__all__ = ["READ_FILES", "AvroFiles", "CsvFiles", "JsonFiles", "OrcFiles", "ParquetFiles"]

READ_FILES = "pyhudi.streamer.read.files"  # a key of extra metadata
_LIMIT_BYTES = 512 << 20
_FILES_MAX = 10_000  # of a batch
_HELD_MAX = 50_000  # of a listing, whose first ones are looked for
_NOTED_MAX = 5_000  # files of a note, 16 bytes each
_LONG_MIN = -(2**63)
_PAIR = struct.Struct("<qQ")
_HIDDEN = (".", "_")


@dataclass(frozen=True)
class _Read:
    """The files that were read: all up to `floor_ms`, and those of the digests, each with its time."""

    floor_ms: int
    times: Mapping[int, int]

    @classmethod
    def of(cls, start: Start) -> _Read:
        """As a commit notes it; by the time alone where the checkpoint is Hudi's, or given by hand."""
        text = (start.notes or {}).get(READ_FILES)
        if text and not start.is_given:
            try:
                noted = json.loads(text)
                packed = base64.b64decode(noted["files"])
                return cls(int(noted["floor"]), {digest: ms for ms, digest in _PAIR.iter_unpack(packed)})
            except (ValueError, KeyError, TypeError, struct.error) as error:
                raise CorruptFile(f"The commit {start.after}: {READ_FILES} can't be read: {error}.") from error
        return cls(_LONG_MIN if start.text is None else _milliseconds(start.text), {})

    def has(self, file: FileInfo) -> bool:
        return file.modified_ms <= self.floor_ms or _digest(file) in self.times

    def with_files(self, files: Sequence[FileInfo], left_ms: int | None) -> _Read:
        """With more; the oldest digests become part of the time, but not beyond the first file that is left."""
        times = {**self.times, **{_digest(file): file.modified_ms for file in files}}
        newest = sorted(times.items(), key=lambda pair: pair[1], reverse=True)
        if len(newest) <= _NOTED_MAX:
            return _Read(self.floor_ms, times)
        # Of the newest time more may come.
        floor = min(newest[_NOTED_MAX][1], newest[0][1] - 1)
        floor = floor if left_ms is None else min(floor, left_ms - 1)
        return _Read(max(self.floor_ms, floor), {digest: ms for digest, ms in newest if ms > floor})

    def note(self) -> str:
        packed = b"".join(_PAIR.pack(ms, digest) for digest, ms in self.times.items())
        return json.dumps({"floor": self.floor_ms, "files": base64.b64encode(packed).decode()})


@dataclass(frozen=True, slots=True)
class _Plan:
    """The files of a batch, the oldest first. `text`: the checkpoint that it begins at. `left_ms`: the time of the
    first file behind it.
    """

    seen: _Read
    text: str | None
    files: Sequence[FileInfo]
    left_ms: int | None


class FilesSource(SplitSource[_Plan, Sequence[FileInfo]]):
    """What the formats share."""

    rows_of: RowsOfFile

    def __init__(self, setting: SourceSetting) -> None:
        self._settings, self._options = setting.settings, setting.settings.options
        files = self._options.files
        if files.root is None:
            raise ConfigError(f"{setting.settings.place}: hoodie.streamer.source.dfs.root is missing: a folder.")
        self.storage: Storage = open_storage(files.root, setting.settings.store)
        self._folders = DateFolders.of(files, setting.settings.place)
        self._clock, self._settle_ms = setting.clock, files.settle_s * 1000

    def plan(self, start: Start, limit: int | None) -> _Plan | None:
        """The oldest files that were not read."""
        seen = _Read.of(start)
        files, left_ms = _oldest_first(self._folders.files(self.storage, self._clock), seen, limit or _LIMIT_BYTES)
        return _Plan(seen, start.text, files, left_ms) if files else None

    def splits(self, plan: _Plan, parts: int) -> Sequence[Sequence[FileInfo]]:
        """Groups of files."""
        return grouped(plan.files, [file.size_bytes for file in plan.files], parts)

    def fetch(self, split: Sequence[FileInfo], columns: RowColumns) -> Fetched:
        """The rows of files; `end`: which of them were read, and whether one has to wait."""
        said: list[str] = []
        done: list[int] = []
        removed: list[int] = []
        tables: list[pa.Table] = []
        rejected: list[Rejected] = []
        waits = False
        fitting = BatchColumns(columns, self._settings)
        for number, file in enumerate(split):
            try:
                table, refused = self._whole(file, columns)
            except PathNotFound:
                removed.append(number)
                continue
            except (HudiError, pa.ArrowException, OSError, ValueError, EOFError) as error:
                if isinstance(error, StorageError):
                    raise
                if self._is_young(file):
                    said.append(f"{file.path} can't be read yet and waits for the next round: {error}"[:300])
                    waits = True  # files behind it wait, too, so that the checkpoint is right for Hudi as well
                    break
                table, refused = None, [Rejected(file.path, "", f"the file can't be read: {error}"[:500])]
            done.append(number)
            problem = None if table is None else fitting.problem_of(table)
            if problem is not None:
                table, refused = None, [Rejected(file.path, "", problem)]
            rejected += refused
            if table is not None and table.num_columns:
                tables.append(table)
        rows = typed_columns(tables) if tables else columns.schema.empty_table()
        return Fetched(rows, rejected, json.dumps({"done": done, "removed": removed, "waits": waits}), said)

    def batch(self, plan: _Plan, fetched: Iterable[tuple[Sequence[FileInfo], Fetched]], columns: RowColumns) -> Batch:
        """All files before the first one that has to wait, and before a part whose columns don't fit. The next batch
        begins with the latter, and finds the files in it that don't fit the table.
        """
        parts: list[Fetched] = []
        done: list[FileInfo] = []
        looked_at = 0
        said: list[str] = []
        fitting = BatchColumns(RowColumns(pa.schema([])), self._settings)
        for split, part in fetched:
            if fitting.problem_of(part.rows) is not None:
                said.append(f"{split[0].path} and what is behind it come in the next batch: other types of columns")
                break
            end = json.loads(part.end)
            parts.append(part)
            looked_at += len(end["done"]) + len(end["removed"])
            said += [self._removed(split[number]) for number in end["removed"]] + [*part.said]
            done += [split[number] for number in end["done"]]
            if end["waits"]:
                break
        if not done:
            # A commit of nothing forgets no file that was read.
            noted = {READ_FILES: plan.seen.note()} if plan.seen.times else {}
            return Batch(columns.schema.empty_table(), plan.text or str(_LONG_MIN), notes=noted, said=said)
        rows = typed_columns([part.rows for part in parts])
        rejected = [one for part in parts for one in part.rejected]
        newest = max(file.modified_ms for file in done)
        left = plan.files[looked_at:]
        left_ms = left[0].modified_ms if left else plan.left_ms
        if left_ms is not None:
            newest = min(newest, left_ms - 1)  # for Hudi, which would leave others of this time out
        newest = newest if plan.text is None else max(newest, _milliseconds(plan.text))
        notes = {READ_FILES: plan.seen.with_files(done, left_ms).note()}
        return Batch(rows, str(newest), rejected, notes, said, splits=range(len(parts)))

    def close(self) -> None:
        """Nothing is open."""

    def _removed(self, file: FileInfo) -> str:
        if self.storage.stat(file.path) is not None:
            raise StorageError(
                f"{self.storage.root}: {file.path} is there, and was not where it was read. On Spark all workers must "
                "see the folder under this path. Nothing was written."
            )
        return f"{file.path} was removed before it was read"

    def _is_young(self, file: FileInfo) -> bool:
        """True if somebody may still be writing it."""
        return self._clock.now_ms() - file.modified_ms < self._settle_ms

    def _whole(self, file: FileInfo, columns: RowColumns) -> tuple[pa.Table | None, list[Rejected]]:
        """A file as it was listed. Raises ValueError for one that changed while it was read."""
        table, refused = type(self).rows_of(self.storage, file.path, columns)
        now = self.storage.stat(file.path)
        if now is None or (now.size_bytes, now.modified_ms) != (file.size_bytes, file.modified_ms):
            raise ValueError("somebody is writing it")
        return table, refused


class JsonFiles(FilesSource):
    """A JSON object a line."""

    rows_of = staticmethod(json_rows)

    def _whole(self, file: FileInfo, columns: RowColumns) -> tuple[pa.Table | None, list[Rejected]]:
        """A file with whole lines."""
        table, refused = super()._whole(file, columns)
        if self._is_young(file) and is_cut_line(self.storage, file.path, refused):
            raise ValueError("its last line has no end")
        return table, refused


class CsvFiles(FilesSource):
    """CSV with its columns in the first line."""

    rows_of = staticmethod(csv_rows)

    def __init__(self, setting: SourceSetting) -> None:
        super().__init__(setting)
        if not self._options.files.has_csv_header:
            raise ConfigError(
                f"{setting.settings.place}: CsvDFSSource reads files whose first line has the columns: add "
                "hoodie.streamer.csv.header=true. Files without one can't be read yet."
            )


class ParquetFiles(FilesSource):
    """Parquet."""

    rows_of = staticmethod(parquet_rows)


class OrcFiles(FilesSource):
    """ORC."""

    rows_of = staticmethod(orc_rows)


class AvroFiles(FilesSource):
    """Avro containers."""

    rows_of = staticmethod(avro_rows)


def _oldest_first(listed: Iterable[FileInfo], seen: _Read, limit_bytes: int) -> tuple[list[FileInfo], int | None]:
    """The files to read, as many as the limit allows, and the time of the first one that is left. Those of one
    millisecond stay together, as Hudi's checkpoint has to have them, if memory allows: object stores count in seconds.
    """
    files: list[FileInfo] = []
    left: list[int] = []
    for file in listed:
        if file.size_bytes and not _is_hidden(file.path) and not seen.has(file):
            files.append(file)
            if len(files) > _HELD_MAX:
                files, left_ms = _first(files, limit_bytes)
                left += [] if left_ms is None else [left_ms]
    files, left_ms = _first(files, limit_bytes)
    left += [] if left_ms is None else [left_ms]
    return files, min(left, default=None)


def _first(files: list[FileInfo], limit_bytes: int) -> tuple[list[FileInfo], int | None]:
    files.sort(key=lambda file: (file.modified_ms, file.path))
    size_bytes = 0
    for number, file in enumerate(files):
        size_bytes += file.size_bytes
        is_full = number >= _FILES_MAX or size_bytes > max(limit_bytes, _LIMIT_BYTES)
        is_of_last = number > 0 and file.modified_ms == files[number - 1].modified_ms
        if number and (is_full or (size_bytes > limit_bytes and not is_of_last)):
            return files[:number], file.modified_ms
    return files, None


def _is_hidden(path: str) -> bool:
    return any(part.startswith(_HIDDEN) for part in path.split("/"))


def _digest(file: FileInfo) -> int:
    return xxhash.xxh64_intdigest(f"{file.path}\0{file.modified_ms}\0{file.size_bytes}".encode())


def _milliseconds(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(
            f"The checkpoint {text!r:.100} is none of files, which is milliseconds of a time: it is another source's. "
            "Give one by checkpoint, or start over by ignore-checkpoint."
        ) from None
