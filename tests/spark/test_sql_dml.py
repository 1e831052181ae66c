"""INSERT, UPDATE, DELETE and MERGE INTO by `spark.sql`, classic and Connect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi.errors import ConfigError
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


def test_structs_and_meta_columns_follow_one_rule_on_every_road_of_an_insert(enabled: Any, tmp_path: Path) -> None:
    person = "STRUCT<name: STRING, code: STRING>"
    columns = f"id INT, s {person}, people ARRAY<{person}>, m MAP<STRING, ARRAY<{person}>>"
    for name in ("people_a", "people_b"):
        enabled.sql(
            f"CREATE TABLE {name} ({columns}) USING hudi LOCATION '{tmp_path / name}' TBLPROPERTIES (primaryKey = 'id')"
        )
    given = "named_struct('code', 'C1', 'name', 'Anna')"
    values = f"{given}, array({given}), map('k', array({given}))"
    named = f"{given} AS s, array({given}) AS people, map('k', array({given})) AS m"
    anna = {"name": "Anna", "code": "C1"}
    mixed = {"name": "C1", "code": "Anna"}

    def people(table: str) -> dict[int, Any]:
        rows = pyhudi.HudiTable.open(str(tmp_path / table)).to_arrow(["id", "s", "people", "m"]).to_pylist()
        assert all(row["people"] == [row["s"]] and row["m"] == [("k", [row["s"]])] for row in rows)
        return {row["id"]: row["s"] for row in rows}

    enabled.sql(f"INSERT INTO people_a BY NAME SELECT {named}, 1 AS id")
    enabled.sql(f"INSERT INTO people_a SELECT {named}, 2 AS id")
    enabled.sql(f"INSERT INTO people_a VALUES (3, {values})")
    enabled.sql(f"INSERT INTO people_a (id, s, people, m) VALUES (4, {values})")
    enabled.sql(f"SELECT 5 AS x, {values}").write.insertInto("people_a")
    frame = enabled.sql(f"SELECT {named}, 6 AS id")
    frame.writeTo("people_a").append()
    upsert = {"hoodie.datasource.write.operation": "upsert"}
    frame.write.options(**upsert).insertInto("people_a")
    assert people("people_a") == {1: anna, 2: anna, 3: mixed, 4: mixed, 5: mixed, 6: anna}
    assert enabled.sql("SELECT id FROM people_a").count() == 6

    wrong = enabled.sql("SELECT 7 AS id, array(named_struct('code', 'C1', 'nme', 'Anna')) AS people")
    for call in (wrong.writeTo("people_a").append, wrong.writeTo("people_a").overwritePartitions):
        with pytest.raises(ConfigError, match=r"people\.element has no field 'nme'.*Did you mean 'name'"):
            call()
    with pytest.raises(ConfigError, match="does not overwrite"):
        frame.write.options(**upsert).insertInto("people_a", overwrite=True)

    times = enabled.table("people_a").select("_hoodie_commit_time").distinct().count()
    enabled.sql("INSERT INTO people_b SELECT * FROM people_a WHERE id < 3")
    enabled.sql("INSERT INTO people_b (id, s, people, m) SELECT * FROM people_a WHERE id = 3")
    enabled.sql("INSERT INTO people_b BY NAME SELECT * FROM people_a WHERE id = 4")
    enabled.table("people_a").where("id = 5").write.insertInto("people_b")
    enabled.table("people_a").where("id = 6").writeTo("people_b").append()
    assert people("people_b") == people("people_a")
    enabled.sql("INSERT OVERWRITE people_b SELECT * FROM people_a")
    assert people("people_b") == people("people_a")
    stored = enabled.table("people_b").select("_hoodie_commit_time").distinct().collect()
    assert (times, len(stored)) == (6, 1)
    for name in ("people_a", "people_b"):
        enabled.sql(f"DROP TABLE {name}")
