"""Tokens and literals of the SQL text that `sql.py` reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation

from pyhudi.errors import ConfigError
from pyhudi.model.predicate.limits import MAX_NUMBER_DIGITS, MAX_TOKENS, MAX_WHERE_CHARS, excerpt, shown

__all__ = ["KNOWN", "Token", "has_too_many_digits", "number_of", "text_of", "timestamp_of", "tokenize"]

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<hex>[xX]'[0-9a-fA-F]*')
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:[lLdDfF]|[bB][dD])?(?![\w.]))
    | (?P<text>'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'|"[^"\\]*(?:(?:\\.|"")[^"\\]*)*")
    | (?P<quoted>`(?=[^`]|``)[^`]*(?:``[^`]*)*`)
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


def tokenize(text: str) -> Iterator[Token]:
    """The tokens of a where text, with one of kind "end" behind them. Raises ConfigError at what is none."""
    if len(text) > MAX_WHERE_CHARS:
        raise ConfigError(f"where is a text of {len(text)} characters; expected at most {MAX_WHERE_CHARS}.")
    count, position = 0, 0
    end = len(text.rstrip())
    while position < end:
        found = _TOKEN.match(text, position)
        if found is None or found.lastgroup is None:
            at = position + len(text[position:]) - len(text[position:].lstrip())
            where = f"where={excerpt(text, at)}"
            if text[at] in "'\"`":
                raise ConfigError(f"{where}: the quote {text[at]} at character {at + 1} is not closed.")
            raise ConfigError(f"{where}: {text[at]!r} at character {at + 1} is not understood. {KNOWN}")
        count += 1
        if count > MAX_TOKENS:
            raise ConfigError(f"where has more than {MAX_TOKENS} words, numbers and signs; expected at most as many.")
        yield Token(found.lastgroup, found.group(found.lastgroup), found.start(found.lastgroup))
        position = found.end()
    yield Token("end", "", len(text))


def number_of(text: str) -> int | float | Decimal:
    """Whole numbers are int, `1.5` is exact as in SQL, `1e3` and `1.5D` are doubles.

    Raises ConfigError for one that is exact and has more than MAX_NUMBER_DIGITS digits.
    """
    upper = text.upper()
    if upper[-1] in "DF" and not upper.endswith("BD"):
        return float(upper[:-1])
    if "E" in upper and upper[-1] not in "DL":
        return float(upper)
    try:
        exact = Decimal(upper.rstrip("BDL"))
    except InvalidOperation:  # an exponent of twenty digits
        exact = None
    if exact is None or has_too_many_digits(exact):
        raise ConfigError(f"where has the number {shown(text)}; expected at most {MAX_NUMBER_DIGITS} digits.")
    if upper[-1] == "L":
        return int(exact)
    return exact if upper[-1] == "D" or "." in upper else int(exact)


def has_too_many_digits(number: int | Decimal) -> bool:
    """More than MAX_NUMBER_DIGITS before or behind the point, written out."""
    if isinstance(number, int):
        return number.bit_length() > MAX_NUMBER_DIGITS * 10 // 3  # a digit is a little more than 10/3 bits
    if not number.is_finite():
        return False
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), number
    return len(digits) + max(0, exponent) > MAX_NUMBER_DIGITS or -exponent > MAX_NUMBER_DIGITS


def text_of(token: str) -> str:
    """The text between the quotes, single or double ones; `\\%` and `\\_` stay escaped, for LIKE."""
    quote = token[0]

    def replace(found: re.Match[str]) -> str:
        char = found.group(0)[1:]
        if found.group(0) == quote * 2:
            return quote
        if char in "%_":  # stays escaped: it is LIKE's to read
            return "\\" + char
        return _ESCAPES.get(char, char)

    return re.sub(rf"\\.|{quote * 2}", replace, token[1:-1], flags=re.DOTALL)


def timestamp_of(text: str) -> datetime:
    """An ISO time. Raises ValueError."""
    return datetime.fromisoformat(text.strip().removesuffix("Z") + ("+00:00" if text.strip().endswith("Z") else ""))
