"""Opening only regular files of this machine: a pipe with a file's name would block its opener forever.

The kind is checked on the opened descriptor, so that the file can't be replaced in between.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from pyhudi.errors import StorageError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_regular", "open_input", "open_output", "open_to_read", "opened_status", "status_or_none"]

_FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_TO_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# Here a descriptor has a name, by which pyarrow, which takes only names, opens the same file.
_DESCRIPTORS = "/proc/self/fd"
_HAS_NAMES = os.path.isdir(_DESCRIPTORS)
_NOWHERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


def open_to_read(path: str) -> int:
    """Open a regular file, or the target of a link; return its descriptor. Raises OSError, StorageError."""
    return _check_descriptor(os.open(path, os.O_RDONLY | _FLAGS), path)


def open_input(path: str) -> pa.NativeFile:
    """Like `open_to_read`, for pyarrow."""
    import pyarrow as pa  # properties and the timeline are read without it

    descriptor = open_to_read(path)
    try:
        return pa.OSFile(_name(descriptor, path), "rb")
    finally:
        os.close(descriptor)


def open_output(path: str, syncs: bool = False) -> pa.NativeFile:
    """Open a sink with this name. A regular file is emptied, a symbolic link is replaced by a file. `syncs`: start
    writing bytes to the disk right away.
    """
    import pyarrow as pa

    from pyhudi.storage.synced_file import FileToSync

    try:
        descriptor = os.open(path, _TO_WRITE | _FLAGS, 0o666)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a pipe without a reader
            raise _not_regular(path, os.stat(path)) from error
        if error.errno != errno.ELOOP:
            raise
        os.unlink(path)
        descriptor = os.open(path, _TO_WRITE | _FLAGS, 0o666)
    _check_descriptor(descriptor, path)
    try:
        return (FileToSync if syncs else pa.OSFile)(_name(descriptor, path), "wb")
    finally:
        os.close(descriptor)


def check_regular(status: os.stat_result, path: str) -> None:
    """Raise StorageError for anything but a regular file."""
    if not stat.S_ISREG(status.st_mode):
        raise _not_regular(path, status)


def status_or_none(path: str) -> os.stat_result | None:
    """Return the status of a path's target; None without a target, as for a dangling link or a link to itself."""
    try:
        return os.stat(path)
    except OSError as error:
        if error.errno in _NOWHERE:
            return None
        raise


def opened_status(path: str) -> os.stat_result | None:
    """The status of a regular file, by opening it: NFS then asks the server, while the status of a path may be cached
    by the client. None without a regular file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | _FLAGS)
    except OSError as error:
        if error.errno in _NOWHERE:
            return None
        raise
    try:
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return status if stat.S_ISREG(status.st_mode) else None


def _check_descriptor(descriptor: int, path: str) -> int:
    try:
        check_regular(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _name(descriptor: int, path: str) -> str:
    return f"{_DESCRIPTORS}/{descriptor}" if _HAS_NAMES else path


def _not_regular(path: str, status: os.stat_result) -> StorageError:
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no regular file")
    return StorageError(f"{path}: expected a regular file, found {kind}. It is not a file of a table; remove it.")
