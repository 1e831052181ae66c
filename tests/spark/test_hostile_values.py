"""Values chosen to hurt, written by Spark's tasks: what Python refuses, they refuse; what it keeps, they keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.session.writer import write_frame
from tests.support.spark.frames import OPERATION
from tests.support.spark.lacking import loaded

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.pyhudi.engine": "spark",
    "hoodie.compact.inline": "false",
}
ROWS = [("a", ".pyhudi-x.tmp", 1.5, "n"), ("b", "x/.pyhudi-x.tmp", 2.5, "m"), ("c", "_x", 3.5, "o")]
COLUMNS = "id string, p string, v double, note string"


# Each operation on broken text in each column, once: the table type is not looked at before the refusal.
BROKEN = {
    "COPY_ON_WRITE": [("note", "bulk_insert"), ("p", "upsert")],
    "MERGE_ON_READ": [("note", "upsert"), ("p", "bulk_insert")],
}


@pytest.mark.parametrize("kind", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_spark_tasks_keep_strange_partitions_and_refuse_what_would_be_lost(
    spark: Any, tmp_path: Path, kind: str
) -> None:
    path = str(tmp_path / "t")

    def write(operation: str, frame: Any) -> Any:
        return write_frame(frame, path, {**OPTIONS, "hoodie.datasource.write.table.type": kind, OPERATION: operation})

    def contents() -> list[tuple[Any, ...]]:
        read = loaded(spark, path).select("id", "p", "v", "note").collect()
        assert sorted(map(tuple, read)) == sorted(
            tuple(row.values()) for row in HudiTable.open(path).to_arrow(["id", "p", "v", "note"]).to_pylist()
        )
        return sorted(map(tuple, read))

    frame = spark.createDataFrame(ROWS, COLUMNS)
    write("bulk_insert", frame)
    write("upsert", frame)
    assert contents() == ROWS

    for column, operation in BROKEN[kind]:
        wrong = frame.selectExpr(
            *(f"cast(X'636166E9' as string) as {name}" if name == column else name for name in frame.columns)
        )
        with pytest.raises(ConfigError, match=f"Column '{column}'.*not UTF-8"):
            write(operation, wrong)
    with pytest.raises(SchemaMismatch, match="column 'v': the table has double, the data string"):
        write("upsert", frame.selectExpr("id", "p", "cast(v as string) as v", "note"))
    assert contents() == ROWS

    result = write("delete", frame.selectExpr("id").where("id <> 'b'"))
    assert (result.deleted, result.not_found) == (2, 0)
    assert contents() == [ROWS[1]]
    result = write("delete", spark.createDataFrame([("zz",)], "id string"))
    assert (result.deleted, result.not_found, result.instant_time) == (0, 1, "")
