"""Every committed file slice of a partition folder, replaced groups and change logs included, for cleaning.

Unlike `FileSystemView`, which answers queries, this returns only file names, and is made for folders with very many
files: names are columns, and only groups with log files are processed one by one.
Source: docs/formats/file-names.md, "Data files", "File groups and slices"; docs/formats/table-services.md,
"Cleaning plan".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import BaseFile, FileGroupId, LogFile
from pyhudi.model.filenames import BASE_FILE_EXTENSIONS, LogFileName, data_path
from pyhudi.storage.base import FileInfo
from pyhudi.view.file_system_view import Visibility

__all__ = ["STORED_SLICES", "SliceRules", "StoredPartition", "slices_of_files"]

STORED_SLICES = pa.schema([("file_id", pa.string()), ("base_instant", pa.string()), ("names", pa.list_(pa.string()))])
_FILES = pa.schema([("file_id", pa.string()), ("base_instant", pa.string()), ("name", pa.string())])
_BASE_ENDINGS = frozenset(BASE_FILE_EXTENSIONS)
_Logs = list[tuple[LogFileName, FileInfo]]


@dataclass(frozen=True, slots=True)
class StoredPartition:
    """`slices`: rows of STORED_SLICES, group by group, newest slice first; names of base files before those of log
    files. `file_count`: data files in the folder, committed or not.
    """

    path: str
    slices: pa.Table
    file_count: int


@dataclass(frozen=True, slots=True)
class SliceRules:
    """The rules that say which files are committed, and in which slices, at one moment of a table."""

    visibility: Visibility
    _visible: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, meta: MetaClient) -> SliceRules:
        """Return the rules for a table at one moment."""
        return cls(Visibility.of(meta, None))

    def partition(self, path: str, files: Iterable[FileInfo]) -> StoredPartition:
        """Sort the files of a partition folder into slices."""
        names: list[str] = []
        logs: dict[str, _Logs] = {}
        log_count, start = 0, len(path) + 1 if path else 0
        for info in files:
            name = info.path[start:]
            if not name.startswith("."):
                names.append(name)
            elif (log := LogFileName.parse(name)) is not None:
                log_count += 1
                if self._is_committed(log.instant_time) or log.instant_time in self.visibility.pending_compactions:
                    logs.setdefault(log.file_id, []).append((log, info))
        bases, base_count = self._bases(names)
        visible = pa.concat_tables([bases, self._attached(path, bases, logs)]) if logs else bases
        return StoredPartition(path, slices_of_files(visible), base_count + log_count)

    def _bases(self, names: Sequence[str]) -> tuple[pa.Table, int]:
        """Return committed base files as rows of _FILES, and how many base files there are. As BaseFileName.parse."""
        # Names with an empty file id or write token.
        column = pa.array((n for n in names if "__" not in n and not n.startswith("_")), pa.string())
        parts = pc.split_pattern(column, "_", max_splits=2)
        whole = pc.equal(pc.list_value_length(parts), 3)
        if whole.true_count < len(whole):
            column, parts = column.filter(whole), parts.filter(whole)
        ends = pc.list_element(parts, 2).dictionary_encode()
        times = [_instant_time_of(end) for end in cast("list[str]", ends.dictionary.to_pylist())]
        committed = [time is not None and self._is_committed(time) for time in times]
        instants = pa.array(times, pa.string()).take(ends.indices)
        rows = pa.Table.from_arrays([pc.list_element(parts, 0), instants, column], schema=_FILES)
        if not all(committed):  # rarely false
            rows = rows.filter(pa.array(committed, pa.bool_()).take(ends.indices))
        return rows, len(instants) - instants.null_count

    def _attached(self, path: str, bases: pa.Table, logs: Mapping[str, _Logs]) -> pa.Table:
        """Return log files with their slices, as rows of _FILES."""
        under_logs = bases.filter(pc.is_in(bases.column("file_id"), pa.array(logs, pa.string())))
        by_group: dict[str, dict[str, str]] = {}
        for file_id, instant_time, name in zip(*(c.to_pylist() for c in under_logs.columns), strict=True):
            by_group.setdefault(file_id, {})[instant_time] = name
        file_ids, instants, names = list[str](), list[str](), list[str]()
        start = len(path) + 1 if path else 0
        simple = not self.visibility.pending_compactions
        before_8 = not self.visibility.meta.config.format.has_own_log_files
        for file_id, group_logs in logs.items():
            by_instant = by_group.get(file_id, {})
            base_instant = next(iter(by_instant), "")
            if simple and len(by_instant) == 1 and _belong_to(base_instant, group_logs, before_8):  # nearly every group
                attached = [(base_instant, info.path[start:]) for _, info in group_logs]
            else:
                attached = self._join_logs(FileGroupId(path, file_id), by_instant, group_logs)
            for instant_time, name in attached:
                file_ids.append(file_id)
                instants.append(instant_time)
                names.append(name)
        columns = [pa.array(column, pa.string()) for column in (file_ids, instants, names)]
        return pa.Table.from_arrays(columns, schema=_FILES)

    def _join_logs(self, group: FileGroupId, bases: Mapping[str, str], logs: _Logs) -> list[tuple[str, str]]:
        """Return base instants and names of the log files of a group, as readers join them."""
        path, file_id = group.partition_path, group.file_id
        files = [BaseFile(data_path(path, name), path, file_id, time, 0) for time, name in bases.items()]
        slices = self.visibility.file_slices(group, files, [_log_file(*log, path) for log in logs])
        return [(file_slice.base_instant, log.name) for file_slice in slices for log in file_slice.log_files]

    def _is_committed(self, instant_time: str) -> bool:
        is_visible = self._visible.get(instant_time)
        if is_visible is None:
            is_visible = self._visible[instant_time] = self.visibility.is_visible(instant_time)
        return is_visible


def slices_of_files(files: pa.Table) -> pa.Table:
    """Return rows of STORED_SLICES. `files`: a row per file with `file_id`, `base_instant` and `name`; may be empty."""
    files = files.combine_chunks()
    if not files.num_rows:
        return STORED_SLICES.empty_table()
    # The type stubs treat a chunk as a chunked column.
    file_ids, instants, names = cast("list[pa.Array]", [column.chunk(0) for column in files.columns])
    # Few instants and their ranks make one number per slice: sorting numbers is much cheaper than sorting names.
    groups, times = file_ids.dictionary_encode(), instants.dictionary_encode()
    ranks = np.argsort(np.argsort(np.array(times.dictionary.to_pylist())))
    newest_first = len(ranks) - 1 - ranks[times.indices.to_numpy()]
    slices = groups.indices.to_numpy().astype(np.int64) * len(ranks) + newest_first
    order = np.argsort(slices, kind="stable")
    starts = np.flatnonzero(np.diff(slices[order], prepend=-1))
    firsts, ends = order[starts], np.append(starts, len(order)).astype(np.int32)
    grouped = pa.ListArray.from_arrays(pa.array(ends), names.take(order))
    return pa.Table.from_arrays([file_ids.take(firsts), instants.take(firsts), grouped], schema=STORED_SLICES)


def _instant_time_of(end: str) -> str | None:
    """Return the instant time in the end of a base file's name, None for other files."""
    stem, dot, ending = end.rpartition(".")
    instant_time = stem.partition(".")[0]
    return instant_time if dot + ending in _BASE_ENDINGS and instant_time.isdigit() else None


def _belong_to(base_instant: str, logs: _Logs, before_8: bool) -> bool:
    """True if log files belong to the only slice of their group. Below version 8, the instant decides."""
    if before_8:
        return all(log.instant_time == base_instant for log, _ in logs)
    return all(log.instant_time >= base_instant for log, _ in logs)


def _log_file(name: LogFileName, info: FileInfo, partition_path: str) -> LogFile:
    """Return a log file of either kind: a change log belongs to a slice, too."""
    return LogFile(
        info.path, partition_path, name.file_id, name.instant_time, name.version, name.write_token, info.size_bytes
    )
