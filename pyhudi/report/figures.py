"""The figures at the top of the page: rows, size, last write, health.

Rows are counted where that is cheap, from footers and small log files; elsewhere the page says what a count would cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from pyhudi.display import readable_bytes
from pyhudi.errors import HudiError, TableError
from pyhudi.formats.base import open_base_file
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import OperationType
from pyhudi.model.file_group import BaseFile
from pyhudi.model.instant import parse_instant_time
from pyhudi.services.health import TableHealth
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["first_figures", "offsets", "readable_time"]

FILES_TO_OPEN = 1_000  # reading a footer from an object store takes about 50 ms
_AT_ONCE = 16
BYTES_TO_MERGE = 32_000_000
_NOT_A_WRITE = frozenset(
    {OperationType.COMPACT, OperationType.LOG_COMPACT, OperationType.CLUSTER, OperationType.INDEX}
)  # these actions add no new rows
_HOUR_DIGITS = 10  # of an instant time: `yyyymmddhh`


def first_figures(
    meta: MetaClient, view: FileSystemView, health: TableHealth, timeline: Sequence[Sequence[object]]
) -> list[list[str]]:
    """Return the figures in order, each as name, value, a remark and a state: "", "healthy" or "warning".

    `timeline`: the rows of the page's timeline, newest first.
    """
    return [["rows", *_rows(meta, view)], ["size", *_size(health)], ["last write", *_last_write(meta, timeline)],
            ["health", *_health(health)]]  # fmt: skip


def _rows(meta: MetaClient, view: FileSystemView) -> tuple[str, str, str]:
    parts = [part for _, _, part in view.newest_parts()]
    merged = sum(
        (0 if base is None else base.size_bytes) + sum(log.size_bytes for log in logs)
        for _, base, logs in parts
        if logs or base is None
    )
    if len(parts) > FILES_TO_OPEN:
        return "not counted", f"{len(parts):,} files to open; table.count() counts", ""
    if merged > BYTES_TO_MERGE:
        return "not counted", f"{readable_bytes(merged)} of log and base files to merge; table.count() counts", ""
    try:
        return f"{_merged_rows(meta) if meta.config.is_merge_on_read else _stored_rows(meta, view):,}", "", ""
    except HudiError as error:
        return "not counted", str(error), "warning"


def _stored_rows(meta: MetaClient, view: FileSystemView) -> int:
    """Count rows by the footers of the newest base files, without importing a reader of rows."""

    def rows_of(file: BaseFile) -> int:
        with open_base_file(meta.storage, file.path) as reader:
            return reader.num_rows

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="hudi-count") as pool:
        return sum(pool.map(rows_of, view.all_base_files()))


def _merged_rows(meta: MetaClient) -> int:
    from pyhudi.queries.count import count_rows
    from pyhudi.queries.plan import plan_as_listed
    from pyhudi.queries.query import ALL_ROWS

    return count_rows(plan_as_listed(meta, ALL_ROWS), meta.storage)


def _size(health: TableHealth) -> tuple[str, str, str]:
    files = health.files
    logs = f", {_many(files.log_files, 'log file')}" if files.log_files else ""
    old = f"; older versions: {readable_bytes(files.old_bytes)}" if files.old_bytes else ""
    return readable_bytes(files.base_bytes + files.log_bytes), f"{_many(files.base_files, 'base file')}{logs}{old}", ""


def _last_write(meta: MetaClient, timeline: Sequence[Sequence[object]]) -> tuple[str, str, str]:
    for requested, completed, action, _, operation, inserted, updated, deleted, *_ in timeline:
        if operation and str(operation).upper() not in _NOT_A_WRITE:
            counts = f"{operation}: {inserted:,} inserted, {updated:,} updated, {deleted:,} deleted"
            return (
                readable_time(meta, str(completed or requested)),
                counts if operation != "unknown" else str(action),
                "",
            )
    return "none yet", "", ""


def _health(health: TableHealth) -> tuple[str, str, str]:
    about = ", ".join(dict.fromkeys(one.about for one in health.warnings))
    notes = len(health.findings) - len(health.warnings)
    more = "; ".join(part for part in (about, f"{notes} to note" if notes else "") if part)
    return (f"{len(health.warnings)} to repair", more, "warning") if health.warnings else ("healthy", more, "healthy")


def _many(count: int, name: str) -> str:
    return f"{count:,} {name}{'' if count == 1 else 's'}"


# ---- times


def readable_time(meta: MetaClient, instant_time: str) -> str:
    """`20261128120345123` → `2026-11-28 12:03:45 UTC`, or with the machine's UTC offset at that time."""
    moment = _moment(meta, instant_time)
    if moment is None:
        return instant_time
    return f"{moment:%Y-%m-%d %H:%M:%S} {_zone(meta, moment)}"


def offsets(meta: MetaClient, times: Iterable[str]) -> list[list[str]]:
    """Return the instant times at which each UTC offset starts, oldest first; one entry for a table in UTC."""
    changes: list[list[str]] = []
    for hour in sorted({time[:_HOUR_DIGITS] for time in times}):
        moment = _moment(meta, f"{hour}0000")
        if moment is not None and (not changes or changes[-1][1] != _zone(meta, moment)):
            changes.append([hour, _zone(meta, moment)])
    return changes


def _zone(meta: MetaClient, moment: datetime) -> str:
    if meta.config.timeline_zone is not None:
        return "UTC"
    digits = f"{moment:%z}"
    return f"{digits[:3]}:{digits[3:5]}"


def _moment(meta: MetaClient, instant_time: str) -> datetime | None:
    try:
        moment = parse_instant_time(instant_time, meta.config.timeline_zone)
    except TableError:
        return None  # the page shows the time as it is
    return moment if moment.year > 1970 else None  # earlier times are the fixed ones of bootstraps
