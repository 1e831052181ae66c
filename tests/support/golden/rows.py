"""Rows that real Hudi returned (JSON) next to rows that PyHudi returns (Arrow), compared under the value rules.

Golden: decimals are text and compare as numbers; binary is `b64:...`; timestamps are ISO in UTC without `Z`; maps are
lists of pairs in any order; not-a-number and infinities are `nan`, `inf`, `-inf`. The fixtures of hudi-rs differ:
binary is hex, timestamps have `+00:00`, `_hoodie_file_name` and `_hoodie_commit_seqno` are left out.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any, Literal

import pyarrow as pa

Flavour = Literal["golden", "fixture"]


def canonical_rows(data: pa.Table, flavour: Flavour = "golden", as_text: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Arrow rows in the shape of `canonical_expected`. Columns of `as_text` become the text of their value."""
    # Timestamps go through integers: Python's datetime ends at year 9999, Arrow's does not.
    columns = {
        field.name: _arrow_values(data[field.name].combine_chunks(), flavour, field.name in as_text)
        for field in data.schema
    }
    return [{name: values[i] for name, values in columns.items()} for i in range(data.num_rows)]


def canonical_expected(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> list[dict[str, Any]]:
    """Expected JSON rows, made comparable by the types that PyHudi returns."""
    return [
        {
            name: _expected(value, schema.field(name).type) if name in schema.names else value
            for name, value in row.items()
        }
        for row in rows
    ]


def differences(
    expected: Sequence[Mapping[str, Any]], data: pa.Table, flavour: Flavour = "golden", as_text: Iterable[str] = ()
) -> list[str]:
    """What differs between the expected rows and `data`, in any order of rows; [] when nothing does."""
    schema = data.schema
    for name in as_text:
        schema = schema.set(schema.get_field_index(name), pa.field(name, pa.string()))
    wanted = Counter(_frozen(row) for row in canonical_expected(expected, schema))
    found = Counter(_frozen(row) for row in canonical_rows(data, flavour, as_text))
    lacking = sorted((wanted - found).elements())
    extra = sorted((found - wanted).elements())
    return [f"not returned: {row}" for row in lacking] + [f"not expected: {row}" for row in extra]


def _frozen(row: Mapping[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, ensure_ascii=False)


def _arrow_values(array: pa.Array, flavour: Flavour, as_text: bool) -> list[Any]:
    kind = array.type
    types = pa.types
    if types.is_struct(kind):
        children = {kind.field(i).name: _arrow_values(array.field(i), flavour, False) for i in range(kind.num_fields)}
        valid = array.is_valid().to_pylist()
        return [{name: values[i] for name, values in children.items()} if valid[i] else None for i in range(len(array))]
    if types.is_map(kind):
        return _slices(array, lambda part: _pairs(part, flavour))
    if types.is_list(kind) or types.is_large_list(kind):
        return _slices(array, lambda part: _arrow_values(part, flavour, False))
    if types.is_timestamp(kind):
        micros = array.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_pylist()
        return [None if value is None else {"us": value} for value in micros]
    values = array.to_pylist()
    if as_text:
        return [None if value is None else str(value) for value in values]
    return [_plain(value, flavour) for value in values]


def _slices(array: pa.Array, read: Any) -> list[Any]:
    if isinstance(array, pa.MapArray):
        parts: Any = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
    else:
        parts = array.values
    offsets, valid = array.offsets.to_pylist(), array.is_valid().to_pylist()
    return [read(parts.slice(offsets[i], offsets[i + 1] - offsets[i])) if valid[i] else None for i in range(len(array))]


def _pairs(entries: pa.StructArray, flavour: Flavour) -> list[Any]:
    keys = _arrow_values(entries.field("key"), flavour, False)
    values = _arrow_values(entries.field("value"), flavour, False)
    return sorted(([key, value] for key, value in zip(keys, values, strict=True)), key=repr)


def _plain(value: Any, flavour: Flavour) -> Any:
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, bytes):
        return "b64:" + base64.b64encode(value).decode() if flavour == "golden" else value.hex()
    if isinstance(value, Decimal):
        return _decimal(value)
    return value.isoformat() if hasattr(value, "isoformat") else value


def _decimal(value: Decimal) -> dict[str, str]:
    number = value.normalize(Context(prec=80))
    return {"decimal": str(number if number else abs(number))}


def _float(value: float) -> Any:
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return value


def _expected(value: Any, kind: pa.DataType) -> Any:
    types = pa.types
    if value is None:
        return None
    if types.is_struct(kind) and isinstance(value, Mapping):
        known = {kind.field(i).name: kind.field(i).type for i in range(kind.num_fields)}
        return {name: _expected(part, known[name]) if name in known else part for name, part in value.items()}
    if types.is_map(kind):
        pairs = value.items() if isinstance(value, Mapping) else value
        return sorted(
            ([_expected(key, kind.key_type), _expected(part, kind.item_type)] for key, part in pairs), key=repr
        )
    if types.is_list(kind) or types.is_large_list(kind):
        return [_expected(part, kind.value_type) for part in value]
    if types.is_decimal(kind):
        return _decimal(Decimal(str(value)))
    if types.is_timestamp(kind) and isinstance(value, str):
        return {"us": int(pa.scalar(value.removesuffix("+00:00"), pa.string()).cast(pa.timestamp("us")).value)}
    if types.is_float32(kind) and isinstance(value, float | int):
        return pa.scalar(float(value), pa.float32()).as_py()
    if types.is_floating(kind) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value
