"""Making the disk keep what was written: fsync of files, and of the folders that hold their names.

A name and what it names reach the disk each in its own time, so after a power cut a file may be there and empty, and
of two files the later one alone. Source: POSIX, fsync; docs/storage.md, "A power cut".
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress

import pyarrow as pa

__all__ = ["FileToSync", "begin_sync", "folders_of", "sync_all", "sync_descriptor"]

# Whoever waits for the disk needs no processor, and syncs that run side by side share one write of its journal.
_SYNCS_AT_ONCE = 16
# File systems that can't sync a folder (some network mounts), and folders above the table that this user can't open.
_FOLDER_NOT_SYNCED = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EACCES, errno.EPERM, errno.EBADF})
_WRITE_NOW = 2  # SYNC_FILE_RANGE_WRITE of linux/fs.h: begin, and wait for nothing
_TO_SYNC = os.O_RDONLY if os.name != "nt" else os.O_RDWR | getattr(os, "O_BINARY", 0)


class FileToSync(pa.OSFile):
    """A sink whose bytes begin their way to the disk while the rest of the commit is written: when it is closed, and
    when its writer says so (`begin_sync`).

    So its sync finds less to do. Where the system has no such call, the sync does it all.
    Source: sync_file_range(2).
    """

    def begin_sync(self) -> None:
        """What is written so far begins its way to the disk; waits for nothing, and tells of no error."""
        if not self.closed and (begin := _write_behind()) is not None:
            with suppress(AttributeError):  # older PyArrow has no descriptor of such a file
                begin(self.fileno(), 0, 0, _WRITE_NOW)  # whatever it answers: the sync will tell of errors

    def close(self) -> None:
        self.begin_sync()
        super().close()


def begin_sync(sink: pa.NativeFile) -> None:
    """To be called by writers of large files after each part of it. Nothing, where the sink is not synced later."""
    if isinstance(sink, FileToSync):
        sink.begin_sync()


@functools.cache
def _write_behind() -> Callable[[int, int, int, int], object] | None:
    """`sync_file_range` of the C library, on Linux."""
    if sys.platform != "linux":
        return None
    try:
        call = ctypes.CDLL(None).sync_file_range
    except (OSError, AttributeError):
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    call.restype = ctypes.c_int
    return call


def folders_of(paths: Iterable[str], root: str) -> frozenset[str]:
    """The folders that hold these paths, up to and with `root`; for the root itself all above it, too.

    Any of them may be new, and a folder that is not in the one above it takes with it all that it holds.
    """
    folders: set[str] = set()
    for path in set(paths):
        folder = path
        while folder != root and (above := os.path.dirname(folder)) != folder:
            folder = above
            folders.add(folder)
        if path == root:
            folders.update(_above(root))
    return frozenset(folders)


def _above(folder: str) -> Iterator[str]:
    while (above := os.path.dirname(folder)) != folder:
        folder = above
        yield folder


def sync_all(paths: Iterable[str]) -> None:
    """Sync files and folders side by side; what is not there (any more) is passed over. Raises OSError."""
    distinct = sorted(set(paths))
    if len(distinct) == 1:
        _sync(distinct[0])
    else:
        begun = [_pool().submit(_sync, path) for path in distinct]
        wait(begun)
        for one in begun:
            one.result()


@functools.cache
def _pool() -> ThreadPoolExecutor:
    """Threads that wait for disks; starting some takes as long as a sync of a fast disk."""
    return ThreadPoolExecutor(_SYNCS_AT_ONCE, thread_name_prefix="hudi-sync")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of its parent's threads


def sync_descriptor(descriptor: int) -> None:
    """Wait until what was written to an open file, by whichever process, is on the disk. Raises OSError."""
    if sys.platform == "darwin":  # fsync alone leaves it in the cache of the disk
        import fcntl

        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
        except OSError:  # not a disk of this machine
            pass
    os.fsync(descriptor)


def _sync(path: str) -> None:
    is_folder = os.path.isdir(path)
    if is_folder and os.name == "nt":  # Windows keeps names by itself, and opens no folders
        return
    try:
        descriptor = os.open(path, _TO_SYNC)
        try:
            sync_descriptor(descriptor)
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        if not is_folder or error.errno not in _FOLDER_NOT_SYNCED:
            raise
