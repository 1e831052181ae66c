"""The partitions of a table and their files, by listing folders.

A folder with a file .hoodie_partition_metadata is a partition.
Source: docs/formats/file-names.md, "Partition metadata".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from pyhudi.storage.base import FileInfo, Storage
from pyhudi.storage.local import FolderLinks
from pyhudi.storage.place import is_near

__all__ = ["LISTING_THREADS", "is_partition_metadata", "listed_partitions"]

LISTING_THREADS = 8  # folders listed at once; listing waits for the store, not for the processor
_FEW_FOLDERS = 16  # of a near storage
_LISTED_AHEAD = 4 * LISTING_THREADS  # folders: names of a million files would fill the memory of a slow taker
_PARTITION_METADATA = ".hoodie_partition_metadata"


def is_partition_metadata(name: str) -> bool:
    """True for the file that makes a folder a partition, in its text, Parquet or ORC form."""
    return name in (_PARTITION_METADATA, f"{_PARTITION_METADATA}.parquet", f"{_PARTITION_METADATA}.orc")


def listed_partitions(
    storage: Storage, partitions: Iterable[str] | None = None
) -> Iterator[tuple[str, list[FileInfo]]]:
    """Partition paths with their files, each as soon as it is listed; `partitions` None: all that there are.

    Folders are listed side by side; `.hoodie` at the root is never entered. Raises StorageError for links in a circle.
    """
    descend, links = partitions is None, FolderLinks(storage.root)
    folders = deque(("",) if partitions is None else dict.fromkeys(partitions))
    with ThreadPoolExecutor(LISTING_THREADS, thread_name_prefix="hudi-list") as pool:
        waiting: dict[Future[tuple[FileInfo, ...]], str] = {}
        while waiting or folders:
            # Nothing to do meanwhile, or no longer than to begin threads: these would only cost time.
            if not waiting and (len(folders) == 1 or (len(folders) <= _FEW_FOLDERS and is_near(storage))):
                listed = [(path := folders.popleft(), storage.list(path))]
            else:
                while folders and len(waiting) < _LISTED_AHEAD:
                    path = folders.popleft()
                    waiting[pool.submit(storage.list, path)] = path
                done = wait(waiting, return_when=FIRST_COMPLETED).done
                listed = [(waiting.pop(future), future.result()) for future in done]
            for path, entries in listed:
                if descend:
                    for entry in entries:
                        if entry.is_dir and entry.path != ".hoodie":
                            links.follow(entry)
                            folders.append(entry.path)
                if any(is_partition_metadata(entry.name) for entry in entries):
                    yield path, [entry for entry in entries if not entry.is_dir]
