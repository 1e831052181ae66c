"""Markers: each attempt of a write announces its files, so that failures can be undone and conflicts seen early.

There are two layouts; this package writes the first one and reads both:

    .hoodie/.temp/<instant>/<partition>/<data file>.marker.<CREATE|MERGE|APPEND>    empty, made before the data file
    .hoodie/.temp/<instant>/MARKERS.type, MARKERS0, MARKERS1, ...                   timeline server: one marker a line

Before a task creates a file, `EarlyConflicts` looks for another live writer that began earlier and has announced a file
of the same file group. This avoids work that would be lost. The check at the end of a write finds the conflicts that
this one misses.

On a cluster a task may outlive its write: a copy of it was faster, or the driver considered its executor lost.
`WhilePending` prevents it from creating files that would count as files of the instant.

Source: docs/formats/writers.md, "Markers", "Early conflict detection".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyhudi.errors import CorruptFile, PathExists, WriteConflict
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.model.filenames import TEMPORARY_FOLDER, InstantFileName, LogFileName, instant_of, marker_folder
from pyhudi.model.filenames import MarkerName as Marker
from pyhudi.model.instant import State
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock
from pyhudi.storage.place import file_names_in
from pyhudi.timeline.heartbeat import is_expired

__all__ = [
    "APPEND",
    "CREATE",
    "MERGE",
    "EarlyConflicts",
    "Marker",
    "WhilePending",
    "create_marker",
    "delete_markers",
    "list_markers",
    "marker_folder",
    "sweep",
]


CREATE = "CREATE"
MERGE = "MERGE"
APPEND = "APPEND"

_TYPE_FILE = "MARKERS.type"
_SERVER_LAYOUT = "TIMELINE_SERVER_BASED"
_MARKERS_BYTES_MAX = 256 << 20  # a line of some 200 bytes for each of a million files


def create_marker(storage: Storage, instant_time: str, data_path: str, io_type: str) -> None:
    """Announce that `data_path` is about to be created. Announcing it twice is no error."""
    try:
        storage.create_new(f"{marker_folder(instant_time)}/{Marker(data_path, io_type)}", b"")
    except PathExists:
        return


def list_markers(storage: Storage, instant_time: str) -> tuple[Marker, ...]:
    """All markers of an instant in either layout, sorted; () if there is no folder. Raises CorruptFile."""
    folder = marker_folder(instant_time)
    names: list[str] = []
    in_server_layout = False
    for info in storage.walk(folder):
        name = info.path[len(folder) + 1 :]
        if name == _TYPE_FILE:
            in_server_layout = storage.read(info.path, _MARKERS_BYTES_MAX).strip() == _SERVER_LAYOUT.encode()
        else:
            names.append(name)
    if in_server_layout:
        files = [name for name in names if name.startswith("MARKERS") and "/" not in name]
        names = [line for name in files for line in _lines(storage, f"{folder}/{name}") if line]
    return tuple(sorted({_parse(name, folder) for name in names if not name.endswith(".crc")}))


def _lines(storage: Storage, path: str) -> list[str]:
    try:
        return storage.read(path, _MARKERS_BYTES_MAX).decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise CorruptFile(
            f"{storage.full_path(path)}: expected a marker a line in UTF-8, found other bytes ({error}). Which files "
            f"the write made can't be told by it; restore the file, or remove it and the files of that write."
        ) from error


def _parse(name: str, folder: str) -> Marker:
    marker = Marker.parse(name)
    if marker is None:
        raise CorruptFile(
            f"{folder}: {name!r} is not a marker; expected `<partition>/<data file>.marker.CREATE|MERGE|APPEND`."
        )
    segments = marker.data_path.split("/")
    if segments[0] in (".hoodie", "") or ".." in segments:
        raise CorruptFile(f"{folder}: the marker {name!r} names a file that is no data file of the table.")
    return marker


def delete_markers(storage: Storage, instant_time: str) -> None:
    """Delete the markers of an instant."""
    storage.delete_tree(marker_folder(instant_time))


def sweep(storage: Storage, instant_time: str, keep: Iterable[str]) -> tuple[str, ...]:
    """Delete the data files of failed and repeated attempts: those with a marker that are not in `keep`.

    Args:    keep: data paths that the commit will name.
    Returns: the deleted paths.
    Raises CorruptFile for a marker whose file's name is not of this instant: that file must not be deleted.
    """
    paths_to_keep = frozenset(keep)
    removed = []
    for marker in list_markers(storage, instant_time):
        if marker.data_path in paths_to_keep:
            continue
        if marker.io_type == APPEND:
            if _is_log_of(storage, marker.data_path, instant_time) and storage.delete(marker.data_path):
                removed.append(marker.data_path)
            continue
        if instant_of(marker.data_path.rpartition("/")[2]) != instant_time:
            raise CorruptFile(
                f"{marker_folder(instant_time)}: a marker names {marker.data_path!r}, which instant {instant_time} "
                f"did not write; nothing was deleted for it. Remove the marker if you know where it came from."
            )
        if storage.delete(marker.data_path):
            removed.append(marker.data_path)
    storage.sync(removed)  # a reappearing file would count as a file of the commit
    return tuple(removed)


def _is_log_of(storage: Storage, path: str, instant_time: str) -> bool:
    """True if only this instant wrote the log file. Below version 8 its blocks tell this, not its name."""
    if LogFileName.parse(path.rpartition("/")[2]) is None or storage.stat(path) is None:
        return False
    try:
        return all(
            block.instant_time == instant_time for block in scan_log(storage, path) if isinstance(block, LogBlock)
        )
    except CorruptFile:
        return True  # its writer died before the first block, and no other writer announced a file of this name


@dataclass(frozen=True, slots=True)
class EarlyConflicts:
    """A task's check for other writers. Picklable.

    `ignored_instants`: instants that are not writers, or can't conflict: pending plans. `heartbeat_interval_ms` and
    `heartbeat_misses` define when a writer counts as dead.
    """

    ignored_instants: frozenset[str]
    heartbeat_interval_ms: int
    heartbeat_misses: int
    clock: Clock

    def check(self, storage: Storage, instant_time: str, path: str) -> None:
        """Raise WriteConflict when a writer that began earlier is about to change the file group of a data file."""
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
            names = [marker_name for place, _, marker_name in paths if place == partition]
        return any(_file_id(marker_name) == _file_id(name) for marker_name in names)


@dataclass(frozen=True, slots=True)
class WhilePending:
    """A task's check that its write is still pending, for tasks that may outlive it. Picklable."""

    timeline_path: str
    layout_version: int

    def check(self, storage: Storage, instant_time: str) -> None:
        """Raise WriteConflict when the instant is complete or undone."""
        names = [name for name in file_names_in(storage, self.timeline_path) if name.startswith(instant_time)]
        parsed = [InstantFileName.parse(name, self.layout_version) for name in names]
        states = {name.state for name in parsed if name is not None and name.requested_time == instant_time}
        if not states or State.COMPLETED in states:
            raise WriteConflict(
                f"{storage.root}: {instant_time} is {'complete' if states else 'undone'}, so this task makes no more "
                f"files for it. If the write still waits for the task, another writer took it for dead: write again, "
                f"or raise hoodie.client.heartbeat.interval_in_ms."
            )


def _file_id(name: str) -> str:
    """The file id at the head of a data file's or marker's name."""
    return name.removeprefix(".").partition("_")[0]
