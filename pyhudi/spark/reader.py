"""A Hudi table as a DataFrame: the plan is made here, and Spark's Parquet (or ORC) scan reads it.

`read_frame` goes from options to a DataFrame:

    options → plan (files, schema) → files by shape → one native scan per shape → columns of the query → union

Usually there is one shape, and the DataFrame is the native scan itself: column pruning, filter push-down, `_metadata`.
In a hive-style table Spark prunes partitions by their paths, if the paths have the same values as the files. Python
tasks read the files that Spark can't convert, and those of stores that its JVM has no file system for.

`few_rows` reads a small increment in this process on loading, and passes it to Spark as rows. It does so only on a
local master: there, with the same cores, Spark's job over the files of a small commit takes longer. Large increments
are not read this way: the commits record their numbers of rows, and the bytes of files are limited, too.
Source: docs/decisions/0003-table-data-stays-out-of-the-jvm.md; docs/decisions/0002-two-engines.md;
docs/formats/schema.md, "Schema of a table", "Reading older files"; measured in docs/measurements.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pyhudi.engine.base import Engine, TaskContext, as_engine
from pyhudi.errors import HudiError, SchemaMismatch, TableNotFound
from pyhudi.expressions.predicates import And, calls_of, is_opaque, split_texts
from pyhudi.filegroup.read.log_blocks import report_damage
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import ReadOptions
from pyhudi.model.table_config import TableConfig
from pyhudi.queries.incremental import plan_incremental
from pyhudi.queries.incremental_range import incremental_range
from pyhudi.queries.plan import ReadPlan, ReadSlice, plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches, read_slice
from pyhudi.schema.casts import cast
from pyhudi.spark import capabilities
from pyhudi.spark.engine import SparkEngine, literal_path
from pyhudi.spark.file_shapes import BY_PYTHON, FileShape, shapes_of
from pyhudi.spark.filters import to_spark
from pyhudi.spark.merged import RowsLeave, in_two_parts, split_slices
from pyhudi.spark.session import files_listed_here, has_file_system, hudi_and_store_options
from pyhudi.spark.types import column, quoted, relaxed, spark_from_arrow
from pyhudi.spark.worker_python import is_on_connect
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.timeline.table_properties import table_exists

__all__ = ["few_rows", "frame_of_plan", "plan_read", "read_frame", "table_storage", "told_of_damage"]


_FILES_BYTES = 64 << 20  # as stored: two cores decode it in some 0.2 s
_ROWS_BYTES = 8 << 20  # of Arrow data, which the frame keeps in memory


def few_rows(engine: SparkEngine, storage: Storage, plan: ReadPlan) -> DataFrame | None:
    """The rows of a plan as a frame, if they may be read at once; None if Spark has to read them.

    Unreadable files are left to Spark as well, so that errors are raised when rows are fetched.
    """
    if not plan.driver_rows or plan.size_bytes > _FILES_BYTES or any(read.merges for read in plan.slices):
        return None
    # An older Spark takes no Arrow table, so its Python workers would have to pass the rows.
    if not capabilities.PRESENT.takes_arrow or not engine.is_local_master:
        return None
    if is_on_connect(engine.spark):
        return None  # the rows would be sent to the server with each plan
    try:
        rows = _at_most(plan, storage, _ROWS_BYTES)
    except (HudiError, OSError):
        return None
    return None if rows is None else engine.from_arrow(rows)


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


# A literal column per partition lets Spark prune; with more branches planning costs more than this saves.
_BRANCHES_MAX = 32
_FILE_NAME = "_pyhudi_file_name"
_SAME_IN_PATH: dict[pa.DataType, re.Pattern[str]] = {
    pa.string(): re.compile(r"(?!__HIVE_DEFAULT_PARTITION__$)[\w .:,@+-]+", re.ASCII),
    pa.int32(): re.compile(r"0|-?[1-9]\d{0,9}", re.ASCII),
    pa.int64(): re.compile(r"0|-?[1-9]\d{0,18}", re.ASCII),
    pa.date32(): re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
}


def read_frame(
    spark: SparkSession, path: str, options: Mapping[str, object], *, schema: StructType | str | None = None
) -> DataFrame:
    """The table at `path` as a DataFrame: its state now, as of the option `as.of.instant`, or what was
    committed in a range of times.

    Args:    options: Hudi's read options, and Hadoop's for the store (`fs.*`); the session's `spark.hoodie.*` and
                      `spark.hadoop.fs.*` come after them.
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


# What scripts for older releases of Hudi put behind the table's folder: a star for each level below it.
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
            f"No Hudi table at {folder}. load takes the folder of one table and expands no patterns, but for /*/* "
            "behind it, which means all of its rows. Load the table's folder, and choose partitions by where(...)."
        )
    return storage


def plan_read(
    storage: Storage, options: Mapping[str, object], session: Mapping[str, str], columns: Sequence[str] | None
) -> tuple[MetaClient, ReadPlan]:
    """The plan of a read by its options; `columns` None reads all."""
    read_options = ReadOptions.parse(options, session)
    meta = MetaClient.load(storage)
    begin, end, as_of = read_options.begin, read_options.end, read_options.as_of
    query = Query(
        columns=columns,
        as_of=as_of,
        query_type=read_options.query_type,
        merger_classes=read_options.merger_classes,
        memory=read_options.memory,
        damage=read_options.damage,
        use_metadata=read_options.use_metadata,
        unique_keys=read_options.unique_keys,
        driver_log_bytes=read_options.driver_log_bytes,
    )
    requested = incremental_range(meta, read_options.query_type, begin, end, as_of, read_options.incremental)
    return meta, plan_snapshot(meta, query) if requested is None else plan_incremental(meta, requested, query)


def frame_of_plan(spark: SparkSession, meta: MetaClient, plan: ReadPlan) -> DataFrame:
    """The rows of a plan as a lazy DataFrame of `plan.schema`."""
    plain, texts = split_texts(plan.predicate)
    if texts:  # which are Spark's own words
        rows = frame_of_plan(spark, meta, replace(plan, schema=plan.read_schema, predicate=plain))
        return _selected(rows.where(to_spark(And(texts), plan.read_schema)), plan.schema.names)
    engine = SparkEngine(spark)
    if not plan.slices:
        return engine.from_arrow(plan.schema.empty_table())
    few = few_rows(engine, meta.storage, plan)
    if few is not None:
        return few
    plan = told_of_damage(as_engine(engine), plan)
    if plan.changes is not None:
        return _read_by_python(engine, meta.storage, plan, plan.slices)
    by_calls = is_opaque(plan.predicate) or calls_of(plan.predicate)  # Spark's functions use the session's time zone
    if by_calls or not has_file_system(spark, meta.storage):
        return _read_by_python(engine, meta.storage, plan, plan.slices)
    two_parts = in_two_parts(plan)
    apart = set(map(id, two_parts))
    rest = replace(plan, slices=tuple(read for read in plan.slices if id(read) not in apart))
    frames = [
        _read_by_python(engine, meta.storage, plan, reads)
        if shape == BY_PYTHON
        else _filtered(_read_natively(spark, meta, plan, shape, reads), plan)
        for shape, reads in shapes_of(rest, meta.storage).items()
    ]
    return engine.union([*frames, *_merged(engine, meta, plan, two_parts)])


def told_of_damage(engine: Engine, plan: ReadPlan) -> ReadPlan:
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
            yield _filtered(_read_natively(engine.spark, meta, plan, shape, base_reads, rows_leave), plan)
            if log_rows is not None:
                yield log_rows


def _filtered(frame: DataFrame, plan: ReadPlan) -> DataFrame:
    if not plan.keeps_all_rows:
        frame = frame.where(to_spark(plan.predicate, plan.read_schema))
    return frame if frame.columns == plan.schema.names else _selected(frame, plan.schema.names)


# ---- native ----------------------------------------------------------------------------------------------------------


def _read_natively(
    spark: SparkSession,
    meta: MetaClient,
    plan: ReadPlan,
    shape: FileShape,
    reads: Sequence[ReadSlice],
    rows_leave: RowsLeave | None = None,
) -> DataFrame:
    """The files of one shape as columns of `plan.read_schema`, without the rows that leave."""
    scan = partial(_scan, spark, meta.storage, shape=shape, rows_leave=rows_leave, check_pages=plan.check_pages)
    if _paths_have_the_values(meta.config, plan.read_schema, reads):
        return _shaped(scan(plan.read_schema, reads=reads, base=meta.storage.full_path("")), plan, shape)
    from_path = [name for name, _ in reads[0].path_values]
    file_schema = pa.schema([field for field in plan.read_schema if field.name not in from_path])
    if not from_path:
        return _shaped(scan(file_schema, reads=reads), plan, shape)
    groups: dict[tuple[tuple[str, str | None], ...], list[ReadSlice]] = {}
    for read in reads:
        groups.setdefault(read.path_values, []).append(read)
    if len(groups) <= _BRANCHES_MAX:
        branches = [_with_constants(scan(file_schema, reads=group), values, plan) for values, group in groups.items()]
        return _shaped(SparkEngine(spark).union(branches), plan, shape)
    frame = scan(file_schema, reads=reads, file_name=True)
    looked_up = SparkEngine(spark).from_arrow(_values_by_file(reads, plan.read_schema))
    return _shaped(frame.join(F.broadcast(looked_up), on=_FILE_NAME), plan, shape)


def _scan(
    spark: SparkSession,
    storage: Storage,
    schema: pa.Schema,
    *,
    shape: FileShape,
    reads: Sequence[ReadSlice],
    base: str | None = None,
    file_name: bool = False,
    rows_leave: RowsLeave | None = None,
    check_pages: bool,
) -> DataFrame:
    """Spark's scan of the files, with the names and types that the columns have in them."""
    there = {target: (name, kind) for target, name, kind in shape.columns}
    file_columns = [there.get(field.name, (field.name, field.type)) for field in schema]
    fields = {name: pa.field(name, kind) for name, kind in file_columns if name is not None}
    orc = reads[0].base_file.name.endswith(".orc")
    reader = spark.read.schema(spark_from_arrow(pa.schema(fields.values())))
    # The session may let Spark skip unreadable files; rows of a table are never skipped.
    reader = reader.option("ignoreCorruptFiles", "false").option("ignoreMissingFiles", "false")
    if not orc:
        reader = reader.option("datetimeRebaseMode", "CORRECTED").option("int96RebaseMode", "CORRECTED")
        reader = reader.option("parquet.page.verify-checksum.enabled", str(check_pages).lower())
    if base is not None:
        reader = reader.option("basePath", base)
    files = [literal_path(storage.full_path(read.base_file.path)) for read in reads]
    with files_listed_here(spark, storage, len(files)):
        frame = reader.orc(files) if orc else reader.parquet(*files)
    if file_name:
        frame = frame.withColumn(_FILE_NAME, F.col("_metadata.file_name"))
    return frame if rows_leave is None else rows_leave(frame)


def _shaped(frame: DataFrame, plan: ReadPlan, shape: FileShape) -> DataFrame:
    """Columns of the files as those of `plan.read_schema`."""
    names = plan.read_schema.names
    if not shape.columns:
        return frame if frame.columns == names else _selected(frame, names)
    there = {target_name: (name, kind) for target_name, name, kind in shape.columns}
    columns = []
    for field, target in zip(plan.read_schema, spark_from_arrow(plan.read_schema).fields, strict=True):
        name, kind = there.get(field.name, (field.name, field.type))
        if name is None:
            value = F.lit(None).cast(target.dataType)
        else:
            value = column(name) if kind == field.type else column(name).cast(target.dataType)
        columns.append(value.alias(field.name))
    return frame.select(columns)


def _paths_have_the_values(config: TableConfig, schema: pa.Schema, reads: Iterable[ReadSlice]) -> bool:
    """Does Spark's parsing of `field=value` folders give every partition column the value in the rows?"""
    fields = config.partition_fields
    plain = config.key_generator in ("SIMPLE", "COMPLEX") and not config.slash_separated_dates
    if not fields or not plain or not config.hive_style_partitioning:
        return False
    kinds = [schema.field(name).type if schema.get_field_index(name) >= 0 else None for name in fields]
    patterns = [_SAME_IN_PATH.get(kind) if kind is not None else None for kind in kinds]
    if None in patterns:
        return False
    expressions = [
        re.compile(f"{re.escape(name)}=({pattern.pattern})")
        for name, pattern in zip(fields, patterns, strict=True)
        if pattern
    ]
    for partition_path in {read.base_file.partition_path for read in reads}:
        folders = partition_path.split("/")
        if len(folders) != len(fields):
            return False
        if not all(expression.fullmatch(folder) for expression, folder in zip(expressions, folders, strict=True)):
            return False
    return True


# ---- values that only the path has -----------------------------------------------------------------------------------


def _with_constants(frame: DataFrame, values: Sequence[tuple[str, str | None]], plan: ReadPlan) -> DataFrame:
    for name, text in values:
        kind = plan.read_schema.field(name).type
        value = None if text is None else cast(pa.array([text]), kind)[0].as_py()
        target = spark_from_arrow(pa.schema([pa.field(name, kind)])).fields[0].dataType
        frame = frame.withColumn(name, F.lit(value).cast(target))
    return frame


def _values_by_file(reads: Sequence[ReadSlice], schema: pa.Schema) -> pa.Table:
    columns: dict[str, pa.Array] = {_FILE_NAME: pa.array([read.base_file.name for read in reads])}
    for index, (name, _) in enumerate(reads[0].path_values):
        texts = pa.array([read.path_values[index][1] for read in reads], pa.string())
        columns[name] = cast(texts, schema.field(name).type)
    return pa.table(columns)


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
            f"{path}: the schema given to the read has other types than the table: {', '.join(other)}. Give the "
            "table's types, and cast afterwards."
        )


def _selected(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    """These columns, passed as texts, because a call of the JVM for each of many columns is slow."""
    return frame.selectExpr(*[quoted(name) for name in names])
