"""Calendar arithmetic without bounds: Python's datetime ends at years 1 and 9999, keys of Hudi don't.

Days count from 1970-01-01; years are astronomical (year 0 is 1 BC), the calendar is proleptic Gregorian as in
Joda-Time's ISO chronology and java.time.
"""

from __future__ import annotations

__all__ = [
    "civil_from_days",
    "days_from_civil",
    "days_in_month",
    "days_in_year",
    "is_leap",
    "iso_week",
    "julian_from_days",
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
