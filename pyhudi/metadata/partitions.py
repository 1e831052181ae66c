"""Partitions of the metadata table: what each kind holds, and the names of its file groups.

Source: docs/formats/metadata-table.md, "Partitions".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from pyhudi.errors import UnsupportedTable
from pyhudi.model.table_config import TableConfig

__all__ = [
    "MetadataKind",
    "RecordType",
    "file_group_id",
    "keeps_record_index",
    "kind_of",
    "numbered_file_id",
    "partitioned_file_group_id",
    "partitioned_prefix",
]


class RecordType(int, Enum):
    """`type` of a metadata record."""

    ALL_PARTITIONS = 1
    FILES = 2
    COLUMN_STATS = 3
    BLOOM_FILTERS = 4
    RECORD_INDEX = 5
    PARTITION_STATS = 6
    SECONDARY_INDEX = 7


@dataclass(frozen=True, slots=True)
class _Kind:
    prefix: str  # of the partition's name; the whole name where there is one partition of the kind only
    file_ids: str  # what file ids begin with; "" where the partition's own name says it
    payloads: tuple[str, ...]  # fields of the record of which one holds what this kind knows
    has_many: bool = False


class MetadataKind(Enum):
    """Kinds of partitions."""

    FILES = _Kind("files", "files-", ("filesystemMetadata",))
    COLUMN_STATS = _Kind("column_stats", "col-stats-", ("ColumnStatsMetadata",))
    BLOOM_FILTERS = _Kind("bloom_filters", "bloom-filters-", ("BloomFilterMetadata",))
    RECORD_INDEX = _Kind("record_index", "record-index-", ("recordIndexMetadata",))
    PARTITION_STATS = _Kind("partition_stats", "partition-stats-", ("ColumnStatsMetadata",))
    SECONDARY_INDEX = _Kind("secondary_index_", "", ("SecondaryIndexMetadata",), has_many=True)
    EXPRESSION_INDEX = _Kind("expr_index_", "", ("ColumnStatsMetadata", "BloomFilterMetadata"), has_many=True)

    @property
    def payloads(self) -> tuple[str, ...]:
        """Fields of a metadata record of which one holds what the kind knows."""
        return self.value.payloads

    def file_id_prefix(self, partition: str) -> str:
        """What the file ids of a partition of this kind begin with."""
        return self.value.file_ids or partition.replace("_", "-") + "-"


def kind_of(partition: str) -> MetadataKind:
    """The kind of a partition, by its name. Raises UnsupportedTable for one that this release does not know."""
    for kind in MetadataKind:
        if partition == kind.value.prefix or (kind.value.has_many and partition.startswith(kind.value.prefix)):
            return kind
    raise UnsupportedTable(
        f"The metadata table's partition {partition!r} is of no kind that this release of PyHudi knows "
        f"({', '.join(kind.value.prefix for kind in MetadataKind)})."
    )


def keeps_record_index(config: TableConfig) -> bool:
    """Does the table have a record index that every write keeps up?"""
    name = MetadataKind.RECORD_INDEX.value.prefix
    return name in config.metadata_partitions or name in config.metadata_partitions_inflight


def numbered_file_id(prefix: str, number: int) -> str:
    """File id of the n-th file group of those whose ids begin with the prefix, from 0 on."""
    return f"{prefix}{number:04d}-0"


def file_group_id(partition: str, number: int) -> str:
    """File id of the n-th file group of a partition, from 0 on: `col-stats-0001-0`."""
    return numbered_file_id(kind_of(partition).file_id_prefix(partition), number)


_ESCAPED = re.compile(r'[\x00-\x1f\x7f"#%\'*/:=?\\{\[\]^_-]')


def partitioned_prefix(data_partition: str) -> str:
    """What file ids begin with that a partitioned record index has for a partition of the table."""
    escaped = _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", data_partition)
    return f"{MetadataKind.RECORD_INDEX.value.file_ids}{escaped}-"


def partitioned_file_group_id(data_partition: str, number: int) -> str:
    """File id of the n-th file group that a partitioned record index has for a partition of the table."""
    return numbered_file_id(partitioned_prefix(data_partition), number)
