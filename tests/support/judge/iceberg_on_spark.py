"""Reads Iceberg tables by Iceberg on PySpark 3.5: `iceberg_on_spark.py JARS METADATA ...` prints the rows of each as
JSON, a line each, without the column `at`: PySpark gives times in the machine's zone. `METADATA`: a metadata file.
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
    }
    builder = SparkSession.builder.master("local[1]")
    for key, text in settings.items():
        builder = builder.config(key, text)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for path in paths:
        frame = spark.read.format("iceberg").load(path)
        rows = frame.select([name for name in frame.columns if name != "at"]).collect()
        print(json.dumps(sorted(repr(sorted(row.asDict(recursive=True).items())) for row in rows)), flush=True)
    spark.stop()


main(*sys.argv[1:])
