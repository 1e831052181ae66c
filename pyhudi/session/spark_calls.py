"""Spark's own methods, past those that `enable` puts in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from pyhudi.session.frames_as_views import sql_with_views
from pyhudi.spark import capabilities
from pyhudi.spark.worker_python import is_on_connect

__all__ = ["FORMATS", "ORIGINALS", "Original", "spark_reader", "spark_sql", "spark_table"]

FORMATS = frozenset({"hudi", "org.apache.hudi"})
Original = property | Callable[..., object]
ORIGINALS: dict[tuple[type, str], Original] = {}


def spark_sql(spark: SparkSession, text: str, args: object = None, **given: object) -> DataFrame:
    """`SparkSession.sql` as Spark has it. `given`: what the text names in braces, which makes it a template."""
    own = cast("Callable[..., DataFrame]", _own(spark, "sql"))
    if given and is_on_connect(spark) and not capabilities.PRESENT.connect_takes_frames:
        return sql_with_views(spark, own, text, args, given)
    return own(spark, text, args, **given)


def spark_table(spark: SparkSession, name: str) -> DataFrame:
    """`SparkSession.table` as Spark has it."""
    return cast("Callable[..., DataFrame]", _own(spark, "table"))(spark, name)


def spark_reader(spark: SparkSession) -> DataFrameReader:
    """`SparkSession.read` as Spark has it."""
    return cast("DataFrameReader", cast("property", _own(spark, "read")).__get__(spark))


def _own(spark: SparkSession, name: str) -> Original:
    for owner in type(spark).__mro__:
        original = ORIGINALS.get((owner, name))
        if original is not None:
            return original
        if name in owner.__dict__:
            return cast("Original", owner.__dict__[name])
    raise AttributeError(name)
