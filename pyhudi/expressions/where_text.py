"""The text of a where in both directions: text to predicate, and back for users, for Spark and for `parse_where`.

Reading text involves limits, tokens, a tree by sqlglot, literals, and errors with their position. sqlglot gets only the
keywords of a where, so every other word can be a column's name.

"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from pyhudi.errors import ConfigError
from pyhudi.expressions.column_functions import call_sql
from pyhudi.expressions.limits import MAX_DEPTH, MAX_TOKENS, MAX_WHERE_CHARS, NotUnderstood
from pyhudi.expressions.predicates import (
    And,
    Call,
    Compare,
    CompareColumns,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Operand,
    Or,
    Predicate,
    SqlText,
    Value,
)
from pyhudi.model.sql_text import MisreadSql, condition_of, spark_tokens
from pyhudi.redaction import MAX_NUMBER_DIGITS, brief, excerpt

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.tokens import Token

__all__ = ["WhereText", "has_too_many_digits", "negative", "number_of", "timestamp_of", "to_sql"]


_GRAMMAR = (
    "where knows comparisons, IN, LIKE, BETWEEN and IS NULL, put together by AND, OR and NOT; for more give a "
    "pyarrow.compute expression."
)
_KEYWORDS = frozenset(("AND", "OR", "NOT", "IN", "IS", "LIKE", "BETWEEN", "NULL", "TRUE", "FALSE"))
_MOMENTS = {"DATE": "DATE", "TIMESTAMP": "TIMESTAMP"}
_LITERALS = frozenset(("STRING", "NUMBER", "RAW_STRING", "HEX_STRING"))
_SIGNS = frozenset(
    ("EQ", "NEQ", "LT", "LTE", "GT", "GTE", "NULLSAFE_EQ", "L_PAREN", "R_PAREN", "COMMA", "DOT", "DASH", "PLUS")
)
_LONG_LIST = 16  # values; sqlglot's trees take a microsecond and a kilobyte per value, so longer lists are read here


class WhereText:
    """A text with its tokens."""

    def __init__(self, text: str) -> None:
        """Tokenise a text. Raises ConfigError beyond the limits, without tokens, and for an unclosed quotation."""
        self.text = text
        self.lists: dict[str, list[Value]] = {}  # values of long lists, by their placeholder names in the tree
        _check_size(text)
        try:
            self.tokens = spark_tokens(text)
        except MisreadSql as error:
            raise ConfigError(f"where={excerpt(text, error.at)}: {error.what}. {_GRAMMAR}") from None
        if not self.tokens:
            raise ConfigError("where is empty text; leave it out to read every row.")

    def tree(self) -> exp.Expr:
        """The tree that sqlglot reads. Raises ConfigError."""
        tokens = self._typed_tokens()
        try:
            return condition_of(tokens, self.text)
        except MisreadSql as error:
            last = tokens[-1]
            at = error.at
            if at == last.start and last.token_type.name not in (*_LITERALS, "IDENTIFIER", "VAR", "R_PAREN"):
                at = len(self.text)
            if error.what.startswith("Expecting"):
                if at == last.start:
                    at = len(self.text)
                raise self.error(f"expected {error.what.removeprefix('Expecting ')!r}", at) from None
            if error.what.startswith("Invalid expression"):
                raise self.error("expected AND, OR or the end", at) from None
            raise self.error("expected a column or a value", at) from None

    def not_understood(self, start: int, end: int) -> ConfigError:
        """The error for a part of the text that is not allowed in a where."""
        where = f"where={excerpt(self.text, start)}"
        part = brief(self.text[start:end])
        return NotUnderstood(f"{where}: {part} at character {start + 1} is not understood. {_GRAMMAR}")

    def error(self, what: str, at: int) -> ConfigError:
        """The error for the token at a position."""
        token = next((token for token in self.tokens if token.start >= at), None)
        place = len(self.text) if token is None else token.start
        characters = "the end" if token is None else brief(self.text[token.start : token.end + 1])
        return NotUnderstood(
            f"where={excerpt(self.text, place)}: {what} at character {place + 1}, found {characters}. {_GRAMMAR}"
        )

    def _typed_tokens(self) -> list[Token]:
        """The tokens with the types that sqlglot's parser expects. As the parser recurses for NOTs and brackets, pairs
        of NOTs are removed, and too many brackets are an error.
        """
        from sqlglot.tokens import TokenType

        tokens, place, depth = self.tokens, 0, 0
        typed: list[Token] = []
        while place < len(tokens):
            token = tokens[place]
            kind, following = token.token_type.name, tokens[place + 1] if place + 1 < len(tokens) else None
            place += 1
            if kind == "VAR":
                self._type_word(token, following)
                kind = token.token_type.name
            elif kind in ("PLUS", "DASH"):
                if following is None or following.token_type is not TokenType.NUMBER:
                    raise self.error("expected a number", token.end + 1)
            elif kind == "HEX_STRING" and self.text[token.start] == "0":  # not a literal in Spark
                raise ConfigError(str(self.not_understood(token.start, token.end + 1)))
            elif kind == "COMMA" and following is not None and following.token_type is TokenType.R_PAREN:
                raise ConfigError(str(self.error("expected a value", following.start)))
            elif kind not in _SIGNS and kind not in _LITERALS and kind != "IDENTIFIER":
                raise self.not_understood(token.start, token.end + 1)
            depth += (kind == "L_PAREN") - (kind == "R_PAREN")
            if depth > MAX_DEPTH:
                raise ConfigError(str(self.error(f"more than {MAX_DEPTH} nested brackets", token.start)))
            if kind == "NOT" and _is_second_not(typed):
                typed.pop()
                continue
            typed.append(token)
            if kind == "IN" and (long_list := self._long_list(place)) is not None:
                typed += long_list[0]
                place = long_list[1]
        return typed

    def _type_word(self, token: Token, following: Token | None) -> None:
        from sqlglot.tokens import TokenType

        word = token.text.upper()
        if word in _KEYWORDS:
            token.token_type = TokenType[word]
        elif word in _MOMENTS and following is not None and following.token_type is TokenType.STRING:
            token.token_type = TokenType[_MOMENTS[word]]
        elif not word.replace("_", "a").isalnum():
            raise self.not_understood(token.start, token.end + 1)

    def _long_list(self, place: int) -> tuple[list[Token], int] | None:
        """A long list of literals after IN as tokens of a list with one name, and the position after it; else None."""
        from sqlglot.tokens import Token, TokenType

        tokens = self.tokens
        if place >= len(tokens) or tokens[place].token_type is not TokenType.L_PAREN:
            return None
        values: list[Value] = []
        at = place + 1
        while at + 1 < len(tokens):
            is_negative = tokens[at].token_type is TokenType.DASH
            token, next_token = tokens[at + is_negative], tokens[min(at + is_negative + 1, len(tokens) - 1)]
            if token.token_type is TokenType.NUMBER:
                values.append(negative(number_of(token.text)) if is_negative else number_of(token.text))
            elif token.token_type is TokenType.STRING and not is_negative:
                values.append(token.text)
            else:
                return None
            at += is_negative + 2
            if next_token.token_type is TokenType.R_PAREN:
                break
            if next_token.token_type is not TokenType.COMMA:
                return None
        else:
            return None
        if len(values) < _LONG_LIST:
            return None
        name = f"\0{len(self.lists)}"
        self.lists[name] = values
        return [tokens[place], Token(TokenType.IDENTIFIER, name), tokens[at - 1]], at


def _check_size(text: str) -> None:
    if len(text) > MAX_WHERE_CHARS:
        raise ConfigError(f"where is a text of {len(text)} characters; expected at most {MAX_WHERE_CHARS}.")
    quotes = text.count("'") + text.count('"') + text.count("`")
    if max(quotes, 2 * text.count(",")) + text.count("(") > MAX_TOKENS:  # before each becomes an object
        raise ConfigError(f"where has more than {MAX_TOKENS} words, numbers and signs; expected at most as many.")


def _is_second_not(typed: Sequence[Token]) -> bool:
    """True if another NOT precedes this one at the beginning of a condition. Unknown remains unknown, so two NOTs
    cancel out.
    """
    if not typed or typed[-1].token_type.name != "NOT":
        return False
    return len(typed) == 1 or typed[-2].token_type.name in ("AND", "OR", "NOT", "L_PAREN")


def negative(value: int | float | Decimal) -> int | float | Decimal:
    """Negate a number, keeping all its digits: the operator would round a decimal."""
    return value.copy_negate() if isinstance(value, Decimal) else -value


def number_of(text: str) -> int | float | Decimal:
    """Read a number: integers are int, `1.5` is exact as in SQL, `1e3` and `1.5D` are doubles.

    Raises ConfigError for an exact number of more than MAX_NUMBER_DIGITS digits.
    """
    upper = text.upper()
    if upper[-1] in "DF" and not upper.endswith("BD"):
        return float(upper[:-1])
    if "E" in upper and upper[-1] not in "DL":
        return float(upper)
    try:
        exact = Decimal(upper.rstrip("BDLSY"))
    except InvalidOperation:  # an exponent of twenty digits
        exact = None
    if exact is None or has_too_many_digits(exact):
        raise ConfigError(f"where has the number {brief(text)}; expected at most {MAX_NUMBER_DIGITS} digits.")
    if upper[-1] == "L":
        return int(exact)
    return exact if upper[-1] == "D" or "." in upper else int(exact)


def has_too_many_digits(number: int | Decimal) -> bool:
    """True if a number, written out, has more than MAX_NUMBER_DIGITS before or after the point."""
    if isinstance(number, int):
        return number.bit_length() > MAX_NUMBER_DIGITS * 10 // 3  # a digit is a little more than 10/3 bits
    if not number.is_finite():
        return False
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), number
    return len(digits) + max(0, exponent) > MAX_NUMBER_DIGITS or -exponent > MAX_NUMBER_DIGITS


def timestamp_of(text: str) -> datetime:
    """Read an ISO time. Raises ValueError."""
    return datetime.fromisoformat(text.strip().removesuffix("Z") + ("+00:00" if text.strip().endswith("Z") else ""))


def to_sql(predicate: Predicate) -> str:
    """Convert a predicate to SQL text that Spark and `parse_where` read alike. An `Opaque` part shows Arrow's text."""
    match predicate:
        case And(children):
            return " AND ".join(_in_brackets(child) for child in children) or "TRUE"
        case Or(children):
            return " OR ".join(_in_brackets(child) for child in children) or "FALSE"
        case Not(IsNull(column)):
            return f"{_quoted(column)} IS NOT NULL"
        case Not(child):
            return f"NOT ({to_sql(child)})"
        case Compare(column, op, value):
            return f"{_quoted(column)} {op} {_sql_literal(value)}"
        case CompareColumns(left, op, right):
            return f"{_quoted(left)} {op} {_quoted(right)}"
        case In(column, (), False):
            return f"({_quoted(column)} IS NULL AND NULL)"
        case In(column, values, has_null):
            items = [_sql_literal(value) for value in values] + (["NULL"] if has_null else [])
            return f"{_quoted(column)} IN ({', '.join(items)})"
        case IsNull(column):
            return f"{_quoted(column)} IS NULL"
        case Like(column, pattern):
            return f"{_quoted(column)} LIKE {_sql_literal(pattern)}"
        case Constant(value):
            return "NULL" if value is None else str(value).upper()
    return str(predicate)


def _in_brackets(predicate: Predicate) -> str:
    text = to_sql(predicate)
    return f"({text})" if isinstance(predicate, And | Or | SqlText) else text


def _quoted(column: Operand) -> str:
    if isinstance(column, Call):
        return call_sql(column, _quoted(column.column))
    return ".".join(
        part if re.fullmatch(r"[A-Za-z_]\w*", part) else "`" + part.replace("`", "``") + "`" for part in column.path
    )


def _sql_literal(value: Value) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        # Spark reads backslashes in literals as escapes, and so does `parse_where`.
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return f"DOUBLE('{value!r}')"
        return f"{value!r}D" if "e" not in repr(value) else f"{value!r}"
    if isinstance(value, Decimal):
        text = format(value, "f")
        return text if "." in text else f"{text}BD"
    return str(value)
