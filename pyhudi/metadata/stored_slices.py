"""Every committed file slice of a partition folder, replaced groups and change logs included: what cleaning looks at.

Unlike `FileSystemView`, which answers queries, this names files only, and it is made for folders with very many files:
a file group of one base file costs a few dictionary entries and no object.
Source: spec, files and records 1.1, 1.2; metadata and indexes 5.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pyhudi.meta_client import MetaClient
from pyhudi.metadata.file_system_view import Visibility
from pyhudi.model.file_group import BaseFile, FileGroupId, LogFile
from pyhudi.model.filenames import BASE_FILE_EXTENSIONS, LogFileName, data_path
from pyhudi.storage.base import FileInfo

__all__ = ["SliceRules", "StoredPartition", "StoredSlice"]

_BASE_ENDINGS = frozenset(BASE_FILE_EXTENSIONS)
_Named = tuple[str, str]  # instant time, name


@dataclass(slots=True)
class StoredSlice:
    """A slice by its base instant, and the names of its files."""

    base_instant: str
    names: list[str]


@dataclass(frozen=True, slots=True)
class StoredPartition:
    """`bases`, `logs`: file id → its committed files. `pending`: names of data files that no commit stands behind."""

    path: str
    bases: Mapping[str, list[_Named]]
    logs: Mapping[str, list[LogFile]]
    pending: tuple[str, ...]

    @property
    def file_ids(self) -> Iterator[str]:
        """All committed file groups."""
        yield from self.bases
        yield from (file_id for file_id in self.logs if file_id not in self.bases)

    @property
    def file_count(self) -> int:
        """Data files in the folder, committed or not."""
        committed = sum(map(len, self.bases.values())) + sum(map(len, self.logs.values()))
        return committed + len(self.pending)

    def is_single(self, file_id: str) -> bool:
        """One base file and nothing else: there is nothing older in the group."""
        return file_id not in self.logs and len(self.bases[file_id]) == 1


@dataclass(frozen=True, slots=True)
class SliceRules:
    """Which files are committed, and which slices they are, at one moment of a table."""

    visibility: Visibility
    _known: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, meta: MetaClient) -> SliceRules:
        """The rules for a table as it is at one moment."""
        return cls(Visibility.of(meta, None))

    def partition(self, path: str, files: Iterable[FileInfo]) -> StoredPartition:
        """Sort the files of a partition folder into groups."""
        bases: dict[str, list[_Named]] = {}
        logs: dict[str, list[LogFile]] = {}
        pending: list[str] = []
        start = len(path) + 1 if path else 0
        for info in files:
            name = info.path[start:]
            if name.startswith("."):
                log = LogFileName.parse(name)
                if log is None:
                    continue
                if self._is_committed(log.instant_time) or log.instant_time in self.visibility.pending_compactions:
                    logs.setdefault(log.file_id, []).append(_log_file(log, info, path))
                else:
                    pending.append(name)
                continue
            # As BaseFileName.parse, but there may be a million of them.
            stem, dot, ending = name.rpartition(".")
            if dot + ending not in _BASE_ENDINGS:
                continue
            file_id, _, rest = stem.partition("_")
            instant_time = rest.partition("_")[2].partition(".")[0]
            if not (file_id and instant_time.isdigit()):
                continue
            if self._is_committed(instant_time):
                found = bases.get(file_id)
                if found is None:
                    bases[file_id] = [(instant_time, name)]
                else:
                    found.append((instant_time, name))
            else:
                pending.append(name)
        return StoredPartition(path, bases, logs, tuple(pending))

    def slices(self, partition: StoredPartition, file_id: str) -> list[StoredSlice]:
        """The slices of one group, newest first, as readers join them."""
        found: dict[str, list[str]] = {}
        for instant_time, name in partition.bases.get(file_id, ()):
            found.setdefault(instant_time, []).append(name)
        logs = partition.logs.get(file_id)
        if logs is not None:
            bases = [
                BaseFile(data_path(partition.path, names[-1]), partition.path, file_id, instant_time, 0)
                for instant_time, names in found.items()
            ]
            group = FileGroupId(partition.path, file_id)
            for file_slice in self.visibility.file_slices(group, bases, logs):
                found.setdefault(file_slice.base_instant, []).extend(log.name for log in file_slice.log_files)
        return [StoredSlice(instant, found[instant]) for instant in sorted(found, reverse=True)]

    def _is_committed(self, instant_time: str) -> bool:
        known = self._known.get(instant_time)
        if known is None:
            known = self._known[instant_time] = self.visibility.is_visible(instant_time)
        return known


def _log_file(name: LogFileName, info: FileInfo, partition_path: str) -> LogFile:
    """A log file of either kind: a change log stays with the slice that it belongs to."""
    return LogFile(
        info.path, partition_path, name.file_id, name.instant_time, name.version, name.write_token, info.size_bytes
    )
