"""Rows that base files alone show wrongly: those that only log files have, have anew, or have deleted.

They are counted by merging the slices with log files, key columns alone, while their files are small. Of larger ones
the commits that wrote the log files say how many rows they wrote: that is a bound, since a row may be written twice.
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
    These are 0 where `total` is only a bound, None where not even that is known. `since`: the first commit with such a
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
    """Count them.

    Args:    query: how log rows are merged. view: the files of the table.
    Raises:  StaleRead when files go away again and again, CorruptFile for a commit that can't be read.
    """
    spec, slices = None, [one for one in view.all_slices() if one.needs_merge]
    if not slices:
        return RowsInLogs(0)
    with suppress(UnsupportedTable):  # of a merger that nobody here knows, the commits still say something
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
    """How many rows of a slice are missing, stale and deleted in its base file."""
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
    """The first commit that wrote to these log files, None when it is archived."""
    if meta.config.format.has_own_log_files:
        return min(log.instant_time for log in logs)
    return next((time for time, _ in _stats(meta, logs)), None)


def _written(meta: MetaClient, logs: Sequence[LogFile]) -> int | None:
    """How many rows commits say that they wrote to these log files; None when such a commit may be archived."""
    stats, since = [stat for _, stat in _stats(meta, logs)], meta.timeline.active_since
    is_whole = meta.config.format.has_own_log_files or (since or "") <= min(log.instant_time for log in logs)
    if not is_whole or {stat.path for stat in stats} != {log.path for log in logs}:
        return None
    return sum(stat.changed_rows for stat in stats)


def _stats(meta: MetaClient, logs: Sequence[LogFile]) -> Iterator[tuple[str, WriteStat]]:
    """What commits on the active timeline say of these log files, oldest first."""
    paths, first = {log.path for log in logs}, min(log.instant_time for log in logs)
    for instant in meta.timeline.commits():
        if instant.requested_time >= first:
            for stat in meta.commits.metadata(instant).stats():
                if stat.path in paths:
                    yield instant.requested_time, stat
