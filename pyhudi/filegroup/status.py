"""Write statuses as Arrow rows: tasks answer in rows, the planner reads them back.

The stat travels as JSON: it is small, has optional fields and maps, and one row is one file.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa

from pyhudi.model.commit import WriteStat
from pyhudi.model.write_status import WriteStatus

__all__ = ["STATUS_SCHEMA", "from_table", "to_batch"]

STATUS_SCHEMA = pa.schema(
    [
        pa.field("stat", pa.string(), nullable=False),
        pa.field("rows_read", pa.int64(), nullable=False),
        pa.field("skipped", pa.int64(), nullable=False),
        pa.field("warning", pa.string(), nullable=False),
    ]
)
_STAT = msgspec.json.Decoder(WriteStat)


def to_batch(statuses: Sequence[WriteStatus]) -> pa.RecordBatch:
    """One row per status."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([msgspec.json.encode(status.stat).decode() for status in statuses], pa.string()),
            pa.array([status.rows_read for status in statuses], pa.int64()),
            pa.array([status.skipped for status in statuses], pa.int64()),
            pa.array([status.warning for status in statuses], pa.string()),
        ],
        schema=STATUS_SCHEMA,
    )


def from_table(table: pa.Table) -> list[WriteStatus]:
    """The statuses of a collected frame, in its order."""
    columns = (table.column(name).to_pylist() for name in STATUS_SCHEMA.names)
    return [
        WriteStatus(_STAT.decode(stat), rows_read, skipped, warning)
        for stat, rows_read, skipped, warning in zip(*columns, strict=True)
    ]
