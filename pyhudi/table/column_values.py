"""Python's values as columns: lists of dicts, dicts of lists, single columns.

If a column can't hold one of the values, the error names it and a way out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, time
from decimal import Decimal
from typing import cast

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.arrow.kinds import is_list
from pyhudi.errors import SchemaMismatch
from pyhudi.redaction import brief, is_text
from pyhudi.schema.casts import can_cast
from pyhudi.schema.evolution import wider_decimal
from pyhudi.schema.value_types import named_type, typed_nulls

__all__ = ["NO_FIT", "column_of", "from_columns", "from_dicts", "type_in"]


NO_FIT = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError)
_WRITTEN = {pa.int64(): "int64()", pa.float32(): "float32()", pa.float64(): "float64()", pa.string(): "string()"}


def column_of(
    name: object, values: Sequence[object], data_type: pa.DataType | None, *, has_nulls_typed: bool = True
) -> pa.Array:
    """Python values as a column. Structs have the fields that one of the values names.

    Args:   data_type: of the table's column, None for a new column. has_nulls_typed: parts without a value have the
            table's type; with False they are untyped nulls, because other values of the column follow.
    Raises: SchemaMismatch for values that the column can't hold.
    """
    if not isinstance(name, str):
        raise SchemaMismatch(f"A row has the key {brief(name)}, which is not text: columns are named by text.")
    try:
        kind = None if data_type is None else named_type(data_type, values)
        if has_nulls_typed and kind is not None and data_type is not None:
            kind = typed_nulls(kind, data_type)
        column = pa.array(values, kind)
    except UnicodeError:
        raise
    except (*NO_FIT, TypeError, ValueError) as error:
        bad = next((value for value in values if not _fits(value, data_type)), None)
        raise _refused(name, bad, data_type, error) from error
    cut = None if data_type is None else next((v for v in values if _loses_digits(v, data_type)), None)
    if cut is not None and data_type is not None:
        lost = "its time of day" if isinstance(cut, datetime) and pt.is_date(data_type) else "digits behind the point"
        raise _refused(name, cut, data_type, f"{lost} would be lost")
    turned = None if data_type is None else next((v for v in values if _loses_zone(v, data_type)), None)
    if turned is not None:
        raise _refused(name, turned, data_type, "it is a moment, and the column has local times without a zone")
    return column


def _fits(value: object, data_type: pa.DataType | None) -> bool:
    try:
        pa.array([value], data_type)
    except (*NO_FIT, TypeError, ValueError):
        return False
    return True


def _loses_digits(value: object, data_type: pa.DataType) -> bool:
    """True if Arrow would cut the value: a fraction of an integer, the time of a date, a time finer than the column."""
    if isinstance(value, float):
        return pt.is_integer(data_type) and not value.is_integer()
    if isinstance(value, Decimal):
        return pt.is_integer(data_type) and value != value.to_integral_value()
    if isinstance(value, datetime) and pt.is_date(data_type):
        return value.timetz() != time(tzinfo=value.tzinfo)
    if pt.is_timestamp(data_type) and data_type.unit != "ns" and value is not None:
        below_us = bool(getattr(value, "nanosecond", 0))  # of pandas' Timestamp
        return below_us or (data_type.unit == "ms" and bool(getattr(value, "microsecond", 0) % 1000))
    if pt.is_struct(data_type) and isinstance(value, Mapping):
        return any(_loses_digits(value.get(field.name), field.type) for field in data_type.fields)
    if pt.is_map(data_type) and isinstance(value, Mapping | list | tuple):
        pairs = value.items() if isinstance(value, Mapping) else value
        return any(
            _loses_digits(item, data_type.item_type) for _, item in cast("Iterable[tuple[object, object]]", pairs)
        )
    if is_list(data_type) and isinstance(value, list | tuple):
        return any(_loses_digits(inner, data_type.value_type) for inner in value)
    return False


def _loses_zone(value: object, data_type: pa.DataType) -> bool:
    """True for a moment in a column of local times: Arrow would store the local time of UTC."""
    if not pt.is_timestamp(data_type) or data_type.tz is not None:
        return False
    return isinstance(value, datetime) and value.tzinfo is not None


def _refused(name: str, value: object, data_type: pa.DataType | None, reason: object) -> SchemaMismatch:
    example = "" if value is None else f" {brief(value)} (of type {type(value).__name__})"
    if data_type is None:
        problem = "has a value that no column can hold:" if value is not None else "has values of several types"
        return SchemaMismatch(
            f"Column {name!r} {problem}{example}: {reason}. Give its values one type that Arrow knows. "
            "Nothing was written."
        )
    wider = _wider(data_type, value)
    alternative = (
        "" if wider is None else f", or let the column hold them: table.alter(ChangeType({name!r}, pa.{wider}))"
    )
    return SchemaMismatch(
        f"Column {name!r} is of type {data_type} and can't hold{example or ' these values'}: {reason}. Convert the "
        f"values{alternative}. Nothing was written."
    )


def _wider(data_type: pa.DataType, value: object) -> str | None:
    """The text of the type that holds the column's values and this one; None if there is none."""
    if not isinstance(value, int | float | Decimal | str):
        return None
    try:
        value_type = pa.scalar(value).type
    except (*NO_FIT, TypeError, ValueError):
        return None
    if pt.is_decimal(data_type) and pt.is_decimal(value_type):
        wider = wider_decimal(data_type, value_type)
        return None if wider is None else str(wider)
    return _WRITTEN.get(value_type) if value_type != data_type and can_cast(data_type, value_type) else None


def from_columns(columns: Mapping[object, object], schema: pa.Schema | None) -> pa.Table:
    """A table of columns by name, with the types of the schema for the columns that it has."""
    if not columns and schema is not None:
        return schema.empty_table()
    arrays: dict[str, pa.Array | pa.ChunkedArray] = {}
    for name, values in columns.items():
        if isinstance(values, pa.Array | pa.ChunkedArray) and isinstance(name, str):
            arrays[name] = values
            continue
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise SchemaMismatch(
                f"The data is a dict, and {brief(name)} is of type {type(values).__name__}: a dict of columns has a "
                "list of values for each name. One row is [{...}]. Nothing was written."
            )
        arrays[cast("str", name)] = column_of(name, list(values), type_in(schema, name))
    sizes = {name: len(values) for name, values in arrays.items()}
    if len(set(sizes.values())) > 1:
        raise SchemaMismatch(f"The columns of the data have different numbers of values: {sizes}. Nothing was written.")
    return pa.table(arrays)


def type_in(schema: pa.Schema | None, name: object) -> pa.DataType | None:
    """The type of the table's column of this name; None if it has none."""
    has_column = schema is not None and isinstance(name, str) and is_text(name) and schema.get_field_index(name) >= 0
    return schema.field(cast("str", name)).type if schema is not None and has_column else None


def from_dicts(rows: Sequence[Mapping[str, object]], schema: pa.Schema | None) -> pa.Table:
    """Columns in the order of their first appearance, with the table's types for the columns that it has."""
    if not rows and schema is not None:
        return schema.empty_table()
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.Table.from_arrays(
        [column_of(name, [row.get(name) for row in rows], type_in(schema, name)) for name in names], names=names
    )
