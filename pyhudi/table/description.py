"""The description of a table from its properties and its timeline (`HudiTable.inspect.describe`), and its files as
plain columns.

It needs neither Arrow nor most of the library: a command that only describes a table starts in a fraction of a second.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.display import pairs_text
from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import size_of_parts
from pyhudi.model.table_config import TableConfig
from pyhudi.model.timeline import Timeline
from pyhudi.redaction import without_credentials
from pyhudi.result import Json, Result
from pyhudi.storage import open_storage
from pyhudi.storage.clock import SystemClock
from pyhudi.timeline.listing import load_config_and_timeline
from pyhudi.view.consistent_read import read_consistently
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["TableDescription", "describe", "described", "file_columns", "partition_columns"]


@dataclass(frozen=True, slots=True, repr=False)
class TableDescription(Result):
    """`newest_commit`: instant time of the newest completed write, None before the first one; `completed`: when it
    became visible. `commits`, `pending`: on the active timeline. `indexes`: partitions of the metadata table that are
    ready. `properties`: of `hoodie.properties`, without credentials.
    """

    name: str
    path: str
    table_type: str
    table_version: int
    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering: tuple[str, ...]
    merge_mode: str
    base_file_format: str
    newest_commit: str | None
    completed: str | None
    commits: int
    pending: int
    indexes: tuple[str, ...]
    properties: Mapping[str, str]

    def __str__(self) -> str:
        shown = {
            "table": self.name,
            "path": self.path,
            "type": f"{self.table_type}, version {self.table_version}, {self.base_file_format.lower()}",
            "record key": ", ".join(self.record_key) or "generated",
            "partitioned by": ", ".join(self.partition_by) or "nothing",
            "who wins": self.merge_mode + (f" by {', '.join(self.ordering)}" if self.ordering else ""),
            "newest commit": self.newest_commit or "none yet",
            "commits": f"{self.commits:,} on the active timeline; pending instants: {self.pending:,}",
            "metadata table": ", ".join(self.indexes) or "none",
        }
        return pairs_text(shown.items())


def describe(path: str | os.PathLike[str], storage_options: Mapping[str, object] | None = None) -> TableDescription:
    """Like `HudiTable.open(path).inspect.describe()`, but loads only a tenth of the library.

    Raises: TableNotFound, UnsupportedTable, CorruptFile, StorageError.
    """
    storage = open_storage(path, storage_options or {})
    config, timeline, _ = load_config_and_timeline(storage, SystemClock())
    return described(storage.root, config, timeline)


def described(root: str, config: TableConfig, timeline: Timeline) -> TableDescription:
    """The description of a table at one moment."""
    newest = timeline.last_commit()
    return TableDescription(
        name=config.table_name,
        path=without_credentials(root),
        table_type=config.table_type,
        table_version=config.table_version,
        record_key=tuple(config.record_key_fields),
        partition_by=tuple(config.partition_fields),
        ordering=tuple(config.ordering_fields),
        merge_mode=config.record_merge_mode,
        base_file_format=config.base_file_format,
        newest_commit=newest.requested_time if newest else None,
        completed=newest.completion_time if newest else None,
        commits=len(timeline.commits()),
        pending=len(timeline.pending()),
        indexes=tuple(sorted(config.metadata_partitions)),
        properties={key: without_credentials(value) for key, value in sorted(config.properties.items())},
    )


def file_columns(meta: MetaClient) -> dict[str, list[Json]]:
    """The columns of `HudiTable.inspect.files`."""
    newest = list(read_consistently(meta, FileSystemView.load).newest_parts())
    return {
        "partition_path": [path for path, _, _ in newest],
        "file_id": [file_id for _, file_id, _ in newest],
        "path": [None if base is None else base.path for _, _, (_, base, _) in newest],
        "instant_time": [instant for _, _, (instant, _, _) in newest],
        "size_bytes": [size_of_parts(parts) for _, _, parts in newest],
        "log_files": [len(logs) for _, _, (_, _, logs) in newest],
    }


def partition_columns(meta: MetaClient) -> dict[str, list[Json]]:
    """The columns of `HudiTable.inspect.partitions`."""
    totals = list(read_consistently(meta, FileSystemView.load).partition_totals())
    return {
        "partition_path": [path for path, _, _, _ in totals],
        "files": [files for _, files, _, _ in totals],
        "size_bytes": [size_bytes for _, _, size_bytes, _ in totals],
        "log_files": [logs for _, _, _, logs in totals],
    }
