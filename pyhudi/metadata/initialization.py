"""The building of the metadata table and of its partitions from the table's files. Hold the table's lock.

    .hoodie/metadata/.hoodie/hoodie.properties      the metadata table is a table of its own
    <partition>/<empty log file of each file group> so that file groups without records can be counted
    <partition>/<base file>                         of each file group that has records
    delta commit, then the table's properties list the partition: only now may it be read

Source: docs/formats/metadata-table.md, "Building", "Timeline".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

import pyarrow as pa

from pyhudi.errors import MetadataTableDamaged
from pyhudi.filegroup.write.partition_metadata import ensure_partition_metadata
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.compaction import compact_archived
from pyhudi.metadata.delta_commit import begin_delta_commit, complete_delta_commit
from pyhudi.metadata.group_files import GroupFiles
from pyhudi.metadata.keys import group_numbers, sorted_by_key
from pyhudi.metadata.schema import file_group_id
from pyhudi.metadata.table import SOLO, MetadataTable
from pyhudi.model.commit import WriteStat
from pyhudi.model.filenames import INDEX_DEFINITIONS_PATH, METADATA_TABLE_FOLDER
from pyhudi.model.instant import Instant
from pyhudi.model.merge_mode import PAYLOAD_STRATEGY_ID
from pyhudi.model.new_table import CHECKSUM_KEY, table_checksum
from pyhudi.model.table_config import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT
from pyhudi.storage.subfolder import Subfolder
from pyhudi.timeline.table_properties import create_table, update_table_config

__all__ = [
    "begin_partition",
    "build_partition",
    "create_metadata_table",
    "fill_partition",
    "split_by_group",
]

_DEFINITIONS = "hoodie.table.index.defs.path"
_BUILD = {9: "BULK_INSERT_PREPPED"}  # operation that builds a partition, by table version
_OLDER_BUILD = "BULK_INSERT"
_FIRST_SUFFIX = 10  # below version 8: digits behind the table's latest instant, for its first partition
_TOKEN = "0-0-1"
_PAYLOAD = "org.apache.hudi.metadata.HoodieMetadataPayload"


def create_metadata_table(data: MetaClient) -> MetadataTable:
    """Create a metadata table without partitions; its folder is emptied first."""
    data.storage.delete_tree(METADATA_TABLE_FOLDER)
    folder = Subfolder(data.storage, METADATA_TABLE_FOLDER)
    create_table(folder, _properties(data), data.clock)
    return MetadataTable(data, MetaClient.load(folder, data.clock))


def _properties(data: MetaClient) -> Mapping[str, str]:
    version = data.config.table_version
    properties = {
        "hoodie.table.name": f"{data.config.table_name}_metadata",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": str(version),
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.table.recordkey.fields": "key",
        "hoodie.populate.meta.fields": "false",
        "hoodie.compaction.payload.class": _PAYLOAD,
        "hoodie.datasource.write.drop.partition.columns": "false",
    }
    if data.config.format.stores_merging:
        properties |= {
            "hoodie.table.initial.version": str(version),
            "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
            "hoodie.record.merge.mode": "CUSTOM",
            "hoodie.record.merge.strategy.id": PAYLOAD_STRATEGY_ID,
            "hoodie.timeline.layout.version": "2",
            "hoodie.timeline.path": "timeline",
            "hoodie.timeline.history.path": "history",
            "hoodie.archivelog.folder": "history",
        }
    else:
        properties |= {
            "hoodie.table.keygenerator.class": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
            "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
            "hoodie.timeline.layout.version": "1",
            "hoodie.archivelog.folder": "archived",
        }
    return {**properties, CHECKSUM_KEY: table_checksum(properties)}


def split_by_group(partition: str, records: pa.Table, groups: int, table_version: int) -> Mapping[str, list[pa.Table]]:
    """Split records by file group: file id → its records. Every file group is in the mapping."""
    numbers = group_numbers(partition, records.column("key").combine_chunks(), groups, table_version)
    return {file_group_id(partition, number): [records.filter(pa.array(numbers == number))] for number in range(groups)}


def build_partition(table: MetadataTable, partition: str, groups: Mapping[str, Iterable[pa.Table]]) -> MetadataTable:
    """Build or rebuild a partition and list it in the table's properties; return the metadata table with it.

    Args:   groups: file id → its records, in tables of which only the first may be unsorted: a second table begins
                after the first one's last key. A file group may have no records.
    """
    table = compact_archived(table)
    inflight, empty = _begin(table, partition, groups)
    stats = _base_files(table, partition, inflight, groups)
    table.meta.storage.sync(empty)
    _complete(table, partition, inflight, stats)
    return _list_in_properties(table, partition)


def begin_partition(table: MetadataTable, partition: str, file_ids: Sequence[str]) -> MetadataTable:
    """Create a partition that is filled later: empty file groups, to which every instant writes from now on. The
    table's properties list it as being built, so no reader uses it. Return the metadata table with it.
    """
    table = compact_archived(table)
    inflight, empty = _begin(table, partition, file_ids)
    table.meta.storage.sync(empty)
    _complete(table, partition, inflight, [])
    data = table.data
    building = sorted({*data.config.metadata_partitions_inflight, partition})
    update_table_config(data.storage, {METADATA_PARTITIONS_INFLIGHT: ",".join(building)}, (), data.clock)
    return MetadataTable(data.reload(), table.meta.reload())


def fill_partition(table: MetadataTable, partition: str, groups: Mapping[str, Iterable[pa.Table]]) -> MetadataTable:
    """Write the base files of a partition from `begin_partition`, older than the log files written to it since, and
    list it as built. Return the metadata table with it. `groups`: as for `build_partition`.
    """
    table = compact_archived(table)
    inflight = begin_delta_commit(table, _next_build_time(table))
    _complete(table, partition, inflight, _base_files(table, partition, inflight, groups))
    return _list_in_properties(table, partition)


def _begin(table: MetadataTable, partition: str, file_ids: Iterable[str]) -> tuple[Instant, list[str]]:
    """Start the instant that builds a partition, with empty log files; return the instant and the files' paths."""
    storage = table.meta.storage
    storage.delete_tree(partition)
    instant_time = _next_build_time(table)
    inflight = begin_delta_commit(table, instant_time)
    ensure_partition_metadata(storage, partition, instant_time, table.data.clock)
    files = GroupFiles(storage, table.data.config.table_version, instant_time)
    return inflight, [files.empty_log(partition, file_id) for file_id in file_ids]


def _base_files(
    table: MetadataTable, partition: str, inflight: Instant, groups: Mapping[str, Iterable[pa.Table]]
) -> list[WriteStat]:
    files = GroupFiles(table.meta.storage, table.data.config.table_version, inflight.requested_time)
    stats = []
    for number, (file_id, records) in enumerate(groups.items()):
        filled = _not_empty(records)
        if filled is not None:
            token = f"{number}-0-1"
            path, size_bytes, rows = files.base_file(
                partition, files.base_name(file_id, token), filled, names_itself=False
            )
            stats.append(_stat(partition, file_id, path, size_bytes, rows))
    return stats


def _complete(table: MetadataTable, partition: str, inflight: Instant, stats: Sequence[WriteStat]) -> None:
    operation = _BUILD.get(table.data.config.table_version, _OLDER_BUILD)
    complete_delta_commit(table, inflight, {partition: stats} if stats else {}, operation)


def _not_empty(records: Iterable[pa.Table]) -> Iterator[pa.Table] | None:
    """The tables that have rows, sorted; None if there are none, so that no base file is written."""
    filled = (sorted_by_key(table) for table in records if table.num_rows)
    first = next(filled, None)
    return None if first is None else _chained(first, filled)


def _chained(first: pa.Table, following: Iterator[pa.Table]) -> Iterator[pa.Table]:
    yield first
    yield from following


def _next_build_time(table: MetadataTable) -> str:
    """The instant time that builds the next partition.

    From version 8 on it has 17 digits, counted from 0. Below, it is the time of the table's latest completed instant
    followed by three digits, counted from 010.
    """
    times_in_use = {instant.requested_time for instant in table.meta.timeline}
    if table.data.config.format.orders_by_completion:
        times = (f"{number:017d}" for number in count())
    else:
        completed = (i.requested_time for i in table.data.timeline if i.is_completed)
        base = max(completed, default=SOLO)
        times = (f"{base}{number:03d}" for number in range(_FIRST_SUFFIX, 10**3))
    free_time = next((time for time in times if time not in times_in_use), None)
    if free_time is None:
        raise MetadataTableDamaged(
            f"{table.meta.storage.root}: partitions were built {10**3 - _FIRST_SUFFIX} times since the last instant of "
            f"the table; there are no more digits for another. Write to the table first."
        )
    return free_time


def _stat(partition: str, file_id: str, path: str, size_bytes: int, rows: int) -> WriteStat:
    return WriteStat(
        file_id=file_id,
        path=path,
        partition_path=partition,
        num_writes=rows,
        num_inserts=rows,
        total_write_bytes=size_bytes,
        file_size_in_bytes=size_bytes,
    )


def _list_in_properties(table: MetadataTable, partition: str) -> MetadataTable:
    """List the partition in the table's properties."""
    data = table.data
    partitions = sorted({*data.config.metadata_partitions, partition})
    properties = {METADATA_PARTITIONS: ",".join(partitions)}
    building = data.config.metadata_partitions_inflight
    if partition in building:
        properties[METADATA_PARTITIONS_INFLIGHT] = ",".join(name for name in building if name != partition)
    if data.storage.stat(INDEX_DEFINITIONS_PATH) is not None:
        # Hudi looks for them nowhere else, and starts a new file without them.
        properties[_DEFINITIONS] = INDEX_DEFINITIONS_PATH
    update_table_config(data.storage, properties, (), data.clock)
    return MetadataTable(data.reload(), table.meta.reload())
