"""The table's slices that a partition of the metadata table is built from, and those that an instant changes.

Source: docs/formats/metadata-table.md, "Building", "Secondary index"; docs/formats/file-names.md, "Visible slices".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.filegroup.read.log_blocks import BlockRules
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.formats.base import open_base_file
from pyhudi.merge.rules import MergeRules, merge_rules
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.listing import listed_files
from pyhudi.metadata.partitions.base import TableCommit
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import FileGroupId, FileSlice
from pyhudi.model.filenames import data_path
from pyhudi.model.instant import ActionKind, Instant, State, next_instant_time
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.timeline import Timeline
from pyhudi.storage.base import FileInfo, Storage
from pyhudi.view.committed_logs import with_committed_bytes
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["ChangedSlices", "changed_slices", "newest_slices", "slice_reading", "stored_rows"]


def newest_slices(data: MetaClient) -> tuple[FileSlice, ...]:
    """The newest slice of each file group of the table, by a listing of its folders."""
    return with_committed_bytes(data, FileSystemView.load(data).all_slices())


def slice_reading(data: MetaClient) -> SliceSpec:
    """The reading rules of the table's slices. Raises UnsupportedTable if the table's merger is unknown."""
    config = data.config
    schema = pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *data.stored_schema()])
    rules = merge_rules(config) if config.is_merge_on_read else MergeRules()
    return SliceSpec(data.storage, schema, BlockRules(config.table_version, data.timeline.is_visible), rules)


def stored_rows(storage: Storage, slices: Sequence[FileSlice]) -> int:
    """The number of rows in the base files of slices; a footer is read for each."""
    rows = 0
    for file_slice in slices:
        if file_slice.base_file is not None:
            with open_base_file(storage, file_slice.base_file.path) as reader:
                rows += reader.num_rows
    return rows


@dataclass(frozen=True, slots=True)
class ChangedSlices:
    """The newest slices of the file groups that an instant changes: as they are, and as they will be once it is
    complete. A new or replaced file group is in only one of the two.
    """

    before: tuple[FileSlice, ...]
    after: tuple[FileSlice, ...]


def changed_slices(table: MetadataTable, commit: TableCommit) -> ChangedSlices:
    """The changed slices of an instant that is about to complete. From table version 8 on.

    They consist of the files that the metadata table lists and those that the instant reports; files of failed task
    attempts in the folders are in neither.
    """
    data, change = table.data, commit.change
    replaced = change.groups_replaced
    written_groups = {FileGroupId(s.partition_path or "", s.file_id) for s in change.stats if s.path is not None}
    paths = sorted({group.partition_path for group in (*written_groups, *replaced)})
    listing = listed_files(table, paths)
    files = {path: listing.get(path, []) for path in paths}
    with_written = {path: [*files[path], *_files(path, commit)] for path in paths}
    before = FileSystemView.load(data, listed=files).all_slices()
    after = FileSystemView.load(_as_completed(data, commit.instant), listed=with_written).all_slices()
    return ChangedSlices(
        tuple(each for each in before if each.group in written_groups or each.group in replaced),
        tuple(each for each in after if each.group in written_groups and each.group not in replaced),
    )


def _files(path: str, commit: TableCommit) -> list[FileInfo]:
    changed = commit.change.partitions.get(path)
    sizes = {} if changed is None else changed.written
    return [FileInfo(data_path(path, name), size_bytes, 0) for name, size_bytes in sizes.items()]


def _as_completed(data: MetaClient, inflight: Instant) -> MetaClient:
    """The table as if the instant were complete. Replaced file groups are not looked up: the instant's body does not
    exist yet.
    """
    action = inflight.action.completed_as
    action = ActionKind.COMMIT if action is ActionKind.REPLACECOMMIT else action
    latest = max(inflight.requested_time, data.timeline.latest_time or "")
    completed = Instant(inflight.requested_time, action, State.COMPLETED, next_instant_time(latest))
    other_instants = (one for one in data.timeline if one.requested_time != inflight.requested_time)
    return replace(data, timeline=Timeline((*other_instants, completed), data.timeline.active_since))
