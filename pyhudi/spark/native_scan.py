"""Base files as Spark's own scan of them: those of one shape, as columns of the query.

The DataFrame is the native scan itself, with column pruning, filter push-down and `_metadata`. In a hive-style table
Spark prunes partitions by their paths, if the paths have the same values as the files. Values that only the path has
become literal columns, or are looked up by the file's name. Source: docs/formats/schema.md, "Reading older files".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyhudi.meta_client import MetaClient
from pyhudi.model.table_config import TableConfig
from pyhudi.queries.plan import ReadPlan, ReadSlice
from pyhudi.schema.casts import cast
from pyhudi.spark.engine import SparkEngine, literal_path
from pyhudi.spark.file_shapes import FileShape
from pyhudi.spark.merged import DropReplaced
from pyhudi.spark.session import files_listed_here
from pyhudi.spark.types import column, quoted, spark_from_arrow
from pyhudi.storage.base import Storage

__all__ = ["read_natively", "selected"]

# A literal column per partition lets Spark prune; with more branches planning costs more than this saves.
_BRANCHES_MAX = 32
_FILE_NAME = "_pyhudi_file_name"
_SAME_IN_PATH: dict[pa.DataType, re.Pattern[str]] = {
    pa.string(): re.compile(r"(?!__HIVE_DEFAULT_PARTITION__$)[\w .:,@+-]+", re.ASCII),
    pa.int32(): re.compile(r"0|-?[1-9]\d{0,9}", re.ASCII),
    pa.int64(): re.compile(r"0|-?[1-9]\d{0,18}", re.ASCII),
    pa.date32(): re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
}


def read_natively(
    spark: SparkSession,
    meta: MetaClient,
    plan: ReadPlan,
    shape: FileShape,
    reads: Sequence[ReadSlice],
    drop_replaced: DropReplaced | None = None,
) -> DataFrame:
    """The files of one shape as columns of `plan.read_schema`. `drop_replaced`: drops rows from the scan."""
    scan = partial(_scan, spark, meta.storage, shape=shape, drop_replaced=drop_replaced, check_pages=plan.check_pages)
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
    drop_replaced: DropReplaced | None = None,
    check_pages: bool,
) -> DataFrame:
    """Spark's scan of the files, with the names and types that the columns have in them."""
    columns_in_files = {target: (name, kind) for target, name, kind in shape.columns}
    file_columns = [columns_in_files.get(field.name, (field.name, field.type)) for field in schema]
    fields = {name: pa.field(name, kind) for name, kind in file_columns if name is not None}
    orc = reads[0].base_file.name.endswith(".orc")
    reader = spark.read.schema(spark_from_arrow(pa.schema(fields.values())))
    # The session may allow Spark to skip unreadable files; rows of a table must never be skipped.
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
    return frame if drop_replaced is None else drop_replaced(frame)


def _shaped(frame: DataFrame, plan: ReadPlan, shape: FileShape) -> DataFrame:
    """Columns of the files as those of `plan.read_schema`."""
    names = plan.read_schema.names
    if not shape.columns:
        return frame if frame.columns == names else selected(frame, names)
    columns_in_files = {target_name: (name, kind) for target_name, name, kind in shape.columns}
    columns = []
    for field, target in zip(plan.read_schema, spark_from_arrow(plan.read_schema).fields, strict=True):
        name, kind = columns_in_files.get(field.name, (field.name, field.type))
        if name is None:
            value = F.lit(None).cast(target.dataType)
        else:
            value = column(name) if kind == field.type else column(name).cast(target.dataType)
        columns.append(value.alias(field.name))
    return frame.select(columns)


def _paths_have_the_values(config: TableConfig, schema: pa.Schema, reads: Iterable[ReadSlice]) -> bool:
    """True if Spark's parsing of `field=value` folders gives every partition column the value in the rows."""
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


def selected(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    """These columns, passed as texts, because a call of the JVM for each of many columns is slow."""
    return frame.selectExpr(*[quoted(name) for name in names])
