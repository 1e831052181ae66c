"""Has another live writer announced a file of the same file group? Checked before a file is created, to save the work.

The check at the end of a write finds what this misses. Source: docs/formats/writers.md, "Early conflict detection".
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.errors import WriteConflict
from pyhudi.filegroup.markers import list_markers, marker_folder
from pyhudi.model.filenames import TEMPORARY_FOLDER
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock
from pyhudi.timeline.heartbeat import is_expired

__all__ = ["EarlyConflicts"]


@dataclass(frozen=True, slots=True)
class EarlyConflicts:
    """How a task looks for other writers. Picklable.

    `ignored_instants`: instants that are no writers, or can't be in the way: plans that wait. `heartbeat_interval_ms`
    and `heartbeat_misses` say when a writer counts as dead.
    """

    ignored_instants: frozenset[str]
    heartbeat_interval_ms: int
    heartbeat_misses: int
    clock: Clock

    def check(self, storage: Storage, instant_time: str, path: str) -> None:
        """Raises WriteConflict when a writer that began earlier is about to change the file group of a data file."""
        for entry in storage.list(TEMPORARY_FOLDER):
            other = entry.name
            if other >= instant_time or other in self.ignored_instants or not self._has_file_of(path, other, storage):
                continue
            now_ms = self.clock.now_ms()
            if not is_expired(storage, other, now_ms, self.heartbeat_interval_ms, self.heartbeat_misses):
                partition, _, name = path.rpartition("/")
                raise WriteConflict(
                    f"{storage.root}: {instant_time} is about to change the file group {_file_id(name)} in "
                    f"{partition!r}, which the writer {other} is changing (early conflict detection). Nothing of "
                    f"{instant_time} is visible; run the write again when {other} is through."
                )

    def _has_file_of(self, path: str, other: str, storage: Storage) -> bool:
        partition, _, name = path.rpartition("/")
        folder = f"{marker_folder(other)}/{partition}" if partition else marker_folder(other)
        names = [entry.name for entry in storage.list(folder)]
        if storage.stat(f"{marker_folder(other)}/MARKERS.type") is not None:
            paths = (marker.data_path.rpartition("/") for marker in list_markers(storage, other))
            names = [found for place, _, found in paths if place == partition]
        return any(_file_id(found) == _file_id(name) for found in names)


def _file_id(name: str) -> str:
    """The file id at the head of a data file's or marker's name."""
    return name.removeprefix(".").partition("_")[0]
