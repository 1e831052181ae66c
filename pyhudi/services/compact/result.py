"""CompactionResult: what a compaction or log compaction did, or would do, for its caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape

from pyhudi.model.plans import CompactionOperation
from pyhudi.model.write_status import WriteStatus
from pyhudi.text_table import html_lines, readable_bytes

__all__ = ["CompactionResult", "CompactionRun"]


@dataclass(frozen=True, slots=True)
class CompactionRun:
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

    @property
    def total_s(self) -> float:
        """Wall time of all phases."""
        return sum(self.seconds.values())


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """`operation`: COMPACT or LOG_COMPACT. `planned`: slices of the plan that this call made, or would make (dry run).
    `scheduled`: its instant, None when nothing was scheduled. `runs`: plans that this call executed.
    """

    table: str
    operation: str
    planned: tuple[CompactionOperation, ...] = ()
    scheduled: str | None = None
    runs: tuple[CompactionRun, ...] = ()

    @property
    def instant_times(self) -> tuple[str, ...]:
        """The completed instants."""
        return tuple(run.instant_time for run in self.runs)

    @property
    def total_s(self) -> float:
        """Wall time of all runs."""
        return sum(run.total_s for run in self.runs)

    @property
    def log_bytes_planned(self) -> int:
        """Bytes of the log files of the planned slices."""
        return int(sum(operation.metrics.get("TOTAL_LOG_FILES_SIZE", 0) for operation in self.planned))

    def __str__(self) -> str:
        name = self.operation.lower().replace("_", " ")
        done = [
            f"{name} {run.instant_time}: {run.file_slices:,} slices, {run.log_files:,} log files, "
            f"{run.log_records:,} log records → {run.rows_written:,} rows ({readable_bytes(run.bytes_written)}); "
            f"{run.total_s:.2f} s"
            for run in self.runs
        ]
        if done:
            return "\n".join(done)
        if not self.planned:
            return f"{name}: nothing to do"
        logs = sum(len(operation.log_file_names) for operation in self.planned)
        state = f"scheduled as {self.scheduled}" if self.scheduled else "would take"
        size = readable_bytes(self.log_bytes_planned)
        return f"{name} {state}: {len(self.planned):,} slices, {logs:,} log files ({size})"

    def _repr_html_(self) -> str:
        if self.runs or not self.planned:
            return html_lines(str(self))
        names = ("partition", "file group", "base file", "log files", "bytes of logs")
        head = f"<tr>{''.join(f'<th>{name}</th>' for name in names)}</tr>"
        rows = "".join(
            f"<tr><td>{escape(o.partition_path)}</td><td>{escape(o.file_id)}</td><td>{escape(o.data_file_name or '')}"
            f"</td><td>{len(o.log_file_names)}</td><td>{int(o.metrics.get('TOTAL_LOG_FILES_SIZE', 0)):,}</td></tr>"
            for o in self.planned
        )
        return f"<div>{escape(str(self))}</div><table>{head}{rows}</table>"
