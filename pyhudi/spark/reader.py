"""A Hudi table as a DataFrame: the plan is made here, and Spark's Parquet (or ORC) scan reads it.

`read_frame` goes from options to a DataFrame:

    options → plan (files, schema) → files by shape → one native scan per shape → columns of the query → union

Usually there is one shape, and the DataFrame is the native scan itself (`native_scan.py`). Python tasks read the files
that Spark can't convert, and those in stores for which its JVM has no file system. ROADS has all ways from a plan to a
frame, with the reason for each.

A small increment is read in this process on loading, and passed to Spark as rows. This is done only on a local master:
there, with the same cores, Spark's job over the files of a small commit takes longer. Large increments are not read
this way: the commits record their numbers of rows, and the bytes of files are limited, too.
Source: docs/decisions/0003-table-data-stays-out-of-the-jvm.md; docs/decisions/0002-two-engines.md;
docs/formats/schema.md, "Schema of a table", "Reading older files"; measured in docs/measurements.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pyhudi.engine.base import Engine, TaskContext, as_engine
from pyhudi.errors import HudiError, SchemaMismatch, TableNotFound
from pyhudi.expressions.predicates import And, calls_of, is_opaque, split_texts
from pyhudi.filegroup.read.log_blocks import report_damage
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import ReadOptions
from pyhudi.queries.incremental import plan_incremental
from pyhudi.queries.incremental_range import incremental_range
from pyhudi.queries.plan import ReadPlan, ReadSlice, plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches, read_slice
from pyhudi.spark import capabilities
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.file_shapes import BY_PYTHON, shapes_of
from pyhudi.spark.filters import to_spark
from pyhudi.spark.merged import in_two_parts, split_slices
from pyhudi.spark.native_scan import read_natively, selected
from pyhudi.spark.session import has_file_system, hudi_and_store_options
from pyhudi.spark.types import relaxed, spark_from_arrow
from pyhudi.spark.worker_python import is_on_connect
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.timeline.table_properties import table_exists

__all__ = ["ROADS", "checked_for_damage", "frame_of_plan", "plan_read", "read_frame", "table_storage"]


def read_frame(
    spark: SparkSession, path: str, options: Mapping[str, object], *, schema: StructType | str | None = None
) -> DataFrame:
    """The table at `path` as a DataFrame: its state now, as of the option `as.of.instant`, or what was
    committed in a range of times.

    Args:    options: Hudi's read options, and Hadoop's for the store (`fs.*`); the session's `spark.hoodie.*` and
                      `spark.hadoop.fs.*` are overridden by them.
             schema: a StructType or DDL text of the columns to read; None reads all, meta columns first.
    Raises:  TableNotFound, ConfigError for options, SchemaMismatch when `schema` names other types than the table's.
    """
    requested = _as_struct(spark, schema)
    session, store = hudi_and_store_options(spark, options)
    storage = table_storage(path, store)
    meta, plan = plan_read(storage, options, session, requested.names if requested is not None else None)
    if requested is not None:
        _check_types(requested, plan.schema, path)
    return frame_of_plan(spark, meta, plan)


# Scripts for older releases of Hudi append a star to the table's folder for each level below it.
_EVERYTHING_BELOW = re.compile(r"(?<=[^/*])(?:/\*{1,2}(?:\.parquet)?)+/?$")
_PATTERN = re.compile(r"[*?{\[]")


def table_storage(path: str, store: Mapping[str, str]) -> Storage:
    """The storage of the table that a path names, as scripts give it to `load`: the table's folder, or a pattern for
    all files below it.

    Raises: TableNotFound for a pattern that leaves files out, as its part before the stars is no table's folder.
    """
    folder = _EVERYTHING_BELOW.sub("", path)
    storage = open_storage(folder, store)
    if _PATTERN.search(folder) and not table_exists(storage):
        raise TableNotFound(
            f"No Hudi table at {folder}. load takes the folder of one table and expands no patterns except /*/* "
            "behind it, which means all of its rows. Load the table's folder, and choose partitions by where(...)."
        )
    return storage


def plan_read(
    storage: Storage, options: Mapping[str, object], session: Mapping[str, str], columns: Sequence[str] | None
) -> tuple[MetaClient, ReadPlan]:
    """The plan of a read by its options; `columns` None reads all."""
    read_options = ReadOptions.parse(options, session)
    meta = MetaClient.load(storage)
    commits = incremental_range(
        meta,
        read_options.query_type,
        read_options.begin,
        read_options.end,
        read_options.as_of,
        read_options.incremental,
    )
    query = replace(
        Query.read_by(read_options),
        columns=columns,
        as_of=read_options.as_of,
        query_type=read_options.query_type,
        commits=commits,
    )
    return meta, plan_snapshot(meta, query) if commits is None else plan_incremental(meta, commits, query)


def frame_of_plan(spark: SparkSession, meta: MetaClient, plan: ReadPlan) -> DataFrame:
    """The rows of a plan as a lazy DataFrame of `plan.schema`, by the first of ROADS that applies."""
    read = PlannedRead(SparkEngine(spark), meta, plan)
    for road in ROADS:
        frame = road.frame(read) if road.takes(read) else None
        if frame is not None:
            return frame
    raise AssertionError("the last road applies to every plan")


# ---- the roads


class PlannedRead(NamedTuple):
    """The input of a road."""

    engine: SparkEngine
    meta: MetaClient
    plan: ReadPlan


class Road(NamedTuple):
    """One way from a plan to a frame. `takes`: tells if it applies; `frame`: returns None if it turns out not to."""

    takes: Callable[[PlannedRead], bool]
    frame: Callable[[PlannedRead], DataFrame | None]


def _has_texts(read: PlannedRead) -> bool:
    return bool(split_texts(read.plan.predicate)[1])


def _filtered_by_spark(read: PlannedRead) -> DataFrame:
    """The unfiltered rows, filtered by Spark with the filter's SQL text."""
    plan = read.plan
    plain, texts = split_texts(plan.predicate)
    rows = frame_of_plan(read.engine.spark, read.meta, replace(plan, schema=plan.read_schema, predicate=plain))
    return selected(rows.where(to_spark(And(texts), plan.read_schema)), plan.schema.names)


def _is_empty(read: PlannedRead) -> bool:
    return not read.plan.slices


def _no_rows(read: PlannedRead) -> DataFrame:
    return read.engine.from_arrow(read.plan.schema.empty_table())


_FILES_BYTES = 64 << 20  # as stored: two cores decode it in some 0.2 s
_ROWS_BYTES = 8 << 20  # of Arrow data, which the frame keeps in memory


def _may_be_few(read: PlannedRead) -> bool:
    plan, engine = read.plan, read.engine
    if not plan.driver_rows or plan.size_bytes > _FILES_BYTES or any(one.merges for one in plan.slices):
        return False
    # An older Spark takes no Arrow table, so its Python workers would have to pass the rows. With Connect the rows
    # would be sent to the server with each plan.
    return capabilities.PRESENT.takes_arrow and engine.is_local_master and not is_on_connect(engine.spark)


def _few_rows(read: PlannedRead) -> DataFrame | None:
    """The rows, read now; None if there are many. Unreadable files are left to Spark as well, so that errors are raised
    when rows are fetched.
    """
    try:
        rows = _at_most(read.plan, read.meta.storage, _ROWS_BYTES)
    except (HudiError, OSError):
        return None
    return None if rows is None else read.engine.from_arrow(rows)


def _at_most(plan: ReadPlan, storage: Storage, most_bytes: int) -> pa.Table | None:
    """All rows; None as soon as they exceed the plan's number, or the bytes."""
    batches: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    for batch in read_batches(plan, storage):
        rows += batch.num_rows
        size_bytes += batch.nbytes
        if rows > plan.driver_rows or size_bytes > most_bytes:
            return None
        batches.append(batch)
    return pa.Table.from_batches(batches, plan.schema)


def _needs_python(read: PlannedRead) -> bool:
    plan = read.plan
    by_calls = is_opaque(plan.predicate) or calls_of(plan.predicate)  # Spark's functions use the session's time zone
    return plan.changes is not None or bool(by_calls) or not has_file_system(read.engine.spark, read.meta.storage)


def _all_by_python(read: PlannedRead) -> DataFrame:
    plan = checked_for_damage(as_engine(read.engine), read.plan)
    return _read_by_python(read.engine, read.meta.storage, plan, plan.slices)


def _always(read: PlannedRead) -> bool:
    return True


def _by_file(read: PlannedRead) -> DataFrame:
    """Base files natively where their shape allows it, slices with log files in two parts, the others by Python."""
    engine, meta, plan = read.engine, read.meta, checked_for_damage(as_engine(read.engine), read.plan)
    two_parts = in_two_parts(plan)
    apart = set(map(id, two_parts))
    others = replace(plan, slices=tuple(one for one in plan.slices if id(one) not in apart))
    frames = [
        _read_by_python(engine, meta.storage, plan, reads)
        if shape == BY_PYTHON
        else _filtered(read_natively(engine.spark, meta, plan, shape, reads), plan)
        for shape, reads in shapes_of(others, meta.storage).items()
    ]
    return engine.union([*frames, *_merged(engine, meta, plan, two_parts)])


ROADS = (
    Road(_has_texts, _filtered_by_spark),  # Spark evaluates its own SQL; the rest of the filter takes the other roads
    Road(_is_empty, _no_rows),  # an empty result needs no job
    Road(_may_be_few, _few_rows),  # a job over the files of a small commit takes longer than reading them here
    Road(_needs_python, _all_by_python),  # images of changes; PyHudi's functions; stores that the JVM can't open
    Road(_always, _by_file),  # no row of a base file passes through Python
)


def checked_for_damage(engine: Engine, plan: ReadPlan) -> ReadPlan:
    """The plan after a check of its log files: tasks can raise errors, but can't warn the caller.

    Raises DamagedLog, depending on the plan.
    """
    if plan.merge is None or plan.merge.damage is None:
        return plan
    rules = plan.merge.damage
    report_damage(engine, plan.merge.storage, [read.file_slice for read in plan.slices if read.merges], rules)
    return plan if rules.raises else replace(plan, merge=replace(plan.merge, damage=None))


def _merged(engine: SparkEngine, meta: MetaClient, plan: ReadPlan, reads: Sequence[ReadSlice]) -> Iterator[DataFrame]:
    """Slices with log files in two parts; see `pyhudi.spark.merged`."""
    slice_of = {read.base_file.path: read for read in reads}
    bases = tuple(ReadSlice.of_base_file(read.base_file, read.path_values, read.parsed_path_values) for read in reads)
    for shape, base_reads in shapes_of(replace(plan, slices=bases), meta.storage).items():
        slices = [slice_of[read.base_file.path] for read in base_reads]
        if shape == BY_PYTHON:
            yield _read_by_python(engine, meta.storage, plan, slices)
        else:
            rows_leave, log_rows = split_slices(engine, plan, slices)
            yield _filtered(read_natively(engine.spark, meta, plan, shape, base_reads, rows_leave), plan)
            if log_rows is not None:
                yield log_rows


def _filtered(frame: DataFrame, plan: ReadPlan) -> DataFrame:
    if not plan.keeps_all_rows:
        frame = frame.where(to_spark(plan.predicate, plan.read_schema))
    return frame if frame.columns == plan.schema.names else selected(frame, plan.schema.names)


# ---- by Python -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadSlices:
    """Reads a few files of a plan in a task. `plan` has no slices: the task has its own."""

    storage: Storage
    plan: ReadPlan

    def __call__(self, context: TaskContext, task: Sequence[ReadSlice]) -> Iterator[pa.RecordBatch]:
        for read in task:
            yield from read_slice(self.plan, self.storage, read)


def _read_by_python(engine: SparkEngine, storage: Storage, plan: ReadPlan, reads: Sequence[ReadSlice]) -> DataFrame:
    work = ReadSlices(storage, replace(plan, slices=()))
    return engine.fan_out([(read,) for read in reads], work, plan.schema)


# ---- the user's schema -----------------------------------------------------------------------------------------------


def _as_struct(spark: SparkSession, schema: StructType | str | None) -> StructType | None:
    if schema is None or isinstance(schema, StructType):
        return schema
    return spark.createDataFrame([], schema).schema


def _check_types(requested: StructType, table: pa.Schema, path: str) -> None:
    fields = spark_from_arrow(table)
    other = [
        f"{field.name} ({fields[field.name].dataType.simpleString()} in the table, not {field.dataType.simpleString()})"
        for field in requested.fields
        if relaxed(field.dataType).simpleString() != relaxed(fields[field.name].dataType).simpleString()
    ]
    if other:
        raise SchemaMismatch(
            f"{path}: the schema of the read has other types than the table: {', '.join(other)}. Give the "
            "table's types, and cast the result."
        )
