"""A task that fails and is run again leaves one file in the table, not two."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyhudi.meta_client import MetaClient
from pyhudi.storage import open_storage
from pyhudi.table import HudiTable
from tests.spark.conftest import CONF, FLAVOUR, ROOT

# A session of its own: only a master that says so runs a failed task again.
SCRIPT = """
import json, sys
from pyspark import TaskContext
from pyspark.sql import SparkSession, functions as F
from pyhudi.spark.writer import write_frame

path, conf = sys.argv[1], json.loads(sys.argv[2])
builder = SparkSession.builder.master("local[2,3]")
for key, value in conf.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()

@F.udf("bigint")
def fails_once(number):
    context = TaskContext.get()
    if number % 20000 == 19999 and context.partitionId() == 1 and context.attemptNumber() == 0:
        raise RuntimeError("the first attempt dies late")
    return number

rows = spark.range(0, 40000, 1, 2).withColumn("v", fails_once.asNondeterministic()("id"))
rows = rows.select(F.concat(F.lit("k"), "id").alias("id"), (F.col("v") % 2).cast("string").alias("p"), "v")
options = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.pyhudi.engine": "spark",
}
for operation in ("bulk_insert", "upsert"):
    write_frame(rows, path, {**options, "hoodie.datasource.write.operation": operation})
spark.stop()
"""


@pytest.mark.skipif(FLAVOUR != "classic", reason="starts a classic session of its own, so once is enough")
def test_a_task_that_is_run_again_leaves_no_second_file(tmp_path: Path, spark: object) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    path = tmp_path / "t"
    command = [sys.executable, "-c", SCRIPT, str(path), json.dumps(CONF)]

    subprocess.run(command, check=True, env=environment, capture_output=True, timeout=300)

    table = HudiTable.open(path)
    meta = MetaClient.load(open_storage(path))
    written = {file.relative_to(path).as_posix() for file in path.rglob("*.parquet") if ".hoodie" not in file.parts}
    committed = {stat.path for instant in meta.timeline.commits() for stat in meta.commits.metadata(instant).stats()}
    assert table.scan(columns=["id"]).count() == 40_000
    assert written == committed
