"""Writes of Spark's tasks, as a program of its own so that any PySpark can do them.

python -m tests.support.judge.spark_writes FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from pyhudi import HudiTable, enable
from pyhudi.spark.engine import SparkEngine
from tests.support.spark.frames import OPERATION, OPTIONS, rows
from tests.support.spark.sessions import CONF

KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


def play(spark: SparkSession, path: str, table_type: str) -> None:
    def write(operation: str, data: pa.Table) -> None:
        options = {**OPTIONS, OPERATION: operation, "hoodie.datasource.write.table.type": table_type}
        options |= {"hoodie.pyhudi.engine": "spark", "hoodie.parquet.small.file.limit": "0"}
        SparkEngine(spark).from_arrow(data).write.format("hudi").options(**options).mode("append").save(path)

    write("bulk_insert", rows(0, 300, 1))
    write("upsert", rows(200, 400, 2))
    write("delete", rows(0, 30, 3))
    if table_type == "MERGE_ON_READ":
        HudiTable.open(path, spark=spark).compact()
        write("upsert", rows(100, 250, 4))


def main(folder: str) -> None:
    builder = SparkSession.builder.master("local[2]")
    for key, value in CONF.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    enable(spark)
    for kind in KINDS:
        play(spark, str(Path(folder) / kind.lower()), kind)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
