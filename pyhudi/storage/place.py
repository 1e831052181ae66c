"""What a table's place can do: answer at once, be reached by one machine alone, create a file for one process alone.

Threads that wait for several answers at a time cost more on this machine's disks than they save, and to look at the
files of a folder takes longer there than to read their names. Only some storages have these calls.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import lru_cache

from pyhudi.storage.base import Storage
from pyhudi.storage.local import LocalStorage

__all__ = ["creates_exclusively", "delete_if_empty", "is_local", "is_of_one_machine", "mount_kind", "names_in"]

_MOUNTS = "/proc/mounts"
_SHARED = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "9p", "afs", "ceph", "glusterfs", "lustre", "gpfs", "beegfs"}
    | {"pvfs2", "orangefs", "ocfs2", "gfs2", "vboxsf", "prl_fs", "vmhgfs", "virtiofs", "davfs", "drvfs"}
)
_FUSE = "fuse"  # "fuse" alone or "fuse.<program>"; "fuseblk" is a disk
# Mounts of object stores: two machines may each create one file, for the store is asked when it is closed, if at all.
_OBJECT_STORES = ("s3fs", "goofys", "geesefs", "gcsfuse", "blobfuse", "rclone", "mount-s3", "mountpoint-s3", "ossfs")


def is_local(storage: Storage) -> bool:
    """Does the storage answer in less time than it takes to begin a thread?"""
    return bool(getattr(storage, "is_local", False))


def names_in(storage: Storage, path: str) -> frozenset[str]:
    """The names of what `Storage.list` lists in a folder."""
    names: Callable[[str], frozenset[str]] | None = getattr(storage, "names_in", None)
    return frozenset(entry.name for entry in storage.list(path)) if names is None else names(path)


def delete_if_empty(storage: Storage, folder: str) -> None:
    """Remove a folder in which there is nothing, where there are folders and this is one step."""
    remove: Callable[[str], None] | None = getattr(storage, "delete_if_empty", None)
    if remove is not None:
        remove(folder)


def is_of_one_machine(storage: Storage) -> bool:
    """Do only processes of this machine, which have one clock, reach the table? False when one can't know."""
    if not isinstance(storage, LocalStorage):
        return False
    kind = mount_kind(storage.root)
    return not (kind in _SHARED or kind == _FUSE or kind.startswith(f"{_FUSE}."))


def creates_exclusively(storage: Storage) -> bool:
    """Does of all processes that create one file at once only one succeed, on whichever machine they run?"""
    if not isinstance(storage, LocalStorage):
        return True  # other storages refuse to write where they can't
    kind = mount_kind(storage.root)
    return not (kind.startswith(_FUSE) and any(program in kind for program in _OBJECT_STORES))


@lru_cache(maxsize=1024)
def mount_kind(folder: str) -> str:
    """The kind of file system that a folder is on, as the system names it (`ext4`, `nfs4`, `fuse.s3fs`); "" where it
    does not say. The folder need not exist. For a mount whose kind is "fuse" alone, its source is added.
    """
    path = os.path.realpath(folder)
    if not sys.platform.startswith("linux"):
        return "nfs" if path.startswith(("/Volumes/", "/Network/", "\\\\")) else ""
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
            rows = [line.split(" ") for line in mounts]
    except OSError:
        return ""
    best, kind = "", ""
    for row in rows:
        if len(row) < 3:
            continue
        point = _unescaped(row[1])
        is_above = path == point or path.startswith(point.rstrip("/") + "/")
        if is_above and len(point) >= len(best):  # of two mounts at one point the later one is seen
            best, kind = point, f"{row[2]}.{_unescaped(row[0])}" if row[2] == _FUSE else row[2]
    return kind


def _unescaped(text: str) -> str:
    """A name in the table of mounts: spaces, tabs, line ends and backslashes are written as octal numbers."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
