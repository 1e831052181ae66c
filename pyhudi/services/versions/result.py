"""VersionChange: what an upgrade or downgrade did, for its caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape

__all__ = ["StepResult", "VersionChange"]


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step between two versions. `instants` of the active timeline and `archived` ones were rewritten;
    `properties_set` and `properties_removed` are keys of `hoodie.properties`.
    """

    source: int
    target: int
    instants: int = 0
    archived: int = 0
    properties_set: Mapping[str, str] = field(default_factory=dict)
    properties_removed: tuple[str, ...] = ()

    def __str__(self) -> str:
        changed = f"{len(self.properties_set)} properties set, {len(self.properties_removed)} removed"
        moved = f", {self.instants:,} instants and {self.archived:,} archived ones rewritten"
        moved = moved if self.instants or self.archived else ""
        return f"version {self.source} → {self.target}: {changed}{moved}"


@dataclass(frozen=True, slots=True)
class VersionChange:
    """From `source` to `target`. `rolled_back`: failed writes that were undone first; `compacted`: compactions that
    compacted log files first.
    """

    table: str
    source: int
    target: int
    steps: tuple[StepResult, ...] = ()
    rolled_back: tuple[str, ...] = ()
    compacted: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.source == self.target:
            return f"{self.table} has version {self.target} already"
        done = [f"{self.table}: version {self.source} → {self.target}", *(f"  {step}" for step in self.steps)]
        done += [f"  rolled back: {', '.join(self.rolled_back)}"] if self.rolled_back else []
        done += [f"  compacted: {', '.join(self.compacted)}"] if self.compacted else []
        return "\n".join(done)

    def _repr_html_(self) -> str:
        return "".join(f"<div>{escape(line)}</div>" for line in str(self).split("\n"))
