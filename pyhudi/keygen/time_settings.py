"""Settings of the TIMESTAMP generator, and the path text of one instant or one text under them.

Source: docs/formats/keys.md, "Times".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.java.joda import format_instant, tokenize
from pyhudi.java.joda_parse import parse_text
from pyhudi.java.time_zones import UTC, Zone, java_zone
from pyhudi.storage.clock import SystemClock

__all__ = ["TIMEBASED", "UNITS", "TimeSettings"]

TIMEBASED = "hoodie.keygen.timebased."

# Milliseconds of one unit, as a fraction; results are cut towards zero.
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
_MARK = "\x00"  # in no date format
_MILLIS_PER_YEAR = 31_556_952_000


@dataclass(frozen=True, slots=True)
class TimeSettings:
    """What the options say about time.

    Fields:  unit: None for types that read text only; input_zone, output_zone: None when not given;
             current_year: years of two digits are read as the nearest to thirty years before it, as Joda-Time does.
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
        """Read settings, given without their prefix. Raises ConfigError for missing, unknown and contradictory ones."""
        kind = settings.get("timestamp.type", "").strip()
        if kind not in _TYPES:
            found = f"is {kind!r}" if kind else "is missing"
            raise ConfigError(
                f"{TIMEBASED}timestamp.type {found}; expected one of {', '.join(_TYPES)} (in capitals). Hudi does not "
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
        """Zone in which numbers are shown; UTC when none is given (Hudi: the zone of its Java process)."""
        return self.output_zone or UTC

    def text_path(self, text: str) -> str:
        """Path text of an input text. Raises ParseError, SkippedTimeError or FarYearError."""
        millis, zone = parse_text(text, self.input_formats, self.input_zone, self.current_year)
        return format_instant(self.output_format, millis, self.output_zone or zone)

    def null_path(self) -> str:
        """Path text of null: of the number 1, or of the first millisecond written and read in the input format."""
        if self.unit is not None:
            multiplier, divisor = UNITS[self.unit]
            return format_instant(self.output_format, multiplier // divisor, self.number_zone)
        zone = self.input_zone or self.output_zone or UTC
        return self.text_path(format_instant(self.input_formats[0], 1, zone))


def _input_formats(settings: Mapping[str, str]) -> tuple[str, ...]:
    delimiter = settings.get("input.dateformat.list.delimiter.regex", "").strip() or ","
    try:
        # The expression may come with a table, so it goes to an engine whose time is linear in the text. Marked and
        # then split: Arrow's own split by an expression never ends where that matches no text.
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
