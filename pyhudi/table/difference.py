"""What came between two moments of a table: `HudiTable.diff`. No data file is opened.

Files are those of the newest slices: an update replaces a file by its next version, which adds one and removes one.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.formats.avro.schema import arrow_from_avro, without_meta
from pyhudi.meta_client import MetaClient
from pyhudi.result import Result
from pyhudi.text_table import pairs_text, text_table
from pyhudi.view.consistent_read import read_consistently
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["PartitionDiff", "TableDiff", "table_diff"]


@dataclass(frozen=True, slots=True, repr=False)
class PartitionDiff(Result):
    """Files that came and went in one partition, with their bytes."""

    partition_path: str
    files_added: int
    files_removed: int
    bytes_added: int
    bytes_removed: int


@dataclass(frozen=True, slots=True, repr=False)
class TableDiff(Result):
    """From the commit `since` to the commit `until`. `commits`: instants after the one, up to the other. Rows are those
    that their write stats count. Columns: `name type`.
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
