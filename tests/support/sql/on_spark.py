"""Cases of statements in a Spark session that PyHudi is enabled in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyhudi.errors import HudiError
from pyhudi.spark.engine import collect_arrow
from tests.support.sql.statements import Case, new_table, with_place

__all__ = ["run_case"]


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
