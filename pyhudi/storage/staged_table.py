"""`StagedTable`: a new table, built inside the folder of the table that it replaces, until it is moved into place.

    .hoodie/.temp/replacement-<id>/    the new table: its `.hoodie`, its partitions
    .hoodie/.temp/replaced_by          the name of that folder, as soon as the new table is complete

The new table takes effect at the moment when the old one's properties are gone. Until its files are in their final
place, it is read where it was built; `staged_table` finds it there. `actions/replacement.py` describes the steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from pyhudi.errors import CorruptFile, PathNotFound, StorageError, WriteConflict
from pyhudi.model.filenames import PROPERTIES_PATH, REPLACEMENT_PATH, REPLACEMENT_PREFIX, TEMPORARY_FOLDER
from pyhudi.storage.base import READ_BYTES_MAX, FileInfo, Storage
from pyhudi.storage.file_cache import FileState, state_of
from pyhudi.storage.paths import child
from pyhudi.storage.place import file_names_in
from pyhudi.storage.subfolder import Subfolder

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StagedTable", "place_of", "replacement_name", "staged_table"]

_NAME = re.compile(re.escape(REPLACEMENT_PREFIX) + r"[0-9a-f-]{36}", re.ASCII)
_NAME_BYTES_MAX = 1 << 10


@dataclass(frozen=True)
class StagedTable(Subfolder):
    """The new table. Its root is that of the table which it replaces.

    `is_complete`: False for the process that builds it; True for all others, which can only read it. A reader
    continues in the final place once the table has moved there.
    """

    is_complete: bool = False

    @property
    def root(self) -> str:
        return self.storage.root

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.rpartition("/")[2]

    def read(self, path: str, limit_bytes: int = READ_BYTES_MAX) -> bytes:
        try:
            return super().read(path, limit_bytes)
        except PathNotFound:
            if not self._has_moved():
                raise
            return self.storage.read(path, limit_bytes)

    def open_input(self, path: str) -> pa.NativeFile:
        try:
            return super().open_input(path)
        except PathNotFound:
            if not self._has_moved():
                raise
            return self.storage.open_input(path)

    # A listing is checked afterwards: if the table has not moved by then, the folder was whole.

    def list(self, path: str) -> tuple[FileInfo, ...]:
        entries = super().list(path)
        return self.storage.list(path) if self._has_moved() else entries

    def file_names_in(self, path: str) -> frozenset[str]:
        names = super().file_names_in(path)
        return file_names_in(self.storage, path) if self._has_moved() else names

    def walk(self, path: str) -> Iterator[FileInfo]:
        if not self.is_complete:
            return super().walk(path)
        entries = list(super().walk(path))
        return self.storage.walk(path) if self._has_moved() else iter(entries)

    def stat(self, path: str) -> FileInfo | None:
        entry = super().stat(path)
        return self.storage.stat(path) if entry is None and self._has_moved() else entry

    def file_state(self, path: str) -> FileState | None:
        state = super().file_state(path)
        return state_of(self.storage, path) if state is None and self._has_moved() else state

    def open_output(self, path: str) -> pa.NativeFile:
        return self._refuse() if self.is_complete else super().open_output(path)

    def write(self, path: str, data: bytes) -> None:
        self._refuse() if self.is_complete else super().write(path, data)

    def create_new(self, path: str, data: bytes) -> None:
        self._refuse() if self.is_complete else super().create_new(path, data)

    def create_synced(self, path: str, data: bytes) -> None:
        self._refuse() if self.is_complete else super().create_synced(path, data)

    def delete(self, path: str) -> bool:
        return self._refuse() if self.is_complete else super().delete(path)

    def delete_tree(self, path: str) -> None:
        self._refuse() if self.is_complete else super().delete_tree(path)

    def _has_moved(self) -> bool:
        return self.is_complete and self.storage.stat(REPLACEMENT_PATH) is None

    def _refuse(self) -> NoReturn:
        raise WriteConflict(
            f"{self.root}: another process is replacing the table, or died while it did. The new table can be read; "
            "nothing was changed here. Try again: the next write finishes the replacement first."
        )


def place_of(storage: Storage) -> Storage:
    """Return the final place of a table that is read where it was built; other storages unchanged."""
    return storage.storage if isinstance(storage, StagedTable) and storage.is_complete else storage


def replacement_name(storage: Storage) -> str | None:
    """Return the name of the folder of the complete new table, None if there is none."""
    try:
        text = storage.read(REPLACEMENT_PATH, _NAME_BYTES_MAX).decode("ascii", "replace")
    except (PathNotFound, CorruptFile):
        return None
    except StorageError as error:
        if isinstance(error.__cause__, NotADirectoryError):  # a folder of the path is a file
            return None
        raise
    return text if _NAME.fullmatch(text) else None


def staged_table(storage: Storage) -> StagedTable | None:
    """Return the new table at a place where the old one's properties are gone, None if there is none."""
    name = replacement_name(storage)
    if name is None:
        return None
    staged = StagedTable(storage, child(TEMPORARY_FOLDER, name), is_complete=True)
    return staged if storage.stat(child(staged.folder, PROPERTIES_PATH)) is not None else None
