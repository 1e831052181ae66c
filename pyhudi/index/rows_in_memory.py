"""Places of rows that are in this process: looked up and put next to the rows, where a join would copy all of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.model.keys import LOCATION, PARTITION_PATH, RECORD_KEY

__all__ = ["counted", "located"]

_MANY = 1 << 16  # rows; threads take longer to begin than fewer rows take to count


def located(rows: pa.Table, hits: pa.Table) -> pa.Table | None:
    """`rows` with the columns of the hit of their key and partition, null where there is none.

    Args:
        hits: RECORD_KEY, PARTITION_PATH and what to put next to the rows.
    Returns: None when a key is in several places, of one partition or of two.
    """
    stored = hits.column(RECORD_KEY).combine_chunks()
    if pc.count_distinct(stored).as_py() != len(stored):
        return None
    # One call for the whole column: each call builds the hash table of the hits again.
    at = pc.index_in(rows.column(RECORD_KEY), value_set=stored)
    here = pc.equal(hits.column(PARTITION_PATH).take(at), rows.column(PARTITION_PATH))
    at = pc.if_else(here, at, None)
    for column in hits.schema:
        if column.name not in (RECORD_KEY, PARTITION_PATH):
            rows = rows.append_column(column.with_nullable(True), hits.column(column.name).take(at))
    return rows


def counted(rows: pa.Table) -> dict[tuple[str, str | None], int]:
    """How many rows there are for each partition and file id (None: rows with new keys)."""
    threads = len(rows) > _MANY
    groups = rows.group_by([PARTITION_PATH, LOCATION], use_threads=threads).aggregate([([], "count_all")])
    return {(row[PARTITION_PATH], row[LOCATION]): row["count_all"] for row in groups.to_pylist()}
