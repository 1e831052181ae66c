"""Parsing text with Joda-Time's date patterns.

Numbers take as many digits as they find (`yyyy` reads `24` as the year 24), month and day names any of their usual
spellings, `Z` an offset or the letter Z. Fields are then set from the largest to the smallest on 1970-01-01T00:00, or
in the year 2000 when the largest is a month or a day; a value out of its range is an error. Several formats: the first
whose shape fits the whole text decides, even if its values are then out of range.
Source: docs/formats/keys.md, "Times"; checked against Joda-Time 2.14.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pyhudi.java.calendar import UTC, Zone, fixed_zone, java_zone, region
from pyhudi.java.joda import LONG_DAYS, LONG_MONTHS, PatternToken, is_number, tokenize
from pyhudi.java.joda_fields import FieldError, local_millis

__all__ = ["ParseError", "parse_text"]


class ParseError(ValueError):
    """The text does not fit the formats."""


@dataclass(slots=True)
class _Found:
    """What a parse collects: values by field, in order; an offset or a zone from the text."""

    values: list[tuple[str, int]] = field(default_factory=list)
    offset_ms: int | None = None
    zone: Zone | None = None


Reader = Callable[[str, int, _Found], "int | None"]  # the position behind what was read, None when it doesn't fit


def parse_text(text: str, patterns: Sequence[str], zone: Zone | None, current_year: int) -> tuple[int, Zone]:
    """Instant (epoch milliseconds) and zone of a text.

    Args:    zone: of texts without offset; also the zone of the answer. None: the text's own offset, else UTC.
    Raises:  ParseError when no pattern fits or a value is out of range; SkippedTimeError for skipped local times.
    """
    for pattern in patterns:
        found = _read(text, pattern, current_year)
        if found is not None:
            break
    else:
        raise ParseError(f"the text does not fit {' or '.join(map(repr, patterns))}")
    try:
        local = local_millis(found.values)
    except FieldError as error:
        raise ParseError(f"{error} (format {pattern!r})") from error
    if found.offset_ms is not None:
        return local - found.offset_ms, zone or fixed_zone(found.offset_ms)
    source = found.zone or zone or UTC
    return local - source.offset_of_local(local), zone or source


def _read(text: str, pattern: str, current_year: int) -> _Found | None:
    found, position = _Found(), 0
    for read in _readers(pattern, current_year):
        after = read(text, position, found)
        if after is None:
            return None
        position = after
    return found if position == len(text) else None


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
    def read(text: str, position: int, found: _Found) -> int | None:
        end = position + len(expected)
        return end if text[position:end].casefold() == expected.casefold() else None

    return read


def _number(name: str, max_digits: int, *, signed: bool) -> Reader:
    # A sign does not count as a digit, but there is none before a single one; digits are ASCII, as in Java.
    shape = re.compile(rf"{'[-+]?' if signed and max_digits > 1 else ''}[0-9]{{1,{max_digits}}}")

    def read(text: str, position: int, found: _Found) -> int | None:
        match = shape.match(text, position)
        if match is None:
            return None
        found.values.append((name, int(match.group())))
        return match.end()

    return read


def _two_digit_year(name: str, pivot: int, *, lenient: bool) -> Reader:
    """Two digits are the year nearest to the pivot; with a sign or another number of digits it is the year itself."""
    shape = re.compile("[-+]?[0-9]+" if lenient else "[0-9]{2}")

    def read(text: str, position: int, found: _Found) -> int | None:
        match = shape.match(text, position)
        if match is None:
            return None
        digits = match.group()
        year = int(digits)
        if len(digits) == 2 and digits.isdecimal():
            low = pivot - 50
            year = low + (year - low) % 100
        found.values.append((name, year))
        return match.end()

    return read


def _fraction(max_digits: int) -> Reader:
    shape = re.compile(f"[0-9]{{1,{max_digits}}}")

    def read(text: str, position: int, found: _Found) -> int | None:
        match = shape.match(text, position)
        if match is None:
            return None
        found.values.append(("S", int(match.group().ljust(3, "0")[:3])))
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

    def read(text: str, position: int, found: _Found) -> int | None:
        for spelling in longest_first:
            if text.startswith(spelling, position):
                found.values.append((name, values[spelling]))
                return position + len(spelling)
        return None

    return read


_OFFSET = re.compile(r"([-+])([01][0-9]|2[0-3])(?:(:?)([0-5][0-9])(?:\3([0-5][0-9])(?:[.,]?([0-9]{1,3}))?)?)?")


def _offset(text: str, position: int, found: _Found) -> int | None:
    """`Z`, `+hh`, `+hhmm`, `+hh:mm`, and so on down to milliseconds."""
    if text[position : position + 1] in ("Z", "z"):
        found.offset_ms = 0
        return position + 1
    match = _OFFSET.match(text, position)
    if match is None:
        return None
    sign, hours, _, minutes, seconds, millis = match.groups()
    total = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    offset_ms = total * 1000 + int((millis or "0").ljust(3, "0"))
    found.offset_ms = -offset_ms if sign == "-" else offset_ms
    return match.end()


_ZONE_ID = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")


def _zone_id(text: str, position: int, found: _Found) -> int | None:
    """The longest zone id of the tz database at this place."""
    match = _ZONE_ID.match(text, position)
    end = match.end() if match else position
    while end > position:
        name = text[position:end]
        zone = UTC if name == "UTC" else region(name)
        if zone is not None:
            found.zone = zone
            return end
        end -= 1
    return None


_ZONE_NAMES = {
    "UTC": "UTC",
    "GMT": "UTC",
    "UT": "UTC",
    "EST": "EST",
    "EDT": "EST",
    "CST": "CST",
    "CDT": "CST",
    "MST": "MST",
    "MDT": "MST",
    "PST": "PST",
    "PDT": "PST",
}


def _zone_name(text: str, position: int, found: _Found) -> int | None:
    """The short names that Joda-Time reads without being told more: UTC, GMT and those of North America."""
    for name, zone in _ZONE_NAMES.items():
        if text.startswith(name, position):
            found.zone = java_zone(zone)
            return position + len(name)
    return None
