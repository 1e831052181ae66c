"""Tokens and literals of the SQL text that `sql.py` reads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from pyhudi.errors import ConfigError

__all__ = ["KNOWN", "Token", "number_of", "text_of", "timestamp_of", "tokenize"]

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<hex>[xX]'[0-9a-fA-F]*')
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:[lLdDfF]|[bB][dD])?(?![\w.]))
    | (?P<text>'(?:[^'\\]|\\.|'')*')
    | (?P<quoted>`(?:[^`]|``)+`|"(?:[^"]|"")+")
    | (?P<word>[^\W\d]\w*)
    | (?P<op><=>|<=|>=|<>|!=|==|=|<|>)
    | (?P<mark>[(),.+-])
    )""",
    re.VERBOSE | re.DOTALL,
)
KNOWN = (
    "where knows comparisons, IN, LIKE, BETWEEN and IS NULL, put together by AND, OR and NOT; for more give a "
    "pyarrow.compute expression."
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text; `kind` names the group of the pattern that it matched, or is "end"."""

    kind: str
    text: str
    at: int

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.upper() in words


def tokenize(text: str) -> list[Token]:
    """The tokens of a where text, with one of kind "end" behind them. Raises ConfigError at what is none."""
    tokens, position = [], 0
    end = len(text.rstrip())
    while position < end:
        found = _TOKEN.match(text, position)
        if found is None or found.lastgroup is None:
            at = position + len(text[position:]) - len(text[position:].lstrip())
            if text[at] in "'\"`":
                raise ConfigError(f"where={text!r}: the quote {text[at]} at character {at + 1} is not closed.")
            raise ConfigError(f"where={text!r}: {text[at]!r} at character {at + 1} is not understood. {KNOWN}")
        tokens.append(Token(found.lastgroup, found.group(found.lastgroup), found.start(found.lastgroup)))
        position = found.end()
    tokens.append(Token("end", "", len(text)))
    return tokens


def number_of(text: str) -> int | float | Decimal:
    """Whole numbers are int, `1.5` is exact as in SQL, `1e3` and `1.5D` are doubles."""
    upper = text.upper()
    if upper.endswith("BD"):
        return Decimal(upper[:-2])
    if upper[-1] in "DF":
        return float(upper[:-1])
    if upper[-1] == "L":
        return int(Decimal(upper[:-1]))
    if "E" in upper:
        return float(upper)
    return Decimal(upper) if "." in upper else int(upper)


def text_of(token: str) -> str:
    """The text between the quotes; `\\%` and `\\_` stay escaped, for LIKE."""

    def replace(found: re.Match[str]) -> str:
        char = found.group(0)[1:]
        if char == "'" or found.group(0) == "''":
            return "'"
        if char in "%_":  # stays escaped: it is LIKE's to read
            return "\\" + char
        return _ESCAPES.get(char, char)

    return re.sub(r"\\.|''", replace, token[1:-1], flags=re.DOTALL)


def timestamp_of(text: str) -> datetime:
    """An ISO time. Raises ValueError."""
    return datetime.fromisoformat(text.strip().removesuffix("Z") + ("+00:00" if text.strip().endswith("Z") else ""))
