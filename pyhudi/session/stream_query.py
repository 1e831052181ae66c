"""Which streaming query a batch is of: the id in the metadata of its checkpoint, which outlasts restarts.

In a classic session Spark tells it to the tasks of the thread that runs the query. On Spark Connect nothing tells it to
the function of `foreachBatch`, so there the checkpoint location must be known.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from pyhudi.errors import HudiError
from pyhudi.formats.json_text import parse_json
from pyhudi.spark.worker_python import name_own_python
from pyhudi.storage import open_storage

__all__ = ["query_of_checkpoint", "query_of_thread"]

_METADATA, _METADATA_BYTES = "metadata", 1 << 16
_PROPERTY = "sql.streaming.queryId"


def query_of_checkpoint(location: str, store: Mapping[str, str]) -> str | None:
    """The id in a checkpoint; None where this process can't read it."""
    try:
        text = open_storage(location, store).read(_METADATA, _METADATA_BYTES)
        found = parse_json(text, location, "the metadata of a checkpoint")
    except (HudiError, OSError):
        return None
    return str(found["id"]) if isinstance(found, Mapping) and found.get("id") else None


def query_of_thread(spark: SparkSession) -> str | None:
    """The query that this thread runs; None on Spark Connect, outside of queries, and where workers run no Python of
    ours. A Spark job of one row.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return None

    def told() -> str | None:  # travels by value, so workers need not have this package
        from pyspark import TaskContext

        context = TaskContext.get()
        return context.getLocalProperty(_PROPERTY) if context is not None else None

    name_own_python(spark)
    try:
        rows = spark.range(1).select(udf(told, "string")()).collect()
    except Exception:
        return None  # such a batch may be written all the same, by this process alone
    return None if rows[0][0] is None else str(rows[0][0])
