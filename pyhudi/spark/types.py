"""Conversion of types between Spark's StructType and Arrow's Schema, and columns by their literal names.

On the way to Arrow, a Spark TIMESTAMP becomes `timestamp[us, UTC]` in any session's zone, strings become `string`
and binary becomes `binary`. On the way from Arrow, a type that Spark lacks becomes the next wider one (milliseconds
become microseconds, large and fixed-size kinds become plain ones). Columns keep their nullability both ways. Fields
inside structs become nullable, because Arrow's casts refuse a null struct whose fields may not be null.

`column` and `quoted` name top-level columns by their literal names, including dots.
Source: Spark's documentation of data types; Hudi's types, docs/formats/base-files.md, "Avro schema of a table".
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as at
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as st

from pyhudi.errors import SchemaMismatch

__all__ = [
    "arrow_from_spark",
    "column",
    "quoted",
    "relaxed",
    "spark_from_arrow",
    "travelling_schema",
    "with_typed_keys",
]


_PLAIN_SPARK: dict[type[st.DataType], pa.DataType] = {
    st.BooleanType: pa.bool_(),
    st.ByteType: pa.int8(),
    st.ShortType: pa.int16(),
    st.IntegerType: pa.int32(),
    st.LongType: pa.int64(),
    st.FloatType: pa.float32(),
    st.DoubleType: pa.float64(),
    st.BinaryType: pa.binary(),
    st.DateType: pa.date32(),
    st.TimestampType: pa.timestamp("us", tz="UTC"),
    st.TimestampNTZType: pa.timestamp("us"),
    st.NullType: pa.null(),
}

_PLAIN_ARROW: dict[pa.DataType, st.DataType] = {
    pa.bool_(): st.BooleanType(),
    pa.int8(): st.ByteType(),
    pa.int16(): st.ShortType(),
    pa.int32(): st.IntegerType(),
    pa.int64(): st.LongType(),
    pa.uint8(): st.ShortType(),
    pa.uint16(): st.IntegerType(),
    pa.uint32(): st.LongType(),
    pa.float16(): st.FloatType(),
    pa.float32(): st.FloatType(),
    pa.float64(): st.DoubleType(),
    pa.date32(): st.DateType(),
    pa.date64(): st.DateType(),
    pa.string(): st.StringType(),
    pa.large_string(): st.StringType(),
    pa.string_view(): st.StringType(),
    pa.binary(): st.BinaryType(),
    pa.large_binary(): st.BinaryType(),
    pa.binary_view(): st.BinaryType(),
    pa.null(): st.NullType(),
}


def arrow_from_spark(schema: st.StructType) -> pa.Schema:
    """The Arrow schema in which rows of a DataFrame reach PyHudi.

    Raises SchemaMismatch, listing every column whose type Hudi cannot store (intervals, variants, ...).
    """
    refused: list[str] = []
    fields = [_arrow_field(field.name, field.dataType, field.nullable, field.name, refused) for field in schema.fields]
    if refused:
        raise SchemaMismatch(
            f"The DataFrame has columns of types that a Hudi table cannot store: {', '.join(refused)}. "
            "Cast them (for example to string) or leave them out."
        )
    return pa.schema(fields)


def spark_from_arrow(schema: pa.Schema) -> st.StructType:
    """The Spark schema of Arrow data. Raises SchemaMismatch, listing every column that Spark has no type for."""
    refused: list[str] = []
    fields = [st.StructField(f.name, _spark_type(f.type, f.name, refused), f.nullable) for f in schema]
    if refused:
        raise SchemaMismatch(f"Spark has no type for these columns: {', '.join(refused)}. Cast them first.")
    return st.StructType(fields)


def travelling_schema(schema: pa.Schema) -> pa.Schema:
    """`schema` after a round trip through Spark: `arrow_from_spark(spark_from_arrow(schema))`."""
    return arrow_from_spark(spark_from_arrow(schema))


def with_typed_keys(kind: st.DataType) -> st.DataType:
    """The type with text for the keys of Spark's `map()`, which have no type; Arrow has no such keys."""
    if isinstance(kind, st.StructType):
        return st.StructType([st.StructField(f.name, with_typed_keys(f.dataType), f.nullable) for f in kind.fields])
    if isinstance(kind, st.ArrayType):
        return st.ArrayType(with_typed_keys(kind.elementType), kind.containsNull)
    if isinstance(kind, st.MapType):
        key = st.StringType() if isinstance(kind.keyType, st.NullType) else with_typed_keys(kind.keyType)
        return st.MapType(key, with_typed_keys(kind.valueType), kind.valueContainsNull)
    return kind


def relaxed(kind: st.DataType) -> st.DataType:
    """The type with nullable fields in all its structs; the type itself if they are all nullable."""
    if isinstance(kind, st.StructType):
        return st.StructType([st.StructField(f.name, relaxed(f.dataType), True, f.metadata) for f in kind.fields])
    if isinstance(kind, st.ArrayType):
        return st.ArrayType(relaxed(kind.elementType), kind.containsNull)
    if isinstance(kind, st.MapType):
        return st.MapType(relaxed(kind.keyType), relaxed(kind.valueType), kind.valueContainsNull)
    return kind


def _arrow_field(name: str, kind: st.DataType, nullable: bool, where: str, refused: list[str]) -> pa.Field:
    inner = _arrow_type(kind, where, refused)
    return pa.field(name, inner, nullable=nullable or pa.types.is_null(inner))


def _arrow_type(kind: st.DataType, where: str, refused: list[str]) -> pa.DataType:
    if isinstance(kind, st.UserDefinedType):
        return _arrow_type(kind.sqlType(), where, refused)
    if isinstance(kind, st.StringType):  # CHAR, VARCHAR and collated strings too
        return pa.string()
    if isinstance(kind, st.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, st.ArrayType):
        return pa.list_(_arrow_field("element", kind.elementType, kind.containsNull, f"{where}[]", refused))
    if isinstance(kind, st.MapType):
        if isinstance(kind.keyType, st.NullType):  # Spark's map(); Arrow has no such keys
            refused.append(f"{where} ({kind.simpleString()})")
            return pa.null()
        key = _arrow_field("key", kind.keyType, False, f"{where}.key", refused)
        return pa.map_(key, _arrow_field("value", kind.valueType, kind.valueContainsNull, f"{where}.value", refused))
    if isinstance(kind, st.StructType):
        return pa.struct([_arrow_field(f.name, f.dataType, True, f"{where}.{f.name}", refused) for f in kind.fields])
    plain = _PLAIN_SPARK.get(type(kind))
    if plain is None:
        refused.append(f"{where} ({kind.simpleString()})")
        return pa.null()
    return plain


def _spark_type(kind: pa.DataType, where: str, refused: list[str]) -> st.DataType:
    plain = _PLAIN_ARROW.get(kind)
    if plain is not None:
        return plain
    if at.is_timestamp(kind):
        return st.TimestampNTZType() if kind.tz is None else st.TimestampType()
    if at.is_decimal(kind) and kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        return st.DecimalType(kind.precision, kind.scale)
    if at.is_fixed_size_binary(kind):
        return st.BinaryType()
    if at.is_dictionary(kind):
        return _spark_type(kind.value_type, where, refused)
    if at.is_map(kind):  # before lists: a map is a list of entries
        value = _spark_type(kind.item_type, f"{where}.value", refused)
        return st.MapType(_spark_type(kind.key_type, f"{where}.key", refused), value, kind.item_field.nullable)
    if at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind):
        return st.ArrayType(_spark_type(kind.value_type, f"{where}[]", refused), kind.value_field.nullable)
    if at.is_struct(kind):
        children = [kind.field(i) for i in range(kind.num_fields)]
        return st.StructType(
            [st.StructField(c.name, _spark_type(c.type, f"{where}.{c.name}", refused), c.nullable) for c in children]
        )
    refused.append(f"{where} ({kind})")
    return st.NullType()


def column(name: str) -> Column:
    """The column of this name."""
    return F.col(quoted(name))


def quoted(name: str) -> str:
    """The name, quoted for Spark's expressions."""
    return "`" + name.replace("`", "``") + "`"
