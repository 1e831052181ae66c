"""Cases of statements in a session on DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import pyhudi
from pyhudi.errors import HudiError
from tests.support.sql.statements import Case, new_table

_TYPES = {
    "INT": pa.int32(), "BIGINT": pa.int64(), "STRING": pa.string(), "DOUBLE": pa.float64(), "DATE": pa.date32(),
    "DECIMAL(10,2)": pa.decimal128(10, 2), "BOOLEAN": pa.bool_(), "TIMESTAMP": pa.timestamp("us", "UTC"),
}  # fmt: skip
_OPTIONS = {
    "primaryKey": "hoodie.datasource.write.recordkey.field",
    "preCombineField": "hoodie.datasource.write.precombine.field",
}


def run_case(case: Case, folder: Path) -> list[list[dict[str, Any]] | str]:
    """For each statement its rows, "ok" without rows, or "refused: " and why."""
    tables: dict[str, str] = {}
    session = pyhudi.DuckDbSession(tables)
    found: list[list[dict[str, Any]] | str] = []
    for statement, _ in case.statements:
        made = new_table(statement)
        if made is not None:
            tables[made.name] = str(folder / made.name)
            settings = {**session.settings, **create(statement, tables[made.name])}
            session = pyhudi.DuckDbSession(tables, options=settings)
            found.append("ok")
            continue
        try:
            rows = session.sql(statement).to_arrow()
        except HudiError as error:
            found.append(f"refused: {error}")
            continue
        found.append(rows.to_pylist() if statement.startswith("SELECT") else "ok")
    return found


def create(statement: str, place: str) -> dict[str, str]:
    """Make the table of a CREATE TABLE; the options among its properties that are no properties of the table here."""
    made = new_table(statement)
    assert made is not None, statement
    fields = []
    depth = start = 0
    for at, letter in enumerate(made.columns + ","):
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and depth == 0:
            name, _, kind = made.columns[start:at].strip().partition(" ")
            fields.append(pa.field(name, _TYPES[kind]))
            start = at + 1
    options = {_OPTIONS[key]: value for key, value in made.properties.items() if key in _OPTIONS}
    if made.partitions:
        options["hoodie.datasource.write.partitionpath.field"] = ",".join(made.partitions)
        options["hoodie.datasource.write.hive_style_partitioning"] = "true"
    if made.properties.get("type") == "mor":
        options["hoodie.datasource.write.table.type"] = "MERGE_ON_READ"
    pyhudi.HudiTable.create(place, pa.schema(fields), options=options)
    return {key: value for key, value in made.properties.items() if key.startswith("hoodie.")}
