"""The numbers of an action by Hudi's names, without the prefix: `deltacommit.totalRecordsWritten`.

Times are milliseconds, as in Hudi, but for timers, which Prometheus gets in seconds.
Source: Hudi's HoodieMetrics, and what Hudi 1.2.0 pushes to a gateway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyhudi.listeners.done import ActionDone
from pyhudi.model.commit import CommitMetadata, WriteStat
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.plans import CleanMetadata, RestoreMetadata, RollbackMetadata

__all__ = ["gauges_of"]

_TIMELINE_WORDS: Mapping[str, tuple[ActionKind, ActionKind]] = {
    # word in the names → pending as, completed as
    "Clustering": (ActionKind.CLUSTERING, ActionKind.REPLACECOMMIT),
    "Compaction": (ActionKind.COMPACTION, ActionKind.COMMIT),
    "Clean": (ActionKind.CLEAN, ActionKind.CLEAN),
    "Rollback": (ActionKind.ROLLBACK, ActionKind.ROLLBACK),
}


def gauges_of(done: ActionDone, *, log_blocks: bool) -> dict[str, float]:
    """Name → value. `log_blocks`: with those of damaged and rolled back log blocks."""
    numbers: dict[str, float] = {"duration": _ms(done.duration_s), **done.counts}
    match done.body:
        case CommitMetadata():
            numbers |= _of_commit(done.body, done, log_blocks)
        case CleanMetadata():
            numbers["numFilesDeleted"] = done.body.files_deleted
        case RollbackMetadata():
            numbers["numFilesDeleted"] = done.body.total_files_deleted
    gauges = {f"{done.action}.{name}": value for name, value in numbers.items()}
    instants = done.timeline.instants
    if isinstance(done.body, RestoreMetadata):
        # Hudi counts a restore as a rollback. The plans of its rollbacks go with its completion.
        gauges |= {f"{ActionKind.ROLLBACK.value}.{name}": value for name, value in _of_restore(done.body, done).items()}
        instants = tuple(i for i in instants if i.is_completed or i.action is not ActionKind.ROLLBACK)
    if done.action == ActionKind.CLUSTERING.value and "execute" in done.seconds:
        gauges[f"{done.action}.fileCreationTime"] = _ms(done.seconds["execute"])
    if "sweep" in done.seconds and isinstance(done.body, CommitMetadata):
        gauges["finalize.duration"] = _ms(done.seconds["sweep"])
        gauges["finalize.numFilesFinalized"] = len(done.body.stats())
    if "prepare" in done.seconds:
        gauges["source_read_and_index.duration.duration"] = _ms(done.seconds["prepare"])
    if done.instant is not None:
        gauges |= _of_timeline(instants)
    return gauges


def _of_commit(body: CommitMetadata, done: ActionDone, log_blocks: bool) -> dict[str, float]:
    stats = body.stats()
    new_files = sum(stat.prev_commit == "null" for stat in stats)
    numbers: dict[str, float] = {
        "totalPartitionsWritten": len(body.partition_to_write_stats),
        "totalFilesInsert": new_files,
        "totalFilesUpdate": len(stats) - new_files,
        "totalRecordsWritten": _sum(stat.num_writes for stat in stats),
        "totalUpdateRecordsWritten": _sum(stat.num_update_writes for stat in stats),
        "totalInsertRecordsWritten": _sum(stat.num_inserts for stat in stats if stat.prev_commit is not None),
        "totalRecordsDeleted": _sum(stat.num_deletes for stat in stats),
        "totalBytesWritten": _sum(stat.total_write_bytes for stat in stats),
        "totalScanTime": _sum(stat.scan_time_ms for stat in stats),
        "totalCreateTime": _sum(stat.create_time_ms for stat in stats),
        "totalUpsertTime": _sum(stat.upsert_time_ms for stat in stats),
        "totalCompactedRecordsUpdated": _sum(stat.total_updated_records_compacted for stat in stats),
        "totalLogFilesCompacted": _sum(stat.total_log_files_compacted for stat in stats),
        "totalLogFilesSize": _sum(stat.total_log_size_compacted for stat in stats),
        "totalLogRecordsCompacted": _sum(stat.total_log_records for stat in stats),
    }
    if log_blocks:
        numbers["totalCorruptedLogBlocks"] = _sum(stat.total_corrupt_log_block for stat in stats)
        numbers["totalRollbackLogBlocks"] = _sum(stat.total_rollback_blocks for stat in stats)
    numbers["commitTime"] = done.ended_ms - _ms(done.duration_s)
    return numbers | _event_times(stats, done.ended_ms)


def _of_restore(body: RestoreMetadata, done: ActionDone) -> dict[str, float]:
    rollbacks = [one for several in body.rollbacks.values() for one in several]
    return {"duration": _ms(done.duration_s), "numFilesDeleted": _sum(one.total_files_deleted for one in rollbacks)}


def _event_times(stats: Iterable[WriteStat], ended_ms: float) -> dict[str, float]:
    """How late the oldest and the newest event of a commit became visible, where its rows have event times."""
    oldest = [stat.min_event_time for stat in stats if stat.min_event_time is not None]
    newest = [stat.max_event_time for stat in stats if stat.max_event_time is not None]
    late: dict[str, float] = {}
    if oldest:
        late["commitLatencyInMs"] = ended_ms - min(oldest)
    if newest:
        late["commitFreshnessInMs"] = ended_ms - max(newest)
    return late


def _of_timeline(instants: Sequence[Instant]) -> dict[str, float]:
    """How many services wait, since when, and which was the last one."""
    gauges: dict[str, float] = {}
    for word, (pending_as, completed_as) in _TIMELINE_WORDS.items():
        waiting = [i for i in instants if i.action is pending_as and not i.is_completed]
        gauges[f"{pending_as.value}.pending{word}InstantCount"] = len(waiting)
        if waiting:
            gauges[f"{pending_as.value}.earliestInflight{word}Instant"] = int(waiting[0].requested_time)
        last = next((i for i in reversed(instants) if i.action is completed_as and i.is_completed), None)
        if last is not None:
            gauges[f"{completed_as.value}.latestCompleted{word}Instant"] = int(last.requested_time)
    return gauges


def _ms(seconds: float) -> float:
    return int(seconds * 1000)


def _sum(numbers: Iterable[int]) -> float:
    return sum(numbers)
