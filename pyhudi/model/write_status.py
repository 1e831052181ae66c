"""WriteStatus: what a write task reports, one row per file it wrote. A task that fails raises."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyhudi.model.commit import WriteStat

__all__ = ["IndexPiece", "WriteStatus"]


@dataclass(frozen=True, slots=True)
class IndexPiece:
    """Records of keys that one task wrote, for one file group of the record index: an HFile of `size_bytes` bytes at
    `offset` of the temporary file `path` (relative to the table). `group`: its number among `of_groups`, as many as the
    index had when the task ran.
    """

    group: int
    of_groups: int
    path: str
    offset: int
    size_bytes: int
    records: int


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """One file written by one task attempt.

    `stat` is what goes into the commit. `updated` and `skipped` count rows of the batch that replaced a row, and rows
    that lost against the stored row (event time); `stat` holds Hudi's own counters. `warning`: what the caller should
    know of the rows, "" for nothing.

    For the indexes of the metadata table, None unless the write's spec wants them: `column_stats`: one row per indexed
    column of this file, the fields of `ColumnStatsMetadata`. `new_keys`: record keys (text) that this file's file group
    did not have before; `removed_keys`: those that it does not have any more. `index_pieces`: what tasks of large
    writes report instead of new keys, those of this file and of others.
    """

    stat: WriteStat
    rows_read: int = 0
    skipped: int = 0
    warning: str = ""
    column_stats: pa.Table | None = None
    new_keys: pa.Array | None = None
    removed_keys: pa.Array | None = None
    index_pieces: tuple[IndexPiece, ...] = ()
