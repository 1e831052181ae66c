"""Tables whose rows lie in files outside them, read, written and served by Spark's tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import HudiTable, write_hudi

BY_SPARK = {"hoodie.pyhudi.engine": "spark", "hoodie.compact.inline": "false"}
COLUMNS = ["id", "v", "tags", "city"]
CHANGED = {"id": "k03", "v": -1.0, "tags": ["x"], "city": "rome"}
ADDED = {"id": "new", "v": 9.0, "tags": ["y"], "city": "oslo"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for city, numbers in (("rome", range(10)), ("oslo", range(10, 15))):
        folder = tmp_path / "in" / f"city={city}"
        folder.mkdir(parents=True)
        rows = {
            "id": [f"k{n:02}" for n in numbers],
            "v": [n * 1.5 for n in numbers],
            "tags": [[str(n)] for n in numbers],
        }
        pq.write_table(pa.table(rows), folder / "a.parquet", row_group_size=4)
    return tmp_path / "in"


def stored(source: Path) -> list[dict[str, Any]]:
    rows = pq.read_table(source).sort_by("id").to_pylist()
    return [{name: row[name] for name in COLUMNS} for row in rows]


def by_spark(spark: Any, path: Path, where: str = "true") -> list[dict[str, Any]]:
    rows = spark.read.format("hudi").load(str(path)).where(where).select(*COLUMNS).collect()
    return sorted((row.asDict() for row in rows), key=lambda row: str(row["id"]))


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_spark_reads_and_writes_a_table_whose_rows_stay_in_their_files(
    spark: Any, source: Path, tmp_path: Path, table_type: str
) -> None:
    path = tmp_path / "t"
    pyhudi.bootstrap(source, path, record_key="id", table_type=table_type)
    expected = stored(source)
    assert by_spark(spark, path) == expected
    assert by_spark(spark, path, "city = 'oslo' AND v > 16") == [row for row in expected[10:] if row["v"] > 16]
    assert HudiTable.open(path, spark=spark).scan(["id"]).to_spark().count() == 15

    rows = spark.createDataFrame([CHANGED, ADDED], "id string, v double, tags array<string>, city string")
    write_hudi(path, rows, "upsert", options=BY_SPARK)
    expected = [*expected[:3], CHANGED, *expected[4:], ADDED]
    assert by_spark(spark, path) == expected
    table = HudiTable.open(path, spark=spark)
    if table_type == "MERGE_ON_READ":
        table.compact(options=BY_SPARK)
        assert by_spark(spark, path) == expected
    table.cluster(options=BY_SPARK)
    assert by_spark(spark, path) == expected
    assert table.scan(COLUMNS).to_arrow().sort_by("id").to_pylist() == expected
    assert stored(source)[3]["v"] == 4.5, "the source stays as it is"
