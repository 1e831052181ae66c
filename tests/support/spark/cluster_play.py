"""A play on a cluster of its own session: load, upsert, read, compact, cluster; run as a process by test_cluster.

python -m tests.support.spark.cluster_play MASTER FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyhudi import HudiTable, enable
from pyhudi.meta_client import MetaClient
from pyhudi.metadata import staged_index
from pyhudi.spark import frame_input
from pyhudi.spark.engine import collect_arrow
from pyhudi.storage.local import LocalStorage
from pyhudi.table import calls, input
from tests.support.spark.sessions import JVM_OPTIONS
from tests.support.sweeps import SAMPLED
from tests.support.tables.staged_index import blocks_of_index

LOADED = range(6_000)
UPSERTED = range(3_000, 8_000)
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.pyhudi.local.max.rows": "1000",  # every write here has more
    "hoodie.parquet.small.file.limit": "0",  # updates go to log files, not into files that take in new rows
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "1",
    "hoodie.metadata.global.record.level.index.max.filegroup.count": "1",
}
OPERATION = "hoodie.datasource.write.operation"


def rows(spark: SparkSession, numbers: range, ts: int) -> DataFrame:
    n = F.col("id")
    return spark.range(numbers.start, numbers.stop).select(
        n.cast("string").alias("id"), (n % 3).cast("string").alias("p"), F.lit(ts).alias("ts"), (n * ts).alias("v")
    )


def expected() -> pa.Table:
    n = np.arange(UPSERTED.stop)
    ts = np.where(n >= UPSERTED.start, 2, 1)
    return pa.table(
        {"id": [str(number) for number in n], "p": [str(number % 3) for number in n], "ts": ts, "v": n * ts}
    )


def check(spark: SparkSession, path: str, moment: str) -> None:
    frame = spark.read.format("hudi").load(path)
    found = collect_arrow(frame.select("id", "p", F.col("ts").cast("bigint"), "v").orderBy(F.col("id").cast("int")))
    assert found.to_pydict() == expected().to_pydict(), f"{path} {moment}: {found.num_rows} rows, or not those expected"


def play(spark: SparkSession, path: str, table_type: str) -> None:
    def write(data: DataFrame, operation: str) -> None:
        options = {**OPTIONS, OPERATION: operation, "hoodie.datasource.write.table.type": table_type}
        data.write.format("hudi").options(**options).mode("append").save(path)

    write(rows(spark, LOADED, 1), "bulk_insert")
    assert blocks_of_index(MetaClient.load(LocalStorage(path))) == [spark.range(1).rdd.context.defaultParallelism]
    write(rows(spark, UPSERTED, 2), "upsert")
    check(spark, path, "after the upsert")
    table = HudiTable.open(path, spark=spark)
    if table_type == "MERGE_ON_READ":
        assert any(table.files().column("log_files").to_pylist()), "the upsert left nothing to compact"
        assert table.compact().runs[0].file_slices == 3
        check(spark, path, "after compaction")
    (run,) = table.cluster(options={"hoodie.clustering.plan.strategy.sort.columns": "v"}).runs
    assert run.rows_written == UPSERTED.stop
    check(spark, path, "after clustering")
    table = HudiTable.open(path)
    assert table.metadata.partitions == ("column_stats", "files", "partition_stats", "record_index")
    assert table.metadata.validate() == (), f"the metadata table of {path}"


def main(master: str, folder: str) -> None:
    no_engine: Any = None
    # Whatever would not go to the cluster fails.
    frame_input.LocalEngine = input.LocalEngine = calls.LocalEngine = no_engine
    staged_index._LEAST_KEYS = 1  # each task writes its part of the record index
    builder = SparkSession.builder.master(master)
    for key in ("spark.driver.host", "spark.driver.bindAddress"):
        builder = builder.config(key, "127.0.0.1")
    for key in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(key, "false")
    builder = builder.config("spark.executor.memory", "512m").config("spark.executor.extraJavaOptions", JVM_OPTIONS)
    builder = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    spark = builder.getOrCreate()
    enable(spark)
    for table_type in ("MERGE_ON_READ",) if SAMPLED else ("COPY_ON_WRITE", "MERGE_ON_READ"):
        play(spark, str(Path(folder) / table_type.lower()), table_type)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
