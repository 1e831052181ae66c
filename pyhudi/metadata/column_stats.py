"""Bounds of column statistics as values of the column's type.

A bound is a union of wrappers (`member0` Boolean, 1 Int, 2 Long, 3 Float, 4 Double, 5 Bytes, 6 String, 7 Date,
8 Decimal, 9 TimeMicros, 10 TimestampMicros, 11 LocalDate). Which one holds a value depends on Hudi's release, so the
column's type decides what is read from whichever is there. Source: docs/formats/metadata-table.md, "Bounds".
"""

from __future__ import annotations

import decimal
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile

__all__ = ["bounds"]

_WHOLE = ("member1", "member2", "member7", "member11", "member9", "member10")
_MEMBERS: dict[str, tuple[str, ...]] = {
    "boolean": ("member0",),
    "whole": _WHOLE,
    "float": ("member3", "member4"),
    "binary": ("member5",),
    "text": ("member6",),
    "decimal": ("member8", "member5"),
}
_OLD_DECIMAL_SCALE = 15  # of all decimals in statistics without a value type


def bounds(wrapped: pa.Array, data_type: pa.DataType, has_value_type: bool) -> pa.Array:
    """The bounds (`minValue` or `maxValue` of many records) as `data_type`; null where there is none.

    Args:   has_value_type: the records say the type of their values, as those of table version 9 do.
    Raises: CorruptFile for values that the type does not have.
    """
    if not pa.types.is_struct(wrapped.type):
        return pa.nulls(len(wrapped), data_type)
    assert isinstance(wrapped, pa.StructArray)
    kind = _kind(data_type)
    found = pa.nulls(len(wrapped), data_type)
    for member in _MEMBERS[kind]:
        index = wrapped.type.get_field_index(member)
        if index < 0:
            continue
        values = pc.struct_field(wrapped, [member, "value"])
        if values.null_count == len(values):
            continue
        found = pc.coalesce(found, _typed(values, data_type, has_value_type))
    return found


def _kind(data_type: pa.DataType) -> str:
    if pa.types.is_boolean(data_type):
        return "boolean"
    if pa.types.is_decimal(data_type):
        return "decimal"
    if pa.types.is_floating(data_type):
        return "float"
    if pa.types.is_string(data_type):
        return "text"
    return "binary" if pa.types.is_binary(data_type) or pa.types.is_fixed_size_binary(data_type) else "whole"


def _typed(values: pa.Array, data_type: pa.DataType, has_value_type: bool) -> pa.Array:
    try:
        if pa.types.is_decimal(data_type):
            return _decimals(values, data_type, has_value_type)
        if pa.types.is_temporal(data_type):
            width = pa.int32() if data_type.bit_width == 32 else pa.int64()
            return values.cast(width).view(data_type)
        return values.cast(data_type)
    except (pa.ArrowInvalid, decimal.DecimalException, OverflowError) as error:
        raise CorruptFile(f"Column statistics hold a bound that is no {data_type} ({error}).") from error


def _decimals(values: pa.Array, data_type: pa.DataType, has_value_type: bool) -> pa.Array:
    """A loop over values: one per file, and Arrow can't make decimals of bytes of any length."""
    assert isinstance(data_type, pa.Decimal128Type)
    if pa.types.is_decimal(values.type):
        return values.cast(data_type)
    scale = data_type.scale if has_value_type else _OLD_DECIMAL_SCALE
    stored = cast("list[bytes | None]", values.to_pylist())
    with decimal.localcontext(prec=60):
        numbers = [
            None if raw is None else decimal.Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-scale)
            for raw in stored
        ]
    return pa.array(numbers, pa.decimal128(38, scale)).cast(data_type)
