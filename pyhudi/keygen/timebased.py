"""Partition paths from time: the TIMESTAMP generator's settings, and one partition part made with them.

A value becomes an instant (epoch milliseconds) by the timestamp type, the instant a text by the output format, the
text a path by URL encoding of the whole and the hive prefix once. Null is the number 1 in the type's unit (or the text
of the first millisecond), never the default partition. Without an output zone, numbers are shown in UTC (Hudi: the zone
of its Java process). Source: spec, files and records 4.5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError, KeyGenError
from pyhudi.keygen.base import read_field
from pyhudi.keygen.java_text import RAW_NUMBER_UNITS, epoch_number
from pyhudi.keygen.joda import finest_ms, format_instant, shows_zone, tokenize
from pyhudi.keygen.joda_parse import ParseError, parse_text
from pyhudi.keygen.partition_path import PathStyle, constant_path, place
from pyhudi.keygen.zones import UTC, SkippedTimeError, Zone, java_zone

__all__ = ["TimeSettings", "timestamp_part"]

# Milliseconds of one unit, as a fraction; results are cut towards zero.
_UNITS = {
    "NANOSECONDS": (1, 1_000_000),
    "MICROSECONDS": (1, 1000),
    "MILLISECONDS": (1, 1),
    "SECONDS": (1000, 1),
    "MINUTES": (60_000, 1),
    "HOURS": (3_600_000, 1),
    "DAYS": (86_400_000, 1),
}
_UNIT_OF_TYPE = {"UNIX_TIMESTAMP": "SECONDS", "EPOCHMILLISECONDS": "MILLISECONDS", "EPOCHMICROSECONDS": "MICROSECONDS"}
_TYPES = (*_UNIT_OF_TYPE, "SCALAR", "DATE_STRING", "MIXED")
_MAX_LONG = 2**63 - 1
_PREFIX = "hoodie.keygen.timebased."
_QUARTER_MS = 900_000


@dataclass(frozen=True, slots=True)
class TimeSettings:
    """Settings of the TIMESTAMP generator. `unit`: None for types that read text only."""

    timestamp_type: str
    unit: str | None
    input_formats: tuple[str, ...]
    input_zone: Zone | None
    output_format: str
    output_zone: Zone | None
    current_year: int

    @classmethod
    def parse(cls, settings: Mapping[str, str], *, current_year: int | None = None) -> TimeSettings:
        """Read settings without their prefix. Raises ConfigError for missing and unknown ones."""
        kind = _required(settings, "timestamp.type", "one of " + ", ".join(_TYPES))
        if kind not in _TYPES:
            raise ConfigError(
                f"{_PREFIX}timestamp.type is {kind!r}; expected one of {', '.join(_TYPES)} (in capitals)."
            )
        formats = _input_formats(settings)
        if kind in ("DATE_STRING", "MIXED") and not formats:
            raise ConfigError(f"{_PREFIX}input.dateformat is missing; timestamp type {kind} reads text with it.")
        output_format = settings.get("output.dateformat")
        if output_format is None:
            raise ConfigError(f"{_PREFIX}output.dateformat is missing; give a pattern such as yyyy/MM/dd.")
        for pattern in (*formats, output_format):
            tokenize(pattern)
        both = settings.get("timezone", "").strip()
        return cls(
            timestamp_type=kind,
            unit=_scalar_unit(settings) if kind == "SCALAR" else _UNIT_OF_TYPE.get(kind),
            input_formats=formats,
            input_zone=_zone(both or settings.get("input.timezone", "")),
            output_format=output_format,
            output_zone=_zone(both or settings.get("output.timezone", "")),
            current_year=current_year if current_year is not None else _year_now(),
        )

    def text_path(self, text: str) -> str:
        """Path text of an input text. Raises ParseError or SkippedTimeError."""
        millis, zone = parse_text(text, self.input_formats, self.input_zone, self.current_year)
        return format_instant(self.output_format, millis, self.output_zone or zone)

    def null_path(self) -> str:
        """Path text of null."""
        if self.unit is not None:
            return self.number_path(_to_millis(1, self.unit))
        zone = self.input_zone or self.output_zone or UTC
        return self.text_path(format_instant(self.input_formats[0], 1, zone))

    def number_path(self, millis: int) -> str:
        return format_instant(self.output_format, millis, self.output_zone or UTC)


def timestamp_part(
    batch: pa.RecordBatch, field: str, style: PathStyle, settings: TimeSettings, first_row: int = 0
) -> pa.Array:
    """Paths made of one time field. Raises KeyGenError, with the row, for values that give no time."""
    column = read_field(batch, field)
    if column is None or pa.types.is_null(column.type):
        return constant_path(_decorate(style, field, settings.null_path()), batch.num_rows)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if _is_text(column.type):
        return _from_text(column, field, style, settings, first_row)
    return _from_numbers(_millis(column, field, style, settings), field, style, settings, first_row)


def _from_text(column: pa.Array, field: str, style: PathStyle, settings: TimeSettings, first_row: int) -> pa.Array:
    null_path = _decorate(style, field, settings.null_path()) if column.null_count else ""
    encoded = column.cast(pa.string()).dictionary_encode()
    if not settings.input_formats and len(encoded.dictionary):
        raise KeyGenError(
            f"Partition field {field!r} is text, which timestamp type {settings.timestamp_type} reads only with "
            f"{_PREFIX}input.dateformat. Set it, or cast the column to a number."
        )
    paths = []
    for number, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            paths.append(_decorate(style, field, settings.text_path(text)))
        except (ParseError, SkippedTimeError) as error:
            row = first_row + pc.index(encoded.indices, pa.scalar(number, encoded.indices.type)).as_py()
            raise KeyGenError(
                f"Row {row} (counted from 0 in its partition): partition field {field!r} holds {text!r}: {error}. "
                f"Correct the value or add its format to {_PREFIX}input.dateformat."
            ) from error
    return place(encoded.indices, paths, null_path, field, first_row)


def _from_numbers(millis: pa.Array, field: str, style: PathStyle, settings: TimeSettings, first_row: int) -> pa.Array:
    null_path = _decorate(style, field, settings.null_path()) if millis.null_count else ""
    encoded = _shown_alike(millis, settings).dictionary_encode()
    paths = [_decorate(style, field, settings.number_path(value)) for value in encoded.dictionary.to_pylist()]
    return place(encoded.indices, paths, null_path, field, first_row)


def _shown_alike(millis: pa.Array, settings: TimeSettings) -> pa.Array:
    """The instants, each moved back to the first one that certainly prints the same, so that few are distinct."""
    unit = 1 if shows_zone(settings.output_format) else finest_ms(settings.output_format)
    zone = settings.output_zone or UTC
    if unit == 1 or not len(millis):
        return millis
    if zone.fixed_ms is None:
        # Clocks change at quarters of an hour, so inside one the local time runs evenly.
        unit = min(unit, _QUARTER_MS)
        bounds = pc.min_max(millis)
        if bounds["min"].as_py() is None or not 0 <= bounds["min"].as_py() <= bounds["max"].as_py() < 2**42:
            return millis  # before 1970 zones had odd offsets
    shift = zone.fixed_ms or 0
    values = np.asarray(millis.fill_null(0), dtype=np.int64)
    if len(values) and not -(2**62) < values.min() <= values.max() < 2**62:
        return millis
    floored = (values + shift) // unit * unit - shift
    return pa.array(floored, pa.int64(), mask=np.asarray(millis.is_null()) if millis.null_count else None)


def _millis(column: pa.Array, field: str, style: PathStyle, settings: TimeSettings) -> pa.Array:
    """Epoch milliseconds, int64, of a column of numbers, dates or timestamps."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        number = epoch_number(column)
        if style.consistent_timestamps and kind.tz is not None:
            return number if RAW_NUMBER_UNITS[kind.unit] == "ms" else pc.divide(number, 1000)
    elif pa.types.is_date(kind):
        number = column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
    elif pa.types.is_integer(kind):
        number = column.cast(pa.int64(), safe=False)
    elif pa.types.is_floating(kind):
        number = _java_long(column)
    elif pa.types.is_decimal(kind):
        number = pa.array([None if v is None else int(v) for v in column.to_pylist()], pa.int64())
    else:
        raise KeyGenError(
            f"Partition field {field!r} has type {kind}; the TIMESTAMP generator reads numbers, dates, timestamps and "
            f"text. Cast the column, or use it as a SIMPLE partition field."
        )
    if settings.unit is None:
        if number.null_count == len(number):
            return number
        raise KeyGenError(
            f"Partition field {field!r} has type {kind}, but timestamp type {settings.timestamp_type} reads text. Set "
            f"{_PREFIX}timestamp.type to UNIX_TIMESTAMP, EPOCHMILLISECONDS, EPOCHMICROSECONDS or SCALAR."
        )
    multiplier, divisor = _UNITS[settings.unit]
    if divisor > 1:
        return pc.divide(number, divisor)  # cuts towards zero, as Java's TimeUnit does
    # Java's TimeUnit stops at the largest long instead of running over.
    bound = _MAX_LONG // multiplier
    inside = pc.min_element_wise(pc.max_element_wise(number, -bound, skip_nulls=False), bound, skip_nulls=False)
    return pc.multiply(inside, multiplier)


def _java_long(column: pa.Array) -> pa.Array:
    """Java's `(long) value`: towards zero, not-a-number is 0, too large values stop at the bounds."""
    values = np.asarray(column.cast(pa.float64()).fill_null(0.0), dtype=np.float64)
    inside = np.clip(np.nan_to_num(np.trunc(values), nan=0.0, posinf=2.0**63, neginf=-(2.0**63)), -(2.0**63), 2.0**63)
    whole = np.where(inside >= 2.0**63, np.int64(_MAX_LONG), np.where(inside >= 2.0**63, 0.0, inside).astype(np.int64))
    return pa.array(whole, pa.int64(), mask=np.asarray(column.is_null()) if column.null_count else None)


def _decorate(style: PathStyle, field: str, text: str) -> str:
    return PathStyle(style.hive_style, style.url_encode).decorate(field, text)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view"


def _to_millis(number: int, unit: str) -> int:
    multiplier, divisor = _UNITS[unit]
    return number * multiplier // divisor


def _required(settings: Mapping[str, str], name: str, expected: str) -> str:
    value = settings.get(name, "").strip()
    if not value:
        raise ConfigError(f"{_PREFIX}{name} is missing; expected {expected}.")
    return value


def _input_formats(settings: Mapping[str, str]) -> tuple[str, ...]:
    delimiter = settings.get("input.dateformat.list.delimiter.regex") or ","
    try:
        pieces = re.split(delimiter.strip() or ",", settings.get("input.dateformat", ""))
    except re.error as error:
        raise ConfigError(
            f"{_PREFIX}input.dateformat.list.delimiter.regex {delimiter!r} is not a regular expression: {error}."
        ) from error
    return tuple(piece.strip() for piece in pieces if piece and piece.strip())


def _scalar_unit(settings: Mapping[str, str]) -> str:
    unit = settings.get("timestamp.scalar.time.unit", "SECONDS").upper()
    if unit not in _UNITS:
        raise ConfigError(
            f"{_PREFIX}timestamp.scalar.time.unit is {unit!r}; expected one of {', '.join(_UNITS)} (any case)."
        )
    return unit


def _zone(name: str) -> Zone | None:
    return java_zone(name.strip()) if name.strip() else None


def _year_now() -> int:
    from pyhudi.storage.clock import SystemClock

    return 1970 + int(SystemClock().now_ms() / 31_556_952_000)
