"""Column statistics of one file as rows of `ColumnStatsMetadata`, in the form of a table version.

A bound is in the member of the union that real Hudi writes for the column's type; from table version 9 on the row says
the type. Source: docs/formats/metadata-table.md, "Statistics", "Bounds".
"""

from __future__ import annotations

import decimal
from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

import pyarrow as pa

from pyhudi.arrow.kinds import is_bytes, is_text
from pyhudi.formats.column_ranges import ColumnRange, Plain

__all__ = ["OLD_DECIMAL", "stats_rows", "stats_schema", "unscaled_bytes"]

OLD_DECIMAL = pa.decimal128(30, 15)  # of all decimals in statistics below table version 9
_UNSCALED_DIGITS = 60  # of an unscaled number with more digits behind the point
_NULL_TYPE = 1
_TIMES = {"ms": 13, "us": 14}
_TIMESTAMPS = {"ms": 15, "us": 16, "ns": 17}
_LOCAL_TIMESTAMPS = {"ms": 18, "us": 19, "ns": 20}
_BOOLEAN, _INT, _LONG, _FLOAT, _DOUBLE, _BYTES, _TEXT, _DATE, _DECIMAL = range(9)

_Wrapped: TypeAlias = dict[str, dict[str, Plain | decimal.Decimal]]


@cache
def stats_schema(table_version: int) -> pa.Schema:
    """The columns of these rows: the fields of `ColumnStatsMetadata` in the metadata table's schema."""
    wrapped: list[pa.DataType] = [
        pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.binary(), pa.string(), pa.int32(),
        OLD_DECIMAL, pa.time64("us"), pa.int64(), *([pa.int32()] if table_version >= 8 else []),
    ]  # fmt: skip
    members = [
        pa.field(f"member{number}", pa.struct([pa.field("value", kind, nullable=False)]))
        for number, kind in enumerate(wrapped)
    ]
    if table_version >= 9:
        values = pa.list_(pa.field("element", pa.struct(members)))
        members = [*members, pa.field(f"member{len(members)}", pa.struct([pa.field("wrappedValues", values)]))]
    bound = pa.struct(members)
    counts = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
    fields = [
        pa.field("fileName", pa.string()),
        pa.field("columnName", pa.string()),
        pa.field("minValue", bound),
        pa.field("maxValue", bound),
        *(pa.field(name, pa.int64()) for name in counts),
        pa.field("isDeleted", pa.bool_(), nullable=False),
    ]
    if table_version >= 8:
        fields.append(pa.field("isTightBound", pa.bool_(), nullable=False))
    if table_version >= 9:
        kind = [pa.field("typeOrdinal", pa.int32(), nullable=False), pa.field("additionalInfo", pa.string())]
        fields.append(pa.field("valueType", pa.struct(kind)))
    return pa.schema(fields)


def stats_rows(table_version: int, file_name: str, ranges: Iterable[ColumnRange]) -> pa.Table:
    """A row for each range.

    Args: file_name: without folders.
    """
    rows = [_row(table_version, file_name, one) for one in ranges]
    return pa.Table.from_pylist(rows, stats_schema(table_version))


def _row(table_version: int, file_name: str, one: ColumnRange) -> dict[str, object]:
    kind = one.data_type
    wrap = _new_form if table_version >= 9 else _old_form
    least, greatest = (None if bound is None else wrap(bound, kind) for bound in (one.least, one.greatest))
    has_bounds = least is not None and greatest is not None
    row: dict[str, object] = {
        "fileName": file_name,
        "columnName": one.name,
        "minValue": least if has_bounds else None,
        "maxValue": greatest if has_bounds else None,
        "valueCount": one.values,
        "nullCount": one.nulls,
        "totalSize": one.stored_bytes,
        "totalUncompressedSize": one.plain_bytes,
        "isDeleted": False,
    }
    if table_version >= 8:
        row["isTightBound"] = False
    if table_version >= 9:
        row["valueType"] = _value_type(kind) if one.values else {"typeOrdinal": _NULL_TYPE, "additionalInfo": None}
    return row


def unscaled_bytes(number: int) -> bytes:
    """A decimal's unscaled number in two's complement, in as few bytes as it needs."""
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def _old_form(bound: Plain, kind: pa.DataType) -> _Wrapped | None:
    """Below version 9: dates and decimals have members of their own. None for what has no place there."""
    if pa.types.is_date32(kind):
        return _member(_DATE, bound)
    if pa.types.is_decimal(kind):
        assert isinstance(bound, int)
        with decimal.localcontext(prec=_UNSCALED_DIGITS):
            number = decimal.Decimal(bound).scaleb(-kind.scale)
            fits = (
                kind.scale <= OLD_DECIMAL.scale and abs(number).adjusted() < OLD_DECIMAL.precision - OLD_DECIMAL.scale
            )
        return _member(_DECIMAL, number) if fits else None
    if pa.types.is_time32(kind):
        return _member(_INT, bound)
    if pa.types.is_timestamp(kind) and kind.unit not in ("ms", "us"):
        return None
    return _plain_form(bound, kind)


def _new_form(bound: Plain, kind: pa.DataType) -> _Wrapped | None:
    """From version 9 on: the physical values, decimals as unscaled numbers in as few bytes as they need."""
    if pa.types.is_decimal(kind):
        assert isinstance(bound, int)
        return _member(_BYTES, unscaled_bytes(bound))
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return _member(_INT, bound)
    return _plain_form(bound, kind)


def _plain_form(bound: Plain, kind: pa.DataType) -> _Wrapped | None:
    if pa.types.is_boolean(kind):
        return _member(_BOOLEAN, bound)
    if pa.types.is_signed_integer(kind):
        return _member(_LONG if kind.bit_width == 64 else _INT, bound)
    if pa.types.is_floating(kind):
        return _member(_DOUBLE if kind.bit_width == 64 else _FLOAT, bound)
    if is_bytes(kind):
        return _member(_BYTES, bound)
    if is_text(kind):
        return _member(_TEXT, bound)
    return _member(_LONG, bound) if pa.types.is_timestamp(kind) or pa.types.is_time64(kind) else None


def _member(number: int, value: Plain | decimal.Decimal) -> _Wrapped:
    return {f"member{number}": {"value": value}}


def _value_type(kind: pa.DataType) -> dict[str, int | str | None]:
    if pa.types.is_decimal(kind):
        return {"typeOrdinal": 10, "additionalInfo": f"{kind.precision},{kind.scale}"}
    return {"typeOrdinal": _ordinal(kind), "additionalInfo": None}


def _ordinal(kind: pa.DataType) -> int:
    if pa.types.is_timestamp(kind):
        units = _LOCAL_TIMESTAMPS if kind.tz is None else _TIMESTAMPS
        return units.get(kind.unit, _NULL_TYPE)
    if pa.types.is_time(kind):
        return _TIMES.get(kind.unit, _NULL_TYPE)
    if pa.types.is_signed_integer(kind):
        return 4 if kind.bit_width == 64 else 3
    if pa.types.is_floating(kind):
        return 6 if kind.bit_width == 64 else 5
    if pa.types.is_fixed_size_binary(kind):
        return 9
    if is_bytes(kind):
        return 8
    if is_text(kind):
        return 7
    if pa.types.is_boolean(kind):
        return 2
    return 12 if pa.types.is_date32(kind) else _NULL_TYPE
