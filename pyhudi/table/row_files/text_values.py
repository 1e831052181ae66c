"""Values that are text in a file: every field of CSV, and JSON values of types that JSON lacks.

These rules parse the command line's JSON and CSV and the CSV of `export`: decimals, dates and times are
text, binary is hexadecimal digits, and in CSV nested values are JSON. A timestamp with a zone is a moment; one without
is a date and a time of day. Each fits only columns of its own kind.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import time
from decimal import Decimal, InvalidOperation
from typing import TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pyhudi.arrow.kinds import is_bytes, is_list, is_text
from pyhudi.errors import SchemaMismatch
from pyhudi.redaction import brief
from pyhudi.table.column_values import NO_FIT, column_of
from pyhudi.table.row_files.changed_numbers import changed_text

__all__ = ["NamedFloat", "column_of_json", "column_of_texts", "has_decimals"]

Decoder: TypeAlias = Callable[[object], object]
_UNCONVERTED: Mapping[pa.DataType | None, set[type]] = {  # without a step of Python for each value
    None: {bool, int, float, str}, pa.int32(): {int}, pa.int64(): {int}, pa.float64(): {int, float},
}  # fmt: skip
_LARGEST: Mapping[pa.DataType, float] = {pa.float16(): 65504.0, pa.float32(): float(np.finfo(np.float32).max)}
_NOT_FINITE = ("nan", "inf", "-inf")  # as --json and --csv print them


class NamedFloat(float):
    """A number that is a word in JSON: NaN, Infinity or -Infinity."""


def column_of_texts(name: str, texts: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Fields of CSV as a column. Empty text is null, except in columns of text.

    Raises: SchemaMismatch for a text that is not a value of the type.
    """
    if is_text(data_type):
        return texts.cast(data_type)
    if pt.is_null(data_type):
        return pa.nulls(len(texts))
    trimmed = pc.utf8_trim(texts, characters=" \t\r\n")
    texts = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)
    if pt.is_nested(data_type):
        return column_of_json(name, [_loaded(name, text) for text in texts.to_pylist()], data_type)
    if _decoder(data_type) is not None and not _is_cast(data_type):
        return column_of_json(name, texts.to_pylist(), data_type)
    return _cast(name, texts, data_type)


def column_of_json(name: str, values: Sequence[object], data_type: pa.DataType | None) -> pa.Array:
    """Values of JSON as a column, in which nested parts without a value are untyped nulls.

    Args:   data_type: of the table's column, None for a new column.
    Raises: SchemaMismatch for values that the column can't hold.
    """
    kinds = set(map(type, values)) - {type(None)}
    if data_type is not None and _is_cast(data_type) and kinds == {str}:
        return _cast(name, pa.array(values, pa.string()), data_type)
    decode = _floats if data_type is None else _decoder(data_type)
    if decode is None:
        return column_of(name, values, data_type, has_nulls_typed=False)
    if kinds <= _UNCONVERTED.get(data_type, set()):
        column = column_of(name, values, data_type, has_nulls_typed=False)
        if not pt.is_floating(column.type) or not np.isinf(column.to_numpy(zero_copy_only=False)).any():
            return column  # otherwise numbers beyond all floats may have become infinite
    try:
        decoded = [None if value is None else decode(value) for value in values]
    except (ValueError, TypeError, InvalidOperation) as error:
        raise _refused(name, data_type, error) from error
    return column_of(name, decoded, data_type, has_nulls_typed=False)


def has_decimals(data_type: pa.DataType) -> bool:
    """True if a type has decimals, at any depth, which have more digits than a float."""
    inner = [data_type.field(at).type for at in range(data_type.num_fields)] if pt.is_nested(data_type) else []
    return pt.is_decimal(data_type) or any(map(has_decimals, inner))


def _is_cast(data_type: pa.DataType) -> bool:
    """True if Arrow's cast from text parses the printed form; not for times of day and bytes."""
    return not (pt.is_nested(data_type) or pt.is_time(data_type) or is_bytes(data_type))


def _cast(name: str, texts: pa.Array, data_type: pa.DataType) -> pa.Array:
    try:
        values = texts.cast(data_type)
    except NO_FIT as error:
        raise _refused(name, data_type, error) from error
    changed = changed_text(texts, values)
    if changed is not None:
        raise _refused(name, data_type, f"{brief(changed)} would become another number")
    return values


def _refused(name: str, data_type: pa.DataType | None, reason: object) -> SchemaMismatch:
    return SchemaMismatch(
        f"Column {name!r} is of type {data_type} and can't hold the file's values: {reason}. Nothing was written."
    )


def _loaded(name: str, text: str | None) -> object:
    try:
        return None if text is None else json.loads(text, parse_float=Decimal, parse_constant=NamedFloat)
    except ValueError as error:
        raise SchemaMismatch(
            f"Column {name!r} is nested, so its fields are JSON; {brief(text)} is none: {error}. Nothing was written."
        ) from error


def _decoder(data_type: pa.DataType) -> Decoder | None:
    """A function that converts a JSON value that is not null to the type; None if no conversion is needed."""
    if pt.is_struct(data_type):
        return _struct_decoder(data_type)
    if pt.is_map(data_type):
        return _map_decoder(data_type)
    if is_list(data_type):
        item = _decoder(data_type.value_type) or _same
        return lambda value: [None if one is None else item(one) for one in _list(value)]
    if pt.is_floating(data_type):
        return _float_decoder(data_type)
    if pt.is_integer(data_type):
        return _integer
    if pt.is_decimal(data_type):
        return _decimal
    if pt.is_temporal(data_type):
        return lambda value: _moment(value, data_type)
    return _bytes if is_bytes(data_type) else None


def _struct_decoder(data_type: pa.DataType) -> Decoder:
    fields = {field.name: _decoder(field.type) for field in cast("pa.StructType", data_type).fields}

    def decode(value: object) -> object:
        if not isinstance(value, Mapping):
            raise ValueError(f"an object is expected, found {brief(value)}")
        decoders = ((name, one, fields.get(name)) for name, one in value.items())
        return {name: one if one is None or field is None else field(one) for name, one, field in decoders}

    return decode


def _map_decoder(data_type: pa.DataType) -> Decoder:
    """A decoder of maps: of objects, whose keys are texts, or of lists of pairs, as --json prints maps."""
    map_type = cast("pa.MapType", data_type)
    key, item = _decoder(map_type.key_type) or _same, _decoder(map_type.item_type) or _same

    def decode(value: object) -> object:
        is_object = isinstance(value, Mapping)
        pairs = list(cast("Mapping[object, object]", value).items()) if is_object else _list(value)
        if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
            raise ValueError(f"an object or a list of pairs is expected, found {brief(value)}")
        read = int if is_object and pt.is_integer(map_type.key_type) else key
        return [(read(a), None if b is None else item(b)) for a, b in cast("list[tuple[str, object]]", pairs)]

    return decode


def _same(value: object) -> object:
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"an array is expected, found {brief(value)}")
    return list(value)


def _float_decoder(data_type: pa.DataType) -> Decoder:
    largest = _LARGEST.get(data_type, math.inf)

    def decode(value: object) -> object:
        if isinstance(value, bool):
            raise ValueError(f"a number is expected, found {brief(value)}")
        if isinstance(value, NamedFloat) or (isinstance(value, str) and value.lower() in _NOT_FINITE):
            return float(value)
        if isinstance(value, float | Decimal):
            return _finite(value, largest)
        return value

    return decode


def _finite(value: float | Decimal, largest: float) -> float:
    """The number as a float. Raises ValueError for one beyond all floats, which would become infinite."""
    number = float(value)
    if abs(number) > largest or (math.isinf(number) and not isinstance(value, NamedFloat)):
        raise ValueError(f"{value if isinstance(value, Decimal) else 'a number'} is beyond all numbers of the type")
    return number


def _integer(value: object) -> object:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def _decimal(value: object) -> object:
    if isinstance(value, float):
        return Decimal(repr(value))
    return value if isinstance(value, bool | Decimal) else Decimal(cast("str", value))


def _moment(value: object, data_type: pa.DataType) -> object:
    """A date, time or timestamp from its text. Numbers are refused: their unit may be days, seconds or less."""
    if not isinstance(value, str):
        raise ValueError(f"a text such as 2024-01-31 or 2024-01-31T12:00:00Z is expected, found {brief(value)}")
    if pt.is_time(data_type):
        return time.fromisoformat(value)
    return pa.scalar(value, pa.string()).cast(data_type)


def _bytes(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError(f"hexadecimal digits are expected, found {brief(value)}")
    return bytes.fromhex(value)


def _floats(value: object) -> object:
    """The value of an untyped column with decimals as floats, at any depth."""
    if isinstance(value, float | Decimal):
        return _finite(value, math.inf)
    if isinstance(value, Mapping):
        return {name: _floats(one) for name, one in value.items()}
    return [_floats(one) for one in value] if isinstance(value, list) else value
