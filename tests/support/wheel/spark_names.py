"""A user's script, `spark_names.py SESSION ORDER`: tables by name, and streams, for which Spark needs the data source.

Run where nothing but the wheel and its extra is installed, by a Python that is not that of the PATH. ORDER is `first`
where PyHudi is imported above the session, `last` where it is imported below.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

SESSION, ORDER = sys.argv[1:]
FOLDER = str(Path.cwd() / "tables")
if ORDER == "first":
    import pyhudi

from pyspark.sql import SparkSession  # noqa: E402

builder = SparkSession.builder.master("local[2]")
if SESSION == "connect":
    from pyspark.sql.connect.client import core

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    getattr(core, "DefaultChannelBuilder", core.ChannelBuilder).default_port = staticmethod(lambda: port)
    builder = SparkSession.builder.remote("local[2]").config("spark.connect.grpc.binding.port", str(port))
for key, value in {
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.python.authenticate.socketTimeout": "300s",  # a busy machine's Python answers late
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.warehouse.dir": FOLDER,
}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()

import pyhudi  # noqa: E402

rows = spark.range(5).selectExpr("cast(id as string) id", "id v")
options = {"hoodie.table.name": "by_path", "hoodie.datasource.write.recordkey.field": "id"}
pyhudi.enable(spark)
rows.write.format("hudi").options(**options).mode("append").save(f"{FOLDER}/by_path")
assert spark.read.format("hudi").load(f"{FOLDER}/by_path").count() == 5

spark.sql("CREATE TABLE by_sql (id STRING, v BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
spark.sql("INSERT INTO by_sql VALUES ('x', 1)")
assert spark.table("by_sql").count() == 1
has_data_sources = hasattr(spark, "dataSource")  # since Spark 4.0
if has_data_sources:
    rows.write.insertInto("by_sql")
    assert spark.table("by_sql").count() == 6
    rows.write.format("hudi").option("primaryKey", "id").saveAsTable("saved")
    assert spark.table("saved").count() == 5
    rows.writeTo("written").using("hudi").tableProperty("primaryKey", "id").create()
    assert spark.table("written").count() == 5

    source = spark.readStream.format("hudi").option("hoodie.datasource.streaming.startOffset", "earliest")
    sink = source.load(f"{FOLDER}/by_path").select("id", "v").writeStream.format("hudi").options(**options)
    sink = sink.option("checkpointLocation", f"{FOLDER}/checkpoint").trigger(availableNow=True)
    sink.start(f"{FOLDER}/streamed").awaitTermination()
    assert pyhudi.HudiTable.open(f"{FOLDER}/streamed").scan().count() == 5

    pyhudi.disable(spark)
    assert spark.read.format("hudi").load(f"{FOLDER}/by_path").count() == 5
spark.stop()
print("done")
