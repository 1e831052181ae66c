"""Overwriting, deleting partitions and cleaning through Spark: by its tasks, and by unchanged scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.session.writer import write_frame
from pyhudi.spark.engine import SparkEngine
from tests.support.spark.frames import OPERATION, OPTIONS, rows

BY_SPARK = {"hoodie.pyhudi.engine": "spark"}


def keys(path: str, as_of: str | None = None) -> list[str]:
    return sorted(HudiTable.open(path).at(as_of).to_arrow(["id"]).column(0).to_pylist())


def ids(start: int, stop: int, *partitions: str) -> list[str]:
    """Keys of rows, of some partitions only if these are named."""
    table = rows(start, stop, 1)
    found = zip(table.column("id").to_pylist(), table.column("day").to_pylist(), strict=True)
    return sorted(key for key, path in found if not partitions or path in partitions)


def test_spark_tasks_overwrite_and_delete_partitions(spark: Any, tmp_path: Path) -> None:
    path, engine = str(tmp_path / "t"), SparkEngine(spark)

    def write(operation: str, table: Any, **options: str) -> Any:
        given = {**OPTIONS, **BY_SPARK, OPERATION: operation, **options}
        return write_frame(engine.from_arrow(table), path, given)

    write("bulk_insert", rows(0, 200, 1))
    partitions = sorted(set(rows(0, 200, 1).column("day").to_pylist()))
    first = HudiTable.open(path).state().timeline.latest_time
    only = rows(300, 360, 1).filter(_of(partitions[0]))
    result = write("insert_overwrite", only)
    assert result.inserted == len(only)
    assert keys(path) == sorted([*ids(0, 200, *partitions[1:]), *ids(300, 360, partitions[0])])
    write("delete_partition", rows(0, 200, 1).filter(_of(partitions[1])))
    assert keys(path) == sorted([*ids(0, 200, *partitions[2:]), *ids(300, 360, partitions[0])])
    write("insert_overwrite_table", rows(400, 450, 1), **{"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"})
    assert keys(path) == ids(400, 450)
    assert keys(path, first) == ids(0, 200)

    table = HudiTable.open(path, spark)
    cleaned = table.clean(options={"hoodie.clean.commits.retained": 1, **BY_SPARK})
    assert cleaned.runs[0].files_deleted >= 2
    assert keys(path) == ids(400, 450)
    table.delete_partitions(matching="*", options=BY_SPARK)
    assert keys(path) == []


def _of(partition: str) -> Any:
    import pyarrow.compute as pc

    return pc.field("day") == partition


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_script_overwrites_as_with_hudi(engine: str, spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    options = {**OPTIONS, "hoodie.pyhudi.engine": engine}
    pyhudi.enable(spark)
    try:
        frame = SparkEngine(spark).from_arrow(rows(0, 60, 1))
        frame.write.format("hudi").options(**options).mode("overwrite").save(path)
        more = SparkEngine(spark).from_arrow(rows(100, 120, 1))
        writer = more.write.format("hudi").options(**{**options, OPERATION: "insert_overwrite_table"})
        writer.mode("overwrite").save(path)
        assert keys(path) == ids(100, 120)
        assert len(HudiTable.open(path).state().timeline) == 2, "the table and its history stay"
        # Rows may be read from the very table that they overwrite.
        again = spark.read.format("hudi").load(path).where("id < 'k00110'")
        again.write.format("hudi").options(**{**options, OPERATION: "insert_overwrite_table"}).mode("append").save(path)
        assert keys(path) == [key for key in ids(100, 120) if key < "k00110"]
    finally:
        pyhudi.disable(spark)
