"""Reads Delta tables by Delta on PySpark 3.5, after a VACUUM of each: `delta_on_spark.py JARS PATH ...` prints the rows
of each as JSON, a line each, without the column `at`: PySpark gives times in the machine's zone.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession


def main(jars: str, *paths: str) -> None:
    settings = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.vacuum.parallelDelete.enabled": "false",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    builder = SparkSession.builder.master("local[1]")
    for key, text in settings.items():
        builder = builder.config(key, text)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for path in paths:
        spark.sql(f"VACUUM delta.`{path}`")
        frame = spark.read.format("delta").load(path)
        rows = frame.select([name for name in frame.columns if name != "at"]).collect()
        print(json.dumps(sorted(repr(sorted(row.asDict().items())) for row in rows)), flush=True)
    spark.stop()


main(*sys.argv[1:])
