"""ArchiveResult: what an archiving run took off the active timeline, or would take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pyhudi.model.instant import Instant
from pyhudi.text_table import html_table, text_table

__all__ = ["ArchiveResult"]

_HEADER = ("instant", "completed", "action")


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    """`archived`: the instants, oldest first. `kept_for`: why more were not taken, None when nothing was in the way.
    `files`: history files that were made. `dry_run`: nothing was done.
    """

    table: str
    archived: tuple[Instant, ...] = ()
    kept_for: str | None = None
    files: tuple[str, ...] = ()
    dry_run: bool = False

    @property
    def instant_times(self) -> tuple[str, ...]:
        """The requested times of `archived`."""
        return tuple(instant.requested_time for instant in self.archived)

    def _summary(self) -> str:
        because = f"; more would go but for {self.kept_for}" if self.kept_for else ""
        if not self.archived:
            return f"archive: nothing to do{because}"
        counts = Counter(instant.action.value for instant in self.archived)
        kinds = ", ".join(f"{count:,} {action}" for action, count in sorted(counts.items()))
        verb = "would archive" if self.dry_run else "archived"
        return f"{verb} {kinds}: {self.archived[0].requested_time} to {self.archived[-1].requested_time}{because}"

    def _rows(self) -> Sequence[Sequence[object]]:
        return [(i.requested_time, i.completion_time, i.action.value) for i in self.archived]

    def __str__(self) -> str:
        return (
            f"{self._summary()}\n{text_table(_HEADER, self._rows())}"
            if self.dry_run and self.archived
            else self._summary()
        )

    def _repr_html_(self) -> str:
        table = html_table(_HEADER, self._rows()) if self.archived else ""
        return f"<div>{escape(self._summary())}</div>{table}"
