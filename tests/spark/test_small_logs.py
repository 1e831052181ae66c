"""Small log files are read when the frame is made, larger ones by tasks; both give the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import PathNotFound
from pyhudi.spark import capabilities, merged
from pyhudi.spark.engine import SparkEngine, collect_arrow
from pyhudi.spark.reader import read_frame
from tests.support.spark.frames import OPTIONS, plan_of, rows

LOG_BYTES = "hoodie.pyhudi.read.log.driver.max.bytes"
MERGE_ON_READ = {
    **OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
}

NO_SMALL_FILES = {"hoodie.parquet.small.file.limit": "0"}  # new rows get files of their own

pytestmark = pytest.mark.skipif(not capabilities.PRESENT.takes_arrow, reason="this Spark takes no Arrow tables")


@pytest.fixture(autouse=True)
def without_split_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged, "split_key", lambda *_: None)


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    """330 rows, of which some were updated, some late, some deleted, and 10 new ones; all that in log files. Each base
    file has another number of rows: files of equal size have no flags.
    """
    path = str(tmp_path / "t")
    table = HudiTable.create(path, rows(0, 2, 1).schema, options=MERGE_ON_READ)
    more = rows(400, 460, 5).take([*range(0, 60, 3), *range(1, 30, 3)])
    table.upsert(pa.concat_tables([rows(0, 300, 5), more]))
    table.upsert(pa.concat_tables([rows(0, 60, 7), rows(60, 90, 3), rows(300, 310, 1)]), options=NO_SMALL_FILES)
    table.delete(rows(90, 120, 9).select(["id", "day", "ts"]))
    return table


def answers(frame: Any) -> list[str]:
    return sorted(map(repr, collect_arrow(frame).to_pylist()))


def has_python(frame: Any, capsys: pytest.CaptureFixture[str]) -> bool:
    """Do Spark's Python workers take part?"""
    return "MapInArrow" in plan_of(frame, capsys)


@pytest.mark.parametrize("filtered", [None, "amount > 100 AND ts < 7"])
def test_the_driver_and_tasks_give_the_same_rows(
    filtered: str | None, table: HudiTable, spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = sorted(map(repr, table.scan(where=filtered).to_arrow().to_pylist()))
    assert expected
    driver, tasks = read_frame(spark, table.path, {}), read_frame(spark, table.path, {LOG_BYTES: 0})
    if filtered is not None:
        driver, tasks = driver.where(filtered), tasks.where(filtered)

    assert answers(driver) == answers(tasks) == expected
    assert driver.schema == tasks.schema
    assert [has_python(frame, capsys) for frame in (driver, tasks)] == [False, True]


@pytest.mark.thorough
def test_a_filter_of_the_scan_is_applied_to_log_rows(table: HudiTable, spark: Any) -> None:
    scan = HudiTable.open(table.path, spark=spark).scan(columns=["id", "ts"], where="ts <> 5")
    assert answers(scan.to_spark()) == sorted(map(repr, scan.to_arrow().to_pylist()))


@pytest.mark.thorough
def test_log_files_that_only_add_rows_or_only_delete_them_bring_no_empty_part(
    tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    table = HudiTable.create(str(tmp_path / "t"), rows(0, 2, 1).schema, options=MERGE_ON_READ)
    table.upsert(rows(0, 30, 5))
    table.delete(rows(0, 3, 9).select(["id", "day", "ts"]))

    deleted = read_frame(spark, table.path, {})

    assert deleted.count() == 27
    assert "LocalTableScan" in plan_of(deleted, capsys)
    assert "Union" not in plan_of(deleted, capsys)


@pytest.mark.thorough
@pytest.mark.parametrize("bound", ["_ROWS_BYTES", "_CONNECT_BYTES"])
def test_rows_of_many_bytes_are_read_by_tasks(
    bound: str, table: HudiTable, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_connect = type(spark).__module__.startswith("pyspark.sql.connect")
    expected = answers(read_frame(spark, table.path, {}))
    monkeypatch.setattr(merged, bound, 100)

    frame = read_frame(spark, table.path, {})

    assert has_python(frame, capsys) == (on_connect == (bound == "_CONNECT_BYTES"))
    assert answers(frame) == expected


@pytest.mark.thorough
def test_many_slices_are_read_by_tasks(
    table: HudiTable, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(merged, "_SLICES_HERE", 2)

    assert has_python(read_frame(spark, table.path, {}), capsys)


@pytest.mark.thorough
def test_an_older_spark_reads_log_files_by_tasks(
    table: HudiTable, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.support.spark.lacking import WITHOUT

    monkeypatch.setattr(capabilities, "PRESENT", WITHOUT)

    assert has_python(read_frame(spark, table.path, {}), capsys)


@pytest.mark.thorough
def test_log_files_that_can_not_be_read_are_left_to_tasks(
    table: HudiTable, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*arguments: Any, **more: Any) -> Any:
        raise PathNotFound("gone")

    monkeypatch.setattr(merged, "split_read", fails)

    assert has_python(read_frame(spark, table.path, {}), capsys)


@pytest.mark.thorough
def test_replaced_rows_leave_by_flags_or_by_numbers(
    table: HudiTable, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = answers(read_frame(spark, table.path, {LOG_BYTES: 0}))
    frames = [read_frame(spark, table.path, {})]
    monkeypatch.setattr(merged, "_FLAGS", 10)
    frames.append(read_frame(spark, table.path, {}))

    assert ["LeftAnti" in plan_of(frame, capsys) for frame in frames] == [False, True]
    assert [answers(frame) for frame in frames] == [expected, expected]


@pytest.mark.thorough
@pytest.mark.parametrize("batched_rows", [0, 1 << 20], ids=["Arrow batches", "rows"])
def test_log_rows_are_arrow_batches_or_rows(
    batched_rows: int, table: HudiTable, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = answers(read_frame(spark, table.path, {LOG_BYTES: 0}))
    monkeypatch.setattr(merged, "_BATCHED_ROWS", batched_rows)

    assert answers(read_frame(spark, table.path, {})) == expected


@pytest.mark.parametrize("sizes", [[5], [7, 11, 15], [4_000_000_000, 12, 4_000_000_012], list(range(10, 5_000, 20))])
def test_every_size_of_a_file_has_its_own_remainder(sizes: list[int]) -> None:
    modulus = merged._modulus(np.array(sizes))

    assert len({size % modulus for size in sizes}) == len(sizes)
    assert modulus <= max(len(sizes) ** 2, 1)


@pytest.mark.thorough
def test_rows_of_the_log_files_stay_when_these_change(table: HudiTable, spark: Any) -> None:
    frame = read_frame(spark, table.path, {})
    before = answers(frame)

    table.upsert(rows(0, 60, 20))

    assert answers(frame) == before
    assert SparkEngine(spark).schema(frame).names == table.scan().to_arrow().schema.names
