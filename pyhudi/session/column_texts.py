"""Columns as a CREATE TABLE lists them, read by Spark: every type that it knows, NOT NULL and comments."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from pyhudi.errors import ConfigError
from pyhudi.formats.avro.schema import DOC_KEY
from pyhudi.spark.types import arrow_from_spark

__all__ = ["schema_of"]


def schema_of(spark: SparkSession, columns: str) -> pa.Schema:
    """The Arrow schema of columns as a statement lists them. Raises ConfigError for what Spark can't read."""
    try:
        struct = spark.createDataFrame([], columns).schema if columns.strip() else st.StructType([])
    except PySparkException as error:
        raise ConfigError(f"SQL: these columns can't be read: {error}") from error
    comments = {field.name: field.metadata.get("comment") or "" for field in struct.fields}
    return pa.schema([_commented(field, comments[field.name]) for field in arrow_from_spark(struct)])


def _commented(field: pa.Field, comment: str) -> pa.Field:
    return field.with_metadata({DOC_KEY: comment.encode()}) if comment else field
