"""What a Spark lacks is done another way with the same outcome, down to the rows of each file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import pyhudi
from pyhudi.errors import ConfigError
from pyhudi.spark import arrow_transfer, capabilities
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.session import (
    hudi_and_store_options,
    hudi_options,
    settings_read_once,
    settings_with_prefix,
    store_options,
)
from pyhudi.spark.tasks import numbers_by_partition, routed
from tests.support.source import ROOT
from tests.support.spark.frames import OPERATION, OPTIONS, rows
from tests.support.spark.lacking import NEEDS, WITHOUT, missing
from tests.support.spark.sessions import FLAVOUR


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "PRESENT", WITHOUT)


# ---- rows to tasks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [7, 1, 2, 64, 1_000])
def test_sparks_own_hash_puts_every_number_into_its_partition(spark: Any, partitions: int) -> None:
    numbers = numbers_by_partition(partitions)
    frame = SparkEngine(spark).from_arrow(pa.table({"number": pa.array(numbers, pa.int32())}))

    found = {
        row.number: row.place
        for row in frame.select("number", F.expr(f"pmod(hash(number), {partitions}) place")).collect()
    }

    assert [found[number] for number in numbers] == list(range(partitions))


@pytest.mark.parametrize("partitions", [5, 2, 40])
@pytest.mark.parametrize("kind", ["int", "bigint"])
def test_a_row_is_in_the_partition_of_its_slot_whatever_adaptive_execution_thinks(
    spark: Any, lacking: None, partitions: int, kind: str
) -> None:
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    frame = spark.range(0, 300, 1, 3).select(F.expr(f"cast(id - 100 as {kind})").alias("the slot"))

    placed = routed(frame, partitions, "the slot").withColumn("place", F.spark_partition_id()).collect()

    assert len(placed) == 300
    assert [row for row in placed if row.place != row["the slot"] % partitions] == []


# ---- frames from Arrow -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent_bytes", [0, 1 << 20])
def test_rows_that_travel_packed_keep_their_order(
    spark: Any, lacking: None, monkeypatch: pytest.MonkeyPatch, sent_bytes: int
) -> None:
    monkeypatch.setattr(arrow_transfer, "_SENT_BYTES", sent_bytes)
    monkeypatch.setattr(arrow_transfer, "_CHUNK_BYTES", 10_000)
    table = pa.table({"id": pa.array(range(20_000), pa.int64()), "text": [f"t{i}" for i in range(20_000)]})

    engine = SparkEngine(spark)

    assert engine.collect(engine.from_arrow(table)).equals(table)
    assert engine.collect(engine.from_arrow(table.slice(0, 0))).equals(table.slice(0, 0))


# ---- settings --------------------------------------------------------------------------------------------------------


def test_settings_of_the_session_are_listed_with_their_values_even_if_they_are_secret(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if FLAVOUR == "connect" and capabilities.PRESENT.lists_settings:
        pytest.skip("a server of this version does not give every single setting; all of them are listed there")
    monkeypatch.setattr(capabilities, "PRESENT", WITHOUT)
    ours = {"spark.hoodie.parquet.compression.codec": "gzip", "spark.hadoop.fs.s3a.secret.key": "s3cr3t"}
    for key, value in ours.items():
        spark.conf.set(key, value)
    try:
        options, stores = hudi_options(spark), store_options(spark, {"fs.s3a.endpoint": "here"})
        both = hudi_and_store_options(spark, {"fs.s3a.endpoint": "here"})
    finally:
        for key in ours:
            spark.conf.unset(key)

    assert options["hoodie.parquet.compression.codec"] == "gzip"
    assert (stores["fs.s3a.secret.key"], stores["fs.s3a.endpoint"]) == ("s3cr3t", "here")
    assert all(key.startswith("fs.") for key in stores)
    assert both == (options, stores)


def test_all_settings_come_as_spark_lists_them(spark: Any) -> None:
    if not capabilities.PRESENT.lists_settings:
        pytest.skip("this Spark does not list settings")
    ours = {"spark.hoodie.a": "x -> y\nz -> ä", "spark.hoodie.b": ""}
    for key, value in ours.items():
        spark.conf.set(key, value)
    try:
        found = settings_with_prefix(spark, "spark.")
        assert found == {key: text for key, text in spark.conf.getAll.items() if key.startswith("spark.")}
    finally:
        for key in ours:
            spark.conf.unset(key)
    assert ours.items() <= found.items()


@pytest.mark.parametrize("present", [capabilities.PRESENT, WITHOUT], ids=["present", "without"])
def test_settings_that_are_read_once_are_those_of_the_first_look(
    spark: Any, monkeypatch: pytest.MonkeyPatch, present: capabilities.Capabilities
) -> None:
    if FLAVOUR == "connect" and present is WITHOUT and capabilities.PRESENT.lists_settings:
        pytest.skip("a server of this version does not give every single setting; all of them are listed there")
    monkeypatch.setattr(capabilities, "PRESENT", present)
    key = "spark.hoodie.parquet.compression.codec"
    try:
        with settings_read_once(spark):
            before = hudi_options(spark)
            spark.conf.set(key, "gzip")
            with settings_read_once(spark):
                assert hudi_options(spark) == before
        assert hudi_options(spark) == {**before, key.removeprefix("spark."): "gzip"}
    finally:
        spark.conf.unset(key)


# ---- whole writes ----------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_writes_without_them_leave_the_same_rows_in_the_same_files(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_type: str
) -> None:
    found = []
    for folder, present in (("with", capabilities.PRESENT), ("without", WITHOUT)):
        with monkeypatch.context() as patch:
            patch.setattr(capabilities, "PRESENT", present)
            path = str(tmp_path / folder)
            play(spark, path, table_type)
        found.append((base_files(path), files_of(path)))

    assert found[0] == found[1]
    assert len(found[0][0]) >= 3


def play(spark: Any, path: str, table_type: str) -> None:
    engine = SparkEngine(spark)
    for operation, data in (("upsert", rows(0, 90, 1)), ("upsert", rows(60, 120, 2)), ("delete", rows(0, 9, 3))):
        options = {
            **OPTIONS, OPERATION: operation, "hoodie.pyhudi.engine": "spark",
            "hoodie.datasource.write.table.type": table_type,
        }  # fmt: skip
        pyhudi.write_hudi(path, engine.from_arrow(data), options=options)


def base_files(path: str) -> list[tuple[str, pa.Table]]:
    """The rows of each base file but for what a write makes up: times, and numbers of tasks and names of files."""
    found = list(_base_files(path))
    return sorted(found, key=lambda file: (file[0], file[1].num_rows, file[1].column("_hoodie_record_key")[0].as_py()))


def _base_files(path: str) -> Iterator[tuple[str, pa.Table]]:
    for file in sorted(Path(path).rglob("*.parquet")):
        if ".hoodie" in file.parts:
            continue
        table = pq.ParquetFile(file).read()
        made_up = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"]
        kept = table.drop_columns(made_up).sort_by("_hoodie_record_key")
        yield file.parent.name, kept


def files_of(path: str) -> list[tuple[str, int]]:
    """Of each file group in the order of the partitions: its partition and how many log files it has."""
    files = pyhudi.HudiTable.open(path).inspect.files()
    return sorted((row["partition_path"], row["log_files"]) for row in files.to_pylist())


# ---- what is there, without gRPC -------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_spark_without_grpc_can_be_enabled_where_there_is_no_script() -> None:
    lacks_grpc = "import sys; sys.modules['grpc'] = None; "
    looks = "import pyhudi; pyhudi.enable; from pyhudi.spark.capabilities import PRESENT; print(PRESENT)"

    played = subprocess.run([sys.executable, "-c", lacks_grpc + looks], capture_output=True, text=True, cwd=ROOT)

    assert played.stdout.strip() == str(capabilities.PRESENT), played.stderr


# ---- what can't be there ---------------------------------------------------------------------------------------------


def test_a_spark_without_data_sources_says_what_to_do() -> None:
    from pyhudi.spark.capabilities import DataSource

    with pytest.raises(ConfigError, match=r"pyhudi\.enable\(spark\).*foreachBatch"):
        DataSource({})


def test_only_what_a_spark_lacks_leaves_tests_out() -> None:
    test = "test_the_data_source_reads_a_table_with_nothing_enabled"
    modern = capabilities.Capabilities(*[True] * len(fields(capabilities.Capabilities)))
    bare = capabilities.Capabilities(*[False] * len(fields(capabilities.Capabilities)))

    assert missing(test, modern) is None
    assert "formats that are made in Python" in str(missing(test, bare))
    assert missing("test_another", bare) is None
    assert all(hasattr(modern, capability) for capability, _ in NEEDS.values())


def test_the_numbers_of_many_partitions_are_found_at_once() -> None:
    numbers = np.array(numbers_by_partition(50_000))

    assert len(set(numbers.tolist())) == 50_000
    assert 0 <= numbers.min() <= numbers.max() < 2**31
