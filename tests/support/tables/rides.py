"""Six rides: a schema, rows, and the ids that a table has."""

from __future__ import annotations

import pyarrow as pa

from pyhudi import HudiTable

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("v", pa.float64()), ("ts", pa.int64())])
ROWS = [{"id": i, "city": "ab"[i % 2], "v": i / 2, "ts": 1} for i in range(6)]


def ids(table: HudiTable) -> list[int]:
    return sorted(table.to_arrow(["id"])["id"].to_pylist())
