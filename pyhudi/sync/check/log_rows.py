"""Rows that base files alone show wrongly: rows that log files add, update or delete.

They are counted by merging only the key columns of slices with log files, if their files are small. For larger ones
the stats of the commits that wrote the log files give a bound, because a row may have been written twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pyhudi.errors import CorruptFile, UnsupportedTable
from pyhudi.filegroup.read.slice import SliceMerge, SliceSpec
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import WriteStat
from pyhudi.model.file_group import FileSlice, LogFile
from pyhudi.model.keys import RECORD_KEY
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["RowsInLogs", "rows_in_logs"]

COUNTED_BYTES = 256 << 20  # of base files and log files: some seconds, and the keys of the log files in memory


@dataclass(frozen=True, slots=True)
class RowsInLogs:
    """`missing`: only in log files; `stale`: base files have an older version; `deleted`: base files still have them.
    These are 0 if `total` is only a bound, which is None if it is unknown. `since`: the first commit with such a
    row.
    """

    files: int
    since: str | None = None
    total: int | None = 0
    is_bound: bool = False
    missing: int = 0
    stale: int = 0
    deleted: int = 0


def rows_in_logs(
    meta: MetaClient, query: Query, view: FileSystemView, counted_bytes: int = COUNTED_BYTES
) -> RowsInLogs:
    """Count the rows that base files alone show wrongly.

    Args:    query: how log rows are merged. view: the files of the table.
    Raises:  StaleRead when files keep being deleted, CorruptFile for a commit that can't be read.
    """
    spec, slices = None, [one for one in view.all_slices() if one.needs_merge]
    if not slices:
        return RowsInLogs(0)
    with suppress(UnsupportedTable):  # with an unknown merger, the commits still give a bound
        plan = plan_snapshot(meta, query)
        spec, slices = plan.merge, [read.file_slice for read in plan.slices if read.merges]
    logs = [log for one in slices for log in one.log_files]
    if spec is not None and sum(one.size_bytes for one in slices) <= counted_bytes:
        with suppress(CorruptFile, UnsupportedTable):
            parts = [_counted(spec, one) for one in slices]
            missing, stale, deleted = (sum(part) for part in zip(*parts, strict=True))
            return RowsInLogs(len(logs), _since(meta, logs), missing + stale + deleted, False, missing, stale, deleted)
    return RowsInLogs(len(logs), _since(meta, logs), _written(meta, logs), True)


def _counted(spec: SliceSpec, file_slice: FileSlice) -> tuple[int, int, int]:
    """The numbers of rows of a slice that are missing, stale and deleted in its base file."""
    merge, late = SliceMerge.of(spec, file_slice, spec.read_schema([RECORD_KEY])), 0
    base = merge.file_slice.base_file
    if base is not None:
        with spec.open_base(base.path) as reader:
            for _ in merge.base_rows(reader):
                late += len(merge.late_keys) if merge.in_pairs else 0  # the base row has won
    for _ in merge.log_rows():
        pass
    return merge.inserted, merge.updated - late, merge.deleted


def _since(meta: MetaClient, logs: Sequence[LogFile]) -> str | None:
    """The first commit that wrote to these log files, None if it is archived."""
    if meta.config.format.has_own_log_files:
        return min(log.instant_time for log in logs)
    return next((time for time, _ in _stats(meta, logs)), None)


def _written(meta: MetaClient, logs: Sequence[LogFile]) -> int | None:
    """The number of rows in these log files by write stats; None if such a commit may be archived."""
    stats, since = [stat for _, stat in _stats(meta, logs)], meta.timeline.active_since
    is_whole = meta.config.format.has_own_log_files or (since or "") <= min(log.instant_time for log in logs)
    if not is_whole or {stat.path for stat in stats} != {log.path for log in logs}:
        return None
    return sum(stat.changed_rows for stat in stats)


def _stats(meta: MetaClient, logs: Sequence[LogFile]) -> Iterator[tuple[str, WriteStat]]:
    """The write stats of these log files on the active timeline, oldest first."""
    paths, first = {log.path for log in logs}, min(log.instant_time for log in logs)
    for instant in meta.timeline.commits():
        if instant.requested_time >= first:
            for stat in meta.commits.metadata(instant).stats():
                if stat.path in paths:
                    yield instant.requested_time, stat
