"""PartitionUpdate: what one instant writes into one partition of the metadata table.

Source: docs/formats/metadata-table.md, "Records", "Merging records".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.model.commit import StagedIndexFile

__all__ = ["PartitionUpdate", "nothing_deleted"]


def nothing_deleted() -> pa.Array:
    """No keys."""
    return pa.array([], pa.string())


@dataclass(frozen=True, slots=True)
class PartitionUpdate:
    """`records`: `key`, `type` and the payloads of the partition's kind (`metadata.schema.record_fields`); of several
    rows with one key the last counts. A payload may be a dictionary where nothing is `joined` with it. `deleted`: keys
    (text, no nulls) that are taken away; a key that is in `records`, too, stays.

    `of_groups`: where not all file groups of the partition are for the same keys: the prefix of file ids → what goes
    to those; nothing goes to others then. File groups of a prefix that there are none of are made, `new_groups` many.

    `pieces`: records that tasks have made, in their order, all older than `records`.
    """

    records: pa.Table
    deleted: pa.Array
    of_groups: Mapping[str, PartitionUpdate] = field(default_factory=dict)
    new_groups: int = 1
    pieces: Sequence[StagedIndexFile] = ()

    @property
    def is_empty(self) -> bool:
        """Is there nothing to write?"""
        own = not self.records.num_rows and not len(self.deleted) and not self.pieces
        return own and all(update.is_empty for update in self.of_groups.values())

    def joined(self, others: Iterable[PartitionUpdate]) -> PartitionUpdate:
        """This and others as one; of several records with one key the last one counts."""
        updates = [self, *others]
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
