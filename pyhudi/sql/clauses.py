"""A statement's tokens read one after the other: names, lists, properties, and clauses in the user's own characters.

Source: Spark's SQL reference, "Identifiers", "Literals", "CREATE TABLE".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyhudi.errors import ConfigError
from pyhudi.sql.session import TableName
from pyhudi.sql.tokens import SqlToken, TokenKind

__all__ = ["Reader"]

_OPENING, _CLOSING = frozenset("(["), frozenset(")]")
_SHOWN_CHARACTERS = 60


class Reader:
    """A cursor over the tokens of one statement. Places (`at`, and what `find` returns) are indexes of tokens.

    What it expects and does not find is a ConfigError that says what, where, and what is there instead.
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
        """The token that comes, or one behind it; None after the last."""
        place = self.at + ahead
        return self.tokens[place] if place < self.stop else None

    def take(self, expected: str) -> SqlToken:
        """The next token, whatever it is; `expected` is for the error at the end."""
        token = self.peek()
        if token is None:
            raise self.error(expected)
        self.at += 1
        return token

    def sees(self, words: str) -> bool:
        """Whether these words come, given in capitals: `sees("IF NOT EXISTS")`."""
        return self.words_at(self.at, words)

    def words_at(self, place: int, words: str) -> bool:
        """Whether these words are at a place."""
        wanted = words.split()
        if place + len(wanted) > self.stop:
            return False
        return all(self.tokens[place + index].is_word(word) for index, word in enumerate(wanted))

    def accept(self, words: str) -> bool:
        """Step over these words if they come."""
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
        """What to raise when something else was expected here."""
        token = self.peek()
        if token is None:
            return ConfigError(f"SQL: expected {expected}, found the end of: {_short(self.text)}")
        line = self.text.count("\n", 0, token.start) + 1
        column = token.start - self.text.rfind("\n", 0, token.start)
        return ConfigError(
            f"SQL, line {line}, character {column}: expected {expected}, found {_short(self.text[token.start :])}"
        )

    # ---- names and values

    def identifier(self, expected: str = "a name") -> str:
        """One part of a name, without its backticks."""
        token = self.peek()
        if token is None or not token.is_name:
            raise self.error(expected)
        self.at += 1
        return token.value

    def dotted(self, expected: str = "a name") -> tuple[str, ...]:
        """A name of one or several parts, such as a nested column's."""
        parts = [self.identifier(expected)]
        while self.accept_symbol("."):
            parts.append(self.identifier(expected))
        return tuple(parts)

    def table_name(self) -> TableName:
        """The name of a table, or hudi.`/path`."""
        return TableName(self.dotted("the name of a table"))

    def value(self, expected: str = "a value") -> str:
        """A literal as text: a quotation (several in a row are one), a number, true, false, null, a word."""
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
        """A list in parentheses: `('k' = 'v', k.x = 1, k 'v')`. Raises ConfigError for a key that is given twice."""
        given: dict[str, str] = {}
        self.expect_symbol("(")
        while not self.accept_symbol(")"):
            key = self.property_key()
            if key in given:
                raise ConfigError(f"SQL: the property {key!r} is given twice.")
            self.accept_symbol("=")
            given[key] = self.value(f"the value of the property {key!r}")
            if not self.sees_symbol(")"):
                self.expect_symbol(",")
        return given

    def property_key(self) -> str:
        """The key of a property: one quotation (its value may come right behind it), or a dotted name."""
        token = self.peek()
        if token is not None and token.kind is TokenKind.TEXT:
            self.at += 1
            return token.value
        return ".".join(self.dotted("the key of a property"))

    def names(self) -> tuple[str, ...]:
        """A list of plain names in parentheses."""
        found = []
        for part in self.parts():
            found.append(part.identifier())
            part.expect_end()
        return tuple(found)

    # ---- clauses

    def parts(self, separator: str = ",") -> Iterator[Reader]:
        """The items of a list in parentheses, each with a cursor of its own; steps over the list."""
        inside = self.parenthesised()
        if inside.at_end:
            return
        yield from inside.split(separator)

    def parenthesised(self) -> Reader:
        """A cursor over what the parentheses that come hold; steps over them."""
        self.expect_symbol("(")
        start = self.at
        end = self._closing(start)
        self.at = end + 1
        return Reader(self.text, self.tokens, start, end)

    def split(self, separator: str = ",") -> Iterator[Reader]:
        """What is left, cut at a separator that is in no parentheses; steps over all of it."""
        start = self.at
        for place in self._outside():
            if self.tokens[place].is_symbol(separator):
                yield Reader(self.text, self.tokens, start, place)
                start = place + 1
        self.at = self.stop
        yield Reader(self.text, self.tokens, start, self.stop)

    def find(self, *phrases: str, start: int | None = None) -> int | None:
        """The place of the first of these phrases (words in capitals) that is in no parentheses and no CASE."""
        for place in self._outside(start):
            if any(self.words_at(place, phrase) for phrase in phrases):
                return place
        return None

    def until(self, *phrases: str) -> Reader:
        """A cursor over all that comes before the first of these phrases (before the end without); steps over it."""
        found = self.find(*phrases)
        inside = Reader(self.text, self.tokens, self.at, self.stop if found is None else found)
        self.at = inside.stop
        return inside

    def words(self) -> str:
        """What is left, in the user's own characters; steps over it."""
        text = self.cut(self.at, self.stop)
        self.at = self.stop
        return text

    def cut(self, start: int, stop: int) -> str:
        """The user's own characters from one token up to before another."""
        return "" if start >= stop else self.text[self.tokens[start].start : self.tokens[stop - 1].end]

    def _outside(self, start: int | None = None) -> Iterator[int]:
        """Places of tokens that are in no parentheses, brackets and CASE."""
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
    return repr(line if len(line) <= _SHOWN_CHARACTERS else line[: _SHOWN_CHARACTERS - 3] + "...")
