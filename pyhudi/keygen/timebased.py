"""One partition part made from a time field, as TIMESTAMP and CUSTOM make it.

A value becomes an instant (epoch milliseconds) by the timestamp type, the instant a text by the output format, the
text a path by URL encoding of the whole and the hive prefix once. Null is the number 1 in the type's unit (or the text
of the first millisecond), never the default partition. Work in Python is done for distinct values only, after numbers
have been cut to what the format shows. Times outside the years 1 to 9999 are refused.
Source: docs/formats/keys.md, "Times".
"""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import KeyGenError
from pyhudi.java.joda import FarYearError, finest_ms, format_instant, shows_zone
from pyhudi.java.joda_columns import Longs, offsets_at, read_local_times
from pyhudi.java.joda_parse import ParseError
from pyhudi.java.key_text import RAW_NUMBER_UNITS, epoch_number
from pyhudi.java.time_zones import FIRST_LOCAL_MS, LAST_LOCAL_MS, UTC, SkippedTimeError, Zone
from pyhudi.keygen.base import read_field
from pyhudi.keygen.partition_path import PathStyle, constant_path, place
from pyhudi.keygen.time_settings import TIMEBASED, UNITS, TimeSettings

__all__ = ["timestamp_part"]

_MAX_LONG = 2**63 - 1
_TWO_DAYS_MS = 2 * 86_400_000  # more than any offset


def timestamp_part(
    batch: pa.RecordBatch, field: str, style: PathStyle, settings: TimeSettings, first_row: int = 0
) -> pa.Array:
    """Paths made of one time field. Raises KeyGenError, with the row, for values that give no time."""
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
    if settings.unit is not None:  # as in Hudi, where an input format counts for the types that read text
        raise KeyGenError(
            f"Partition field {field!r} is text, but timestamp type {settings.timestamp_type} reads numbers, whatever "
            f"{TIMEBASED}input.dateformat says. Cast the column to a number, or set {TIMEBASED}timestamp.type to "
            "DATE_STRING (or MIXED) and the format."
        )
    null_path = style.decorate(field, settings.null_path()) if column.null_count else ""
    encoded = column.cast(pa.string()).dictionary_encode()
    texts, indices = encoded.dictionary, encoded.indices
    pattern, unit_ms = settings.output_format, finest_ms(settings.output_format)
    local, is_time = read_local_times(texts, settings.input_formats[0], settings.input_zone, settings.output_zone)
    if shows_zone(pattern):
        is_time[:] = False
    # Texts that were read at once share the paths of equal cut times; the others get one path each.
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
        # Local times print the same in any zone, so they can be cut to the finest field that is shown.
        unit_ms = finest_ms(pattern)
        nulls = np.asarray(millis.is_null()) if millis.null_count else None
        millis, zone = pa.array(local // unit_ms * unit_ms, pa.int64(), mask=nulls), UTC
    encoded = millis.dictionary_encode()
    distinct = cast("list[int]", encoded.dictionary.to_pylist())
    paths = [style.decorate(field, format_instant(pattern, value, zone)) for value in distinct]
    return place(encoded.indices, paths, null_path, field, first_row)


def _local_times(millis: pa.Array, zone: Zone) -> Longs:
    """Local milliseconds; of a null those of 1970, of a time outside the years 1 to 9999 some that are outside, too."""
    values = np.asarray(millis.fill_null(0), dtype=np.int64)
    inside = np.clip(values, FIRST_LOCAL_MS - _TWO_DAYS_MS, LAST_LOCAL_MS + _TWO_DAYS_MS)
    local: Longs = inside + offsets_at(inside, zone)
    return local


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
        raise KeyGenError(
            f"Partition field {field!r} has type {kind}, but timestamp type {settings.timestamp_type} reads text. Set "
            f"{TIMEBASED}timestamp.type to UNIX_TIMESTAMP, EPOCHMILLISECONDS, EPOCHMICROSECONDS or SCALAR."
        )
    multiplier, divisor = UNITS[settings.unit]
    if divisor > 1:
        return pc.divide(number, divisor)  # cuts towards zero, as Java's TimeUnit does
    # Java's TimeUnit stops at the largest long instead of running over.
    bound = _MAX_LONG // multiplier
    inside = pc.min_element_wise(pc.max_element_wise(number, -bound, skip_nulls=False), bound, skip_nulls=False)
    return pc.multiply(inside, multiplier)


def _java_long(column: pa.Array) -> pa.Array:
    """Java's `(long) value`: towards zero, not-a-number is 0, too large values stop at the bounds."""
    values = np.trunc(np.asarray(column.cast(pa.float64()).fill_null(0.0), dtype=np.float64))
    too_large, too_small = values >= 2.0**63, values < -(2.0**63)
    whole = np.where(np.isfinite(values) & ~too_large & ~too_small, values, 0.0).astype(np.int64)
    whole[too_large], whole[too_small] = _MAX_LONG, -_MAX_LONG - 1
    return pa.array(whole, pa.int64(), mask=np.asarray(column.is_null()) if column.null_count else None)
