"""Date patterns of Joda-Time: tokens, and printing an instant with them.

`yyyy-MM-dd'T'HH:mm:ss.SSSZ` and the like; letters G C x y Y M d D E e w a h H k K m s S z Z, text in English as Hudi's
Java prints it. Years before 1 and past 9999 are refused. Parsing is in joda_parse.py. Source: docs/formats/keys.md,
"Times"; Joda-Time's documentation of DateTimeFormat; checked against Joda-Time 2.14.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from pyhudi.errors import ConfigError
from pyhudi.java.time_zones import EPOCH, Zone, offset_text

__all__ = [
    "LONG_DAYS",
    "LONG_MONTHS",
    "FarYearError",
    "PatternToken",
    "finest_ms",
    "format_instant",
    "is_number",
    "shows_zone",
    "tokenize",
]

LONG_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
LONG_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_LETTERS = "GCxyYMdDEewahHkKmsSzZ"
_MILLIS_PER_DAY = 86_400_000
_TOKEN = re.compile(r"([A-Za-z])\1*|(?:''|'(?:[^']|'')*(?:'|$)|[^A-Za-z'])+")
_QUOTED = re.compile(r"''|'((?:[^']|'')*)(?:'|$)")


class FarYearError(ValueError):
    """A local time before year 1 or past 9999."""


@dataclass(frozen=True, slots=True)
class PatternToken:
    """A run of one letter, or literal text (`letter` is "")."""

    letter: str
    text: str

    @property
    def count(self) -> int:
        return len(self.text)


@lru_cache(maxsize=256)
def tokenize(pattern: str) -> tuple[PatternToken, ...]:
    """Return tokens of a pattern. Raises ConfigError for an empty pattern and unknown letters."""
    if not pattern:
        raise ConfigError("A date format is empty; write a pattern such as yyyy-MM-dd.")
    tokens = []
    for match in _TOKEN.finditer(pattern):
        letter = match.group(1) or ""
        if letter and letter not in _LETTERS:
            raise ConfigError(
                f"Date format {pattern!r}: {match.group()!r} is not a pattern letter of Joda-Time. "
                f"Letters: {' '.join(_LETTERS)}; quote literal text, as in yyyy-MM-dd'T'HH."
            )
        if letter == "z" and len(match.group()) > 3:
            raise ConfigError(f"Date format {pattern!r}: long zone names (zzzz) differ between Java versions; use z.")
        tokens.append(PatternToken(letter, match.group() if letter else _unquote(match.group())))
    return tuple(tokens)


def _unquote(text: str) -> str:
    return _QUOTED.sub(lambda match: "'" if match.group() == "''" else match.group(1).replace("''", "'"), text)


def is_number(token: PatternToken) -> bool:
    """True for letters that print digits only."""
    return token.letter in tuple("CxyYdhHmsSeDwkK") or (token.letter == "M" and token.count <= 2)


def shows_zone(pattern: str) -> bool:
    """True when the text depends on the zone beyond its local time."""
    return any(token.letter in ("z", "Z") for token in tokenize(pattern))


def finest_ms(pattern: str) -> int:
    """Return milliseconds in the smallest field that the pattern shows: local times cut to it print the same."""
    letters = {token.letter for token in tokenize(pattern)}
    if "S" in letters:
        return 1
    if "s" in letters:
        return 1000
    if "m" in letters:
        return 60_000
    return 3_600_000 if letters & set("ahHkK") else _MILLIS_PER_DAY


def format_instant(pattern: str, utc_ms: int, zone: Zone) -> str:
    """Return the text of an instant in a zone. Raises FarYearError for local times outside the years 1 to 9999."""
    try:
        local = _Local(EPOCH + timedelta(milliseconds=utc_ms + zone.offset_at(utc_ms)), utc_ms, zone)
    except OverflowError as error:
        raise FarYearError(
            f"the epoch milliseconds {utc_ms} are a time outside the years 1 to 9999 in {zone.id}, so format "
            f"{pattern!r} can't print it"
        ) from error
    return "".join(
        [token.text if not token.letter else _PRINT[token.letter](local, token) for token in tokenize(pattern)]
    )


@dataclass(frozen=True, slots=True)
class _Local:
    """A local date and time, with its zone and instant."""

    time: datetime
    utc_ms: int
    zone: Zone


Printer = Callable[[_Local, PatternToken], str]


def _number(value: Callable[[datetime], int]) -> Printer:
    return lambda local, token: f"{value(local.time):0{token.count}d}"


def _year(value: Callable[[datetime], int]) -> Printer:
    full = _number(value)
    return lambda local, token: f"{value(local.time) % 100:02d}" if token.count == 2 else full(local, token)


def _month(local: _Local, token: PatternToken) -> str:
    if token.count < 3:
        return f"{local.time.month:0{token.count}d}"
    name = LONG_MONTHS[local.time.month - 1]
    return name if token.count > 3 else name[:3]


def _weekday(local: _Local, token: PatternToken) -> str:
    name = LONG_DAYS[local.time.weekday()]
    return name if token.count > 3 else name[:3]


def _fraction(local: _Local, token: PatternToken) -> str:
    return f"{local.time.microsecond // 1000:03d}".ljust(token.count, "0")[: token.count]


def _zone_offset(local: _Local, token: PatternToken) -> str:
    if token.count > 2:
        return local.zone.id
    colon = token.count == 2
    return offset_text(local.zone.offset_at(local.utc_ms), colon=colon)[: 6 if colon else 5]  # never seconds


_PRINT: dict[str, Printer] = {
    "G": lambda local, token: "AD",
    "C": _number(lambda time: time.year // 100),
    "x": _year(lambda time: time.isocalendar().year),
    "y": _year(lambda time: time.year),
    "Y": _year(lambda time: time.year),
    "M": _month,
    "d": _number(lambda time: time.day),
    "D": _number(lambda time: time.timetuple().tm_yday),
    "E": _weekday,
    "e": _number(lambda time: time.isoweekday()),
    "w": _number(lambda time: time.isocalendar().week),
    "a": lambda local, token: "AM" if local.time.hour < 12 else "PM",
    "h": _number(lambda time: (time.hour + 11) % 12 + 1),
    "H": _number(lambda time: time.hour),
    "k": _number(lambda time: time.hour or 24),
    "K": _number(lambda time: time.hour % 12),
    "m": _number(lambda time: time.minute),
    "s": _number(lambda time: time.second),
    "S": _fraction,
    "z": lambda local, token: local.zone.short_name(local.utc_ms),
    "Z": _zone_offset,
}
