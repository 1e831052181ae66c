"""Files that are replaced only if no other process has replaced them since: the base of the storage-based lock.

On object stores these are conditional puts (if-match, if-none-match) through obstore. On local disks a file lock next
to the file, which the system drops when its process dies, makes reading and replacing one step.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Protocol

from pyhudi.errors import ConfigError, CorruptFile, PathNotFound, StorageError
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import SystemClock
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage, _Call
from pyhudi.storage.paths import TEMPORARY_PREFIX, TEMPORARY_SUFFIX, child, parent
from pyhudi.storage.regular_files import check_regular
from pyhudi.storage.stores.connection import ObjectStore, object_store, shown_error, shown_store_error

__all__ = ["LOCK_BYTES_MAX", "FileBusy", "VersionedFiles", "has_conditional_put", "versioned_files"]

# Of a lock file: Hudi's and ours have some hundred bytes. A larger file is not a lock.
LOCK_BYTES_MAX = 64 << 10
_GUARD_WAIT_S = 0.05  # held for one read and one write; a longer holder is not PyHudi
_GUARD_PAUSE_S = 0.001
_GUARD_FLAGS = os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_CLOCK = SystemClock()


class FileBusy(StorageError):
    """Another process holds the file between reading and replacing it; nothing was changed."""


class VersionedFiles(Protocol):
    """Reading and replacing files by their versions. A version is an opaque text of the store."""

    def read(self, path: str) -> tuple[bytes, str] | None:
        """Read bytes and version, None for a missing file. Raises StorageError, CorruptFile over LOCK_BYTES_MAX."""
        ...

    def replace(self, path: str, data: bytes, version: str | None) -> str | None:
        """Put bytes in place of a version (None: of a missing file); return the new version, None if the version has
        changed.

        Raises FileBusy on local disks when another process holds the file, StorageError when the outcome is unknown.
        """
        ...


def has_conditional_put(storage: Storage) -> bool:
    """True if the table is in an object store with conditional puts."""
    return object_store(storage) is not None


def versioned_files(storage: Storage) -> VersionedFiles:
    """Return the versioned files of a table's store. Raises ConfigError for stores without conditional puts."""
    if isinstance(storage, LocalStorage):
        return _LocalFiles(storage)
    if isinstance(storage, MemoryStorage):
        return _MemoryFiles(storage)
    store = object_store(storage)
    if store is None:
        raise ConfigError(
            f"{storage.root}: this file system has no conditional put, which the storage-based lock needs. It works on "
            f"S3, Google Cloud Storage, Azure and local disks; use another hoodie.write.lock.provider."
        )
    return _StoredObjects(storage, store)


def _version_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read(storage: Storage, path: str) -> tuple[bytes, str] | None:
    try:
        with storage.open_input(path) as file:
            data = bytes(file.read(LOCK_BYTES_MAX + 1))
    except PathNotFound:
        return None
    _check_size(len(data), storage, path)
    return data, _version_of(data)


def _check_size(size_bytes: int, storage: Storage, path: str) -> None:
    if size_bytes > LOCK_BYTES_MAX:
        raise CorruptFile(
            f"{storage.full_path(path)}: expected a lock of {LOCK_BYTES_MAX:,} bytes at most, found more. If no writer "
            f"is at work on the table, delete the file."
        )


@dataclass(frozen=True, slots=True)
class _MemoryFiles:
    storage: MemoryStorage

    def read(self, path: str) -> tuple[bytes, str] | None:
        return _read(self.storage, path)

    def replace(self, path: str, data: bytes, version: str | None) -> str | None:
        with _Call(self.storage, "replace_if", path) as call:
            current = self.storage._content.files.get(path)
            if (_version_of(current[0]) if current is not None else None) != version:
                return None
            if not call.torn:  # as on object stores: all or nothing
                self.storage._put(path, data)
        return _version_of(data)


@dataclass(frozen=True, slots=True)
class _LocalFiles:
    storage: LocalStorage

    def read(self, path: str) -> tuple[bytes, str] | None:
        return _read(self.storage, path)

    def replace(self, path: str, data: bytes, version: str | None) -> str | None:
        with self._alone(path):
            current = self.read(path)
            if (current[1] if current is not None else None) != version:
                return None
            self.storage.write(path, data)
        return _version_of(data)

    @contextmanager
    def _alone(self, path: str) -> Iterator[None]:
        """Exclude other processes between reading and replacing the file."""
        try:
            fcntl = importlib.import_module("fcntl")
        except ImportError as error:
            raise ConfigError(
                f"{self.storage.root}: this system has no file locks (fcntl), which the storage-based lock needs on "
                f"local disks. Use hoodie.write.lock.provider=FILESYSTEM."
            ) from error
        self.storage.make_folder(parent(path))
        name = f"{TEMPORARY_PREFIX}{path.rpartition('/')[2]}{TEMPORARY_SUFFIX}"
        guard = os.path.join(self.storage.root, *child(parent(path), name).split("/"))
        try:
            descriptor = os.open(guard, _GUARD_FLAGS, 0o666)
        except OSError as error:
            raise StorageError(
                f"{guard}: the file system refused: {error.strerror or error}. If it is a symbolic link, remove it."
            ) from error
        try:
            check_regular(os.fstat(descriptor), guard)
            deadline_s = _CLOCK.monotonic_s() + _GUARD_WAIT_S
            while not _is_locked(fcntl, descriptor, guard):
                if _CLOCK.monotonic_s() >= deadline_s:
                    raise FileBusy(f"{guard}: another process holds a lock on the file, which guards {path}.")
                _CLOCK.sleep_s(_GUARD_PAUSE_S)
            yield
        finally:
            os.close(descriptor)


def _is_locked(fcntl: ModuleType, descriptor: int, guard: str) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise StorageError(f"{guard}: the file system has no file locks: {error.strerror or error}.") from error
    return True


@dataclass(frozen=True, slots=True)
class _StoredObjects:
    storage: Storage
    store: ObjectStore

    def read(self, path: str) -> tuple[bytes, str] | None:
        api = self.store
        try:
            answer = api.module.get(api.store, path)
            _check_size(answer.meta["size"], self.storage, path)
            data = bytes(answer.bytes())
        except (api.exceptions.NotFoundError, FileNotFoundError):
            return None
        except (api.exceptions.BaseError, OSError) as error:
            raise shown_store_error(self.storage.full_path(path), error) from shown_error(error)
        return data, _packed(answer.meta.get("e_tag"), answer.meta.get("version"))

    def replace(self, path: str, data: bytes, version: str | None) -> str | None:
        api = self.store
        mode = "create" if version is None else _unpacked(version)
        try:
            result = api.module.put(api.store, path, data, mode=mode)
        except (api.exceptions.AlreadyExistsError, api.exceptions.PreconditionError):
            return None
        except (api.exceptions.NotFoundError, FileNotFoundError) as error:
            if version is None:  # a new file can't be missing, so its bucket is
                raise shown_store_error(self.storage.full_path(path), error) from shown_error(error)
            return None
        except (api.exceptions.BaseError, OSError) as error:
            raise shown_store_error(self.storage.full_path(path), error) from shown_error(error)
        return _packed(result.get("e_tag"), result.get("version"))


def _packed(e_tag: str | None, version: str | None) -> str:
    return f"{e_tag or ''}\n{version or ''}"


def _unpacked(text: str) -> dict[str, str]:
    e_tag, _, version = text.partition("\n")
    return {name: value for name, value in (("e_tag", e_tag), ("version", version)) if value}
