"""Spark's workers on this machine run the Python of the session's process, whatever `python3` of the PATH is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyhudi.spark.worker_python import name_own_python
from tests.support.source import ROOT
from tests.support.spark.sessions import FLAVOUR, JVM_OPTIONS

_OF_SPARK = ("PYSPARK_", "SPARK_")
_KEPT = ("PYSPARK_SUBMIT_ARGS",)  # says where the server of Spark Connect 3.5 is
KEY = "spark.sql.execution.pyspark.python"

# Writes by workers, then once more with a Python that the user chose and that lacks what pyhudi needs.
SCRIPT = """
import sys
from pyspark.sql import SparkSession
from pyhudi import HudiTable, TaskFailed, enable
from tests.support.spark.sessions import own_connect_port

flavour, folder, bare = sys.argv[1:]
builder = SparkSession.builder.remote("local[2]") if flavour == "connect" else SparkSession.builder.master("local[2]")
for key, value in (own_connect_port() if flavour == "connect" else {}).items():
    builder = builder.config(key, value)
builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
spark = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
enable(spark)
options = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.operation": "bulk_insert",
}
rows = spark.range(100).selectExpr("cast(id as string) id", "id as v").write.format("hudi").options(**options)
rows.mode("append").save(folder + "/t")
assert spark.read.format("hudi").load(folder + "/t").count() == 100
spark.conf.set("spark.sql.execution.pyspark.python", bare)
try:
    rows.mode("append").save(folder + "/u")
except TaskFailed as error:
    assert 'os.environ["PYSPARK_PYTHON"] = sys.executable' in str(error), error
else:
    raise AssertionError("the Python that the user chose did not run")
assert not HudiTable.exists(folder + "/u")
spark.stop()
"""


@pytest.mark.cluster
def test_bulk_insert_runs_where_python3_of_the_path_lacks_pyhudi(tmp_path: Path, java: None) -> None:
    bare = tmp_path / "bin" / "python3"
    bare.parent.mkdir()
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')  # without site-packages
    bare.chmod(0o755)
    environment = {name: text for name, text in os.environ.items() if name in _KEPT or not name.startswith(_OF_SPARK)}
    environment |= {"PATH": f"{bare.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    environment["SPARK_SUBMIT_OPTS"] = JVM_OPTIONS

    played = subprocess.run(
        [sys.executable, "-c", SCRIPT, FLAVOUR, str(tmp_path), str(bare)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
    )

    assert played.returncode == 0, played.stderr[-4000:]


class Conf(dict[str, str]):
    set = dict.__setitem__


def named(conf: dict[str, str], module: str = "pyspark.sql.session") -> str | None:
    """The workers' Python of a session with this configuration."""
    session: Any = type("SparkSession", (), {"__module__": module})()
    session.conf = Conf(conf)
    name_own_python(session)
    return session.conf.get(KEY)


def test_a_python_that_the_user_chose_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    local = {"spark.master": "local[*]"}

    assert named(local) == sys.executable
    assert named({**local, KEY: "/usr/bin/pypy"}) == "/usr/bin/pypy"
    assert named({**local, "spark.pyspark.python": "/usr/bin/pypy"}) == "/usr/bin/pypy"
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/pypy")
    assert named(local) is None


def test_workers_on_other_machines_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.delenv("SPARK_LOCAL_REMOTE", raising=False)

    assert named({"spark.master": "spark://host:7077"}) is None
    assert named({"spark.master": "local[2]"}, "pyspark.sql.connect.session") is None
    monkeypatch.setenv("SPARK_LOCAL_REMOTE", "1")  # the server is this process's own
    assert named({"spark.master": "local[2]"}, "pyspark.sql.connect.session") == sys.executable
