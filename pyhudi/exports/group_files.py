"""The files of each file group: all in a listing, and the one in an export, commit by commit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pyhudi.model.file_group import BaseFile, FileGroupId
from pyhudi.model.filenames import base_file_parts
from pyhudi.storage.base import FileInfo
from pyhudi.view.file_system_view import FileSystemView, Visibility

__all__ = ["ExportedFiles", "ListedFiles", "Listing"]

Listing: TypeAlias = Mapping[str, Sequence[FileInfo]]  # partition path → its files


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """The base files of a listing: their paths, and those of each file group."""

    paths: frozenset[str]
    by_group: Mapping[FileGroupId, Sequence[FileInfo]]

    @classmethod
    def of(cls, listing: Listing) -> ListedFiles:
        by_group: dict[FileGroupId, list[FileInfo]] = defaultdict(list)
        for partition, infos in listing.items():
            for info in infos:
                parts = base_file_parts(info.name)
                if parts is not None:
                    by_group[FileGroupId(partition, parts[0])].append(info)
        return cls(frozenset(info.path for infos in by_group.values() for info in infos), by_group)

    def has_all(self, paths: Iterable[str | None]) -> bool:
        """True if all of these that are base files exist."""
        names = (path for path in paths if path is not None and base_file_parts(path.rpartition("/")[2]) is not None)
        return self.paths.issuperset(names)


@dataclass(slots=True)
class ExportedFiles:
    """The files of an export: their paths, and by file group. `later_added`, `later_removed`: changes since that are
    not in `paths` yet.
    """

    paths: set[str]
    by_group: dict[FileGroupId, str]
    later_added: dict[str, BaseFile] = field(default_factory=dict)
    later_removed: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, paths: Iterable[str]) -> ExportedFiles:
        path_set = set(paths)
        return cls(path_set, {_group_of(path): path for path in path_set})

    def move(self, groups: Iterable[FileGroupId], rules: Visibility, listed_files: ListedFiles) -> set[str]:
        """Update these groups to the files that are visible by the rules. Returns: the removed files."""
        touched = list(groups)
        by_partition: dict[str, list[FileInfo]] = defaultdict(list)
        for group in touched:
            by_partition[group.partition_path].extend(listed_files.by_group.get(group, ()))
        view = FileSystemView({path: rules.file_groups(path, infos) for path, infos in by_partition.items()})
        bases = {file.group: file for file in view.all_base_files()}
        removed = set[str]()
        for group in touched:
            before, now = self.by_group.get(group), bases.get(group)
            if before == (None if now is None else now.path):
                continue
            if before is not None:
                removed.add(before)
                self._put_off_removal(self.by_group.pop(group))
            if now is not None:
                self.by_group[group] = now.path
                self._put_off_addition(now)
        return removed

    def taken(self) -> tuple[list[BaseFile], list[str]]:
        """Return the added and removed files, and apply the change to `paths`."""
        added, removed = list(self.later_added.values()), list(self.later_removed)
        self.paths.difference_update(removed)
        self.paths.update(self.later_added)
        self.later_added, self.later_removed = {}, set()
        return added, removed

    def _put_off_removal(self, path: str) -> None:
        if self.later_added.pop(path, None) is None:
            self.later_removed.add(path)

    def _put_off_addition(self, file: BaseFile) -> None:
        if file.path in self.later_removed:
            self.later_removed.remove(file.path)
        else:
            self.later_added[file.path] = file


def _group_of(path: str) -> FileGroupId:
    partition, _, name = path.rpartition("/")
    return FileGroupId(partition, name.partition("_")[0])
