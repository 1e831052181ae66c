"""Making writes durable: fsync of files, and of the folders with their names.

A name and its content reach the disk independently, so after a power cut a file may be empty, and of two files only the
later one may exist. Source: POSIX, fsync; docs/storage.md, "A power cut".
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

# A thread that waits for the disk needs no processor, and parallel syncs share one write of its journal.
_SYNCS_AT_ONCE = 16
# File systems that can't sync a folder (some network mounts), and folders above the table that this user can't open.
_FOLDER_NOT_SYNCED = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EACCES, errno.EPERM, errno.EBADF})
_WRITE_NOW = 2  # SYNC_FILE_RANGE_WRITE of linux/fs.h: begin without waiting
_TO_SYNC = os.O_RDONLY if os.name != "nt" else os.O_RDWR | getattr(os, "O_BINARY", 0)


class FileToSync(pa.OSFile):
    """A sink whose bytes start being written to the disk while the rest of the commit is written: on close, and on
    `begin_sync`.

    So its sync has less to do. On systems without such a call, the sync does all the work.
    Source: sync_file_range(2).
    """

    def begin_sync(self) -> None:
        """Start writing the bytes so far to the disk, without waiting and without reporting errors."""
        if not self.closed and (begin := _write_behind()) is not None:
            with suppress(AttributeError):  # older PyArrow has no descriptor for such a file
                begin(self.fileno(), 0, 0, _WRITE_NOW)  # the result is ignored: the sync reports errors

    def close(self) -> None:
        self.begin_sync()
        super().close()


def begin_sync(sink: pa.NativeFile) -> None:
    """Writers of large files call this after each part. It does nothing if the sink is not synced later."""
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
    """The folders above these paths, up to and including `root`; for the root itself all folders above it, too.

    Any of them may be new, and if a folder's entry in its parent is lost, so is its content.
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
    """Sync files and folders in parallel; missing ones are skipped. Raises OSError."""
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
    """Threads that wait for disks; starting them takes as long as a sync of a fast disk."""
    return ThreadPoolExecutor(_SYNCS_AT_ONCE, thread_name_prefix="hudi-sync")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of its parent's threads


def sync_descriptor(descriptor: int) -> None:
    """Wait until an open file's content, written by any process, is on the disk. Raises OSError."""
    if sys.platform == "darwin":  # fsync alone leaves it in the disk's cache
        import fcntl

        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
        except OSError:  # not a disk of this machine
            pass
    os.fsync(descriptor)


def _sync(path: str) -> None:
    is_folder = os.path.isdir(path)
    if is_folder and os.name == "nt":  # Windows keeps names durable by itself, and can't open folders
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
