"""Spark's data source `hudi`: its registration with a session, and the functions behind it.

Tables of Spark's catalog, and streams from tables, need a Spark that itself knows the data source `hudi`. Spark asks a
Python process for it. If this is not the current process's Python, `enable` registers the source with the session
(`show_data_source`). If that is impossible, as on a Connect server whose Python lacks pyhudi, a warning names the
variable to set.

The data source itself (module `pyspark_hudi`) calls `source_schema`, `source_tasks` and `read_task`. Each function runs
in a separate Python process: schema, plan and reading share only pickled values.
Source: Spark's Python data source API; tried on Spark 4.0 to 4.3.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from weakref import WeakSet

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyhudi.engine.base import as_engine
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import ReadOptions
from pyhudi.queries.change_rows import CHANGES_SCHEMA
from pyhudi.queries.plan import ReadPlan, ReadSlice, selected
from pyhudi.queries.schema import read_schema
from pyhudi.queries.snapshot import read_slice
from pyhudi.session.temp_views import spark_reader, spark_sql
from pyhudi.spark import capabilities, worker_python
from pyhudi.spark.failures import spelled_out
from pyhudi.spark.reader import checked_for_damage, plan_read, table_storage
from pyhudi.spark.session import store_options
from pyhudi.spark.tasks import conform
from pyhudi.spark.types import spark_from_arrow
from pyhudi.spark.worker_python import LOCAL_MASTER
from pyhudi.storage.base import Storage
from pyhudi.warnings import warn_caller

__all__ = [
    "hudi_options_of",
    "read_task",
    "show_data_source",
    "source_schema",
    "source_tasks",
    "storage_of",
    "tasks_of",
]


_sessions_with_source: WeakSet[SparkSession] = WeakSet()


def show_data_source(spark: SparkSession) -> None:
    """Ensure, once per session, that Spark finds the data source `hudi`; warn if it does not."""
    if spark in _sessions_with_source or worker_python.asks_own_python(spark):
        return
    _sessions_with_source.add(spark)
    if not worker_python.is_on_connect(spark) and worker_python.may_run_own_python(spark):
        _register(spark)
    elif not _is_known(spark):
        warn_caller(_unknown(spark))


def _register(spark: SparkSession) -> None:
    """Register the source with a classic session that was created before PyHudi was imported."""
    from pyspark_hudi import DefaultSource

    SparkContext.getOrCreate().pythonExec = sys.executable  # which a source is registered with
    spark.dataSource.register(DefaultSource)


def _is_known(spark: SparkSession) -> bool:
    """True if Spark finds the source. It looks for it when a frame with a schema is created, and reads nothing."""
    try:
        assert spark_reader(spark).format("hudi").schema("a INT").load().schema
    except Exception as error:  # classic sessions re-raise Java's error; other errors are unrelated to the source
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
    """The variable that names the Python with which the JVM looks for data sources, and a description of that Python.

    Only a session whose tasks run in its driver's JVM can read that JVM's environment.
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


_TASK_BYTES = 32 << 20  # small files share a task, as a Python task costs some 30 ms


def source_schema(options: Mapping[str, str]) -> StructType:
    """The schema of a read: all columns, or those of the option `columns`."""
    column_list = options.get("columns", "")
    columns = [name.strip() for name in column_list.split(",") if name.strip()] or None
    with spelled_out():
        return spark_from_arrow(_schema(options, columns))


def source_tasks(options: Mapping[str, str], schema: StructType) -> list[bytes]:
    """The pickled tasks of a read, each with a few files to read under `schema`."""
    with spelled_out():
        return tasks_of(*plan_read(storage_of(options), hudi_options_of(options), {}, schema.names))


def tasks_of(meta: MetaClient, plan: ReadPlan) -> list[bytes]:
    """Split the files of a plan into pickled tasks."""
    plan = checked_for_damage(as_engine(LocalEngine()), plan)
    bare = replace(plan, slices=())
    tasks: list[list[ReadSlice]] = []
    filled = _TASK_BYTES
    for read in plan.slices:
        if filled >= _TASK_BYTES:
            tasks.append([])
            filled = 0
        tasks[-1].append(read)
        filled += read.size_bytes
    return [pickle.dumps((meta.storage, bare, tuple(reads)), protocol=5) for reads in tasks]


def read_task(task: bytes, schema: StructType) -> Iterator[pa.RecordBatch]:
    """Read a task into batches with exactly the Arrow schema that Spark expects for `schema`."""
    has_zone = capabilities.PRESENT.zones_schemas
    target = to_arrow_schema(schema, timezone="UTC") if has_zone else to_arrow_schema(schema)
    storage, plan, reads = pickle.loads(task)
    with spelled_out():
        for read in reads:
            for batch in read_slice(plan, storage, read):
                yield conform(batch, target)


def _schema(options: Mapping[str, str], columns: list[str] | None) -> pa.Schema:
    """The Arrow schema of a read. Spark doesn't tell streams apart; an incremental query without begin may be one."""
    read_options = ReadOptions.parse(hudi_options_of(options))
    if read_options.query_type != "incremental" or read_options.begin is not None:
        return plan_read(storage_of(options), hudi_options_of(options), {}, columns)[1].schema
    meta = MetaClient.load(storage_of(options))
    full = CHANGES_SCHEMA if read_options.incremental.returns_changes else read_schema(meta, None)
    return full if columns is None else selected(full, columns)


def storage_of(options: Mapping[str, str]) -> Storage:
    """The storage of the table that the options name. Raises ConfigError."""
    path = options.get("path")
    if not path:
        raise ConfigError("load of format hudi takes the path of one table; found none (or several).")
    return table_storage(path, store_options(None, options))


def hudi_options_of(options: Mapping[str, str]) -> dict[str, str]:
    """The options without those of the data source."""
    return {key: value for key, value in options.items() if key not in ("path", "paths", "columns")}
