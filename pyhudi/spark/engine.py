"""SparkEngine: the engine's verbs as DataFrame calls.

No RDD, no SparkContext, no JVM gateway: the same code runs in classic sessions and on Spark Connect. Routing uses an
integer slot (`tasks.py`), which adaptive execution does not change; work with side effects is always the last operator
and collected once. If this Spark lacks a feature (`capabilities.py`), an alternative gives the same rows. Source:
docs/decisions/0002-two-engines.md, docs/decisions/0003-table-data-stays-out-of-the-jvm.md.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyhudi.engine.base import ColumnWork, FanOutWork, GroupWork, StreamWork, TaskT
from pyhudi.spark import capabilities
from pyhudi.spark.arrow_transfer import arrow_of, frame_of
from pyhudi.spark.failures import translated
from pyhudi.spark.job_description import jobs_described
from pyhudi.spark.progress import tasks_shown
from pyhudi.spark.session import setting
from pyhudi.spark.tasks import (
    TASK,
    AppendTask,
    ColumnTask,
    FanOutTask,
    GroupTask,
    PickledTasks,
    StreamTask,
    conform,
    routed,
)
from pyhudi.spark.types import arrow_from_spark, column, relaxed, spark_from_arrow, travelling_schema
from pyhudi.spark.worker_python import LOCAL_MASTER, name_own_python

__all__ = ["SparkEngine", "collect_arrow", "literal_path"]

# More tasks than cores even out slots of unequal size; each Python task costs some 30 ms, so not many more.
_TASKS_PER_CORE = 4
_GLOB = re.compile(r"([\\*?\[\]{}])")
_PICKLED_BYTES = 256 << 10  # every executor gets all of them
_EXTENDED = "_pyhudi_extended"
_ADAPT_KEPT_PLANS = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"


class SparkEngine:
    """The engine on a Spark session, classic or Connect. A frame is a DataFrame."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        name_own_python(spark)

    @property
    def parallelism(self) -> int:
        """Cores of the session, according to its configuration.

        A cluster of unknown size (dynamic allocation) is assumed to match the number of shuffle partitions.
        """
        configured = self._number("spark.default.parallelism")
        if configured:
            return configured
        master = LOCAL_MASTER.fullmatch(self._conf("spark.master"))
        if master is None:
            cores = self._number("spark.executor.cores") * self._number("spark.executor.instances")
            return cores or max(
                1, int(cast("str", self.spark.conf.get("spark.sql.shuffle.partitions"))) // _TASKS_PER_CORE
            )
        return int(pa.cpu_count()) if master[1] == "*" else max(1, int(master[1] or 1))

    @property
    def is_local_master(self) -> bool:
        """True when Spark runs inside one machine, which is then the whole cluster."""
        return LOCAL_MASTER.fullmatch(self._conf("spark.master")) is not None

    def schema(self, frame: DataFrame) -> pa.Schema:
        return arrow_from_spark(frame.schema)

    def select(self, frame: DataFrame, columns: Sequence[str]) -> DataFrame:
        return frame.select([column(name) for name in columns])

    def extend(self, frame: DataFrame, columns: Sequence[str], work: ColumnWork, schema: pa.Schema) -> DataFrame:
        outgoing, replaced = travelling_schema(schema), set(schema.names)
        unchanged = [name for name in frame.columns if name not in replaced]
        if capabilities.PRESENT.has_arrow_udfs:
            return self._extended_by_udf(frame, columns, work, outgoing, unchanged)
        incoming = self.schema(frame)
        result = pa.schema([*(incoming.field(name) for name in unchanged), *outgoing])
        task = AppendTask(work, tuple(columns), incoming, outgoing, tuple(unchanged))
        return frame.mapInArrow(task.__call__, spark_from_arrow(result))

    def _extended_by_udf(
        self, frame: DataFrame, columns: Sequence[str], work: ColumnWork, outgoing: pa.Schema, names: Sequence[str]
    ) -> DataFrame:
        """Extend by a UDF, so that only the required columns go to Python."""
        from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # its stub does not name it

        incoming = self.schema(frame.select([column(name) for name in columns])) if columns else pa.schema([])
        task = ColumnTask(work, incoming, outgoing)

        def extended(rows: pa.Array) -> pa.Array:  # these hints define the kind of UDF for Spark
            return task.run(cast("pa.StructArray", rows))

        # Marked as non-deterministic so that the optimizer neither repeats the call nor pushes filters through it.
        udf = arrow_udf(extended, returnType=spark_from_arrow(outgoing)).asNondeterministic()
        inputs = [column(name) for name in columns] or [F.lit(True).alias("row")]
        added = [F.col(_EXTENDED).getField(name).alias(name) for name in outgoing.names]
        unchanged = [column(name) for name in names]
        return frame.withColumn(_EXTENDED, udf(F.struct(*inputs))).select(*unchanged, *added)

    def map(self, frame: DataFrame, work: StreamWork, schema: pa.Schema) -> DataFrame:
        task = StreamTask(work, self.schema(frame), travelling_schema(schema))
        return frame.mapInArrow(task.__call__, spark_from_arrow(schema))

    def map_groups(
        self,
        frame: DataFrame,
        slot: str,
        tasks: Sequence[TaskT],
        work: GroupWork[TaskT],
        schema: pa.Schema,
        sort: Sequence[str] = (),
    ) -> DataFrame:
        wide = max(1, min(len(tasks), _TASKS_PER_CORE * self.parallelism))
        incoming, outgoing = self.schema(frame), travelling_schema(schema)
        order = [column(name) for name in sort]
        if len(pickle.dumps(tasks, protocol=5)) <= _PICKLED_BYTES or not _takes_task_rows(frame):
            together = routed(frame, wide, slot)
            order = [*([column(slot)] if len(tasks) > wide else []), *order]
            run = GroupTask(work, slot, incoming, outgoing, tasks).__call__
        else:
            together = routed(self._with_tasks(frame, slot, tasks), wide, slot)
            order = [column(slot), F.isnull(TASK), *order]
            run = GroupTask(work, slot, incoming, outgoing).__call__
        if order:
            together = together.sortWithinPartitions(*order)
        return together.mapInArrow(run, spark_from_arrow(schema))

    def _with_tasks(self, frame: DataFrame, slot: str, tasks: Sequence[object]) -> DataFrame:
        """The rows, and one row for each task, which has the task's slot and no other values."""
        pickled = pa.array([pickle.dumps(task, protocol=5) for task in tasks], pa.binary())
        numbers = pa.array(range(len(tasks)), pa.int32())
        described = self.from_arrow(pa.table({slot: numbers, TASK: pickled}))
        return frame.unionByName(described, allowMissingColumns=True)

    def fan_out(self, tasks: Sequence[TaskT], work: FanOutWork[TaskT], schema: pa.Schema) -> DataFrame:
        wide = max(1, min(len(tasks), _TASKS_PER_CORE * self.parallelism))
        pickled = [pickle.dumps(task, protocol=5) for task in tasks]
        shape = travelling_schema(schema)
        if sum(map(len, pickled)) <= _PICKLED_BYTES:
            # The tasks are sent with the function, and one number per Spark task selects its own: no shuffle.
            numbers = self.spark.range(0, wide, 1, wide)
            pickled_tasks = PickledTasks(work, shape, tuple(tuple(pickled[number::wide]) for number in range(wide)))
            return numbers.mapInArrow(pickled_tasks.__call__, spark_from_arrow(schema))
        rows = pa.table({"id": pa.array(range(len(tasks)), pa.int32()), TASK: pa.array(pickled, pa.binary())})
        spread = routed(self.from_arrow(rows), wide, "id")
        return spread.mapInArrow(FanOutTask(work, shape).__call__, spark_from_arrow(schema))

    def arrange(
        self,
        frame: DataFrame,
        *,
        partition_by: Sequence[str] = (),
        sort_by: Sequence[str] = (),
        scope: Literal["global", "partition"] = "partition",
    ) -> DataFrame:
        order = [column(name) for name in sort_by]
        if scope == "global" and order:
            return frame.orderBy(*order)
        if partition_by:
            frame = frame.repartition(*[column(name) for name in partition_by])
        return frame.sortWithinPartitions(*order) if order else frame

    def join(
        self,
        left: DataFrame,
        right: DataFrame,
        on: Sequence[str],
        how: Literal["inner", "left"],
        *,
        right_is_large: bool = False,
    ) -> DataFrame:
        # Spark estimates the result of Python work as a few bytes, and would broadcast it through the driver.
        return left.join(right.hint("merge") if right_is_large else right, on=list(on), how=how)

    def union(self, frames: Sequence[DataFrame]) -> DataFrame:
        united = frames[0]
        for frame in frames[1:]:
            united = united.unionByName(frame)
        return united

    def from_arrow(self, table: pa.Table, *, in_batches: bool = False) -> DataFrame:
        """A small table as a frame. `in_batches`: see `frame_of`."""
        shape = travelling_schema(table.schema)
        batches = [conform(batch, shape) for batch in table.to_batches()]
        if not batches:  # PySpark can't convert nested columns without chunks
            batches = [pa.RecordBatch.from_pylist([], shape)]
        return frame_of(self.spark, pa.Table.from_batches(batches, shape), in_batches=in_batches)

    def cache(self, frame: DataFrame) -> DataFrame:
        with _few_tasks(self.spark):
            return frame.persist()

    def release(self, frame: DataFrame) -> None:
        frame.unpersist()

    def collect(self, frame: DataFrame) -> pa.Table:
        return collect_arrow(frame)

    def _conf(self, key: str) -> str:
        # Classic sessions check a text default against the key's type, and refuse "" for a number.
        return self.spark.conf.get(key, None) or ""

    def _number(self, key: str) -> int:
        text = self._conf(key)
        return int(text) if text.isdigit() else 0


@contextmanager
def _few_tasks(spark: SparkSession) -> Iterator[None]:
    """Let adaptive execution combine small shuffle partitions of a frame that is cached in the block.

    By default it does not change a cached frame's plan, which then has `spark.sql.shuffle.partitions` (200) Python
    tasks after every shuffle, even for few rows. The setting is read when the frame is cached.
    """
    with setting(spark, _ADAPT_KEPT_PLANS, "true"):
        yield


def _takes_task_rows(frame: DataFrame) -> bool:
    """True if rows with tasks can be added to the frame. They are null in every other column, and Spark's Arrow fails
    on a null struct with fields that are never null. A caller's column of the tasks' name must never be unpickled;
    Spark's names have no case.
    """
    fields = frame.schema.fields
    return all(relaxed(field.dataType) == field.dataType and field.name.lower() != TASK for field in fields)


def collect_arrow(frame: DataFrame) -> pa.Table:
    """The frame's rows as one table of `arrow_from_spark(frame.schema)`. Errors of PyHudi's work are raised with their
    original type.
    """
    schema = arrow_from_spark(frame.schema)
    if any(relaxed(field.dataType) != field.dataType for field in frame.schema.fields):
        # Spark's Arrow fails on a null struct with fields declared as never null.
        frame = frame.select([column(f.name).cast(relaxed(f.dataType)).alias(f.name) for f in frame.schema.fields])
    with translated(), tasks_shown(frame.sparkSession), jobs_described(frame.sparkSession):
        batches = arrow_of(frame)
    return pa.Table.from_batches([conform(batch, schema) for batch in batches], schema)


def literal_path(path: str) -> str:
    """The path, escaped for Spark, which expands patterns in every path it reads."""
    return _GLOB.sub(r"\\\1", path)
