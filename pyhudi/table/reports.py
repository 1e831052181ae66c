"""Reports of HudiTable: columns, history, files, partitions, sizes, the difference of two commits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyhudi.display import html_pairs, pairs_text, readable_bytes, text_table
from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import ActionKind
from pyhudi.model.keys import META_COLUMNS
from pyhudi.result import Result
from pyhudi.table.calls import Options, TableHandle, in_session_zone
from pyhudi.table.description import file_columns, partition_columns
from pyhudi.view.consistent_read import read_consistently
from pyhudi.view.file_system_view import FileSystemView

if TYPE_CHECKING:
    from pyhudi.actions.action import ActionContext
    from pyhudi.queries.history import History
    from pyhudi.queries.query import AsOf
    from pyhudi.report.html import Report
    from pyhudi.services.health import TableHealth

__all__ = [
    "FILES_SCHEMA",
    "PARTITIONS_SCHEMA",
    "CommitStats",
    "PartitionDiff",
    "SizeStats",
    "TableDiff",
    "TableStats",
    "data_schema",
    "files",
    "health",
    "history",
    "html",
    "one_line",
    "partitions",
    "report",
    "table_diff",
    "table_stats",
]

FILES_SCHEMA = pa.schema(
    [
        ("partition_path", pa.string()),
        ("file_id", pa.string()),
        ("path", pa.string()),
        ("instant_time", pa.string()),
        ("size_bytes", pa.int64()),
        ("log_files", pa.int32()),
    ]
)
PARTITIONS_SCHEMA = pa.schema(
    [("partition_path", pa.string()), ("files", pa.int64()), ("size_bytes", pa.int64()), ("log_files", pa.int64())]
)


def data_schema(meta: MetaClient) -> pa.Schema:
    """`HudiTable.schema`."""
    from pyhudi.queries.schema import read_schema

    return pa.schema([field for field in read_schema(meta, None) if field.name not in META_COLUMNS])


def history(handle: TableHandle, limit: int | None, archived: bool, since: AsOf | None, until: AsOf | None) -> History:
    """`HudiTable.history`."""
    from pyhudi.queries.history import load_table_history
    from pyhudi.queries.query import parse_as_of

    meta = handle.fresh()
    zone = meta.config.timeline_zone
    first, last = (
        None if end is None else parse_as_of(in_session_zone(end, handle.spark), zone) for end in (since, until)
    )
    return load_table_history(meta, limit, archived=archived, since=first, until=last)


def health(handle: TableHandle, options: Options | None, deep: bool) -> TableHealth:
    """`HudiTable.inspect.health`."""
    from pyhudi.services.health import health

    return handle.serve(partial(health, deep=deep), options, {}, dry_run=True, admit=lambda context: None)


def report(handle: TableHandle, path: str | os.PathLike[str] | None, options: Options | None) -> Report | str:
    """`HudiTable.inspect.report`."""
    from pyhudi.report.facts import table_facts
    from pyhudi.report.html import Report, report_html
    from pyhudi.services.health import health_and_files

    if path is not None and "://" in os.fspath(path):
        raise ConfigError(
            f"report({os.fspath(path)!r}) would write to another store; expected a path on this machine. Write the "
            "page here and copy it, or use its text: table.inspect.report().html."
        )

    def looked_at(context: ActionContext) -> tuple[TableHealth, FileSystemView, MetaClient]:
        return *health_and_files(context), context.meta  # one moment, and one listing

    checked, view, meta = handle.serve(looked_at, options, {}, dry_run=True, admit=lambda context: None)
    page = report_html(table_facts(meta, view, checked, data_schema(meta)))
    if path is None:
        return Report(page)
    Path(path).write_text(page, "utf-8")
    return str(path)


def files(meta: MetaClient) -> pa.Table:
    """`HudiTable.inspect.files`."""
    return pa.table(file_columns(meta), schema=FILES_SCHEMA)


def partitions(meta: MetaClient) -> pa.Table:
    """`HudiTable.inspect.partitions`."""
    return pa.table(partition_columns(meta), schema=PARTITIONS_SCHEMA)


def one_line(meta: MetaClient) -> str:
    """The text of a table in Python."""
    return f"HudiTable({meta.config.table_name!r} at {meta.storage.root}: {meta.config.description})"


def html(meta: MetaClient) -> str:
    """The HTML of a table in a notebook."""
    config = meta.config
    last = meta.timeline.last_commit()
    pairs = {
        "table": config.table_name,
        "path": meta.storage.root,
        "type": f"{config.table_type}, version {config.table_version}",
        "record key": ", ".join(config.record_key_fields) or "generated",
        "partitioned by": ", ".join(config.partition_fields) or "nothing",
        "last commit": last.requested_time if last else "none yet",
    }
    return html_pairs(pairs.items())


@dataclass(frozen=True, slots=True, repr=False)
class SizeStats(Result):
    """Sizes of the newest files of all file groups, including log files, in bytes; 0 without files."""

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
        tenth, half, high = (int(value) for value in np.percentile(values, (10, 50, 95)))
        total = int(values.sum())
        mean = total // len(values)
        return cls(len(values), total, int(values.min()), tenth, half, mean, high, int(values.max()))


@dataclass(frozen=True, slots=True, repr=False)
class CommitStats(Result):
    """The totals of one commit. `amplification`: rows written for each updated row, None if none was updated."""

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
    of them. Delta commits don't count in it: they append, and compactions rewrite.
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
        totals = meta.commits.totals(instant)
        updated, written = totals.rows_updated, totals.rows_written
        rewrites = instant.action is not ActionKind.DELTACOMMIT
        if rewrites:
            updates, writes = updates + updated, writes + written
        commits.append(
            CommitStats(
                instant.requested_time,
                instant.action.value,
                totals.operation_type,
                totals.files,
                totals.bytes_written,
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


@dataclass(frozen=True, slots=True, repr=False)
class PartitionDiff(Result):
    """Files added to and removed from one partition, with their bytes."""

    partition_path: str
    files_added: int
    files_removed: int
    bytes_added: int
    bytes_removed: int


@dataclass(frozen=True, slots=True, repr=False)
class TableDiff(Result):
    """From the commit `since` to the commit `until`. `commits`: instants after the first, up to the second. Rows are
    those in their write stats. Columns: `name type`.
    """

    table: str
    since: str
    until: str
    commits: tuple[str, ...] = ()
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    columns_added: tuple[str, ...] = ()
    columns_removed: tuple[str, ...] = ()
    partitions: tuple[PartitionDiff, ...] = ()

    def __str__(self) -> str:
        shown = {
            "from": self.since,
            "to": self.until,
            "commits": len(self.commits),
            "rows": f"{self.rows_inserted:,} inserted, {self.rows_updated:,} updated, {self.rows_deleted:,} deleted",
            "columns added": ", ".join(self.columns_added) or "none",
            "columns removed": ", ".join(self.columns_removed) or "none",
        }
        rows = [list(one.to_dict().values()) for one in self.partitions]
        header = ("partition", "files added", "removed", "bytes added", "removed")
        return "\n".join([pairs_text(shown.items()), *([text_table(header, rows)] if rows else [])])


def table_diff(meta: MetaClient, since: str, until: str) -> TableDiff:
    """The difference. `since`, `until`: instant times of commits.

    Raises: ConfigError for two commits in the wrong order.
    """
    if since > until:
        raise ConfigError(f"diff goes from an earlier commit to a later one, found {since} and {until}.")
    commits = [one for one in meta.timeline.commits() if since < one.requested_time <= until]
    stats = [stat for one in commits for stat in meta.commits.metadata(one).stats()]
    before, after = _columns(meta, since), _columns(meta, until)
    return TableDiff(
        meta.storage.root,
        since,
        until,
        tuple(one.requested_time for one in commits),
        sum(stat.num_inserts for stat in stats),
        sum(stat.num_update_writes for stat in stats),
        sum(stat.num_deletes for stat in stats),
        tuple(f"{field.name} {field.type}" for field in after if field not in before),
        tuple(f"{field.name} {field.type}" for field in before if field not in after),
        _partitions(_files(meta, since), _files(meta, until)),
    )


def _columns(meta: MetaClient, time: str) -> list[pa.Field]:
    from pyhudi.formats.avro.schema import arrow_from_avro, without_meta

    text = meta.commits.schema_json_as_of(meta.timeline, time)
    return [] if text is None else list(without_meta(arrow_from_avro(text)))


def _files(meta: MetaClient, time: str) -> dict[tuple[str, str], int]:
    """Partition and path of each file of the newest slices at that time, with its bytes."""
    view = read_consistently(meta, lambda now: FileSystemView.load(now, as_of=time))
    files: dict[tuple[str, str], int] = {}
    for one in view.all_slices():
        partition = one.group.partition_path
        if one.base_file is not None:
            files[partition, one.base_file.path] = one.base_file.size_bytes
        files |= {(partition, log.path): log.size_bytes for log in one.log_files}
    return files


def _partitions(before: dict[tuple[str, str], int], after: dict[tuple[str, str], int]) -> tuple[PartitionDiff, ...]:
    counts: dict[str, list[int]] = {}
    for number, (files, others) in enumerate(((after, before), (before, after))):
        for (partition, path), size_bytes in files.items():
            if (partition, path) not in others:
                row = counts.setdefault(partition, [0, 0, 0, 0])
                row[number] += 1
                row[2 + number] += size_bytes
    return tuple(PartitionDiff(partition, *row) for partition, row in sorted(counts.items()))
