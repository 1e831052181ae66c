"""The columns of a table in Delta's types. Types that Delta lacks are refused by name."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from pyhudi.errors import UnsupportedTable

__all__ = ["delta_columns"]

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_SAME = (*_INTEGERS, pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.binary(), pa.date32())


def delta_columns(schema: pa.Schema, where: str) -> pa.Schema:
    """The columns in deltalake's types, all nullable, because earlier files may lack a column.

    Raises: UnsupportedTable for a type that Delta lacks, and for names that it treats as equal.
    """
    counts = Counter(name.lower() for name in schema.names)
    double = next((name for name in schema.names if counts[name.lower()] > 1), None)
    if double is not None:
        raise UnsupportedTable(
            f"{where}: Delta treats the column {double!r} and another one as equal, because only upper and lower case "
            "differ. Rename one. Nothing was exported."
        )
    return pa.schema([pa.field(field.name, _type(field.type, field.name, where)) for field in schema])


def _type(kind: pa.DataType, path: str, where: str) -> pa.DataType:
    types = pa.types
    if kind in _SAME:
        return kind
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_fixed_size_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_dictionary(kind):
        return _type(kind.value_type, path, where)
    if types.is_decimal128(kind) or (types.is_decimal(kind) and kind.precision <= 38):
        return pa.decimal128(kind.precision, kind.scale)
    if types.is_timestamp(kind) and kind.unit != "ns":
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(_type(kind.value_type, f"{path}.element", where))
    if types.is_map(kind):
        return pa.map_(_type(kind.key_type, f"{path}.key", where), _type(kind.item_type, f"{path}.value", where))
    if types.is_struct(kind):
        return pa.struct([pa.field(one.name, _type(one.type, f"{path}.{one.name}", where)) for one in kind])
    raise UnsupportedTable(
        f"{where}: column {path!r} is of the type {kind}, which Delta lacks. Change the column, or export another "
        "format. Nothing was exported."
    )
