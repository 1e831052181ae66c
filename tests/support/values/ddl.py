"""Spark DDL to Arrow, and rows of the golden JSON files to Arrow batches, for tests only."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import re
from typing import Any

import pyarrow as pa

_SCALARS = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def schema_from_ddl(text: str) -> pa.Schema:
    """`id string, a struct<b: string>` as an Arrow schema."""
    return pa.schema([pa.field(name, _type(kind)) for name, kind in _members(text)])


def _members(text: str) -> list[tuple[str, str]]:
    """Name and type of `name type` or `name: type`, split at the commas outside of brackets."""
    pieces, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            pieces.append(text[start:at])
            start = at + 1
    pieces.append(text[start:])
    members = []
    for piece in pieces:
        name, kind = re.fullmatch(r"\s*(\w+)\s*[:\s]\s*(.+?)\s*", piece).groups()  # type: ignore[union-attr]
        members.append((name, kind))
    return members


def _type(text: str) -> pa.DataType:
    if text in _SCALARS:
        return _SCALARS[text]
    if match := re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", text):
        return pa.decimal128(int(match[1]), int(match[2]))
    if match := re.fullmatch(r"array<(.+)>", text):
        return pa.list_(_type(match[1].strip()))
    if match := re.fullmatch(r"map<(\w+),\s*(.+)>", text):
        return pa.map_(_type(match[1]), _type(match[2].strip()))
    if match := re.fullmatch(r"struct<(.+)>", text):
        return pa.struct([pa.field(name, _type(kind)) for name, kind in _members(match[1])])
    raise ValueError(text)


def batch_of(schema: pa.Schema, *rows: dict[str, Any]) -> pa.RecordBatch:
    """Rows with the golden files' spelling of values."""
    columns = [pa.array([_value(row.get(f.name), f.type) for row in rows], f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_decimal(kind):
        return decimal.Decimal(value)
    if pa.types.is_date(kind):
        return dt.date.fromisoformat(value)
    if pa.types.is_timestamp(kind):
        moment = dt.datetime.fromisoformat(value)
        return moment.replace(tzinfo=dt.timezone.utc) if kind.tz else moment
    if pa.types.is_binary(kind):
        return base64.b64decode(value.removeprefix("b64:"))
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_struct(kind):
        return {child.name: _value(value.get(child.name), child.type) for child in kind}
    if pa.types.is_list(kind):
        return [_value(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        return [(_value(k, kind.key_type), _value(v, kind.item_type)) for k, v in value]
    return value
