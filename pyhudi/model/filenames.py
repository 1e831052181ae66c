"""All names that Hudi uses on disk, made and parsed only here.

Source: docs/formats/file-names.md, "Data files", "Partition metadata"; docs/formats/timeline.md, "Folders",
"File names"; docs/formats/table-config.md, "Table versions"; docs/formats/writers.md, "Markers", "Heartbeats". All
paths are relative to the table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from pyhudi.model.instant import ActionKind, State
from pyhudi.model.table_format import TimelineLayout

__all__ = [
    "AUXILIARY_FOLDER",
    "BASE_FILE_EXTENSIONS",
    "EXPORTS_FOLDER",
    "HEARTBEAT_FOLDER",
    "HIDDEN_EVENTS_FOLDER",
    "INDEX_DEFINITIONS_PATH",
    "INDEX_PIECES_FOLDER",
    "LOCKS_FOLDER",
    "LOCK_FILE_NAME",
    "METADATA_TABLE_FOLDER",
    "META_FOLDER",
    "PARTITION_BUCKETS_FOLDER",
    "PARTITION_METADATA_NAME",
    "PARTITION_METADATA_NAMES",
    "PROPERTIES_BACKUP_PATH",
    "PROPERTIES_PATH",
    "REPLACEMENT_PATH",
    "REPLACEMENT_PREFIX",
    "SCHEMA_FOLDER",
    "SKELETON_TIME",
    "TEMPORARY_FOLDER",
    "BaseFileName",
    "InstantFileName",
    "LogFileName",
    "MarkerName",
    "base_file_parts",
    "data_path",
    "file_id_of",
    "hashing_folder",
    "hashing_path",
    "heartbeat_path",
    "instant_of",
    "marker_folder",
    "may_be_skeleton",
    "new_file_id",
    "partition_depth",
    "pending_actions",
    "staged_index_folder",
]

META_FOLDER = ".hoodie"
PROPERTIES_PATH = ".hoodie/hoodie.properties"
PROPERTIES_BACKUP_PATH = ".hoodie/hoodie.properties.backup"
METADATA_TABLE_FOLDER = ".hoodie/metadata"
SCHEMA_FOLDER = ".hoodie/.schema"
AUXILIARY_FOLDER = ".hoodie/.aux"
INDEX_PIECES_FOLDER = f"{AUXILIARY_FOLDER}/pyhudi_index_pieces"
EXPORTS_FOLDER = f"{AUXILIARY_FOLDER}/pyhudi_exports"  # up to which instant each format has the table
HIDDEN_EVENTS_FOLDER = f"{AUXILIARY_FOLDER}/pyhudi_hidden_events"  # of apply_changes: what rows don't show
TEMPORARY_FOLDER = ".hoodie/.temp"
HEARTBEAT_FOLDER = ".hoodie/.heartbeat"
# PyHudi's own: the new table that will replace this one, and the file that names it once it is complete.
REPLACEMENT_PREFIX = "replacement-"
REPLACEMENT_PATH = f"{TEMPORARY_FOLDER}/replaced_by"
INDEX_DEFINITIONS_PATH = ".hoodie/.index_defs/index.json"
LOCKS_FOLDER = ".hoodie/.locks"  # of the storage-based lock
LOCK_FILE_NAME = "lock"
_HASHING_FOLDER = ".hoodie/.bucket_index/consistent_hashing_metadata"
PARTITION_BUCKETS_FOLDER = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"  # rules of Hudi 1.1 and later

PARTITION_METADATA_NAME = ".hoodie_partition_metadata"
# In the order in which readers look for them.
PARTITION_METADATA_NAMES = (
    PARTITION_METADATA_NAME,
    f"{PARTITION_METADATA_NAME}.parquet",
    f"{PARTITION_METADATA_NAME}.orc",
)

BASE_FILE_EXTENSIONS = (".parquet", ".orc", ".hfile", ".lance")


def data_path(partition_path: str, name: str) -> str:
    """Path of a data file; the partition path of a non-partitioned table is ""."""
    return f"{partition_path}/{name}" if partition_path else name


def partition_depth(partition_path: str) -> int:
    """The number of levels from the table's folder to the partition's, for the partition metadata file."""
    return partition_path.count("/") + 1 if partition_path else 0


def hashing_folder(partition_path: str) -> str:
    """The folder of a partition's consistent hashing rings."""
    return f"{_HASHING_FOLDER}/{partition_path}" if partition_path else _HASHING_FOLDER


def hashing_path(partition_path: str, instant_time: str) -> str:
    """The path of an instant's ring."""
    return f"{hashing_folder(partition_path)}/{instant_time}.hashing_meta"


def new_file_id(prefix: str, number: int = 0) -> str:
    """A file id: a uuid (or bucket prefix) and the number of files that one writer has already opened with it."""
    return f"{prefix}-{number}"


@dataclass(frozen=True, slots=True, order=True)
class BaseFileName:
    """`<file id>_<write token>_<instant time><extension>`; the extension has its dot."""

    file_id: str
    write_token: str
    instant_time: str
    extension: str = ".parquet"

    def __str__(self) -> str:
        return f"{self.file_id}_{self.write_token}_{self.instant_time}{self.extension}"

    @classmethod
    def parse(cls, name: str) -> BaseFileName | None:
        """The parts of a base file's name, None when it is another kind of file."""
        parts = base_file_parts(name)
        return None if parts is None else cls(*parts)


def base_file_parts(name: str) -> tuple[str, str, str, str] | None:
    """The parts of `BaseFileName.parse` as a tuple: listings have a hundred thousand names, and creating an object for
    each takes longer than parsing it.
    """
    if name.startswith("."):
        return None
    stem, dot, extension = name.rpartition(".")
    if dot + extension not in BASE_FILE_EXTENSIONS:
        return None
    file_id, _, token_and_instant = stem.partition("_")
    write_token, _, instant = token_and_instant.partition("_")
    instant_time = instant.partition(".")[0]
    if not (file_id and write_token and instant_time.isascii() and instant_time.isdigit()):
        return None
    return file_id, write_token, instant_time, dot + extension


SKELETON_TIME = "00000000000001"  # the instant time of base files that a metadata-only bootstrap creates


def may_be_skeleton(name: str) -> bool:
    """True for the name of a base file of the bootstrap's commit.

    Its data columns are in a source file, unless a mixed bootstrap of PyHudi has copied its rows.
    """
    if f"_{SKELETON_TIME}." not in name:
        return False
    parts = base_file_parts(name)
    return parts is not None and parts[2] == SKELETON_TIME


_NAMES = 1 << 14  # log files in the cache of parsed names: queries of a table parse the same names repeatedly
# Versions are Java's ints. Archive files have similar names, without an instant.
_LOG_NAME = re.compile(r"\.([^._]+)_(\d*)\.(log|archive)\.(\d{1,10})(?:_(\d+-\d+-\d+)(\.cdc)?)?", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class LogFileName:
    """`.<file id>_<instant time>.log.<version>[_<write token>][.cdc]`.

    Below table version 8 the time is the slice's base instant, from 8 on the delta commit's own.
    """

    file_id: str
    instant_time: str
    version: int
    write_token: str = ""
    suffix: str = ""  # ".cdc" for change logs

    def __str__(self) -> str:
        token = f"_{self.write_token}" if self.write_token else ""
        return f".{self.file_id}_{self.instant_time}.log.{self.version}{token}{self.suffix}"

    @classmethod
    def parse(cls, name: str) -> LogFileName | None:
        """The parts of a log file's name, None when it is another kind of file."""
        return _parse_log_name(name)


@lru_cache(maxsize=_NAMES)
def _parse_log_name(name: str) -> LogFileName | None:
    match = _LOG_NAME.fullmatch(name)
    if match is None or match[3] != "log" or not match[2]:
        return None
    return LogFileName(match[1], match[2], int(match[4]), match[5] or "", match[6] or "")


def file_id_of(name: str) -> str | None:
    """The file id of a base file or a log file; None for other files."""
    base, log = base_file_parts(name), LogFileName.parse(name)
    return base[0] if base is not None else None if log is None else log.file_id


def instant_of(name: str) -> str | None:
    """The instant time in the name of a base or log file, None when it is another kind of file.

    Deletions for an instant use only this function: a time may be part of another time, or of a file id.
    """
    parsed = BaseFileName.parse(name) or LogFileName.parse(name)
    return None if parsed is None else parsed.instant_time


# Instant files

_L1_NAME = re.compile(r"(\d+)(\.\w+)(\.\D+)?", re.ASCII)
_L2_NAME = re.compile(r"(\d+)(?:_(\d+))?(\.\w+)(\.\D+)?", re.ASCII)
_STATES = {None: State.COMPLETED, ".requested": State.REQUESTED, ".inflight": State.INFLIGHT}
_ACTIONS = {f".{kind.value}": kind for kind in ActionKind}
_PENDING_NAMES = {
    ActionKind.COMMIT: (ActionKind.COMMIT, ActionKind.COMPACTION),
    ActionKind.DELTACOMMIT: (ActionKind.DELTACOMMIT, ActionKind.LOGCOMPACTION),
    ActionKind.REPLACECOMMIT: (ActionKind.REPLACECOMMIT, ActionKind.CLUSTERING),
}


@cache  # a timeline has many names
def _names_times(layout_version: int) -> bool:
    return TimelineLayout(layout_version).names_completion_times


def pending_actions(action: ActionKind) -> tuple[ActionKind, ...]:
    """The actions that may name the pending files of an instant that completes as `action`."""
    return _PENDING_NAMES.get(action, (action,))


@dataclass(frozen=True, slots=True, order=True)
class InstantFileName:
    """One file of the timeline folder. `completion_time`: only on completed files of layout 2."""

    requested_time: str
    action: ActionKind
    state: State
    completion_time: str | None = None

    def text(self, layout_version: int) -> str:
        """The file's name in timeline layout 1 or 2."""
        action = self.action
        if self.state is State.COMPLETED:
            both = _names_times(layout_version) and self.completion_time is not None
            times = f"{self.requested_time}_{self.completion_time}" if both else self.requested_time
            return f"{times}.{action.completed_as.value}"
        if self.state is State.INFLIGHT and action is ActionKind.COMMIT:
            return f"{self.requested_time}.inflight"  # the oldest form: no action in it, in both layouts
        if action is ActionKind.CLUSTERING and not TimelineLayout(layout_version).names_clusterings:
            action = ActionKind.REPLACECOMMIT
        return f"{self.requested_time}.{action.value}.{self.state.name.lower()}"

    @classmethod
    def parse(cls, name: str, layout_version: int) -> InstantFileName | None:
        """The parts of an instant file's name, None for other files in the folder."""
        if _names_times(layout_version):
            match = _L2_NAME.fullmatch(name)
            requested, completion, action_part, state_part = match.groups() if match else ("", None, "", None)
        else:
            match = _L1_NAME.fullmatch(name)
            requested, action_part, state_part = match.groups() if match else ("", "", None)
            completion = None
        if action_part == ".inflight" and state_part is None and completion is None:
            return cls(requested, ActionKind.COMMIT, State.INFLIGHT)
        action, state = _ACTIONS.get(action_part), _STATES.get(state_part)
        if action is None or state is None or (completion is not None and state is not State.COMPLETED):
            return None
        if state is State.COMPLETED and action.is_table_service:
            return None
        return cls(requested, action, state, completion)


# Markers and heartbeats

_MARKER = re.compile(r"(.+)\.marker\.(CREATE|MERGE|APPEND)", re.DOTALL)  # a folder's name may hold a line break


def marker_folder(instant_time: str) -> str:
    """The folder of one write's markers."""
    return f"{TEMPORARY_FOLDER}/{instant_time}"


@dataclass(frozen=True, slots=True, order=True)
class MarkerName:
    """A marker: it names a data file (relative to the table) before it is created. `io_type`: CREATE, MERGE, APPEND."""

    data_path: str
    io_type: str

    def __str__(self) -> str:
        return f"{self.data_path}.marker.{self.io_type}"

    @classmethod
    def parse(cls, text: str) -> MarkerName | None:
        """The parts of a marker's path below the marker folder, or of a line of a MARKERS file."""
        match = _MARKER.fullmatch(text)
        return cls(match[1], match[2]) if match else None


def staged_index_folder(instant_time: str) -> str:
    """The folder where a write's tasks leave index records for its commit (`metadata.staged_index`)."""
    return f"{INDEX_PIECES_FOLDER}/{instant_time}"


def heartbeat_path(instant_time: str) -> str:
    """The file whose age shows whether the writer of an instant is alive."""
    return f"{HEARTBEAT_FOLDER}/{instant_time}"
