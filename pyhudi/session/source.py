"""What the data source `hudi` (module `pyspark_hudi`) does, once it is called.

Every function is called in a Python process of its own: schema, plan and reading share nothing but what is pickled.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
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
from pyhudi.spark import capabilities
from pyhudi.spark.failures import spelled_out
from pyhudi.spark.reader import plan_read, told_of_damage
from pyhudi.spark.session import store_options
from pyhudi.spark.tasks import conform
from pyhudi.spark.types import spark_from_arrow
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage

__all__ = ["hudi_options_of", "read_task", "source_schema", "source_tasks", "storage_of", "tasks_of"]

_TASK_BYTES = 32 << 20  # small files share a task, as a Python task costs some 30 ms


def source_schema(options: Mapping[str, str]) -> StructType:
    """The schema of the read: all columns, or those of the option `columns`."""
    named = options.get("columns", "")
    columns = [name.strip() for name in named.split(",") if name.strip()] or None
    with spelled_out():
        return spark_from_arrow(_schema(options, columns))


def source_tasks(options: Mapping[str, str], schema: StructType) -> list[bytes]:
    """Pickled tasks, each a few files to be read under `schema`."""
    with spelled_out():
        return tasks_of(*plan_read(storage_of(options), hudi_options_of(options), {}, schema.names))


def tasks_of(meta: MetaClient, plan: ReadPlan) -> list[bytes]:
    """The files of a plan as pickled tasks."""
    plan = told_of_damage(as_engine(LocalEngine()), plan)
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
    """Batches of exactly the Arrow schema that Spark expects for `schema`."""
    has_zone = capabilities.PRESENT.zones_schemas
    target = to_arrow_schema(schema, timezone="UTC") if has_zone else to_arrow_schema(schema)
    storage, plan, reads = pickle.loads(task)
    with spelled_out():
        for read in reads:
            for batch in read_slice(plan, storage, read):
                yield conform(batch, target)


def _schema(options: Mapping[str, str], columns: list[str] | None) -> pa.Schema:
    """Spark doesn't say whether it asks for a stream: an incremental query without a begin may be one."""
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
    return open_storage(path, store_options(None, options))


def hudi_options_of(options: Mapping[str, str]) -> dict[str, str]:
    """The options without those of the data source."""
    return {key: value for key, value in options.items() if key not in ("path", "paths", "columns")}
