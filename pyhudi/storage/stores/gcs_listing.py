"""Listing a folder of Google Cloud Storage, where pyarrow.fs shows only folders that have a marker object.

Hudi, Spark and PyHudi make no markers, so a table would seem empty with pyarrow. obstore needs one request per thousand
entries; without it all files below the folder are listed and the folders derived from their paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyhudi.storage.base import FileInfo
from pyhudi.storage.paths import child
from pyhudi.storage.stores.connection import ObjectStore, shown_error, shown_store_error

__all__ = ["entries_of_walk", "list_by_store"]


def list_by_store(api: ObjectStore, path: str, where: str) -> Iterator[FileInfo]:
    """Yield files and folders of one folder. Raises StorageError."""
    try:
        listing = api.module.list_with_delimiter(api.store, path or None)
    except (api.exceptions.BaseError, OSError) as error:
        raise shown_store_error(where, error) from shown_error(error)
    for entry in listing["objects"]:
        # A marker object of the folder, as made by other tools, has the folder's path.
        if entry["path"] != path:
            yield FileInfo(entry["path"], entry["size"], int(entry["last_modified"].timestamp() * 1000))
    for prefix in listing["common_prefixes"]:
        yield FileInfo(prefix, 0, 0, is_dir=True)


def entries_of_walk(path: str, files: Iterable[FileInfo]) -> Iterator[FileInfo]:
    """Yield files and folders of one folder, from all files below it."""
    start, folders = len(path) + 1 if path else 0, set[str]()
    for info in files:
        name, slash, _ = info.path[start:].partition("/")
        if not slash:
            yield info
        elif name not in folders:
            folders.add(name)
            yield FileInfo(child(path, name), 0, 0, is_dir=True)
