"""Spark's workers on this machine run the Python of the session's process, whatever `python3` of the PATH is, and Spark
finds the data source `hudi` with it."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from pyhudi.session.data_source import show_data_source
from pyhudi.spark import worker_python
from pyhudi.spark.worker_python import asks_own_python, name_driver_python, name_own_python
from tests.support.source import ROOT
from tests.support.spark.sessions import FLAVOUR, JVM_OPTIONS

_OF_SPARK = ("PYSPARK_", "SPARK_")
_KEPT = ("PYSPARK_SUBMIT_ARGS",)  # says where the server of Spark Connect 3.5 is
KEY = "spark.sql.execution.pyspark.python"

# Writes by workers, and has Spark look for the data source; then once more with a Python that the user chose and that
# lacks what pyhudi needs.
SCRIPT = """
import sys, warnings

flavour, order, folder, bare = sys.argv[1:]
if order == "first":
    import pyhudi
from pyspark.sql import SparkSession
from tests.support.spark.sessions import own_connect_port

builder = SparkSession.builder.remote("local[2]") if flavour == "connect" else SparkSession.builder.master("local[2]")
for key, value in (own_connect_port() if flavour == "connect" else {}).items():
    builder = builder.config(key, value)
builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
builder = builder.config("spark.sql.warehouse.dir", folder + "/warehouse")
spark = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
import pyhudi

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    pyhudi.enable(spark)
    pyhudi.enable(spark)
said = [str(warning.message) for warning in caught if "data source hudi" in str(warning.message)]
if (flavour, order) == ("connect", "last"):  # the server runs, and its environment stays as it is
    assert len(said) == 1 and f"python3 of its PATH ({folder}/bin" in said[0], said
    assert "Set PYSPARK_PYTHON" in said[0] and "before the session is made" in said[0], said
elif hasattr(spark, "dataSource"):  # since Spark 4.0
    assert not said, said
    spark.sql("CREATE TABLE t (id STRING, v BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    spark.range(3).selectExpr("cast(id as string) id", "id v").write.insertInto("t")
    assert spark.table("t").count() == 3
    pyhudi.disable(spark)
    assert spark.read.format("hudi").load(folder + "/warehouse/t").count() == 3
    pyhudi.enable(spark)
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
except pyhudi.TaskFailed as error:
    assert 'os.environ["PYSPARK_PYTHON"] = sys.executable' in str(error), error
else:
    raise AssertionError("the Python that the user chose did not run")
assert not pyhudi.HudiTable.exists(folder + "/u")
spark.stop()
"""


@pytest.mark.thorough
@pytest.mark.cluster
@pytest.mark.parametrize("order", ["first", "last"])
def test_tables_are_made_and_written_where_python3_of_the_path_lacks_pyhudi(
    tmp_path: Path, java: None, order: str
) -> None:
    bare, of_path = tmp_path / "bare", tmp_path / "bin" / "python3"
    of_path.parent.mkdir()
    for script, paths in ((bare, ""), (of_path, "PYTHONPATH= ")):  # the latter has no pyhudi, nor PySpark
        script.write_text(f'#!/bin/sh\n{paths}exec "{sys.executable}" -S "$@"\n')  # without site-packages
        script.chmod(0o755)
    environment = {name: text for name, text in os.environ.items() if name in _KEPT or not name.startswith(_OF_SPARK)}
    environment |= {"PATH": f"{of_path.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    environment["SPARK_SUBMIT_OPTS"] = JVM_OPTIONS

    played = subprocess.run(
        [sys.executable, "-c", SCRIPT, FLAVOUR, order, str(tmp_path), str(bare)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
        cwd=tmp_path,
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


PYTHONS = ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")


@pytest.fixture
def path_of_another_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """`python3` of the PATH, which is not this process's; nothing else says which Python Spark is to run."""
    other = tmp_path / "python3"
    other.symlink_to(os.path.realpath(sys.executable))  # as in a virtual environment of the same Python
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for name in (*PYTHONS, "SPARK_LOCAL_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    return str(other)


def driver_python() -> str | None:
    name_driver_python()
    return os.environ.get("PYSPARK_DRIVER_PYTHON")


def test_a_spark_that_starts_later_looks_for_sources_with_this_processes_python(
    path_of_another_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert driver_python() == sys.executable
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "/usr/bin/jupyter-lab")  # what starts notebooks is no Python
    assert driver_python() == sys.executable
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "ipython")
    assert driver_python() == sys.executable


@pytest.mark.parametrize("name", PYTHONS)
def test_a_python_that_the_user_chose_to_be_asked_for_sources_stays(
    path_of_another_python: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, path_of_another_python)

    assert driver_python() == (path_of_another_python if name == "PYSPARK_DRIVER_PYTHON" else None)


def test_an_activated_environment_needs_no_other_name(
    path_of_another_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable), prepend=os.pathsep)

    assert driver_python() is None


def test_spark_is_asked_only_where_it_may_look_with_another_python(
    path_of_another_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    classic: Any = type("SparkSession", (), {"__module__": "pyspark.sql.classic.session"})()
    on_connect: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    monkeypatch.setattr(worker_python, "SPARK_CAME_FIRST", False)

    assert not asks_own_python(classic)
    name_driver_python()
    assert asks_own_python(classic)
    assert not asks_own_python(on_connect), "somebody else started the server"
    monkeypatch.setenv("SPARK_LOCAL_REMOTE", "1")
    assert asks_own_python(on_connect)
    monkeypatch.setattr(worker_python, "SPARK_CAME_FIRST", True)
    assert not asks_own_python(classic)


class SessionOfAnotherServer:
    """A session of Spark Connect whose server runs on a cluster."""

    __module__ = "pyspark.sql.connect.session"
    conf = Conf({"spark.master": "spark://host:7077"})

    @property
    def read(self) -> SessionOfAnotherServer:
        return self

    def format(self, name: str) -> SessionOfAnotherServer:
        return self

    schema = format

    def load(self) -> None:
        raise RuntimeError("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: hudi.")


def test_of_a_server_that_somebody_else_started_it_is_said_once_what_to_set_before_it_starts(
    path_of_another_python: str,
) -> None:
    session: Any = SessionOfAnotherServer()

    with pytest.warns(UserWarning, match="Spark does not know the data source hudi") as caught:
        show_data_source(session)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        show_data_source(session)

    (said,) = [str(warning.message) for warning in caught]
    assert "Set PYSPARK_PYTHON to a Python that has pyhudi" in said
    assert "in the environment of the Connect server before it starts" in said
