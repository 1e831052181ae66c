"""The gauges of an action by Hudi's names, without the prefix: `deltacommit.totalRecordsWritten`.

Times are milliseconds, as in Hudi; only timers are in seconds, as Prometheus expects them.
Source: Hudi's HoodieMetrics, and what Hudi 1.2.0 pushes to a gateway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyhudi.listeners.notification import ActionCompleted
from pyhudi.model.commit import CommitMetadata, WriteStat
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.plans import CleanMetadata, RestoreMetadata, RollbackMetadata

__all__ = ["gauges_of"]

_TIMELINE_WORDS: Mapping[str, tuple[ActionKind, ActionKind]] = {
    # word in the names → action while pending, action when completed
    "Clustering": (ActionKind.CLUSTERING, ActionKind.REPLACECOMMIT),
    "Compaction": (ActionKind.COMPACTION, ActionKind.COMMIT),
    "Clean": (ActionKind.CLEAN, ActionKind.CLEAN),
    "Rollback": (ActionKind.ROLLBACK, ActionKind.ROLLBACK),
}


def gauges_of(completed: ActionCompleted, *, log_blocks: bool) -> dict[str, float]:
    """Return name → value. `log_blocks`: include the counts of damaged and rolled back log blocks."""
    numbers: dict[str, float] = {"duration": _ms(completed.duration_s), **completed.counts}
    match completed.body:
        case CommitMetadata():
            numbers |= _of_commit(completed.body, completed, log_blocks)
        case CleanMetadata():
            numbers["numFilesDeleted"] = completed.body.files_deleted
        case RollbackMetadata():
            numbers["numFilesDeleted"] = completed.body.total_files_deleted
    gauges = {f"{completed.action}.{name}": value for name, value in numbers.items()}
    instants = completed.timeline.instants
    if isinstance(completed.body, RestoreMetadata):
        # Hudi counts a restore as a rollback. Its rollbacks' plans are deleted when it completes.
        gauges |= {
            f"{ActionKind.ROLLBACK.value}.{name}": value
            for name, value in _of_restore(completed.body, completed).items()
        }
        instants = tuple(i for i in instants if i.is_completed or i.action is not ActionKind.ROLLBACK)
    if completed.action == ActionKind.CLUSTERING.value and "execute" in completed.seconds:
        gauges[f"{completed.action}.fileCreationTime"] = _ms(completed.seconds["execute"])
    if "sweep" in completed.seconds and isinstance(completed.body, CommitMetadata):
        gauges["finalize.duration"] = _ms(completed.seconds["sweep"])
        gauges["finalize.numFilesFinalized"] = len(completed.body.stats())
    if "prepare" in completed.seconds:
        gauges["source_read_and_index.duration.duration"] = _ms(completed.seconds["prepare"])
    if completed.instant is not None:
        gauges |= _of_timeline(instants)
    return gauges


def _of_commit(body: CommitMetadata, completed: ActionCompleted, log_blocks: bool) -> dict[str, float]:
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
    numbers["commitTime"] = completed.ended_ms - _ms(completed.duration_s)
    return numbers | _event_times(stats, completed.ended_ms)


def _of_restore(body: RestoreMetadata, completed: ActionCompleted) -> dict[str, float]:
    rollbacks = [one for several in body.rollbacks.values() for one in several]
    return {
        "duration": _ms(completed.duration_s),
        "numFilesDeleted": _sum(one.total_files_deleted for one in rollbacks),
    }


def _event_times(stats: Iterable[WriteStat], ended_ms: float) -> dict[str, float]:
    """Return how late a commit's oldest and newest events became visible; empty if its rows have no event times."""
    oldest = [stat.min_event_time for stat in stats if stat.min_event_time is not None]
    newest = [stat.max_event_time for stat in stats if stat.max_event_time is not None]
    late: dict[str, float] = {}
    if oldest:
        late["commitLatencyInMs"] = ended_ms - min(oldest)
    if newest:
        late["commitFreshnessInMs"] = ended_ms - max(newest)
    return late


def _of_timeline(instants: Sequence[Instant]) -> dict[str, float]:
    """Return, for each service, how many plans are pending, since when, and its last completed instant."""
    gauges: dict[str, float] = {}
    for word, (pending_as, completed_as) in _TIMELINE_WORDS.items():
        pending = [i for i in instants if i.action is pending_as and not i.is_completed]
        gauges[f"{pending_as.value}.pending{word}InstantCount"] = len(pending)
        if pending:
            gauges[f"{pending_as.value}.earliestInflight{word}Instant"] = int(pending[0].requested_time)
        last = next((i for i in reversed(instants) if i.action is completed_as and i.is_completed), None)
        if last is not None:
            gauges[f"{completed_as.value}.latestCompleted{word}Instant"] = int(last.requested_time)
    return gauges


def _ms(seconds: float) -> float:
    return int(seconds * 1000)


def _sum(numbers: Iterable[int]) -> float:
    return sum(numbers)
