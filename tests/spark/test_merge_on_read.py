"""Merge-on-read tables through Spark's tasks: the same rows as when this process writes them, and the same answers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.session.writer import write_frame
from pyhudi.spark.engine import SparkEngine, collect_arrow
from pyhudi.spark.reader import read_frame
from pyhudi.storage import open_storage
from tests.support.source import ROOT
from tests.support.spark.frames import OPERATION, OPTIONS, contents, plan_of, rows
from tests.support.tables.altered import NAMES, ROWS, altered
from tests.support.values.mergers import NewestParts
from tests.support.values.positions import check_positions

BY_SPARK = {"hoodie.pyhudi.engine": "spark"}
MERGE_ON_READ = {
    **OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.write.set.null.for.missing.columns": "true",
    "hoodie.compact.inline": "false",
}
# Version, format of the log blocks, index: with buckets new rows go to log files, too.
KINDS = [("9", "parquet", "SIMPLE"), ("8", "avro", "BUCKET"), ("6", "avro", "SIMPLE")]
UPSERT = "upsert"
MERGER, ID_OF_MERGER = f"{NewestParts.__module__}:NewestParts", NewestParts.strategy_id


def flagged(table: pa.Table) -> pa.Table:
    return table.append_column("_hoodie_is_deleted", pa.array([i % 2 == 0 for i in range(len(table))]))


# Updates and new rows, several versions of a key, late rows; then deletes by key, and by a flag in the row.
STEPS: list[tuple[str, pa.Table]] = [
    ("bulk_insert", rows(0, 300, 5)),
    (UPSERT, pa.concat_tables([rows(250, 340, 6), rows(0, 30, 7), rows(0, 30, 6), rows(30, 60, 4)])),
    ("delete", rows(90, 120, 9)),
    (UPSERT, flagged(rows(120, 140, 9))),
]


def write(spark: Any, path: str, operation: str, table: pa.Table, **options: str) -> Any:
    frame = SparkEngine(spark).from_arrow(table)
    return write_frame(frame, path, {**MERGE_ON_READ, OPERATION: operation, **options})


def found(spark: Any, path: str, columns: list[str] | None = None, **options: str) -> list[dict[str, Any]]:
    frame = read_frame(spark, path, {name.replace("_", "."): value for name, value in options.items()})
    table = collect_arrow(frame if columns is None else frame.select(*columns))
    return sorted(table.to_pylist(), key=lambda row: row["id"])


def scanned(path: str, **how: Any) -> list[dict[str, Any]]:
    return sorted(HudiTable.open(path).scan(**how).to_arrow().to_pylist(), key=lambda row: row["id"])


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_this_process_and_spark_write_the_same_log_files(
    kind: tuple[str, str, str], spark: Any, tmp_path: Path
) -> None:
    version, block_format, index = kind
    options = {
        "hoodie.write.table.version": version,
        "hoodie.logfile.data.block.format": block_format,
        "hoodie.index.type": index,
        "hoodie.bucket.index.num.buckets": "2",
    }
    counts: dict[str, list[tuple[int, ...]]] = {}
    for engine in ("local", "spark"):
        path = str(tmp_path / engine)
        for operation, table in STEPS:
            result = write(spark, path, operation, table, **options, **{"hoodie.pyhudi.engine": engine})
            # Late rows in a log count as updated, those that met their row in a rewritten base file as unchanged.
            met = result.updated + result.unchanged
            counts.setdefault(engine, []).append((result.inserted, met, result.deleted))

    ours = str(tmp_path / "spark")
    assert contents(ours) == contents(str(tmp_path / "local"))
    assert counts["spark"] == counts["local"]
    assert found(spark, ours) == scanned(ours)
    assert found(spark, ours, ["id", "amount"]) == scanned(ours, columns=["id", "amount"])
    assert any(HudiTable.open(ours).scan().files().column("log_files").to_pylist())
    named = [check_positions(open_storage(str(tmp_path / engine))) > 0 for engine in ("local", "spark")]
    assert named == [index == "SIMPLE" and version != "6"] * 2, "log blocks say where their keys are"


@pytest.mark.thorough
def test_spark_compacts_and_every_query_answers_as_before(spark: Any, tmp_path: Path) -> None:
    path, moments = str(tmp_path / "t"), []
    for operation, table in STEPS:
        moments.append(write(spark, path, operation, table).instant_time)
    merged = contents(path)
    base_rows = scanned(path, query_type="read_optimized")
    table = HudiTable.open(path, spark=spark)

    compacted = table.maintenance.log_compact(options={**BY_SPARK, "hoodie.log.compaction.blocks.threshold": "2"})
    assert compacted.runs
    assert contents(path) == merged
    assert found(spark, path) == scanned(path)
    assert found(spark, path, hoodie_datasource_query_type="read_optimized") == base_rows

    assert table.compact(options=BY_SPARK).runs
    assert contents(path) == merged
    optimized = found(spark, path, hoodie_datasource_query_type="read_optimized")
    assert optimized == found(spark, path) == scanned(path)

    write(spark, path, UPSERT, rows(0, 10, 20), **BY_SPARK)
    for moment in moments:
        assert found(spark, path, as_of_instant=moment) == scanned(path, as_of=moment)
    assert len(found(spark, path, as_of_instant=moments[0])) == 300


def test_log_files_of_older_schemas_are_read_and_compacted_by_column_id(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    altered("9", open_storage(path))

    def answer(query_type: str) -> list[tuple[Any, ...]]:
        rows = found(spark, path, list(NAMES), hoodie_datasource_query_type=query_type)
        return [tuple(row[name] for name in NAMES) for row in rows]

    assert answer("snapshot") == ROWS
    HudiTable.open(path, spark=spark).compact(options=BY_SPARK)
    assert answer("snapshot") == answer("read_optimized") == ROWS


@pytest.mark.thorough
def test_a_plan_that_waits_is_run_by_spark_under_the_delta_commits_on_top_of_it(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write(spark, path, "bulk_insert", rows(0, 100, 1))
    write(spark, path, UPSERT, rows(0, 40, 2))
    table = HudiTable.open(path, spark=spark)
    table.compact(schedule_only=True)
    write(spark, path, UPSERT, rows(30, 60, 3), **BY_SPARK)
    merged = contents(path)

    assert table.compact(options=BY_SPARK).runs

    assert contents(path) == merged
    assert found(spark, path) == scanned(path)
    assert {row["ts"] for row in merged} == {1, 2, 3}


@pytest.mark.thorough
def test_update_delete_and_merge_of_spark_frames_write_partial_updates(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write(spark, path, "bulk_insert", rows(0, 60, 1))
    table = HudiTable.open(path, spark=spark)
    options = {**BY_SPARK, "hoodie.spark.sql.merge.into.partial.updates": "true"}

    table.update("id < 'k00010'", set={"amount": -1.0}, options=options)
    table.delete(where="id >= 'k00050'", options=BY_SPARK)
    source = spark.createDataFrame(
        [("k00020", "2024-01-03", 2.5), ("k00099", "2024-01-01", 9.5)], "id string, day string, amount double"
    )
    merge = table.merge(source, options=options).when_matched_update({"amount": "source.amount"})
    merge.when_not_matched_insert({"amount": "source.amount"}).execute()

    now = {row["id"]: row for row in found(spark, path)}
    assert list(now) == [*(f"k{i:05}" for i in range(50)), "k00099"]
    assert {now[f"k{i:05}"]["amount"] for i in range(10)} == {-1.0}
    assert (now["k00020"]["amount"], now["k00020"]["tags"]) == (2.5, rows(20, 21, 1)["tags"][0].as_py())
    assert list(now.values()) == scanned(path)
    merged = contents(path)
    assert table.compact(options=BY_SPARK).runs
    assert contents(path) == merged


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "by_spark"), [("9", True), ("6", True), ("6", False)])
def test_a_payload_class_fills_nulls_in_spark_s_tasks(version: str, by_spark: bool, spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    options = {
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload",
        **(BY_SPARK if by_spark else {}),
    }
    write(spark, path, UPSERT, rows(0, 4, 5), **options)
    write(spark, path, UPSERT, rows(0, 2, 6, amount=pa.nulls(2, pa.float64())), **options)
    write(spark, path, UPSERT, rows(2, 4, 4, amount=pa.array([70.0, 80.0])), **options)

    expected = [("k00000", 6, 0.0), ("k00001", 6, 1.5), ("k00002", 5, 3.0), ("k00003", 5, 4.5)]
    assert [(row["id"], row["ts"], row["amount"]) for row in found(spark, path)] == expected
    assert HudiTable.open(path, spark=spark).compact(options=BY_SPARK).runs
    assert [(row["id"], row["ts"], row["amount"]) for row in found(spark, path)] == expected


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["updating", "merging"])
def test_the_examples_of_the_pages_run_with_a_session(page: str, spark: Any, tmp_path: Path) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    schema = pa.schema([("order_id", pa.string()), ("seq", pa.int64()), ("price", pa.int64()), ("state", pa.string())])
    given: dict[str, Any] = {"HudiTable": HudiTable, "schema": schema, "path": str(tmp_path / "orders")}
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    assert blocks
    for block in blocks:
        example = block.replace("/tmp/", f"{tmp_path}/").replace("7d0e2f6c-54a1-4f0b-9a86-3f1c1b1f6a52", ID_OF_MERGER)
        example = example.replace("my_package.mergers:OrderEvents", MERGER)
        exec(compile(example, f"docs/{page}.md", "exec"), given)

    if page == "updating":
        left = {row["id"]: row for row in found(spark, str(tmp_path / "fares"))}
        assert {name: (row["fare"], row["status"]) for name, row in left.items()} == {
            "a": (5.0, "late"),
            "d": (7.0, "new"),
        }
    else:
        assert {"HighestPrice", "HighestPriceByRow", "table"} <= given.keys()


@pytest.mark.thorough
def test_base_files_under_log_files_are_scanned_by_spark_with_pruned_columns(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "t")
    for operation, table in STEPS[:3]:
        write(spark, path, operation, table)

    by_tasks = {"hoodie.pyhudi.read.log.driver.max.bytes": 0}
    frame = read_frame(spark, path, by_tasks).where("amount > 3").select("id", "amount")
    plan = plan_of(frame, capsys)

    assert "FileScan parquet [id#" in plan
    assert "tags#" not in plan[plan.index("FileScan") : plan.index("ReadSchema")]
    assert "GreaterThan(amount,3.0)" in plan
    assert plan.count("LeftAnti") == 2  # base rows that left, log records that came late
    assert len(frame.collect()) == sum(row["amount"] > 3 for row in scanned(path))


@pytest.mark.thorough
def test_a_script_reads_and_writes_log_files_by_format_hudi(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    pyhudi.enable(spark)
    try:
        for operation, table in STEPS[:2]:
            frame = SparkEngine(spark).from_arrow(table)
            options = {**MERGE_ON_READ, **BY_SPARK, OPERATION: operation}
            frame.write.format("hudi").options(**options).mode("append").save(path)
        read = spark.read.format("hudi").load(path)
        assert read.where("ts = 7").count() == 30
        assert read.select("id").distinct().count() == 340
    finally:
        pyhudi.disable(spark)
