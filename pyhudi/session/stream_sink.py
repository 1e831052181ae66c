"""The writer of a stream's batches to a table, each exactly once: `write_batches_to`.

`BatchWriter` is called with each batch:

    batch n → is n in the table? ─ yes → nothing to do
                                 └ no  → an ordinary write, whose commit stores the number n → services next to it

Spark calls the function of `foreachBatch` again with a batch if it can't be sure that the first call succeeded. In a
classic session it is called in the driver's process. On Spark Connect the function is pickled and called in a process
on the server, where this package must be installed.

A batch belongs to a streaming query, identified by the id in the metadata of its checkpoint. This id survives restarts.
In a classic session Spark passes it to the tasks of the thread that runs the query (`query_of_thread`). On Spark
Connect the function of `foreachBatch` doesn't get it, so the checkpoint location must be known there
(`query_of_checkpoint`).
Source: Spark's guide to Structured Streaming; docs/formats/incremental.md, "Checkpoint of a sink".
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

from pyhudi.actions.stream_batches import WRITER, is_written
from pyhudi.errors import ConfigError, CorruptFile, HudiError, KeyGenError, SchemaMismatch, UnsupportedTable
from pyhudi.formats.json_text import parse_json
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions, canonical_keys
from pyhudi.model.options.streaming import BATCH_ID, QUERY_ID
from pyhudi.services.beside import left_by_batches
from pyhudi.session.stream_services import check_services, serve_beside
from pyhudi.spark.session import hudi_and_store_options
from pyhudi.spark.worker_python import name_own_python
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.table.save import write
from pyhudi.timeline.table_properties import table_exists
from pyhudi.warnings import warn_caller

__all__ = ["CHECKPOINT", "BatchWriter", "query_of_checkpoint", "query_of_thread", "write_batches_to"]


_METADATA, _METADATA_BYTES = "metadata", 1 << 16
_PROPERTY = "sql.streaming.queryId"


def query_of_checkpoint(location: str, store: Mapping[str, str]) -> str | None:
    """The id in a checkpoint; None if this process can't read it."""
    try:
        text = open_storage(location, store).read(_METADATA, _METADATA_BYTES)
        metadata = parse_json(text, location, "the metadata of a checkpoint")
    except (HudiError, OSError):
        return None
    return str(metadata["id"]) if isinstance(metadata, Mapping) and metadata.get("id") else None


def query_of_thread(spark: SparkSession) -> str | None:
    """The query that this thread runs; None on Spark Connect, outside of queries, and if workers can't run our Python.
    This is a Spark job with one row.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return None

    def query_of_task() -> str | None:  # pickled by value, so workers need not have this package
        from pyspark import TaskContext

        context = TaskContext.get()
        return context.getLocalProperty(_PROPERTY) if context is not None else None

    name_own_python(spark)
    try:
        rows = spark.range(1).select(udf(query_of_task, "string")()).collect()
    except Exception:
        return None  # the batch may still be written, by this process alone
    return None if rows[0][0] is None else str(rows[0][0])


_OPERATION = "hoodie.datasource.write.operation"
_REPLACES_ALL = "insert_overwrite_table"
CHECKPOINT = "checkpointlocation"  # Spark's option, in lower case
# The same rows would fail in the same way again.
_LASTING = (ConfigError, KeyGenError, SchemaMismatch, UnsupportedTable, CorruptFile)
_SYSTEM_CLOCK = SystemClock()


def write_batches_to(
    path: str | os.PathLike[str],
    options: Mapping[str, object] | None = None,
    *,
    partition_by: str | Sequence[str] = (),
    complete: bool = False,
) -> BatchWriter:
    """Return a function for `df.writeStream.foreachBatch(...)` that writes each batch to a table exactly once.

    Args:
        path: of the table; the first batch creates a missing table.
        options: Hudi's write options, as `df.write.format("hudi")` takes them, including those of streams
            (`hoodie.datasource.write.streaming.*`), and Hadoop's for the store (`fs.*`).
        partition_by: the partition fields, if the options don't name them.
        complete: each batch is the whole result (output mode complete) and replaces all rows, in one commit.
    On Spark Connect the function can't find out which query it writes for. So if several streams write to the table,
    set `checkpointLocation` in the options, too, or `hoodie.datasource.write.streaming.checkpoint.identifier`.
    Raises: ConfigError. The function raises HudiErrors, with which the stream fails; nothing of the batch is visible
        then, and the stream writes it when it is restarted.
    """
    columns = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
    return BatchWriter(os.fspath(path), dict(options or {}), columns, complete)


class BatchWriter:
    """Writes the batches of a stream; `write_batches_to` returns it. Picklable."""

    def __init__(
        self,
        path: str,
        options: Mapping[str, object],
        partition_by: Sequence[str] = (),
        complete: bool = False,
        clock: Clock = _SYSTEM_CLOCK,
    ) -> None:
        if not path.strip():
            raise ConfigError("A stream of format hudi takes the path of one table, found none.")
        self._path, self._partition_by = path, tuple(partition_by)
        self._options = {key: value for key, value in options.items() if key.lower() != CHECKPOINT}
        self._checkpoint = next((str(value) for key, value in options.items() if key.lower() == CHECKPOINT), None)
        self._writer = f"{WRITER}{clock.new_uuid()}"
        self._of_thread = threading.local()
        self._complete, self._clock = complete, clock
        if complete:
            self._options = _replacing_all(self._options)

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        """Write a batch, unless it is already in the table."""
        session, store = hudi_and_store_options(df.sparkSession, self._options)
        options = WriteOptions.parse(self._options, session, None)
        storage = open_storage(self._path, store)
        check_services(storage)
        query = self._query(df.sparkSession, store)
        wait_s = options.stream.retry_interval_s
        for attempt in range(1, max(1, options.stream.retry_count) + 1):
            try:
                self._write(df, batch_id, storage, options, query)
                break
            except HudiError as error:
                if attempt < options.stream.retry_count and not isinstance(error, _LASTING):
                    self._clock.sleep_s(wait_s)
                    wait_s *= 2
                    continue
                if not options.stream.ignore_failed_batch:
                    raise
                warn_caller(
                    f"{storage.root}: batch {batch_id} of the stream {options.stream.identifier!r} is left out, as "
                    f"hoodie.datasource.write.streaming.ignore.failed.batch=true says; its rows are lost. "
                    f"{type(error).__name__}: {error}"
                )
                return
        serve_beside(df.sparkSession, storage, self._options)

    def _write(self, df: DataFrame, batch_id: int, storage: Storage, options: WriteOptions, query: str) -> None:
        stream = replace(options.stream, query=query)
        if not (table_exists(storage) and is_written(MetaClient.load(storage), stream, batch_id)):
            write_options = {**self._options, **left_by_batches(options), BATCH_ID: batch_id, QUERY_ID: query}
            write(storage, df, write_options, "append", df.sparkSession, self._partition_by)

    def _query(self, spark: SparkSession, store: Mapping[str, str]) -> str:
        """The query whose batches this thread writes, or this writer if the query is unknown."""
        query = vars(self._of_thread).get("query")
        if query is None:
            checkpoint = self._checkpoint and query_of_checkpoint(self._checkpoint, store)
            query = self._of_thread.query = checkpoint or query_of_thread(spark) or self._writer
        return cast("str", query)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_of_thread"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state, _of_thread=threading.local())


def _replacing_all(options: Mapping[str, object]) -> dict[str, object]:
    """The options of a batch that replaces all rows."""
    operation_keys = [key for key in options if canonical_keys([key]) == {_OPERATION}]
    for key in operation_keys:
        if str(options[key]).lower() not in ("upsert", "insert", "bulk_insert", _REPLACES_ALL):
            raise ConfigError(
                f"{key}={options[key]} with output mode complete: each batch is the whole result and takes the place "
                "of all rows. Leave the operation out, or use output mode append."
            )
    return {**{key: value for key, value in options.items() if key not in operation_keys}, _OPERATION: _REPLACES_ALL}
