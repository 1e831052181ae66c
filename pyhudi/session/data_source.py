"""Whether Spark itself knows `hudi` as a data source, which tables of its catalog and streams from tables need.

Spark asks a Python for it. Where that is another than this process's, `enable` registers the source with the session,
and where it can't, on a Connect server whose Python lacks pyhudi, says what to set. Source: Spark's Python data source
API; tried on Spark 4.0 to 4.3.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from weakref import WeakSet

from pyspark import SparkContext
from pyspark.sql import SparkSession

from pyhudi.caller_warnings import warn_caller
from pyhudi.session.spark_calls import spark_reader, spark_sql
from pyhudi.spark import worker_python
from pyhudi.spark.worker_python import LOCAL_MASTER

__all__ = ["show_data_source"]

_shown: WeakSet[SparkSession] = WeakSet()


def show_data_source(spark: SparkSession) -> None:
    """See to it, once for a session, that Spark finds the data source `hudi`; warn when it does not."""
    if spark in _shown or worker_python.asks_own_python(spark):
        return
    _shown.add(spark)
    if not worker_python.is_on_connect(spark) and worker_python.may_run_own_python(spark):
        _register(spark)
    elif not _is_known(spark):
        warn_caller(_unknown(spark))


def _register(spark: SparkSession) -> None:
    """For a classic session that was made before PyHudi was imported."""
    from pyspark_hudi import DefaultSource

    SparkContext.getOrCreate().pythonExec = sys.executable  # which a source is registered with
    spark.dataSource.register(DefaultSource)


def _is_known(spark: SparkSession) -> bool:
    """Spark looks for the source of a frame whose schema is given, and reads nothing."""
    try:
        assert spark_reader(spark).format("hudi").schema("a INT").load().schema
    except Exception as error:  # classic sessions pass on what Java raised; other errors say nothing about the source
        return "DATA_SOURCE_NOT_FOUND" not in str(error)
    return True


def _unknown(spark: SparkSession) -> str:
    if not worker_python.is_on_connect(spark):
        when = "before the first session of this process is made"
    elif worker_python.server_is_ours():
        when = "before the session is made; `import pyhudi` above that line does it"
    else:
        when = "in the environment of the Connect server before it starts"
    variable, python = _python_of_lookup(spark)
    return (
        f"Spark does not know the data source hudi: it looked for it with {python}, which has no pyhudi. Reading and "
        "writing paths by format('hudi') works in this session; CREATE TABLE ... USING hudi, saveAsTable, writeTo and "
        f"streams from or into tables may not. Set {variable} to a Python that has pyhudi (here "
        f"os.environ[{variable!r}] = {sys.executable!r}) {when}."
    )


def _python_of_lookup(spark: SparkSession) -> tuple[str, str]:
    """The variable that names the Python with which the JVM looks for data sources, and that Python in words.

    Only a session whose tasks run in the JVM of its driver can tell what that one's environment is.
    """
    driver, worker = worker_python.DRIVER_PYTHON, worker_python.WORKER_PYTHON
    row = None
    with suppress(Exception):  # a server may forbid it
        if LOCAL_MASTER.fullmatch(spark.conf.get("spark.master", None) or ""):
            columns = [f"java_method('java.lang.System', 'getenv', '{name}')" for name in (driver, worker, "PATH")]
            row = spark_sql(spark, f"SELECT {', '.join(columns)}").first()
    if row is None:
        return worker, f"the Python that {driver} or {worker} names in its environment, or else python3 of its PATH"
    for variable, python in zip((driver, worker), row, strict=False):
        if python != "null":  # the text is Java's
            return variable, f"{python}, which {variable} names"
    return worker, f"python3 of its PATH ({row[2]})"
