"""Calendar arithmetic without bounds: Python's datetime ends at years 1 and 9999, keys of Hudi don't.

Days count from 1970-01-01; years are astronomical (year 0 is 1 BC), the calendar is proleptic Gregorian as in
Joda-Time's ISO chronology and java.time.

Time zones by the names that Java's `TimeZone` knows, as Joda-Time then sees them.

Region ids, `GMT+8:00` and the old three-letter names work; every other name, also `+05:30`, silently means GMT in Hudi,
so it does here, with a warning. Offsets come from the tz database, also beyond years 1 and 9999.
Source: docs/formats/keys.md, "Times"; names checked against Java 17 and Joda-Time 2.14.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyhudi.caller_warnings import warn_caller
from pyhudi.errors import ConfigError
from pyhudi.model.options import HudiOptionWarning

__all__ = [
    "UTC",
    "SkippedTimeError",
    "Zone",
    "civil_from_days",
    "days_from_civil",
    "days_in_month",
    "days_in_year",
    "fixed_zone",
    "is_leap",
    "iso_week",
    "java_zone",
    "julian_from_days",
    "offset_text",
    "region",
    "weeks_in_year",
]


_DAYS_PER_ERA = 146_097  # 400 years
_EPOCH_SHIFT = 719_468  # days from 0000-03-01 to 1970-01-01
_JULIAN_EPOCH_SHIFT = 719_470


def is_leap(year: int) -> bool:
    """True for years of 366 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in_year(year: int) -> int:
    """365 or 366."""
    return 366 if is_leap(year) else 365


def days_in_month(year: int, month: int) -> int:
    """28 to 31."""
    return 29 if month == 2 and is_leap(year) else (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a date; years count from March, so that the leap day is the last one."""
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * ((month - 3) % 12) + 2) // 5 + day - 1
    return era * _DAYS_PER_ERA + of_era * 365 + of_era // 4 - of_era // 100 + of_year - _EPOCH_SHIFT


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of month."""
    era, of_era = divmod(days + _EPOCH_SHIFT, _DAYS_PER_ERA)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    return _from_march(era * 400 + year, of_year)


def julian_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of month in the Julian calendar, as Java's older date classes use before 1582-10-15."""
    era, of_era = divmod(days + _JULIAN_EPOCH_SHIFT, 1461)
    year = min(of_era // 365, 3)
    return _from_march(era * 4 + year, of_era - 365 * year)


def _from_march(year: int, of_year: int) -> tuple[int, int, int]:
    shifted = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year + (month <= 2), month, day


def iso_week(days: int) -> tuple[int, int, int]:
    """ISO week year, week and day of week (1 is Monday)."""
    weekday = (days + 3) % 7  # 1970-01-01 was a Thursday
    year, _, _ = civil_from_days(days - weekday + 3)  # the Thursday decides
    return year, (days - weekday + 3 - days_from_civil(year, 1, 1)) // 7 + 1, weekday + 1


def weeks_in_year(week_year: int) -> int:
    """52 or 53."""
    return iso_week(days_from_civil(week_year, 12, 28))[1]


_CYCLE_MS = 146_097 * 86_400_000  # 400 years, after which dates and weekdays repeat
_FIRST_MS, _LAST_MS = -62_104_060_800_000, 253_370_764_800_000  # a year inside what datetime can hold
_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=timezone.utc)
_GMT_OFFSET = re.compile(r"GMT([+-])(?:(\d{1,2})|(\d{1,2}):(\d\d)|(\d{1,2})(\d\d))")

# Java's three-letter names; for EST, MST and HST Joda-Time has its own idea.
_OLD_NAMES = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "EST": "America/New_York",
    "HST": "Pacific/Honolulu",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "America/Denver",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}


class SkippedTimeError(ValueError):
    """A local time that the zone's clocks skipped."""


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone as Joda-Time names it. `fixed_ms`: its offset when that never changes, else None."""

    id: str
    fixed_ms: int | None = None

    def offset_at(self, utc_ms: int) -> int:
        """Milliseconds east of UTC at an instant."""
        if self.fixed_ms is not None:
            return self.fixed_ms
        moment = _EPOCH_UTC + timedelta(milliseconds=_within_datetime(utc_ms))
        return _milliseconds(moment.astimezone(_load(self.id)).utcoffset())

    def offset_of_local(self, local_ms: int) -> int:
        """Offset for a local time; in an overlap that of the earlier instant. Raises SkippedTimeError in a gap."""
        if self.fixed_ms is not None:
            return self.fixed_ms
        moment = _EPOCH + timedelta(milliseconds=_within_datetime(local_ms))
        offset = _milliseconds(moment.replace(tzinfo=_load(self.id)).utcoffset())
        if self.offset_at(local_ms - offset) != offset:
            raise SkippedTimeError(f"clocks in {self.id} skipped this local time")
        return offset

    def short_name(self, utc_ms: int) -> str:
        """Abbreviation such as PST. Raises ConfigError where the tz database has none: Java has its own then."""
        if self.fixed_ms is not None:
            return self.id
        moment = _EPOCH_UTC + timedelta(milliseconds=_within_datetime(utc_ms))
        name = moment.astimezone(_load(self.id)).tzname() or ""
        if not name[:1].isalpha():
            raise ConfigError(
                f"Time zone {self.id} has no short name in the tz database, and Java's would differ between versions. "
                f"Use ZZ (its offset) or ZZZ (its id) instead of z in the date format."
            )
        return name


UTC = Zone("UTC", 0)


@lru_cache(maxsize=256)
def java_zone(name: str) -> Zone:
    """The zone behind a name in the options."""
    if name in ("UTC", "GMT"):
        return UTC
    zone = region(_OLD_NAMES.get(name, name))
    if zone is not None:
        return zone
    match = _GMT_OFFSET.fullmatch(name)
    if match:
        sign, hours, minutes = match[1], match[2] or match[3] or match[5], match[4] or match[6] or "0"
        if int(hours) < 24 and int(minutes) < 60:
            offset_ms = (int(hours) * 60 + int(minutes)) * 60_000
            return fixed_zone(-offset_ms if sign == "-" else offset_ms)
    warn_caller(
        f"Time zone {name!r} is not a name that Hudi knows; like Hudi, PyHudi takes it for GMT. "
        f"Write a region such as 'Asia/Kolkata' or an offset such as 'GMT+5:30'.",
        HudiOptionWarning,
    )
    return UTC


def region(name: str) -> Zone | None:
    """A zone of the tz database, None when it has none of this name."""
    try:
        _load(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        _check_database()
        return None
    return Zone(name)


def fixed_zone(offset_ms: int) -> Zone:
    """The zone that is always this far east of UTC."""
    return UTC if offset_ms == 0 else Zone(offset_text(offset_ms, colon=True), offset_ms)


def offset_text(offset_ms: int, *, colon: bool) -> str:
    """`+05:30`; seconds and milliseconds only when there are some."""
    seconds, millis = divmod(abs(offset_ms), 1000)
    separator = ":" if colon else ""
    text = f"{'-' if offset_ms < 0 else '+'}{seconds // 3600:02d}{separator}{seconds // 60 % 60:02d}"
    if seconds % 60 or millis:
        text += f"{separator}{seconds % 60:02d}"
    if millis:
        text += f"{'.' if colon else ''}{millis:03d}"
    return text


@lru_cache(maxsize=256)
def _load(name: str) -> ZoneInfo:
    return ZoneInfo(name)


@lru_cache(maxsize=1)
def _check_database() -> None:
    """Without a tz database every name would mean GMT and rows would go to wrong partitions: say so instead."""
    try:
        ZoneInfo("America/New_York")
    except ZoneInfoNotFoundError as error:
        raise ConfigError("No time zone database on this machine: install the package `tzdata`.") from error


def _within_datetime(millis: int) -> int:
    """The same moment of the 400-year cycle inside the years that datetime can hold."""
    if millis < _FIRST_MS:
        return millis + -((millis - _FIRST_MS) // _CYCLE_MS) * _CYCLE_MS
    if millis > _LAST_MS:
        return millis - -((_LAST_MS - millis) // _CYCLE_MS) * _CYCLE_MS
    return millis


def _milliseconds(offset: timedelta | None) -> int:
    assert offset is not None
    return offset // timedelta(milliseconds=1)
