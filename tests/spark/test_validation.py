"""Validators in a Spark session: its SQL sees the rows of a write of either engine before they are visible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable, ValidationFailed, write_hudi


def names_of_tables(spark: Any) -> set[str]:
    """Tables and views. A view of a query of another test goes with the next query."""
    return {row.tableName for row in spark.sql("SHOW TABLES").collect()}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_query_of_the_session_decides_whether_a_write_stays(
    spark: Any, tmp_path: Path, kind: str, engine: str
) -> None:
    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.pyhudi.engine": engine,
        "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
        # A function of Spark's that DuckDB has not.
        "hoodie.precommit.validators.single.value.sql.queries": (
            "SELECT count_if(fare < 0) + count(DISTINCT soundex(city)) FROM <TABLE_NAME>#1"
        ),
    }
    path, before = tmp_path / "t", names_of_tables(spark)
    columns = "id long, city string, fare double"
    write_hudi(path, spark.createDataFrame([(1, "a", 1.5), (2, "a", 2.5)], columns), options=options)
    write_hudi(path, spark.createDataFrame([(2, "a", 3.5)], columns), options=options)
    with pytest.raises(ValidationFailed, match="expected 1, found 2"):
        write_hudi(path, spark.createDataFrame([(1, "a", -1.0)], columns), options=options)

    table = HudiTable.open(path, spark=spark)
    assert sorted(map(tuple, table.to_spark(["id", "fare"]).collect())) == [(1, 1.5), (2, 3.5)]
    assert names_of_tables(spark) <= before
