"""Files that engines show that use only file names: the newest file of each file group, ignoring the timeline.

Such an engine shows files of writes that never completed or were undone, and of file groups that were replaced, until
cleaning deletes them. Source: HudiMetadata.cpp of ClickHouse; daft/io/hudi/pyhudi/table.py of Daft.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pyhudi.errors import HudiError
from pyhudi.formats.base import open_base_file
from pyhudi.storage.base import FileInfo, Storage
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["BY_NAME", "ShownFiles", "files_with_other_names", "rows_of", "shown_by_names"]

_COUNTED_FILES = 200  # whose footers are read
_EXTENSION = ".parquet"


def _by_last_folder(path: str, file_id: str) -> tuple[str, str]:
    """ClickHouse's file group: the last folder, without a seeming extension, and the file id."""
    return PurePosixPath(path).stem, file_id


def _by_partition(path: str, file_id: str) -> tuple[str, str]:
    return path, file_id


# Engine → its notion of a file group, from a partition path and a file id.
BY_NAME: Mapping[str, Callable[[str, str], tuple[str, str]]] = {
    "clickhouse": _by_last_folder,
    "daft": _by_partition,
}


@dataclass(frozen=True, slots=True)
class ShownFiles:
    """Paths of base files. `extra`: shown, but not part of the table now; `hidden`: part of it, but not shown."""

    extra: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


@dataclass(slots=True)
class _Newest:
    """The newest file of each group by its name."""

    time_of: dict[tuple[str, str], int] = field(default_factory=dict)
    path_of: dict[tuple[str, str], str] = field(default_factory=dict)

    def see(self, group: tuple[str, str], time: int, path: str) -> None:
        if group not in self.time_of or self.time_of[group] < time:
            self.time_of[group], self.path_of[group] = time, path


def shown_by_names(
    engine: str, files_by_partition: Iterable[tuple[str, Sequence[FileInfo]]], view: FileSystemView
) -> ShownFiles:
    """Compare the files in partition folders that an engine shows with those of the table."""
    newest, group_of = _Newest(), BY_NAME[engine]
    for path, files in files_by_partition:
        for file in files:
            parts = _parts(file.name)
            if parts is not None:
                newest.see(group_of(path, parts[0]), int(parts[2]), file.path)
    shown, visible = set(newest.path_of.values()), {base.path for base in view.all_base_files()}
    return ShownFiles(tuple(sorted(shown - visible)), tuple(sorted(visible - shown)))


def files_with_other_names(files_by_partition: Iterable[tuple[str, Sequence[FileInfo]]]) -> tuple[str, ...]:
    """Paths of Parquet files in partition folders whose names are not `<id>_<token>_<time>.parquet`."""
    return tuple(
        sorted(
            file.path
            for _, files in files_by_partition
            for file in files
            if file.name.endswith(_EXTENSION) and _parts(file.name) is None
        )
    )


def _parts(name: str) -> list[str] | None:
    """The three parts of a base file's name, None for another kind of file."""
    parts = name.removesuffix(_EXTENSION).split("_")
    is_base = name.endswith(_EXTENSION) and len(parts) == 3 and parts[2].isascii() and parts[2].isdigit()
    return parts if is_base else None


def rows_of(storage: Storage, paths: Sequence[str]) -> int | None:
    """The number of rows of base files, by footers; None for many files, and for one that can't be read."""
    if len(paths) > _COUNTED_FILES:
        return None
    rows = 0
    for path in paths:
        try:
            with open_base_file(storage, path) as reader:
                rows += reader.num_rows
        except HudiError:
            return None
    return rows
