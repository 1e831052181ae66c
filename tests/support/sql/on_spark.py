"""Cases of statements in a Spark session that PyHudi is enabled in, and the names that it lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyhudi.errors import HudiError
from pyhudi.spark.engine import collect_arrow
from tests.support.sql.statements import Case, new_table, with_place

__all__ = ["kinds_of_names", "run_case"]


def run_case(spark: Any, case: Case, folder: Path, database: str) -> list[list[dict[str, Any]] | str]:
    """For each statement its rows, "ok" without rows, or "refused: " and why. Each case has a database of its own."""
    from pyspark.errors import PySparkException

    spark.sql(f"CREATE DATABASE {database} LOCATION '{folder}/{database}'")
    spark.sql(f"USE {database}")
    found: list[list[dict[str, Any]] | str] = []
    for statement, _ in case.statements:
        made = new_table(statement)
        try:
            if made is not None:
                spark.sql(with_place(statement, str(folder / made.name)))
                found.append("ok")
                continue
            rows = collect_arrow(spark.sql(statement))
        except (HudiError, PySparkException) as error:
            found.append(f"refused: {error}")
            continue
        found.append(rows.to_pylist() if statement.startswith("SELECT") else "ok")
    return found


def kinds_of_names(spark: Any) -> dict[str, str]:
    """The tables and views of the current database and the temporary views, with TABLE or VIEW for each."""
    views = {row.viewName for row in spark.sql("SHOW VIEWS").collect()}
    names = [row.tableName for row in spark.sql("SHOW TABLES").collect()]
    return {name: "VIEW" if name in views else "TABLE" for name in names}
