"""The partition `record_index`: which file group has each key.

Source: docs/formats/metadata-table.md, "Record index", "Building", "Writing".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.errors import WriteConflict
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.index_definitions import (
    IndexDefinition,
    read_index_definitions,
    write_index_definitions,
)
from pyhudi.metadata.index_pieces import with_keys_read_back
from pyhudi.metadata.kept_partition import TableCommit
from pyhudi.metadata.partitions import MetadataKind, partitioned_prefix
from pyhudi.metadata.placement import groups_by_prefix
from pyhudi.metadata.record_index_building import FirstRecords
from pyhudi.metadata.record_index_groups import record_index_group_count
from pyhudi.metadata.record_index_updates import partitioned_record_index_updates, record_index_update
from pyhudi.metadata.table import MetadataTable
from pyhudi.metadata.table_slices import newest_slices, slice_reading, stored_rows
from pyhudi.metadata.updates import PartitionUpdate
from pyhudi.model.commit import WriteStatus
from pyhudi.model.file_group import FileSlice
from pyhudi.model.instant import COMPACTIONS
from pyhudi.model.new_table import RECORD_INDEX_DEFINITION
from pyhudi.model.options.metadata import MetadataOptions, RecordIndexOptions
from pyhudi.storage.base import Storage

__all__ = ["RecordIndexPartition"]

_BY_PARTITION = "isPartitioned"  # option of the definition


@dataclass(frozen=True, slots=True)
class RecordIndexPartition:
    """Keeps the partition `record_index`."""

    def define(self, table: MetadataTable, partition: str, options: MetadataOptions) -> int | None:
        """Where keys are unique."""
        data = table.data
        by_partition = _is_by_partition(data, partition, options.record_index)
        _define(data, partition, by_partition=by_partition)
        if by_partition:
            return None
        return record_index_group_count(stored_rows(data.storage, newest_slices(data)), options.record_index)

    def records(
        self, table: MetadataTable, partition: str, options: MetadataOptions, groups: int | None
    ) -> Mapping[str, Iterable[pa.Table]]:
        """From the keys of all rows. Raises UnsupportedTable when nobody here knows the table's merger."""
        data = table.data
        slices = newest_slices(data)
        counts: Mapping[str | None, int] = {None: groups} if groups is not None else {}
        counts = counts or _groups(data.storage, slices, options.record_index)
        version, zone = data.config.table_version, data.config.timeline_zone
        return FirstRecords(version, slice_reading(data), slices, counts, zone).files()

    def update(self, table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
        """What came and went, as the tasks reported it.

        Raises: WriteConflict when they did not: the index was built while the write was running.
        """
        config = table.data.config
        _check_reported(table.data, commit)
        prefixes = groups_by_prefix(found.group.file_id for found in table.slices(partition))
        groups = len(prefixes.get(MetadataKind.RECORD_INDEX.value.file_ids, ()))
        statuses: Sequence[WriteStatus] = commit.statuses
        if not _pieces_fit(commit, groups):
            statuses = with_keys_read_back(table.data.storage, statuses)
        what = (commit.instant.requested_time, config.timeline_zone, statuses, commit.replaced_keys)
        if groups:
            return record_index_update(config.table_version, *what)
        updates = partitioned_record_index_updates(config.table_version, *what)
        by_prefix = {partitioned_prefix(path): update for path, update in updates.items()}
        nothing = record_index_update(config.table_version, commit.instant.requested_time, None, ())
        return replace(nothing, of_groups=by_prefix, new_groups=commit.options.record_index.partition_groups_min)


def _check_reported(data: MetaClient, commit: TableCommit) -> None:
    if commit.instant.action in COMPACTIONS:
        return  # rows stay in their file groups
    reported = {status.stat.path for status in commit.statuses if status.new_keys is not None}
    silent = [stat.path for stat in commit.change.stats if stat.path not in reported]
    if silent:
        raise WriteConflict(
            f"{data.storage.root}: a record index was made while {commit.instant.requested_time} was running, whose "
            f"tasks did not know of it: nobody has said which keys {silent[0]} has. Nothing of this write is visible; "
            f"write again."
        )


def _pieces_fit(commit: TableCommit, groups: int) -> bool:
    """May index pieces be written as they are? Of keys that leave the table somebody has to say which came again."""
    pieces = [piece for status in commit.statuses for piece in status.index_pieces]
    removed = any(status.removed_keys is not None and len(status.removed_keys) for status in commit.statuses)
    left = removed or any(len(keys) for keys in commit.replaced_keys.values())
    return not pieces or (not left and all(piece.of_groups == groups for piece in pieces))


def _is_by_partition(data: MetaClient, name: str, own: RecordIndexOptions) -> bool:
    """Are keys unique in their partition? What a call does not say the definition of the index says that was there."""
    if own.is_global or own.is_partitioned:
        return own.is_partitioned
    definition = read_index_definitions(data.storage).by_name.get(name)
    return definition is not None and definition.options.get(_BY_PARTITION) == "true"


def _define(data: MetaClient, name: str, *, by_partition: bool) -> None:
    """Say in the table's index definitions what the index is of, as Hudi does from version 9 on."""
    if data.config.table_version < RECORD_INDEX_DEFINITION:
        return
    definition = IndexDefinition(name, name, options={_BY_PARTITION: str(by_partition).lower()}, version="V1")
    write_index_definitions(data.storage, read_index_definitions(data.storage).merged([definition]))


def _groups(storage: Storage, slices: Sequence[FileSlice], own: RecordIndexOptions) -> Mapping[str | None, int]:
    """How many file groups each partition of the table gets; a footer is read for each base file."""
    by_path: dict[str | None, list[FileSlice]] = {}
    for file_slice in slices:
        by_path.setdefault(file_slice.group.partition_path, []).append(file_slice)
    return {
        path: record_index_group_count(stored_rows(storage, of_path), own, of_partition=True)
        for path, of_path in by_path.items()
    }
