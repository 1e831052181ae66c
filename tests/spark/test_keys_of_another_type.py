"""DataFrames whose keys have another type than the table's, written by this process and by Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import ConfigError, HudiTable, SchemaMismatch

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.int32()), ("v", pa.int64()), ("w", pa.int64())])


def rows(table: HudiTable) -> list[tuple[object, ...]]:
    names = ["_hoodie_record_key", "p", "v", "w"]
    return sorted(tuple(row.values()) for row in table.to_arrow(names).to_pylist())


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("engine", ["spark", "local"])
def test_keys_of_a_data_frame_are_cast_to_the_table(spark: Any, tmp_path: Path, kind: str, engine: str) -> None:
    pyhudi.enable(spark)
    table = HudiTable.create(tmp_path / "t", SCHEMA, record_key="id", partition_by="p", table_type=kind)
    table.upsert([{"id": 1, "p": 5, "v": 0, "w": 0}, {"id": 2, "p": 5, "v": 0, "w": 0}])
    options = {"hoodie.pyhudi.engine": engine}

    df = spark.createDataFrame([(1.0, "5", 9, 8)], "id double, p string, v long, w long")
    df.write.format("hudi").options(**options).mode("append").save(table.path)
    assert rows(table) == [("1", 5, 9, 8), ("2", 5, 0, 0)]
    table.upsert(df.selectExpr("id + 1 AS id", "p", "v"), options=options)
    assert rows(table) == [("1", 5, 9, 8), ("2", 5, 9, 0)]
    merge = table.merge(df.selectExpr("id", "p", "1 AS v"), options=options)
    assert merge.when_matched_update_all().when_not_matched_insert_all().execute().updated == 1
    assert table.delete(df.selectExpr("CAST(id AS DECIMAL(4, 1)) AS id", "p"), options=options).deleted == 1
    assert rows(table) == [("2", 5, 9, 0)]

    commits = len(table.history())
    with pytest.raises(SchemaMismatch, match=r"Column 'id' makes keys.*such as 1\.5"):
        table.upsert(df.selectExpr("id + 0.5D AS id", "p", "v", "w"), options=options)
    assert (rows(table), len(table.history())) == ([("2", 5, 9, 0)], commits)


def test_statements_refuse_keys_that_a_cast_would_change(spark: Any, tmp_path: Path) -> None:
    pyhudi.enable(spark)
    table = HudiTable.create(tmp_path / "t", SCHEMA, record_key="id", partition_by="p")
    table.upsert([{"id": 1, "p": 5, "v": 0, "w": 0}])
    name = f"hudi.`{table.path}`"
    with pytest.raises(SchemaMismatch, match=r"Column 'id' makes keys.*Decimal\('1\.4'\)"):
        spark.sql(f"INSERT INTO {name} (id, v, w, p) VALUES (1.4, 9, 9, 5)")
    with pytest.raises(SchemaMismatch, match=r"Column 'p' makes keys.*Decimal\('5\.4'\)"):
        spark.sql(f"INSERT INTO {name} PARTITION (p = 5.4) VALUES (7, 9, 9)")
    with pytest.raises(SchemaMismatch, match=r"Column 'id' makes keys.*such as 1\.4"):
        spark.createDataFrame([(1.4, 9, 9, 5)], "id double, v long, w long, p int").write.insertInto(name)
    with pytest.raises(ConfigError, match="texts of the source"):
        spark.sql(
            f"MERGE INTO {name} t USING (SELECT '1.5' AS id, 9 AS v) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = s.v"
        )
    with pytest.raises(ConfigError, match="which is no whole number"):
        spark.sql(f"DELETE FROM {name} WHERE id = '1.5'")
    assert rows(table) == [("1", 5, 0, 0)]
    spark.sql(f"INSERT INTO {name} (id, v, w, p) VALUES (2.0, 9, 9, 5), (3, 9, 9, 5)")
    assert rows(table) == [("1", 5, 0, 0), ("2", 5, 9, 9), ("3", 5, 9, 9)]
