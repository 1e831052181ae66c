"""Making writes durable: fsync of files, and of the folders with their names.

A name and its content reach the disk independently, so after a power cut a file may be empty, and of two files only the
later one may exist. Source: POSIX, fsync; docs/storage.md, "A power cut".
"""

from __future__ import annotations

import errno
import functools
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait

__all__ = ["folders_of", "sync_all", "sync_descriptor"]

# A thread that waits for the disk needs no processor, and parallel syncs share one write of its journal.
_SYNCS_AT_ONCE = 16
# File systems that can't sync a folder (some network mounts), and folders above the table that this user can't open.
_FOLDER_NOT_SYNCED = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EACCES, errno.EPERM, errno.EBADF})
_TO_SYNC = os.O_RDONLY if os.name != "nt" else os.O_RDWR | getattr(os, "O_BINARY", 0)


def folders_of(paths: Iterable[str], root: str) -> frozenset[str]:
    """Return the folders above these paths, up to and including `root`; for the root itself all folders above it, too.

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
        futures = [_pool().submit(_sync, path) for path in distinct]
        wait(futures)
        for one in futures:
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
