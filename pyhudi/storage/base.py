"""`Storage`: the only access to file systems, with its limits and its errors.

A storage is rooted at one table. All paths are relative to it, "/"-separated, without a leading slash; "" is the root.
A storage refuses a path that would leave the root, or is not text, with StorageError. It does not list entries whose
names are not text. Storages other than the in-memory one are picklable, for executors.

`check_size` refuses a file that is too large to be read into memory as a whole, before any of it is read.

`as_storage_error` and `as_temporary_error` turn errors into StorageError while a stream of a store or a temporary file
is written: a full disk, a quota, a lost connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from pyhudi.errors import CorruptFile, StorageError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "READ_BYTES_MAX",
    "AlwaysSynced",
    "ClientArguments",
    "FileInfo",
    "Storage",
    "as_storage_error",
    "as_temporary_error",
    "check_size",
]


# Timeline files are the largest files read this way. Java readers hold one in a byte array, which has this limit.
READ_BYTES_MAX = 2**31 - 1


def check_size(size_bytes: int, limit_bytes: int, where: str) -> None:
    """Raise CorruptFile for a file with more bytes than its kind can have. `where`: its full path."""
    if size_bytes > limit_bytes:
        raise CorruptFile(
            f"{where}: {size_bytes:,} bytes, where such a file has {limit_bytes:,} at most. It was overwritten with "
            f"something else; restore it from a copy of the table."
        )


ClientArguments: TypeAlias = dict[str, Any]  # keyword arguments of a class of pyarrow or obstore, which checks them


class FileInfo(NamedTuple):
    """One directory entry. `path` is relative to the storage's root; `leads_to`: the target of a symbolic link to a
    folder.

    A tuple, since a listing may have a hundred thousand: it is made in less than half of a frozen dataclass's time.
    """

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
    """The interface of a file system for PyHudi, with its guarantees."""

    @property
    def root(self) -> str:
        """The table's path, as given by the user (made absolute); for messages."""
        ...

    @property
    def listed_at_once(self) -> int:
        """The number of a folder's entries that `list` returns atomically; 0: any list may overlap with a change."""
        ...

    @property
    def keeps_order(self) -> bool:
        """True if a change that outlasts a power cut implies that all earlier ones do."""
        ...

    def full_path(self, path: str) -> str:
        """Return the absolute path of a file in Spark's form, with scheme (`file:/a/b.parquet`, `s3a://...`)."""
        ...

    def read(self, path: str, limit_bytes: int = READ_BYTES_MAX) -> bytes:
        """Read all bytes. Raises PathNotFound, and CorruptFile for more than `limit_bytes`, before reading any."""
        ...

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a seekable file, which the caller closes. Raises PathNotFound."""
        ...

    def open_output(self, path: str) -> pa.NativeFile:
        """Open a sink. Parent folders are created; an existing file is replaced."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Make or replace a file; readers see the old or the new bytes, never a part, if the store supports it. This
        also holds after a power cut, but only `sync` ensures the new ones.
        """
        ...

    def create_new(self, path: str, data: bytes) -> None:
        """Make a file that must not exist; never exposes a part of it. Raises PathExists. After a power cut it may be
        empty or cut off.
        """
        ...

    def create_synced(self, path: str, data: bytes) -> None:
        """Like `create_new`, but a power cut leaves the whole file or none, and the whole one after this returns."""
        ...

    def sync(self, paths: Iterable[str]) -> None:
        """Wait until the current state of these files, existing or deleted, outlasts a power cut: contents, names, and
        the folders above them, whichever process on this machine wrote them; for "", all folders above the table.
        """
        ...

    def list(self, path: str) -> tuple[FileInfo, ...]:
        """Return entries of one folder, sorted by name; () when the folder does not exist."""
        ...

    def walk(self, path: str) -> Iterator[FileInfo]:
        """Return all files (no folders) below a folder, in any order. Raises StorageError for links in a circle."""
        ...

    def stat(self, path: str) -> FileInfo | None:
        """Return the entry, None when there is none."""
        ...

    def delete(self, path: str) -> bool:
        """Remove a file; False when it did not exist."""
        ...

    def delete_tree(self, path: str) -> None:
        """Remove a folder with its content, if it exists. Links are removed, not their targets."""
        ...

    def check_deletable(self, path: str) -> None:
        """Raise StorageError when `delete_tree` would fail, if the store can check; otherwise do nothing."""
        ...

    def make_folder(self, path: str) -> None:
        """Make an empty folder and those above it, if the store has folders; otherwise do nothing."""
        ...

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Set a file's modification time, if the store can; otherwise do nothing."""
        ...


class AlwaysSynced:
    """Mixin for stores whose changes outlast a power cut as soon as the call returns: there is nothing to sync.

    Object stores guarantee this. On HDFS a closed file is in the memory of several machines; pyarrow has no call to
    write it to their disks (docs/storage.md, "A power cut").
    """

    @property
    def keeps_order(self) -> bool:
        return True

    def create_synced(self: Storage, path: str, data: bytes) -> None:
        self.create_new(path, data)

    def sync(self, paths: Iterable[str]) -> None:
        """Do nothing."""


@contextmanager
def as_storage_error(where: str) -> Iterator[None]:
    """Turn errors of a sink from `open_output` into StorageError. `where`: the file's full path."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{where}: the file could not be written: {error}. The write is not complete; the next one removes its "
            f"files. Make room, or repair the store, and write again."
        ) from error


@contextmanager
def as_temporary_error(where: str, setting: str = "the environment variable TMPDIR") -> Iterator[None]:
    """Turn errors of calls that create, write or read a file of rows in a temporary folder into StorageError.

    Args: where: the file; setting: the setting that names its folder.
    """
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{where}: rows that don't fit in memory can't be kept there: {error}. Let {setting} name a folder "
            f"with room for all rows of the call."
        ) from error
