"""`LocalStorage`: a table in a folder of this machine, or on anything mounted here.

`write` and `create_new` fill a temporary file in the target's folder and then move it atomically: by `os.replace`, or
by `os.link`, which refuses an existing name. So no reader ever sees a part. `storage/synced.py` describes the effects
of a power cut.

`FolderLinks` follows symbolic links to folders during a walk through a table: each folder on disk occurs in a table
once. A link may lead to a folder on another disk. It must not lead up, into the table, or to the target of another link
in the table. Such a link would show the same files under several names, and circular links would show them endlessly.
Source: docs/decisions/0011-what-a-symbolic-link-means.md.
"""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING

from pyhudi.errors import PathExists, PathNotFound, StorageError
from pyhudi.redaction import is_text
from pyhudi.storage.base import READ_BYTES_MAX, FileInfo, Storage, check_size
from pyhudi.storage.clock import SystemClock
from pyhudi.storage.file_cache import FileState
from pyhudi.storage.paths import TEMPORARY_PREFIX, TEMPORARY_SUFFIX, inside, is_temporary
from pyhudi.storage.regular_files import open_input, open_output, open_to_read, opened_status, status_or_none
from pyhudi.storage.synced import folders_of, sync_all, sync_descriptor

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FolderLinks", "LocalStorage", "with_sync"]


class FolderLinks:
    """The links that one walk through the table at `root` has followed."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._walked: dict[str, str] = {}  # real folder → its name in the table
        self._above: dict[str, str] = {}  # folders above those

    def follow(self, entry: FileInfo) -> None:
        """Call before a folder is entered. Raises StorageError for a link to a folder of the table or above one."""
        target = entry.leads_to
        if target is None:
            return
        if not self._walked:
            self._add(os.path.realpath(self._root), "the table itself")
        above = _folders_above(target)
        other = self._walked.get(target) or self._above.get(target)
        other = other or next((self._walked[folder] for folder in above if folder in self._walked), None)
        if other is not None:
            raise StorageError(
                f"{self._root}: the folder {entry.path!r} is a symbolic link to {target!r}, which is also {other}, or "
                f"lies in or above it: its files would be in the table twice, and circles of symbolic links have no "
                f"end. Remove the link; nothing was changed."
            )
        self._add(target, repr(entry.path))

    def _add(self, folder: str, name: str) -> None:
        self._walked[folder] = name
        for above in _folders_above(folder):
            self._above.setdefault(above, name)


def _folders_above(folder: str) -> list[str]:
    folders = []
    while (above := os.path.dirname(folder)) != folder:
        folder = above
        folders.append(folder)
    return folders


_PROCESS_TOKEN = SystemClock().new_uuid()[:8]  # with the process id: unique over machines that share a mount, and forks
_COUNTER = itertools.count()
_by_path = itemgetter(0)  # within one folder the order of names
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """The table in folder `root` (made absolute; need not exist yet).

    `syncs`: whether calls wait for the disk. Without it a power cut can lose or empty completed instants.
    """

    root: str
    syncs: bool = field(default=True, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", os.path.abspath(os.path.expanduser(self.root)))

    @property
    def listed_at_once(self) -> int:
        return 0  # entries are read one by one while others are added and removed

    @property
    def keeps_order(self) -> bool:
        return False

    @property
    def is_local(self) -> bool:
        return True

    def full_path(self, path: str) -> str:
        # In the form of Hadoop's Path: one slash, nothing escaped.
        return "file:" + self._local(path).replace(os.sep, "/")

    def read(self, path: str, limit_bytes: int = READ_BYTES_MAX) -> bytes:
        with self._translate_errors(path), open(open_to_read(self._local(path)), "rb") as file:
            check_size(os.fstat(file.fileno()).st_size, limit_bytes, self._local(path))
            return file.read()

    def open_input(self, path: str) -> pa.NativeFile:
        with self._translate_errors(path):
            return open_input(self._local(path))

    def open_output(self, path: str) -> pa.NativeFile:
        target = self._local(path)
        with self._translate_errors(path):
            _drop_hadoop_checksum(target)
            try:
                return open_output(target, self.syncs)
            except FileNotFoundError:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                return open_output(target, self.syncs)

    def write(self, path: str, data: bytes) -> None:
        target = self._local(path)
        with self._translate_errors(path):
            temporary = _write_temporary(target, data, syncs=self.syncs)
            try:
                _drop_hadoop_checksum(target)
                os.replace(temporary, target)
            except BaseException:
                _unlink_quietly(temporary)
                raise

    def create_new(self, path: str, data: bytes) -> None:
        self._create(path, data, syncs=False)

    def create_synced(self, path: str, data: bytes) -> None:
        self._create(path, data, syncs=self.syncs)
        if self.syncs:
            with self._translate_errors(path):
                sync_all(folders_of([self._local(path)], self.root))

    def sync(self, paths: Iterable[str]) -> None:
        targets = [self._local(path) for path in paths] if self.syncs else []
        if targets:
            with self._translate_errors(""):
                sync_all({*targets, *folders_of(targets, self.root)})

    def _create(self, path: str, data: bytes, *, syncs: bool) -> None:
        target = self._local(path)
        with self._translate_errors(path):
            if not data:  # it can't be seen in part: one system call is enough
                os.close(_open_new(target))
                return
            temporary = _write_temporary(target, data, syncs=syncs)
            try:
                os.link(temporary, target)
            except OSError as error:
                if error.errno not in _NO_HARD_LINKS:
                    raise
                # The mount has no hard links: claim the name, then fill it in one step. Readers may see it empty first.
                os.close(_open_new(target))
                os.replace(temporary, target)
            finally:
                _unlink_quietly(temporary)

    def list(self, path: str) -> tuple[FileInfo, ...]:
        with self._translate_errors(path):
            try:
                entries = os.scandir(self._local(path))
            except (FileNotFoundError, NotADirectoryError):
                return ()
            with entries:
                above = f"{path}/" if path else ""
                infos = [info for entry in entries if (info := _visible_entry(above, entry)) is not None]
        return tuple(sorted(infos, key=_by_path))

    def file_names_in(self, path: str) -> frozenset[str]:
        """Return the names of files in `list`, without reading the status of each, which takes most of its time."""
        with self._translate_errors(path):
            try:
                entries = os.scandir(self._local(path))
            except (FileNotFoundError, NotADirectoryError):
                return frozenset()
            with entries:
                # The first condition is true of nearly all of them, and without a call of a function.
                return frozenset(
                    entry.name
                    for entry in entries
                    if (entry.name.isascii() and entry.name[0] != "." and entry.is_file(follow_symlinks=False))
                    or _is_file(entry)
                )

    def walk(self, path: str) -> Iterator[FileInfo]:
        folders, links = [path], FolderLinks(self.root)
        while folders:
            for info in self.list(folders.pop()):
                if info.is_dir:
                    links.follow(info)
                    folders.append(info.path)
                else:
                    yield info

    def stat(self, path: str) -> FileInfo | None:
        with self._translate_errors(path):
            status = status_or_none(self._local(path))
            return None if status is None else _file_info_of(path, status)

    def file_state(self, path: str) -> FileState | None:
        """Return the state of a file, equal only while its bytes are unchanged (`storage/file_cache.py`)."""
        with self._translate_errors(path):
            status = opened_status(self._local(path))
        return None if status is None else FileState.of(status)

    def delete(self, path: str) -> bool:
        with self._translate_errors(path):
            try:
                os.unlink(self._local(path))
                _drop_hadoop_checksum(self._local(path))
            except (FileNotFoundError, NotADirectoryError):
                return False
            return True

    def copy_file(self, source: str, target: str) -> None:
        """Link a file under a second name; copy its bytes if the mount has no hard links."""
        old, new = self._local(source), self._local(target)
        with self._translate_errors(target):
            os.makedirs(os.path.dirname(new), exist_ok=True)
            with suppress(FileNotFoundError):
                os.unlink(new)
            try:
                os.link(old, new)
            except OSError as error:
                if error.errno not in _NO_HARD_LINKS:
                    raise
                shutil.copyfile(old, new)

    def delete_if_empty(self, path: str) -> None:
        """Remove a folder if it is empty."""
        with self._translate_errors(path), suppress(OSError):
            os.rmdir(self._local(path))

    def delete_tree(self, path: str) -> None:
        target = self._local(path)
        with self._translate_errors(path):
            # Another process may be deleting the same tree; files deleted already are fine.
            while os.path.lexists(target):
                try:
                    if path and (os.path.islink(target) or not os.path.isdir(target)):
                        os.unlink(target)
                    else:
                        shutil.rmtree(target if path else os.path.realpath(target))
                        return
                except FileNotFoundError:
                    continue
                except RecursionError as error:
                    raise StorageError(
                        f"{target}: its folders lie too deep in one another to be deleted. Remove it yourself."
                    ) from error

    def check_deletable(self, path: str) -> None:
        target = self._local(path)
        with self._translate_errors(path):
            if path and os.path.islink(target):
                return
            for folder, folders, _ in os.walk(target):
                is_root = not path and folder == target  # the root itself is kept
                if not os.access(folder, os.R_OK | os.W_OK | os.X_OK) or (not is_root and os.path.ismount(folder)):
                    raise StorageError(
                        f"{folder} can't be deleted: this process may not change the folder, or it is a mount point. "
                        f"Fix that first, or use another path; nothing was deleted."
                    )
                folders[:] = [name for name in folders if not os.path.islink(os.path.join(folder, name))]

    def make_folder(self, path: str) -> None:
        with self._translate_errors(path):
            os.makedirs(self._local(path), exist_ok=True)

    def set_modified(self, path: str, modified_ms: int) -> None:
        with self._translate_errors(path):
            nanoseconds = modified_ms * 1_000_000
            os.utime(self._local(path), ns=(nanoseconds, nanoseconds))

    def _local(self, path: str) -> str:
        inside(path, self.root)
        return os.path.join(self.root, *path.split("/")) if path else self.root

    @contextmanager
    def _translate_errors(self, path: str) -> Iterator[None]:
        """Turn the operating system's errors into StorageError and its like."""
        try:
            yield
        except FileNotFoundError as error:
            raise PathNotFound(f"{self._local(path)} does not exist.") from error
        except FileExistsError as error:
            raise PathExists(_exists_already(self._local(path))) from error
        except NotADirectoryError as error:
            raise StorageError(
                f"{self._local(path)}: a part of this path is a file. A table is a folder; give one that is there, or "
                "a new one."
            ) from error
        except OSError as error:
            raise StorageError(f"{self._local(path)}: the file system refused: {error.strerror or error}.") from error


def with_sync(storage: Storage, syncs: bool) -> Storage:
    """Return the storage; with `syncs` False a local one that does not wait for the disk."""
    return replace(storage, syncs=False) if isinstance(storage, LocalStorage) and not syncs else storage


def _write_temporary(target: str, data: bytes, *, syncs: bool) -> str:
    folder = os.path.dirname(target)
    token = f"{os.getpid()}-{_PROCESS_TOKEN}-{next(_COUNTER)}"
    temporary = os.path.join(folder, f"{TEMPORARY_PREFIX}{token}{TEMPORARY_SUFFIX}")
    descriptor = _open_new(temporary)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            if syncs and data:
                file.flush()
                sync_descriptor(file.fileno())
    except BaseException:
        _unlink_quietly(temporary)
        raise
    return temporary


def _open_new(target: str) -> int:
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    try:
        return os.open(target, flags, 0o666)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        return os.open(target, flags, 0o666)


def _drop_hadoop_checksum(target: str) -> None:
    """Delete the checksum that Hadoop's local file system stores in `.<name>.crc`.

    With a stale checksum Hudi can't read a changed file (ChecksumException); without one it can.
    """
    folder, name = os.path.split(target)
    with suppress(OSError):
        os.unlink(os.path.join(folder, f".{name}.crc"))


def _unlink_quietly(temporary: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(temporary)


def _exists_already(target: str) -> str:
    if os.path.islink(target) and status_or_none(target) is None:
        return f"{target} exists already: it is a symbolic link that leads nowhere. Remove the link."
    return f"{target} exists already."


def _visible_entry(above: str, entry: os.DirEntry[str]) -> FileInfo | None:
    """Return an entry of a folder as listed, None for one that listings hide. Called for every entry of a folder."""
    name = entry.name
    if not is_text(name):
        return None
    if entry.is_symlink():
        info = _link_entry(above + name, entry.path)
    else:
        try:
            info = _file_info_of(above + name, entry.stat())
        except FileNotFoundError:  # deleted since it was listed
            return None
    return None if info is None or (is_temporary(name) and not info.is_dir) else info


def _link_entry(path: str, link: str) -> FileInfo | None:
    """Return the entry of a symbolic link, None for a dangling one."""
    status = status_or_none(link)
    if status is None:
        return None
    info = _file_info_of(path, status)
    return info._replace(leads_to=os.path.realpath(link)) if info.is_dir else info


def _is_file(entry: os.DirEntry[str]) -> bool:
    if not is_text(entry.name) or (entry.is_symlink() and status_or_none(entry.path) is None):
        return False
    return not entry.is_dir() and not is_temporary(entry.name)


def _file_info_of(path: str, status: os.stat_result) -> FileInfo:
    if stat.S_ISDIR(status.st_mode):
        return FileInfo(path, 0, status.st_mtime_ns // 1_000_000, True)
    return FileInfo(path, status.st_size, status.st_mtime_ns // 1_000_000)
