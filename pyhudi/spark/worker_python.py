"""The Python that runs the work of Spark's workers, and the one that Spark asks for data sources.

Spark starts `python3` of the PATH unless PYSPARK_PYTHON names another one. If a virtual environment is not activated,
that is a Python without pyhudi, and all work in workers fails, while small writes of this process succeed. Workers on
this machine therefore run this process's own Python, unless the user has chosen one; spark.pyspark.python is such a
choice, which Spark itself honours in spark-submit only.

The JVM looks for data sources once, with the Python that its environment names when it starts: PYSPARK_DRIVER_PYTHON,
else PYSPARK_PYTHON, else `python3`. No setting of a session changes that, so `import pyhudi` sets the first of them,
which the workers of a classic session ignore. Source: tried on Spark 4.0 to 4.3, classic and Connect.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "DRIVER_PYTHON",
    "LOCAL_MASTER",
    "WORKER_PYTHON",
    "asks_own_python",
    "is_on_connect",
    "may_run_own_python",
    "name_driver_python",
    "name_own_python",
    "server_is_ours",
]

DRIVER_PYTHON = "PYSPARK_DRIVER_PYTHON"
WORKER_PYTHON = "PYSPARK_PYTHON"
LOCAL_MASTER = re.compile(r"local(?:\[(\*|\d+)(?:,\d+)?\])?")
_PYTHON = re.compile(r"(python|pypy)[\d.]*(\.exe)?")  # PYSPARK_DRIVER_PYTHON often says jupyter, or ipython
_CHOSEN_FOR_ALL = "spark.pyspark.python"
_CHOSEN_FOR_SQL = "spark.sql.execution.pyspark.python"  # of one session, and read when work begins: never too late
_SERVER_IS_OURS = "SPARK_LOCAL_REMOTE"  # PySpark's note that remote("local...") started the server from this process


def _spark_has_started() -> bool:
    """True if this process has a JVM, or has started a Connect server, whose environment can't be changed any more."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    has_jvm = "PYSPARK_GATEWAY_PORT" in os.environ or getattr(context, "_gateway", None) is not None
    return has_jvm or _SERVER_IS_OURS in os.environ


SPARK_CAME_FIRST = _spark_has_started()  # before `import pyhudi`


def name_driver_python() -> None:
    """Let a Spark that this process starts from now on look for data sources with this process's Python.

    Nothing changes if the user has chosen a Python, or if `python3` is this one already.
    """
    driver = os.environ.get(DRIVER_PYTHON)
    if driver:
        other_is_asked = _PYTHON.fullmatch(Path(driver).name) is None
    else:
        other_is_asked = WORKER_PYTHON not in os.environ and not _is_own_python("python3")
    if other_is_asked and sys.executable:
        os.environ[DRIVER_PYTHON] = sys.executable


def asks_own_python(spark: SparkSession) -> bool:
    """True if Spark certainly looks for data sources with this process's Python."""
    if SPARK_CAME_FIRST or (is_on_connect(spark) and not server_is_ours()):
        return False
    return _is_own_python(os.environ.get(DRIVER_PYTHON) or os.environ.get(WORKER_PYTHON) or "python3")


def name_own_python(spark: SparkSession) -> None:
    """Let the workers of this session run this process's Python if they are on this machine and no other was chosen.

    A Connect server that another process started may be on another machine, or in a container with other paths.
    """
    if may_run_own_python(spark) and not spark.conf.get(_CHOSEN_FOR_SQL, None):
        spark.conf.set(_CHOSEN_FOR_SQL, spark.conf.get(_CHOSEN_FOR_ALL, None) or sys.executable)


def may_run_own_python(spark: SparkSession) -> bool:
    """True if the workers of a session are on this machine, and PYSPARK_PYTHON names no other Python."""
    if WORKER_PYTHON in os.environ or not sys.executable or (is_on_connect(spark) and not server_is_ours()):
        return False
    return LOCAL_MASTER.fullmatch(spark.conf.get("spark.master", None) or "") is not None


def is_on_connect(spark: SparkSession) -> bool:
    """True for a session of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def server_is_ours() -> bool:
    """True if this process has started the server of Connect sessions."""
    return _SERVER_IS_OURS in os.environ


def _is_own_python(command: str) -> bool:
    """True if a command starts this process's Python with this process's packages.

    The Python of a virtual environment is a link to the Python that created it, which has other packages.
    """
    path = shutil.which(command)
    if path is None or not sys.executable:
        return False
    return _place(path) == _place(sys.executable)


def _place(executable: str) -> tuple[str, str]:
    return os.path.realpath(os.path.dirname(executable)), os.path.realpath(executable)
