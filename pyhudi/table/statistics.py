"""Sizes and write amplification of a table: `HudiTable.stats`. No data file is opened.

Source: docs/formats/timeline.md, "Commit metadata".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import ActionKind
from pyhudi.result import Result
from pyhudi.text_table import readable_bytes, text_table

__all__ = ["CommitStats", "SizeStats", "TableStats", "table_stats"]


@dataclass(frozen=True, slots=True, repr=False)
class SizeStats(Result):
    """Sizes of the newest files of all file groups, log files included, in bytes; 0 without files."""

    files: int = 0
    total: int = 0
    smallest: int = 0
    tenth_percentile: int = 0
    median: int = 0
    mean: int = 0
    ninety_fifth_percentile: int = 0
    largest: int = 0

    @classmethod
    def of(cls, sizes: pa.Array) -> SizeStats:
        """The statistics of sizes in bytes."""
        if len(sizes) == 0:
            return cls()
        values = np.asarray(sizes.to_numpy(zero_copy_only=False), np.int64)
        tenth, half, most = (int(value) for value in np.percentile(values, (10, 50, 95)))
        total = int(values.sum())
        mean = total // len(values)
        return cls(len(values), total, int(values.min()), tenth, half, mean, most, int(values.max()))


@dataclass(frozen=True, slots=True, repr=False)
class CommitStats(Result):
    """What one commit wrote. `amplification`: rows written for each updated row, None where none was updated."""

    instant_time: str
    action: str
    operation: str
    files: int
    bytes_written: int
    rows_written: int
    rows_updated: int
    amplification: float | None


@dataclass(frozen=True, slots=True, repr=False)
class TableStats(Result):
    """`commits`: those of the active timeline, newest first. `amplification`: rows written for each updated row by all
    of them. Delta commits are left out of it: they append, and the compaction rewrites.
    """

    table: str
    sizes: SizeStats
    amplification: float | None
    commits: tuple[CommitStats, ...]

    def __str__(self) -> str:
        s = self.sizes
        head = (
            f"{self.table}: {s.files:,} files of {readable_bytes(s.smallest)} to {readable_bytes(s.largest)}, median "
            f"{readable_bytes(s.median)}, {readable_bytes(s.total)} in all"
        )
        header = ("instant", "action", "operation", "files", "written", "rows", "updated", "rows for an update")
        return f"{head}\n{text_table(header, [_row(commit) for commit in self.commits])}"


def table_stats(meta: MetaClient, sizes: pa.Array) -> TableStats:
    """The statistics of a table. `sizes`: bytes of the newest slice of each file group."""
    commits, updates, writes = [], 0, 0
    for instant in reversed(meta.timeline.commits().instants):
        body = meta.commits.metadata(instant)
        stats = body.stats()
        updated, written = sum(stat.num_update_writes for stat in stats), sum(stat.num_writes for stat in stats)
        rewrites = instant.action is not ActionKind.DELTACOMMIT
        if rewrites:
            updates, writes = updates + updated, writes + written
        commits.append(
            CommitStats(
                instant.requested_time,
                instant.action.value,
                body.operation_type,
                len(stats),
                sum(stat.total_write_bytes for stat in stats),
                written,
                updated,
                _factor(written, updated) if rewrites else None,
            )
        )
    return TableStats(meta.storage.root, SizeStats.of(sizes), _factor(writes, updates), tuple(commits))


def _factor(written: int, updated: int) -> float | None:
    return round(written / updated, 2) if updated else None


def _row(commit: CommitStats) -> Sequence[object]:
    operation, size = commit.operation.lower(), readable_bytes(commit.bytes_written)
    return (
        commit.instant_time,
        commit.action,
        operation,
        commit.files,
        size,
        commit.rows_written,
        commit.rows_updated,
        commit.amplification,
    )
