"""CompactionResult: what a compaction or log compaction did, or would do, for its caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyhudi.model.commit import WriteStatus
from pyhudi.model.plans import CompactionOperation
from pyhudi.services.plan_result import PlanResult, PlanRun
from pyhudi.text_table import readable_bytes

__all__ = ["CompactionResult", "CompactionRun"]


@dataclass(frozen=True, slots=True)
class CompactionRun(PlanRun):
    """One completed instant. `log_records` were read from `log_files` log files; `rows_written` went to the new files,
    `updated`, `inserted` and `deleted` of them by what the logs said. `seconds`: wall time by phase.
    """

    instant_time: str
    completion_time: str
    file_slices: int
    log_files: int
    log_records: int
    rows_written: int
    updated: int
    inserted: int
    deleted: int
    log_bytes: int
    bytes_written: int
    seconds: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        instant_time: str,
        completion_time: str,
        operations: Iterable[CompactionOperation],
        statuses: Iterable[WriteStatus],
        seconds: Mapping[str, float],
    ) -> CompactionRun:
        """Add up the files of a run."""
        operations, stats = tuple(operations), [status.stat for status in statuses]
        return cls(
            instant_time,
            completion_time,
            file_slices=len(operations),
            log_files=sum(len(operation.log_file_names) for operation in operations),
            log_records=sum(stat.total_log_records for stat in stats),
            rows_written=sum(stat.num_writes for stat in stats),
            updated=sum(stat.num_update_writes for stat in stats),
            inserted=sum(stat.num_inserts for stat in stats),
            deleted=sum(stat.num_deletes for stat in stats),
            log_bytes=sum(stat.total_log_size_compacted for stat in stats),
            bytes_written=sum(stat.total_write_bytes for stat in stats),
            seconds=seconds,
        )

    def _summary(self) -> str:
        return (
            f"{self.file_slices:,} slices, {self.log_files:,} log files, {self.log_records:,} log records → "
            f"{self.rows_written:,} rows ({readable_bytes(self.bytes_written)})"
        )


@dataclass(frozen=True, slots=True)
class CompactionResult(PlanResult[CompactionOperation, CompactionRun]):
    """`operation`: COMPACT or LOG_COMPACT. `planned`: slices of the plan that this call made, or would make (dry run).
    `scheduled`: its instant, None when nothing was scheduled. `runs`: plans that this call executed.
    """

    table: str
    operation: str
    planned: tuple[CompactionOperation, ...] = ()
    scheduled: str | None = None
    runs: tuple[CompactionRun, ...] = ()

    @property
    def log_bytes_planned(self) -> int:
        """Bytes of the log files of the planned slices."""
        return int(sum(operation.metrics.get("TOTAL_LOG_FILES_SIZE", 0) for operation in self.planned))

    def _name(self) -> str:
        return self.operation.lower().replace("_", " ")

    def _plan_summary(self) -> str:
        logs = sum(len(operation.log_file_names) for operation in self.planned)
        return f"{len(self.planned):,} slices, {logs:,} log files ({readable_bytes(self.log_bytes_planned)})"

    def _plan_table(self) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        return ("partition", "file group", "base file", "log files", "bytes of logs"), (
            (
                o.partition_path,
                o.file_id,
                o.data_file_name or "",
                len(o.log_file_names),
                f"{int(o.metrics.get('TOTAL_LOG_FILES_SIZE', 0)):,}",
            )
            for o in self.planned
        )
