"""Arrow tables to frames, and rows of frames to Arrow tables, in this process.

If `createDataFrame` takes no Arrow table (3.5), the rows are sent in Arrow's file format: few with the function that
unpacks them in a task, many as a binary column. Types are exactly the declared ones, unlike with pandas or rows of
Python values. If frames have no `toArrow` (3.5), the internal call of `toPandas` is used: a public way would run Python
in every task of every collect. Source: tried on Spark 3.5 and 4.3, classic and Connect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi.spark import capabilities
from pyhudi.spark.session import setting
from pyhudi.spark.tasks import UnpackRows, UnpackSentRows
from pyhudi.spark.types import spark_from_arrow
from pyhudi.spark.worker_python import is_on_connect

__all__ = ["arrow_of", "frame_of"]

_ROWS_AT_ONCE = "spark.sql.execution.arrow.localRelationThreshold"
# A function's bytes are part of the plan, which a Connect session sends to the server at every access.
_SENT_BYTES = 256 << 10
_CHUNK_BYTES = 4 << 20  # of a value in the binary column; workers get batches of 10,000 values


def frame_of(spark: SparkSession, table: pa.Table, *, in_batches: bool = False) -> DataFrame:
    """The rows of a table as a frame. `table` has the schema that Spark would return.

    Args: in_batches: a classic session keeps the Arrow batches, and converts them in tasks; otherwise it converts a
          small table at once to rows, from which plans take only some columns.
    """
    schema = spark_from_arrow(table.schema)
    if in_batches and capabilities.PRESENT.takes_arrow and not is_on_connect(spark):
        with setting(spark, _ROWS_AT_ONCE, "0"):
            return spark.createDataFrame(table, schema=schema)
    if capabilities.PRESENT.takes_arrow:
        return spark.createDataFrame(table, schema=schema)
    if table.num_rows == 0:
        return spark.createDataFrame([], schema)
    if table.nbytes <= _SENT_BYTES:
        return spark.range(0, 1, 1, 1).mapInArrow(UnpackSentRows(_packed(table.to_batches())).__call__, schema)
    chunks = [(bytearray(_packed(rows.to_batches())),) for rows in _chunks(table)]
    return spark.createDataFrame(chunks, "packed binary").mapInArrow(UnpackRows().__call__, schema)


def arrow_of(frame: DataFrame) -> list[pa.RecordBatch]:
    """All rows of a frame, in Spark's form: time stamps in the session's zone, sometimes large texts."""
    if capabilities.PRESENT.gives_arrow:
        return frame.toArrow().to_batches()
    if not type(frame).__module__.startswith("pyspark.sql.connect"):
        return cast("_ClassicFrame", frame)._collect_as_arrow()
    remote = cast("_ConnectFrame", frame)
    client = remote.sparkSession.client
    table, _ = client.to_table(remote._plan.to_proto(client))
    return table.to_batches()


def _chunks(table: pa.Table) -> Iterator[pa.Table]:
    rows = max(1, _CHUNK_BYTES * table.num_rows // table.nbytes)
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


def _packed(batches: list[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


class _ClassicFrame(Protocol):
    """A classic frame of Spark 3.5."""

    def _collect_as_arrow(self) -> list[pa.RecordBatch]: ...


class _Client(Protocol):
    def to_table(self, plan: object) -> tuple[pa.Table, object]: ...


class _Plan(Protocol):
    def to_proto(self, client: _Client) -> object: ...


class _ConnectSession(Protocol):
    client: _Client


class _ConnectFrame(Protocol):
    """A frame of Spark Connect 3.5."""

    _plan: _Plan
    sparkSession: _ConnectSession  # noqa: N815  # Spark's name
