"""The range of an incremental query: its commits, and the pattern that paths of their files must match.

A range excludes its begin and includes its end. The table's version decides which times count:

    version 8 and later: completion times      older versions: instant times

`path_pattern` parses `hoodie.datasource.read.incr.path.glob`. Its patterns are those of Hadoop with two differences: a
star also matches slashes, and only the end of the full path is compared.

Source: docs/formats/incremental.md, "The range", "Holes", "Options".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyhudi.errors import ConfigError, CorruptFile, RangeNotReadable
from pyhudi.meta_client import MetaClient
from pyhudi.model.change_logs import CDC_ENABLED
from pyhudi.model.commit import CommitMetadata, OperationType
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.options.queries import BEGIN, DEFAULT_INCREMENTAL, IncrementalOptions
from pyhudi.queries.query import EARLIEST, AsOf, IncrementalRange, parse_as_of
from pyhudi.timeline.archived_timeline import ArchivedInstant, load_archived_timeline
from pyhudi.view.file_system_view import LISTING_THREADS

__all__ = [
    "CommitsInRange",
    "active_commits",
    "commits_in_range",
    "first_hole",
    "incremental_range",
    "is_service",
    "not_readable",
    "path_pattern",
    "time_of_range",
]


_ZEROS = re.compile(r"0+")  # Hudi's own guides write the beginning so
_SERVICES = frozenset({OperationType.CLUSTER, OperationType.COMPACT, OperationType.LOG_COMPACT, OperationType.INDEX})


@dataclass(frozen=True, slots=True)
class CommitsInRange:
    """Completed writes in a range with their bodies, in the order of their times, including table services.

    `lost`: writes whose bodies can't be read in the history. `is_whole`: the range leaves no commit out; then no bodies
    are read. `checkpoint`: the begin of the next range, which starts where this one ends.
    """

    writes: tuple[tuple[Instant, CommitMetadata], ...]
    lost: tuple[Instant, ...]
    is_whole: bool
    checkpoint: str
    time_of: Callable[[Instant], str]


def incremental_range(
    meta: MetaClient,
    query_type: str,
    begin: AsOf | None,
    end: AsOf | None,
    as_of: AsOf | None = None,
    options: IncrementalOptions = DEFAULT_INCREMENTAL,
) -> IncrementalRange | None:
    """The range of a query, None if it is not incremental.

    Args:    begin, end: moments as `as_of` takes them; begin also "earliest", or zeros, as in Hudi's guides.
    Raises:  ConfigError for a range of another query, and for an incremental one without a begin, with an `as_of`, with
             a value that is not a moment, with an end before its begin, and of a table without commit times in its
             rows.
    """
    if query_type != "incremental":
        if begin is None and end is None:
            return None
        raise ConfigError(
            f"begin={begin!r}, end={end!r} with a query of type {query_type}: only incremental queries have a range. "
            "Give query_type='incremental' (hoodie.datasource.query.type), or as_of for the table at a moment."
        )
    if as_of is not None:
        raise ConfigError(f"as_of={as_of!r} with an incremental query: give end={as_of!r} instead.")
    if begin is None:
        raise ConfigError(
            "An incremental query needs the time after which it begins: HudiTable.changes(since), or the option "
            f"{BEGIN}; 'earliest' takes all commits."
        )
    first = _begin(begin, meta)
    last = None if end is None else _moment("end", end, meta)
    if last is not None and last < first:
        raise ConfigError(f"end={end!r} is before begin={begin!r}: expected a range of times. Change one of them.")
    if options.returns_changes and not meta.config.cdc_enabled:
        raise ConfigError(
            f"{meta.storage.root}: the table does not log changes ({CDC_ENABLED}=false), so a query can't return them. "
            "Ask for rows (hoodie.datasource.query.incremental.format=latest_state), or make a table with change logs."
        )
    if not (meta.config.populate_meta_fields or options.returns_changes):
        instead = "Ask for changes (format='cdc')" if meta.config.cdc_enabled else "Take a snapshot"
        raise ConfigError(
            f"{meta.storage.root}: an incremental query needs the commit time of each row, which this table does not "
            f"have (hoodie.populate.meta.fields=false). {instead}."
        )
    return IncrementalRange(first, last, options)


def time_of_range(name: str, moment: AsOf, meta: MetaClient, options: IncrementalOptions = DEFAULT_INCREMENTAL) -> str:
    """The begin or end of a Python call: the requested or completion time of a known instant means that instant, and
    any other moment is kept as it is. Hudi's options are not resolved: from version 8 on theirs are completion times.

    Args:    name: of the argument, for errors. moment: as `incremental_range` takes it.
    Raises:  ConfigError for a value that is not a moment.
    """
    if _is_earliest(moment):
        return EARLIEST
    time = _moment(name, moment, meta)
    by_completion = meta.config.format.orders_by_completion or options.holes == "USE_TRANSITION_TIME"
    instants = meta.timeline.completed().instants
    if any(time == (i.completion_time if by_completion else i.requested_time) for i in instants):
        return time  # also the checkpoint of the last range
    if not by_completion:
        return max((i.requested_time for i in instants if i.completion_time == time), default=time)
    commit_time = meta.timeline.completed().find(time)
    since = meta.timeline.active_since
    if commit_time is None and since is not None and time < since:
        commit_time = next(iter(load_archived_timeline(meta.storage, meta.config).times(time, time)), None)
    return time if commit_time is None else commit_time.completion_time or time


def _begin(begin: AsOf, meta: MetaClient) -> str:
    return "" if _is_earliest(begin) else _moment("begin", begin, meta)


def _is_earliest(begin: AsOf) -> bool:
    return isinstance(begin, str) and (begin.strip().lower() == EARLIEST or bool(_ZEROS.fullmatch(begin.strip())))


def _moment(name: str, moment: AsOf, meta: MetaClient) -> str:
    try:
        return parse_as_of(moment, meta.config.timeline_zone)
    except ConfigError as error:
        raise ConfigError(str(error).replace("as_of=", f"{name}=", 1)) from error


def commits_in_range(requested: IncrementalRange, meta: MetaClient, *, one_by_one: bool = False) -> CommitsInRange:
    """The completed writes in a range. Raises RangeNotReadable for a hole in it, if the options say so.

    Args:    one_by_one: a range that leaves no commit out is read commit by commit, too.
    """
    active, time_of = active_commits(requested, meta)
    checkpoint = max((time_of(i) for i in active), default=requested.begin or "0")
    if not one_by_one and not requested.begin and len(active) == len(meta.timeline.commits().instants):
        return CommitsInRange((), (), True, checkpoint, time_of)
    archived = _archived(requested, meta, _by_completion(requested, meta))
    lost = tuple(instant for instant, body in archived if body is None)
    writes = [(instant, body) for instant, body in archived if body is not None]
    writes += zip(active, _bodies(meta, active), strict=True)
    writes.sort(key=lambda each: (time_of(each[0]), each[0].requested_time))
    checkpoint = max([checkpoint, *(time_of(instant) for instant, _ in writes)])
    return CommitsInRange(tuple(writes), lost, False, checkpoint, time_of)


def active_commits(requested: IncrementalRange, meta: MetaClient) -> tuple[list[Instant], Callable[[Instant], str]]:
    """The completed writes of a range on the active timeline, in the order of their times, and a function that returns
    the time of an instant. Raises RangeNotReadable for a hole in the range, if the options say so.
    """
    by_completion = _by_completion(requested, meta)

    def time_of(instant: Instant) -> str:
        return (instant.completion_time if by_completion else None) or instant.requested_time

    commits = meta.timeline.commits().instants
    active = sorted((i for i in commits if requested.has(time_of(i))), key=lambda i: (time_of(i), i.requested_time))
    hole = None if by_completion else first_hole(requested, meta, active)
    if hole is not None:
        if requested.options.holes == "FAIL":
            raise RangeNotReadable(
                f"{meta.storage.root}: the write {hole} in the range {requested} began before other, complete writes, "
                "and is not complete: its rows would never be read if the next read begins after them. "
                "Wait for it or roll it back, end the range before it, or set "
                "hoodie.read.timeline.holes.resolution.policy to BLOCK or USE_TRANSITION_TIME."
            )
        active = [i for i in active if i.requested_time < hole]
    return active, time_of


def _by_completion(requested: IncrementalRange, meta: MetaClient) -> bool:
    return meta.config.format.orders_by_completion or requested.options.holes == "USE_TRANSITION_TIME"


def not_readable(
    requested: IncrementalRange, meta: MetaClient, commits: CommitsInRange, missing: Mapping[str, Instant]
) -> RangeNotReadable:
    """The error for a range with lost commits or missing files. `missing`: path → a write that named the file."""
    lost_instants: list[Instant] = [*commits.lost, *missing.values()]
    oldest = max(commits.time_of(instant) for instant in lost_instants)
    reasons = [f"{len(commits.lost)} commits of it can't be read in the history"] if commits.lost else []
    if missing:
        reasons.append(f"{len(missing)} files of it were deleted by cleaning, such as {min(missing)}")
    instead = "Begin there; changes can't be told from the newest state of the table"
    if not requested.options.returns_changes:
        instead = (
            "Begin there, or set hoodie.datasource.read.incr.fallback.fulltablescan.enable=true to look through the "
            "newest state of the table for rows of these commits"
        )
    return RangeNotReadable(
        f"{meta.storage.root}: the commits in {requested} can't be read one by one any more: {' and '.join(reasons)}. "
        f"The oldest begin that can be read is {oldest}. {instead}; retain more commits to go farther back."
    )


def _bodies(meta: MetaClient, instants: Sequence[Instant]) -> Iterable[CommitMetadata]:
    if len(instants) < 2:
        return [meta.commits.metadata(instant) for instant in instants]
    with ThreadPoolExecutor(LISTING_THREADS, thread_name_prefix="hudi-bodies") as pool:
        return list(pool.map(meta.commits.metadata, instants))


def is_service(instant: Instant, body: CommitMetadata) -> bool:
    """True if the write only moved rows, which keep their commit times.

    The commit itself decides, not the table's type: the range may have commits from before the type changed.
    """
    if body.operation_type == OperationType.UNKNOWN and instant.action is ActionKind.COMMIT:
        # Archives of early writers lack the flag. Only a compaction names the log files that it merged.
        return body.compacted or any(stat.total_log_files for stat in body.stats())
    return body.operation_type in _SERVICES or body.compacted


def first_hole(requested: IncrementalRange, meta: MetaClient, completed: list[Instant]) -> str | None:
    """The oldest write in the range that is running, or was left by a dead writer, while a later one is complete."""
    newest = max((i.requested_time for i in completed), default="")
    for instant in meta.timeline.pending():
        if (
            not requested.has(instant.requested_time)
            or instant.requested_time >= newest
            or not instant.action.is_commit
        ):
            continue
        if instant.action is ActionKind.REPLACECOMMIT and meta.reader.clustering_plan(instant) is not None:
            continue  # it rewrites rows that were read before
        return instant.requested_time
    return None


def _archived(
    requested: IncrementalRange, meta: MetaClient, by_completion: bool
) -> list[tuple[Instant, CommitMetadata | None]]:
    """Archived writes in the range with their bodies, None for a lost body."""
    until = meta.timeline.active_since
    since = requested.begin or None
    if until is not None and since is not None and since >= until and not by_completion:
        return []
    history = load_archived_timeline(meta.storage, meta.config)
    active = {i.requested_time for i in meta.timeline.commits()}

    def is_in_range(instant: Instant) -> bool:
        time = (instant.completion_time if by_completion else None) or instant.requested_time
        return instant.action.is_write and requested.has(time) and instant.requested_time not in active

    # A write may have begun long before the range and completed in it, but archiving goes by the time it began.
    ignores_begin = by_completion and since is not None
    instants = history.completed_after(since or "", until) if ignores_begin else history.times(since, until)
    times = [i.requested_time for i in instants if is_in_range(i)]
    if not times:
        return []
    bodies = history.instants(min(times), max(times))
    return [(archived.instant, _body(archived)) for archived in bodies if is_in_range(archived.instant)]


def _body(archived: ArchivedInstant) -> CommitMetadata | None:
    try:
        return archived.commit()
    except CorruptFile:
        return None


_TOKENS = re.compile(r"\[[^\]]+\]|.", re.DOTALL)


def path_pattern(glob: str) -> re.Pattern[str]:
    """A pattern that a file's full path must match whole. Raises ConfigError for a pattern whose brackets do not fit.

    Args:    glob: `*` any characters, `?` one, `[a-z]` one of these, `[!a-z]` one other than these, `{a,b}` either
             text.
    """
    parts: list[str] = []
    depth = 0
    for token in _TOKENS.findall(glob):
        if token in ("*", "?"):
            parts.append(".*" if token == "*" else ".")
        elif len(token) > 1:
            parts.append(_one_of(token[1:-1]))
        elif token in "{}":
            depth += 1 if token == "{" else -1
            parts.append("(?:" if token == "{" else ")")
        else:
            parts.append("|" if token == "," and depth > 0 else re.escape(token))
    try:
        return re.compile("(?s).*" + "".join(parts))
    except re.error as error:
        raise ConfigError(
            f"hoodie.datasource.read.incr.path.glob={glob!r} is no valid pattern ({error}). Use stars, question marks, "
            "[a-z] and {a,b}; brackets come in pairs."
        ) from error


def _one_of(characters: str) -> str:
    negated = characters[0] in "!^" and len(characters) > 1
    members = characters[1:] if negated else characters
    return f"[{'^' if negated else ''}{_escaped(members)}]"


def _escaped(members: str) -> str:
    """Escape the characters of a list; a hyphen between two of them remains a range."""
    return re.sub(r"([\\\[\]^&~|])", r"\\\1", members)
