"""What a first write leaves that fails within Spark: nothing. What a user is told by one that goes well: nothing."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import pyhudi
from pyhudi.errors import KeyGenError
from pyhudi.session.writer import write_frame
from pyhudi.spark.reader import read_frame

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.pyhudi.engine": "spark",
}
OPERATION = "hoodie.datasource.write.operation"


def numbered(spark: Any) -> Any:
    return spark.range(0, 40, 1, 2).select(F.col("id").cast("string").alias("id"), (F.col("id") % 2).alias("p"))


def raising(frame: Any) -> Any:
    @F.udf("long")
    def fails(value):
        raise ValueError("not this one")

    return frame.withColumn("v", fails("p"))


def refused_by_spark(frame: Any) -> Any:
    return frame.withColumn("v", F.expr("if(p < 0, p, raise_error('the disk is full'))"))


@pytest.mark.parametrize("operation", ["bulk_insert", "upsert"])
@pytest.mark.parametrize(("broken", "words"), [(raising, "not this one"), (refused_by_spark, "the disk is full")])
def test_a_first_write_that_fails_in_spark_leaves_nothing(
    spark: Any, tmp_path: Path, broken: Any, words: str, operation: str
) -> None:
    path = tmp_path / "t"

    with pytest.raises(Exception, match=words):
        write_frame(broken(numbered(spark)), str(path), {**OPTIONS, OPERATION: operation})

    assert not list(path.rglob("*"))
    write_frame(numbered(spark).withColumn("v", F.lit(1)), str(path), {**OPTIONS, OPERATION: operation})
    assert read_frame(spark, str(path), {}).agg(F.sum("v")).first()[0] == 40


@pytest.mark.thorough
def test_after_a_null_key_the_next_first_write_takes_another_key(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    frame = numbered(spark).withColumn("k", F.when(F.col("id") != "7", F.col("id")))

    with pytest.raises(KeyGenError, match="record key"):
        write_frame(frame, path, {**OPTIONS, "hoodie.datasource.write.recordkey.field": "k"}, "error")
    write_frame(frame, path, OPTIONS, "error")

    assert pyhudi.HudiTable.open(path).state().config.record_key_fields == ("id",)


@pytest.mark.thorough
def test_the_first_write_of_a_data_frame_brings_a_metadata_table(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_frame(numbered(spark), path, {**OPTIONS, OPERATION: "upsert"})
    table = pyhudi.HudiTable.open(path)
    assert table.metadata.partitions == ("column_stats", "files", "partition_stats")
    assert table.metadata.validate() == ()


@pytest.mark.thorough
@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_writes_and_reads_raise_no_warning(spark: Any, tmp_path: Path, table_type: str) -> None:
    path = str(tmp_path / "t")
    options = {**OPTIONS, "hoodie.datasource.write.table.type": table_type}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="pyspark")  # 3.5 asks for distutils
        for operation, rows in ("bulk_insert", "id < 30"), ("upsert", "id >= 20"), ("delete", "id < 5"):
            write_frame(numbered(spark).where(rows), path, {**options, OPERATION: operation})
        assert read_frame(spark, path, {}).count() == 35


@pytest.mark.thorough
def test_paths_of_pathlib_are_loaded_and_saved(spark: Any, tmp_path: Path) -> None:
    pyhudi.enable(spark)
    frame = numbered(spark)
    frame.write.format("hudi").options(**OPTIONS).mode("overwrite").save(tmp_path / "saved")
    frame.write.format("hudi").options(**OPTIONS).save(path=tmp_path / "named")
    for path in (tmp_path / "saved", tmp_path / "named"):
        assert spark.read.format("hudi").load(path).count() == 40
        assert spark.read.load([path], format="hudi").count() == 40
