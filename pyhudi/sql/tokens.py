"""A SQL text as tokens with their places, so that clauses can be cut out of it without changing a character.

Source: Spark's SQL reference, "Literals", "Identifiers", "Comments".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from pyhudi.errors import ConfigError

__all__ = ["SqlToken", "TokenKind", "dotted_at", "keywords", "tokens_of", "unquoted"]

# A generated MERGE of some thousand columns has about 1 MB; each token is a Python object of some 100 bytes.
MAX_STATEMENT_CHARACTERS = 4 << 20


class TokenKind(Enum):
    """What a token is. WORD: a keyword or a plain identifier; NAME: an identifier in backticks."""

    WORD = "word"
    NAME = "name"
    TEXT = "text"
    NUMBER = "number"
    SYMBOL = "symbol"


@dataclass(frozen=True, slots=True)
class SqlToken:
    """One token of a statement: `text[start:end]`."""

    kind: TokenKind
    text: str
    start: int
    end: int

    @property
    def is_name(self) -> bool:
        """Can it be a part of a name? A keyword can."""
        return self.kind in (TokenKind.WORD, TokenKind.NAME)

    def is_word(self, *words: str) -> bool:
        """True for one of these keywords, given in capitals."""
        return self.kind is TokenKind.WORD and self.text.upper() in words

    def is_symbol(self, symbol: str) -> bool:
        return self.kind is TokenKind.SYMBOL and self.text == symbol


_TOKEN = re.compile(
    r"""(?P<space>\s+|--(?:\\\r?\n|[^\r\n])*)
    |(?P<text>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<name>`(?:[^`]|``)*`)
    |(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?[a-zA-Z]{0,2}(?!\w)|\.\d+(?:[eE][+-]?\d+)?[a-zA-Z]{0,2}(?!\w))
    |(?P<word>\w+)
    |(?P<symbol>=>|->|<=>|<=|>=|<>|!=|==|\|\||::|.)""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


def tokens_of(text: str, most: int | None = None) -> list[SqlToken]:
    """The tokens of a statement, comments left out. `most`: look no further than at so many.

    Raises: ConfigError for a text that is too long, or ends inside a comment or a quotation.
    """
    if len(text) > MAX_STATEMENT_CHARACTERS:
        raise ConfigError(
            f"The statement has {len(text):,} characters; at most {MAX_STATEMENT_CHARACTERS:,} are taken. Put its rows "
            "into a table or a view."
        )
    return list(islice(_tokens(text), most))


def _tokens(text: str) -> Iterator[SqlToken]:
    at = 0
    while at < len(text):
        if text.startswith("/*", at) and not text.startswith("/*+", at):
            at = _after_comment(text, at)
            continue
        found = _TOKEN.match(text, at)
        assert found is not None
        kind = found.lastgroup
        assert kind is not None
        if kind == "symbol" and found[0] in "'\"`":
            raise ConfigError(f"The quotation that begins at character {at} of the statement does not end.")
        if kind != "space":
            yield SqlToken(TokenKind(kind), found[0], at, found.end())
        at = found.end()


def _after_comment(text: str, start: int) -> int:
    """The place after a bracketed comment; they nest, as in Spark."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    raise ConfigError(f"The comment that begins at character {start} of the statement does not end.")


def unquoted(name: str) -> str:
    """An identifier without its backticks."""
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def dotted_at(tokens: Sequence[SqlToken], place: int) -> tuple[tuple[str, ...], int]:
    """The parts of a name with dots that begins at a token, without backticks, and the place after it."""
    parts = [unquoted(tokens[place].text)]
    place += 1
    while place + 1 < len(tokens) and tokens[place].is_symbol(".") and tokens[place + 1].is_name:
        parts.append(unquoted(tokens[place + 1].text))
        place += 2
    return tuple(parts), place


def keywords(listed: str) -> frozenset[str]:
    """The words of a list, in capitals."""
    return frozenset(listed.split())
