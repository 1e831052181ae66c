"""Reading the active timeline: its folder as it was at one moment, in either layout, and the files of its instants.

`TimelineReader` returns the files of one instant as bytes and decoded: plans of pending instants, and bodies of
completed ones other than commits (for these see `timeline/commits.py`).
Source: docs/formats/timeline.md, "Instants and states", "File names", "Steps of an instant", "Bodies".

"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from functools import lru_cache

from pyhudi.errors import PathNotFound, StorageError
from pyhudi.formats.timeline.clean_plans import decode_clean_metadata, decode_clean_plan
from pyhudi.formats.timeline.instant_files import decode_commit, decode_rollback_plan
from pyhudi.formats.timeline.plans import decode_clustering_plan, decode_compaction_plan, decode_index_plan
from pyhudi.formats.timeline.savepoints import decode_restore_plan, decode_savepoint
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.filenames import InstantFileName, pending_actions
from pyhudi.model.instant import ActionKind, Instant, State, format_instant_time
from pyhudi.model.plans import (
    CleanMetadata,
    CleanPlan,
    ClusteringPlan,
    CompactionPlan,
    IndexPlan,
    RestorePlan,
    RollbackPlan,
    SavepointMetadata,
)
from pyhudi.model.table_config import TableConfig
from pyhudi.model.timeline import Timeline
from pyhudi.storage.base import FileInfo, Storage
from pyhudi.storage.paths import child
from pyhudi.storage.place import is_local, names_in

__all__ = [
    "TimelineReader",
    "instant_path",
    "is_complete",
    "list_instant_files",
    "load_timeline",
    "time_of",
    "timeline_of",
]


def instant_path(instant: Instant, config: TableConfig) -> str:
    """The path of the file of an instant's state."""
    completion_time = instant.completion_time if instant.is_completed else None
    name = InstantFileName(instant.requested_time, instant.action, instant.state, completion_time)
    return child(config.timeline_path, name.text(config.layout_version))


@dataclass(frozen=True, slots=True)
class TimelineReader:
    """Reads the files of instants, without a cache. All methods raise CorruptFile for files that can't be decoded, and
    PathNotFound for a state that the instant has not reached, or has left since the timeline was listed.
    """

    storage: Storage
    config: TableConfig

    def read_body(self, instant: Instant, state: State) -> bytes:
        """The bytes of one state's file of an instant."""
        if state is State.COMPLETED:
            try:
                return self.storage.read(instant_path(instant, self.config))
            except PathNotFound:
                # Layout 2 may hold completed files of 0.x without a completion time in their names.
                return self.storage.read(
                    instant_path(Instant(instant.requested_time, instant.action, state), self.config)
                )
        actions = (instant.action, *pending_actions(instant.action.completed_as))
        for action in dict.fromkeys(actions):
            try:
                return self.storage.read(instant_path(Instant(instant.requested_time, action, state), self.config))
            except PathNotFound:
                continue
        raise PathNotFound(
            f"{self.storage.full_path(self.config.timeline_path)}: the instant {instant.requested_time} "
            f"({instant.action.value}) has no {state.name.lower()} file."
        )

    # Plans: requested files, which stay when the instant proceeds

    def compaction_plan(self, instant: Instant) -> CompactionPlan:
        """The plan of a compaction or log compaction. Raises UnsupportedTable for one with bootstrapped files."""
        return decode_compaction_plan(*self._body(instant, State.REQUESTED))

    def clustering_plan(self, instant: Instant) -> ClusteringPlan | None:
        """The plan of an instant, None when it is not a clustering, or was dropped since the timeline was listed.

        Below version 8 pending clusterings and overwrites are both called replacecommit: the plan distinguishes them.
        """
        if not instant.action.is_replacing:
            return None
        try:
            body, where = self._body(instant, State.REQUESTED)
        except PathNotFound:
            return None
        return decode_clustering_plan(body, where)

    def clean_plan(self, instant: Instant) -> CleanPlan | None:
        """The plan of a clean, None when the file holds none: its writer died. Raises UnsupportedTable for one that
        deletes files of a bootstrap.
        """
        body, where = self._body(instant, State.REQUESTED)
        return decode_clean_plan(body, where) if body else None

    def rollback_plan(self, instant: Instant) -> RollbackPlan:
        return decode_rollback_plan(*self._body(instant, State.REQUESTED))

    def restore_plan(self, instant: Instant) -> RestorePlan:
        return decode_restore_plan(*self._body(instant, State.REQUESTED))

    def index_plan(self, instant: Instant) -> IndexPlan:
        """The plan of an indexing instant."""
        return decode_index_plan(*self._body(instant, State.REQUESTED))

    # Inflight files

    def profile(self, instant: Instant) -> CommitMetadata:
        """The workload profile in the inflight file of a write, empty when it has none."""
        return decode_commit(*self._body(instant, State.INFLIGHT))

    # Completed files

    def clean_metadata(self, instant: Instant) -> CleanMetadata:
        return decode_clean_metadata(*self._body(instant, State.COMPLETED))

    def savepoint_metadata(self, instant: Instant) -> SavepointMetadata:
        return decode_savepoint(*self._body(instant, State.COMPLETED))

    def _body(self, instant: Instant, state: State) -> tuple[bytes, str]:
        """The bytes of a file, and its name in messages."""
        ending = "" if state is State.COMPLETED else f".{state.name.lower()}"
        where = f"{self.storage.root}: {instant.requested_time}.{instant.action.value}{ending}"
        return self.read_body(instant, state), where


# A file may have any time; instants are limited to the years from the epoch to the last one that exists in all zones.
_LAST_MS = int(datetime(9998, 12, 30, tzinfo=timezone.utc).timestamp() * 1000)
_NAMES_KEPT = 4096
_LISTINGS_MAX = 100  # two that agree are found at once, unless writers are much faster than the storage


def load_timeline(storage: Storage, config: TableConfig) -> Timeline:
    """All instants of the active timeline in their highest state.

    A completed file without a completion time in its name (layout 1, and what 0.x wrote into layout 2) completed when
    it was last modified. Other files in the folder are ignored. A missing folder is an empty timeline.
    """
    return timeline_of(list_instant_files(storage, config), config)


def timeline_of(entries: Iterable[FileInfo], config: TableConfig) -> Timeline:
    """The timeline from a listing of its folder."""
    states: dict[tuple[str, ActionKind], Instant] = {}
    layout_version, zone = config.layout_version, config.timeline_zone
    for entry in entries:
        instant = None if entry.is_dir else _instant(entry, layout_version, zone)
        if instant is None:
            continue
        key = (instant.requested_time, instant.action.completed_as)
        latest = states.get(key)
        if latest is None or instant.state > latest.state:
            states[key] = instant
    return Timeline(tuple(states.values()))


def is_complete(timeline: Timeline, entries: Iterable[FileInfo]) -> bool:
    """False when instants may be moving to the other layout's folder: requested files are moved first."""
    commits = timeline.commits()
    requested = {entry.name.partition(".")[0] for entry in entries if entry.path.endswith(".requested")}
    return bool(commits) and all(instant.requested_time in requested for instant in commits)


def list_instant_files(storage: Storage, config: TableConfig) -> tuple[FileInfo, ...]:
    """The entries of the timeline's folder at one moment.

    A listing during an archiving or a commit can show an older instant that has left since, or a newer one, and miss
    one between them, whose rows would then seem uncommitted. A name appears once and disappears once, so the names in
    two successive listings existed when the first one ended.

    Raises: StorageError when no two listings agree.
    """
    folder = config.timeline_path
    previous: frozenset[str] | None = None
    for _ in range(_LISTINGS_MAX):
        entries = storage.list(folder)
        names = frozenset(entry.name for entry in entries)
        # On a store without atomic listings, an empty one needs a check, too: its only instant may have left just now.
        if 0 < storage.listed_at_once >= len(entries) or names == previous:
            return entries
        previous = names
        if is_local(storage) and names == names_in(storage, folder):
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
    """A file's modification time as an instant time in the timeline's zone."""
    modified_ms = min(max(modified_ms, 0), _LAST_MS)
    moment = datetime.fromtimestamp(modified_ms // 1000, timezone.utc)
    return format_instant_time(moment.replace(microsecond=modified_ms % 1000 * 1000), zone)
