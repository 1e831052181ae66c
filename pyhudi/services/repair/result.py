"""The result of a repair: each damage with its repair, and the instant of the repair."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.display import html_table, readable_bytes, text_table
from pyhudi.result import Result

__all__ = ["PropertyItem", "RepairItem", "RepairResult"]

_SHOWN = 20
_HEADER = ("where", "problem", "action")


@dataclass(frozen=True, slots=True, repr=False)
class RepairItem(Result):
    """One damage. `where`: a path in the table, a partition path, an instant or a key of the properties. `action`: what
    the repair does, "" where it leaves the damage as it is. `size_bytes`: of the file, 0 for other things.
    """

    where: str
    problem: str
    action: str = ""
    size_bytes: int = 0

    def __str__(self) -> str:
        return f"{self.where or '.'}: {self.problem}{f' → {self.action}' if self.action else ''}"


@dataclass(frozen=True, slots=True, repr=False)
class PropertyItem(RepairItem):
    """A property that is missing, superfluous or wrong: its value before and after, None if it is absent. Values of
    secrets are `***`.
    """

    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class RepairResult(Result):
    """`items`: the damage. `is_done`: this call repaired it; False for a dry run, and if there was nothing to
    do. `instant_time`: the instant of the repair, None for repairs without one. `run`: the call that repairs it.
    """

    table: str
    repair: str
    items: tuple[RepairItem, ...] = ()
    is_done: bool = False
    instant_time: str | None = None
    run: str = ""

    @property
    def repairable(self) -> tuple[RepairItem, ...]:
        """The items that can be repaired."""
        return tuple(item for item in self.items if item.action)

    def _summary(self) -> str:
        if not self.items:
            return f"repair {self.repair}: nothing to do"
        size = sum(item.size_bytes for item in self.repairable)
        count = f"{len(self.repairable):,} to repair" if not self.is_done else f"{len(self.repairable):,} repaired"
        unrepaired = len(self.items) - len(self.repairable)
        by = f" by {self.instant_time}" if self.instant_time else ""
        more = f", {unrepaired:,} left as they are" if unrepaired else ""
        return f"repair {self.repair}: {count}{by}{f' ({readable_bytes(size)})' if size else ''}{more}"

    def _rows(self) -> list[tuple[str, str, str]]:
        return [(item.where or ".", item.problem, item.action or "-") for item in self.items[:_SHOWN]]

    def __str__(self) -> str:
        if not self.items:
            return self._summary()
        more = f"\nand {len(self.items) - _SHOWN:,} more" if len(self.items) > _SHOWN else ""
        return f"{self._summary()}\n{text_table(_HEADER, self._rows())}{more}"

    def _repr_html_(self) -> str:
        return f"<div>{self._summary()}</div>{html_table(_HEADER, self._rows()) if self.items else ''}"
