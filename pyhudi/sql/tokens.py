"""The tokens of an SQL text with their positions, and a cursor over them: names, constants, lists, properties, and
clauses in the user's own text.

Source: Spark's SQL reference, "Literals", "Identifiers", "Comments", "CREATE TABLE".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from pyhudi.errors import ConfigError
from pyhudi.expressions.where_text import number_of
from pyhudi.model.sql_text import MisreadSql, spark_tokens
from pyhudi.sql.session import TableName

if TYPE_CHECKING:
    from sqlglot.tokens import Token

__all__ = ["Constant", "Reader", "SqlToken", "TokenKind", "constant_of", "dotted_at", "keywords", "tokens_of"]


# A generated MERGE of some thousand columns has about 1 MB; each token is two Python objects of some 400 bytes.
MAX_STATEMENT_CHARACTERS = 4 << 20
_FIRST_CHARACTERS = 256


class TokenKind(Enum):
    """The kind of a token. WORD: a keyword or a plain identifier; NAME: an identifier in backticks."""

    WORD = "word"
    NAME = "name"
    TEXT = "text"
    NUMBER = "number"
    BYTES = "bytes"
    SYMBOL = "symbol"


@dataclass(frozen=True, slots=True)
class SqlToken:
    """One token of a statement: `text[start:end]`. `value`: its value, without quotes and escapes."""

    kind: TokenKind
    text: str
    start: int
    end: int
    value: str

    @property
    def is_name(self) -> bool:
        """True if it can be a part of a name, as keywords can."""
        return self.kind in (TokenKind.WORD, TokenKind.NAME)

    def is_word(self, *words: str) -> bool:
        """True for one of these keywords, in upper case."""
        return self.kind is TokenKind.WORD and self.text.upper() in words

    def is_symbol(self, symbol: str) -> bool:
        return self.kind is TokenKind.SYMBOL and self.text == symbol


_KINDS = {
    "STRING": TokenKind.TEXT,
    "RAW_STRING": TokenKind.TEXT,
    "NATIONAL_STRING": TokenKind.TEXT,
    "HEX_STRING": TokenKind.BYTES,
    "NUMBER": TokenKind.NUMBER,
    "IDENTIFIER": TokenKind.NAME,
}


def tokens_of(text: str, most: int | None = None) -> list[SqlToken]:
    """The tokens of a statement, without comments. `most`: the maximum number to read.

    Raises: ConfigError for a text that is too long, or ends inside a comment or a quoted text.
    """
    if len(text) > MAX_STATEMENT_CHARACTERS:
        raise ConfigError(
            f"The statement has {len(text):,} characters; at most {MAX_STATEMENT_CHARACTERS:,} are taken. Put its rows "
            "into a table or a view."
        )
    size = _FIRST_CHARACTERS if most is not None else len(text)
    while True:
        is_whole = size >= len(text)
        try:
            tokens = spark_tokens(text[:size])
        except MisreadSql as error:
            if is_whole:
                raise ConfigError(f"SQL: {error.what}.") from None
        else:
            if most is None or is_whole or len(tokens) > most:
                return [_token(text, token) for token in tokens[:most]]
        size *= 4


def _token(text: str, token: Token) -> SqlToken:
    kind = _KINDS.get(token.token_type.name)
    characters = text[token.start : token.end + 1]
    if kind is None:
        kind = TokenKind.WORD if characters.replace("_", "a").isalnum() else TokenKind.SYMBOL
    return SqlToken(kind, characters, token.start, token.end + 1, token.text)


def dotted_at(tokens: Sequence[SqlToken], place: int) -> tuple[tuple[str, ...], int]:
    """The parts of a dotted name that begins at a token, without backticks, and the position after it."""
    parts = [tokens[place].value]
    place += 1
    while place + 1 < len(tokens) and tokens[place].is_symbol(".") and tokens[place + 1].is_name:
        parts.append(tokens[place + 1].value)
        place += 2
    return tuple(parts), place


def keywords(words: str) -> frozenset[str]:
    """The words of a list, in upper case."""
    return frozenset(words.split())


_OPENING, _CLOSING = frozenset("(["), frozenset(")]")
_EXCERPT_CHARACTERS = 60


class Reader:
    """A cursor over the tokens of one statement. Positions (`at`, and the results of `find`) are indexes of tokens.

    A missing token is a ConfigError that names the position, the expected token and the actual token.
    """

    __slots__ = ("at", "stop", "text", "tokens")

    def __init__(self, text: str, tokens: Sequence[SqlToken], at: int = 0, stop: int | None = None) -> None:
        self.text, self.tokens, self.at = text, tokens, at
        self.stop = len(tokens) if stop is None else stop

    # ---- one token

    @property
    def at_end(self) -> bool:
        return self.at >= self.stop

    def peek(self, ahead: int = 0) -> SqlToken | None:
        """The next token, or one `ahead` of it; None after the last."""
        place = self.at + ahead
        return self.tokens[place] if place < self.stop else None

    def take(self, expected: str) -> SqlToken:
        """Take the next token, of any kind; `expected` is for the error at the end of the text."""
        token = self.peek()
        if token is None:
            raise self.error(expected)
        self.at += 1
        return token

    def sees(self, words: str) -> bool:
        """True if these words, in upper case, come next: `sees("IF NOT EXISTS")`."""
        return self.words_at(self.at, words)

    def words_at(self, place: int, words: str) -> bool:
        """True if these words are at a position."""
        phrase = words.split()
        if place + len(phrase) > self.stop:
            return False
        return all(self.tokens[place + index].is_word(word) for index, word in enumerate(phrase))

    def accept(self, words: str) -> bool:
        """Skip these words if they come next; True if they did."""
        if not self.sees(words):
            return False
        self.at += len(words.split())
        return True

    def expect(self, words: str) -> None:
        if not self.accept(words):
            raise self.error(words)

    def sees_symbol(self, symbol: str) -> bool:
        token = self.peek()
        return token is not None and token.is_symbol(symbol)

    def accept_symbol(self, symbol: str) -> bool:
        if not self.sees_symbol(symbol):
            return False
        self.at += 1
        return True

    def expect_symbol(self, symbol: str) -> None:
        if not self.accept_symbol(symbol):
            raise self.error(repr(symbol))

    def expect_end(self) -> None:
        if not self.at_end:
            raise self.error("the end of the statement")

    def error(self, expected: str) -> ConfigError:
        """The error to raise if something else was expected here."""
        token = self.peek()
        if token is None:
            return ConfigError(f"SQL: expected {expected}, found the end of: {_short(self.text)}")
        line = self.text.count("\n", 0, token.start) + 1
        column = token.start - self.text.rfind("\n", 0, token.start)
        return ConfigError(
            f"SQL, line {line}, character {column}: expected {expected}, found {_short(self.text[token.start :])}"
        )

    @property
    def remaining_text(self) -> str:
        """The text from here on; "" at the end."""
        return "" if self.at_end else self.text[self.tokens[self.at].start : self.tokens[self.stop - 1].end]

    # ---- names and values

    def identifier(self, expected: str = "a name") -> str:
        """Read one part of a name, without its backticks."""
        token = self.peek()
        if token is None or not token.is_name:
            raise self.error(expected)
        self.at += 1
        return token.value

    def dotted(self, expected: str = "a name") -> tuple[str, ...]:
        """Read a name of one or several parts, such as a nested column's."""
        parts = [self.identifier(expected)]
        while self.accept_symbol("."):
            parts.append(self.identifier(expected))
        return tuple(parts)

    def table_name(self) -> TableName:
        """Read the name of a table, or hudi.`/path`."""
        return TableName(self.dotted("the name of a table"))

    def value(self, expected: str = "a value") -> str:
        """Read a literal as text: a quoted text (adjacent ones are one), a number, true, false, null, a word."""
        token = self.peek()
        if token is None:
            raise self.error(expected)
        if token.kind is TokenKind.TEXT:
            parts = []
            while (token := self.peek()) is not None and token.kind is TokenKind.TEXT:
                parts.append(token.value)
                self.at += 1
            return "".join(parts)
        sign = "-" if token.is_symbol("-") else ""
        if sign or token.is_symbol("+"):
            self.at += 1
            token = self.peek()
        if token is None or token.kind not in ((TokenKind.NUMBER,) if sign else (TokenKind.NUMBER, TokenKind.WORD)):
            raise self.error(expected)
        self.at += 1
        return sign + token.text

    def properties(self) -> dict[str, str]:
        """Read a list in parentheses: `('k' = 'v', k.x = 1, k 'v')`. Raises ConfigError for a duplicate key."""
        properties: dict[str, str] = {}
        self.expect_symbol("(")
        while not self.accept_symbol(")"):
            key = self.property_key()
            if key in properties:
                raise ConfigError(f"SQL: the property {key!r} is given twice.")
            self.accept_symbol("=")
            properties[key] = self.value(f"the value of the property {key!r}")
            if not self.sees_symbol(")"):
                self.expect_symbol(",")
        return properties

    def property_key(self) -> str:
        """Read the key of a property: one quoted text (its value may follow directly), or a dotted name."""
        token = self.peek()
        if token is not None and token.kind is TokenKind.TEXT:
            self.at += 1
            return token.value
        return ".".join(self.dotted("the key of a property"))

    def names(self) -> tuple[str, ...]:
        """Read a list of plain names in parentheses."""
        names = []
        for part in self.parts():
            names.append(part.identifier())
            part.expect_end()
        return tuple(names)

    # ---- clauses

    def parts(self, separator: str = ",") -> Iterator[Reader]:
        """Skip a list in parentheses; return a cursor over each item."""
        inside = self.parenthesised()
        if inside.at_end:
            return
        yield from inside.split(separator)

    def parenthesised(self) -> Reader:
        """Skip the next parentheses; return a cursor over their inside."""
        self.expect_symbol("(")
        start = self.at
        end = self._closing(start)
        self.at = end + 1
        return Reader(self.text, self.tokens, start, end)

    def split(self, separator: str = ",") -> Iterator[Reader]:
        """Skip the rest; return a cursor over each part between separators outside of parentheses."""
        start = self.at
        for place in self._outside():
            if self.tokens[place].is_symbol(separator):
                yield Reader(self.text, self.tokens, start, place)
                start = place + 1
        self.at = self.stop
        yield Reader(self.text, self.tokens, start, self.stop)

    def find(self, *phrases: str, start: int | None = None) -> int | None:
        """The position of the first of these phrases (in upper case) outside of parentheses and CASE."""
        for place in self._outside(start):
            if any(self.words_at(place, phrase) for phrase in phrases):
                return place
        return None

    def until(self, *phrases: str) -> Reader:
        """Skip up to the first of these phrases, or to the end; return a cursor over the skipped part."""
        place = self.find(*phrases)
        inside = Reader(self.text, self.tokens, self.at, self.stop if place is None else place)
        self.at = inside.stop
        return inside

    def words(self) -> str:
        """Skip the rest; return it in the user's own text."""
        text = self.cut(self.at, self.stop)
        self.at = self.stop
        return text

    def cut(self, start: int, stop: int) -> str:
        """The user's own text from one token up to another, which is excluded."""
        return "" if start >= stop else self.text[self.tokens[start].start : self.tokens[stop - 1].end]

    def _outside(self, start: int | None = None) -> Iterator[int]:
        """The positions of tokens outside of parentheses, brackets and CASE."""
        depth = cases = 0
        for place in range(self.at if start is None else start, self.stop):
            token = self.tokens[place]
            if token.kind is TokenKind.SYMBOL:
                if token.text in _OPENING:
                    depth += 1
                    continue
                if token.text in _CLOSING:
                    depth -= 1
                    continue
            if depth:
                continue
            if token.is_word("CASE"):
                cases += 1
            elif cases and token.is_word("END"):
                cases -= 1
            elif not cases:
                yield place

    def _closing(self, start: int) -> int:
        depth = 1
        for place in range(start, self.stop):
            token = self.tokens[place]
            if token.kind is TokenKind.SYMBOL:
                depth += (token.text == "(") - (token.text == ")")
                if depth == 0:
                    return place
        self.at = self.stop
        raise self.error("')'")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= _EXCERPT_CHARACTERS else line[: _EXCERPT_CHARACTERS - 3] + "...")


# A constant in a statement.
Constant: TypeAlias = "str | int | float | Decimal | bool | date | datetime | None"


def constant_of(tokens: Sequence[SqlToken]) -> Constant:
    """Read the value of one constant; adjacent texts are one text.

    Raises: ConfigError for anything else, such as an expression.
    """
    characters = " ".join(token.text for token in tokens)
    not_constant = ConfigError(
        f"Expected a constant (a text, a number, TRUE, FALSE, NULL, DATE '…'), found {characters!r:.200}."
    )
    if not tokens:
        raise not_constant
    first, following = tokens[0], tokens[1:]
    if all(token.kind is TokenKind.TEXT for token in tokens):
        return "".join(token.value for token in tokens)
    if (
        first.kind is TokenKind.SYMBOL
        and first.text in "+-"
        and len(following) == 1
        and following[0].kind is TokenKind.NUMBER
    ):
        value = number_of(following[0].text)
        return -value if first.text == "-" else value
    if len(tokens) == 1 and first.kind is TokenKind.NUMBER:
        return number_of(first.text)
    if len(tokens) == 1 and first.is_word("TRUE", "FALSE", "NULL"):
        return {"TRUE": True, "FALSE": False, "NULL": None}[first.text.upper()]
    if (
        len(following) == 1
        and following[0].kind is TokenKind.TEXT
        and first.is_word("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
    ):
        text = following[0].value
        try:
            return date.fromisoformat(text) if first.is_word("DATE") else datetime.fromisoformat(text)
        except ValueError as error:
            raise ConfigError(f"{characters!r:.200}: {error}.") from error
    raise not_constant
