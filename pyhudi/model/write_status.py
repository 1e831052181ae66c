"""WriteStatus: what a write task reports, one row per file it wrote. A task that fails raises."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.commit import WriteStat

__all__ = ["WriteStatus"]


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """One file written by one task attempt.

    `stat` is what goes into the commit. `updated` and `skipped` count rows of the batch that replaced a row, and rows
    that lost against the stored row (event time); `stat` holds Hudi's own counters. `warning`: what the caller should
    know of the rows, "" for nothing.
    """

    stat: WriteStat
    rows_read: int = 0
    skipped: int = 0
    warning: str = ""
