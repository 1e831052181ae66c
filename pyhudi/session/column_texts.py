"""Columns as SQL lists them, to and from Arrow: `id INT NOT NULL COMMENT 'the key'`."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from pyhudi.errors import ConfigError
from pyhudi.formats.avro.reading import DOC_KEY
from pyhudi.spark.types import arrow_from_spark, spark_from_arrow

__all__ = ["columns_text", "literal", "quoted", "schema_of", "type_text"]


def schema_of(spark: SparkSession, columns: str) -> pa.Schema:
    """The Arrow schema of columns as a statement lists them. Raises ConfigError for what Spark can't read."""
    from pyspark.errors import PySparkException

    try:
        struct = spark.createDataFrame([], columns).schema if columns.strip() else st.StructType([])
    except PySparkException as error:
        raise ConfigError(f"SQL: these columns can't be read: {error}") from error
    comments = {field.name: field.metadata.get("comment") or "" for field in struct.fields}
    return pa.schema([_commented(field, comments[field.name]) for field in arrow_from_spark(struct)])


def _commented(field: pa.Field, comment: str) -> pa.Field:
    return field.with_metadata({DOC_KEY: comment.encode()}) if comment else field


def columns_text(schema: pa.Schema) -> str:
    """The columns of a schema as a statement lists them."""
    struct = spark_from_arrow(schema)
    texts = []
    for column, field in zip(struct.fields, schema, strict=True):
        comment = (field.metadata or {}).get(DOC_KEY)
        said = f" COMMENT {literal(comment.decode())}" if comment else ""
        required = "" if column.nullable else " NOT NULL"
        texts.append(f"{quoted(column.name)} {type_text(column.dataType)}{required}{said}")
    return ", ".join(texts)


def type_text(kind: st.DataType) -> str:
    """A type as SQL says it; names of fields in backticks."""
    if isinstance(kind, st.StructType):
        inner = ", ".join(f"{quoted(field.name)}: {type_text(field.dataType)}" for field in kind.fields)
        return f"STRUCT<{inner}>"
    if isinstance(kind, st.ArrayType):
        return f"ARRAY<{type_text(kind.elementType)}>"
    if isinstance(kind, st.MapType):
        return f"MAP<{type_text(kind.keyType)}, {type_text(kind.valueType)}>"
    return kind.simpleString().upper()


def quoted(name: str) -> str:
    """A name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A text as a quotation."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
