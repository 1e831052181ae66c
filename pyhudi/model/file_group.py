"""File groups, slices, base files and log files, as seen by one query or write.

Source: docs/formats/file-names.md, "File groups and slices".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "BaseFile",
    "CommittedBytes",
    "FileGroup",
    "FileGroupId",
    "FileSlice",
    "LogFile",
    "SliceParts",
    "size_of_parts",
]


@dataclass(frozen=True, slots=True, order=True)
class FileGroupId:
    """The identity of a file group: its partition path ("" when non-partitioned) and its file id."""

    partition_path: str
    file_id: str


@dataclass(frozen=True, slots=True)
class BaseFile:
    """One columnar file. `path` is relative to the table; `instant_time` is the requested time in its name."""

    path: str
    partition_path: str
    file_id: str
    instant_time: str
    size_bytes: int

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def group(self) -> FileGroupId:
        return FileGroupId(self.partition_path, self.file_id)


@dataclass(frozen=True, slots=True)
class CommittedBytes:
    """The number of bytes that a completed write wrote to one file, from its write stat."""

    instant_time: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log file. `instant_time` is the time in its name (base instant below version 8, delta commit from 8 on).

    `committed`: the bytes of completed writes; () if not looked up. `is_missing`: completed writes name it, but it does
    not exist.
    """

    path: str
    partition_path: str
    file_id: str
    instant_time: str
    version: int
    write_token: str
    size_bytes: int
    suffix: str = ""  # ".cdc" for change logs
    committed: tuple[CommittedBytes, ...] = ()
    is_missing: bool = False

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class FileSlice:
    """One base file and the log files written after it, oldest log first."""

    group: FileGroupId
    base_instant: str
    base_file: BaseFile | None  # None: only logs so far
    log_files: tuple[LogFile, ...] = ()

    @property
    def needs_merge(self) -> bool:
        return bool(self.log_files)

    @property
    def size_bytes(self) -> int:
        """The number of bytes of all its files."""
        return size_of_parts((self.base_instant, self.base_file, self.log_files))


SliceParts: TypeAlias = tuple[str, BaseFile | None, tuple[LogFile, ...]]  # base instant, base file, log files


def size_of_parts(parts: SliceParts) -> int:
    """The number of bytes of all files of a slice."""
    _, base, logs = parts
    base_bytes = 0 if base is None else base.size_bytes
    return base_bytes if not logs else base_bytes + sum(log.size_bytes for log in logs)


@dataclass(frozen=True, slots=True)
class FileGroup:
    """All slices of one file id, newest first. `files`: the slices, or the base file of a group with a single file.

    Nearly every group of a large table is one base file, and Python's garbage collector visits all objects again and
    again while a listing grows. So the slice of such a group is created on access.
    """

    files: BaseFile | tuple[FileSlice, ...]

    @property
    def group(self) -> FileGroupId:
        return self.files.group if isinstance(self.files, BaseFile) else self.files[0].group

    @property
    def file_id(self) -> str:
        return self.files.file_id if isinstance(self.files, BaseFile) else self.files[0].group.file_id

    @property
    def parts(self) -> tuple[SliceParts, ...]:
        """`slices` as plain tuples, for callers that visit all files of a table."""
        if isinstance(self.files, BaseFile):
            return ((self.files.instant_time, self.files, ()),)
        return tuple((one.base_instant, one.base_file, one.log_files) for one in self.files)

    @property
    def newest(self) -> FileSlice:
        """The newest slice."""
        if isinstance(self.files, BaseFile):
            return FileSlice(self.files.group, self.files.instant_time, self.files)
        return self.files[0]

    @property
    def slices(self) -> tuple[FileSlice, ...]:
        return (self.newest,) if isinstance(self.files, BaseFile) else self.files
