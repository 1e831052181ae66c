"""Rows that tests on Spark write, and the table and the plan as they look afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import pyhudi

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
OPERATION = "hoodie.datasource.write.operation"


def rows(start: int, stop: int, ts: int, **changes: Any) -> pa.Table:
    ids = np.arange(start, stop)
    columns = {
        "id": pa.array([f"k{i:05}" for i in ids]),
        "day": pa.array([f"2024-01-{i % 3 + 1:02}" for i in ids]),
        "ts": pa.array([ts] * len(ids), pa.int64()),
        "amount": pa.array(ids * 1.5),
        "at": pa.array(ids * 1_000_001, pa.timestamp("us", "UTC")),
        "tags": pa.array([[f"a{i}", None] if i % 2 else None for i in ids]),
    }
    return pa.table({**columns, **changes})


def contents(path: str) -> list[dict[str, Any]]:
    """The rows without what differs from write to write: times, sequence numbers, file names."""
    table = pyhudi.HudiTable.open(path).scan().to_arrow()
    kept = ["_hoodie_record_key", "_hoodie_partition_path", *table.schema.names[5:]]
    return table.select(kept).sort_by([("_hoodie_partition_path", "ascending"), ("id", "ascending")]).to_pylist()


def plan_of(frame: Any, capsys: Any) -> str:
    frame.explain()
    return str(capsys.readouterr().out)
