"""Incremental queries on each road to a DataFrame."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from tests.support.tables.clustered import TYPES

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("ts", pa.int64())])
TYPE, BEGIN, END = (
    f"hoodie.datasource.{name}" for name in ("query.type", "read.begin.instanttime", "read.end.instanttime")
)

FORMAT = "hoodie.datasource.query.incremental.format"
BECAME = "COPY_ON_WRITE to MERGE_ON_READ"  # after its commits


def values(frame: Any) -> list[int]:
    return sorted(row["v"] for row in frame.select("v").collect())


def made_as(table_type: str) -> str:
    return table_type.partition(" ")[0]


def three_commits(folder: Path, table_type: str) -> tuple[HudiTable, str, str]:
    """A table, and when its first two commits were completed."""
    table = HudiTable.create(folder / "t", SCHEMA, record_key="id", ordering="ts", table_type=made_as(table_type))
    table.insert([{"id": n, "v": n, "ts": 1} for n in range(4)])
    table.upsert([{"id": n, "v": 10 + n, "ts": 2} for n in range(2)])
    table.upsert([{"id": 1, "v": 21, "ts": 3}])
    if table_type == BECAME:
        table.maintenance.change_type("mor")
    first, second, _ = (str(i.completion_time) for i in table.state().timeline.commits())
    return table, first, second


@pytest.mark.parametrize("table_type", [*TYPES, BECAME])
def test_the_data_source_gives_the_rows_of_a_range(spark: Any, tmp_path: Path, table_type: str) -> None:
    table, first, second = three_commits(tmp_path, table_type)

    reader = spark.read.format("hudi").option(TYPE, "incremental").option(BEGIN, first)
    assert values(reader.load(table.path)) == [10, 21]
    assert values(reader.option(END, second).load(table.path)) == [10, 11]


@pytest.mark.thorough
@pytest.mark.parametrize("table_type", [*TYPES, BECAME])
def test_hudis_options_give_the_rows_of_a_range(spark: Any, tmp_path: Path, table_type: str) -> None:
    table, first, second = three_commits(tmp_path, table_type)

    pyhudi.enable(spark)
    try:
        reader = spark.read.format("hudi").option(TYPE, "incremental")
        assert values(reader.option(BEGIN, "earliest").option(END, second).load(table.path)) == [2, 3, 10, 11]
        newest = spark.read.format("hudi").option(TYPE, "incremental").option(BEGIN, second)
        assert values(newest.load(table.path)) == [21]
    finally:
        pyhudi.disable(spark)
    assert values(HudiTable.open(table.path, spark=spark).changes(first, second).to_spark()) == [10, 11]


CHANGES = [("d", 1, None), ("i", None, 0), ("i", None, 1), ("u", 0, 10)]


def changed(folder: Path, table_type: str) -> HudiTable:
    """A table that has a log of CHANGES."""
    made = made_as(table_type)
    table = HudiTable.create(folder / "t", SCHEMA, record_key="id", ordering="ts", table_type=made, cdc=True)
    table.insert([{"id": n, "v": n, "ts": 1} for n in range(2)])
    table.upsert([{"id": 0, "v": 10, "ts": 2}])
    table.delete([{"id": 1}])
    if table_type == BECAME:
        table.maintenance.change_type("mor")
    return table


def changes(frame: Any) -> list[tuple[str, int | None, int | None]]:
    assert frame.columns == ["op", "ts_ms", "before", "after"]
    pairs = [(row["op"], *(json.loads(row[name] or "null") for name in ("before", "after"))) for row in frame.collect()]
    return sorted(((op, *(None if row is None else row["v"] for row in images)) for op, *images in pairs), key=repr)


@pytest.mark.thorough
@pytest.mark.parametrize("table_type", [*TYPES, BECAME])
def test_the_data_source_gives_every_change(spark: Any, tmp_path: Path, table_type: str) -> None:
    table = changed(tmp_path, table_type)

    reader = spark.read.format("hudi").option(TYPE, "incremental").option(BEGIN, "earliest").option(FORMAT, "cdc")
    assert changes(reader.load(table.path)) == CHANGES


@pytest.mark.thorough
@pytest.mark.parametrize("table_type", [*TYPES, BECAME])
def test_hudis_options_give_every_change(spark: Any, tmp_path: Path, table_type: str) -> None:
    table = changed(tmp_path, table_type)

    pyhudi.enable(spark)
    try:
        reader = spark.read.format("hudi").option(TYPE, "incremental").option(BEGIN, "earliest").option(FORMAT, "cdc")
        frame = reader.load(table.path)
        assert changes(frame) == CHANGES
        assert frame.where("op = 'u'").count() == 1
    finally:
        pyhudi.disable(spark)
    assert changes(HudiTable.open(table.path, spark=spark).changes("earliest", format="cdc").to_spark()) == CHANGES
