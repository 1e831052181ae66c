"""Storage: the only access to file systems.

A storage is rooted at one table. All paths are relative to it, "/"-separated, without a leading slash; "" is the root.
A path that would leave the root, or is no text, is refused with StorageError; entries whose names are no text are not
listed. Storages other than the in-memory one are picklable and
travel to executors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ClientArguments", "FileInfo", "Storage"]

ClientArguments: TypeAlias = dict[str, Any]  # by keyword, of a class of pyarrow or obstore, which checks them


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One directory entry. `path` is relative to the storage's root; `leads_to`: of a symbolic link to a folder."""

    path: str
    size_bytes: int
    modified_ms: int  # since the epoch
    is_dir: bool = False
    leads_to: str | None = None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@runtime_checkable
class Storage(Protocol):
    """What PyHudi asks of a file system, and what it promises."""

    @property
    def root(self) -> str:
        """Where the table is, as the user named it (made absolute); for messages."""
        ...

    @property
    def listed_at_once(self) -> int:
        """So many entries of a folder `list` shows as they were at one moment; 0: a change may fall into every list."""
        ...

    def full_path(self, path: str) -> str:
        """Absolute path of a file as Spark can read it, with scheme (`file:/a/b.parquet`, `s3a://...`)."""
        ...

    def read(self, path: str) -> bytes:
        """All bytes. Raises PathNotFound."""
        ...

    def open_input(self, path: str) -> pa.NativeFile:
        """A seekable file, to be closed by the caller. Raises PathNotFound."""
        ...

    def open_output(self, path: str) -> pa.NativeFile:
        """A sink; makes parent folders; an existing file is replaced."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Make or replace a file; readers see the old or the new bytes, never a part, where the store can."""
        ...

    def create_new(self, path: str, data: bytes) -> None:
        """Make a file that must not exist; never exposes a part of it. Raises PathExists."""
        ...

    def list(self, path: str) -> tuple[FileInfo, ...]:
        """Entries of one folder, sorted by name; () when the folder does not exist."""
        ...

    def walk(self, path: str) -> Iterator[FileInfo]:
        """All files (no folders) below a folder, in no promised order. Raises StorageError for links in a circle."""
        ...

    def stat(self, path: str) -> FileInfo | None:
        """The entry, None when there is none."""
        ...

    def delete(self, path: str) -> bool:
        """Remove a file; False when it was not there."""
        ...

    def delete_tree(self, path: str) -> None:
        """Remove a folder with all it holds; nothing happens when it is not there. Links go, not what they lead to."""
        ...

    def check_deletable(self, path: str) -> None:
        """Raises StorageError when `delete_tree` would fail, where a store can tell; elsewhere nothing happens."""
        ...

    def make_folder(self, path: str) -> None:
        """Make an empty folder and those above it, where the store has folders; elsewhere nothing happens."""
        ...

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Set a file's modification time where the store can; elsewhere nothing happens."""
        ...
