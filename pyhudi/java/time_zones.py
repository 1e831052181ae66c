"""Time zones by the names that Java's `TimeZone` knows, as Joda-Time then sees them.

Region ids, `GMT+8:00` and the old three-letter names work; every other name, also `+05:30`, silently means GMT in Hudi,
so it does here, with a warning. Offsets come from the tz database.
Source: docs/formats/keys.md, "Times"; names checked against Java 17 and Joda-Time 2.14.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyhudi.errors import ConfigError
from pyhudi.model.options import HudiOptionWarning
from pyhudi.warnings import warn_caller

__all__ = [
    "EPOCH",
    "FIRST_LOCAL_MS",
    "LAST_LOCAL_MS",
    "UTC",
    "SkippedTimeError",
    "Zone",
    "fixed_zone",
    "java_zone",
    "offset_text",
    "region",
]

EPOCH = datetime(1970, 1, 1)
# Local times of the years 1 to 9999, which datetime can hold; keys are made of no others.
FIRST_LOCAL_MS, LAST_LOCAL_MS = -62_135_596_800_000, 253_402_300_799_999

_MS_PER_DAY = 86_400_000
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=timezone.utc)
_GMT_OFFSET = re.compile(r"GMT([+-])(?:(\d{1,2})|(\d{1,2}):(\d\d)|(\d{1,2})(\d\d))")

# Java's three-letter names; Joda-Time reads EST, MST and HST differently.
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
        """Return milliseconds east of UTC at an instant."""
        if self.fixed_ms is not None:
            return self.fixed_ms
        return _milliseconds(_moment(utc_ms).astimezone(_load(self.id)).utcoffset())

    def offset_of_local(self, local_ms: int) -> int:
        """Return the offset for a local time; in an overlap that of the earlier instant.

        Raises: SkippedTimeError in a gap; OverflowError for years outside 1 to 9999.
        """
        if self.fixed_ms is not None:
            return self.fixed_ms
        moment = EPOCH + timedelta(milliseconds=local_ms)
        offset = _milliseconds(moment.replace(tzinfo=_load(self.id)).utcoffset())
        if self.offset_at(local_ms - offset) != offset:
            raise SkippedTimeError(f"clocks in {self.id} skipped this local time")
        return offset

    def short_name(self, utc_ms: int) -> str:
        """Abbreviation such as PST. Raises ConfigError where the tz database has none: Java has its own then."""
        if self.fixed_ms is not None:
            return self.id
        name = _moment(utc_ms).astimezone(_load(self.id)).tzname() or ""
        if not name[:1].isalpha():
            raise ConfigError(
                f"Time zone {self.id} has no short name in the tz database, and Java's would differ between versions. "
                f"Use ZZ (its offset) or ZZZ (its id) instead of z in the date format."
            )
        return name


UTC = Zone("UTC", 0)


@lru_cache(maxsize=256)
def java_zone(name: str) -> Zone:
    """Return the zone behind a name in the options."""
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
    """Return a zone of the tz database, None when it has none of this name."""
    try:
        _load(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        _check_database()
        return None
    return Zone(name)


def fixed_zone(offset_ms: int) -> Zone:
    """Return the zone that is always this far east of UTC."""
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
    """Fail without a tz database: every name would mean GMT, and rows would go to wrong partitions."""
    try:
        ZoneInfo("America/New_York")
    except ZoneInfoNotFoundError as error:
        raise ConfigError("No time zone database on this machine: install the package `tzdata`.") from error


def _moment(utc_ms: int) -> datetime:
    """Return an instant; those a day from the ends of datetime are moved, so that their local time fits in any zone."""
    inside = min(max(utc_ms, FIRST_LOCAL_MS + _MS_PER_DAY), LAST_LOCAL_MS - _MS_PER_DAY)
    return _EPOCH_UTC + timedelta(milliseconds=inside)


def _milliseconds(offset: timedelta | None) -> int:
    assert offset is not None
    return offset // timedelta(milliseconds=1)
