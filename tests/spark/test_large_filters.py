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


def test_a_long_list_holds_texts_with_any_characters_and_numbers_of_any_size(spark: Any, tmp_path: Path) -> None:
    odd = ["it's", "back\\slash", "${spark.app.name}", "`tick`", '"quoted"', "zeile\n", "ü", "", "9"]
    ends = [-(2**63), -1, 0, 2**63 - 1]
    schema = pa.schema([("id", pa.string()), ("v", pa.int64()), ("in", pa.struct([("b", pa.int32())]))])
    table = HudiTable.create(tmp_path / "t", schema, record_key="v")
    table.insert([{"id": id, "v": n, "in": {"b": n % 100}} for n, id in enumerate(odd)])
    table.insert([{"id": "end", "v": v, "in": None} for v in ends[:2] + ends[3:]])
    table = HudiTable.open(tmp_path / "t", spark=spark)
    plain = [str(n) for n in range(9, 30)]

    for where in (
        ("id", "in", [*plain, "ü", '"quoted"', "`tick`", "zeile\n", ""]),
        *(("id", "in", [*plain, text]) for text in odd),
        ("id", "not in", [*plain, "ü"]),
        ("v", "in", [*range(100, 120), *ends]),
        ("in.b", "in", [*range(5, 30)]),
    ):
        rows = table.scan(["v"], [where]).to_spark().collect()

        expected = table.to_arrow(["v"], [where])["v"].to_pylist()
        assert sorted(row["v"] for row in rows) == sorted(expected), where
        assert expected, where
