"""PartitionWriter: how one kind of partition of the metadata table is built and kept up. One file and one row of
`registry.PARTITIONS` per kind.

Source: docs/formats/metadata-table.md, "Building", "Writing".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from pyhudi.formats.avro.schema import arrow_from_avro, without_meta
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.table import MetadataTable
from pyhudi.metadata.updates import PartitionUpdate
from pyhudi.model.commit import TableChange, WriteStatus
from pyhudi.model.instant import Instant
from pyhudi.model.options.metadata import DEFAULT_METADATA, MetadataOptions

__all__ = ["PartitionWriter", "TableCommit"]


@dataclass(frozen=True, slots=True)
class TableCommit:
    """An instant of the data table that is about to complete. `change`: what it changed; `statuses`: what its tasks
    reported, () for actions without tasks, and where another process had run them. `replaced_keys`: by partition path,
    the keys in file groups that the instant takes out of the table, where somebody keeps a record index; none for file
    groups whose rows it wrote to others. `options`: of the call. `schema_json`: Avro of the table's columns from this
    instant on, None where it does not say.
    """

    instant: Instant
    change: TableChange
    statuses: tuple[WriteStatus, ...] = ()
    replaced_keys: Mapping[str, pa.Array] = field(default_factory=dict)
    options: MetadataOptions = DEFAULT_METADATA
    schema_json: str | None = None

    def stored_schema(self, data: MetaClient) -> pa.Schema:
        """The data columns, as files store them, when the instant is complete."""
        if self.schema_json is None:
            return data.stored_schema()
        dropped = data.config.dropped_partition_fields
        columns = without_meta(arrow_from_avro(self.schema_json))
        return pa.schema([column for column in columns if column.name not in dropped])


class PartitionWriter(Protocol):
    """One kind of partition. All calls but `records` are made under the data table's lock."""

    def define(self, table: MetadataTable, partition: str, options: MetadataOptions) -> int | None:
        """Write the definition that a new partition has, if it has one by itself; the number of its file groups.

        None: they go by the partitions of the table, and only `records` knows them.
        """
        ...

    def records(
        self, table: MetadataTable, partition: str, options: MetadataOptions, groups: int | None
    ) -> Mapping[str, Iterable[pa.Table]]:
        """File id → its records, from what the table holds: to be read in this order, each once. In tables of which
        only the first may be unsorted. `groups`: what `define` has said.
        """
        ...

    def update(self, table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
        """What the instant changes in the partition. `table`: as it was before the instant."""
        ...
