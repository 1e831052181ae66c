"""INSERT, UPDATE, DELETE and MERGE INTO by `spark.sql`, classic and Connect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi.session.catalog import SparkCatalog
from pyhudi.session.temp_views import spark_sql
from pyhudi.sql.session import CatalogEntry, TableName
from tests.support.sql.on_spark import run_case
from tests.support.sql.statements import Case, cases

# A few that go each road; the whole list takes minutes.
QUICK = (
    "insert into a partitioned table takes partition columns last",
    "insert overwrite replaces partitions",
    "update changes the rows that the condition is true for",
    "update of a field of a struct",
    "delete from a partitioned merge on read table",
    "merge updates, deletes and inserts",
    "merge of rows that the source does not have",
    "merge that moves rows by a global index",
)
CASES = [case if case.name in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in cases("dml.sql")]


@pytest.fixture(scope="module")
def enabled(spark: Any) -> Iterator[Any]:
    pyhudi.enable(spark)
    yield spark
    pyhudi.disable(spark)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_statement_does_what_the_list_says(
    enabled: Any, tmp_path: Path, case: Case, request: pytest.FixtureRequest
) -> None:
    database = f"dml_{abs(hash(request.node.name))}"
    try:
        case.check(run_case(enabled, case, tmp_path, database))
    finally:
        enabled.sql("USE default")


@pytest.mark.thorough
def test_a_statement_looks_a_name_up_once(enabled: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "t")
    pyhudi.write_hudi(path, [{"id": 1, "v": 1, "ts": 1}, {"id": 2, "v": 2, "ts": 1}], record_key="id", ordering="ts")
    enabled.createDataFrame([(1, 10, 2)], "id BIGINT, v BIGINT, ts BIGINT").createOrReplaceTempView("looked_up")
    looks: list[str] = []
    honest = SparkCatalog.find_all

    def watched(self: SparkCatalog, names: Iterable[TableName]) -> dict[tuple[str, ...], CatalogEntry | None]:
        wanted = list(names)
        looks.extend(str(name) for name in wanted if name.path is None)
        return honest(self, wanted)

    monkeypatch.setattr(SparkCatalog, "find_all", watched)
    try:
        for values in ("UPDATE SET v = t.v + s.v", "UPDATE SET * WHEN NOT MATCHED THEN INSERT *"):
            looks.clear()
            enabled.sql(f"MERGE INTO hudi.`{path}` AS t USING looked_up AS s ON t.id = s.id WHEN MATCHED THEN {values}")
            assert looks == ["looked_up"]
    finally:
        enabled.catalog.dropTempView("looked_up")
    rows = pyhudi.HudiTable.open(path).scan(["id", "v"]).to_arrow().to_pylist()
    assert sorted((row["id"], row["v"]) for row in rows) == [(1, 10), (2, 2)]


@pytest.mark.thorough
def test_the_names_of_a_merge_are_looked_up_together(
    enabled: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    pyhudi.write_hudi(path, [{"id": 1, "v": 1, "ts": 1}], record_key="id", ordering="ts")
    enabled.sql(f"CREATE TABLE looked_up_target USING hudi LOCATION '{path}'")
    enabled.createDataFrame([(1, 10, 2)], "id BIGINT, v BIGINT, ts BIGINT").createOrReplaceTempView("looked_up_source")
    asked: list[str] = []

    def watched(spark: Any, text: str, *more: Any, **given: Any) -> Any:
        asked.append(text)
        return spark_sql(spark, text, *more, **given)

    monkeypatch.setattr("pyhudi.session.catalog.spark_sql", watched)
    try:
        enabled.sql(
            "MERGE INTO looked_up_target AS t USING looked_up_source AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        assert [text.partition(" LIKE ")[2] for text in asked] == ["'looked_up_source|looked_up_target'"]
    finally:
        enabled.catalog.dropTempView("looked_up_source")
        enabled.sql("DROP TABLE looked_up_target")
    assert pyhudi.HudiTable.open(path).scan(["v"]).to_arrow().to_pylist() == [{"v": 10}]
