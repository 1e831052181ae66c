"""The partitions `secondary_index_<name>`: which record keys have a value of a column.

Source: docs/formats/metadata-table.md, "Secondary index", "Building", "Writing".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.errors import HudiError, UnsupportedTable
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.index_definitions import IndexDefinition, is_partitioned_record_index, read_index_definitions
from pyhudi.metadata.kept_partition import TableCommit
from pyhudi.metadata.partitions import keeps_record_index
from pyhudi.metadata.record_index_groups import record_index_group_count
from pyhudi.metadata.secondary_index_pairs import SecondaryPairs, secondary_records
from pyhudi.metadata.secondary_keys import has_secondary_text
from pyhudi.metadata.table import MetadataTable
from pyhudi.metadata.table_slices import changed_slices, newest_slices, slice_reading, stored_rows
from pyhudi.metadata.updates import PartitionUpdate, nothing_deleted
from pyhudi.model.instant import COMPACTIONS, ActionKind
from pyhudi.model.options.metadata import MetadataOptions

__all__ = ["SecondaryIndexPartition", "why_no_secondary_index"]

_FIRST = 8  # table version from which there are secondary indexes
_BY_VALUE = 9  # from which they are of version V2
_MOVING_ONLY = frozenset({*COMPACTIONS, ActionKind.CLUSTERING})  # rows stay the same


@dataclass(frozen=True, slots=True)
class SecondaryIndexPartition:
    """Keeps the partitions `secondary_index_<name>`."""

    def define(self, table: MetadataTable, partition: str, options: MetadataOptions) -> int:
        """Whoever makes the index defines it."""
        return record_index_group_count(
            stored_rows(table.data.storage, newest_slices(table.data)), options.record_index
        )

    def records(
        self, table: MetadataTable, partition: str, options: MetadataOptions, groups: int | None
    ) -> Mapping[str, Iterable[pa.Table]]:
        """From the values and keys of all rows. Raises UnsupportedTable when the index can't be kept up."""
        data = table.data
        pairs = _pairs(data, partition)
        count = groups or self.define(table, partition, options)
        return pairs.files(partition, newest_slices(data), count)

    def update(self, table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
        """The pairs that came and went in the file groups that the instant changes.

        An instant that takes others back changes none: their own updates are taken out. Raises UnsupportedTable.
        """
        change = commit.change
        if commit.instant.action in _MOVING_ONLY or not (change.stats or change.groups_replaced):
            version = table.data.config.table_version
            return PartitionUpdate(secondary_records(version, nothing_deleted()), nothing_deleted())
        return _pairs(table.data, partition).changes(changed_slices(table, commit))


def _pairs(data: MetaClient, partition: str) -> SecondaryPairs:
    why = why_no_secondary_index(data, partition)
    if why is not None:
        raise UnsupportedTable(f"{data.storage.root}: the partition {partition!r} can't be kept up: {why}.")
    column = read_index_definitions(data.storage).by_name[partition].source_fields[0]
    return SecondaryPairs(data.config.table_version, slice_reading(data), column)


def why_no_secondary_index(data: MetaClient, partition: str, definition: IndexDefinition | None = None) -> str | None:
    """Why this release can't build or keep up a secondary index, as a part of a sentence; None when it can.

    Args:   definition: of one that is to be made; None: as the table has it.
    """
    config = data.config
    if config.table_version < _FIRST:
        return f"the table has version {config.table_version}, and secondary indexes begin with {_FIRST}"
    try:
        definitions = read_index_definitions(data.storage)
        slice_reading(data)
    except HudiError as error:
        return str(error)
    if not keeps_record_index(config):
        return "it needs the record index, which the table does not have"
    if is_partitioned_record_index(definitions):
        return "keys are unique in their partition only: the record index is one per partition of the table"
    found = definition or definitions.by_name.get(partition)
    return f"index.json has no definition of {partition}" if found is None else _why_not_of(data, found)


def _why_not_of(data: MetaClient, definition: IndexDefinition) -> str | None:
    version, schema = data.config.table_version, data.stored_schema()
    if definition.version != ("V2" if version >= _BY_VALUE else None):
        return f"it is of version {definition.version}, which tables of version {version} do not have"
    if len(definition.source_fields) != 1 or definition.function not in ("", "identity"):
        return f"it is of {definition.function!r} of the columns {', '.join(definition.source_fields)}"
    (column,) = definition.source_fields
    if column not in schema.names:
        return f"the table stores no column {column!r}"
    kind = schema.field(column).type
    if not has_secondary_text(kind, version):
        return f"it is not known what text Apache Hudi makes of {kind} ({column})"
    return None
