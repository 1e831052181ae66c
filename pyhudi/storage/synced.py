"""Making the disk keep what was written: fsync of files, and of the folders that hold their names.

A name and what it names reach the disk each in its own time, so after a power cut a file may be there and empty, and
of two files the later one alone. Source: POSIX, fsync; docs/storage.md, "A power cut".
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

__all__ = ["folders_of", "sync_all", "sync_descriptor"]

# Whoever waits for the disk needs no processor, and syncs that run side by side share one write of its journal.
_SYNCS_AT_ONCE = 16
# File systems that can't sync a folder (some network mounts), and folders above the table that this user can't open.
_FOLDER_NOT_SYNCED = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EACCES, errno.EPERM, errno.EBADF})
_TO_SYNC = os.O_RDONLY if os.name != "nt" else os.O_RDWR | getattr(os, "O_BINARY", 0)


def folders_of(paths: Iterable[str], root: str) -> tuple[str, ...]:
    """The folders that hold these paths, up to and with `root`; for the root itself all above it, too.

    Any of them may be new, and a folder that is not in the one above it takes with it all that it holds.
    """
    found: dict[str, None] = {}
    for path in paths:
        folder, last = (path, "") if path == root else (os.path.dirname(path), root)
        while folder not in found:
            found[folder] = None
            above = os.path.dirname(folder)
            if folder == last or above == folder:
                break
            folder = above
    return tuple(found)


def sync_all(files: Iterable[str], folders: Iterable[str]) -> None:
    """Sync files and folders side by side; what is not there (any more) is passed over. Raises OSError."""
    paths = [*((path, False) for path in files), *((path, True) for path in folders)]
    if len(paths) == 1:
        _sync(*paths[0])
        return
    with ThreadPoolExecutor(min(_SYNCS_AT_ONCE, max(1, len(paths))), thread_name_prefix="hudi-sync") as pool:
        for _ in pool.map(lambda found: _sync(*found), paths):
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


def _sync(path: str, is_folder: bool) -> None:
    if os.name == "nt" and (is_folder or os.path.isdir(path)):  # Windows keeps names by itself, and opens no folders
        return
    try:
        descriptor = os.open(path, _TO_SYNC)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        if is_folder and error.errno in _FOLDER_NOT_SYNCED:
            return
        raise
    try:
        sync_descriptor(descriptor)
    except OSError as error:
        if not is_folder or error.errno not in _FOLDER_NOT_SYNCED:
            raise
    finally:
        os.close(descriptor)
