"""ColumnRange: least and greatest value of a column in one file, and how many values and nulls it has.

Bounds are plain: numbers, text and bytes as they are, dates, times and timestamps as whole numbers in the unit of their
type, decimals as unscaled numbers. So they are compared and joined without Arrow. A bound that is not known is None: of
a float column with a not-a-number, of a type that has no order. Source: docs/formats/metadata-table.md, "Statistics".
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.kinds import is_bytes, is_text

__all__ = ["ColumnRange", "Plain", "RangesOfRows", "column_type", "has_order", "joined", "range_of_values", "values_of"]

Plain: TypeAlias = bool | int | float | bytes | str
_DIGITS = 40  # more than a decimal of 128 bits has


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """A column in one file, or in a part of it. `values`: rows, nulls among them. `stored_bytes`, `plain_bytes`: of its
    parts of the file, compressed and not; 0 where nobody knows."""

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
        """Do the bounds hold all values? They do where there is none."""
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
    """Can values of this type have bounds? Those that only foreign files hold (unsigned numbers, durations) have none.

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
    """Type of a top-level column, or of the struct field that a dotted name leads to; None when there is none."""
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
    """The values of a column, or of the field that a dotted name leads to: null where a struct on the way is null."""
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
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kind = values.type
    nothing = ColumnRange(name, kind, None, None, len(values), values.null_count)
    if not has_order(kind) or nothing.nulls == nothing.values:
        return nothing
    if pa.types.is_floating(kind) and pc.any(pc.is_nan(values)).as_py():
        return nothing
    ends = pc.min_max(values)
    try:
        return replace(nothing, least=_plain(ends["min"]), greatest=_plain(ends["max"]))
    except UnicodeDecodeError:  # text of a foreign file that is none
        return nothing


def _plain(value: pa.Scalar) -> Plain | None:
    kind = value.type
    if pa.types.is_temporal(kind):
        number = value.value  # type: ignore[attr-defined]
        return None if number is None else int(number)
    if pa.types.is_decimal(kind):
        with decimal.localcontext(prec=_DIGITS):
            return int(value.as_py().scaleb(kind.scale))
    found: Plain = value.as_py()
    return found


class RangesOfRows:
    """Ranges of the columns of all rows that pass by.

    Args: names: dotted names of struct fields among them; schema: columns that have a range even without a row.
    """

    def __init__(self, names: Sequence[str], schema: pa.Schema | None = None) -> None:
        self._names = tuple(names)
        self._found: dict[str, ColumnRange] = {}
        if schema is not None:
            self.add(schema.empty_table())

    def add(self, rows: pa.Table, *, missing_as_null: bool = False) -> None:
        """Take these rows in. Columns that they lack are passed over, or count as nulls."""
        for name in self._names:
            known = self._found.get(name)
            if column_type(rows.schema, name) is not None:
                more = range_of_values(name, values_of(rows, name))
                self._found[name] = more if known is None else joined(known, more)
            elif missing_as_null and known is not None:
                self._found[name] = joined(known, ColumnRange(name, known.data_type, None, None, len(rows), len(rows)))

    def ranges(self) -> tuple[ColumnRange, ...]:
        """Those of the columns that were there, in the order of the names."""
        return tuple(self._found[name] for name in self._names if name in self._found)
