"""What the results of compaction, log compaction and clustering have in common: a plan, and the runs of plans."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Generic, TypeVar

from pyhudi.text_table import html_lines

__all__ = ["PlanResult", "PlanRun"]

PlannedT = TypeVar("PlannedT")
RunT = TypeVar("RunT", bound="PlanRun")


class PlanRun(ABC):
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
        """What was done, in a line."""
        ...


class PlanResult(ABC, Generic[PlannedT, RunT]):
    """`planned`: what is in the plan that this call made, or would make (dry run). `scheduled`: its instant, None when
    nothing was scheduled. `runs`: plans that this call executed.
    """

    __slots__ = ()
    planned: tuple[PlannedT, ...]
    scheduled: str | None
    runs: tuple[RunT, ...]

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
        """What the service is called."""
        ...

    @abstractmethod
    def _plan_summary(self) -> str:
        """What the plan takes, in a line."""
        ...

    @abstractmethod
    def _plan_table(self) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        """The plan as a table: its header, and a row of each thing that is planned."""
        ...

    def __str__(self) -> str:
        name = self._name()
        if self.runs:
            return "\n".join(
                f"{name} {run.instant_time} (complete {run.completion_time}): {run._summary()}; {run.total_s:.2f} s"
                for run in self.runs
            )
        if not self.planned:
            return f"{name}: nothing to do"
        state = f"scheduled as {self.scheduled}" if self.scheduled else "would take"
        return f"{name} {state}: {self._plan_summary()}"

    def _repr_html_(self) -> str:
        if self.runs or not self.planned:
            return html_lines(str(self))
        names, rows = self._plan_table()
        head = "".join(f"<th>{name}</th>" for name in names)
        body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
        return f"<div>{escape(str(self))}</div><table><tr>{head}</tr>{body}</table>"
