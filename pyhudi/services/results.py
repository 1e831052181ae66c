"""Results of compaction, log compaction and clustering: a plan, and the runs of plans.

`CompactionResult` reports a compaction or log compaction to its caller, `ClusteringResult` a clustering. Each lists the
plan that the call made, or would make, and a run for each plan that it executed. `PlanResult` and `PlanRun` hold the
common part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Generic, TypeVar

from pyhudi.display import html_lines, readable_bytes
from pyhudi.model.commit import WriteStatus
from pyhudi.model.plans import ClusteringGroup, ClusteringPlan, CompactionOperation
from pyhudi.result import Result

__all__ = ["ClusteringResult", "ClusteringRun", "CompactionResult", "CompactionRun", "PlanResult", "PlanRun"]


PlannedT = TypeVar("PlannedT")
RunT = TypeVar("RunT", bound="PlanRun")


class PlanRun(Result, ABC):
    """One completed instant. `seconds`: wall time by phase."""

    __slots__ = ()
    instant_time: str
    completion_time: str
    seconds: Mapping[str, float]

    @property
    def total_s(self) -> float:
        """Wall time of all phases."""
        return sum(self.seconds.values())

    @abstractmethod
    def _summary(self) -> str:
        """The work of the run, in a line."""
        ...

    def __str__(self) -> str:
        return f"{self.instant_time} (complete {self.completion_time}): {self._summary()}; {self.total_s:.2f} s"


class PlanResult(Result, ABC, Generic[PlannedT, RunT]):
    """`planned`: the entries of the plan that this call made, or would make (dry run). `scheduled`: its instant, None
    when nothing was scheduled. `runs`: plans that this call executed. `waiting`: the instants of pending plans that it
    would execute first (dry run).
    """

    __slots__ = ()
    planned: tuple[PlannedT, ...]
    scheduled: str | None
    runs: tuple[RunT, ...]
    waiting: tuple[str, ...]

    @property
    def instant_times(self) -> tuple[str, ...]:
        """The completed instants."""
        return tuple(run.instant_time for run in self.runs)

    @property
    def total_s(self) -> float:
        """Wall time of all runs."""
        return sum(run.total_s for run in self.runs)

    @abstractmethod
    def _name(self) -> str:
        """The name of the service."""
        ...

    @abstractmethod
    def _plan_summary(self) -> str:
        """The input of the plan, in a line."""
        ...

    @abstractmethod
    def _plan_table(self) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        """The plan as a table: its header, and a row for each entry."""
        ...

    def __str__(self) -> str:
        name = self._name()
        if self.runs:
            return "\n".join(f"{name} {run}" for run in self.runs)
        if not self.planned and not self.waiting:
            return f"{name}: nothing to do"
        state = f"scheduled as {self.scheduled}" if self.scheduled else "would take"
        lines = [f"{name} would run the waiting plan {instant_time}" for instant_time in self.waiting]
        lines += [f"{name} {state}: {self._plan_summary()}"] if self.planned else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        if self.runs or not self.planned:
            return html_lines(str(self))
        names, rows = self._plan_table()
        head = "".join(f"<th>{name}</th>" for name in names)
        body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
        return f"{html_lines(str(self))}<table><tr>{head}</tr>{body}</table>"


@dataclass(frozen=True, slots=True, repr=False)
class CompactionRun(PlanRun):
    """One completed instant. `log_records` were read from `log_files` log files; `rows_written` went to the new files;
    `updated`, `inserted` and `deleted` count the changes in the logs. `seconds`: wall time by phase.
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


@dataclass(frozen=True, slots=True, repr=False)
class CompactionResult(PlanResult[CompactionOperation, CompactionRun]):
    """`operation`: COMPACT or LOG_COMPACT. `planned`: slices of the plan that this call made, or would make (dry run).
    `scheduled`: its instant, None when nothing was scheduled. `runs`: plans that this call executed. `waiting`: the
    instants of pending plans that it would execute first (dry run).
    """

    table: str
    operation: str
    planned: tuple[CompactionOperation, ...] = ()
    scheduled: str | None = None
    runs: tuple[CompactionRun, ...] = ()
    waiting: tuple[str, ...] = ()

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


@dataclass(frozen=True, slots=True, repr=False)
class ClusteringRun(PlanRun):
    """One completed instant: `files_written` new files replaced `file_slices`. `seconds`: wall time by phase."""

    instant_time: str
    completion_time: str
    groups: int
    file_slices: int
    files_written: int
    rows_written: int
    bytes_written: int
    seconds: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        instant_time: str,
        completion_time: str,
        plan: ClusteringPlan,
        statuses: Sequence[WriteStatus],
        seconds: Mapping[str, float],
    ) -> ClusteringRun:
        """Add up the files of a run."""
        return cls(
            instant_time,
            completion_time,
            groups=len(plan.groups),
            file_slices=len(plan.slices),
            files_written=len(statuses),
            rows_written=sum(status.stat.num_writes for status in statuses),
            bytes_written=sum(status.stat.total_write_bytes for status in statuses),
            seconds=seconds,
        )

    def _summary(self) -> str:
        return (
            f"{self.groups:,} groups, {self.file_slices:,} slices → {self.files_written:,} files, "
            f"{self.rows_written:,} rows ({readable_bytes(self.bytes_written)})"
        )


@dataclass(frozen=True, slots=True, repr=False)
class ClusteringResult(PlanResult[ClusteringGroup, ClusteringRun]):
    """`planned`: groups of the plan that this call made, or would make (dry run). `scheduled`: its instant, None when
    nothing was scheduled. `runs`: plans that this call executed. `waiting`: the instants of pending plans that it would
    execute first (dry run).
    """

    table: str
    planned: tuple[ClusteringGroup, ...] = ()
    scheduled: str | None = None
    runs: tuple[ClusteringRun, ...] = ()
    waiting: tuple[str, ...] = ()

    def _name(self) -> str:
        return "cluster"

    def _plan_summary(self) -> str:
        slices = sum(len(group.slices) for group in self.planned)
        files = sum(group.output_file_groups for group in self.planned)
        return f"{len(self.planned):,} groups, {slices:,} slices → {files:,} files"

    def _plan_table(self) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        return ("partition", "slices", "log files", "new files"), (
            (
                group.partition_path,
                len(group.slices),
                sum(len(s.log_file_names) for s in group.slices),
                group.output_file_groups,
            )
            for group in self.planned
        )
