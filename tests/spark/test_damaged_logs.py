"""Damaged files, read and rewritten by Spark's tasks: the driver is told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pyhudi import DamagedLog, HudiTable, write_hudi
from pyhudi.spark.engine import collect_arrow
from pyhudi.spark.reader import read_frame
from tests.support.tables.damaged import OLD, damaged
from tests.support.values.damaged_logs import DAMAGES

BY_SPARK = {"hoodie.pyhudi.engine": "spark"}


@pytest.mark.parametrize("kind", DAMAGES)
def test_the_driver_is_warned_when_a_frame_is_made_and_its_rows_are_those_without_the_file(
    spark: Any, tmp_path: Path, kind: str
) -> None:
    log = damaged(tmp_path, kind)
    with pytest.warns(UserWarning, match="is damaged") as caught:
        frame = read_frame(spark, str(tmp_path), {})
    # An old PySpark warns of its own.
    messages = [str(one.message) for one in caught if "is damaged" in str(one.message)]
    assert [log.name in message for message in messages] == [True]
    rows = collect_arrow(frame.select("id", "v")).to_pylist()
    assert {row["id"]: row["v"] for row in rows} == OLD
    with pytest.raises(DamagedLog):
        read_frame(spark, str(tmp_path), {"hoodie.pyhudi.read.damaged.logs": "fail"})


def test_the_data_source_fails_for_damaged_log_files_if_it_shall(spark: Any, tmp_path: Path) -> None:
    damaged(tmp_path, "cut in half")
    reader = spark.read.format("hudi").option("hoodie.pyhudi.read.damaged.logs", "fail")
    with pytest.raises(Exception, match="is damaged"):
        reader.load(str(tmp_path)).collect()
    assert spark.read.format("hudi").load(str(tmp_path)).count() == len(OLD)


@pytest.mark.thorough
def test_tasks_of_spark_merge_no_damaged_log_file(spark: Any, tmp_path: Path) -> None:
    damaged(tmp_path, "cut in half")
    table = HudiTable.open(tmp_path, spark=spark)
    with pytest.raises(DamagedLog):
        table.compact(options=BY_SPARK)
    with pytest.raises(DamagedLog):
        table.update("id = 'b'", set={"v": 7}, options=BY_SPARK)
    with pytest.warns(UserWarning, match="is damaged"):
        assert table.scan(["id", "v"]).to_arrow().num_rows == len(OLD)


@pytest.mark.thorough
def test_spark_notices_a_flipped_bit_in_a_base_file(spark: Any, tmp_path: Path) -> None:
    rows = [{"id": f"{n}", "v": n} for n in range(50)]
    write_hudi(tmp_path, rows, record_key="id", options={"hoodie.parquet.compression.codec": "uncompressed"})
    (file,) = tmp_path.glob("*.parquet")
    content = bytearray(file.read_bytes())
    chunk = pq.read_metadata(file).row_group(0).column(6)
    content[chunk.data_page_offset + chunk.total_compressed_size - 3] ^= 4
    file.write_bytes(content)
    reader = spark.read.format("hudi").option("hoodie.pyhudi.engine", "spark")

    with pytest.raises(Exception, match=re.escape(file.name)):
        reader.load(str(tmp_path)).select("v").collect()

    unchecked = reader.option("hoodie.pyhudi.page.checksums", "false").load(str(tmp_path)).select("v").collect()
    assert sum(row.v != n for n, row in enumerate(unchecked)) == 1
