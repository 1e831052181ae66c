"""Calendar fields as Joda-Time sets them one after the other on a local date and time.

Fields are sorted by the length of the field they are counted in, then by their own, both from long to short, and set
twice: first each cuts off all smaller fields, then again with only the last one cutting, so that a value that only fits
another month is found out of range. Source: Joda-Time's documentation of DateTimeParserBucket; checked against
Joda-Time 2.14.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyhudi.java.calendar import (
    civil_from_days,
    days_from_civil,
    days_in_month,
    days_in_year,
    iso_week,
    weeks_in_year,
)

__all__ = ["FIELDS", "FieldError", "local_millis"]

_DAY_MS, _HOUR_MS, _MINUTE_MS, _SECOND_MS = 86_400_000, 3_600_000, 60_000, 1000
_MAX_YEAR = 292_278_993
_BASE_YEAR = 2000  # of texts whose largest field is a month or a day

# Ranks of durations, long to short.
_ERA, _CENTURY, _YEAR, _MONTH, _WEEK, _DAY, _HALFDAY, _HOUR, _MINUTE, _SECOND, _MILLI = range(11)

LocalTime = tuple[int, int]  # days since 1970-01-01, milliseconds of the day


class FieldError(ValueError):
    """A value out of its field's range."""


@dataclass(frozen=True, slots=True)
class _Field:
    counted_in: int  # rank of the field around it
    duration: int  # rank of its own length
    set: Callable[[LocalTime, int], LocalTime]


def local_millis(values: Sequence[tuple[str, int]]) -> int:
    """Local epoch milliseconds of parsed values, given by pattern letter. Raises FieldError."""
    ordered = sorted(values, key=lambda item: (FIELDS[item[0]].counted_in, FIELDS[item[0]].duration))
    if ordered and _MONTH <= FIELDS[ordered[0][0]].duration <= _DAY:
        ordered.insert(0, ("y", _BASE_YEAR))
    local: LocalTime = (0, 0)
    for name, value in ordered:
        local = _cut(FIELDS[name].set(local, value), name)
    for name, value in ordered:
        local = FIELDS[name].set(local, value)
    if ordered:
        local = _cut(local, ordered[-1][0])
    return local[0] * _DAY_MS + local[1]


def _cut(local: LocalTime, name: str) -> LocalTime:
    """The beginning of the named field's current value."""
    days, of_day = local
    duration = FIELDS[name].duration
    if duration >= _HALFDAY:
        unit = {_HALFDAY: 12 * _HOUR_MS, _HOUR: _HOUR_MS, _MINUTE: _MINUTE_MS, _SECOND: _SECOND_MS}.get(duration, 1)
        return days, of_day - of_day % unit
    if duration == _DAY:
        return days, 0
    if duration == _WEEK:
        return days - (days + 3) % 7, 0
    if name == "x":
        return _first_monday(iso_week(days)[0]), 0
    year, month, _ = civil_from_days(days)
    if duration == _CENTURY:
        year -= year % 100
    return days_from_civil(year, month if duration == _MONTH else 1, 1), 0


def _check(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise FieldError(f"value {value} for {name} must be in [{low},{high}]")


def _set_year(local: LocalTime, value: int) -> LocalTime:
    _check("year", value, -_MAX_YEAR, _MAX_YEAR)
    _, month, day = civil_from_days(local[0])
    return days_from_civil(value, month, min(day, days_in_month(value, month))), local[1]


def _set_year_of_era(local: LocalTime, value: int) -> LocalTime:
    _check("year of era", value, 1, _MAX_YEAR)
    return _set_year(local, value if civil_from_days(local[0])[0] > 0 else 1 - value)


def _set_era(local: LocalTime, value: int) -> LocalTime:
    year = civil_from_days(local[0])[0]
    return local if (year > 0) == (value == 1) else _set_year(local, 1 - year)


def _set_century(local: LocalTime, value: int) -> LocalTime:
    _check("century", value, 0, _MAX_YEAR // 100)
    return _set_year(local, value * 100 + civil_from_days(local[0])[0] % 100)


def _set_month(local: LocalTime, value: int) -> LocalTime:
    _check("month", value, 1, 12)
    year, _, day = civil_from_days(local[0])
    return days_from_civil(year, value, min(day, days_in_month(year, value))), local[1]


def _set_day(local: LocalTime, value: int) -> LocalTime:
    year, month, _ = civil_from_days(local[0])
    _check("day of month", value, 1, days_in_month(year, month))
    return days_from_civil(year, month, value), local[1]


def _set_day_of_year(local: LocalTime, value: int) -> LocalTime:
    year, _, _ = civil_from_days(local[0])
    _check("day of year", value, 1, days_in_year(year))
    return days_from_civil(year, 1, 1) + value - 1, local[1]


def _set_week_year(local: LocalTime, value: int) -> LocalTime:
    _check("week year", value, -_MAX_YEAR, _MAX_YEAR)
    _, week, weekday = iso_week(local[0])
    return _first_monday(value) + 7 * (min(week, weeks_in_year(value)) - 1) + weekday - 1, local[1]


def _set_week(local: LocalTime, value: int) -> LocalTime:
    year, week, _ = iso_week(local[0])
    _check("week", value, 1, weeks_in_year(year))
    return local[0] + 7 * (value - week), local[1]


def _first_monday(week_year: int) -> int:
    """Day on which week 1 begins: the week of January 4."""
    fourth = days_from_civil(week_year, 1, 4)
    return fourth - (fourth + 3) % 7


def _set_weekday(local: LocalTime, value: int) -> LocalTime:
    _check("day of week", value, 1, 7)
    return local[0] - (local[0] + 3) % 7 + value - 1, local[1]


def _set_halfday(local: LocalTime, value: int) -> LocalTime:
    return local[0], local[1] % (12 * _HOUR_MS) + value * 12 * _HOUR_MS


def _clock(name: str, unit_ms: int, low: int, high: int, cycle: int) -> Callable[[LocalTime, int], LocalTime]:
    """A field of the day: `cycle` values of `unit_ms` each; a value equal to the cycle is 0 (clock hours)."""

    def put(local: LocalTime, value: int) -> LocalTime:
        _check(name, value, low, high)
        current = local[1] // unit_ms % cycle
        return local[0], local[1] + (value % cycle - current) * unit_ms

    return put


FIELDS = {
    "G": _Field(_ERA, _ERA, _set_era),
    "C": _Field(_ERA, _CENTURY, _set_century),
    "y": _Field(_ERA, _YEAR, _set_year),
    "Y": _Field(_ERA, _YEAR, _set_year_of_era),
    "x": _Field(_ERA, _YEAR, _set_week_year),
    "M": _Field(_YEAR, _MONTH, _set_month),
    "w": _Field(_YEAR, _WEEK, _set_week),
    "D": _Field(_YEAR, _DAY, _set_day_of_year),
    "d": _Field(_MONTH, _DAY, _set_day),
    "e": _Field(_WEEK, _DAY, _set_weekday),
    "a": _Field(_DAY, _HALFDAY, _set_halfday),
    "H": _Field(_DAY, _HOUR, _clock("hour", _HOUR_MS, 0, 23, 24)),
    "k": _Field(_DAY, _HOUR, _clock("clock hour", _HOUR_MS, 1, 24, 24)),
    "K": _Field(_HALFDAY, _HOUR, _clock("hour of half day", _HOUR_MS, 0, 11, 12)),
    "h": _Field(_HALFDAY, _HOUR, _clock("clock hour of half day", _HOUR_MS, 1, 12, 12)),
    "m": _Field(_HOUR, _MINUTE, _clock("minute", _MINUTE_MS, 0, 59, 60)),
    "s": _Field(_MINUTE, _SECOND, _clock("second", _SECOND_MS, 0, 59, 60)),
    "S": _Field(_SECOND, _MILLI, _clock("millisecond", 1, 0, 999, 1000)),
}
