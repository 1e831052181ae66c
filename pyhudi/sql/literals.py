"""Constants of Spark's SQL as Python values: texts, numbers with their suffixes, TRUE, NULL, DATE '…'.

Source: Spark's SQL reference, "Literals".
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TypeAlias

from pyhudi.errors import ConfigError
from pyhudi.model.predicate.where_text import number_of
from pyhudi.sql.tokens import SqlToken, TokenKind

__all__ = ["Constant", "constant_of"]

# What a constant in a statement can be.
Constant: TypeAlias = "str | int | float | Decimal | bool | date | datetime | None"


def constant_of(tokens: Sequence[SqlToken]) -> Constant:
    """The value of the tokens of one constant; several texts in a row are one text.

    Raises: ConfigError for anything else, an expression for example.
    """
    shown = " ".join(token.text for token in tokens)
    refused = ConfigError(f"Expected a constant (a text, a number, TRUE, FALSE, NULL, DATE '…'), found {shown!r:.200}.")
    if not tokens:
        raise refused
    first, rest = tokens[0], tokens[1:]
    if all(token.kind is TokenKind.TEXT for token in tokens):
        return "".join(token.value for token in tokens)
    if first.kind is TokenKind.SYMBOL and first.text in "+-" and len(rest) == 1 and rest[0].kind is TokenKind.NUMBER:
        value = number_of(rest[0].text)
        return -value if first.text == "-" else value
    if len(tokens) == 1 and first.kind is TokenKind.NUMBER:
        return number_of(first.text)
    if len(tokens) == 1 and first.is_word("TRUE", "FALSE", "NULL"):
        return {"TRUE": True, "FALSE": False, "NULL": None}[first.text.upper()]
    if len(rest) == 1 and rest[0].kind is TokenKind.TEXT and first.is_word("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        text = rest[0].value
        try:
            return date.fromisoformat(text) if first.is_word("DATE") else datetime.fromisoformat(text)
        except ValueError as error:
            raise ConfigError(f"{shown!r:.200}: {error}.") from error
    raise refused
