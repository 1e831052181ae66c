"""ClusteringResult: what a clustering did, or would do, for its caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyhudi.model.commit import WriteStatus
from pyhudi.model.plans import ClusteringGroup, ClusteringPlan
from pyhudi.services.plan_result import PlanResult, PlanRun
from pyhudi.text_table import readable_bytes

__all__ = ["ClusteringResult", "ClusteringRun"]


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class ClusteringResult(PlanResult[ClusteringGroup, ClusteringRun]):
    """`planned`: groups of the plan that this call made, or would make (dry run). `scheduled`: its instant, None when
    nothing was scheduled. `runs`: plans that this call executed.
    """

    table: str
    planned: tuple[ClusteringGroup, ...] = ()
    scheduled: str | None = None
    runs: tuple[ClusteringRun, ...] = ()

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
