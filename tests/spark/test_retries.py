"""A task that is run again after it has written its files leaves them in the table once, not twice."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pyhudi.meta_client import MetaClient
from pyhudi.storage import open_storage
from pyhudi.table import HudiTable
from tests.support.source import ROOT
from tests.support.spark.sessions import CONF, FLAVOUR

# Python runs this at the start of every worker: the first attempt of each task dies when its work is done.
DYING_WORKERS = """
from pyspark import TaskContext
from pyhudi.spark import tasks

def dying(call):
    def run(self, batches):
        yield from call(self, batches)
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("died after its work")
    return run

for kind in (tasks.StreamTask, tasks.GroupTask):
    kind.__call__ = dying(kind.__call__)
"""

# A session of its own: only a master that says so runs a failed task again.
SCRIPT = """
import json, sys
from pyspark.sql import SparkSession, functions as F
from pyhudi.session.writer import write_frame

path, conf = sys.argv[1], json.loads(sys.argv[2])
builder = SparkSession.builder.master("local[2,2]")
for key, value in conf.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
rows = spark.range(0, 4000, 1, 2).select(
    F.concat(F.lit("k"), "id").alias("id"), (F.col("id") % 2).cast("string").alias("p"), F.col("id").alias("v")
)
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


@pytest.mark.cluster
@pytest.mark.skipif(FLAVOUR != "classic", reason="starts a classic session of its own, so once is enough")
def test_a_task_that_is_run_again_leaves_no_second_file(tmp_path: Path, spark: object) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(DYING_WORKERS)
    paths = os.pathsep.join([str(tmp_path / "site"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable}
    path = tmp_path / "t"
    command = [sys.executable, "-c", SCRIPT, str(path), json.dumps(CONF)]

    subprocess.run(command, check=True, env=environment, capture_output=True, timeout=1200)

    meta = MetaClient.load(open_storage(path))
    written = {file.relative_to(path).as_posix() for file in path.rglob("*.parquet") if ".hoodie" not in file.parts}
    committed = {stat.path for instant in meta.timeline.commits() for stat in meta.commits.metadata(instant).stats()}
    assert HudiTable.open(path).scan(columns=["id"]).count() == 4_000
    assert written == committed
    # Task attempts are numbered through the whole session: 0 and 1 were the first ones of the bulk insert.
    assert not any(re.search(r"_\d-0-[01]_", name) for name in written)
