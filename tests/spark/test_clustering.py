"""Clustering and resizes of buckets through Spark's tasks: the same rows, in the order asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi

BY_SPARK = {"hoodie.pyhudi.engine": "spark"}
KIND = {"record_key": "id", "partition_by": "p", "ordering": "ts", "table_name": "t"}


def rows(numbers: range, ts: int) -> pa.Table:
    made = [{"id": f"k{n:03d}", "p": "ab"[n % 2], "ts": ts, "v": n * 37 % 100} for n in numbers]
    return pa.Table.from_pylist(made)


def found(path: str) -> list[Any]:
    return sorted((row["id"], row["ts"], row["v"]) for row in HudiTable.open(path).to_arrow().to_pylist())


def test_spark_clusters_in_the_order_asked_for(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    small = {"hoodie.parquet.small.file.limit": "0"}
    for part in range(3):
        write_hudi(path, rows(range(part * 40, part * 40 + 40), 1), "insert", options=small, **KIND)
    write_hudi(path, rows(range(0, 120, 3), 2), "upsert", options=small)
    before = found(path)
    table = HudiTable.open(path, spark=spark)
    sort = {"hoodie.clustering.plan.strategy.sort.columns": "v"}
    (run,) = table.cluster(options={**BY_SPARK, **sort}).runs
    assert (run.file_slices, run.files_written, run.rows_written) == (6, 2, 120)
    assert found(path) == before
    for partition in ("a", "b"):
        values = HudiTable.open(path).scan(where=f"p = '{partition}'").to_arrow().column("v").to_pylist()
        assert values == sorted(values)


@pytest.mark.thorough
def test_spark_splits_buckets(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    buckets = {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.compact.inline": "false",
    }
    write_hudi(path, rows(range(100), 1), "upsert", options=buckets, table_type="MERGE_ON_READ", **KIND)
    more = {"hoodie.bucket.index.max.num.buckets": "4", "hoodie.parquet.max.file.size": "10"}
    (run,) = HudiTable.open(path, spark=spark).cluster(options={**BY_SPARK, **buckets, **more}).runs
    assert (run.file_slices, run.files_written) == (4, 8)
    data = spark.createDataFrame(rows(range(0, 120, 2), 2).to_pandas())
    write_hudi(path, data, "upsert", options={**BY_SPARK, **buckets})
    expected = {row["id"]: row for part in (rows(range(100), 1), rows(range(0, 120, 2), 2)) for row in part.to_pylist()}
    assert found(path) == sorted((row["id"], row["ts"], row["v"]) for row in expected.values())
