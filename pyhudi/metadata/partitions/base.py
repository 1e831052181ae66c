"""The protocol of the metadata table's partitions: a `PartitionWriter` builds and updates one kind.

Each kind has one file and one row of `registry.PARTITIONS`. A `TableCommit` describes an instant that is about to
complete. The writer answers with a `PartitionUpdate`: the records and deletes that the instant writes into a partition.

Source: docs/formats/metadata-table.md, "Building", "Writing", "Records", "Merging records".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.formats.avro.schema import arrow_from_avro, without_meta
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.commit import StagedIndexFile, TableChange, WriteStatus
from pyhudi.model.instant import Instant
from pyhudi.model.options.metadata import DEFAULT_METADATA, MetadataOptions

__all__ = ["PartitionUpdate", "PartitionWriter", "TableCommit", "nothing_deleted"]


def nothing_deleted() -> pa.Array:
    """No keys."""
    return pa.array([], pa.string())


@dataclass(frozen=True, slots=True)
class PartitionUpdate:
    """`records`: `key`, `type` and the payloads of the partition's kind (`metadata.schema.record_fields`); of several
    rows with one key the last counts. A payload may be a dictionary if the update is never `joined`. `deleted`: keys
    (text, no nulls) to delete, unless they are in `records`, too.

    `of_groups`: for a partition whose file groups don't all serve the same keys: prefix of file ids → the update of
    these file groups; others get nothing then. For a prefix without file groups, `new_groups` are made.

    `pieces`: records staged by tasks, in order, all older than `records`.
    """

    records: pa.Table
    deleted: pa.Array
    of_groups: Mapping[str, PartitionUpdate] = field(default_factory=dict)
    new_groups: int = 1
    pieces: Sequence[StagedIndexFile] = ()

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to write."""
        has_no_records = not self.records.num_rows and not len(self.deleted) and not self.pieces
        return has_no_records and all(update.is_empty for update in self.of_groups.values())

    def joined(self, more_updates: Iterable[PartitionUpdate]) -> PartitionUpdate:
        """This update joined with others; of several records with one key the last one counts."""
        updates = [self, *more_updates]
        records = pa.concat_tables([update.records for update in updates])
        deleted = pa.concat_arrays([update.deleted for update in updates])
        pieces = [piece for update in updates for piece in update.pieces]
        return PartitionUpdate(_last_of_each(records), pc.unique(deleted), pieces=pieces)


def _last_of_each(records: pa.Table) -> pa.Table:
    keys = records.column("key").combine_chunks()
    if len(pc.unique(keys)) == len(keys):
        return records
    numbered = pa.table({"key": keys, "row": np.arange(len(keys))})
    rows = numbered.group_by("key").aggregate([("row", "max")]).column("row_max").combine_chunks()
    return records.take(pa.array(np.sort(rows.to_numpy())))


@dataclass(frozen=True, slots=True)
class TableCommit:
    """An instant of the data table that is about to complete. `change`: its changes; `statuses`: the reports of its
    tasks, () for actions without tasks and where another process ran them. `replaced_keys`: by partition path, the keys
    in file groups that the instant removes from the table, if the table has a record index; none for file groups whose
    rows it wrote to others. `options`: of the call. `schema_json`: Avro schema of the table's columns from this instant
    on, None where it names none.
    """

    instant: Instant
    change: TableChange
    statuses: tuple[WriteStatus, ...] = ()
    replaced_keys: Mapping[str, pa.Array] = field(default_factory=dict)
    options: MetadataOptions = DEFAULT_METADATA
    schema_json: str | None = None

    def stored_schema(self, data: MetaClient) -> pa.Schema:
        """The data columns, as files store them, once the instant is complete."""
        if self.schema_json is None:
            return data.stored_schema()
        dropped = data.config.dropped_partition_fields
        columns = without_meta(arrow_from_avro(self.schema_json))
        return pa.schema([column for column in columns if column.name not in dropped])


class PartitionWriter(Protocol):
    """One kind of partition. Hold the data table's lock for all calls but `records`."""

    def define(self, table: MetadataTable, partition: str, options: MetadataOptions) -> int | None:
        """Write the definition of a new partition, if its kind has one; return the number of its file groups.

        None: the number depends on the table's partitions, and only `records` knows it.
        """
        ...

    def records(
        self, table: MetadataTable, partition: str, options: MetadataOptions, groups: int | None
    ) -> Mapping[str, Iterable[pa.Table]]:
        """File id → its records, from the table's files. Read them in this order, each once. Of the tables of one file
        id only the first may be unsorted. `groups`: the result of `define`.
        """
        ...

    def update(self, table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
        """The instant's changes to the partition. `table`: as it was before the instant."""
        ...
