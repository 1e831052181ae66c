"""CleanResult: what cleaning did, or would do and why, for its caller."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from pyhudi.model.filenames import data_path
from pyhudi.services.clean.deletions import Deletions
from pyhudi.text_table import html_lines

__all__ = ["CleanResult", "CleanRun"]

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class CleanRun:
    """One completed clean. `earliest`: the table can be read as of this instant and later ones; None when the policy
    names no instant. `partitions_removed`: those that had no files left.
    """

    instant_time: str
    completion_time: str
    earliest: str | None
    files_deleted: int
    partitions_removed: tuple[str, ...]
    total_s: float


@dataclass(frozen=True, slots=True)
class CleanResult:
    """`planned`: slices of the plan that this call made, or would make (dry run). `scheduled`: its instant, None when
    nothing was scheduled. `earliest`: the table can be read as of this instant and later ones when the plan is done, or
    now, when there is nothing to do; None when the policy names no instant and nothing was cleaned. `runs`: plans that
    this call executed. `rolled_back`: writes of dead writers.
    """

    table: str
    policy: str
    earliest: str | None = None
    planned: Deletions = field(default_factory=Deletions)
    partitions_planned: tuple[str, ...] = ()
    scheduled: str | None = None
    runs: tuple[CleanRun, ...] = ()
    rolled_back: tuple[str, ...] = ()

    @property
    def instant_times(self) -> tuple[str, ...]:
        """The completed instants."""
        return tuple(run.instant_time for run in self.runs)

    @property
    def files_planned(self) -> tuple[str, ...]:
        """Paths of the files of the plan, relative to the table."""
        return tuple(
            data_path(partition_path, name)
            for partition_path, names in self.planned.names_by_partition()
            for name in names
        )

    def __str__(self) -> str:
        done = [
            f"clean {run.instant_time} (complete {run.completion_time}): {run.files_deleted:,} files deleted"
            f"{_and_partitions(run.partitions_removed)}{_since(run.earliest)}; {run.total_s:.2f} s"
            for run in self.runs
        ]
        if done:
            return "\n".join(done)
        if not self.planned and not self.partitions_planned:
            return f"clean ({self.policy}): nothing to do{_since(self.earliest)}"
        files = self.planned.file_count
        state = f"scheduled as {self.scheduled}" if self.scheduled else f"({self.policy}) would delete"
        head = f"clean {state}: {files:,} files{_and_partitions(self.partitions_planned)}{_since(self.earliest)}"
        lines = [
            f"  {deletion.partition_path or '.'}: {', '.join(deletion.names)}: {deletion.reason}"
            for deletion in self.planned[:_SHOWN]
        ]
        more = [f"  and {len(self.planned) - _SHOWN:,} more slices"] if len(self.planned) > _SHOWN else []
        return "\n".join([head, *lines, *more])

    def _repr_html_(self) -> str:
        head = str(self).split("\n  ")[0]
        if self.runs or not self.planned:
            return html_lines(str(self))
        rows = "".join(
            f"<tr><td>{escape(d.partition_path)}</td><td>{escape(', '.join(d.names))}</td><td>{escape(d.reason)}</td>"
            f"</tr>"
            for d in self.planned[:_SHOWN]
        )
        names = "".join(f"<th>{name}</th>" for name in ("partition", "files", "why"))
        return f"<div>{escape(head)}</div><table><tr>{names}</tr>{rows}</table>"


def _and_partitions(partitions: tuple[str, ...]) -> str:
    return f" and {len(partitions):,} empty partitions" if partitions else ""


def _since(earliest: str | None) -> str:
    return f", readable as of {earliest} and later" if earliest else ""
