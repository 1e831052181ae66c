"""Small increments are read by the driver, with the rows that Spark reads."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.spark import capabilities
from pyhudi.spark import reader as few_rows
from pyhudi.spark.engine import SparkEngine

TYPE, BEGIN = "hoodie.datasource.query.type", "hoodie.datasource.read.begin.instanttime"
MOST_ROWS = "hoodie.pyhudi.incremental.driver.max.rows"

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.string()),
        ("price", pa.decimal128(18, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("on", pa.date32()),
        ("data", pa.binary()),
        ("inner", pa.struct([("x", pa.int32()), ("names", pa.list_(pa.string()))])),
        ("by_name", pa.map_(pa.string(), pa.float64())),
        ("ts", pa.int64()),
    ]
)


def row(number: int, ts: int) -> dict[str, Any]:
    if number % 3 == 2:
        return {"id": number, "day": f"d{number % 2}", "ts": ts}
    return {
        "id": number,
        "day": f"d{number % 2}",
        "price": Decimal(f"-{number}.05"),
        "at": datetime(1960 + 30 * number, 7, 1, 12, 30, 0, number, timezone.utc),
        "local": datetime(2024, 3, 31, 2, 30, number),
        "on": date(1969, 12, 31 - number),
        "data": bytes([number, 255]),
        "inner": {"x": number, "names": ["a", None]},
        "by_name": [("nan", float("nan")), ("one", 1.0)],
        "ts": ts,
    }


@pytest.fixture
def enabled(spark: Any) -> Iterator[Any]:
    pyhudi.enable(spark)
    yield spark
    pyhudi.disable(spark)


def updated(folder: Path, rows: int = 3) -> tuple[HudiTable, str]:
    """A table of six rows of which so many were updated in a second commit, and when the first was completed."""
    table = HudiTable.create(folder / "t", SCHEMA, record_key="id", ordering="ts", partition_by=["day"])
    table.insert([row(number, 1) for number in range(6)])
    table.upsert([row(number, 2) for number in range(rows)])
    return table, str(next(iter(table.state().timeline.commits())).completion_time)


def load(spark: Any, table: HudiTable, begin: str, **options: Any) -> Any:
    reader = spark.read.format("hudi").option(TYPE, "incremental").option(BEGIN, begin)
    return reader.options(**options).load(table.path)


def is_of_the_driver(frame: Any) -> bool:
    """Are its rows there without a file?"""
    return not frame.inputFiles()


pytestmark = [
    pytest.mark.classic,
    pytest.mark.skipif(not capabilities.PRESENT.takes_arrow, reason="this Spark takes no Arrow tables"),
]


def test_the_driver_gives_the_rows_and_types_that_spark_gives(enabled: Any, tmp_path: Path) -> None:
    table, begin = updated(tmp_path)

    driver, native = load(enabled, table, begin), load(enabled, table, begin, **{MOST_ROWS: 0})

    assert is_of_the_driver(driver)
    assert not is_of_the_driver(native)
    assert driver.schema == native.schema
    assert sorted(map(repr, driver.collect())) == sorted(map(repr, native.collect()))
    assert driver.count() == 3
    assert [r["id"] for r in driver.where("price < -0.5 AND _hoodie_commit_time > '2'").collect()] == [1]


@pytest.mark.thorough
def test_the_schema_that_the_user_gives_is_kept(enabled: Any, tmp_path: Path) -> None:
    table, begin = updated(tmp_path)

    reader = enabled.read.format("hudi").option(TYPE, "incremental").option(BEGIN, begin).schema("ts long, id long")
    frame = reader.load(table.path)

    assert is_of_the_driver(frame)
    assert frame.columns == ["ts", "id"]
    assert sorted(map(tuple, frame.collect())) == [(2, 0), (2, 1), (2, 2)]


@pytest.mark.thorough
def test_more_rows_than_the_option_says_are_sparks(enabled: Any, tmp_path: Path) -> None:
    table, begin = updated(tmp_path, 4)

    assert is_of_the_driver(load(enabled, table, begin, **{MOST_ROWS: 4}))
    frame = load(enabled, table, begin, **{MOST_ROWS: 3})
    assert not is_of_the_driver(frame)
    assert frame.count() == 4


@pytest.mark.thorough
@pytest.mark.parametrize(("bound", "most_bytes"), [("_FILES_BYTES", 1_000), ("_ROWS_BYTES", 100)])
def test_large_files_and_rows_of_many_bytes_are_sparks(
    bound: str, most_bytes: int, enabled: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, begin = updated(tmp_path)
    monkeypatch.setattr(few_rows, bound, most_bytes)

    frame = load(enabled, table, begin)

    assert not is_of_the_driver(frame)
    assert frame.count() == 3


@pytest.mark.thorough
def test_on_a_cluster_spark_reads_the_files(enabled: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, begin = updated(tmp_path)
    monkeypatch.setattr(SparkEngine, "is_local_master", False)

    assert not is_of_the_driver(load(enabled, table, begin))


@pytest.mark.thorough
def test_what_can_not_be_read_fails_when_rows_are_fetched(enabled: Any, tmp_path: Path) -> None:
    table, begin = updated(tmp_path)
    for path in table.changes(begin).files().column("path").to_pylist():
        file = Path(table.path, str(path))
        content = file.read_bytes()
        file.write_bytes(content[:4] + bytes(200) + content[204:])  # the first pages

    frame = load(enabled, table, begin)

    assert not is_of_the_driver(frame)
    with pytest.raises(Exception, match=r"(?i)parquet|corrupt|page|read"):
        frame.collect()


def test_rows_stay_when_the_table_goes(enabled: Any, tmp_path: Path) -> None:
    table, begin = updated(tmp_path)
    frame = load(enabled, table, begin)

    shutil.rmtree(table.path)

    assert sorted(r["id"] for r in frame.collect()) == [0, 1, 2]
