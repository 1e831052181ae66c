"""Properties of a table's location: fast answers, access from only one machine, exclusive creation of files.

On local disks, threads that wait for several answers cost more than they save, and reading the status of a folder's
files takes longer than reading their names. Only some storages have these calls.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

from pyhudi.errors import StorageError
from pyhudi.storage.base import Storage
from pyhudi.storage.local import LocalStorage

__all__ = [
    "copy_file",
    "creates_exclusively",
    "delete_if_empty",
    "file_names_in",
    "is_local",
    "is_of_one_machine",
    "mount_kind",
]

_MOUNTS = "/proc/mounts"
_COPY_BYTES = 16 << 20
_COPIED_BY_STORES_BYTES = 5 << 30  # by S3 in one request
_SHARED = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "9p", "afs", "ceph", "glusterfs", "lustre", "gpfs", "beegfs"}
    | {"pvfs2", "orangefs", "ocfs2", "gfs2", "vboxsf", "prl_fs", "vmhgfs", "virtiofs", "davfs", "drvfs"}
)
_FUSE = "fuse"  # "fuse" alone or "fuse.<program>"; "fuseblk" is a disk
# Mounts of object stores: two machines may each create one file, since the store is asked on close, if at all.
_OBJECT_STORES = ("s3fs", "goofys", "geesefs", "gcsfuse", "blobfuse", "rclone", "mount-s3", "mountpoint-s3", "ossfs")


def is_local(storage: Storage) -> bool:
    """True if the storage answers faster than a thread starts."""
    return bool(getattr(storage, "is_local", False))


def file_names_in(storage: Storage, path: str) -> frozenset[str]:
    """Return the names of the files that `Storage.list` lists in a folder."""
    names: Callable[[str], frozenset[str]] | None = getattr(storage, "file_names_in", None)
    if names is not None:
        return names(path)
    return frozenset(entry.name for entry in storage.list(path) if not entry.is_dir)


def delete_if_empty(storage: Storage, folder: str) -> None:
    """Remove an empty folder, if the storage has folders and does this atomically."""
    remove: Callable[[str], None] | None = getattr(storage, "delete_if_empty", None)
    if remove is not None:
        remove(folder)


def copy_file(storage: Storage, source: str, target: str, size_bytes: int) -> None:
    """Copy a file, atomically if the store replaces files atomically. `target` is replaced; it has no readers yet.

    Local disks link the file, and object stores copy it themselves, unless it is too large for one request. Otherwise,
    and if the store refuses (pyarrow copies nothing on HDFS), this process reads and writes its bytes.
    """
    copy: Callable[[str, str], None] | None = getattr(storage, "copy_file", None)
    if copy is not None and (is_local(storage) or size_bytes <= _COPIED_BY_STORES_BYTES):
        with suppress(StorageError):
            copy(source, target)
            return
    with storage.open_input(source) as file, storage.open_output(target) as sink:
        while part := file.read(_COPY_BYTES):
            sink.write(part)


def is_of_one_machine(storage: Storage) -> bool:
    """True if only processes of this machine, which share a clock, can access the table; False if unknown."""
    if not isinstance(storage, LocalStorage):
        return False
    kind = mount_kind(storage.root)
    return not (kind in _SHARED or kind == _FUSE or kind.startswith(f"{_FUSE}."))


def creates_exclusively(storage: Storage) -> bool:
    """True if only one succeeds when several processes, on any machines, create the same file at once."""
    if not isinstance(storage, LocalStorage):
        return True  # other storages refuse to write if they can't
    kind = mount_kind(storage.root)
    return not (kind.startswith(_FUSE) and any(program in kind for program in _OBJECT_STORES))


@lru_cache(maxsize=1024)
def mount_kind(folder: str) -> str:
    """The kind of file system that a folder is on, in the system's terms (`ext4`, `nfs4`, `fuse.s3fs`); "" if unknown.
    The folder need not exist. For a mount of plain kind "fuse", its source is added.
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
        point = _unescape(row[1])
        is_above = path == point or path.startswith(point.rstrip("/") + "/")
        if is_above and len(point) >= len(best):  # of two mounts at one point the later one is visible
            best, kind = point, f"{row[2]}.{_unescape(row[0])}" if row[2] == _FUSE else row[2]
    return kind


def _unescape(text: str) -> str:
    """Return a name in the table of mounts: spaces, tabs, line ends and backslashes are written as octal numbers."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
