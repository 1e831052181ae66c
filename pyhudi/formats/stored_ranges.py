"""Ranges of columns as the metadata table stores them: the rows of `ColumnStatsMetadata`.

A `StoredRange` is such a row without its file: plain values, so that tasks report them in few bytes (`ranges_to_bytes`)
and the planner makes the rows of all files of a write in one step (`rows_of_files`). A bound is in the member of the
union that Apache Hudi writes for the column's type. From table version 9 on the row includes the type.

    tasks      ranges of a file's columns → stored_ranges → bytes
    planner    bytes → StoredRange → rows of files; joined_range → rows of whole partitions

Source: docs/formats/metadata-table.md, "Statistics", "Bounds".
"""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple, TypeAlias, cast

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.kinds import is_bytes, is_text
from pyhudi.formats.column_stats import ColumnRange, Plain
from pyhudi.model.table_format import TableFormat

__all__ = [
    "OLD_DECIMAL",
    "StoredRange",
    "joined_range",
    "ranges_from_bytes",
    "ranges_of_rows",
    "ranges_to_bytes",
    "rows_of_files",
    "stats_rows",
    "stats_schema",
    "stored_ranges",
    "unscaled_bytes",
]

OLD_DECIMAL = pa.decimal128(30, 15)  # of all decimals in statistics below table version 9
_UNSCALED_DIGITS = 60  # of an unscaled number with more decimal places
_NULL_TYPE = 1
_TIMES = {"ms": 13, "us": 14}
_TIMESTAMPS = {"ms": 15, "us": 16, "ns": 17}
_LOCAL_TIMESTAMPS = {"ms": 18, "us": 19, "ns": 20}
_BOOLEAN, _INT, _LONG, _FLOAT, _DOUBLE, _BYTES, _TEXT, _DATE, _DECIMAL = range(9)

_DECIMAL_TYPE = 10  # ordinal
_SCHEMAS = 64
_FLOATS = (_FLOAT, _DOUBLE)
_Type: TypeAlias = tuple[int, str | None]  # ordinal and additional info of a value type


class StoredRange(NamedTuple):
    """A column in one file. `member`: of the union that holds the bounds, None without bounds; a decimal in the form of
    table versions below 9 is text. `ordinal`, `info`: the value's type, from version 9 on.
    """

    column: str
    member: int | None
    least: Plain | None
    greatest: Plain | None
    values: int
    nulls: int
    stored_bytes: int
    plain_bytes: int
    ordinal: int = _NULL_TYPE
    info: str | None = None

    @property
    def is_known(self) -> bool:
        """True if the bounds include all values. Apache Hudi writes 0.0 and 0.0 for a column with NaN."""
        return self.member is not None and not (self.member in _FLOATS and self.least == self.greatest == 0.0)


def ranges_to_bytes(ranges: Sequence[StoredRange]) -> bytes:
    """Return the ranges as bytes."""
    return msgspec.msgpack.encode(ranges)


def ranges_from_bytes(content: bytes) -> tuple[StoredRange, ...]:
    """Return the ranges in the bytes of `ranges_to_bytes`."""
    return tuple(StoredRange(*one) for one in msgspec.msgpack.decode(content))


def stored_ranges(table_version: int, ranges: Iterable[ColumnRange]) -> tuple[StoredRange, ...]:
    """Return the ranges in the form of a table version."""
    converted = []
    for one in ranges:
        member, (ordinal, info) = _form(one.data_type, table_version)
        least, greatest = one.least, one.greatest
        if least is None or greatest is None:
            member = None
        elif member is not None and pa.types.is_decimal(one.data_type):
            least, greatest = (_decimal(bound, one.data_type.scale, member) for bound in (least, greatest))
        if member is None or least is None or greatest is None:
            member = least = greatest = None
        if not one.values:
            ordinal, info = _NULL_TYPE, None
        converted.append(
            StoredRange(
                one.name,
                member,
                least,
                greatest,
                one.values,
                one.nulls,
                one.stored_bytes,
                one.plain_bytes,
                ordinal,
                info,
            )
        )
    return tuple(converted)


def joined_range(one: StoredRange, other: StoredRange) -> StoredRange | None:
    """Return the range of both parts together, from table version 9 on; None if they differ in form or type."""
    if one.member is not None and other.member is not None and one.member != other.member:
        return None
    typed, untyped = (one, other) if one.ordinal != _NULL_TYPE else (other, one)
    if untyped.ordinal != _NULL_TYPE and (one.ordinal, one.info) != (other.ordinal, other.info):
        return None
    parts = [part for part in (one, other) if part.nulls < part.values]
    member: int | None = None
    least: Plain | None = None
    greatest: Plain | None = None
    if parts and all(part.is_known for part in parts):
        order = _to_unscaled if typed.ordinal == _DECIMAL_TYPE else None
        member = parts[0].member
        least = min((cast("Plain", part.least) for part in parts), key=order)  # type: ignore[type-var]
        greatest = max((cast("Plain", part.greatest) for part in parts), key=order)  # type: ignore[type-var]
    return StoredRange(
        one.column,
        member,
        least,
        greatest,
        one.values + other.values,
        one.nulls + other.nulls,
        one.stored_bytes + other.stored_bytes,
        one.plain_bytes + other.plain_bytes,
        typed.ordinal,
        typed.info,
    )


def _to_unscaled(bound: Plain) -> int:
    return int.from_bytes(cast("bytes", bound), "big", signed=True)


def stats_rows(table_version: int, file_name: str, ranges: Iterable[ColumnRange]) -> pa.Table:
    """Return a row for each range of one file. `file_name`: without folders."""
    return rows_of_files(table_version, [(file_name, stored_ranges(table_version, ranges))])


def rows_of_files(
    table_version: int, files: Iterable[tuple[str, Sequence[StoredRange]]], *, tight: bool = False
) -> pa.Table:
    """Return a row for each range of each file, in the columns of `stats_schema`.

    Args: files: their names without folders, and their ranges; tight: `isTightBound` of the rows.
    """
    schema = stats_schema(table_version)
    names, rows = list[str](), list[StoredRange]()
    for name, ranges in files:
        names += [name] * len(ranges)
        rows += ranges
    count = len(rows)
    by_field: Sequence[Sequence[object]] = tuple(zip(*rows, strict=True)) or ((),) * len(StoredRange._fields)
    columns_, members, least, greatest, values, nulls, stored_bytes, plain, ordinals, infos = by_field
    numbers = cast("Sequence[int | None]", members)
    union = schema.field("minValue").type
    is_deleted = pa.repeat(pa.scalar(False), count)
    columns: list[pa.Array] = [
        pa.array(names, pa.string()),
        pa.array(columns_, pa.string()),
        _in_union(union, numbers, least),
        _in_union(union, numbers, greatest),
        *(pa.array(counts, pa.int64()) for counts in (values, nulls, stored_bytes, plain)),
        is_deleted,
    ]
    if TableFormat(table_version).has_tight_bounds:
        columns.append(pa.repeat(pa.scalar(value=True), count) if tight else is_deleted)
    if TableFormat(table_version).has_value_types:
        kind = schema.field("valueType").type
        types = [pa.array(ordinals, pa.int32()), pa.array(infos, pa.string())]
        columns.append(pa.StructArray.from_arrays(types, fields=[kind.field(0), kind.field(1)]))
    return pa.Table.from_arrays(columns, schema=schema)


def ranges_of_rows(rows: pa.Table) -> Iterator[tuple[str, StoredRange]]:
    """Yield the name of the file, and range, of each row, in the columns of `stats_schema` from table version 9 on."""
    names = ("fileName", "columnName", "valueCount", "nullCount", "totalSize", "totalUncompressedSize")
    files, columns, *counts = (rows.column(name).to_pylist() for name in names)
    kinds = rows.column("valueType").combine_chunks()
    types = (pc.struct_field(kinds, name).to_pylist() for name in ("typeOrdinal", "additionalInfo"))
    bounds: list[list[Plain | None]] = []
    members: list[int | None] = [None] * rows.num_rows
    for name in ("minValue", "maxValue"):
        union = rows.column(name).combine_chunks()
        values: list[Plain | None] = [None] * rows.num_rows
        for number in range(_DECIMAL):
            own = pc.struct_field(union, [f"member{number}", "value"])
            if own.null_count < len(own):
                for row, value in enumerate(own.to_pylist()):
                    if value is not None:
                        values[row], members[row] = cast("Plain", value), number
        bounds.append(values)
    for file, *one in zip(files, columns, members, *bounds, *counts, *types, strict=True):
        yield file, StoredRange(*one)


def _in_union(union: pa.DataType, numbers: Sequence[int | None], values: Sequence[object]) -> pa.Array:
    """Return bounds in the members with these numbers; null without a number."""
    members: list[pa.Array] = []
    used = set(numbers)
    for number in range(union.num_fields):
        kind = union.field(number).type
        if number not in used:
            members.append(pa.nulls(len(values), kind))
            continue
        own = [value if at == number else None for at, value in zip(numbers, values, strict=True)]
        if number == _DECIMAL:
            own = [None if text is None else decimal.Decimal(cast("str", text)) for text in own]
        bounds = pa.array(own, kind.field(0).type)
        members.append(pa.StructArray.from_arrays([bounds], fields=[kind.field(0)], mask=bounds.is_null()))
    fields = [union.field(number) for number in range(union.num_fields)]
    return pa.StructArray.from_arrays(members, fields=fields, mask=pa.array([n is None for n in numbers], pa.bool_()))


@cache
def stats_schema(table_version: int) -> pa.Schema:
    """Return the columns of these rows: the fields of `ColumnStatsMetadata` in the metadata table's schema."""
    table_format = TableFormat(table_version)
    wrapped: list[pa.DataType] = [
        pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.binary(), pa.string(), pa.int32(),
        OLD_DECIMAL, pa.time64("us"), pa.int64(), *([pa.int32()] if table_format.has_tight_bounds else []),
    ]  # fmt: skip
    members = [
        pa.field(f"member{number}", pa.struct([pa.field("value", kind, nullable=False)]))
        for number, kind in enumerate(wrapped)
    ]
    if table_format.has_value_types:
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
    if table_format.has_tight_bounds:
        fields.append(pa.field("isTightBound", pa.bool_(), nullable=False))
    if table_format.has_value_types:
        kind = [pa.field("typeOrdinal", pa.int32(), nullable=False), pa.field("additionalInfo", pa.string())]
        fields.append(pa.field("valueType", pa.struct(kind)))
    return pa.schema(fields)


def unscaled_bytes(number: int) -> bytes:
    """Return a decimal's unscaled number in two's complement, in as few bytes as possible."""
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def _decimal(bound: Plain, scale: int, member: int) -> Plain | None:
    """Return a decimal's unscaled number as stored; None if it does not fit."""
    assert isinstance(bound, int)
    if member == _BYTES:
        return unscaled_bytes(bound)
    with decimal.localcontext(prec=_UNSCALED_DIGITS):
        number = decimal.Decimal(bound).scaleb(-scale)
        fits = scale <= OLD_DECIMAL.scale and abs(number).adjusted() < OLD_DECIMAL.precision - OLD_DECIMAL.scale
        return str(number) if fits else None


@lru_cache(maxsize=_SCHEMAS)
def _form(kind: pa.DataType, table_version: int) -> tuple[int | None, _Type]:
    """Return the member of the union for bounds of this type, None for unsupported types; and the value type.

    From version 9 on there are the physical values, decimals as unscaled numbers in as few bytes as possible. Below it,
    dates and decimals have separate members.
    """
    is_new = TableFormat(table_version).has_value_types
    info = f"{kind.precision},{kind.scale}" if pa.types.is_decimal(kind) else None
    value_type = (_DECIMAL_TYPE if info else _ordinal(kind), info)
    if info:
        return _BYTES if is_new else _DECIMAL, value_type
    if pa.types.is_date32(kind):
        return _INT if is_new else _DATE, value_type
    if pa.types.is_timestamp(kind) and not is_new and kind.unit not in ("ms", "us"):
        return None, value_type
    return _plain_member(kind), value_type


def _plain_member(kind: pa.DataType) -> int | None:
    if pa.types.is_boolean(kind):
        return _BOOLEAN
    if pa.types.is_signed_integer(kind):
        return _LONG if kind.bit_width == 64 else _INT
    if pa.types.is_floating(kind):
        return _DOUBLE if kind.bit_width == 64 else _FLOAT
    if is_bytes(kind):
        return _BYTES
    if is_text(kind):
        return _TEXT
    if pa.types.is_time32(kind):
        return _INT
    return _LONG if pa.types.is_timestamp(kind) or pa.types.is_time64(kind) else None


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
