"""The Spark examples of README and of the pages, run as they are but for the session and the folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi import HudiTable, write_hudi
from tests.support.pages import run_examples

ROOT = Path(__file__).resolve().parents[2]


def test_the_example_with_spark_runs(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    example = next(text for text in blocks if "SparkSession" in text)
    example = re.sub(r"^spark = .*$", "", example, flags=re.M)
    example = example.replace("/tmp/trips", str(tmp_path / "trips")).replace("1_000_000", "1_000")
    assert "enable(spark)" in example
    try:
        namespace: dict[str, Any] = {"spark": spark}
        exec(compile(example, "README.md", "exec"), namespace)
    finally:
        pyhudi.disable(spark)
    table = pyhudi.HudiTable.open(str(tmp_path / "trips"))
    assert table.scan().count() == 1_000
    assert table.scan(where="fare = 9.5").count() == 100
    assert table.scan(as_of=namespace["first"], where="fare = 9.5").count() == 0
    output = capsys.readouterr().out
    assert "avg(fare)" in output
    assert output.endswith("\n0\n")


ROWS = [{"id": "a", "ts": 1, "city": "rome"}]
OPTIONS = {"hoodie.table.name": "trips", "hoodie.datasource.write.recordkey.field": "id"}


@pytest.mark.thorough
def test_the_examples_of_reading_and_overwriting_run_with_a_session(spark: Any, tmp_path: Path) -> None:
    write_hudi(tmp_path / "taxis", ROWS, record_key="id")
    mark = HudiTable.open(tmp_path / "taxis").state().timeline.last_commit()
    assert mark is not None
    given = {
        "spark": spark,
        "mark": mark.completion_time,
        "df": spark.createDataFrame([("a", "rome")], "id string, city string"),
    }
    pyhudi.enable(spark)
    try:
        assert run_examples("docs/reading", {"/tmp": str(tmp_path)}, given, with_spark=True)
        path = str(tmp_path / "overwritten")
        write_hudi(path, [{"id": "x", "day": "2023-01-01", "v": 1}], record_key="id", partition_by="day")
        given["df"] = spark.createDataFrame([("a", "2025-01-01", 1)], "id string, day string, v long")
        assert run_examples("docs/overwriting", {}, {**given, "path": path}, with_spark=True)
    finally:
        pyhudi.disable(spark)


@pytest.mark.thorough
def test_the_example_of_sql_runs(spark: Any, tmp_path: Path) -> None:
    places = {"type = 'mor')\n": f"type = 'mor') LOCATION '{tmp_path}/trips'\n"}
    try:
        assert run_examples("docs/sql", places, {"spark": spark, "pyhudi": pyhudi})
    finally:
        spark.sql("DROP TABLE IF EXISTS trips")
        pyhudi.disable(spark)


@pytest.mark.thorough
def test_the_examples_of_streaming_run(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "1.json").write_text('{"id": "a", "ts": 1}')
    path = str(tmp_path / "trips")
    write_hudi(path, [{"id": "x", "ts": 1}], record_key="id")
    given = {
        "spark": spark, "pyhudi": pyhudi, "path": path, "hudi_options": OPTIONS,
        "events": spark.readStream.schema("id string, ts long").json(str(tmp_path / "events")),
    }  # fmt: skip
    try:
        places = {"/data/trips": path, '"/checkpoints/trips")': f'"{tmp_path}/checkpoints")'}
        assert run_examples("docs/streaming", places, given, with_spark=True)
    finally:
        for query in spark.streams.active:
            query.processAllAvailable()
            query.stop()
        pyhudi.disable(spark)
    assert HudiTable.open(path).scan().count() == 2


@pytest.mark.thorough
def test_the_examples_of_the_tutorial_and_of_coming_from_hudis_bundle_run(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    maps = [{"id": n, "city": "rome", "item": "map", "price": 3.0, "ts": 9} for n in range(8)]
    write_hudi(tmp_path / "orders", maps, record_key="id", partition_by="city", ordering="ts")
    places = {"/tmp/": f"{tmp_path}/", "SparkSession.builder.getOrCreate()": "spark"}
    try:
        assert run_examples("docs/tutorial", places, {"spark": spark}, with_spark=True) == 1
        assert run_examples("docs/coming-from/hudi-spark", places, {"spark": spark}) == 2
    finally:
        spark.catalog.dropTempView("trips")  # it would hide tables of this name
        pyhudi.disable(spark)
    assert "rider-C" in capsys.readouterr().out
