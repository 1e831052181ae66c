"""Commits: their write stats, files and partitions; archived commits; two tables compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil

from pyhudi.model.commit import CommitMetadata, WriteStat
from pyhudi.model.instant import Instant
from pyhudi.sql.procedures.procedure import Procedure, ProcedureCall, Row, Rows
from pyhudi.timeline.archived_timeline import load_archived_timeline

__all__ = ["PROCEDURES"]

_NEW = "null"  # the previous commit of a file group that a write made
_TOTALS = (
    "total_bytes_written long, total_files_added long, total_files_updated long, total_partitions_written long, "
    "total_records_written long, total_update_records_written long, total_errors long"
)
_STATS = (
    "commit_time string, state_transition_time string, action string, partition string, file_id string, "
    "previous_commit string, num_writes long, num_inserts long, num_deletes long, num_update_writes long, "
    "total_errors long, total_log_blocks long, total_corrupt_log_blocks long, total_rollback_blocks long, "
    "total_log_records long, total_updated_records_compacted long, total_bytes_written long"
)


def _is_new(stat: WriteStat) -> bool:
    return (stat.prev_commit or "").lower() == _NEW


def _totals(body: CommitMetadata) -> tuple[int, ...]:
    stats = body.stats()
    new = sum(map(_is_new, stats))
    return (
        sum(stat.total_write_bytes for stat in stats),
        new,
        sum(stat.prev_commit is not None for stat in stats) - new,
        len(body.partition_to_write_stats),
        sum(stat.num_writes for stat in stats),
        sum(stat.num_update_writes for stat in stats),
        sum(stat.total_write_errors for stat in stats),
    )


def _stats(instant: Instant, body: CommitMetadata) -> Iterator[Row]:
    for stat in body.stats():
        yield (
            instant.requested_time, instant.completion_time, instant.action.value, stat.partition_path, stat.file_id,
            stat.prev_commit, stat.num_writes, stat.num_inserts, stat.num_deletes, stat.num_update_writes,
            stat.total_write_errors, stat.total_log_blocks, stat.total_corrupt_log_block, stat.total_rollback_blocks,
            stat.total_log_records, stat.total_updated_records_compacted, stat.total_write_bytes,
        )  # fmt: skip


def _show_commits(call: ProcedureCall) -> Rows:
    return call.limited(
        (instant.requested_time, instant.completion_time, instant.action.value, *_totals(body))
        for instant, body in call.commits()
    )


def _show_commits_metadata(call: ProcedureCall) -> Rows:
    return call.limited(row for instant, body in call.commits() for row in _stats(instant, body))


def _archived(call: ProcedureCall) -> Iterator[tuple[Instant, CommitMetadata]]:
    since, until = call.text("start_ts") or None, call.text("end_ts") or None
    for entry in load_archived_timeline(call.storage, call.meta.config).instants(since, until):
        body = entry.commit() if entry.instant.action.is_commit else None
        if body is not None:
            yield entry.instant, body


def _show_archived_commits(call: ProcedureCall) -> Rows:
    return call.limited(
        (instant.requested_time, instant.completion_time, *_totals(body)) for instant, body in _archived(call)
    )


def _show_archived_commits_metadata(call: ProcedureCall) -> Rows:
    return call.limited(row for instant, body in _archived(call) for row in _stats(instant, body))


def _show_commit_files(call: ProcedureCall) -> Rows:
    instant, body = call.commit_at(call.text("instant_time"))
    return call.limited(
        (
            instant.action.value, partition, stat.file_id, stat.prev_commit, stat.num_update_writes, stat.num_writes,
            stat.total_write_bytes, stat.total_write_errors, stat.file_size_in_bytes,
        )
        for partition, stats in body.partition_to_write_stats.items()
        for stat in stats
    )  # fmt: skip


def _show_commit_partitions(call: ProcedureCall) -> Rows:
    instant, body = call.commit_at(call.text("instant_time"))
    return call.limited(
        (instant.action.value, partition, *_partition_totals(stats))
        for partition, stats in body.partition_to_write_stats.items()
    )


def _partition_totals(stats: Iterable[WriteStat]) -> tuple[int, ...]:
    stats = tuple(stats)
    older = [stat for stat in stats if not _is_new(stat)]
    return (
        len(stats) - len(older),
        len(older),
        sum(stat.num_inserts for stat in stats),
        sum(stat.num_update_writes for stat in older),
        sum(stat.total_write_bytes for stat in stats),
        sum(stat.total_write_errors for stat in stats),
    )


def _show_commit_write_stats(call: ProcedureCall) -> Rows:
    instant, body = call.commit_at(call.text("instant_time"))
    written_bytes, *_, rows, _, _ = _totals(body)
    return call.limited([(instant.action.value, written_bytes, rows, ceil(written_bytes / rows) if rows else None)])


def _show_commit_extra_metadata(call: ProcedureCall) -> Rows:
    time, key = call.text("instant_time"), call.text("metadata_key")
    commits = [call.commit_at(time)] if time else call.commits()[:1]
    return call.limited(
        (instant.requested_time, instant.action.value, name, value)
        for instant, body in commits
        for name, value in body.extra_metadata.items()
        if not key or name == key
    )


def _commits_compare(call: ProcedureCall) -> Rows:
    other = call.table_called(call.text("path"))
    commits, other_commits = call.meta.timeline.commits(), other.state().timeline.commits()
    newest = (commits.last_commit(), other_commits.last_commit())
    last, other_last = (instant.requested_time if instant else "" for instant in newest)
    is_behind = last < other_last
    missing = other_commits.after(last) if is_behind else commits.after(other_last)
    times = [instant.requested_time for instant in missing]
    text = f"is {'behind' if is_behind else 'ahead'} by {len(times)} commits"
    source = f"Source {call.meta.config.table_name}"
    return [(f"{source} {text}. Commits to catch up - [{', '.join(times)}]",)]


PROCEDURES = (
    Procedure.of(
        "show_commits",
        "table string!, limit integer=10",
        f"commit_time string, state_transition_time string, action string, {_TOTALS}",
        _show_commits,
        "The newest completed commits, with what they wrote.",
    ),
    Procedure.of(
        "show_commits_metadata",
        "table string!, limit integer=10",
        _STATS,
        _show_commits_metadata,
        "The files of the newest commits, one row each.",
    ),
    Procedure.of(
        "show_archived_commits",
        "table string!, limit integer=10, start_ts string=, end_ts string=",
        f"commit_time string, state_transition_time string, {_TOTALS}",
        _show_archived_commits,
        "Archived commits, newest first; without a range all of them.",
    ),
    Procedure.of(
        "show_archived_commits_metadata",
        "table string!, limit integer=10, start_ts string=, end_ts string=",
        _STATS,
        _show_archived_commits_metadata,
        "The files of archived commits, one row each.",
    ),
    Procedure.of(
        "show_commit_files",
        "table string!, limit integer=10, instant_time string!",
        "action string, partition_path string, file_id string, previous_commit string, total_records_updated long, "
        "total_records_written long, total_bytes_written long, total_errors long, file_size long",
        _show_commit_files,
        "The files of one commit.",
    ),
    Procedure.of(
        "show_commit_partitions",
        "table string!, limit integer=10, instant_time string!",
        "action string, partition_path string, total_files_added long, total_files_updated long, "
        "total_records_inserted long, total_records_updated long, total_bytes_written long, total_errors long",
        _show_commit_partitions,
        "What one commit did in each partition.",
    ),
    Procedure.of(
        "show_commit_write_stats",
        "table string!, limit integer=10, instant_time string!",
        "action string, total_bytes_written long, total_records_written long, avg_record_size long",
        _show_commit_write_stats,
        "Rows and bytes of one commit.",
    ),
    Procedure.of(
        "show_commit_extra_metadata",
        "table string!, limit integer=100, instant_time string, metadata_key string",
        "instant_time string, action string, metadata_key string, metadata_value string",
        _show_commit_extra_metadata,
        "The extra metadata of a commit, of the newest without an instant time.",
    ),
    Procedure.of(
        "commits_compare",
        "table string!, path string!",
        "compare_detail string",
        _commits_compare,
        "By which commits a table is ahead of, or behind, the one at another path.",
    ),
)
