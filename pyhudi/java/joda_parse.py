"""Parsing text with Joda-Time's date patterns.

Numbers take as many digits as they find (`yyyy` reads `24` as the year 24), month and day names any of their usual
spellings, `Z` an offset or the letter Z. Several formats: the first whose shape fits the whole text decides, even if
its values are then out of range.

The values are then set one after the other on 1970-01-01T00:00, or in the year 2000 when the largest field is a month
or a day. Fields are sorted by the length of the field they are counted in, then by their own, both from long to short,
and set twice: first each cuts off all smaller fields, then again with only the last one cutting, so that a value that
only fits another month is found out of range. Years go from 1 to 9999. Source: docs/formats/keys.md, "Times";
Joda-Time's documentation of DateTimeParserBucket; checked against Joda-Time 2.14.
"""

from __future__ import annotations

import re
from calendar import isleap, monthrange
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import lru_cache

from pyhudi.java.joda import LONG_DAYS, LONG_MONTHS, PatternToken, is_number, tokenize
from pyhudi.java.time_zones import EPOCH, UTC, Zone, fixed_zone, java_zone, region

__all__ = ["ParseError", "parse_text"]


class ParseError(ValueError):
    """The text does not fit the formats."""


class _FieldError(ValueError):
    """A value out of its field's range."""


@dataclass(slots=True)
class _Fields:
    """The result of a parse: values by field, in order, and an offset or a zone from the text."""

    values: list[tuple[str, int]] = field(default_factory=list)
    offset_ms: int | None = None
    zone: Zone | None = None


Reader = Callable[[str, int, _Fields], "int | None"]  # the position after the parsed text, None when it doesn't match


def parse_text(text: str, patterns: Sequence[str], zone: Zone | None, current_year: int) -> tuple[int, Zone]:
    """Return the instant (epoch milliseconds) and zone of a text.

    Args:    zone: of texts without offset; also the zone of the answer. None: the text's own offset, else UTC.
    Raises:  ParseError when no pattern fits or a value is out of range; SkippedTimeError for skipped local times.
    """
    for pattern in patterns:
        fields = _read(text, pattern, current_year)
        if fields is not None:
            break
    else:
        raise ParseError(f"the text does not fit {' or '.join(map(repr, patterns))}")
    try:
        local = _local_millis(fields.values)
    except _FieldError as error:
        raise ParseError(f"{error} (format {pattern!r})") from error
    if fields.offset_ms is not None:
        return local - fields.offset_ms, zone or fixed_zone(fields.offset_ms)
    source = fields.zone or zone or UTC
    return local - source.offset_of_local(local), zone or source


def _read(text: str, pattern: str, current_year: int) -> _Fields | None:
    fields, position = _Fields(), 0
    for read in _readers(pattern, current_year):
        after = read(text, position, fields)
        if after is None:
            return None
        position = after
    return fields if position == len(text) else None


@lru_cache(maxsize=256)
def _readers(pattern: str, current_year: int) -> tuple[Reader, ...]:
    tokens = tokenize(pattern)
    following = [*tokens[1:], None]
    return tuple(_reader(token, after, current_year) for token, after in zip(tokens, following, strict=True))


def _reader(token: PatternToken, after: PatternToken | None, current_year: int) -> Reader:
    letter, number_follows = token.letter, after is not None and is_number(after)
    if not letter:
        return _literal(token.text)
    if letter in "xyY":
        if token.count == 2:
            return _two_digit_year(letter, current_year - 30, lenient=not number_follows)
        return _number(letter, max(token.count, token.count if number_follows else 9), signed=letter != "Y")
    if letter == "S":
        return _fraction(token.count)
    if letter == "M" and token.count > 2:
        return _names("M", LONG_MONTHS, first=1)
    if letter == "E":
        return _names("e", LONG_DAYS, first=1)
    if letter == "a":
        return _choice("a", {"AM": 0, "PM": 1, "am": 0, "pm": 1})
    if letter == "G":
        return _choice("G", {"AD": 1, "BC": 0, "CE": 1, "BCE": 0, "ad": 1, "bc": 0, "ce": 1, "bce": 0})
    if letter == "Z":
        return _zone_id if token.count > 2 else _offset
    if letter == "z":
        return _zone_name
    digits = {"D": 3, "e": 1, "C": token.count}.get(letter, 2)
    return _number(letter, max(digits, token.count), signed=letter == "C")


def _literal(expected: str) -> Reader:
    def read(text: str, position: int, fields: _Fields) -> int | None:
        end = position + len(expected)
        return end if text[position:end].casefold() == expected.casefold() else None

    return read


def _number(name: str, max_digits: int, *, signed: bool) -> Reader:
    # A sign does not count as a digit, but there is none before a single one; digits are ASCII, as in Java.
    shape = re.compile(rf"{'[-+]?' if signed and max_digits > 1 else ''}[0-9]{{1,{max_digits}}}")

    def read(text: str, position: int, fields: _Fields) -> int | None:
        match = shape.match(text, position)
        if match is None:
            return None
        fields.values.append((name, int(match.group())))
        return match.end()

    return read


def _two_digit_year(name: str, pivot: int, *, lenient: bool) -> Reader:
    """Two digits are the year nearest to the pivot; with a sign or another number of digits it is the year itself."""
    shape = re.compile("[-+]?[0-9]+" if lenient else "[0-9]{2}")

    def read(text: str, position: int, fields: _Fields) -> int | None:
        match = shape.match(text, position)
        if match is None:
            return None
        digits = match.group()
        year = int(digits)
        if len(digits) == 2 and digits.isdecimal():
            low = pivot - 50
            year = low + (year - low) % 100
        fields.values.append((name, year))
        return match.end()

    return read


def _fraction(max_digits: int) -> Reader:
    shape = re.compile(f"[0-9]{{1,{max_digits}}}")

    def read(text: str, position: int, fields: _Fields) -> int | None:
        match = shape.match(text, position)
        if match is None:
            return None
        fields.values.append(("S", int(match.group().ljust(3, "0")[:3])))
        return match.end()

    return read


def _names(name: str, long_names: Sequence[str], *, first: int) -> Reader:
    values = {}
    for number, long_name in enumerate(long_names, first):
        for spelling in (long_name, long_name[:3]):
            values.update({spelling: number, spelling.lower(): number, spelling.upper(): number})
    return _choice(name, values)


def _choice(name: str, values: dict[str, int]) -> Reader:
    longest_first = sorted(values, key=len, reverse=True)

    def read(text: str, position: int, fields: _Fields) -> int | None:
        for spelling in longest_first:
            if text.startswith(spelling, position):
                fields.values.append((name, values[spelling]))
                return position + len(spelling)
        return None

    return read


_OFFSET = re.compile(r"([-+])([01][0-9]|2[0-3])(?:(:?)([0-5][0-9])(?:\3([0-5][0-9])(?:[.,]?([0-9]{1,3}))?)?)?")


def _offset(text: str, position: int, fields: _Fields) -> int | None:
    """`Z`, `+hh`, `+hhmm`, `+hh:mm`, and so on down to milliseconds."""
    if text[position : position + 1] in ("Z", "z"):
        fields.offset_ms = 0
        return position + 1
    match = _OFFSET.match(text, position)
    if match is None:
        return None
    sign, hours, _, minutes, seconds, millis = match.groups()
    total = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    offset_ms = total * 1000 + int((millis or "0").ljust(3, "0"))
    fields.offset_ms = -offset_ms if sign == "-" else offset_ms
    return match.end()


_ZONE_ID = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")


def _zone_id(text: str, position: int, fields: _Fields) -> int | None:
    """Return the longest zone id of the tz database at this place."""
    match = _ZONE_ID.match(text, position)
    end = match.end() if match else position
    while end > position:
        name = text[position:end]
        zone = UTC if name == "UTC" else region(name)
        if zone is not None:
            fields.zone = zone
            return end
        end -= 1
    return None


_ZONE_NAMES = {"UTC": "UTC", "GMT": "UTC", "UT": "UTC"} | {
    f"{letter}{kind}T": f"{letter}ST" for letter in "ECMP" for kind in "SD"
}


def _zone_name(text: str, position: int, fields: _Fields) -> int | None:
    """Read the short names that Joda-Time knows by default: UTC, GMT and those of North America."""
    for name, zone in _ZONE_NAMES.items():
        if text.startswith(name, position):
            fields.zone = java_zone(zone)
            return position + len(name)
    return None


_BASE_YEAR = 2000  # of texts whose largest field is a month or a day
_MILLISECOND = timedelta(milliseconds=1)

# Ranks of durations, long to short.
_ERA, _CENTURY, _YEAR, _MONTH, _WEEK, _DAY, _HALFDAY, _HOUR, _MINUTE, _SECOND, _MILLI = range(11)
_TIMES = {
    _HALFDAY: timedelta(hours=12),
    _HOUR: timedelta(hours=1),
    _MINUTE: timedelta(minutes=1),
    _SECOND: timedelta(seconds=1),
    _MILLI: _MILLISECOND,
}

Setter = Callable[[datetime, int], datetime]


@dataclass(frozen=True, slots=True)
class _Field:
    counted_in: int  # rank of the field around it
    duration: int  # rank of its length
    set: Setter


def _local_millis(values: Sequence[tuple[str, int]]) -> int:
    """Return local epoch milliseconds of parsed values, given by pattern letter. Raises _FieldError."""
    ordered = sorted(values, key=lambda item: (_FIELDS[item[0]].counted_in, _FIELDS[item[0]].duration))
    if ordered and _MONTH <= _FIELDS[ordered[0][0]].duration <= _DAY:
        ordered.insert(0, ("y", _BASE_YEAR))
    local = EPOCH
    try:
        for name, value in ordered:
            local = _cut(_FIELDS[name].set(local, value), name)
        for name, value in ordered:
            local = _FIELDS[name].set(local, value)
    except OverflowError as error:
        raise _FieldError("the year must be in [1,9999]") from error
    if ordered:
        local = _cut(local, ordered[-1][0])
    return (local - EPOCH) // _MILLISECOND


def _cut(local: datetime, name: str) -> datetime:
    """Return the beginning of the named field's current value."""
    midnight = _midnight(local)
    duration = _FIELDS[name].duration
    if duration in _TIMES:
        return local - (local - midnight) % _TIMES[duration]
    if duration == _DAY:
        return midnight
    if duration == _WEEK:
        return midnight - timedelta(days=local.weekday())
    if name == "x":
        return datetime.fromisocalendar(local.isocalendar().year, 1, 1)
    if duration == _MONTH:
        return midnight.replace(day=1)
    return datetime(local.year - local.year % 100 if duration == _CENTURY else local.year, 1, 1)


def _midnight(local: datetime) -> datetime:
    return datetime(local.year, local.month, local.day)


def _check(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise _FieldError(f"value {value} for {name} must be in [{low},{high}]")


def _year_as(name: str) -> Setter:
    def put(local: datetime, value: int) -> datetime:
        _check(name, value, 1, 9999)
        return local.replace(year=value, day=min(local.day, monthrange(value, local.month)[1]))

    return put


_set_year = _year_as("year")


def _set_era(local: datetime, value: int) -> datetime:
    if value == 0:
        raise _FieldError("the era is BC, and the year must be in [1,9999]")
    return local


def _set_century(local: datetime, value: int) -> datetime:
    _check("century", value, 1, 99)
    return _set_year(local, value * 100 + local.year % 100)


def _set_month(local: datetime, value: int) -> datetime:
    _check("month", value, 1, 12)
    return local.replace(month=value, day=min(local.day, monthrange(local.year, value)[1]))


def _set_day(local: datetime, value: int) -> datetime:
    _check("day of month", value, 1, monthrange(local.year, local.month)[1])
    return local.replace(day=value)


def _set_day_of_year(local: datetime, value: int) -> datetime:
    _check("day of year", value, 1, 366 if isleap(local.year) else 365)
    return local.replace(month=1, day=1) + timedelta(days=value - 1)


def _set_week_year(local: datetime, value: int) -> datetime:
    _check("week year", value, 1, 9999)
    _, week, weekday = local.isocalendar()
    weeks = min(week, _weeks_in_year(value)) - 1
    first = datetime.fromisocalendar(value, 1, 1) + (local - _midnight(local))
    return first + timedelta(weeks=weeks, days=weekday - 1)


def _set_week(local: datetime, value: int) -> datetime:
    year, week, _ = local.isocalendar()
    _check("week", value, 1, _weeks_in_year(year))
    return local + timedelta(weeks=value - week)


def _weeks_in_year(week_year: int) -> int:
    return date(week_year, 12, 28).isocalendar().week


def _set_weekday(local: datetime, value: int) -> datetime:
    _check("day of week", value, 1, 7)
    return local + timedelta(days=value - local.isoweekday())


def _set_halfday(local: datetime, value: int) -> datetime:
    return local.replace(hour=local.hour % 12 + 12 * value)


def _clock(name: str, duration: int, low: int, high: int, cycle: int) -> Setter:
    """Return a field of the day: `cycle` values of one duration each; a value equal to the cycle is 0 (clock hours)."""
    unit = _TIMES[duration]

    def put(local: datetime, value: int) -> datetime:
        _check(name, value, low, high)
        current = (local - _midnight(local)) // unit % cycle
        return local + (value % cycle - current) * unit

    return put


_FIELDS = {
    "G": _Field(_ERA, _ERA, _set_era),
    "C": _Field(_ERA, _CENTURY, _set_century),
    "y": _Field(_ERA, _YEAR, _set_year),
    "Y": _Field(_ERA, _YEAR, _year_as("year of era")),
    "x": _Field(_ERA, _YEAR, _set_week_year),
    "M": _Field(_YEAR, _MONTH, _set_month),
    "w": _Field(_YEAR, _WEEK, _set_week),
    "D": _Field(_YEAR, _DAY, _set_day_of_year),
    "d": _Field(_MONTH, _DAY, _set_day),
    "e": _Field(_WEEK, _DAY, _set_weekday),
    "a": _Field(_DAY, _HALFDAY, _set_halfday),
    "H": _Field(_DAY, _HOUR, _clock("hour", _HOUR, 0, 23, 24)),
    "k": _Field(_DAY, _HOUR, _clock("clock hour", _HOUR, 1, 24, 24)),
    "K": _Field(_HALFDAY, _HOUR, _clock("hour of half day", _HOUR, 0, 11, 12)),
    "h": _Field(_HALFDAY, _HOUR, _clock("clock hour of half day", _HOUR, 1, 12, 12)),
    "m": _Field(_HOUR, _MINUTE, _clock("minute", _MINUTE, 0, 59, 60)),
    "s": _Field(_MINUTE, _SECOND, _clock("second", _SECOND, 0, 59, 60)),
    "S": _Field(_SECOND, _MILLI, _clock("millisecond", _MILLI, 0, 999, 1000)),
}
