"""The result of a check: how each engine reads a table, and what to do about problems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal, TypeAlias

from pyhudi.display import html_table, text_table
from pyhudi.result import Result, ResultList

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["EngineVerdict", "Level", "SyncCheck", "SyncFinding"]

Level: TypeAlias = Literal["unreadable", "wrong", "unknown", "note"]
_VERDICTS: dict[str, str] = {"unreadable": "no", "wrong": "not all", "unknown": "not known"}  # the worst first
_HEADER = ("", "engine", "finding", "to do")
_MARKS = {"unreadable": "!", "wrong": "!", "unknown": "?", "note": "-"}


@dataclass(frozen=True, slots=True, repr=False)
class SyncFinding(Result):
    """One finding on an engine. `level`: "unreadable", "wrong" (rows are missed or shown wrongly), "unknown", or
    "note". `about`: the condition. `rows`: the number of affected rows, an upper bound if `is_bound`, None if they were
    not counted; `since`: the instant of the first of them. `run`: what to do. `source`: the evidence.
    """

    engine: str
    level: str
    about: str
    text: str
    rows: int | None = None
    is_bound: bool = False
    since: str | None = None
    run: str = ""
    source: str = ""

    @property
    def is_problem(self) -> bool:
        """True if the engine does not read the table, or not all of it correctly."""
        return self.level in ("unreadable", "wrong")

    def __str__(self) -> str:
        return f"{self.engine}: {self.level}: {self.text}{f' → {self.run}' if self.run else ''}"


class _Findings(ResultList[SyncFinding]):
    entry_type, header = SyncFinding, _HEADER


@dataclass(frozen=True, slots=True, repr=False)
class EngineVerdict(Result):
    """`reads`: "all", "not all", "no" or "not known". `checked`: the engine's release in the rules."""

    engine: str
    reads: str
    checked: str

    @classmethod
    def of(cls, engine: str, checked: str, findings: Iterable[SyncFinding]) -> EngineVerdict:
        """The verdict from the findings of an engine."""
        levels = {finding.level for finding in findings}
        return cls(engine, next((verdict for level, verdict in _VERDICTS.items() if level in levels), "all"), checked)

    def __str__(self) -> str:
        return f"{self.engine}: {self.reads} ({self.checked})"


@dataclass(frozen=True, slots=True, repr=False)
class SyncCheck(Result):
    """A table as of its newest commit, `instant_time`, None before the first one. It is true when no finding is a
    problem; there may be notes and unknowns.

    `engines`: a verdict for each. `findings`: the worst first. `catalog`: the compared catalog, "" for none.
    """

    table: str
    table_type: str
    table_version: int
    instant_time: str | None
    engines: tuple[EngineVerdict, ...]
    findings: tuple[SyncFinding, ...] = ()
    catalog: str = ""

    @property
    def ok(self) -> bool:
        """True if no finding is a problem."""
        return not self.problems

    @property
    def problems(self) -> tuple[SyncFinding, ...]:
        """The findings by which an engine does not read the table, or not all of it correctly."""
        return tuple(finding for finding in self.findings if finding.is_problem)

    def __bool__(self) -> bool:
        return self.ok

    def to_arrow(self) -> pa.Table:
        """The findings as rows."""
        return _Findings(self.findings).to_arrow()

    def _summary(self) -> list[str]:
        verdicts = [*_VERDICTS.values(), "all"]
        by_verdict = {verdict: [one.engine for one in self.engines if one.reads == verdict] for verdict in verdicts}
        words = {"no": "can't be read by", "not all": "read in part by", "not known": "not known for", "all": "read by"}
        lines = [f"{words[verdict]}: {', '.join(names)}" for verdict, names in by_verdict.items() if names]
        kind = f"{self.table_type}, version {self.table_version}, as of {self.instant_time or 'no commit'}"
        return [f"{self.table} ({kind})", *lines, *([f"compared with {self.catalog}"] if self.catalog else [])]

    def _rows(self) -> Sequence[Sequence[str]]:
        return [(_MARKS[one.level], one.engine, one.text, one.run) for one in self.findings]

    def __str__(self) -> str:
        return "\n".join([*self._summary(), *([text_table(_HEADER, self._rows())] if self.findings else [])])

    def _repr_html_(self) -> str:
        lines = "".join(f"<div>{escape(line)}</div>" for line in self._summary())
        return lines + (html_table(_HEADER, self._rows()) if self.findings else "")
