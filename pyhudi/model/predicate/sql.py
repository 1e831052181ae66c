"""Reads predicates from SQL text and from tuples.

    or      = and { OR and }                      and     = not { AND not }
    not     = NOT not | "(" or ")" | test         test    = operand [NOT] IN (...) | BETWEEN a AND b | LIKE p
                                                          | operand IS [NOT] NULL | operand op operand | boolean column
    operand = column | call | literal             op      = = == <> != < <= > >=
    literal = 'text' | 12 | 1.5 | 1e3 | TRUE | FALSE | NULL | DATE '..' | TIMESTAMP '..' | X'hex' | DOUBLE('NaN')
    call    = function "(" column { "," literal } ")"      one of `calls.py`
    column  = name { . name }, names quoted by backticks or double quotes where they are not plain words

A part of what Spark's `filter` takes, with the same meaning. Tuples are `("a", "=", 1)`, all of a list must hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, cast

from pyhudi.errors import ConfigError
from pyhudi.model.predicate.calls import call_with
from pyhudi.model.predicate.limits import MAX_DEPTH, check_depth, excerpt, shown, too_deep
from pyhudi.model.predicate.tokens import KNOWN, Token, number_of, text_of, timestamp_of, tokenize
from pyhudi.model.predicate.tree import (
    And,
    Call,
    Column,
    Compare,
    CompareColumns,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Opaque,
    Operand,
    Or,
    Predicate,
    Value,
    conjunction,
)

if TYPE_CHECKING:
    import pyarrow.compute as pc

__all__ = ["parse_call", "parse_where"]

_SAME_OP = {"==": "=", "!=": "<>"}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


def parse_where(where: object) -> Predicate:
    """A predicate from what a user may hand in.

    Args:    where: SQL text; a `pyarrow.compute.Expression`; a tuple `("column", "op", value)`; a list of any of these,
             all of which must hold; a ready `Predicate`; or None, which keeps every row.
    Raises:  ConfigError, with the place in the text, and for more than the limits of `limits.py`.
    """
    return _parsed(where, 0)


def parse_call(text: str) -> Call:
    """A function of a column from SQL text: `from_unixtime(ts, 'yyyy-MM-dd')`.

    Raises ConfigError for what is none, and for a function that is not known exactly.
    """
    return _Parser(text).whole_call()


def _parsed(where: object, depth: int) -> Predicate:
    if depth > MAX_DEPTH:
        raise too_deep()
    match where:
        case None:
            return Constant(True)
        case str():
            return _Parser(where).parse()
        case (str(column), str(op), value) if isinstance(where, tuple):
            return _from_tuple(column, op, value)
        case (str(column), str(op)) if isinstance(where, tuple):
            return _from_tuple(column, op, None)
        case And() | Or() | Not() | Compare() | CompareColumns() | In() | IsNull() | Like() | Constant() | Opaque():
            check_depth(where)
            return where
        case list() | tuple():
            return conjunction(tuple(_parsed(part, depth + 1) for part in where))
    if type(where).__module__.startswith("pyarrow") and type(where).__name__ == "Expression":
        opaque = Opaque(cast("pc.Expression", where))
        check_depth(opaque)
        return opaque
    raise ConfigError(
        f"where={shown(where)} is of type {type(where).__name__}; expected SQL text such as "
        "\"day >= DATE '2024-01-01'\", "
        'a tuple such as ("id", "=", 7), a list of tuples, or a pyarrow.compute expression.'
    )


def _from_tuple(name: str, op: str, value: Value) -> Predicate:
    column = Column(tuple(name.split(".")))
    word = " ".join(op.upper().split())
    word = _SAME_OP.get(word, word)
    if word in _MIRRORED:
        return Constant(None) if value is None else Compare(column, word, value)
    if word in ("IN", "NOT IN"):
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise ConfigError(f"where=({shown(name)}, {shown(op)}, {shown(value)}): IN needs a list of values.")
        return _negated(word == "NOT IN", _in(column, list(value)))
    if word in ("LIKE", "NOT LIKE") and isinstance(value, str):
        return _negated(word == "NOT LIKE", Like(column, value))
    if word in ("IS NULL", "IS NOT NULL") and value is None:
        return _negated(word == "IS NOT NULL", IsNull(column))
    if word in ("BETWEEN", "NOT BETWEEN") and isinstance(value, Sequence) and len(value) == 2:
        return _negated(word == "NOT BETWEEN", _between(column, value[0], value[1]))
    raise ConfigError(
        f"where=({shown(name)}, {shown(op)}, {shown(value)}) is not understood; operators: = <> < <= > >= "
        "IN, NOT IN, LIKE, BETWEEN (each with its value), IS NULL, IS NOT NULL."
    )


def _negated(negate: bool, predicate: Predicate) -> Predicate:
    return Not(predicate) if negate else predicate


def _in(column: Operand, values: Sequence[Value]) -> In:
    kept = tuple(value for value in values if value is not None)
    return In(column, kept, has_null=len(kept) < len(values))


def _between(column: Operand, low: Value, high: Value) -> Predicate:
    return And((_compare(column, ">=", low), _compare(column, "<=", high)))


def _compare(left: Operand | Value, op: str, right: Operand | Value) -> Predicate:
    if isinstance(left, Column | Call):
        if isinstance(right, Column | Call):
            return CompareColumns(left, op, right)
        return Constant(None) if right is None else Compare(left, op, right)
    if isinstance(right, Column | Call):
        return _compare(right, _MIRRORED[op], left)
    if left is None or right is None:
        return Constant(None)
    try:
        outcomes = {"=": left == right, "<>": left != right}
        if op not in outcomes:
            outcomes |= {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}
    except TypeError as error:
        raise ConfigError(
            f"where compares the literals {shown(left)} and {shown(right)}, which have no order."
        ) from error
    return Constant(bool(outcomes[op]))


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.read: list[Token] = []  # as far as anybody looked
        self.position = 0
        self.depth = 0

    def parse(self) -> Predicate:
        if self.peek().kind == "end":
            raise ConfigError("where is empty text; leave it out to read every row.")
        predicate = self.disjunction()
        if self.peek().kind != "end":
            raise self.error("expected AND, OR or the end")
        return predicate

    def disjunction(self) -> Predicate:
        parts = [self.conjunction()]
        while self.take_word("OR"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def conjunction(self) -> Predicate:
        parts = [self.negation()]
        while self.take_word("AND"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def negation(self) -> Predicate:
        negate = False
        while self.take_word("NOT"):
            negate = not negate  # unknown stays unknown, so two of them say nothing
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"more than {MAX_DEPTH} nested brackets")
        try:
            if self.take_mark("("):
                inner = self.disjunction()
                self.expect_mark(")")
                return _negated(negate, inner)
            return _negated(negate, self.test())
        finally:
            self.depth -= 1

    def test(self) -> Predicate:
        left = self.operand()
        token = self.peek()
        if token.kind == "op":
            return self.comparison(left)
        negate = self.take_word("NOT")
        if self.take_word("IS"):
            negate = self.take_word("NOT")
            self.expect_word("NULL")
            return _negated(negate, IsNull(left) if isinstance(left, Column | Call) else Constant(left is None))
        if self.take_word("IN"):
            return _negated(negate, self.membership(left))
        if self.take_word("BETWEEN"):
            low = self.operand()
            self.expect_word("AND")
            high = self.operand()
            return _negated(negate, And((_compare(left, ">=", low), _compare(left, "<=", high))))
        if self.take_word("LIKE"):
            pattern = self.operand()
            if not isinstance(left, Column | Call) or not isinstance(pattern, str):
                raise self.error("LIKE needs a column and a text pattern")
            return _negated(negate, Like(left, pattern))
        if negate:
            raise self.error("expected IN, BETWEEN or LIKE after NOT")
        if isinstance(left, Column):
            return Compare(left, "=", True)
        if left is None or isinstance(left, bool):
            return Constant(left)
        raise self.error("expected a comparison")

    def comparison(self, left: Operand | Value) -> Predicate:
        op = _SAME_OP.get(self.peek().text, self.peek().text)
        if op == "<=>":
            self.position += 1
            right = self.operand()
            column, value = (left, right) if isinstance(left, Column | Call) else (right, left)
            if not isinstance(column, Column | Call) or isinstance(value, Column | Call):
                raise self.error("<=> needs a column and a literal")
            return IsNull(column) if value is None else And((Compare(column, "=", value), Not(IsNull(column))))
        self.position += 1
        return _compare(left, op, self.operand())

    def membership(self, left: Operand | Value) -> Predicate:
        if not isinstance(left, Column | Call):
            raise self.error("IN needs a column on its left")
        self.expect_mark("(")
        values = [self.literal()]
        while self.take_mark(","):
            values.append(self.literal())
        self.expect_mark(")")
        return _in(left, values)

    def whole_call(self) -> Call:
        call = self.call() if self.token(self.position + 1).text == "(" else None
        if call is None or self.peek().kind != "end":
            raise self.error("expected one function of a column")
        return call

    def operand(self) -> Operand | Value:
        """A Column or a Call, or the Python value of a literal (None for NULL)."""
        token = self.peek()
        if token.kind == "word" and not self.starts_literal(token) and self.token(self.position + 1).text == "(":
            return self.call()
        if token.kind == "quoted" or (token.kind == "word" and not self.starts_literal(token)):
            return self.column()
        return self.literal()

    def starts_literal(self, token: Token) -> bool:
        following = self.token(self.position + 1)
        if token.is_word("TRUE", "FALSE", "NULL"):
            return True
        if token.is_word("DATE", "TIMESTAMP"):
            return following.kind == "text"
        return token.is_word("DOUBLE", "FLOAT") and following.text == "("

    def call(self) -> Call:
        function = self.name()
        self.expect_mark("(")
        column = self.column()
        arguments = []
        while self.take_mark(","):
            arguments.append(self.literal())
        self.expect_mark(")")
        return call_with(function, column, arguments)

    def column(self) -> Column:
        path = [self.name()]
        while self.take_mark("."):
            path.append(self.name())
        return Column(tuple(path))

    def name(self) -> str:
        token = self.peek()
        if token.kind == "quoted":
            self.position += 1
            return token.text[1:-1].replace("``", "`")
        if token.kind == "word" and not token.is_word("AND", "OR", "NOT", "IN", "IS", "LIKE", "BETWEEN"):
            self.position += 1
            return token.text
        raise self.error("expected a column name")

    def literal(self) -> Value:
        token = self.peek()
        negative = token.text == "-"
        if token.text in ("+", "-"):
            self.position += 1
            token = self.peek()
            if token.kind != "number":
                raise self.error("expected a number")
        self.position += 1
        if token.kind == "number":
            value = number_of(token.text)
            if isinstance(value, Decimal):  # minus would round it
                return value.copy_negate() if negative else value
            return -value if negative else value
        if token.kind == "text":
            return text_of(token.text)
        if token.kind == "hex" and len(token.text) % 2:
            return bytes.fromhex(token.text[2:-1])
        if token.is_word("NULL"):
            return None
        if token.is_word("TRUE", "FALSE"):
            return token.is_word("TRUE")
        if token.is_word("DATE", "TIMESTAMP") and self.peek().kind == "text":
            return self.moment(token)
        if token.is_word("DOUBLE", "FLOAT") and self.take_mark("("):
            value = self.literal()
            self.expect_mark(")")
            try:
                return float(value)
            except (TypeError, ValueError, OverflowError):
                raise self.error("expected a number in text") from None
        self.position -= 1
        raise self.error("expected a column or a value")

    def moment(self, kind: Token) -> date | datetime:
        token = self.peek()
        text = text_of(token.text)
        try:
            value = date.fromisoformat(text) if kind.is_word("DATE") else timestamp_of(text)
        except ValueError:
            raise self.error(f"{shown(text)} is not an ISO {kind.text.lower()}") from None
        self.position += 1
        return value

    def peek(self) -> Token:
        return self.token(self.position)

    def token(self, position: int) -> Token:
        while len(self.read) <= position:
            self.read.append(next(self.tokens))
        return self.read[position]

    def take_word(self, word: str) -> bool:
        if self.peek().is_word(word):
            self.position += 1
            return True
        return False

    def take_mark(self, mark: str) -> bool:
        if self.peek().kind == "mark" and self.peek().text == mark:
            self.position += 1
            return True
        return False

    def expect_word(self, word: str) -> None:
        if not self.take_word(word):
            raise self.error(f"expected {word}")

    def expect_mark(self, mark: str) -> None:
        if not self.take_mark(mark):
            raise self.error(f"expected {mark!r}")

    def error(self, what: str) -> ConfigError:
        token = self.peek()
        found = "the end" if token.kind == "end" else shown(token.text)
        return ConfigError(
            f"where={excerpt(self.text, token.at)}: {what} at character {token.at + 1}, found {found}. {KNOWN}"
        )
