"""Spark reads files with row groups that an upsert copied as they were stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi import HudiTable

ROWS = 300_000  # three row groups


def test_spark_reads_and_filters_copied_row_groups(spark: Any, tmp_path: Path) -> None:
    numbers = pa.array(range(ROWS), pa.int64())
    rows = pa.table({"id": numbers.cast(pa.string()), "n": numbers})
    table = HudiTable.create(tmp_path / "t", rows.schema, record_key="id", ordering="n")
    table.insert(rows, options={"hoodie.copyonwrite.record.size.estimate": 20})
    table.upsert(pa.table({"id": ["299999"], "n": pa.array([500_000])}))
    (old, new) = sorted((tmp_path / "t").glob("*.parquet"), key=lambda path: path.name.rpartition("_")[2])
    files = [pq.read_metadata(file) for file in (old, new)]
    sizes = [[file.row_group(0).column(c).total_compressed_size for c in (0, 1, 2, 3, 5, 6)] for file in files]
    assert [file.num_row_groups for file in files] == [3, 3]
    assert sizes[0] == sizes[1]

    for frame in (
        spark.read.option("parquet.page.verify-checksum.enabled", "true").parquet(str(new)),
        spark.read.format("hudi").load(str(tmp_path / "t")),
    ):
        assert frame.where("n >= 0").count() == ROWS
        assert frame.selectExpr("sum(n)").first()[0] == sum(range(ROWS - 1)) + 500_000
        assert [row.n for row in frame.where("id = '123'").collect()] == [123]
        assert [row.n for row in frame.where("n between 130000 and 130002").select("n").collect()] == [
            130000,
            130001,
            130002,
        ]
        assert frame.select("_hoodie_file_name").distinct().first()[0] == new.name
