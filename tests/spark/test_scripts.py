"""Scripts written for Hudi's jar run unchanged after `pyhudi.enable(spark)`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import ConfigError, HudiError, KeyGenError, SchemaMismatch, TableExists, TableNotFound
from pyhudi.model.keys import META_COLUMNS
from pyhudi.spark.engine import SparkEngine, collect_arrow

OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}


@pytest.fixture
def hudi(spark: Any) -> Iterator[Any]:
    pyhudi.enable(spark)
    yield spark
    pyhudi.disable(spark)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "trips")


def trips(spark: Any, rows: list[tuple[str, str, int, float]]) -> Any:
    return spark.createDataFrame(rows, "id string, city string, ts bigint, fare double")


FIRST = [("a", "rome", 1, 1.0), ("b", "rome", 1, 2.0), ("c", "oslo", 1, 3.0)]


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select("id", "city", "ts", "fare").collect())


def save(frame: Any, path: str, mode: str = "append", **options: Any) -> None:
    frame.write.format("hudi").options(**OPTIONS).options(**options).mode(mode).save(path)


def test_the_quick_start_of_hudi_runs(hudi: Any, path: str) -> None:
    save(trips(hudi, FIRST), path, "overwrite")
    save(trips(hudi, [("b", "rome", 2, 20.0), ("d", "oslo", 2, 4.0)]), path)
    deletes = hudi.read.format("hudi").load(path).where("city = 'oslo' and ts = 1")
    deletes.write.format("hudi").options(**OPTIONS).option("hoodie.datasource.write.operation", "delete").mode(
        "append"
    ).save(path)

    now = hudi.read.format("org.apache.hudi").load(path)

    assert rows(now) == [("a", "rome", 1, 1.0), ("b", "rome", 2, 20.0), ("d", "oslo", 2, 4.0)]
    assert tuple(now.columns[:5]) == META_COLUMNS


@pytest.mark.thorough
def test_time_travel_by_instant(hudi: Any, path: str) -> None:
    save(trips(hudi, FIRST), path)
    first = hudi.read.format("hudi").load(path).select("_hoodie_commit_time").first()[0]
    save(trips(hudi, [("a", "rome", 2, 10.0)]), path)

    before = hudi.read.format("hudi").option("as.of.instant", first).load(path)

    assert rows(before) == sorted(FIRST)


def test_partition_by_names_the_partition_fields(hudi: Any, path: str) -> None:
    options = {key: value for key, value in OPTIONS.items() if "partitionpath" not in key}
    trips(hudi, FIRST).write.format("hudi").options(**options).partitionBy("city").save(path)

    assert sorted(entry.name for entry in Path(path).iterdir() if entry.name[0] != ".") == ["oslo", "rome"]
    with pytest.raises(ConfigError, match=r"partitionBy names id, but hoodie\.datasource\.write\.partitionpath"):
        trips(hudi, FIRST).write.format("hudi").options(**OPTIONS).partitionBy("id").mode("overwrite").save(path)


@pytest.mark.thorough
def test_without_a_record_key_rows_are_bulk_inserted(hudi: Any, path: str) -> None:
    trips(hudi, FIRST * 2).write.format("hudi").option("hoodie.table.name", "trips").save(path)

    assert rows(hudi.read.format("hudi").load(path)) == sorted(FIRST * 2)


@pytest.mark.thorough
def test_the_path_may_be_an_option(hudi: Any, path: str) -> None:
    trips(hudi, FIRST).write.options(path=path, **OPTIONS).format("hudi").save()

    assert rows(hudi.read.option("path", path).load(format="hudi")) == sorted(FIRST)


# ---- save modes ------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_the_default_mode_refuses_a_table_that_is_there(hudi: Any, path: str) -> None:
    trips(hudi, FIRST).write.format("hudi").options(**OPTIONS).save(path)

    for mode in (None, "error", "errorifexists"):
        with pytest.raises(TableExists, match="append"):
            trips(hudi, FIRST).write.format("hudi").options(**OPTIONS).mode(mode).save(path)


@pytest.mark.thorough
def test_ignore_leaves_a_table_as_it_is(hudi: Any, path: str) -> None:
    save(trips(hudi, FIRST), path, "ignore")
    save(trips(hudi, [("z", "rome", 9, 9.0)]), path, "ignore")

    assert rows(hudi.read.format("hudi").load(path)) == sorted(FIRST)


@pytest.mark.thorough
def test_overwrite_makes_a_new_table_with_new_options(hudi: Any, path: str) -> None:
    save(trips(hudi, FIRST), path)
    other = {**OPTIONS, "hoodie.datasource.write.partitionpath.field": "", "hoodie.table.name": "other"}
    trips(hudi, [("x", "rome", 1, 0.5)]).write.format("hudi").options(**other).mode("overwrite").save(path)

    assert rows(hudi.read.format("hudi").load(path)) == [("x", "rome", 1, 0.5)]
    assert pyhudi.HudiTable.open(path).state().config.table_name == "other"
    assert not (Path(path) / "rome").exists()


@pytest.mark.thorough
def test_a_wrong_overwrite_leaves_the_old_table(hudi: Any, path: str) -> None:
    save(trips(hudi, FIRST), path)

    with pytest.raises(ConfigError, match="nope"):
        save(trips(hudi, FIRST), path, "overwrite", **{"hoodie.datasource.write.recordkey.field": "nope"})
    for engine in ("local", "spark"):
        with pytest.raises(HudiError, match="null"):
            save(trips(hudi, [(None, "rome", 1, 1.0)]), path, "overwrite", **{"hoodie.pyhudi.engine": engine})

    assert rows(hudi.read.format("hudi").load(path)) == sorted(FIRST)
    assert not list((Path(path) / ".hoodie/.temp").iterdir())


def test_overwrite_deletes_only_tables(hudi: Any, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"meow")

    with pytest.raises(ConfigError, match=r"cat\.jpg and no Hudi table"):
        save(trips(hudi, FIRST), str(tmp_path / "photos"), "overwrite")

    assert (tmp_path / "photos" / "cat.jpg").read_bytes() == b"meow"


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_table_can_be_overwritten_from_its_own_rows(engine: str, hudi: Any, path: str) -> None:
    save(trips(hudi, FIRST), path)

    own = hudi.read.format("hudi").load(path).where("city = 'rome'")
    save(own, path, "overwrite", **{"hoodie.pyhudi.engine": engine})

    assert rows(hudi.read.format("hudi").load(path)) == [("a", "rome", 1, 1.0), ("b", "rome", 1, 2.0)]


# ---- options ---------------------------------------------------------------------------------------------------------


def test_session_wide_options_stand_behind_those_of_the_call(hudi: Any, path: str) -> None:
    hudi.conf.set("spark.hoodie.datasource.write.recordkey.field", "id")
    hudi.conf.set("spark.hoodie.datasource.write.hive_style_partitioning", "true")
    try:
        options = {key: value for key, value in OPTIONS.items() if "recordkey" not in key}
        trips(hudi, FIRST).write.format("hudi").options(**options).save(path)
    finally:
        hudi.conf.unset("spark.hoodie.datasource.write.recordkey.field")
        hudi.conf.unset("spark.hoodie.datasource.write.hive_style_partitioning")

    assert (Path(path) / "city=rome").is_dir()
    assert pyhudi.HudiTable.open(path).state().config.record_key_fields == ("id",)


def test_an_unknown_option_warns_with_the_nearest_known_one(hudi: Any, path: str) -> None:
    with pytest.warns(pyhudi.HudiOptionWarning, match="recordkey"):
        save(trips(hudi, FIRST), path, **{"hoodie.datasource.write.recordkey.fild": "id"})


def test_incremental_reads_are_refused_by_name(hudi: Any, path: str) -> None:
    save(trips(hudi, FIRST), path)

    with pytest.raises(ConfigError, match="incremental"):
        hudi.read.format("hudi").option("hoodie.datasource.query.type", "incremental").load(path)


# ---- the reader ------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_schema_is_a_projection(hudi: Any, path: str) -> None:
    save(trips(hudi, FIRST), path)

    frame = hudi.read.schema("fare double, id string").format("hudi").load(path)

    assert frame.columns == ["fare", "id"]
    with pytest.raises(SchemaMismatch, match=r"fare \(double in the table, not int\)"):
        hudi.read.schema("fare int").format("hudi").load(path)
    with pytest.raises(ConfigError, match="far"):
        hudi.read.schema("far double").format("hudi").load(path)


def test_a_path_without_a_table_is_said_to_be_so(hudi: Any, path: str) -> None:
    with pytest.raises(TableNotFound, match="trips"):
        hudi.read.format("hudi").load(path)
    with pytest.raises(ConfigError, match="one table"):
        hudi.read.format("hudi").load([path, path])


@pytest.mark.thorough
def test_an_empty_table_is_an_empty_frame(hudi: Any, path: str) -> None:
    save(trips(hudi, FIRST), path)
    save(trips(hudi, FIRST), path, **{"hoodie.datasource.write.operation": "delete"})

    frame = hudi.read.format("hudi").load(path)

    assert (frame.count(), frame.columns[-1]) == (0, "fare")


# ---- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_null_key_is_refused_and_nothing_is_written(hudi: Any, path: str, engine: str) -> None:
    save(trips(hudi, FIRST), path)

    with pytest.raises(KeyGenError) as caught:
        save(trips(hudi, [("e", "rome", 5, 5.0), (None, "rome", 5, 5.0)]), path, **{"hoodie.pyhudi.engine": engine})

    assert "id" in str(caught.value)
    assert "Traceback" not in str(caught.value)
    assert rows(hudi.read.format("hudi").load(path)) == sorted(FIRST)


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_partition_value_that_leaves_the_table_is_refused(hudi: Any, path: str, engine: str) -> None:
    save(trips(hudi, FIRST), path)

    with pytest.raises(pyhudi.HudiError, match=r"\.\."):
        save(trips(hudi, [("e", "../../etc", 5, 5.0)]), path, **{"hoodie.pyhudi.engine": engine})

    assert rows(hudi.read.format("hudi").load(path)) == sorted(FIRST)


def test_columns_that_cannot_be_stored_are_refused_before_anything_is_written(hudi: Any, path: str) -> None:
    frame = trips(hudi, FIRST).withColumn("span", F.expr("interval '1' day"))

    with pytest.raises(SchemaMismatch, match="span"):
        save(frame, path)

    assert not Path(path).exists()


def test_a_column_name_twice_is_refused(hudi: Any, path: str) -> None:
    with pytest.raises(SchemaMismatch, match="several columns called fare"):
        save(trips(hudi, FIRST).select("*", F.col("fare")), path)


def test_a_failing_input_fails_with_sparks_own_words(hudi: Any, path: str) -> None:
    frame = trips(hudi, FIRST).withColumn("fare", F.expr("if(ts < 0, fare, raise_error('the disk is full'))"))

    with pytest.raises(Exception, match="the disk is full") as caught:
        save(frame, path)

    assert not isinstance(caught.value, pyhudi.HudiError)


# ---- the switch ------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_other_formats_are_sparks_own(hudi: Any, tmp_path: Path) -> None:
    from pyspark.sql import DataFrame
    from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

    frame = trips(hudi, FIRST)
    writer = frame.write
    writer.mode("overwrite").partitionBy("city").parquet(str(tmp_path / "p"), compression="gzip")
    frame.coalesce(1).write.format("json").mode("overwrite").save(str(tmp_path / "j"))

    back = hudi.read.option("basePath", str(tmp_path / "p")).parquet(str(tmp_path / "p"))
    assert rows(back) == sorted(FIRST)
    assert rows(
        hudi.read.format("json").schema("id string, city string, ts bigint, fare double").load(str(tmp_path / "j"))
    ) == sorted(FIRST)
    assert isinstance(back, DataFrame) or type(hudi).__module__.startswith("pyspark.sql.connect")
    assert list((tmp_path / "p").rglob("*.gz.parquet"))
    assert isinstance(writer, DataFrameWriter) or type(hudi).__module__.startswith("pyspark.sql.connect")
    assert isinstance(hudi.read, DataFrameReader) or type(hudi).__module__.startswith("pyspark.sql.connect")


def test_enabling_twice_and_disabling_leaves_spark_as_it_was(spark: Any) -> None:
    before = (type(spark).__dict__["read"], type(spark.range(1)).__dict__["write"])

    pyhudi.enable(spark)
    pyhudi.enable(spark)
    assert type(spark).__dict__["read"] is not before[0]
    pyhudi.disable(spark)
    pyhudi.disable(spark)

    assert (type(spark).__dict__["read"], type(spark.range(1)).__dict__["write"]) == before


def test_calls_without_a_meaning_for_hudi_are_refused(hudi: Any, path: str) -> None:
    with pytest.raises(ConfigError, match="bucketBy"):
        trips(hudi, FIRST).write.format("hudi").options(**OPTIONS).bucketBy(2, "id").saveAsTable("trips")
    with pytest.raises(ConfigError, match="bucketBy"):
        trips(hudi, FIRST).write.format("hudi").options(**OPTIONS).bucketBy(2, "id").save(path)
    with pytest.raises(ConfigError, match="path"):
        trips(hudi, FIRST).write.format("hudi").options(**OPTIONS).save()
    with pytest.raises(ConfigError, match="SparkSession"):
        pyhudi.enable("local[2]")


# ---- the data source without the switch ------------------------------------------------------------------------------


@pytest.mark.thorough
def test_the_data_source_reads_a_table_with_nothing_enabled(spark: Any, path: str) -> None:
    pyhudi.write_hudi(path, trips(spark, FIRST), options=OPTIONS)

    whole = spark.read.format("hudi").load(path)
    narrow = spark.read.format("hudi").option("columns", "id, fare").load(path)

    assert rows(whole) == sorted(FIRST)
    assert whole.columns[0] == "_hoodie_commit_time"
    assert narrow.columns == ["id", "fare"]
    assert narrow.agg(F.sum("fare")).first()[0] == 6.0
    assert spark.read.schema("ts bigint").format("hudi").load(path).distinct().count() == 1
    view = f"create or replace temporary view trips_now using hudi options (path '{path}')"
    spark.sql(view)
    assert spark.sql("select count(*) from trips_now where city = 'rome'").first()[0] == 2


@pytest.mark.thorough
def test_the_data_source_refuses_to_write_and_names_the_switch(spark: Any, path: str) -> None:
    with pytest.raises(Exception, match=r"pyhudi\.enable\(spark\)"):
        trips(spark, FIRST).write.format("hudi").options(**OPTIONS).mode("append").save(path)


# ---- HudiTable with a session ----------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_table_takes_frames_and_arrow_and_gives_frames(spark: Any, path: str) -> None:
    pyhudi.write_hudi(path, trips(spark, FIRST), spark=spark, options=OPTIONS)
    table = pyhudi.HudiTable.open(path, spark=spark)

    result = table.upsert(trips(spark, [("a", "rome", 2, 10.0)]))
    table.upsert(pa.table({"id": ["e"], "city": ["oslo"], "ts": pa.array([1], pa.int64()), "fare": [5.0]}))
    frame = table.scan(columns=["id", "fare"], where="fare >= 5 and city in ('rome', 'oslo')").to_spark()

    assert (result.inserted, result.updated) == (0, 1)
    assert sorted(tuple(row) for row in frame.collect()) == [("a", 10.0), ("e", 5.0)]
    assert len(table.history()) == 3


@pytest.mark.thorough
def test_filters_of_a_scan_mean_the_same_in_spark(spark: Any, tmp_path: Path) -> None:
    moment = [0, 1_700_000_000_000_000, None, -1]
    data = pa.table(
        {
            "id": ["a", "b", "c", "d"],
            "x": pa.array([1.5, float("nan"), None, -0.0]),
            "at": pa.array(moment, pa.timestamp("us", "UTC")),
            "local": pa.array(moment, pa.timestamp("us")),
            "n": pa.array([1, 2, 3, None], pa.int32()),
            "name": ["100%", "ab_c", None, "ab\nc"],
            "raw": [b"\x00", b"a", None, b"b"],
            "st": [{"y": 1}, {"y": 2}, None, {"y": None}],
        }
    )
    path = str(tmp_path / "t")
    pyhudi.write_hudi(path, data, record_key="id", table_name="t")
    table = pyhudi.HudiTable.open(path, spark=spark)
    conditions = [
        "x > 1", "x <> 1.5", "x < 5", "x = 0", "NOT x > 1", "x IN (1.5, 7)", "x IS NULL", "x >= -0.0",
        "at > TIMESTAMP '1970-01-01 00:00:00'", "at <= '2023-11-14 22:13:20'",
        "local < TIMESTAMP '1970-01-01 00:00:00'",
        "n IN (1, 2, NULL)", "n NOT IN (1, 2)", "n <> 2 OR name LIKE 'ab%'", "name LIKE 'ab_c'", "name LIKE '%0\\%'",
        "n BETWEEN 1 AND 2.5", "st.y = 2", "st.y IS NULL", "n > 5000000000", "raw = 'a'", "id = name OR n = 3",
    ]  # fmt: skip

    for condition in conditions:
        scan = table.scan(columns=["id"], where=condition)
        expected = sorted(scan.to_arrow().column("id").to_pylist())
        assert sorted(row.id for row in scan.to_spark().collect()) == expected, condition


@pytest.mark.thorough
def test_nothing_warns_on_the_way(hudi: Any, path: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", pyhudi.HudiOptionWarning)
        save(trips(hudi, FIRST), path)
        assert SparkEngine(hudi).collect(hudi.read.format("hudi").load(path)).num_rows == 3
        assert collect_arrow(hudi.read.format("hudi").load(path).select("id")).num_rows == 3


def test_jobs_say_what_they_are_for_and_leave_the_sessions_description(
    hudi: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    described: list[str] = []
    is_connect = type(hudi).__module__.startswith("pyspark.sql.connect")
    if is_connect:
        tag = type(hudi).addTag
        monkeypatch.setattr(type(hudi), "addTag", lambda self, words: (described.append(words), tag(self, words))[1])
    else:
        hudi.sparkContext.setJobDescription("the user's own")

    save(trips(hudi, FIRST), path, **{"hoodie.pyhudi.engine": "spark"})
    save(trips(hudi, [("a", "rome", 2, 9.0)]), path, **{"hoodie.pyhudi.local.max.rows": "1000"})
    hudi.sql(f"DELETE FROM hudi.`{path}` WHERE id = 'b'")

    if is_connect:
        assert hudi.getTags() == set()
    else:
        jobs = hudi.sparkContext._jsc.sc().statusStore().jobsList(None)
        words = [jobs.apply(place).description() for place in range(jobs.size())]
        described = [one.get() for one in words if one.isDefined()]
        assert hudi.sparkContext.getLocalProperty("spark.job.description") == "the user's own"
        hudi.sparkContext.setLocalProperty("spark.job.description", None)
    assert {"hudi upsert trips: find rows", "hudi upsert trips: write files", "hudi upsert trips: read input"} <= set(
        described
    )


def test_patterns_behind_a_tables_folder_and_a_save_without_a_name_work_as_they_are_typed(
    hudi: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {key: value for key, value in OPTIONS.items() if key != "hoodie.table.name"}
    frame = trips(hudi, FIRST)
    frame.write.format("hudi").options(**options).save(path)
    assert HudiTable.open(path).state().config.table_name == "trips"
    hudi.conf.set("spark.hoodie.table.name", "of_the_session")
    try:
        frame.write.format("hudi").options(**options).mode("overwrite").save(f"{path}_2")
    finally:
        hudi.conf.unset("spark.hoodie.table.name")
    assert HudiTable.open(f"{path}_2").state().config.table_name == "of_the_session"

    for pattern in ("/*", "/*/*", "/**", "/*/*/*/", "/*/*.parquet"):
        assert rows(hudi.read.format("hudi").load(path + pattern)) == sorted(FIRST)
    with pytest.raises(TableNotFound, match=r"expands no patterns.*choose partitions by where"):
        hudi.read.format("hudi").load(f"{path}/ro*/*")
    with pytest.raises(TableNotFound, match="No Hudi table at"):
        hudi.read.format("hudi").load(f"{path}_3/*/*")

    monkeypatch.setattr("pyhudi.warnings._messages_given_once", set())
    tuned = {**OPTIONS, "hoodie.upsert.shuffle.parallelism": 2, "hoodie.insert.shuffle.parallelism": "2"}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(3):
            frame.write.format("hudi").options(**tuned).mode("append").save(path)
    assert len([one for one in said if "shuffle.parallelism" in str(one.message)]) == 1
