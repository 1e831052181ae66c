"""The active timeline: its folder as it was at one moment, in either layout. No file of an instant is opened.

Source: docs/formats/timeline.md, "Instants and states", "File names".
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone, tzinfo
from functools import lru_cache

from pyhudi.errors import StorageError
from pyhudi.model.filenames import InstantFileName
from pyhudi.model.instant import ActionKind, Instant, State, format_instant_time
from pyhudi.model.table_config import TableConfig
from pyhudi.model.timeline import Timeline
from pyhudi.storage.base import FileInfo, Storage
from pyhudi.storage.clock import Clock
from pyhudi.storage.paths import child
from pyhudi.storage.place import file_names_in, is_local
from pyhudi.timeline.table_properties import load_table_config

__all__ = [
    "instant_path",
    "is_complete",
    "list_instant_files",
    "load_config_and_timeline",
    "load_timeline",
    "time_of",
    "timeline_of",
]


def instant_path(instant: Instant, config: TableConfig) -> str:
    """Return the path of the file of an instant's state."""
    completion_time = instant.completion_time if instant.is_completed else None
    name = InstantFileName(instant.requested_time, instant.action, instant.state, completion_time)
    return child(config.timeline_path, name.text(config.layout_version))


# A file may have any time; instants are limited to the years from the epoch to the last one that exists in all zones.
_LAST_MS = int(datetime(9998, 12, 30, tzinfo=timezone.utc).timestamp() * 1000)
_NAMES_KEPT = 4096
_CACHED_TIMELINES_MAX = 8  # of some tables and their metadata tables
_LISTINGS_MAX = 100  # the first two agree, unless writers are much faster than the storage


def load_timeline(storage: Storage, config: TableConfig) -> Timeline:
    """Load all instants of the active timeline in their highest state.

    A completed file without a completion time in its name (layout 1, and what 0.x wrote into layout 2) completed when
    it was last modified. Other files in the folder are ignored. A missing folder is an empty timeline.
    """
    return timeline_of(list_instant_files(storage, config), config)


def load_config_and_timeline(storage: Storage, clock: Clock) -> tuple[TableConfig, Timeline, frozenset[str]]:
    """Load the properties and the timeline of one moment, and the names of the files in the timeline's folder.

    Raises TableNotFound, CorruptFile, and UnsupportedTable for a table that this release can't read.
    """
    config = load_table_config(storage, clock).check_readable()
    names, timeline = _names_and_timeline(storage, config)
    for _ in range(_LISTINGS_MAX):
        if is_complete(timeline, names):
            break
        # An upgrade or downgrade may have moved instants since the properties were read: read both again.
        before = config.timeline_path, names
        config = load_table_config(storage, clock).check_readable()
        names, timeline = _names_and_timeline(storage, config)
        if (config.timeline_path, names) == before:
            break
    return config, timeline, names


def _names_and_timeline(storage: Storage, config: TableConfig) -> tuple[frozenset[str], Timeline]:
    """Return the names of the files in the timeline's folder, and its timeline."""
    if is_local(storage):
        # Names take a tenth of the time of entries, and a process loads timelines repeatedly.
        names = file_names_in(storage, config.timeline_path)
        timeline = _timeline_of_names(names, config.layout_version)
        if timeline is not None and names == file_names_in(storage, config.timeline_path):
            return names, timeline
    entries = list_instant_files(storage, config)
    return frozenset(entry.name for entry in entries if not entry.is_dir), timeline_of(entries, config)


def timeline_of(entries: Iterable[FileInfo], config: TableConfig) -> Timeline:
    """Return the timeline of a listing of its folder."""
    layout_version, zone = config.layout_version, config.timeline_zone
    files = (entry for entry in entries if not entry.is_dir)
    return _timeline_of(filter(None, (_instant(entry, layout_version, zone) for entry in files)))


@lru_cache(maxsize=_CACHED_TIMELINES_MAX)
def _timeline_of_names(names: frozenset[str], layout_version: int) -> Timeline | None:
    """Return the timeline of its files' names; None if a completed one lacks its completion time."""
    instants = [
        Instant(name.requested_time, name.action, name.state, name.completion_time)
        for name in filter(None, (_parsed(name, layout_version) for name in names))
        if name.action is not ActionKind.SCHEMACOMMIT
    ]
    if any(instant.is_completed and instant.completion_time is None for instant in instants):
        return None
    return _timeline_of(instants)


def _timeline_of(instants: Iterable[Instant]) -> Timeline:
    """Return the timeline of one instant per file."""
    states: dict[tuple[str, ActionKind], Instant] = {}
    for instant in instants:
        key = (instant.requested_time, instant.action.completed_as)
        latest = states.get(key)
        if latest is None or instant.state > latest.state:
            states[key] = instant
    return Timeline(tuple(states.values()))


def is_complete(timeline: Timeline, names: Iterable[str]) -> bool:
    """False when instants may be moving to the other layout's folder: requested files are moved first.

    Args: names: of the files of the timeline.
    """
    commits = timeline.commits()
    requested = {name.partition(".")[0] for name in names if name.endswith(".requested")}
    return bool(commits) and all(instant.requested_time in requested for instant in commits)


def list_instant_files(storage: Storage, config: TableConfig) -> tuple[FileInfo, ...]:
    """Return the entries of the timeline's folder at one moment.

    A listing during an archiving or a commit can show an older instant that is gone by its end, or a newer one, and
    miss one between them, whose rows would then seem uncommitted. A name appears once and disappears once, so the
    names in two equal successive listings all existed when the first one ended.

    Raises: StorageError when no two listings agree.
    """
    folder = config.timeline_path
    previous: frozenset[str] | None = None
    for _ in range(_LISTINGS_MAX):
        entries = storage.list(folder)
        names = frozenset(entry.name for entry in entries if not entry.is_dir)
        # On a store without atomic listings, an empty one needs a check, too: its only instant may have left just now.
        if 0 < storage.listed_at_once >= len(entries) or names == previous:
            return entries
        previous = names
        if is_local(storage) and names == file_names_in(storage, folder):
            return entries
    raise StorageError(
        f"{storage.root}: {folder} changed during each of {_LISTINGS_MAX} listings, so its state at one moment "
        "could not be read. Read again when fewer writers are at work."
    )


def _instant(entry: FileInfo, layout_version: int, zone: tzinfo | None) -> Instant | None:
    name = _parsed(entry.name, layout_version)
    if name is None or name.action is ActionKind.SCHEMACOMMIT:
        return None
    completion_time = name.completion_time
    if name.state is State.COMPLETED and completion_time is None:
        completion_time = time_of(entry.modified_ms, zone)
    return Instant(name.requested_time, name.action, name.state, completion_time)


# A write loads timelines some ten times, with the same names except its own.
_parsed = lru_cache(maxsize=_NAMES_KEPT)(InstantFileName.parse)


def time_of(modified_ms: int, zone: tzinfo | None) -> str:
    """Return a file's modification time as an instant time in the timeline's zone."""
    modified_ms = min(max(modified_ms, 0), _LAST_MS)
    moment = datetime.fromtimestamp(modified_ms // 1000, timezone.utc)
    return format_instant_time(moment.replace(microsecond=modified_ms % 1000 * 1000), zone)
