"""Column statistics of one file: ranges of its columns.

A `ColumnRange` has the least and the greatest value of a column in one file, and counts its values and nulls. Bounds
are plain, so they are compared and joined without Arrow. Numbers, text and bytes stay as they are. Dates, times and
timestamps are whole numbers in the unit of their type, decimals are unscaled numbers. An unknown bound is None: for a
float column with NaN, and for a type without an order.

`stored_ranges.py` has the form in which the metadata table stores them.

Source: docs/formats/metadata-table.md, "Statistics", "Bounds".
"""

from __future__ import annotations

import decimal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.kinds import is_bytes, is_text

__all__ = [
    "ColumnRange",
    "Plain",
    "RangesOfRows",
    "column_type",
    "has_order",
    "joined",
    "range_of_values",
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
        """True if the bounds include all values, or there are no values."""
        return self.least is not None or self.nulls == self.values


def joined(one: ColumnRange, other: ColumnRange) -> ColumnRange:
    """Return the range of both parts together."""
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
    """Return the type that holds values of both; None if their bounds can't be compared."""
    if one == other:
        return one
    for is_kind in (pa.types.is_signed_integer, pa.types.is_floating):
        if is_kind(one) and is_kind(other):
            return one if one.bit_width > other.bit_width else other
    return None


def has_order(data_type: pa.DataType) -> bool:
    """True if values of this type can have bounds. Types of foreign files (unsigned numbers, durations) have none.

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
    """Return the type of a top-level column, or of the struct field with a dotted name; None when it is missing."""
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
    """Return the values of a column, or of the field with a dotted name: null where an enclosing struct is null."""
    if rows.schema.get_field_index(name) >= 0:
        return rows.column(name)
    first, *rest = name.split(".")
    column = rows.column(first)
    chunks = [pc.struct_field(chunk, rest) for chunk in column.chunks]
    kind = column_type(rows.schema, name)
    assert kind is not None, name
    return pa.chunked_array(chunks, kind)


def range_of_values(name: str, values: pa.ChunkedArray) -> ColumnRange:
    """Return the range of all these values."""
    return _range_of(_Column.of(name, values.type), values)


class _Column(NamedTuple):
    """The input for a column's range, computed once for all rows of a schema."""

    name: str
    kind: pa.DataType  # of the values, decoded
    is_coded: bool
    is_ordered: bool
    is_floating: bool

    @classmethod
    def of(cls, name: str, data_type: pa.DataType) -> _Column:
        kind = data_type.value_type if pa.types.is_dictionary(data_type) else data_type
        return cls(name, kind, kind != data_type, has_order(kind), pa.types.is_floating(kind))


@lru_cache(maxsize=_SCHEMAS)
def _columns_of(names: tuple[str, ...], schema: pa.Schema) -> Mapping[str, _Column]:
    """Return the columns of these names in the schema, by name."""
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
        """Return the ranges of the columns that rows had, in the order of the names."""
        return tuple(self._by_name[name] for name in self._names if name in self._by_name)
