"""Column statistics of one file: ranges of its columns, and the rows of `ColumnStatsMetadata` that store them.

A `ColumnRange` has the least and the greatest value of a column in one file, and counts its values and nulls. Bounds
are plain, so they are compared and joined without Arrow. Numbers, text and bytes stay as they are. Dates, times and
timestamps are whole numbers in the unit of their type, decimals are unscaled numbers. An unknown bound is None: for a
float column with NaN, and for a type without an order.

`stats_rows` makes rows in the form of a table version. A bound is in the member of the union that Apache Hudi writes
for the column's type. From table version 9 on the row includes the type.

Source: docs/formats/metadata-table.md, "Statistics", "Bounds".
"""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.kinds import is_bytes, is_text

__all__ = [
    "OLD_DECIMAL",
    "ColumnRange",
    "Plain",
    "RangesOfRows",
    "column_type",
    "has_order",
    "joined",
    "range_of_values",
    "stats_rows",
    "stats_schema",
    "unscaled_bytes",
    "values_of",
]


Plain: TypeAlias = bool | int | float | bytes | str
_DECIMAL_DIGITS = 40  # more than a decimal of 128 bits has
_SCHEMAS = 64  # cached column plans: those of the tables that a process writes to


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """A column in one file, or in a part of it. `values`: rows, nulls included. `stored_bytes`, `plain_bytes`: of its
    parts of the file, compressed and not; 0 if unknown.
    """

    name: str
    data_type: pa.DataType
    least: Plain | None
    greatest: Plain | None
    values: int
    nulls: int
    stored_bytes: int = 0
    plain_bytes: int = 0

    @property
    def is_known(self) -> bool:
        """Do the bounds include all values? True without values."""
        return self.least is not None or self.nulls == self.values


def joined(one: ColumnRange, other: ColumnRange) -> ColumnRange:
    """The range of both parts together."""
    least: Plain | None = None
    greatest: Plain | None = None
    kind = _common_type(one.data_type, other.data_type)
    last_type = other.data_type
    if one.nulls == one.values:
        least, greatest = other.least, other.greatest
    elif other.nulls == other.values:
        least, greatest, last_type = one.least, one.greatest, one.data_type
    elif kind is not None and one.is_known and other.is_known:
        least, greatest = min(one.least, other.least), max(one.greatest, other.greatest)  # type: ignore[type-var]
    return replace(
        one,
        data_type=kind or last_type,
        least=least,
        greatest=greatest,
        values=one.values + other.values,
        nulls=one.nulls + other.nulls,
        stored_bytes=one.stored_bytes + other.stored_bytes,
        plain_bytes=one.plain_bytes + other.plain_bytes,
    )


def _common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that holds values of both; None when their bounds can't be compared."""
    if one == other:
        return one
    for is_kind in (pa.types.is_signed_integer, pa.types.is_floating):
        if is_kind(one) and is_kind(other):
            return one if one.bit_width > other.bit_width else other
    return None


def has_order(data_type: pa.DataType) -> bool:
    """Can values of this type have bounds? Types of foreign files (unsigned numbers, durations) have none.

    Text and bytes are ordered by their bytes.
    """
    return (
        is_text(data_type)
        or is_bytes(data_type)
        or pa.types.is_boolean(data_type)
        or pa.types.is_signed_integer(data_type)
        or pa.types.is_float32(data_type)
        or pa.types.is_float64(data_type)
        or pa.types.is_decimal128(data_type)
        or pa.types.is_date32(data_type)
        or pa.types.is_time(data_type)
        or pa.types.is_timestamp(data_type)
    )


def column_type(schema: pa.Schema, name: str) -> pa.DataType | None:
    """Type of a top-level column, or of the struct field with a dotted name; None when it is missing."""
    at = schema.get_field_index(name)
    first, *rest = (name,) if at >= 0 else name.split(".")
    at = schema.get_field_index(first)
    kind: pa.DataType | None = schema.field(at).type if at >= 0 else None
    for part in rest:
        if kind is None or not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return None
        kind = kind.field(part).type
    return kind


def values_of(rows: pa.Table, name: str) -> pa.ChunkedArray:
    """The values of a column, or of the field with a dotted name: null where an enclosing struct is null."""
    if rows.schema.get_field_index(name) >= 0:
        return rows.column(name)
    first, *rest = name.split(".")
    column = rows.column(first)
    chunks = [pc.struct_field(chunk, rest) for chunk in column.chunks]
    kind = column_type(rows.schema, name)
    assert kind is not None, name
    return pa.chunked_array(chunks, kind)


def range_of_values(name: str, values: pa.ChunkedArray) -> ColumnRange:
    """The range of all these values."""
    return _range_of(_Column.of(name, values.type), values)


class _Column(NamedTuple):
    """The input for a column's range, computed once for all rows of a schema."""

    name: str
    kind: pa.DataType  # of the values, decoded
    is_coded: bool
    is_ordered: bool
    is_floating: bool

    @classmethod
    def of(cls, name: str, stored: pa.DataType) -> _Column:
        kind = stored.value_type if pa.types.is_dictionary(stored) else stored
        return cls(name, kind, kind != stored, has_order(kind), pa.types.is_floating(kind))


@lru_cache(maxsize=_SCHEMAS)
def _columns_of(names: tuple[str, ...], schema: pa.Schema) -> Mapping[str, _Column]:
    """By name, the columns of these names in the schema."""
    kinds = {name: column_type(schema, name) for name in names}
    return {name: _Column.of(name, kind) for name, kind in kinds.items() if kind is not None}


@lru_cache(maxsize=_SCHEMAS)
def _ranges_without_rows(names: tuple[str, ...], schema: pa.Schema) -> Mapping[str, ColumnRange]:
    by_name = _columns_of(names, schema)
    return {name: ColumnRange(name, column.kind, None, None, 0, 0) for name, column in by_name.items()}


def _range_of(column: _Column, values: pa.ChunkedArray) -> ColumnRange:
    if column.is_coded:
        values = values.cast(column.kind)
    count, nulls = len(values), values.null_count
    least: Plain | None = None
    greatest: Plain | None = None
    if column.is_ordered and nulls != count and not (column.is_floating and pc.any(pc.is_nan(values)).as_py()):
        ends = pc.min_max(values)
        try:
            least, greatest = _plain(ends["min"], column.kind), _plain(ends["max"], column.kind)
        except UnicodeDecodeError:  # invalid text of a foreign file
            least = greatest = None
    return ColumnRange(column.name, column.kind, least, greatest, count, nulls)


def _plain(value: pa.Scalar, kind: pa.DataType) -> Plain | None:
    if pa.types.is_temporal(kind):
        number = value.value  # type: ignore[attr-defined]
        return None if number is None else int(number)
    if pa.types.is_decimal(kind):
        with decimal.localcontext(prec=_DECIMAL_DIGITS):
            return int(value.as_py().scaleb(kind.scale))
    plain: Plain = value.as_py()
    return plain


class RangesOfRows:
    """Ranges of the columns over all added rows.

    Args: names: may include dotted names of struct fields; schema: columns that have a range even without a row.
    """

    def __init__(self, names: Sequence[str], schema: pa.Schema | None = None) -> None:
        self._names = tuple(names)
        self._by_name = {} if schema is None else dict(_ranges_without_rows(self._names, schema))

    def add(self, rows: pa.Table, *, missing_as_null: bool = False) -> None:
        """Add these rows. Missing columns are skipped, or count as nulls."""
        columns = _columns_of(self._names, rows.schema)
        for name in self._names:
            before, column = self._by_name.get(name), columns.get(name)
            if column is not None:
                more = _range_of(column, values_of(rows, name))
                if before is not None and (before.values or before.data_type != more.data_type):
                    more = joined(before, more)
                self._by_name[name] = more
            elif missing_as_null and before is not None:
                self._by_name[name] = joined(
                    before, ColumnRange(name, before.data_type, None, None, len(rows), len(rows))
                )

    def ranges(self) -> tuple[ColumnRange, ...]:
        """The ranges of the columns that rows had, in the order of the names."""
        return tuple(self._by_name[name] for name in self._names if name in self._by_name)


OLD_DECIMAL = pa.decimal128(30, 15)  # of all decimals in statistics below table version 9
_UNSCALED_DIGITS = 60  # of an unscaled number with more decimal places
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
    """A decimal's unscaled number in two's complement, in as few bytes as possible."""
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def _old_form(bound: Plain, kind: pa.DataType) -> _Wrapped | None:
    """Below version 9, dates and decimals have separate members. None for unsupported types."""
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
    """From version 9 on: the physical values, decimals as unscaled numbers in as few bytes as possible."""
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
