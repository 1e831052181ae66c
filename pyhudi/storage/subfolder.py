"""A folder of a storage as a separate storage: the metadata table lies within the table and is read like a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyhudi.storage.base import READ_BYTES_MAX, FileInfo, Storage
from pyhudi.storage.file_cache import FileState, state_of
from pyhudi.storage.paths import child, inside
from pyhudi.storage.place import file_names_in, is_local

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Subfolder"]


@dataclass(frozen=True, slots=True)
class Subfolder:
    """All calls go to `storage`, with paths below `folder`. Paths outside the folder can't be reached."""

    storage: Storage
    folder: str

    @property
    def root(self) -> str:
        return f"{self.storage.root}/{self.folder}"

    @property
    def listed_at_once(self) -> int:
        return self.storage.listed_at_once

    @property
    def keeps_order(self) -> bool:
        return self.storage.keeps_order

    @property
    def is_local(self) -> bool:
        return is_local(self.storage)

    def full_path(self, path: str) -> str:
        return self.storage.full_path(self._outer(path))

    def read(self, path: str, limit_bytes: int = READ_BYTES_MAX) -> bytes:
        return self.storage.read(self._outer(path), limit_bytes)

    def open_input(self, path: str) -> pa.NativeFile:
        return self.storage.open_input(self._outer(path))

    def open_output(self, path: str) -> pa.NativeFile:
        return self.storage.open_output(self._outer(path))

    def write(self, path: str, data: bytes) -> None:
        self.storage.write(self._outer(path), data)

    def create_new(self, path: str, data: bytes) -> None:
        self.storage.create_new(self._outer(path), data)

    def create_synced(self, path: str, data: bytes) -> None:
        self.storage.create_synced(self._outer(path), data)

    def sync(self, paths: Iterable[str]) -> None:
        self.storage.sync([self._outer(path) for path in paths])

    def list(self, path: str) -> tuple[FileInfo, ...]:
        return tuple(self._inner(entry) for entry in self.storage.list(self._outer(path)))

    def file_names_in(self, path: str) -> frozenset[str]:
        return file_names_in(self.storage, self._outer(path))

    def walk(self, path: str) -> Iterator[FileInfo]:
        return (self._inner(entry) for entry in self.storage.walk(self._outer(path)))

    def stat(self, path: str) -> FileInfo | None:
        info = self.storage.stat(self._outer(path))
        return None if info is None else self._inner(info)

    def file_state(self, path: str) -> FileState | None:
        return state_of(self.storage, self._outer(path))

    def delete(self, path: str) -> bool:
        return self.storage.delete(self._outer(path))

    def delete_tree(self, path: str) -> None:
        self.storage.delete_tree(self._outer(path))

    def check_deletable(self, path: str) -> None:
        self.storage.check_deletable(self._outer(path))

    def make_folder(self, path: str) -> None:
        self.storage.make_folder(self._outer(path))

    def set_modified(self, path: str, modified_ms: int) -> None:
        self.storage.set_modified(self._outer(path), modified_ms)

    def _outer(self, path: str) -> str:
        inner = inside(path, self.root)
        return child(self.folder, inner) if inner else self.folder

    def _inner(self, entry: FileInfo) -> FileInfo:
        path = entry.path[len(self.folder) + 1 :]
        return FileInfo(path, entry.size_bytes, entry.modified_ms, entry.is_dir, entry.leads_to)
