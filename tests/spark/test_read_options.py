"""Read options on both roads to a DataFrame: `HudiTable.scan(...).to_spark()` and `spark.read.format("hudi")`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.spark.reader import read_frame

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("ts", pa.int64())])


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Six rows, half of them with newer versions in log files."""
    table = HudiTable.create(tmp_path / "t", SCHEMA, record_key="id", ordering="ts", table_type="MERGE_ON_READ")
    table.insert([{"id": i, "v": i, "ts": 1} for i in range(6)])
    table.upsert([{"id": i, "v": 100, "ts": 2} for i in range(3)])
    return table.path


def values(frame: Any) -> list[int]:
    return sorted(row["v"] for row in frame.select("v").collect())


def test_the_memory_limit_of_a_scan_holds_in_sparks_tasks(spark: Any, path: str, tmp_path: Path) -> None:
    table = HudiTable.open(path, spark=spark)
    limit = {"hoodie.memory.merge.max.size": 0}

    spilled = table.scan(options={**limit, "hoodie.memory.spillable.map.path": tmp_path}).to_spark()
    assert values(spilled) == [3, 4, 5, 100, 100, 100]

    # A folder that is not there shows that log rows go into it.
    nowhere = {**limit, "hoodie.memory.spillable.map.path": str(tmp_path / "nowhere")}
    for frame in (table.scan(options=nowhere).to_spark(), read_frame(spark, path, nowhere)):
        # Connect 3.5 says no more than that where two stages fail.
        words = r"nowhere.*hoodie\.memory\.spillable\.map\.path|Multiple failures in stage materialization"
        with pytest.raises(Exception, match=words):
            frame.collect()


@pytest.mark.thorough
def test_the_sessions_options_stand_behind_those_of_a_scan(spark: Any, path: str) -> None:
    table = HudiTable.open(path, spark=spark)
    spark.conf.set("spark.hoodie.datasource.query.type", "read_optimized")
    try:
        assert values(table.scan().to_spark()) == values(read_frame(spark, path, {})) == [0, 1, 2, 3, 4, 5]
        for asked in ({"query_type": "snapshot"}, {"options": {"hoodie.datasource.query.type": "snapshot"}}):
            assert values(table.scan(**asked).to_spark()) == [3, 4, 5, 100, 100, 100]
    finally:
        spark.conf.unset("spark.hoodie.datasource.query.type")


@pytest.mark.thorough
def test_the_active_session_makes_the_frame_of_a_table_and_the_limit_holds(spark: Any, path: str) -> None:
    table = HudiTable.open(path)
    assert values(table.to_spark(["v"], where="v < 5")) == [3, 4]
    assert table.scan(["v"], limit=4).to_spark().count() == 4
