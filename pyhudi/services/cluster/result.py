"""ClusteringResult: what a clustering did, or would do, for its caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from pyhudi.model.clustering_plan import ClusteringGroup, ClusteringPlan
from pyhudi.model.write_status import WriteStatus
from pyhudi.text_table import html_lines, readable_bytes

__all__ = ["ClusteringResult", "ClusteringRun"]


@dataclass(frozen=True, slots=True)
class ClusteringRun:
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

    @property
    def total_s(self) -> float:
        """Wall time of all phases."""
        return sum(self.seconds.values())


@dataclass(frozen=True, slots=True)
class ClusteringResult:
    """`planned`: groups of the plan that this call made, or would make (dry run). `scheduled`: its instant, None when
    nothing was scheduled. `runs`: plans that this call executed.
    """

    table: str
    planned: tuple[ClusteringGroup, ...] = ()
    scheduled: str | None = None
    runs: tuple[ClusteringRun, ...] = ()

    @property
    def instant_times(self) -> tuple[str, ...]:
        """The completed instants."""
        return tuple(run.instant_time for run in self.runs)

    @property
    def total_s(self) -> float:
        """Wall time of all runs."""
        return sum(run.total_s for run in self.runs)

    def __str__(self) -> str:
        done = [
            f"cluster {run.instant_time}: {run.groups:,} groups, {run.file_slices:,} slices → {run.files_written:,} "
            f"files, {run.rows_written:,} rows ({readable_bytes(run.bytes_written)}); {run.total_s:.2f} s"
            for run in self.runs
        ]
        if done:
            return "\n".join(done)
        if not self.planned:
            return "cluster: nothing to do"
        slices = sum(len(group.slices) for group in self.planned)
        files = sum(group.output_file_groups for group in self.planned)
        state = f"scheduled as {self.scheduled}" if self.scheduled else "would take"
        return f"cluster {state}: {len(self.planned):,} groups, {slices:,} slices → {files:,} files"

    def _repr_html_(self) -> str:
        if self.runs or not self.planned:
            return html_lines(str(self))
        head = "".join(f"<th>{name}</th>" for name in ("partition", "slices", "log files", "new files"))
        rows = "".join(
            f"<tr><td>{escape(group.partition_path)}</td><td>{len(group.slices)}</td>"
            f"<td>{sum(len(s.log_file_names) for s in group.slices)}</td><td>{group.output_file_groups}</td></tr>"
            for group in self.planned
        )
        return f"<div>{escape(str(self))}</div><table><tr>{head}</tr>{rows}</table>"
