"""A Spark session whose names are in a Hive metastore of a folder: real Hudi's for the judge's Python, ours for any
other, asked by JSON lines. A Derby database has one process at a time, so this one ends when its input ends.

Arguments: the folder of metastore and warehouse, and for real Hudi its bundle. {"sql": text} answers with the rows.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

HUDI = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}


def session(folder: str, bundle: str | None) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").appName("names").enableHiveSupport()
    quiet = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djdk.attach.allowAttachSelf=true"
    conf = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC -Dderby.system.home={folder} {quiet}",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore_db;create=true",
        **({"spark.jars": bundle, **HUDI} if bundle else {}),
    }
    for key, value in conf.items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    if bundle is None:
        import pyhudi

        pyhudi.enable(made)
    return made


def answer(spark: Any, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        found = spark.sql(asked["sql"])
        return {"ok": True, "columns": found.columns, "rows": [list(map(str, row)) for row in found.collect()]}
    except Exception as error:
        return {"ok": False, "error": f"{type(error).__name__}: {error}"[:2000]}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the JVM prints where it likes
    spark = session(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
    for line in sys.stdin:
        print(json.dumps(answer(spark, json.loads(line))), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
