"""Merge modes: which version of a row wins, within a batch and against the table.

One file per mode and one row of `MERGE_MODES`. Source: docs/formats/merging.md, "Modes and ids",
"Two versions of a key".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.merge.base import MergeMode
from pyhudi.merge.combine import combine_rows
from pyhudi.model.keys import PARTITION_PATH, RECORD_KEY
from pyhudi.registry import Registry

__all__ = ["MERGE_MODES", "MergeMode", "combine", "merge_mode", "winners"]

MERGE_MODES: Registry[type[MergeMode]] = Registry(
    kind="merge mode",
    entries={
        "COMMIT_TIME_ORDERING": "pyhudi.merge.commit_time:CommitTimeOrdering",
        "EVENT_TIME_ORDERING": "pyhudi.merge.event_time:EventTimeOrdering",
    },
)


def merge_mode(name: str, ordering_fields: Sequence[str] = ()) -> MergeMode:
    """Return the mode of that name. Event time without ordering fields is commit time, as in Hudi.

    Raises ConfigError for CUSTOM and for unknown names.
    """
    if name == "CUSTOM":
        raise ConfigError(
            "Merge mode CUSTOM (payload and merger classes in Java) can't be run by PyHudi. "
            "Write this table with real Hudi, or make one with COMMIT_TIME_ORDERING or EVENT_TIME_ORDERING."
        )
    mode = "COMMIT_TIME_ORDERING" if name == "EVENT_TIME_ORDERING" and not ordering_fields else name
    return MERGE_MODES.load(mode)()


def combine(
    data: pa.RecordBatch | pa.Table,
    mode: str,
    ordering_fields: Sequence[str] = (),
    keys: Sequence[str] = (RECORD_KEY, PARTITION_PATH),
) -> pa.Table:
    """Return one row per key: the winner within the batch, deletes included, in the original order.

    "Later" is a greater ARRIVAL, or the row order when there is no such column. Ordering fields may be missing when all
    rows are deletes. Returns the same table when no key occurs twice.

    Args:
        data: rows with the key columns, the ordering fields, and IS_DELETE when some rows are deletes.
        keys: the key columns; for a global index the record key alone.
    """
    table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
    return combine_rows(table, merge_mode(mode, ordering_fields), ordering_fields, keys)


def winners(
    existing_ordering: Sequence[pa.Array],
    incoming_ordering: Sequence[pa.Array],
    incoming_is_delete: npt.NDArray[np.bool_] | None,
    mode: str,
) -> npt.NDArray[np.bool_]:
    """Return, row by row, whether the incoming row (or delete) replaces the stored one.

    Args:
        existing_ordering, incoming_ordering: one array per ordering field, all as long as there are pairs. An empty
            `incoming_ordering` means rows without ordering value: they win as if every field were null and a delete.
        incoming_is_delete: which incoming rows are deletes; None if no row is.
    """
    return merge_mode(mode, ["given"] if existing_ordering else ()).replaces(
        existing_ordering, incoming_ordering, incoming_is_delete
    )
