"""Filters of thousands of terms through Spark: they are planned, and keep the rows that they keep without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])


@pytest.mark.parametrize(
    "where",
    [
        " OR ".join(f"v = {n}" for n in range(2, 5_000)),
        " OR ".join(f"v > {n}" for n in range(2, 700)),
        " AND ".join(f"v > -{n}" for n in range(1, 700)) + " AND v > 1",
        ("id", "in", list(range(2, 3_000))),
    ],
    ids=["or of values", "or", "and", "in"],
)
def test_a_filter_of_many_terms_keeps_the_same_rows_on_spark(spark: Any, tmp_path: Path, where: Any) -> None:
    HudiTable.create(tmp_path / "t", SCHEMA, record_key="id").insert([{"id": n, "v": n} for n in range(4)])
    table = HudiTable.open(tmp_path / "t", spark=spark)

    rows = table.scan(["id"], where).to_spark().collect()

    assert sorted(row["id"] for row in rows) == sorted(table.to_arrow(["id"], where)["id"].to_pylist())
    assert len(rows) in (1, 2)
