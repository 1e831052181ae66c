"""Columns of a table in Hive's types, and as Spark's JSON text.

Hive has lower-case names, even inside structs, and keeps partition columns apart. Spark's text keeps the case and
has the partition columns at the end. Source: what Hudi's HiveSyncTool registers; Spark's `StructType.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from pyhudi.errors import UnsupportedTable
from pyhudi.formats.avro.schema import DOC_KEY
from pyhudi.sync.catalog import CatalogColumn

__all__ = ["hive_columns", "hive_type", "spark_schema_text"]

_Json: TypeAlias = Any  # a JSON value of Spark's schema

_HIVE: Mapping[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
}
_SPARK: Mapping[str, str] = {"int": "integer", "bigint": "long"}


def hive_columns(schema: pa.Schema, *, timestamps: bool, comments: bool) -> tuple[CatalogColumn, ...]:
    """The columns in Hive's types.

    Args:    timestamps: Hive's timestamp for timestamps, else bigint. comments: those of the columns, else none.
    Raises:  UnsupportedTable for a type that Hive lacks.
    """
    return tuple(
        CatalogColumn(field.name.lower(), hive_type(field, timestamps=timestamps), _comment(field) if comments else "")
        for field in schema
    )


def hive_type(field: pa.Field, *, timestamps: bool) -> str:
    """The Hive type of a column. Raises UnsupportedTable for a type that Hive lacks."""
    return _hive(field.type, field.name, "timestamp" if timestamps else "bigint")


def _comment(field: pa.Field) -> str:
    return (field.metadata or {}).get(DOC_KEY, b"").decode()


def _hive(kind: pa.DataType, path: str, timestamp: str) -> str:
    if kind in _HIVE:
        return _HIVE[kind]
    if pa.types.is_timestamp(kind) and kind.unit in ("ms", "us"):
        return timestamp
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_fixed_size_binary(kind):
        return "binary"
    if pa.types.is_list(kind):
        return f"array<{_hive(kind.value_type, f'{path}.element', timestamp)}>"
    if pa.types.is_map(kind):
        key, item = _hive(kind.key_type, f"{path}.key", timestamp), _hive(kind.item_type, f"{path}.value", timestamp)
        return f"map<{key},{item}>"
    if pa.types.is_struct(kind):
        parts = (f"{_in_struct(one.name)}:{_hive(one.type, f'{path}.{one.name}', timestamp)}" for one in kind)
        return f"struct<{','.join(parts)}>"
    raise _lacking(kind, path, "a Hive metastore")


def _in_struct(name: str) -> str:
    """A field name without `$`, which Hive does not allow in structs; as Hudi writes it."""
    return name.lower().replace("$", "__dollar__")


def _lacking(kind: pa.DataType, path: str, who: str) -> UnsupportedTable:
    return UnsupportedTable(
        f"The column {path!r} is {kind}, a type that {who} lacks, so the table can't be registered there. Nothing was "
        "registered; store the column as a number or as text."
    )


def spark_schema_text(schema: pa.Schema, partition_fields: Sequence[str]) -> str:
    """Spark's JSON of the columns, the partition columns last. Raises UnsupportedTable for a type that it lacks."""
    last = [name for name in partition_fields if schema.get_field_index(name) >= 0]
    ordered = [*(field for field in schema if field.name not in last), *(schema.field(name) for name in last)]
    return json.dumps(_spark_struct(ordered, ""), separators=(",", ":"), ensure_ascii=False)


def _spark_struct(fields: Sequence[pa.Field], path: str) -> _Json:
    return {
        "type": "struct",
        "fields": [
            {
                "name": field.name,
                "type": _spark(field.type, f"{path}{field.name}"),
                "nullable": field.nullable,
                "metadata": {},
            }
            for field in fields
        ],
    }


def _spark(kind: pa.DataType, path: str) -> _Json:
    if pa.types.is_timestamp(kind) and kind.unit in ("ms", "us"):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_list(kind):
        item = kind.value_field
        return {
            "type": "array",
            "elementType": _spark(item.type, f"{path}.element"),
            "containsNull": item.nullable,
        }
    if pa.types.is_map(kind):
        return {
            "type": "map",
            "keyType": _spark(kind.key_type, f"{path}.key"),
            "valueType": _spark(kind.item_type, f"{path}.value"),
            "valueContainsNull": kind.item_field.nullable,
        }
    if pa.types.is_struct(kind):
        return _spark_struct(list(kind), f"{path}.")
    hive = _hive(kind, path, "")
    return _SPARK.get(hive, hive)
