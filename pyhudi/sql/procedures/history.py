"""Procedures on history: the timeline, commits and their files, cleans, rollbacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from heapq import merge
from itertools import islice
from math import ceil

from pyhudi.model.commit import CommitMetadata, WriteStat
from pyhudi.model.filenames import pending_actions
from pyhudi.model.instant import ActionKind, Instant, State, parse_instant_time
from pyhudi.model.plans import CleanMetadata
from pyhudi.sql.procedures.procedure import TABLE, ProcedureCall, Row, Rows, procedure
from pyhudi.timeline.archived_timeline import ArchivedInstant, load_archived_timeline
from pyhudi.timeline.listing import instant_path

__all__ = ["CLEAN_VERSION", "CommitRow"]

_LIMITED = "table string!, limit integer=10"
_ONE_COMMIT = f"{_LIMITED}, instant_time string!"
_ARCHIVED = f"{_LIMITED}, start_ts string=, end_ts string="
_ACTION = "action string = instant.action.value"
_TIMES = "commit_time string = instant.requested_time, state_transition_time string = instant.completion_time"
_TOTALS = (
    "total_bytes_written long = bytes_written, total_files_added long = files_added, "
    "total_files_updated long = files_updated, total_partitions_written long = partitions, "
    "total_records_written long = rows_written, total_update_records_written long = rows_updated, "
    "total_errors long = errors"
)
_STATS = (
    f"{_TIMES}, {_ACTION}, partition string = stat.partition_path, file_id string = stat.file_id, "
    "previous_commit string = stat.prev_commit, num_writes long = stat.num_writes, "
    "num_inserts long = stat.num_inserts, num_deletes long = stat.num_deletes, "
    "num_update_writes long = stat.num_update_writes, total_errors long = stat.total_write_errors, "
    "total_log_blocks long = stat.total_log_blocks, total_corrupt_log_blocks long = stat.total_corrupt_log_block, "
    "total_rollback_blocks long = stat.total_rollback_blocks, total_log_records long = stat.total_log_records, "
    "total_updated_records_compacted long = stat.total_updated_records_compacted, "
    "total_bytes_written long = stat.total_write_bytes"
)


# ---- commits


@dataclass(frozen=True, slots=True)
class CommitRow:
    """The totals of a commit, in one partition or in all (None)."""

    instant: Instant
    partition_path: str | None
    partitions: int
    files_added: int
    files_updated: int
    rows_written: int
    rows_inserted: int
    rows_updated: int
    bytes_written: int
    errors: int

    @classmethod
    def of(cls, instant: Instant, body: CommitMetadata, partition_path: str | None = None) -> CommitRow:
        """Sum up the write stats."""
        stats = body.stats() if partition_path is None else body.partition_to_write_stats[partition_path]
        older = [stat for stat in stats if (stat.prev_commit or "null").lower() != "null"]
        return cls(
            instant,
            partition_path,
            len(body.partition_to_write_stats),
            sum((stat.prev_commit or "").lower() == "null" for stat in stats),
            len(older),
            sum(stat.num_writes for stat in stats),
            sum(stat.num_inserts for stat in stats),
            sum(stat.num_update_writes for stat in (stats if partition_path is None else older)),
            sum(stat.total_write_bytes for stat in stats),
            sum(stat.total_write_errors for stat in stats),
        )

    @property
    def bytes_per_row(self) -> int | None:
        """The bytes per row; None for a commit without rows."""
        return ceil(self.bytes_written / self.rows_written) if self.rows_written else None


@dataclass(frozen=True, slots=True)
class _FileRow:
    """The totals of a commit in one file."""

    instant: Instant
    stat: WriteStat


def _file_rows(commits: Iterable[tuple[Instant, CommitMetadata]]) -> Iterator[_FileRow]:
    return (_FileRow(instant, stat) for instant, body in commits for stat in body.stats())


def _archived(call: ProcedureCall) -> Iterator[tuple[Instant, CommitMetadata]]:
    since, until = call.text("start_ts") or None, call.text("end_ts") or None
    for entry in load_archived_timeline(call.storage, call.meta.config).instants(since, until):
        body = entry.commit() if entry.instant.action.is_commit else None
        if body is not None:
            yield entry.instant, body


@procedure(_LIMITED, f"{_TIMES}, {_ACTION}, {_TOTALS}")
def show_commits(call: ProcedureCall) -> Rows:
    """The newest completed commits, with their totals."""
    return (CommitRow.of(*commit) for commit in call.commits())


@procedure(_LIMITED, _STATS)
def show_commits_metadata(call: ProcedureCall) -> Rows:
    """The files of the newest commits, one row per file."""
    return _file_rows(call.commits())


@procedure(_ARCHIVED, f"{_TIMES}, {_TOTALS}")
def show_archived_commits(call: ProcedureCall) -> Rows:
    """The archived commits, newest first, in a range or all."""
    return (CommitRow.of(*commit) for commit in _archived(call))


@procedure(_ARCHIVED, _STATS)
def show_archived_commits_metadata(call: ProcedureCall) -> Rows:
    """The files of archived commits, one row per file."""
    return _file_rows(_archived(call))


@procedure(
    _ONE_COMMIT,
    f"{_ACTION}, partition_path string = stat.partition_path, file_id string = stat.file_id, "
    "previous_commit string = stat.prev_commit, total_records_updated long = stat.num_update_writes, "
    "total_records_written long = stat.num_writes, total_bytes_written long = stat.total_write_bytes, "
    "total_errors long = stat.total_write_errors, file_size long = stat.file_size_in_bytes",
)
def show_commit_files(call: ProcedureCall) -> Rows:
    """The files of one commit."""
    instant, body = call.commit_at(call.text("instant_time"))
    for path, stats in body.partition_to_write_stats.items():
        yield from (_FileRow(instant, replace(stat, partition_path=path)) for stat in stats)


@procedure(
    _ONE_COMMIT,
    f"{_ACTION}, partition_path string = partition_path, total_files_added long = files_added, "
    "total_files_updated long = files_updated, total_records_inserted long = rows_inserted, "
    "total_records_updated long = rows_updated, total_bytes_written long = bytes_written, total_errors long = errors",
)
def show_commit_partitions(call: ProcedureCall) -> Rows:
    """The totals of one commit in each partition."""
    instant, body = call.commit_at(call.text("instant_time"))
    return (CommitRow.of(instant, body, path) for path in body.partition_to_write_stats)


@procedure(
    _ONE_COMMIT,
    f"{_ACTION}, total_bytes_written long = bytes_written, total_records_written long = rows_written, "
    "avg_record_size long = bytes_per_row",
)
def show_commit_write_stats(call: ProcedureCall) -> Rows:
    """The rows and bytes of one commit."""
    return [CommitRow.of(*call.commit_at(call.text("instant_time")))]


@procedure(
    "table string!, limit integer=100, instant_time string, metadata_key string",
    "instant_time string, action string, metadata_key string, metadata_value string",
)
def show_commit_extra_metadata(call: ProcedureCall) -> Rows:
    """The extra metadata of a commit; without an instant time of the newest."""
    time, key = call.text("instant_time"), call.text("metadata_key")
    for instant, body in [call.commit_at(time)] if time else islice(call.commits(), 1):
        for name, value in body.extra_metadata.items():
            if key in ("", name):
                yield instant.requested_time, instant.action.value, name, value


@procedure("table string!, path string!", "compare_detail string")
def commits_compare(call: ProcedureCall) -> Rows:
    """The commits by which a table is ahead of, or behind, the table at another path."""
    commits, other_commits = (
        table.state().timeline.commits() for table in (call.table, call.table_called(call.text("path")))
    )
    newest = (commits.last_commit(), other_commits.last_commit())
    last, other_last = (instant.requested_time if instant else "" for instant in newest)
    is_behind = last < other_last
    missing = other_commits.after(last) if is_behind else commits.after(other_last)
    times = [instant.requested_time for instant in missing]
    text = f"is {'behind' if is_behind else 'ahead'} by {len(times)} commits"
    return [(f"Source {call.meta.config.table_name} {text}. Commits to catch up - [{', '.join(times)}]",)]


@procedure(
    _LIMITED,
    "commit_time string, total_upserted long, total_written long, write_amplification_factor string",
)
def stats_wa(call: ProcedureCall) -> Rows:
    """Write amplification: the number of rows that each commit wrote per changed row."""
    commits = [CommitRow.of(*commit) for commit in call.commits() if commit[0].action is not ActionKind.DELTACOMMIT]
    for commit in reversed(commits):  # a delta commit appends; the compaction rewrites the rows
        yield _amplification(commit.instant.requested_time, [commit])
    yield _amplification("Total", commits)


def _amplification(name: str, commits: Sequence[CommitRow]) -> Row:
    updated, written = sum(one.rows_updated for one in commits), sum(one.rows_written for one in commits)
    return name, updated, written, f"{written / updated:.2f}".removeprefix("0") if updated else "0"


# ---- cleans

_CLEANS = f"{_LIMITED}, showArchived boolean=false, filter string="
CLEAN_VERSION = 2  # of all bodies of cleans that are read here


@dataclass(frozen=True, slots=True)
class _CleanRow:
    instant: Instant
    body: CleanMetadata
    version: int = CLEAN_VERSION


def _cleans(call: ProcedureCall) -> Iterator[_CleanRow]:
    """Completed cleans, newest first."""
    active = call.completed(ActionKind.CLEAN)
    rows = (_CleanRow(clean, call.meta.reader.clean_metadata(clean)) for clean in active)
    archived = (_CleanRow(one.instant, body) for one in _archived_cleans(call, active) if (body := one.clean()))
    return merge(rows, archived, key=lambda row: row.instant.requested_time, reverse=True)


def _archived_cleans(call: ProcedureCall, active: Iterable[Instant]) -> Iterator[ArchivedInstant]:
    """Cleans in the archive that are not active, too, newest first; none unless `showArchived` asks for them."""
    if call.flag("showArchived"):
        known = {one.requested_time for one in active}
        for entry in load_archived_timeline(call.storage, call.meta.config).instants():
            if entry.instant.action is ActionKind.CLEAN and entry.instant.requested_time not in known:
                yield entry


@procedure(
    _CLEANS,
    "clean_time string = instant.requested_time, state_transition_time string = instant.completion_time, "
    f"{_ACTION}, start_clean_time string = body.start_time, time_taken_in_millis long = body.time_taken_ms, "
    "total_files_deleted integer = body.files_deleted, earliest_commit_to_retain string = body.earliest, "
    "last_completed_commit_timestamp string = body.last_commit, version integer = version",
)
def show_cleans(call: ProcedureCall) -> Rows:
    """Completed cleans, newest first; with showArchived those in the archive, too."""
    return _cleans(call)


@procedure(
    _CLEANS,
    "clean_time string, state_transition_time string, action string, start_clean_time string, partition_path string, "
    "policy string, delete_path_patterns integer, success_delete_files integer, failed_delete_files integer, "
    "is_partition_deleted boolean, time_taken_in_millis long, total_files_deleted integer",
)
def show_cleans_metadata(call: ProcedureCall) -> Rows:
    """The effects of completed cleans in each partition."""
    for clean in _cleans(call):
        instant, body = clean.instant, clean.body
        for path, result in body.partitions.items():
            deleted, failed = len(result.deleted), len(result.failed)
            yield (
                instant.requested_time, instant.completion_time, instant.action.value, body.start_time, path,
                result.policy, deleted + failed, deleted, failed, result.is_partition_deleted, body.time_taken_ms,
                body.files_deleted,
            )  # fmt: skip


@procedure(
    _CLEANS,
    "plan_time string, state string, action string, earliest_instant_to_retain string, "
    "last_completed_commit_timestamp string, policy string, version integer, total_partitions_to_clean integer, "
    "total_partitions_to_delete integer, extra_metadata string",
)
def show_clean_plans(call: ProcedureCall) -> Rows:
    """The plans of cleans, including pending ones; with showArchived those in the archive, too."""
    active = list(reversed(call.meta.timeline.of([ActionKind.CLEAN]).instants))
    plans = ((instant, call.meta.reader.clean_plan(instant)) for instant in active)
    archived = ((one.instant, one.clean_plan()) for one in _archived_cleans(call, active))
    for instant, plan in merge(plans, archived, key=lambda row: row[0].requested_time, reverse=True):
        if plan is not None:
            extra = ", ".join(f"{key}={value}" for key, value in plan.extra_metadata.items())
            yield (
                instant.requested_time, instant.state.name, instant.action.value, plan.earliest_time or None,
                plan.last_commit, plan.policy, CLEAN_VERSION, len(plan.files), len(plan.partitions), extra or None,
            )  # fmt: skip


# ---- rollbacks


@procedure(
    _LIMITED,
    "instant string, rollback_instant string, total_files_deleted integer, time_taken_in_millis long, "
    "total_partitions integer",
)
def show_rollbacks(call: ProcedureCall) -> Rows:
    """Completed rollbacks, newest first, with the instants that they rolled back."""
    for instant in call.completed(ActionKind.ROLLBACK):
        body = call.meta.reader.rollback_metadata(instant)
        for time in body.commits_rollback:
            yield instant.requested_time, time, body.total_files_deleted, body.time_taken_ms, len(body.partitions)


@procedure(
    _ONE_COMMIT,
    "instant string, rollback_instant string, partition string, deleted_file string, succeeded boolean",
)
def show_rollback_detail(call: ProcedureCall) -> Rows:
    """The files that one rollback deleted."""
    time = call.text("instant_time")
    instant = call.meta.timeline.completed().find(time, ActionKind.ROLLBACK)
    if instant is None:
        raise call.error(f"{call.table.path} has no completed rollback {time!r:.100}.")
    body = call.meta.reader.rollback_metadata(instant)
    undone = f"[{', '.join(body.commits_rollback)}]"
    return [
        (body.start_rollback_time, undone, path, file, succeeded)
        for path, partition in body.partitions.items()
        for succeeded, files in ((True, partition.success_delete_files), (False, partition.failed_delete_files))
        for file in files
    ]


# ---- the timeline


@procedure(
    f"{TABLE}, limit integer=20, showArchived boolean=false, filter string=, startTime string=, endTime string=",
    "instant_time string, action string, state string, requested_time string, inflight_time string, "
    "completed_time string, timeline_type string, rollback_info string",
    is_limited=False,
)
def show_timeline(call: ProcedureCall) -> Rows:
    """All instants in their states, archived ones on request."""
    since, until = call.text("startTime"), call.text("endTime")
    rollbacks = _rollbacks_by_time(call)
    rows = (
        _timeline_row(call, instant, is_active, rollbacks)
        for instant, is_active in _instants(call)
        if since <= instant.requested_time and (not until or instant.requested_time <= until)
    )
    return rows if since and until else call.limited(rows)


def _instants(call: ProcedureCall) -> list[tuple[Instant, bool]]:
    """Instants, and whether they are on the active timeline; newest first."""
    rows = [(instant, True) for instant in call.meta.timeline]
    if call.flag("showArchived"):
        active = {instant.requested_time for instant in call.meta.timeline}
        times = load_archived_timeline(call.storage, call.meta.config).times()
        rows += [(instant, False) for instant in times if instant.requested_time not in active]
    return sorted(rows, key=lambda one: (one[0].requested_time, one[0].action.value), reverse=True)


def _rollbacks_by_time(call: ProcedureCall) -> dict[str, list[str]]:
    """Instant time → the rollbacks of that instant."""
    rollbacks: dict[str, list[str]] = {}
    for instant in call.completed(ActionKind.ROLLBACK):
        for time in call.meta.reader.rollback_metadata(instant).commits_rollback:
            rollbacks.setdefault(time, []).append(instant.requested_time)
    return rollbacks


def _timeline_row(call: ProcedureCall, instant: Instant, is_active: bool, rollbacks: dict[str, list[str]]) -> Row:
    times = _stored_times(call, instant) if is_active else _archived_times(call, instant)
    by = rollbacks.get(instant.requested_time)
    note = f"Rolled back by: {', '.join(by)}" if by else None
    if is_active and instant.action is ActionKind.ROLLBACK:
        note = f"Rolled back: {', '.join(_undone(call, instant))}"
    kind = "ACTIVE" if is_active else "ARCHIVED"
    return instant.requested_time, instant.action.value, instant.state.name, *times, kind, note


def _undone(call: ProcedureCall, rollback: Instant) -> tuple[str, ...]:
    if rollback.is_completed:
        return call.meta.reader.rollback_metadata(rollback).commits_rollback
    return (call.meta.reader.rollback_plan(rollback).instant_to_rollback.commit_time,)


def _archived_times(call: ProcedureCall, instant: Instant) -> Row:
    """The times when an archived instant was requested, started and completed, from the history."""
    zone = call.meta.config.timeline_zone
    times = (instant.requested_time, instant.requested_time, instant.completion_time)
    return tuple(None if time is None else _moment_text(parse_instant_time(time, zone)) for time in times)


def _stored_times(call: ProcedureCall, instant: Instant) -> Row:
    """The times when an instant was requested, started and completed, from its files."""
    requested, inflight, completed = (_file_time(call, instant, state) for state in State)
    # A state without a separate file, such as a savepoint's, was reached together with the next state.
    return requested or inflight or completed, inflight or completed, completed


def _file_time(call: ProcedureCall, instant: Instant, state: State) -> str | None:
    if state > instant.state:
        return None
    stages = [instant]
    if state is not instant.state:
        names = dict.fromkeys((instant.action, *pending_actions(instant.action.completed_as)))
        stages = [Instant(instant.requested_time, name, state) for name in names]
    for stage in stages:
        info = call.storage.stat(instant_path(stage, call.meta.config))
        if info is not None:
            moment = datetime.fromtimestamp(info.modified_ms / 1000, timezone.utc)
            return _moment_text(moment.astimezone(call.meta.config.timeline_zone))
    return None


def _moment_text(moment: datetime) -> str:
    return f"{moment:%m-%d %H:%M:%S}"
