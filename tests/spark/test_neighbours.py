"""Spark DataFrames as the rows of overwrites by filter, partial upserts, merges on a condition, and constraints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import ConfigError, HudiTable, SchemaMismatch

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("n", pa.int64()), ("note", pa.string())])
ROWS = [(1, "oslo", 1, "a"), (2, "oslo", 20, "b"), (3, "rome", 30, "c")]
BY_SPARK = {"hoodie.pyhudi.engine": "spark"}


def rows(table: HudiTable) -> list[Any]:
    return [tuple(row.values()) for row in table.to_arrow(SCHEMA.names).sort_by("id").to_pylist()]


@pytest.mark.parametrize("options", [{}, BY_SPARK], ids=["auto", "spark"])
def test_dataframes_go_the_ways_of_deltalake(spark: Any, tmp_path: Path, options: dict[str, str]) -> None:
    table = HudiTable.create(tmp_path / "t", SCHEMA, record_key="id", partition_by="city", spark=spark)
    table.upsert(spark.createDataFrame(ROWS, "id long, city string, n long, note string"), options=options)

    table.upsert(
        spark.createDataFrame([(1, "oslo", 5), (4, "rome", 6)], "id long, city string, n long"), options=options
    )
    assert rows(table) == [(1, "oslo", 5, "a"), (2, "oslo", 20, "b"), (3, "rome", 30, "c"), (4, "rome", 6, None)]

    new = spark.createDataFrame([(2, "oslo", 25, "z")], "id long, city string, n long, note string")
    table.overwrite(new, where="n >= 20", options=options)
    assert rows(table) == [(1, "oslo", 5, "a"), (2, "oslo", 25, "z"), (4, "rome", 6, None)]
    with pytest.raises(ConfigError, match="1 of the new rows don't pass"):
        table.overwrite(new, where="n >= 30", options=options)

    source = spark.createDataFrame([(4, 100), (2, 1)], "ref long, n long")
    merge = table.merge(source, on="t.id = s.ref AND s.n > t.n").when_matched_update({"n": "t.n + s.n"})
    assert merge.execute().updated == 1
    assert rows(table)[-1] == (4, "rome", 106, None)

    table.constraints.add("positive", "n > 0")
    before = rows(table)
    with pytest.raises(SchemaMismatch, match="1 rows break the constraint 'positive'"):
        table.upsert(
            spark.createDataFrame([(9, "oslo", -1, "x")], "id long, city string, n long, note string"), options=options
        )
    with pytest.raises(SchemaMismatch, match="break the constraint 'positive'"):
        table.update("id = 1", set={"n": "n - 100"}, options=options)
    assert rows(table) == before
