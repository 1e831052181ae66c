"""Convert dates and times before 1900 in Parquet files of Spark from Java's old calendar.

Spark before 3.0, and later in mode LEGACY, wrote days and moments of the calendar that is Julian before 15 October
1582; the footer says so. Read as they are, 1500-06-01 would be 1500-06-11. As in Spark a day gets the number that its
year, month and day have in the Gregorian calendar, and a moment keeps its local time.

Before 1900 that calendar also had other offsets for most zones. Only UTC's are the same, so moments before 1900 that a
file of another zone holds, or of an unknown one, are refused.
Source: Spark's SQL guide, "Parquet files" (datetimeRebaseModeInRead, int96RebaseModeInRead), and the footers that its
releases write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import UnsupportedTable

__all__ = ["FIRST_SAFE_DAY", "OldCalendar", "is_same_in_both_calendars", "old_calendar"]

_VERSION = b"org.apache.spark.version"
_OLD_TIMES, _OLD_INT96 = b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"
_ZONE = b"org.apache.spark.timeZone"
_UTC = frozenset({"UTC", "GMT", "Z", "Etc/UTC", "Etc/GMT", "+00:00", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu", "Greenwich"})

FIRST_SAFE_DAY = -25_567  # 1900-01-01: from here on both calendars, and the offsets of all zones, agree
_FIRST_GREGORIAN_DAY = -141_427  # 1582-10-15
_MICROS_PER_DAY = 86_400_000_000
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": _MICROS_PER_DAY, "ns": _MICROS_PER_DAY * 1000}
# Days of eras that begin with 1 March of year 0, when leap days come last.
_JULIAN_SHIFT, _DAYS_PER_JULIAN_ERA = 719_470, 1461
_GREGORIAN_SHIFT, _DAYS_PER_ERA = 719_468, 146_097

_Days = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OldCalendar:
    """The columns of a file in the old calendar: `times`: dates and timestamps; `int96`. `zone`: the writer's."""

    times: bool
    int96: bool
    zone: str | None

    def rebased(self, batch: pa.RecordBatch, schema: pa.Schema, where: str) -> pa.RecordBatch:
        """Return the batch with Gregorian days. `schema`: the columns' types, with UTC on INT96 columns that lack it.

        Raises: UnsupportedTable for moments before 1900 of a zone other than UTC.
        """
        columns = [
            self._column(column, schema.field(name).type, f"{where}: column {name!r}")
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        if all(new is old for new, old in zip(columns, batch.columns, strict=True)):
            return batch
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _column(self, values: pa.Array, typed: pa.DataType, where: str) -> pa.Array:
        kind = values.type
        if pa.types.is_date32(kind):
            return _with_days(values) if self.times else values
        if pa.types.is_timestamp(kind) and pa.types.is_timestamp(typed) and typed.tz is not None:
            is_old = self.int96 if kind.tz is None else self.times
            return self._moments(values, where) if is_old else values
        if pa.types.is_nested(kind) and self._is_concerned(kind):
            return self._nested(values, typed, where)
        return values

    def _is_concerned(self, kind: pa.DataType) -> bool:
        if pa.types.is_nested(kind):
            return any(self._is_concerned(kind.field(at).type) for at in range(kind.num_fields))
        return pa.types.is_date32(kind) or pa.types.is_timestamp(kind)

    def _nested(self, values: pa.Array, typed: pa.DataType, where: str) -> pa.Array:
        whole = values.take(pa.array(np.arange(len(values))))  # without an offset
        kind, parts, own_buffers = whole.type, list[pa.Array](), 2
        if isinstance(whole, pa.StructArray):
            children = range(kind.num_fields)
            parts = [self._column(whole.field(at), typed.field(at).type, where) for at in children]
            own_buffers = 1
        elif isinstance(whole, pa.MapArray) and isinstance(typed, pa.MapType):
            keys = self._column(whole.keys, typed.key_type, where)
            items = self._column(whole.items, typed.item_type, where)
            parts = [pa.StructArray.from_arrays([keys, items], fields=[kind.key_field, kind.item_field])]
        elif isinstance(whole, pa.ListArray | pa.LargeListArray) and isinstance(typed, pa.ListType | pa.LargeListType):
            parts = [self._column(whole.values, typed.value_type, where)]
        if not parts:
            return values
        return pa.Array.from_buffers(kind, len(whole), whole.buffers()[:own_buffers], children=parts)

    def _moments(self, values: pa.Array, where: str) -> pa.Array:
        per_day = _PER_DAY[values.type.unit]
        least = pc.min(values.cast(pa.int64())).as_py()
        if least is None or least >= FIRST_SAFE_DAY * per_day:
            return values
        if self.zone not in _UTC:
            zone = "of a zone that the file does not name" if self.zone is None else f"of the zone {self.zone}"
            raise UnsupportedTable(
                f"{where} holds moments before 1900 by Java's old calendar (footer: {_words(self)}), {zone}; they can "
                "be read from files that were written in UTC only. Read the file with Spark in that zone, and write "
                "its rows with spark.sql.parquet.datetimeRebaseModeInWrite and int96RebaseModeInWrite set to CORRECTED."
            )
        numbers = np.asarray(pc.fill_null(values.cast(pa.int64()), 0))
        days, of_day = np.divmod(numbers, per_day)
        return _of_numbers(_gregorian(days) * per_day + of_day, values)


def old_calendar(entries: Mapping[bytes, bytes] | None) -> OldCalendar | None:
    """Return the old calendar that a footer's key-values declare; None if the whole file is Gregorian."""
    if not entries or _VERSION not in entries:
        return None
    version = _numbers(entries[_VERSION])
    times = version < (3, 0) or _OLD_TIMES in entries
    int96 = version < (3, 1) or _OLD_INT96 in entries
    zone = entries.get(_ZONE)
    return (
        OldCalendar(times, int96, None if zone is None else zone.decode("utf-8", "replace")) if times or int96 else None
    )


def is_same_in_both_calendars(values: pa.Array) -> bool:
    """True if all dates and timestamps in an array, at any depth, are the same in both calendars."""
    kind = values.type
    if pa.types.is_date32(kind):
        least = pc.min(values.cast(pa.int32())).as_py()
        return least is None or bool(least >= _FIRST_GREGORIAN_DAY)
    if pa.types.is_timestamp(kind):
        least = pc.min(values.cast(pa.int64())).as_py()
        return least is None or bool(least >= FIRST_SAFE_DAY * _PER_DAY[kind.unit])
    parts: list[pa.Array] = []
    if isinstance(values, pa.StructArray):
        parts = values.flatten()
    elif isinstance(values, pa.MapArray):
        parts = [values.keys, values.items]
    elif isinstance(values, pa.ListArray | pa.LargeListArray):
        parts = [values.flatten()]
    return all(map(is_same_in_both_calendars, parts))


def _numbers(version: bytes) -> tuple[int, ...]:
    """Return the first two numbers of a version. An unknown form counts as new: only Spark wrote the old calendar."""
    parts = version.split(b".")[:2]
    return tuple(map(int, parts)) if len(parts) == 2 and all(part.isdigit() for part in parts) else (9, 9)


def _words(calendar: OldCalendar) -> str:
    return "dates and times before Spark 3.0 or of mode LEGACY" if calendar.times else "INT96 of mode LEGACY"


def _with_days(values: pa.Array) -> pa.Array:
    least = pc.min(values.cast(pa.int32())).as_py()
    if least is None or least >= _FIRST_GREGORIAN_DAY:
        return values
    days = np.asarray(pc.fill_null(values.cast(pa.int32()), 0)).astype(np.int64)
    return _of_numbers(_gregorian(days).astype(np.int32), values)


def _of_numbers(numbers: npt.NDArray[np.int64] | npt.NDArray[np.int32], values: pa.Array) -> pa.Array:
    """Return numbers as values of the type of `values`, with its nulls."""
    return pa.array(numbers, mask=np.asarray(values.is_null())).cast(values.type)


def _gregorian(days: _Days) -> _Days:
    """Return the Gregorian numbers of days that have the same year, month and day in the old calendar.

    29 February of a year that has none there becomes 1 March.
    """
    old = days < _FIRST_GREGORIAN_DAY
    era, of_era = np.divmod(days[old] + _JULIAN_SHIFT, _DAYS_PER_JULIAN_ERA)
    of_years = np.minimum(of_era // 365, 3)
    of_year, year = of_era - 365 * of_years, era * 4 + of_years
    era, year = np.divmod(year, 400)
    changed = days.copy()
    changed[old] = era * _DAYS_PER_ERA + year * 365 + year // 4 - year // 100 + of_year - _GREGORIAN_SHIFT
    return changed
