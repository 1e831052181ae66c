"""The ends of processes: Ctrl-C while Spark is at work, and an exit when the server is gone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pyhudi.spark.failures import translated
from tests.support.spark.sessions import FLAVOUR


class OfTheCancelledJob(Exception):
    pass


def cancelled() -> None:
    """As PySpark collects rows: the handler of Ctrl-C raises, and what tidies up fails with the job's error."""
    with translated():
        try:
            raise KeyboardInterrupt
        finally:
            raise OfTheCancelledJob


def test_ctrl_c_stays_one_though_spark_puts_the_error_of_the_cancelled_job_in_its_place() -> None:
    with pytest.raises(KeyboardInterrupt):
        cancelled()


def test_an_error_while_an_earlier_ctrl_c_is_handled_is_that_error() -> None:
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with pytest.raises(OfTheCancelledJob), translated():
            raise OfTheCancelledJob  # noqa: B904 - its context is what is told apart


SCRIPT = """
import os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background inherits that it is ignored
import pyhudi
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
pyhudi.enable(spark)
options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}

def rows(count):
    return spark.range(count).select(F.col("id").cast("string"), F.lit(1).alias("v"))

pyhudi.write_hudi(sys.argv[1], rows(5), options=options)

def press():
    while not spark.sparkContext.statusTracker().getActiveJobsIds():
        pass
    threading.Event().wait(1)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=press).start()
try:
    pyhudi.write_hudi(sys.argv[1], rows(3_000_000), options=options)
except BaseException as error:
    print("got", type(error).__name__)
pyhudi.write_hudi(sys.argv[1], rows(6), options=options)
timeline = pyhudi.HudiTable.open(sys.argv[1]).state().timeline
print("rows", spark.read.format("hudi").load(sys.argv[1]).count(), "pending", len(timeline.pending()))
"""


@pytest.mark.thorough
@pytest.mark.cluster
@pytest.mark.classic
def test_ctrl_c_in_a_write_on_spark_reaches_the_caller_who_writes_on_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "t")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["got", "KeyboardInterrupt", "rows", "6", "pending", "0"], done.stderr[-3000:]


STOPPED = """
import sys
import pyhudi
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote("local[2]").getOrCreate()
pyhudi.enable(spark)
spark.sql(f"CREATE TABLE t (id INT, v STRING) USING hudi LOCATION '{sys.argv[1]}' TBLPROPERTIES (primaryKey = 'id')")
spark.sql("INSERT INTO t VALUES (1, 'a')")
print("rows", spark.sql("SELECT id FROM t").count())
spark.stop()
"""


@pytest.mark.thorough
@pytest.mark.cluster
@pytest.mark.skipif(FLAVOUR != "connect", reason="of Spark Connect")
def test_a_process_whose_session_is_stopped_ends_at_once(tmp_path: Path) -> None:
    """No session of ours calls the server that is gone: PySpark would try for ten minutes."""
    command = [sys.executable, "-c", STOPPED, str(tmp_path / "t")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.split()) == (0, ["rows", "1"]), done.stderr[-3000:]
