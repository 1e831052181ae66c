"""Inputs that this process writes: all of their rows, or none when they are too many."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame

from pyhudi.model.options import WriteOptions
from pyhudi.spark import frame_input


def options(**more: Any) -> WriteOptions:
    return WriteOptions.parse(
        {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id", **more}, {}, None
    )


def numbers(spark: Any, rows: int, tasks: int) -> DataFrame:
    return spark.range(0, rows, 1, tasks)


def ids(df: DataFrame, **more: Any) -> list[int] | None:
    rows = frame_input.fetched(df, options(**more), more)
    if rows is None:
        return None
    assert rows.column_names == df.columns
    return sorted(rows.column(0).to_pylist())


@pytest.fixture
def of_96_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_input, "_LOCAL_MASTER_BYTES", 96 * 8)


@pytest.mark.usefixtures("of_96_rows")
@pytest.mark.parametrize("tasks", [1, 2, 3, 8, 96])
def test_an_input_of_as_many_rows_as_allowed_comes_here_however_many_tasks_it_is_spread_over(spark: Any, tasks: int):
    assert ids(numbers(spark, 96, tasks)) == list(range(96))


@pytest.mark.usefixtures("of_96_rows")
@pytest.mark.parametrize("tasks", [1, 2, 8, 200])
@pytest.mark.parametrize("rows", [97, 5000])
def test_an_input_of_more_rows_is_left_to_spark(spark: Any, tasks: int, rows: int):
    assert ids(numbers(spark, rows, tasks)) is None


@pytest.mark.usefixtures("of_96_rows")
def test_an_input_whose_rows_sit_in_one_late_task_is_whole_or_left_to_spark(spark: Any):
    few = numbers(spark, 80, 4).where("id >= 60")
    assert ids(few) == list(range(60, 80))
    assert ids(numbers(spark, 160, 4).where("id >= 120")) is None  # the fourth task may send a fourth of 96 rows


def test_an_input_without_rows_comes_here(spark: Any):
    assert ids(numbers(spark, 10, 2).where("id < 0")) == []


def test_limits_that_are_given_count_on_a_local_master_too(spark: Any):
    assert ids(numbers(spark, 40, 3), **{"hoodie.pyhudi.local.max.rows": 40}) == list(range(40))
    assert ids(numbers(spark, 41, 3), **{"hoodie.pyhudi.local.max.rows": 40}) is None
    assert ids(numbers(spark, 1, 1), **{"hoodie.pyhudi.local.max.rows": 0}) is None


@pytest.mark.parametrize("limits", [{}, {"hoodie.pyhudi.local.max.rows": "1000"}])
def test_rows_that_spark_does_not_hand_over_are_written_by_spark(
    limits: dict[str, str], spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few rows of a megabyte each are more than their schema says."""

    def refused(frame: DataFrame) -> Any:
        raise RuntimeError(
            "Job aborted due to stage failure: Total size of serialized results of 9 tasks (1.1 GiB) is bigger than "
            "spark.driver.maxResultSize (1024.0 MiB)"
        )

    monkeypatch.setattr(frame_input, "collect_arrow", refused)
    assert ids(numbers(spark, 96, 2), **limits) is None
