"""The conversion of Java's regular expressions to RE2's, if both mean the same. Any other pattern is refused.

Differences: in Java `.` and `$` recognise five line terminators, `\\s` matches the vertical tab, and `\\b` knows
letters beyond ASCII. Empty matches are counted differently in replacements and splits.

Source: java.util.regex.Pattern (Java 17); RE2's syntax.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyhudi.errors import ConfigError

__all__ = ["Regex", "checked_regex", "quoted_regex", "replacement_of"]

_NO_LINE_END = "[^\\n\\r\u0085\u2028\u2029]"
_SPACES = r"\t\n\x0B\f\r "
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\??")
_ESCAPES = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f", "d": r"[0-9]", "D": r"[^0-9]", "w": r"\w", "W": r"\W"}
_PROPERTIES = re.compile(r"\{(L|Lu|Ll|N|Nd|P|S|Z|M|Lt|Lo|Lm)\}")


@dataclass(frozen=True, slots=True)
class Regex:
    """A checked pattern. `has_end`: it has a `$`, which in RE2 matches only the end of the text; `has_word_end`: it has
    a `\\b`, which in RE2 knows only ASCII letters.
    """

    pattern: str
    groups: int
    has_end: bool
    has_word_end: bool


def checked_regex(pattern: str, *, matches_empty: bool = False) -> Regex:
    """Convert a Java pattern to RE2's.

    Args:   matches_empty: the pattern may match an empty text.
    Raises: ConfigError for a pattern that has, or may have, another meaning in RE2.
    """
    reader = _Reader(pattern)
    reader.read()
    text = "".join(reader.parts)
    try:
        compiled = re.compile(reader.python)
    except re.error as error:
        raise ConfigError(f"the regular expression {pattern!r} is not understood without Spark: {error}.") from None
    if not matches_empty and compiled.match("") is not None:
        raise ConfigError(f"the regular expression {pattern!r} matches an empty text; here that needs Spark.")
    return Regex(text, compiled.groups, reader.has_end, reader.has_word_end)


class _Reader:
    """Reads a pattern once, from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at = pattern, 0
        self.parts: list[str] = []
        self.has_end = self.has_word_end = False

    @property
    def python(self) -> str:
        """The pattern for Python's parser, which counts the groups."""
        text = "".join(self.parts).replace(_NO_LINE_END, ".").replace(r"\z", r"\Z")
        return re.sub(r"\\[pP]\{\w+\}", "a", text)

    def refused(self, what: str) -> ConfigError:
        """The error for an unsupported part of the pattern."""
        return ConfigError(f"the regular expression {self.pattern!r} has {what}, which needs Spark.")

    def read(self) -> None:
        """Read the whole pattern."""
        while self.at < len(self.pattern):
            char = self.pattern[self.at]
            if char == "\\":
                self.parts.append(self._escape(in_class=False))
            elif char == "[":
                self.parts.append(self._class())
            elif char == ".":
                self._take(_NO_LINE_END)
            elif char == "$":
                self.has_end = True
                self._take(r"\z")
            elif char == "(":
                self._group()
            elif char in "*+?{":
                self._quantifier()
            elif char in "}]":
                self._take(f"\\{char}")
            else:
                self._take(char)

    def _take(self, text: str, length: int = 1) -> None:
        self.parts.append(text)
        self.at += length

    def _group(self) -> None:
        remaining = self.pattern[self.at :]
        if not remaining.startswith("(?"):
            self._take("(")
        elif remaining.startswith("(?:"):
            self._take("(?:", 3)
        elif (
            remaining.startswith("(?i)")
            and self.at == 0
            and self.pattern.isascii()
            and not re.search("[kKsS]", remaining[4:])
        ):
            self._take("(?i)", 4)
        else:
            raise self.refused(f"the group {remaining[:4]!r}")

    def _quantifier(self) -> None:
        match = _QUANTIFIER.match(self.pattern, self.at)
        if match is None:
            raise self.refused(f"{self.pattern[self.at :][:3]!r}")
        text = re.sub(r"\{(\d+)\}", r"{\1,\1}", match[0])  # {1} would be an argument's place
        self._take(text, len(match[0]))
        if self.pattern[self.at : self.at + 1] in ("+", "*", "?", "{"):
            raise self.refused("a quantifier that gives nothing back")

    def _escape(self, in_class: bool) -> str:
        char = self.pattern[self.at + 1 : self.at + 2]
        self.at += 2
        if char == "s":
            return _SPACES if in_class else f"[{_SPACES}]"
        if char in ("d", "w") and in_class:
            return {"d": "0-9", "w": r"0-9A-Za-z_"}[char]
        if char in _ESCAPES and not (in_class and char in "DW"):
            return _ESCAPES[char]
        if char == "S" and not in_class:
            return f"[^{_SPACES}]"
        if char in ("p", "P"):
            match = _PROPERTIES.match(self.pattern, self.at)
            if match is not None:
                self.at = match.end()
                return f"\\{char}{match[0]}"
        if char in ("b", "B") and not in_class:
            self.has_word_end = True
            return f"\\{char}"
        if char == "u" and re.fullmatch("[0-9a-fA-F]{4}", self.pattern[self.at : self.at + 4]):
            code, self.at = self.pattern[self.at : self.at + 4], self.at + 4
            return re.escape(chr(int(code, 16)))
        if char == "{":
            return r"\x7B"
        if char and not char.isalnum() and char.isascii():
            return f"\\{char}"
        raise self.refused(f"\\{char}")

    def _class(self) -> str:
        start = self.at
        self.at += 1
        parts = ["["]
        if self.pattern[self.at : self.at + 1] == "^":
            parts.append("^")
            self.at += 1
        first = True
        while True:
            char = self.pattern[self.at : self.at + 1]
            if not char:
                raise self.refused(f"{self.pattern[start:]!r}, which is not closed,")
            if char == "]" and not first:
                break
            if char in "[]" or self.pattern.startswith("&&", self.at):
                raise self.refused("a set in a set")
            if char == "\\":
                parts.append(self._escape(in_class=True))
            else:
                parts.append(r"\x7B" if char == "{" else f"\\{char}" if char == "^" and not first else char)
                self.at += 1
            first = False
        self.at += 1
        return "".join([*parts, "]"])


def quoted_regex(regex: Regex) -> str:
    """Quote the pattern as DuckDB's text, in which no brace is an argument's place."""
    return "'" + regex.pattern.replace("'", "''") + "'"


def replacement_of(text: str, groups: int) -> str:
    """Convert Java's replacement (`$1`, `\\\\$`) to RE2's (`\\\\1`), as DuckDB's text.

    Raises: ConfigError for a group that does not exist.
    """
    parts, at = [], 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
            if at == len(text):
                raise ConfigError(f"the replacement {text!r} ends with a backslash.")
            parts.append(text[at].replace("\\", "\\\\"))
            at += 1
        elif char == "$":
            match = re.match(r"\d", text[at + 1 :])
            if match is None or int(match[0]) > groups:
                raise ConfigError(f"the replacement {text!r} names a group; the regular expression has {groups}.")
            number, at = int(match[0]), at + 2
            while at < len(text) and text[at].isdigit() and number * 10 + int(text[at]) <= groups:
                number, at = number * 10 + int(text[at]), at + 1
            if number > 9:
                raise ConfigError(f"the replacement {text!r} names group {number}; without Spark there are 9.")
            parts.append(f"\\{number}")
        else:
            parts.append(char)
            at += 1
    return "'" + "".join(parts).replace("'", "''") + "'"
