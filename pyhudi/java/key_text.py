"""Text of a column as Hudi's record keys and partition paths spell it: Java's `toString` of each value.

Source: docs/formats/keys.md, "Text of values". One answer everywhere: the one of Hudi's Avro path (upsert, insert),
also where its bulk-insert row writer spells the same value otherwise (timestamps, binary).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import KeyGenError
from pyhudi.java.floats import float_text
from pyhudi.java.nested_text import nested_texts

__all__ = ["RAW_NUMBER_UNITS", "epoch_number", "text_of", "via_distinct"]

# Avro has timestamp-millis and timestamp-micros only, so finer values are cut and seconds become milliseconds.
RAW_NUMBER_UNITS = {"s": "ms", "ms": "ms", "us": "us", "ns": "us"}

_MILLIS_PER_DAY = 86_400_000
_FIRST_GREGORIAN_MS = -12_219_292_800_000  # 1582-10-15; java.sql.Timestamp prints Julian dates before
_YEAR_10000_MS = 253_402_300_800_000
_YEAR_0_DAY, _YEAR_10000_DAY = -719_528, 2_932_897
_DAYS_PER_ERA = 146_097  # 400 years
_EPOCH_SHIFT = 719_468  # days from 0000-03-01 to 1970-01-01
_JULIAN_EPOCH_SHIFT = 719_470


def text_of(column: pa.Array, *, consistent_timestamps: bool = False, field: str = "") -> pa.Array:
    """Return a string array with the Java text of every value; null stays null.

    Args:    consistent_timestamps: spell timestamps with zone as `java.sql.Timestamp` does (in UTC), not as numbers;
             field: name for messages.
    Raises:  KeyGenError for types that have no defined text.
    """
    kind = column.type
    types = pa.types
    if types.is_string(kind):
        return column
    if isinstance(column, pa.DictionaryArray):
        texts = text_of(column.dictionary, consistent_timestamps=consistent_timestamps, field=field)
        return texts.take(column.indices)
    if (
        types.is_large_string(kind)
        or _is_view(kind, "string_view")
        or types.is_integer(kind)
        or types.is_boolean(kind)
        or types.is_null(kind)
        or types.is_decimal(kind)
    ):
        return column.cast(pa.string())
    if types.is_floating(kind):
        return float_text(column)
    if types.is_date(kind):
        return _date_text(column.cast(pa.date32()))
    if types.is_timestamp(kind):
        if consistent_timestamps and kind.tz is not None:
            return _sql_timestamp_text(column)
        return epoch_number(column).cast(pa.string())
    if (
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or _is_view(kind, "binary_view")
    ):
        return via_distinct(column.cast(pa.large_binary()), lambda values: [value.hex() for value in values])
    if types.is_struct(kind) or types.is_map(kind) or types.is_list(kind) or types.is_large_list(kind):
        return pa.array(nested_texts(column, field), pa.string())
    raise KeyGenError(
        f"Field {field!r} has type {kind}, which has no text in Hudi's keys. "
        f"Use a string, number, boolean, date, decimal or timestamp column, or cast it to string first."
    )


def epoch_number(column: pa.Array) -> pa.Array:
    """Return a timestamp column as the int64 numbers that Avro stores: microseconds or milliseconds."""
    kind = column.type
    unit = RAW_NUMBER_UNITS[kind.unit]
    return column.cast(pa.timestamp(unit, kind.tz), safe=False).cast(pa.int64())


def via_distinct(column: pa.Array, convert: Callable[[Sequence[Any]], Sequence[str | None]]) -> pa.Array:
    """Return a string array made by converting each distinct value once, in Python; null stays null."""
    encoded = column.dictionary_encode()
    texts = pa.array(convert(encoded.dictionary.to_pylist()), pa.string())
    return texts.take(encoded.indices)


def _is_view(kind: pa.DataType, name: str) -> bool:
    return str(kind) == name


def _date_text(column: pa.Array) -> pa.Array:
    days = column.cast(pa.int32())
    bounds = pc.min_max(days)
    if bounds["min"].as_py() is None or (
        bounds["min"].as_py() >= _YEAR_0_DAY and bounds["max"].as_py() < _YEAR_10000_DAY
    ):
        return column.cast(pa.string())
    return via_distinct(days, lambda values: [_local_date(day) for day in values])


def _local_date(day: int) -> str:
    """java.time.LocalDate.toString: a sign for years of more than four digits."""
    year, month, of_month = _civil_from_days(day)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{of_month:02d}"


def _sql_timestamp_text(column: pa.Array) -> pa.Array:
    """java.sql.Timestamp.toString in UTC, of the value cut to milliseconds towards zero."""
    number = epoch_number(column)
    # Arrow's integer division cuts towards zero, as Java's does.
    millis = number if RAW_NUMBER_UNITS[column.type.unit] == "ms" else pc.divide(number, 1000)
    bounds = pc.min_max(millis)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is not None and (low < _FIRST_GREGORIAN_MS or high >= _YEAR_10000_MS):
        return via_distinct(millis, lambda values: [_sql_timestamp(value) for value in values])
    text = millis.cast(pa.timestamp("ms")).cast(pa.string())
    return pc.replace_substring_regex(text, r"(\.\d\d*?)0+$", r"\1")


def _sql_timestamp(millis: int) -> str:
    days, of_day = divmod(millis, _MILLIS_PER_DAY)
    year, month, day = _civil_from_days(days) if millis >= _FIRST_GREGORIAN_MS else _julian_from_days(days)
    seconds, fraction = divmod(of_day, 1000)
    digits = f"{fraction:03d}".rstrip("0") or "0"
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{year:04d}-{month:02d}-{day:02d} {clock}.{digits}"


def _civil_from_days(days: int) -> tuple[int, int, int]:
    """Return year, month and day of month, without bounds: Python's datetime ends at years 1 and 9999."""
    era, of_era = divmod(days + _EPOCH_SHIFT, _DAYS_PER_ERA)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    return _from_march(era * 400 + year, of_year)


def _julian_from_days(days: int) -> tuple[int, int, int]:
    """Return year, month and day in the Julian calendar, as Java's older date classes use before 1582-10-15."""
    era, of_era = divmod(days + _JULIAN_EPOCH_SHIFT, 1461)
    year = min(of_era // 365, 3)
    return _from_march(era * 4 + year, of_era - 365 * year)


def _from_march(year: int, of_year: int) -> tuple[int, int, int]:
    shifted = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year + (month <= 2), month, day
