"""Key generator TIMESTAMP: one key field as with SIMPLE, the partition path from one time field.

CUSTOM makes its time parts by the same functions. A value becomes an instant (epoch milliseconds) by the timestamp
type, the instant a text by the output format, the text a path by URL encoding of the whole and the hive prefix once.
Null is the number 1 in the type's unit (or the text of the first millisecond), never the default partition. Python code
runs only per distinct value, after numbers are truncated to the format's precision. Times outside the years 1 to 9999
are refused. Source: docs/formats/keys.md, "Times"; Hudi's page on key generation.

"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError, KeyGenError
from pyhudi.java.joda import FarYearError, finest_ms, format_instant, shows_zone, tokenize
from pyhudi.java.joda_columns import Longs, offsets_at, read_local_times
from pyhudi.java.joda_parse import ParseError, parse_text
from pyhudi.java.key_text import RAW_NUMBER_UNITS, epoch_number
from pyhudi.java.time_zones import FIRST_LOCAL_MS, LAST_LOCAL_MS, UTC, SkippedTimeError, Zone, java_zone
from pyhudi.keygen.base import BuiltInKey, read_field, top_level
from pyhudi.keygen.partition_path import PathStyle, constant_path, place
from pyhudi.keygen.record_keys import single_key
from pyhudi.keygen.settings import KeySettings
from pyhudi.keygen.simple import one_partition_field, one_record_field
from pyhudi.storage.clock import SystemClock

__all__ = ["TIMEBASED", "UNITS", "TimeSettings", "TimestampKey", "timestamp_part"]


TIMEBASED = "hoodie.keygen.timebased."

# Milliseconds of one unit, as a fraction; results are truncated towards zero.
UNITS = {
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
_MARK = "\x00"  # occurs in no date format
_MILLIS_PER_YEAR = 31_556_952_000


@dataclass(frozen=True, slots=True)
class TimeSettings:
    """The time options.

    Fields:  unit: None for types that read only text; input_zone, output_zone: None when not set; current_year:
             two-digit years are read as the nearest to thirty years before it, as Joda-Time does.
    """

    timestamp_type: str
    unit: str | None
    input_formats: tuple[str, ...]
    input_zone: Zone | None
    output_format: str
    output_zone: Zone | None
    current_year: int

    @classmethod
    def parse(cls, settings: Mapping[str, str], *, current_year: int | None = None) -> TimeSettings:
        """Read settings whose keys have no prefix. Raises ConfigError for missing, unknown and contradictory ones."""
        kind = settings.get("timestamp.type", "").strip()
        if kind not in _TYPES:
            state = f"is {kind!r}" if kind else "is missing"
            raise ConfigError(
                f"{TIMEBASED}timestamp.type {state}; expected one of {', '.join(_TYPES)} (in capitals). Hudi does not "
                f"store it with the table for CUSTOM, and before version 8, so every writer must give it."
            )
        formats = _input_formats(settings)
        if kind in ("DATE_STRING", "MIXED") and not formats:
            raise ConfigError(f"{TIMEBASED}input.dateformat is missing; timestamp type {kind} reads text with it.")
        output_format = settings.get("output.dateformat", "")
        if not output_format:
            raise ConfigError(f"{TIMEBASED}output.dateformat is missing; give a pattern such as yyyy/MM/dd.")
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

    @property
    def number_zone(self) -> Zone:
        """Zone in which numbers are formatted; UTC when none is set (Hudi: the zone of its Java process)."""
        return self.output_zone or UTC

    def text_path(self, text: str) -> str:
        """Return the path text of an input text. Raises ParseError, SkippedTimeError or FarYearError."""
        millis, zone = parse_text(text, self.input_formats, self.input_zone, self.current_year)
        return format_instant(self.output_format, millis, self.output_zone or zone)

    def null_path(self) -> str:
        """Return the path text of null: that of number 1, or of the first millisecond in the input format."""
        if self.unit is not None:
            multiplier, divisor = UNITS[self.unit]
            return format_instant(self.output_format, multiplier // divisor, self.number_zone)
        zone = self.input_zone or self.output_zone or UTC
        return self.text_path(format_instant(self.input_formats[0], 1, zone))


def _input_formats(settings: Mapping[str, str]) -> tuple[str, ...]:
    delimiter = settings.get("input.dateformat.list.delimiter.regex", "").strip() or ","
    try:
        # The expression may come from a table, so it goes to an engine whose time is linear in the text. The text is
        # marked and then split: Arrow's split by an expression never ends where that matches the empty text.
        text = pa.scalar(settings.get("input.dateformat", "").replace(_MARK, ""), pa.string())
        marked = pc.replace_substring_regex(text, pattern=delimiter, replacement=_MARK)
    except (pa.ArrowException, UnicodeEncodeError) as error:
        raise ConfigError(
            f"{TIMEBASED}input.dateformat.list.delimiter.regex {delimiter!r:.200} is not a regular expression that can "
            f"be run in linear time: {error!s:.200}. Use no lookaround, back reference or possessive repetition."
        ) from error
    return tuple(piece.strip() for piece in str(marked.as_py()).split(_MARK) if piece.strip())


def _scalar_unit(settings: Mapping[str, str]) -> str:
    unit = settings.get("timestamp.scalar.time.unit", "SECONDS").upper()
    if unit not in UNITS:
        raise ConfigError(
            f"{TIMEBASED}timestamp.scalar.time.unit is {unit!r}; expected one of {', '.join(UNITS)} (any case)."
        )
    return unit


def _zone(name: str) -> Zone | None:
    return java_zone(name.strip()) if name.strip() else None


def _year_now() -> int:
    return 1970 + SystemClock().now_ms() // _MILLIS_PER_YEAR


_MAX_LONG = 2**63 - 1
_TWO_DAYS_MS = 2 * 86_400_000  # more than any offset


def timestamp_part(
    batch: pa.RecordBatch, field: str, style: PathStyle, settings: TimeSettings, first_row: int = 0
) -> pa.Array:
    """Return paths from one time field. Raises KeyGenError, with the row, for values that are not times."""
    style = PathStyle(
        style.hive_style, style.url_encode, False, style.consistent_timestamps
    )  # slashes are the format's
    column = read_field(batch, field)
    if column is None or column.null_count == len(column):
        return constant_path(style.decorate(field, settings.null_path()), batch.num_rows)
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or str(column.type) == "string_view":
        return _from_text(column, field, style, settings, first_row)
    return _from_numbers(column, field, style, settings, first_row)


def _from_text(column: pa.Array, field: str, style: PathStyle, settings: TimeSettings, first_row: int) -> pa.Array:
    if settings.unit is not None:  # as in Hudi, which uses an input format only for the types that read text
        raise KeyGenError(
            f"Partition field {field!r} is text, but timestamp type {settings.timestamp_type} reads numbers, not "
            f"{TIMEBASED}input.dateformat. Cast the column to a number, or set {TIMEBASED}timestamp.type to "
            "DATE_STRING (or MIXED) and the format."
        )
    null_path = style.decorate(field, settings.null_path()) if column.null_count else ""
    encoded = column.cast(pa.string()).dictionary_encode()
    texts, indices = encoded.dictionary, encoded.indices
    pattern, unit_ms = settings.output_format, finest_ms(settings.output_format)
    local, is_time = read_local_times(texts, settings.input_formats[0], settings.input_zone, settings.output_zone)
    if shows_zone(pattern):
        is_time[:] = False
    # Texts parsed together share the paths of equal truncated times; the others get one path each.
    cut = pa.array(local[is_time] // unit_ms * unit_ms).dictionary_encode()
    shown = [format_instant(pattern, value, UTC) for value in cast("list[int]", cut.dictionary.to_pylist())]
    path_of_text = np.zeros(len(texts), np.int64)
    path_of_text[is_time] = np.asarray(cut.indices)
    for number in np.flatnonzero(~is_time).tolist():
        text = texts[number].as_py()
        path_of_text[number] = len(shown)
        try:
            shown.append(settings.text_path(text))
        except (ParseError, SkippedTimeError, FarYearError) as error:
            row = first_row + pc.index(indices, pa.scalar(number, indices.type)).as_py()
            raise KeyGenError(
                f"Row {row} (counted from 0 in its partition): partition field {field!r} holds {text!r}: {error}. "
                f"Correct the value or add its format to {TIMEBASED}input.dateformat."
            ) from error
    paths = [style.decorate(field, text) for text in shown]
    return place(pa.array(path_of_text).take(indices), paths, null_path, field, first_row)


def _from_numbers(column: pa.Array, field: str, style: PathStyle, settings: TimeSettings, first_row: int) -> pa.Array:
    millis = _millis(column, field, style, settings)
    null_path = style.decorate(field, settings.null_path()) if millis.null_count else ""
    pattern, zone = settings.output_format, settings.number_zone
    local = _local_times(millis, zone)
    far = np.flatnonzero((local < FIRST_LOCAL_MS) | (local > LAST_LOCAL_MS))
    if len(far):
        row = int(far[0])
        raise KeyGenError(
            f"Row {first_row + row} (counted from 0 in its partition): partition field {field!r} holds "
            f"{column.slice(row, 1).cast(pa.string())[0]}, which timestamp type {settings.timestamp_type} takes for a "
            f"time outside the years 1 to 9999; format {pattern!r} can't print it. Correct the value, or set "
            f"{TIMEBASED}timestamp.type to the unit of the column."
        )
    if not shows_zone(pattern):
        # Local times print the same in any zone, so they can be truncated to the finest field of the format.
        unit_ms = finest_ms(pattern)
        nulls = np.asarray(millis.is_null()) if millis.null_count else None
        millis, zone = pa.array(local // unit_ms * unit_ms, pa.int64(), mask=nulls), UTC
    encoded = millis.dictionary_encode()
    distinct = cast("list[int]", encoded.dictionary.to_pylist())
    paths = [style.decorate(field, format_instant(pattern, value, zone)) for value in distinct]
    return place(encoded.indices, paths, null_path, field, first_row)


def _local_times(millis: pa.Array, zone: Zone) -> Longs:
    """Return local milliseconds: for a null those of 1970; out-of-range times stay outside the years 1 to 9999."""
    values = np.asarray(millis.fill_null(0), dtype=np.int64)
    inside = np.clip(values, FIRST_LOCAL_MS - _TWO_DAYS_MS, LAST_LOCAL_MS + _TWO_DAYS_MS)
    local: Longs = inside + offsets_at(inside, zone)
    return local


def _millis(column: pa.Array, field: str, style: PathStyle, settings: TimeSettings) -> pa.Array:
    """Return epoch milliseconds, int64, of a column of numbers, dates or timestamps."""
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
        raise KeyGenError(
            f"Partition field {field!r} has type {kind}, but timestamp type {settings.timestamp_type} reads text. Set "
            f"{TIMEBASED}timestamp.type to UNIX_TIMESTAMP, EPOCHMILLISECONDS, EPOCHMICROSECONDS or SCALAR."
        )
    multiplier, divisor = UNITS[settings.unit]
    if divisor > 1:
        return pc.divide(number, divisor)  # truncates towards zero, as Java's TimeUnit does
    # Java's TimeUnit stops at the largest long instead of overflowing.
    bound = _MAX_LONG // multiplier
    inside = pc.min_element_wise(pc.max_element_wise(number, -bound, skip_nulls=False), bound, skip_nulls=False)
    return pc.multiply(inside, multiplier)


def _java_long(column: pa.Array) -> pa.Array:
    """Return Java's `(long) value`: towards zero, not-a-number is 0, too large values stop at the bounds."""
    values = np.trunc(np.asarray(column.cast(pa.float64()).fill_null(0.0), dtype=np.float64))
    too_large, too_small = values >= 2.0**63, values < -(2.0**63)
    whole = np.where(np.isfinite(values) & ~too_large & ~too_small, values, 0.0).astype(np.int64)
    whole[too_large], whole[too_small] = _MAX_LONG, -_MAX_LONG - 1
    return pa.array(whole, pa.int64(), mask=np.asarray(column.is_null()) if column.null_count else None)


@dataclass(frozen=True, slots=True)
class TimestampKey(BuiltInKey):
    """`key_field`: "" only inside automatic keys, which use the partition half alone."""

    key_field: str
    partition_field: str
    style: PathStyle
    time: TimeSettings

    @classmethod
    def from_settings(cls, settings: KeySettings) -> TimestampKey:
        """Raises ConfigError for several fields, or time settings that are missing or wrong."""
        key_field, partition_field = one_record_field(settings, "TIMESTAMP"), one_partition_field(settings, "TIMESTAMP")
        time = TimeSettings.parse(settings.timebased, current_year=settings.current_year)
        return cls(key_field, partition_field, settings.style, time)

    @property
    def type_name(self) -> str:
        return "TIMESTAMP"

    @property
    def input_columns(self) -> tuple[str, ...]:
        return top_level(filter(None, (self.key_field, self.partition_field)))

    def record_key(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        consistent = self.style.consistent_timestamps
        return single_key(batch, self.key_field, consistent_timestamps=consistent, first_row=first_row)

    def partition_path(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        return timestamp_part(batch, self.partition_field, self.style, self.time, first_row)
