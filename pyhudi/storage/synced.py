"""Making the disk keep what was written: fsync of files, and of the folders that hold their names.

A name and what it names reach the disk each in its own time, so after a power cut a file may be there and empty, and
of two files the later one alone. Source: POSIX, fsync; docs/storage.md, "A power cut".
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

__all__ = ["folders_of", "sync_all", "sync_descriptor"]

# Whoever waits for the disk needs no processor, and syncs that run side by side share one write of its journal.
_SYNCS_AT_ONCE = 16
# File systems that can't sync a folder (some network mounts), and folders above the table that this user can't open.
_FOLDER_NOT_SYNCED = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EACCES, errno.EPERM, errno.EBADF})
_TO_SYNC = os.O_RDONLY if os.name != "nt" else os.O_RDWR | getattr(os, "O_BINARY", 0)


def folders_of(paths: Iterable[str], root: str) -> frozenset[str]:
    """The folders that hold these paths, up to and with `root`; for the root itself all above it, too.

    Any of them may be new, and a folder that is not in the one above it takes with it all that it holds.
    """
    found: set[str] = set()
    for path in set(paths):
        folder = path
        while folder != root and (above := os.path.dirname(folder)) != folder:
            folder = above
            found.add(folder)
        if path == root:
            found.update(_above(root))
    return frozenset(found)


def _above(folder: str) -> Iterator[str]:
    while (above := os.path.dirname(folder)) != folder:
        folder = above
        yield folder


def sync_all(paths: Iterable[str]) -> None:
    """Sync files and folders side by side; what is not there (any more) is passed over. Raises OSError."""
    wanted = sorted(set(paths))
    if len(wanted) == 1:
        _sync(wanted[0])
    elif wanted:
        with ThreadPoolExecutor(min(_SYNCS_AT_ONCE, len(wanted)), thread_name_prefix="hudi-sync") as pool:
            for _ in pool.map(_sync, wanted):
                pass


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
