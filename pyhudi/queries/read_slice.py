"""ReadSlice: one file slice as a query reads it.

Source: docs/architecture.md, "How a read flows".
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.file_group import BaseFile, FileSlice
from pyhudi.queries.change_rows import GroupChange
from pyhudi.queries.pruning import PathValues

__all__ = ["ReadSlice"]


@dataclass(frozen=True, slots=True)
class ReadSlice:
    """One file slice to read.

    `path_values`: columns whose value must come from the partition's path, as text (None is null).
    `parsed_path_values`: columns whose value the path tells as well as the file; where a global index left a key in its
    partition, the path is right.
    `merges`: log files have to be merged; else the base file, which is there then, is all there is to read.
    `change`: what is read of it are the changes of one commit.
    """

    file_slice: FileSlice
    path_values: PathValues = ()
    merges: bool = False
    parsed_path_values: PathValues = ()
    change: GroupChange | None = None

    @classmethod
    def of_base_file(
        cls, base_file: BaseFile, path_values: PathValues = (), parsed_path_values: PathValues = ()
    ) -> ReadSlice:
        """A base file alone."""
        file_slice = FileSlice(base_file.group, base_file.instant_time, base_file)
        return cls(file_slice, path_values, parsed_path_values=parsed_path_values)

    @property
    def from_path(self) -> dict[str, str | None]:
        """The columns whose value is taken from the partition's path."""
        return dict(self.parsed_path_values) | dict(self.path_values)

    @property
    def base_file(self) -> BaseFile:
        """The base file of a slice that has one."""
        assert self.file_slice.base_file is not None, self.file_slice
        return self.file_slice.base_file

    @property
    def size_bytes(self) -> int:
        """Bytes of its files, as stored."""
        base = self.file_slice.base_file
        logs = sum(log.size_bytes for log in self.file_slice.log_files) if self.merges else 0
        return logs + (base.size_bytes if base is not None else 0)
