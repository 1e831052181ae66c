"""A SQL text as tokens with their places, so that clauses can be cut out of it without changing a character.

Source: Spark's SQL reference, "Literals", "Identifiers", "Comments".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from pyhudi.errors import ConfigError
from pyhudi.model.sql_text import MisreadSql, spark_tokens

if TYPE_CHECKING:
    from sqlglot.tokens import Token

__all__ = ["SqlToken", "TokenKind", "dotted_at", "keywords", "tokens_of"]

# A generated MERGE of some thousand columns has about 1 MB; each token is two Python objects of some 400 bytes.
MAX_STATEMENT_CHARACTERS = 4 << 20
_FIRST_CHARACTERS = 256


class TokenKind(Enum):
    """What a token is. WORD: a keyword or a plain identifier; NAME: an identifier in backticks."""

    WORD = "word"
    NAME = "name"
    TEXT = "text"
    NUMBER = "number"
    BYTES = "bytes"
    SYMBOL = "symbol"


@dataclass(frozen=True, slots=True)
class SqlToken:
    """One token of a statement: `text[start:end]`. `value`: what it stands for, without quotations and escapes."""

    kind: TokenKind
    text: str
    start: int
    end: int
    value: str

    @property
    def is_name(self) -> bool:
        """Can it be a part of a name? A keyword can."""
        return self.kind in (TokenKind.WORD, TokenKind.NAME)

    def is_word(self, *words: str) -> bool:
        """True for one of these keywords, given in capitals."""
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
    """The tokens of a statement, comments left out. `most`: look no further than at so many.

    Raises: ConfigError for a text that is too long, or ends inside a comment or a quotation.
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
            read = spark_tokens(text[:size])
        except MisreadSql as error:
            if is_whole:
                raise ConfigError(f"SQL: {error.what}.") from None
        else:
            if most is None or is_whole or len(read) > most:
                return [_token(text, token) for token in read[:most]]
        size *= 4


def _token(text: str, token: Token) -> SqlToken:
    kind = _KINDS.get(token.token_type.name)
    written = text[token.start : token.end + 1]
    if kind is None:
        kind = TokenKind.WORD if written.replace("_", "a").isalnum() else TokenKind.SYMBOL
    return SqlToken(kind, written, token.start, token.end + 1, token.text)


def dotted_at(tokens: Sequence[SqlToken], place: int) -> tuple[tuple[str, ...], int]:
    """The parts of a name with dots that begins at a token, without backticks, and the place after it."""
    parts = [tokens[place].value]
    place += 1
    while place + 1 < len(tokens) and tokens[place].is_symbol(".") and tokens[place + 1].is_name:
        parts.append(tokens[place + 1].value)
        place += 2
    return tuple(parts), place


def keywords(listed: str) -> frozenset[str]:
    """The words of a list, in capitals."""
    return frozenset(listed.split())
