"""Spark's types as Arrow types, and its type rules: the common type of values, the result type of decimal arithmetic.

A moment (Spark's TIMESTAMP) is `timestamp[us, UTC]`, a local time (TIMESTAMP_NTZ) `timestamp[us]`, an interval of days
to seconds `duration[us]`, one of days alone `duration[s]`, an interval of years and months `month_day_nano_interval`,
VOID `null`.

Source: Spark's SQL reference, "ANSI Compliance" (type promotion, store assignment), "Data Types".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = [
    "BINARY",
    "BOOLEAN",
    "BYTE",
    "DATE",
    "DAYS",
    "DAYS_TO_SECONDS",
    "DOUBLE",
    "FLOAT",
    "INT",
    "LOCAL_TIME",
    "LONG",
    "MOMENT",
    "NOTHING",
    "SHORT",
    "STRING",
    "YEARS_TO_MONTHS",
    "bounded_decimal",
    "common_type",
    "decimal_of",
    "duckdb_type",
    "fields_named",
    "is_integral",
    "is_interval",
    "is_nested",
    "is_number",
    "is_time",
    "name_of",
    "read_cast",
    "spark_type",
    "type_of_text",
    "wider_decimal",
]

NOTHING, BOOLEAN, STRING, BINARY, DATE = pa.null(), pa.bool_(), pa.string(), pa.binary(), pa.date32()
BYTE, SHORT, INT, LONG = pa.int8(), pa.int16(), pa.int32(), pa.int64()
FLOAT, DOUBLE = pa.float32(), pa.float64()
MOMENT, LOCAL_TIME = pa.timestamp("us", "UTC"), pa.timestamp("us")
DAYS, DAYS_TO_SECONDS, YEARS_TO_MONTHS = pa.duration("s"), pa.duration("us"), pa.month_day_nano_interval()

_MAX_DIGITS = 38
_DIGITS: Mapping[pa.DataType, int] = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_FEWEST_DIGITS = 6  # after the point, kept by a result with too many digits
_WIDTHS: tuple[pa.DataType, ...] = (BYTE, SHORT, INT, LONG, FLOAT, DOUBLE)
_NAMES: Mapping[pa.DataType, str] = {
    NOTHING: "VOID", BOOLEAN: "BOOLEAN", STRING: "STRING", BINARY: "BINARY", DATE: "DATE", BYTE: "TINYINT",
    SHORT: "SMALLINT", INT: "INT", LONG: "BIGINT", FLOAT: "FLOAT", DOUBLE: "DOUBLE", MOMENT: "TIMESTAMP",
    LOCAL_TIME: "TIMESTAMP_NTZ", DAYS: "INTERVAL DAY",
    DAYS_TO_SECONDS: "INTERVAL DAY TO SECOND", YEARS_TO_MONTHS: "INTERVAL YEAR TO MONTH",
}  # fmt: skip
# Arrow types that Spark reads as wider types.
_WIDER: Mapping[pa.DataType, pa.DataType] = {
    pa.uint8(): SHORT,
    pa.uint16(): INT,
    pa.uint32(): LONG,
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): FLOAT,
}
_DUCKDB_NAMES: Mapping[pa.DataType, str] = {
    NOTHING: '"NULL"', BOOLEAN: "BOOLEAN", STRING: "VARCHAR", BINARY: "BLOB", DATE: "DATE", BYTE: "TINYINT",
    SHORT: "SMALLINT", INT: "INTEGER", LONG: "BIGINT", FLOAT: "FLOAT", DOUBLE: "DOUBLE", MOMENT: "TIMESTAMPTZ",
    LOCAL_TIME: "TIMESTAMP", DAYS: "INTERVAL", DAYS_TO_SECONDS: "INTERVAL", YEARS_TO_MONTHS: "INTERVAL",
}  # fmt: skip


def fields_named(fields: Iterable[pa.Field], name: str) -> list[pa.Field]:
    """The fields with exactly this name, else those whose names differ only in case."""
    every = list(fields)
    return [field for field in every if field.name == name] or [
        field for field in every if field.name.lower() == name.lower()
    ]


def spark_type(kind: pa.DataType) -> pa.DataType | None:
    """The type that Spark reads a column of an Arrow type as; None for a type that Spark lacks."""
    t = pa.types
    if t.is_dictionary(kind):
        return spark_type(kind.value_type)
    if t.is_large_string(kind) or t.is_string_view(kind):
        return STRING
    if t.is_large_binary(kind) or t.is_fixed_size_binary(kind) or t.is_binary_view(kind):
        return BINARY
    if t.is_timestamp(kind):
        return LOCAL_TIME if kind.tz is None else MOMENT
    if t.is_duration(kind):
        return DAYS_TO_SECONDS
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        element = spark_type(kind.value_type)
        return None if element is None else pa.list_(element)
    if t.is_struct(kind):
        kinds = [(field.name, spark_type(field.type)) for field in kind]
        fields = [(name, of) for name, of in kinds if of is not None]
        return pa.struct(fields) if len(fields) == len(kinds) else None
    if t.is_map(kind):
        key, value = spark_type(kind.key_type), spark_type(kind.item_type)
        return None if key is None or value is None else pa.map_(key, value)
    if t.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= _MAX_DIGITS else None
    return _WIDER.get(kind, kind if kind in _NAMES else None)


def read_cast(kind: pa.DataType) -> str | None:
    """DuckDB's text that casts a column {0} of this type to the type that Spark reads; None if no cast is needed."""
    if kind in _WIDER:
        return f"CAST({{0}} AS {duckdb_type(_WIDER[kind])})"
    if not pa.types.is_timestamp(kind) or kind.unit == "us":
        return None
    to = "TIMESTAMP" if kind.tz is None else "TIMESTAMPTZ"
    return (
        f"CAST(spark_whole_micros({{0}}) AS {to})" if kind.unit == "ns" and kind.tz is None else f"CAST({{0}} AS {to})"
    )


def name_of(kind: pa.DataType) -> str:
    """The name of a type in Spark."""
    t = pa.types
    if t.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if t.is_list(kind):
        return f"ARRAY<{name_of(kind.value_type)}>"
    if t.is_map(kind):
        return f"MAP<{name_of(kind.key_type)}, {name_of(kind.item_type)}>"
    if t.is_struct(kind):
        return f"STRUCT<{', '.join(f'{field.name}: {name_of(field.type)}' for field in kind)}>"
    return _NAMES.get(kind, str(kind))


def duckdb_type(kind: pa.DataType) -> str:
    """The name of a type in DuckDB."""
    t = pa.types
    if t.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if t.is_list(kind):
        return f"{duckdb_type(kind.value_type)}[]"
    if t.is_map(kind):
        return f"MAP({duckdb_type(kind.key_type)}, {duckdb_type(kind.item_type)})"
    if t.is_struct(kind):
        names = ((field.name.replace('"', '""'), duckdb_type(field.type)) for field in kind)
        return "STRUCT(" + ", ".join(f'"{name}" {of}' for name, of in names) + ")"
    return _DUCKDB_NAMES[kind]


def type_of_text(to: exp.DataType) -> pa.DataType | None:
    """The type that a cast names; None for a type that Spark lacks."""
    name, parts = to.this.name, to.expressions
    if name == "ARRAY" and len(parts) == 1:
        element = type_of_text(parts[0])
        return None if element is None else pa.list_(element)
    if name == "MAP" and len(parts) == 2:
        key, value = type_of_text(parts[0]), type_of_text(parts[1])
        return None if key is None or value is None else pa.map_(key, value)
    if name == "STRUCT":
        kinds = [(part.name, type_of_text(part.args["kind"])) for part in parts if part.args.get("kind")]
        fields = [(name, of) for name, of in kinds if of is not None]
        return pa.struct(fields) if len(fields) == len(parts) else None
    if name == "DECIMAL":
        digits = [int(part.name) for part in parts] or [10, 0]
        precision, scale = digits[0], digits[1] if len(digits) > 1 else 0
        return pa.decimal128(precision, scale) if 0 <= scale <= precision <= _MAX_DIGITS and precision else None
    return None if parts else _OF_NAME.get(name)


_OF_NAME: Mapping[str, pa.DataType] = {
    "BOOLEAN": BOOLEAN, "TINYINT": BYTE, "SMALLINT": SHORT, "INT": INT, "BIGINT": LONG, "FLOAT": FLOAT,
    "DOUBLE": DOUBLE, "TEXT": STRING, "BINARY": BINARY, "DATE": DATE, "TIMESTAMP": MOMENT, "TIMESTAMPTZ": MOMENT,
    "TIMESTAMPLTZ": MOMENT, "TIMESTAMPNTZ": LOCAL_TIME,
}  # fmt: skip


def is_integral(kind: pa.DataType) -> bool:
    """True for integer types."""
    return kind in (BYTE, SHORT, INT, LONG)


def is_number(kind: pa.DataType) -> bool:
    """True for numeric types."""
    return kind in _WIDTHS or pa.types.is_decimal(kind)


def is_time(kind: pa.DataType) -> bool:
    """True for dates, moments and local times."""
    return kind in (DATE, MOMENT, LOCAL_TIME)


def is_interval(kind: pa.DataType) -> bool:
    """True for interval types, which only sums and comparisons take."""
    return kind in (DAYS, DAYS_TO_SECONDS, YEARS_TO_MONTHS)


def is_nested(kind: pa.DataType) -> bool:
    """True for arrays, maps and structs."""
    return pa.types.is_list(kind) or pa.types.is_map(kind) or pa.types.is_struct(kind)


def bounded_decimal(precision: int, scale: int) -> pa.Decimal128Type:
    """A decimal type of at most 38 digits. A longer one loses digits after the point, but keeps at least 6."""
    if precision > _MAX_DIGITS:
        scale = max(_MAX_DIGITS - (precision - scale), min(scale, _FEWEST_DIGITS))
        precision = _MAX_DIGITS
    return pa.decimal128(precision, scale)


def decimal_of(kind: pa.DataType) -> pa.Decimal128Type | None:
    """The decimal type that holds all values of an exact numeric type; None for other types."""
    if isinstance(kind, pa.Decimal128Type):
        return kind
    digits = _DIGITS.get(kind)
    return None if digits is None else pa.decimal128(digits, 0)


def wider_decimal(left: pa.Decimal128Type, right: pa.Decimal128Type) -> pa.Decimal128Type:
    """The decimal type that holds the values of both."""
    scale = max(left.scale, right.scale)
    return bounded_decimal(max(left.precision - left.scale, right.precision - right.scale) + scale, scale)


def common_type(kinds: Iterable[pa.DataType], *, texts_give_way: bool = True) -> pa.DataType | None:
    """The type that values of these types are cast to, as in CASE, coalesce and comparisons; None if there is none.

    Args:   texts_give_way: a text next to another type becomes that type. Otherwise they have no common type.
    """
    result: pa.DataType = NOTHING
    for kind in sorted(kinds, key=lambda kind: kind == STRING):  # Spark considers texts last
        shared = _common(result, kind, texts_give_way)
        if shared is None:
            return None
        result = shared
    return result


def _common(left: pa.DataType, right: pa.DataType, texts_give_way: bool) -> pa.DataType | None:
    if left == right or right == NOTHING:
        return left
    if left == NOTHING:
        return right
    if left == STRING or right == STRING:
        return _with_text(right if left == STRING else left) if texts_give_way else None
    if is_number(left) and is_number(right):
        return _common_number(left, right)
    if is_time(left) and is_time(right):
        return MOMENT if MOMENT in (left, right) else LOCAL_TIME
    return _common_nested(left, right, texts_give_way)


def _with_text(other: pa.DataType) -> pa.DataType | None:
    if is_integral(other):
        return LONG
    if is_number(other):
        return DOUBLE
    return None if is_nested(other) else other


def _common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(left) or pa.types.is_decimal(right):
        exact = decimal_of(left), decimal_of(right)
        return DOUBLE if exact[0] is None or exact[1] is None else wider_decimal(exact[0], exact[1])
    if FLOAT in (left, right):  # a float holds few integers exactly
        return DOUBLE
    return _WIDTHS[max(_WIDTHS.index(left), _WIDTHS.index(right))]


def _common_nested(left: pa.DataType, right: pa.DataType, texts_give_way: bool) -> pa.DataType | None:
    t = pa.types
    if t.is_list(left) and t.is_list(right):
        element = _common(left.value_type, right.value_type, texts_give_way)
        return None if element is None else pa.list_(element)
    if t.is_map(left) and t.is_map(right):
        key = _common(left.key_type, right.key_type, texts_give_way)
        value = _common(left.item_type, right.item_type, texts_give_way)
        return None if key is None or value is None else pa.map_(key, value)
    if t.is_struct(left) and t.is_struct(right) and left.num_fields == right.num_fields:
        fields = []
        for one, other in zip(left, right, strict=True):
            kind = _common(one.type, other.type, texts_give_way)
            if kind is None or one.name.lower() != other.name.lower():
                return None
            fields.append((one.name, kind))
        return pa.struct(fields)
    return None
