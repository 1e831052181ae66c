"""The audit of the storage-based lock: who held it and how long, kept beside the lock file in Hudi's format.

    .hoodie/.locks/audit_enabled.json                        the switch: {"STORAGE_LOCK_AUDIT_SERVICE_ENABLED":true}
    .hoodie/.locks/audit/<begin, epoch ms>_<owner>.jsonl     a line each for START, RENEW and END of the lock

`LockJournal` writes such a file while the lock is held; a failure there is only warned about. `validate_audit` reads
all of them and finds holdings that overlap: two writers at once. Hudi's provider keeps one file for all holdings of its
life, so a file may have several. Source: docs/formats/writers.md, "Locks".
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pyhudi.errors import ConfigError, CorruptFile, HudiError, PathNotFound
from pyhudi.model.filenames import LOCKS_FOLDER
from pyhudi.result import Result
from pyhudi.storage.base import FileInfo, Storage
from pyhudi.storage.clock import Clock
from pyhudi.warnings import warn_caller

__all__ = [
    "AUDIT_FOLDER",
    "AUDIT_SWITCH",
    "AuditCleanup",
    "AuditIssue",
    "AuditStatus",
    "AuditValidation",
    "LockJournal",
    "audit_status",
    "clean_audit",
    "is_audited",
    "set_audit",
    "validate_audit",
]

AUDIT_SWITCH = f"{LOCKS_FOLDER}/audit_enabled.json"
AUDIT_FOLDER = f"{LOCKS_FOLDER}/audit"
_SWITCH_KEY = "STORAGE_LOCK_AUDIT_SERVICE_ENABLED"
_SUFFIX = ".jsonl"
_SWITCH_BYTES_MAX = 64 << 10
_JOURNAL_BYTES_MAX = 16 << 20  # a lock that is renewed every 30 s for a year has less
_DAY_MS = 86_400_000
_ISSUES_MAX = 1000  # of one validation: a clock that went back would overlap everything with everything

State = Literal["START", "RENEW", "END"]


@dataclass(frozen=True, slots=True, repr=False)
class AuditStatus(Result):
    """`switch`: the file that turns the audit on. `files`: how many holders have written what they did to `folder`."""

    enabled: bool
    switch: str
    folder: str
    files: int

    def __str__(self) -> str:
        return f"lock audit {'on' if self.enabled else 'off'}: {self.files:,} files in {self.folder}"


@dataclass(frozen=True, slots=True, repr=False)
class AuditIssue(Result):
    """One finding. `kind`: overlap (two held the lock at once), unreadable, or not_ended (a holder died).

    `other`: the file of the second holder of an overlap.
    """

    kind: Literal["overlap", "unreadable", "not_ended"]
    file: str
    other: str | None = None

    @property
    def is_error(self) -> bool:
        return self.kind != "not_ended"

    def __str__(self) -> str:
        match self.kind:
            case "overlap":
                return f"{self.file}: its writer and that of {self.other} held the lock at the same time"
            case "unreadable":
                return f"{self.file}: not a journal of a lock"
            case _:
                return f"{self.file}: the lock was not released; its writer may have been killed"


@dataclass(frozen=True, slots=True, repr=False)
class AuditValidation(Result):
    """`files`: the number of journals read. `issues`: errors first; empty if no two writers held the lock at once and
    each has released it, or still holds it.
    """

    files: int
    issues: tuple[AuditIssue, ...]

    @property
    def has_errors(self) -> bool:
        """True for overlaps and unreadable journals. A dead holder is no error: the next one waits for its lease."""
        return any(issue.is_error for issue in self.issues)

    def __str__(self) -> str:
        return "\n".join([f"{self.files:,} files, {len(self.issues):,} issues", *map(str, self.issues)])


@dataclass(frozen=True, slots=True, repr=False)
class AuditCleanup(Result):
    """`files`: names of the journals that were deleted, or would be."""

    files: tuple[str, ...]
    dry_run: bool

    def __str__(self) -> str:
        return f"{len(self.files):,} files {'to delete' if self.dry_run else 'deleted'}"


# ---- writing


class LockJournal:
    """The journal of one holder of the lock. `record` rewrites its file with another line."""

    def __init__(self, storage: Storage, owner: str, begun_ms: int, validity_ms: int) -> None:
        """`owner` begins with an id that suits a file name."""
        self._storage, self._owner = storage, owner
        self._begun_ms, self._validity_ms = begun_ms, validity_ms
        self._path = f"{AUDIT_FOLDER}/{begun_ms}_{owner.partition(' ')[0]}{_SUFFIX}"
        self._lines = b""

    def record(self, state: State, now_ms: int, is_held: bool) -> None:
        """Add a line. A failure becomes a warning: the lock matters more than its journal."""
        line = {
            "ownerId": self._owner,
            "transactionStartTime": self._begun_ms,
            "timestamp": now_ms,
            "state": state,
            "lockExpiration": now_ms + self._validity_ms,
            "lockHeld": is_held,
        }
        self._lines += json.dumps(line, separators=(",", ":")).encode() + b"\n"
        try:
            self._storage.write(self._path, self._lines)
        except (HudiError, OSError) as error:
            warn_caller(f"The audit of the table's lock lacks {state} of {self._path}: {error}", RuntimeWarning)


def is_audited(storage: Storage) -> bool:
    """True if the audit is on. A switch that can't be read counts as off, with a warning."""
    try:
        return _switch(storage)
    except (HudiError, OSError) as error:
        warn_caller(f"The table's lock is not audited: {error}", RuntimeWarning)
        return False


def _switch(storage: Storage) -> bool:
    try:
        data = storage.read(AUDIT_SWITCH, _SWITCH_BYTES_MAX)
    except PathNotFound:
        return False
    try:
        fields = json.loads(data)
        value = fields.get(_SWITCH_KEY)
    except (ValueError, AttributeError, RecursionError) as error:
        raise CorruptFile(
            f"{storage.full_path(AUDIT_SWITCH)}: expected {_SWITCH_KEY} as JSON, found {data[:80]!r}. Turn the audit "
            f"on or off, which rewrites the file."
        ) from error
    return value is True or value == "true"  # as Hudi reads it


# ---- the state of the audit


def audit_status(storage: Storage) -> AuditStatus:
    """Return whether the audit is on, and what it has written. Raises CorruptFile, StorageError."""
    places = storage.full_path(AUDIT_SWITCH), storage.full_path(AUDIT_FOLDER)
    return AuditStatus(_switch(storage), *places, len(_journals(storage)))


def set_audit(storage: Storage, enabled: bool) -> AuditStatus:
    """Turn the audit on or off, for every writer that takes the lock afterwards. Existing journals are kept."""
    storage.write(AUDIT_SWITCH, json.dumps({_SWITCH_KEY: enabled}, separators=(",", ":")).encode())
    return audit_status(storage)


def clean_audit(storage: Storage, clock: Clock, days: int, *, dry_run: bool) -> AuditCleanup:
    """Delete journals last written more than `days` days ago. Raises ConfigError unless `days` is zero or more."""
    if isinstance(days, bool) or not isinstance(days, int) or days < 0:
        raise ConfigError(f"The age of journals is a number of days, zero or more; found {days!r}.")
    before_ms = clock.now_ms() - days * _DAY_MS
    old = [file for file in _journals(storage) if file.modified_ms < before_ms]
    if not dry_run:
        for file in old:
            storage.delete(file.path)
    return AuditCleanup(tuple(file.name for file in old), dry_run)


def _journals(storage: Storage) -> list[FileInfo]:
    return [file for file in storage.list(AUDIT_FOLDER) if not file.is_dir and file.name.endswith(_SUFFIX)]


# ---- validation


@dataclass(frozen=True, slots=True)
class _Holding:
    """One writer's holding of the lock. `end_ms`: None if it was not released; it then expired at `until_ms`."""

    begin_ms: int
    end_ms: int | None
    until_ms: int
    file: str

    @property
    def last_ms(self) -> int:
        return self.until_ms if self.end_ms is None else self.end_ms


def validate_audit(storage: Storage, clock: Clock) -> AuditValidation:
    """Read all journals and find their issues. A holding that has neither ended nor expired is not an issue."""
    holdings: list[_Holding] = []
    issues: list[AuditIssue] = []
    read = 0
    for file in _journals(storage):
        try:
            holdings += _holdings(storage.read(file.path, _JOURNAL_BYTES_MAX), file.name)
        except PathNotFound:
            continue  # cleaned since the listing
        except (CorruptFile, ValueError, KeyError, TypeError, RecursionError):
            issues.append(AuditIssue("unreadable", file.name))
        else:
            read += 1
    issues += _overlaps(holdings)
    now_ms = clock.now_ms()
    dead = {one.file: None for one in holdings if one.end_ms is None and one.until_ms < now_ms}
    issues += (AuditIssue("not_ended", file) for file in dead)
    return AuditValidation(read, tuple(issues[:_ISSUES_MAX]))


def _holdings(data: bytes, file: str) -> list[_Holding]:
    """Return the holdings of a journal. Raises ValueError, KeyError, TypeError for another file."""
    lines = [json.loads(line) for line in data.splitlines() if line.strip()]
    if not lines:
        raise ValueError("empty")
    holdings: list[_Holding] = []
    begin_ms: int | None = None
    until_ms = 0
    for place, line in enumerate(lines):
        now_ms, state = _number(line, "timestamp"), line["state"]
        if state == "START" or not place:
            if begin_ms is not None:
                holdings.append(_Holding(begin_ms, None, until_ms, file))
            begin_ms = now_ms if state == "START" else _number(line, "transactionStartTime")
        until_ms = _number(line, "lockExpiration")
        if state == "END" and begin_ms is not None:
            holdings.append(_Holding(begin_ms, now_ms, until_ms, file))
            begin_ms = None
    return holdings if begin_ms is None else [*holdings, _Holding(begin_ms, None, until_ms, file)]


def _number(line: dict[str, object], key: str) -> int:
    value = line[key]
    if type(value) is not int:
        raise ValueError(key)
    return value


def _overlaps(holdings: list[_Holding]) -> Iterator[AuditIssue]:
    """Yield the pairs of files whose holdings overlap, by their start."""
    running: list[tuple[int, int, str]] = []
    reported: set[tuple[str, str]] = set()
    for place, one in enumerate(sorted(holdings, key=lambda one: (one.begin_ms, one.last_ms))):
        while running and running[0][0] <= one.begin_ms:
            heapq.heappop(running)
        for _, _, other in sorted(running, key=lambda entry: entry[1]):
            if other != one.file and (other, one.file) not in reported:
                reported.add((other, one.file))
                yield AuditIssue("overlap", other, one.file)
        if len(reported) >= _ISSUES_MAX:
            return
        heapq.heappush(running, (one.last_ms, place, one.file))
