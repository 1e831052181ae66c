"""Both engines write the same table; small inputs never become a Python job of Spark's; plans stay native."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import pyhudi
from pyhudi import HudiTable, SchemaMismatch
from pyhudi.session.writer import write_frame
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.reader import read_frame
from tests.support.spark.frames import OPERATION, OPTIONS, contents, plan_of, rows
from tests.support.writers.own_rows import begin, said_by

STEPS: list[tuple[str, pa.Table, dict[str, str]]] = [
    ("bulk_insert", rows(0, 600, 1), {}),
    # Updates and inserts, keys twice with the newer row first, and rows that are older than the stored ones.
    ("upsert", pa.concat_tables([rows(500, 900, 2), rows(0, 50, 3), rows(0, 50, 2), rows(50, 80, 0)]), {}),
    ("insert", rows(900, 950, 1), {}),
    ("delete", rows(100, 200, 9), {}),
    ("upsert", rows(200, 220, 9, _hoodie_is_deleted=pa.array([i % 2 == 0 for i in range(20)])), {}),
    ("upsert", rows(940, 960, 5, note=pa.array(["new"] * 20)), {"hoodie.write.set.null.for.missing.columns": "true"}),
]


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "SIMPLE", "BLOOM", "BUCKET"])
def test_this_process_and_spark_write_the_same_table(index: str, spark: Any, tmp_path: Path) -> None:
    made = SparkEngine(spark)
    counts: dict[str, list[tuple[int, ...]]] = {}
    for engine in ("local", "spark"):
        for operation, table, more in STEPS:
            if index == "BUCKET" and operation == "insert":
                operation = "upsert"
            given = {
                **OPTIONS,
                **more,
                OPERATION: operation,
                "hoodie.pyhudi.engine": engine,
                "hoodie.index.type": index,
            }
            given["hoodie.bucket.index.num.buckets"] = "2"
            result = write_frame(made.from_arrow(table), str(tmp_path / engine), given)
            assert result is not None
            counts.setdefault(engine, []).append((result.inserted, result.updated, result.deleted))

    assert contents(str(tmp_path / "spark")) == contents(str(tmp_path / "local"))
    assert counts["spark"] == counts["local"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "sort_mode",
    ["GLOBAL_SORT", "NONE", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"],
)
def test_every_sort_mode_of_bulk_insert_stores_all_rows(sort_mode: str, spark: Any, tmp_path: Path) -> None:
    frame = SparkEngine(spark).from_arrow(rows(0, 500, 1)).repartition(3)

    write_frame(
        frame, str(tmp_path / "t"), {**OPTIONS, OPERATION: "bulk_insert", "hoodie.bulkinsert.sort.mode": sort_mode}
    )

    assert [row["id"] for row in contents(str(tmp_path / "t"))] == sorted(
        (f"k{i:05}" for i in range(500)), key=lambda key: (int(key[1:]) % 3, key)
    )
    if sort_mode != "NONE":
        for data in pyhudi.HudiTable.open(tmp_path / "t").inspect.files().to_pylist():
            keys = (
                pa.parquet.read_table(tmp_path / "t" / data["path"], columns=["_hoodie_record_key"])
                .column(0)
                .to_pylist()
            )
            assert sort_mode == "PARTITION_PATH_REPARTITION" or keys == sorted(keys)


def counted(frame: Any, spark: Any, tmp_path: Path) -> tuple[Any, Any]:
    """The frame with a function that notes each row it is asked for, and the number of notes."""
    folder = str(tmp_path / "notes")
    Path(folder).mkdir()

    @F.udf("double")
    def noted(amount):  # hints that PySpark takes for none of its own make it warn on Connect
        import tempfile

        tempfile.mkstemp(dir=folder)
        return amount

    return frame.withColumn("amount", noted.asNondeterministic()("amount")), lambda: len(list(Path(folder).iterdir()))


def test_a_small_input_is_evaluated_once(spark: Any, tmp_path: Path) -> None:
    frame, evaluations = counted(SparkEngine(spark).from_arrow(rows(0, 20, 1)), spark, tmp_path)

    write_frame(frame, str(tmp_path / "t"), OPTIONS)

    assert evaluations() == 20


def test_inputs_over_the_limit_go_to_spark_and_under_it_do_not(spark: Any, tmp_path: Path, monkeypatch: Any) -> None:
    from pyhudi.table import save

    used: list[str] = []
    real = save.write_table
    monkeypatch.setattr(save, "write_table", lambda s, f, e, o: used.append(type(e).__name__) or real(s, f, e, o))
    frame = SparkEngine(spark).from_arrow(rows(0, 40, 1))
    path = str(tmp_path / "t")

    write_frame(frame, path, {**OPTIONS, "hoodie.pyhudi.local.max.rows": 40})
    write_frame(frame, path, {**OPTIONS, "hoodie.pyhudi.local.max.rows": 39})
    write_frame(frame, path, {**OPTIONS, "hoodie.pyhudi.local.max.bytes": 100})
    write_frame(frame, path, OPTIONS)
    write_frame(frame, path, {**OPTIONS, OPERATION: "bulk_insert"})

    assert used == ["LocalEngine", "SparkEngine", "SparkEngine", "LocalEngine", "SparkEngine"]


def test_the_session_zone_does_not_change_what_is_stored(spark: Any, tmp_path: Path) -> None:
    options = {**OPTIONS, "hoodie.datasource.write.partitionpath.field": "day", "hoodie.pyhudi.engine": "spark"}
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        frame = spark.sql(
            "select 'k' as id, '2024-01-01' as day, 1L as ts, timestamp '2024-01-01 09:00:00' as at, "
            "timestamp_ntz '2024-01-01 09:00:00' as local"
        )
        for engine in ("local", "spark"):
            write_frame(frame, str(tmp_path / engine), {**options, "hoodie.pyhudi.engine": engine})
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")

    for engine in ("local", "spark"):
        (row,) = contents(str(tmp_path / engine))
        assert row["at"].isoformat() == "2024-01-01T00:00:00+00:00"
        assert row["local"].isoformat() == "2024-01-01T09:00:00"


# ---- plans -----------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_read_is_sparks_own_scan_with_pruned_columns_and_pushed_filters(
    spark: Any, tmp_path: Path, capsys: Any
) -> None:
    path = str(tmp_path / "t")
    write_frame(SparkEngine(spark).from_arrow(rows(0, 90, 1)), path, OPTIONS)

    frame = read_frame(spark, path, {}).where("day = '2024-01-02' and amount > 3").select("id", "amount")
    plan = plan_of(frame, capsys)

    assert frame.count() == 29
    assert "Python" not in plan
    assert "MapInArrow" not in plan
    assert "FileScan parquet [id#" in plan
    assert "tags" not in plan
    assert "PartitionFilters: [isnotnull(day#" in plan
    assert "PushedFilters: [IsNotNull(amount), GreaterThan(amount,3.0)]" in plan


@pytest.mark.thorough
def test_without_hive_style_the_filter_is_pushed_into_the_files(spark: Any, tmp_path: Path, capsys: Any) -> None:
    path = str(tmp_path / "t")
    plain = {**OPTIONS, "hoodie.datasource.write.hive_style_partitioning": "false"}
    write_frame(SparkEngine(spark).from_arrow(rows(0, 90, 1)), path, plain)

    frame = read_frame(spark, path, {}).where("day = '2024-01-02'").select("id")

    assert frame.count() == 30
    assert "EqualTo(day,2024-01-02)" in plan_of(frame, capsys)


@pytest.mark.thorough
@pytest.mark.parametrize("hive", ["true", "false"])
def test_dropped_partition_columns_come_back_from_the_path(hive: str, spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    options = {
        **OPTIONS,
        "hoodie.datasource.write.hive_style_partitioning": hive,
        "hoodie.datasource.write.drop.partition.columns": "true",
    }
    write_frame(SparkEngine(spark).from_arrow(rows(0, 90, 1)), path, options)

    frame = read_frame(spark, path, {})

    assert {tuple(row) for row in frame.groupBy("day").count().collect()} == {(f"2024-01-0{d}", 30) for d in (1, 2, 3)}
    assert frame.where("day = '2024-01-03'").select("id").count() == 30


def test_many_partitions_with_dropped_columns_are_one_scan(spark: Any, tmp_path: Path, capsys: Any) -> None:
    path = str(tmp_path / "t")
    options = {
        **OPTIONS,
        "hoodie.datasource.write.hive_style_partitioning": "false",
        "hoodie.datasource.write.drop.partition.columns": "true",
    }
    days = pa.array([f"d{i:02}" for i in range(40)])
    write_frame(SparkEngine(spark).from_arrow(rows(0, 40, 1, day=days)), path, options)

    frame = read_frame(spark, path, {})

    assert sorted(row.day for row in frame.select("day").collect()) == days.to_pylist()
    assert plan_of(frame, capsys).count("FileScan") == 1


@pytest.mark.parametrize(
    "value",
    ["a=b", "a{b,c}", "sp ace", "st*r?", "100%", "%41", "[x]", "ü", "_hidden", ".dot", "a:b"],
)
def test_odd_partition_values_read_as_they_were_written(value: str, spark: Any, tmp_path: Path) -> None:
    for number, hive in enumerate(("true", "false")):
        path = str(tmp_path / f"t{number}")
        table = rows(0, 2, 1, day=pa.array([value, "plain"]))
        options = {**OPTIONS, "hoodie.datasource.write.hive_style_partitioning": hive, OPERATION: "upsert"}
        write_frame(SparkEngine(spark).from_arrow(table), path, options)

        found = sorted(tuple(row) for row in read_frame(spark, path, {}).select("id", "day").collect())

        assert found == [("k00000", value), ("k00001", "plain")]


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_null_in_a_required_column_is_refused_and_a_nullable_column_without_nulls_is_not(
    engine: str, spark: Any, tmp_path: Path
) -> None:
    options = {**OPTIONS, "hoodie.pyhudi.engine": engine}
    path = str(tmp_path / "t")
    columns = pa.schema([pa.field(f.name, f.type, f.name != "amount") for f in rows(0, 2, 1).schema])
    HudiTable.create(path, columns, options=options)
    made = SparkEngine(spark)
    write_frame(made.from_arrow(rows(0, 20, 1)), path, options)
    nulls = rows(10, 30, 2, amount=pa.nulls(20, pa.float64()))
    for operation in ("upsert", "bulk_insert"):
        with pytest.raises(SchemaMismatch, match=r"'amount' is NOT NULL, and the row with the key 'k000[12]"):
            write_frame(made.from_arrow(nulls), path, {**options, OPERATION: operation})
    table = HudiTable.open(path)
    assert table.scan().count() == 20
    assert not table.schema().field("amount").nullable
    assert not table.state().timeline.pending()


@pytest.mark.parametrize("hive", ["true", "false"])
def test_slash_separated_dates_come_back_in_spark(hive: str, spark: Any, tmp_path: Path) -> None:
    options = {
        **OPTIONS,
        "hoodie.datasource.write.hive_style_partitioning": hive,
        "hoodie.datasource.write.slash.separated.date.partitioning": "true",
        OPERATION: "upsert",
    }
    for name, days in (
        ("dates", pa.array([date(2024, 1, 15), date(2024, 2, 1)])),
        ("texts", pa.array(["2024-01-15", "2024-02-01"])),
    ):
        path = str(tmp_path / name)
        write_frame(SparkEngine(spark).from_arrow(rows(0, 2, 1, day=days)), path, options)

        frame = read_frame(spark, path, {})
        assert sorted(row.day for row in frame.select("day").collect()) == days.to_pylist()
        assert [row.id for row in frame.where("day = '2024-01-15'").select("id").collect()] == ["k00000"]


@pytest.mark.thorough
def test_a_spark_writer_and_one_without_spark_lose_nothing_without_an_option(spark: Any, tmp_path: Path) -> None:
    path, options = tmp_path / "t", {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    other = begin(path, "arrow", 4, "upsert", "COPY_ON_WRITE")
    for n in range(4):
        row = spark.createDataFrame([(f"spark-{n}", n)], "id string, n long")
        write_frame(row, str(path), options)

    told, warned = said_by(other)

    keys = Counter(row.id for row in read_frame(spark, str(path), {}).collect())
    assert keys == Counter(f"{name}-{n}" for name in ("arrow", "spark") for n in range(4)), told
    assert warned == []
