"""Spark's patterns of dates and times (`yyyy-MM-dd HH:mm:ss.SSS`) as DuckDB's text, for formatting and parsing.

A pattern with an unknown letter is refused. Spark refuses weeks and their years as well.

Source: Spark's SQL reference, "Datetime Patterns".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pyhudi.errors import ConfigError

__all__ = ["printed", "read_time"]

_MOST_CHARS = 1_000


def _pieces(pattern: str) -> Iterator[tuple[str, bool]]:
    """Split a pattern into runs of one letter (True) and the texts between them (False). Raises ConfigError."""
    if len(pattern) > _MOST_CHARS:
        raise ConfigError(f"a pattern of {len(pattern)} characters; expected at most {_MOST_CHARS}.")
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "'":
            end, text = at + 1, ""
            while True:
                close = pattern.find("'", end)
                if close < 0:
                    raise ConfigError(f"the pattern {pattern!r} has a quote that is not closed.")
                text += pattern[end:close]
                if pattern[close + 1 : close + 2] != "'":
                    break
                text, end = text + "'", close + 2
            yield text or "'", False
            at = close + 1
        elif char.isascii() and char.isalpha():
            match = re.compile(f"{char}+").match(pattern, at)
            assert match is not None
            yield match[0], True
            at = match.end()
        elif char in "[]{}#":
            raise ConfigError(f"the pattern {pattern!r} has {char}, which needs Spark.")
        else:
            yield char, False
            at += 1


def _refused(pattern: str, letters: str) -> ConfigError:
    return ConfigError(
        f"the pattern {pattern!r} has {letters!r}, which Spark refuses or which needs Spark. Known without it: "
        "y, M, L, d, D, E, a, H, h, k, K, m, s, S, Q, q, G, F, X, x, z and V."
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _digits(value: str, width: int) -> str:
    return f"lpad(CAST({value} AS VARCHAR), CAST(greatest({width}, length(CAST({value} AS VARCHAR))) AS INTEGER), '0')"


_NUMBERS: Mapping[str, tuple[str, int]] = {  # letter: the number in the time t, the greatest number of letters
    "d": ("day(t)", 2),
    "D": ("dayofyear(t)", 3),
    "H": ("hour(t)", 2),
    "h": ("((hour(t) + 11) % 12 + 1)", 2),
    "k": ("((hour(t) + 23) % 24 + 1)", 2),
    "K": ("(hour(t) % 12)", 2),
    "m": ("minute(t)", 2),
    "s": ("CAST(floor(second(t)) AS INTEGER)", 2),
    "F": ("((day(t) - 1) % 7 + 1)", 1),
}


def printed(pattern: str, zone: str = "UTC", *, has_zone: bool = True) -> str:
    """DuckDB's text that formats a time `t` (a TIMESTAMP). Raises ConfigError for a pattern with unknown letters."""
    parts = [
        _printed(pattern, text, zone, has_zone) if is_letters else _quoted(text)
        for text, is_letters in _pieces(pattern)
    ]
    text = " || ".join(parts) or "''"
    return f"CASE WHEN (t) IS NOT NULL THEN {text} END"


def _printed(pattern: str, letters: str, zone: str, has_zone: bool) -> str:
    letter, count = letters[0], len(letters)
    if letter in _NUMBERS and count <= _NUMBERS[letter][1]:
        return _digits(_NUMBERS[letter][0], count)
    if letter == "y" and count <= 6 and count != 2:
        return f"CASE WHEN year(t) BETWEEN 1 AND 9999 THEN {_digits('year(t)', count)} ELSE error('this year') END"
    if letter == "y" and count == 2:
        return _digits("(year(t) % 100)", 2)
    if letter in "ML" and count <= 2:
        return _digits("month(t)", count)
    if letter in "ML" and count <= 4:
        return f"strftime(t, '{'%b' if count == 3 else '%B'}')"
    if letter == "E" and count <= 4:
        return f"strftime(t, '{'%a' if count <= 3 else '%A'}')"
    if letter == "a" and count == 1:
        return "(CASE WHEN hour(t) < 12 THEN 'AM' ELSE 'PM' END)"
    if letter == "S" and count <= 9:
        return f"rpad(strftime(t, '%f'), {count}, '0')" if count > 6 else f"left(strftime(t, '%f'), {count})"
    if letter in "Qq" and count <= 4:
        quarter = "CAST(quarter(t) AS VARCHAR)"
        ends = "['st', 'nd', 'rd', 'th'][quarter(t)]"
        return {
            1: quarter,
            2: f"('0' || {quarter})",
            3: f"('Q' || {quarter})",
            4: f"({quarter} || {ends} || ' quarter')",
        }[count]
    if letter == "G" and count <= 3:
        return "(CASE WHEN year(t) > 0 THEN 'AD' ELSE 'BC' END)"
    if has_zone and zone == "UTC":
        if letter == "X" and count <= 5:
            return "'Z'"
        if letter == "x" and count <= 5:
            return _quoted("+00" if count == 1 else "+0000" if count in (2, 4) else "+00:00")
        if (letter == "z" and count <= 3) or letters == "VV":
            return "'UTC'"
        if letter == "Z" and count <= 3:
            return "'+0000'"
    raise _refused(pattern, letters)


# Letters: the regular expression that they match, and the part of a time that its group holds.
# {2,2} stands for {2}, which would be an argument's place.
_Reader = tuple[str, str]
_READERS: Mapping[str, _Reader] = {
    "yyyy": (r"(\d{4,4})", "year"),
    "yy": (r"(\d{2,2})", "year of 2000"),
    "M": (r"(\d{1,2})", "month"),
    "MM": (r"(\d{2,2})", "month"),
    "MMM": ("(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)", "month's name"),
    "MMMM": (
        "(January|February|March|April|May|June|July|August|September|October|November|December)",
        "month's name",
    ),
    "d": (r"(\d{1,2})", "day"),
    "dd": (r"(\d{2,2})", "day"),
    "H": (r"(\d{1,2})", "hour"),
    "HH": (r"(\d{2,2})", "hour"),
    "h": (r"(\d{1,2})", "hour of 12"),
    "hh": (r"(\d{2,2})", "hour of 12"),
    "a": ("(AM|PM)", "half"),
    "m": (r"(\d{1,2})", "minute"),
    "mm": (r"(\d{2,2})", "minute"),
    "s": (r"(\d{1,2})", "second"),
    "ss": (r"(\d{2,2})", "second"),
    "XXX": (r"(Z|[+-]\d{2,2}:\d{2,2})", "zone"),
}
_MONTH = "(position(upper({0}[1:3]) IN 'JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC') + 2) // 3"


def read_time(pattern: str) -> tuple[str, str]:
    """The regular expression that a whole text of this pattern matches, and DuckDB's text that makes a time of it.

    The second text calls the input `v` and is a TIMESTAMP. If the pattern has a zone, `{zone}` marks its place.

    Raises: ConfigError for a pattern with unknown letters.
    """
    regex, groups = [], dict[str, int]()
    for text, is_letters in _pieces(pattern):
        if not is_letters:
            regex.append(re.sub(r"([^\w\s])", r"\\\1", text))
            continue
        reader = _READERS.get(text)
        if text.strip("S") == "" and len(text) <= 6:
            reader = (rf"(\d{{{len(text)},{len(text)}}})", "fraction")
        if reader is None or reader[1] in groups:
            raise _refused(pattern, text)
        regex.append(reader[0])
        groups[reader[1]] = len(groups) + 1
    return "".join(regex), _time_of_groups(pattern, "".join(regex), groups)


def _time_of_groups(pattern: str, regex: str, groups: Mapping[str, int]) -> str:
    def part(name: str, default: str) -> str:
        if name not in groups:
            return default
        return f"CAST(regexp_extract(v, '^{_escaped(regex)}$', {groups[name]}) AS INTEGER)"

    def text(name: str) -> str:
        return f"regexp_extract(v, '^{_escaped(regex)}$', {groups[name]})"

    if "year" not in groups and "year of 2000" not in groups:
        raise ConfigError(f"the pattern {pattern!r} without a year needs Spark.")
    year = part("year", f"2000 + {part('year of 2000', '0')}")
    month = _MONTH.replace("{0}", text("month's name")) if "month's name" in groups else part("month", "1")
    hour = part("hour", "0")
    if "hour of 12" in groups:
        if "half" not in groups:
            raise ConfigError(f"the pattern {pattern!r} has h without a, which needs Spark.")
        hour = f"{part('hour of 12', '0')} % 12 + CASE {text('half')} WHEN 'PM' THEN 12 ELSE 0 END"
    elif "half" in groups:
        raise ConfigError(f"the pattern {pattern!r} has a without h, which needs Spark.")
    micros = f"CAST(rpad({text('fraction')}, 6, '0') AS BIGINT)" if "fraction" in groups else "0"
    time = f"make_timestamp({year}, {month}, {part('day', '1')}, {hour}, {part('minute', '0')}, {part('second', '0')})"
    local = f"({time} + to_microseconds({micros}))"
    return f"spark_in_zone({local}, {text('zone')})" if "zone" in groups else f"CAST({local} AS TIMESTAMPTZ)"


def _escaped(regex: str) -> str:
    return regex.replace("'", "''")
