"""Which Python runs the work that Spark hands to its workers.

Spark starts `python3` of the PATH unless PYSPARK_PYTHON names another one. In a virtual environment that is not
activated that is a Python without pyhudi, and whatever needs workers fails, while small writes of this process succeed.
Where the workers are on this machine they can run this process's own Python, so there they do, unless the user has
chosen one; spark.pyspark.python is such a choice, which Spark itself honours in spark-submit only. Source: tried on
Spark 4.3, classic and Connect.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LOCAL_MASTER", "name_own_python"]

LOCAL_MASTER = re.compile(r"local(?:\[(\*|\d+)(?:,\d+)?\])?")
_CHOSEN_BY_ENVIRONMENT = "PYSPARK_PYTHON"
_CHOSEN_FOR_ALL = "spark.pyspark.python"
_CHOSEN_FOR_SQL = "spark.sql.execution.pyspark.python"  # of one session, and read when work begins: never too late
_SERVER_IS_OURS = "SPARK_LOCAL_REMOTE"  # PySpark's note that remote("local...") started the server from this process


def name_own_python(spark: SparkSession) -> None:
    """Let the workers of this session run this process's Python if they are on this machine and nobody chose another.

    A Connect server that was started by somebody else may be on another machine, or in a container with other paths.
    """
    if _CHOSEN_BY_ENVIRONMENT in os.environ or not sys.executable:
        return
    if type(spark).__module__.startswith("pyspark.sql.connect") and _SERVER_IS_OURS not in os.environ:
        return
    if spark.conf.get(_CHOSEN_FOR_SQL, None):
        return
    if LOCAL_MASTER.fullmatch(spark.conf.get("spark.master", None) or ""):
        spark.conf.set(_CHOSEN_FOR_SQL, spark.conf.get(_CHOSEN_FOR_ALL, None) or sys.executable)
