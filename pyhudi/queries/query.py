"""Columns, rows and moment of a query (`Query`), and time travel: the moments that `as_of` can name.

A query is independent of the state of the table.

An instant time is compared as text. Dates and times without a zone are read in the timeline's zone, as Hudi reads
`as.of.instant`. With a Spark session, the arguments of Python calls are read in the session's zone (`in_zone`). Times
with a zone are converted to the timeline's zone.

Hudi's options compare the time with instant times only. In Python calls a time (`as_of_time`, `commit_at`) means the
table as a reader saw it at that time: a moment in the middle of a write is before it.

`check_not_cleaned` refuses a moment if cleaning has removed files that a read of it needs.

Source: docs/architecture.md, "How a table is read"; docs/formats/timeline.md, "Instant times".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timezone, tzinfo
from typing import TYPE_CHECKING, TypeAlias

from pyhudi.errors import ConfigError, TableError
from pyhudi.expressions.binding import Where
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import Instant, format_instant_time
from pyhudi.model.options.files import DEFAULT_DAMAGE, DamageOptions
from pyhudi.model.options.merging import DEFAULT_MEMORY, MemoryOptions
from pyhudi.model.options.queries import DEFAULT_DRIVER_LOG_BYTES, DEFAULT_INCREMENTAL, IncrementalOptions
from pyhudi.view.readable_history import load_readable_history

if TYPE_CHECKING:
    from pyhudi.model.options import ReadOptions

__all__ = [
    "ALL_ROWS",
    "EARLIEST",
    "AsOf",
    "IncrementalRange",
    "Query",
    "as_of_time",
    "check_not_cleaned",
    "commit_at",
    "in_zone",
    "parse_as_of",
]


AsOf: TypeAlias = str | int | date  # a datetime is a date

EARLIEST = "earliest"
_INSTANT_TIME = re.compile(r"\d{14}|\d{17}")


def parse_as_of(as_of: AsOf, zone: tzinfo | None) -> str:
    """The instant time that a user's `as_of` means.

    Args:
        as_of: an instant time of 14 or 17 digits; text like `2024-01-31`, `2024-01-31 12:30:00`, `2024-01-31
            12:30:00.123`, or ISO with `T` and an offset; a `date` (its first moment) or a `datetime`.
        zone: the timeline's zone; None is the machine's.
    Raises: ConfigError for anything else.
    """
    if isinstance(as_of, int) and not isinstance(as_of, bool):
        as_of = str(as_of)
    moment: datetime | None = None
    if isinstance(as_of, datetime):
        moment = as_of
    elif isinstance(as_of, date):
        moment = datetime.combine(as_of, time())
    elif isinstance(as_of, str):
        text = as_of.strip()
        if _INSTANT_TIME.fullmatch(text):
            return text
        moment = _from_text(text)
    if moment is None:
        raise ConfigError(
            f"as_of={as_of!r} is no moment. Give an instant time (20240131123000123), '2024-01-31', "
            "'2024-01-31 12:30:00.123', ISO text with an offset, a date or a datetime."
        )
    if moment.tzinfo is not None:
        return format_instant_time(moment, zone)
    return moment.strftime("%Y%m%d%H%M%S").rjust(14, "0") + f"{moment.microsecond // 1000:03d}"


def in_zone(moment: AsOf, zone: tzinfo | None) -> AsOf:
    """Add the zone to a date or a time without one (None: unchanged); return other values unchanged."""
    parsed: datetime | None = None
    if isinstance(moment, datetime):
        parsed = moment
    elif isinstance(moment, date):
        parsed = datetime.combine(moment, time())
    elif isinstance(moment, str) and not _INSTANT_TIME.fullmatch(moment.strip()):
        parsed = _from_text(moment.strip())
    if zone is None or parsed is None or parsed.tzinfo is not None:
        return moment
    return parsed.replace(tzinfo=zone)


def _from_text(text: str) -> datetime | None:
    if re.match(r"\d{4}-\d\d?-\d\d?", text) is None:
        return None
    text = re.sub(r"[zZ]$", "+00:00", text)
    # Fractions of 1 to 9 digits; datetime.fromisoformat of Python 3.10 takes three or six.
    text = re.sub(r"\.(\d{1,9})", lambda match: "." + match.group(1).ljust(6, "0")[:6], text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def as_of_time(as_of: AsOf, meta: MetaClient) -> str:
    """The instant time to read as of, from a Python caller's argument: an instant time, or a moment.

    Below version 8 no completion time is stored, so that a moment is compared with instant times.
    Raises: ConfigError for a value that is not a moment.
    """
    time = parse_as_of(as_of, meta.config.timeline_zone)
    commits = meta.timeline.commits()
    running = [i.requested_time for i in commits if i.requested_time <= time < (i.completion_time or "")]
    if not running or not meta.config.format.orders_by_completion or commits.find(time) is not None:
        return time
    completed = [i.requested_time for i in commits if (i.completion_time or time) <= time]
    return max(completed, default=str(int(running[0]) - 1))


def commit_at(moment: AsOf, meta: MetaClient) -> Instant:
    """The newest commit that the table had at a moment; the commit itself if `moment` is its time.

    Raises: ConfigError for a value that is not a moment, TableError when no active commit is that old.
    """
    time = as_of_time(moment, meta)
    commits = meta.timeline.commits()
    commit = commits.up_to(time).last_commit()
    if commit is None:
        first = commits.first_time
        raise TableError(
            f"{meta.storage.root}: the active timeline has no commit as of {moment!r}: "
            f"{'it has none at all' if first is None else f'the first one is {first}'}. Give the instant time of a "
            "commit (see `history()`), or a later moment."
        )
    return commit


def check_not_cleaned(meta: MetaClient, instant_time: str) -> None:
    """Raise TableError when cleaning has removed files that a read as of `instant_time` would need."""
    readable_history = load_readable_history(meta)
    if not readable_history.is_readable(instant_time):
        raise TableError(
            f"{meta.storage.root}: as_of={instant_time} can't be read any more: cleaning has removed file versions "
            f"older than {readable_history.earliest}. Read as of {readable_history.earliest} or later, or of a "
            "savepoint; retain more commits to travel farther back."
        )


@dataclass(frozen=True, slots=True)
class IncrementalRange:
    """Times in (begin, end], compared as text. `begin` "": from the first commit on; `end` None: to the newest one.

    `options`: the handling of missing and future commits, and filters.
    """

    begin: str
    end: str | None = None
    options: IncrementalOptions = DEFAULT_INCREMENTAL

    def __str__(self) -> str:
        return f"({self.begin or EARLIEST}, {self.end or 'now'}]"

    def has(self, time: str) -> bool:
        """True if this time is in the range."""
        return self.begin < time and (self.end is None or time <= self.end)


@dataclass(frozen=True, slots=True)
class Query:
    """Columns, rows and moment of a query, and how its files are listed and read.

    Args:
        columns: names of top-level columns, in the order of the result; None: all, meta columns first.
        meta_columns: False: "all columns" leaves out the meta columns.
        where: see `parse_where`.
        zone: the zone of times in `where` without one; None: they are refused if the column holds moments.
        as_of: see `parse_as_of`; None: the newest state of the table when the plan is made, or a later one if its files
            are deleted during planning. Incremental queries use their range instead.
        query_type: "snapshot", "read_optimized" (base files only) or "incremental".
        merger_classes: paths of the caller's mergers ("module:Class"), for tables with merge mode CUSTOM.
        memory: the limit for log records of a slice in memory.
        damage: the treatment of damaged log files.
        use_metadata: take file lists and column statistics from the metadata table, if the table has one.
        unique_keys: no key is in several file groups, so that the record index can locate rows.
        driver_log_bytes: log files of up to this number of bytes are read when a Spark frame is made.
        commits: the range of an incremental query.
    """

    columns: Sequence[str] | None = None
    where: Where = None
    zone: tzinfo | None = timezone.utc
    as_of: AsOf | None = None
    query_type: str = "snapshot"
    merger_classes: Sequence[str] = ()
    memory: MemoryOptions = DEFAULT_MEMORY
    damage: DamageOptions = DEFAULT_DAMAGE
    use_metadata: bool = True
    unique_keys: bool = False
    driver_log_bytes: int = DEFAULT_DRIVER_LOG_BYTES
    meta_columns: bool = True
    commits: IncrementalRange | None = None

    @classmethod
    def read_by(cls, options: ReadOptions) -> Query:
        """A query of all rows, whose files are listed and read as the options say."""
        return cls(
            merger_classes=options.merger_classes,
            memory=options.memory,
            damage=options.damage,
            use_metadata=options.use_metadata,
            unique_keys=options.unique_keys,
            driver_log_bytes=options.driver_log_bytes,
        )


ALL_ROWS = Query()
