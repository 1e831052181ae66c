"""A Spark DataFrame as the input of a write: its options, its checks, and its rows where this process writes them.

A warm Spark job with Python costs more than the whole write of a small batch. So `fetched` brings the rows of a small
input to this process once, and this process writes them. Spark writes larger inputs. Both run the same action on the
same files.
Source: docs/decisions/0002-two-engines.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as st

from pyhudi.errors import SchemaMismatch
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions, canonical_keys
from pyhudi.progress_line import describing
from pyhudi.spark.engine import SparkEngine, collect_arrow
from pyhudi.spark.session import hudi_options
from pyhudi.spark.types import arrow_from_spark

__all__ = ["FrameInput", "collected", "fetched", "is_written_here"]


_LIMIT_KEYS = frozenset({"hoodie.pyhudi.local.max.rows", "hoodie.pyhudi.local.max.bytes"})
# On a local master the driver's machine is the whole cluster, so this process should write larger inputs, too.
_LOCAL_MASTER_BYTES = 256 << 20
_WIDTH_BYTES: Mapping[type[st.DataType], int] = {st.StringType: 32, st.BinaryType: 64, st.DecimalType: 16}
_RESULT_LIMIT = "spark.driver.maxResultSize"  # in the error of a job with a larger result
_ROW_ID = "_pyhudi_row_id"  # task number in the high bits, row number within the task in the low ones
_ROW_NUMBER_BITS = 33


def fetched(df: DataFrame, options: WriteOptions, given_keys: Iterable[str]) -> pa.Table | None:
    """The input's rows if this process writes them, None if Spark does. `given_keys`: options of the caller."""
    if options.engine == "local":
        return collect_arrow(df)
    if options.engine == "spark" or options.operation.lower() == "bulk_insert":
        return None
    width_bytes = _width_bytes(df.schema)
    if SparkEngine(df.sparkSession).is_local_master and not _LIMIT_KEYS.intersection(given_keys):
        return _few_rows_by_task(df, _LOCAL_MASTER_BYTES // width_bytes)
    return _few_rows(df, min(options.local_max_rows, options.local_max_bytes // width_bytes))


def is_written_here(
    engine: SparkEngine, options: WriteOptions, given_keys: Iterable[str], rows: int, size_bytes: int
) -> bool:
    """What `fetched` decides, for an input whose size is known: does this process write it?"""
    if options.engine != "auto":
        return options.engine == "local"
    if options.operation.lower() == "bulk_insert":
        return False
    if engine.is_local_master and not _LIMIT_KEYS.intersection(given_keys):
        return size_bytes <= _LOCAL_MASTER_BYTES
    return rows <= options.local_max_rows and size_bytes <= options.local_max_bytes


def _few_rows(df: DataFrame, rows_max: int) -> pa.Table | None:
    """All rows if they are at most `rows_max`: Spark's tasks stop there, and one more task combines them."""
    if rows_max <= 0:
        return None
    rows = collected(df.limit(rows_max + 1))
    return rows if rows is not None and len(rows) <= rows_max else None


def collected(df: DataFrame) -> pa.Table | None:
    """The rows; None if they exceed Spark's result limit: the schema does not show the size of texts."""
    try:
        return collect_arrow(df)
    except Exception as error:
        if _RESULT_LIMIT in str(error):
            return None
        raise


def _few_rows_by_task(df: DataFrame, rows_max: int) -> pa.Table | None:
    """Like `_few_rows`, directly from all tasks, which then read every row: right if a pass over the input is cheap.

    The number of tasks is unknown. Task t may send `rows_max / (t + 1)` rows: enough for `rows_max` evenly spread rows,
    and in total at most `rows_max` times the logarithm of the number of tasks.
    """
    if rows_max <= 0:
        return None
    row_id = F.col(_ROW_ID)
    number = row_id.bitwiseAND(F.lit((1 << _ROW_NUMBER_BITS) - 1))
    # One row beyond its share shows that a task has more.
    share = F.floor(F.lit(rows_max) / (F.shiftright(row_id, _ROW_NUMBER_BITS) + 1))
    rows = collected(df.withColumn(_ROW_ID, F.monotonically_increasing_id()).where(number <= share))
    if rows is None:
        return None
    ids = rows.column(_ROW_ID).to_numpy()
    shares = rows_max // ((ids >> _ROW_NUMBER_BITS) + 1)
    if len(rows) > rows_max or np.any((ids & ((1 << _ROW_NUMBER_BITS) - 1)) >= shares):
        return None
    return rows.drop_columns(_ROW_ID)


def _width_bytes(kind: st.DataType) -> int:
    """The approximate size of a value in Arrow data."""
    if isinstance(kind, st.StructType):
        return max(1, sum(_width_bytes(field.dataType) for field in kind.fields))
    if isinstance(kind, st.ArrayType):
        return 4 + 4 * _width_bytes(kind.elementType)
    if isinstance(kind, st.MapType):
        return 4 + 4 * (_width_bytes(kind.keyType) + _width_bytes(kind.valueType))
    return _WIDTH_BYTES.get(type(kind), 8)


@dataclass(frozen=True, slots=True)
class FrameInput:
    """The input of a write. `df`: of a classic or Connect session."""

    df: DataFrame

    @property
    def session_options(self) -> Mapping[str, str]:
        """`spark.hoodie.*` of the session; options of the call override them."""
        return hudi_options(self.df.sparkSession)

    def column_names(self, table: MetaClient | None) -> tuple[str, ...]:
        """The names of the columns. Raises SchemaMismatch for a type that can't be stored, and for a duplicate name."""
        names = arrow_from_spark(self.df.schema).names
        duplicates = sorted({name for name in names if names.count(name) > 1})
        if duplicates:
            raise SchemaMismatch(
                f"The DataFrame has several columns called {', '.join(duplicates)}. Rename or drop the others."
            )
        return tuple(names)

    def fetched(self, options: WriteOptions, keys: Iterable[str]) -> pa.Table | DataFrame:
        """The rows if this process is to write them, else the DataFrame. `keys`: of the caller's options."""
        with describing(options.operation, options.table_name or ""):
            rows = fetched(self.df, options, canonical_keys([*keys, *self.session_options]))
        return self.df if rows is None else rows
