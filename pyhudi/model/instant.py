"""Instant: one entry of the timeline (requested time, action, state, completion time).

Source: docs/formats/timeline.md, "Instants and states", "File names", "Instant times".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import MAXYEAR, MINYEAR, datetime, timedelta, timezone, tzinfo
from enum import Enum, IntEnum

from pyhudi.errors import TableError

__all__ = [
    "COMPACTIONS",
    "INSTANT_TIME_DIGITS",
    "ActionKind",
    "Instant",
    "State",
    "format_instant_time",
    "next_instant_time",
    "parse_instant_time",
]

INSTANT_TIME_DIGITS = 17  # yyyyMMddHHmmssSSS


class State(IntEnum):
    """States in their order; an instant has the highest state that has a file."""

    REQUESTED = 0
    INFLIGHT = 1
    COMPLETED = 2


class ActionKind(str, Enum):
    """The action of an instant. The value is the word in file names."""

    COMMIT = "commit"
    DELTACOMMIT = "deltacommit"
    REPLACECOMMIT = "replacecommit"
    COMPACTION = "compaction"
    LOGCOMPACTION = "logcompaction"
    CLUSTERING = "clustering"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    RESTORE = "restore"
    SAVEPOINT = "savepoint"
    INDEXING = "indexing"
    SCHEMACOMMIT = "schemacommit"

    @property
    def completed_as(self) -> ActionKind:
        """The action that the completed file names (compaction completes as commit, and so on)."""
        return _COMPLETED_AS.get(self, self)

    @property
    def is_commit(self) -> bool:
        """True for actions that make data visible; table services complete as one of them."""
        return self in _COMMITS

    @property
    def is_table_service(self) -> bool:
        """True for pending actions that rewrite existing rows."""
        return self in _COMPLETED_AS

    @property
    def is_write(self) -> bool:
        """True for the actions that make data visible or are about to."""
        return self.is_commit or self.is_table_service

    @property
    def is_compaction(self) -> bool:
        """True for pending compactions and log compactions."""
        return self in COMPACTIONS

    @property
    def is_replacing(self) -> bool:
        """True for actions that replace file groups; below version 8 a pending clustering is a replacecommit, too."""
        return self in (ActionKind.REPLACECOMMIT, ActionKind.CLUSTERING)

    @property
    def is_undoing(self) -> bool:
        """True for actions that undo writes."""
        return self in (ActionKind.ROLLBACK, ActionKind.RESTORE)


_COMPLETED_AS = {
    ActionKind.COMPACTION: ActionKind.COMMIT,
    ActionKind.LOGCOMPACTION: ActionKind.DELTACOMMIT,
    ActionKind.CLUSTERING: ActionKind.REPLACECOMMIT,
}
_COMMITS = frozenset({ActionKind.COMMIT, ActionKind.DELTACOMMIT, ActionKind.REPLACECOMMIT})
COMPACTIONS = frozenset({ActionKind.COMPACTION, ActionKind.LOGCOMPACTION})


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """One action at one moment. Ordered by requested time (text order), then action, then state.

    `completion_time` is set on completed instants: from the file name (layout 2) or from the completed file's
    modification time (layout 1).
    """

    requested_time: str
    action: ActionKind
    state: State
    completion_time: str | None = None

    @property
    def is_completed(self) -> bool:
        return self.state is State.COMPLETED

    def at(self, state: State, completion_time: str | None = None) -> Instant:
        """The same instant in another state."""
        return replace(self, state=state, completion_time=completion_time)


def format_instant_time(moment: datetime, zone: tzinfo | None) -> str:
    """`moment` (aware) as 17 digits in `zone`; None means the machine's local zone."""
    local = moment.astimezone(zone)
    # The year separately: strftime gives fewer digits below 1000.
    return f"{local.year:04d}{local:%m%d%H%M%S}{local.microsecond // 1000:03d}"


_BOOTSTRAPS = ("00000000000001", "00000000000002")


def parse_instant_time(text: str, zone: tzinfo | None) -> datetime:
    """Read an instant time of 14 or 17 digits (longer ones are truncated); 14 digits mean `...999` ms. The fixed times
    of bootstraps precede all others.

    Raises TableError if the text is not an instant time: it comes from a file name, and may be anything.
    """
    if text in _BOOTSTRAPS:
        return datetime(1970, 1, 1, microsecond=int(text) * 1000, tzinfo=zone or timezone.utc)
    digits = text[:INSTANT_TIME_DIGITS]
    if len(digits) == 14:
        digits += "999"
    try:
        if len(digits) != INSTANT_TIME_DIGITS or not (digits.isascii() and digits.isdigit()):
            raise ValueError("14 or 17 digits are one")
        moment = datetime.strptime(digits[:14], "%Y%m%d%H%M%S").replace(microsecond=int(digits[14:]) * 1000)
        if not MINYEAR < moment.year < MAXYEAR:
            raise ValueError("no time zone reaches so far")
    except ValueError as error:
        raise TableError(
            f"{text!r:.100} is not an instant time ({error}). A file of the timeline, or in it, bears it; no writer of "
            f"Hudi makes such a one. Find out where the file came from, and remove it."
        ) from error
    return moment.replace(tzinfo=zone) if zone is not None else moment.astimezone()


def next_instant_time(time: str) -> str:
    """The instant time one millisecond after `time`, computed from its digits, without zone or clock.

    Raises TableError when `time` is not an instant time, or the last possible one.
    """
    moment = parse_instant_time(time, timezone.utc) + timedelta(milliseconds=1)
    return format_instant_time(moment, timezone.utc)
