"""Reads predicates from SQL text and from tuples.

    condition = comparison | column [NOT] IN (...) | BETWEEN a AND b | LIKE pattern | IS [NOT] NULL | boolean column,
                combined by AND, OR, NOT and brackets
    literal   = 'text' | 12 | 1.5 | 1e3 | TRUE | FALSE | NULL | DATE '..' | TIMESTAMP '..' | X'hex' | DOUBLE('NaN')
    call      = function of a column and literals, one of `column_functions.py`
    column    = name { . name }, names in backticks unless they are plain words

This is a part of the grammar of Spark's `filter`, with the same meaning. sqlglot reads the text; any other node in its
tree is refused. A tuple is `("a", "=", 1)`; in a list all tuples must hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, cast

from pyhudi.errors import ConfigError
from pyhudi.expressions.column_functions import call_with
from pyhudi.expressions.limits import MAX_DEPTH, MAX_SQL_CHARS, NotUnderstood, check_depth, too_deep
from pyhudi.expressions.predicates import (
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
    SqlText,
    Value,
    conjunction,
)
from pyhudi.expressions.terms import sql_condition, terms_of
from pyhudi.expressions.where_text import WhereText, negative, number_of, timestamp_of
from pyhudi.redaction import brief

if TYPE_CHECKING:
    import pyarrow.compute as pc
    from sqlglot import exp

__all__ = ["parse_call", "parse_where", "plain_predicate"]

_SAME_OP = {"==": "=", "!=": "<>"}
_OPERATORS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}  # sqlglot's classes
_FLOATS = ("DOUBLE", "FLOAT")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


def parse_where(where: object) -> Predicate:
    """Read a predicate from a user's `where`.

    If the tree can't express a text, its terms between ANDs are read one by one; the inexpressible become `SqlText`.

    Args:    where: SQL text; a `pyarrow.compute.Expression`; a tuple `("column", "op", value)`; a list of any of these,
             all of which must hold; a ready `Predicate`; or None, which keeps every row.
    Raises:  ConfigError, with the position in the text; also for texts beyond the limits of `limits.py`.
    """
    return _parsed(where, 0)


def parse_call(text: str) -> Call:
    """Read a function of a column from SQL text: `from_unixtime(ts, 'yyyy-MM-dd')`.

    Raises ConfigError for any other text, and for an unknown function.
    """
    return _Builder(WhereText(text)).call_alone()


def _parsed(where: object, depth: int) -> Predicate:
    if depth > MAX_DEPTH:
        raise too_deep()
    match where:
        case None:
            return Constant(True)
        case str():
            return _of_text(where)
        case (str(column), str(op), value) if isinstance(where, tuple):
            return _from_tuple(column, op, value)
        case (str(column), str(op)) if isinstance(where, tuple):
            return _from_tuple(column, op, None)
        case And() | Or() | Not() | Compare() | CompareColumns() | In() | IsNull() | Like() | Constant() | Opaque():
            check_depth(where)
            return where
        case SqlText():
            return where
        case list() | tuple():
            return conjunction(tuple(_parsed(part, depth + 1) for part in where))
    if type(where).__module__.startswith("pyarrow") and type(where).__name__ == "Expression":
        opaque = Opaque(cast("pc.Expression", where))
        check_depth(opaque)
        return opaque
    raise ConfigError(
        f"where={brief(where)} is of type {type(where).__name__}; expected SQL text such as "
        "\"day >= DATE '2024-01-01'\", "
        'a tuple such as ("id", "=", 7), a list of tuples, or a pyarrow.compute expression.'
    )


def plain_predicate(text: str) -> Predicate:
    """Read a predicate from SQL text that the tree can express.

    Raises: ConfigError like `parse_where`; NotUnderstood for a text with other terms.
    """
    builder = _Builder(WhereText(text))
    return builder.predicate(builder.where.tree())


def _of_text(text: str) -> Predicate:
    """Read a text as a tree, else term by term; terms that the tree can't express are kept as texts."""
    try:
        return plain_predicate(text)
    except NotUnderstood as error:
        terms = [_term(term) for term in terms_of(text)] if len(text) <= MAX_SQL_CHARS else [None]
        if None in terms:
            raise error
    return conjunction(tuple(term for term in terms if term is not None))


def _term(text: str) -> Predicate | None:
    """Read one term of a chain of ANDs; None for a text that is no condition in Spark either."""
    if not text:
        return None
    try:
        return plain_predicate(text)
    except NotUnderstood:
        return None if sql_condition(text) is None else SqlText(text)


def _from_tuple(name: str, op: str, value: Value) -> Predicate:
    column = Column(tuple(name.split(".")))
    word = " ".join(op.upper().split())
    word = _SAME_OP.get(word, word)
    if word in _MIRRORED:
        return Constant(None) if value is None else Compare(column, word, value)
    if word in ("IN", "NOT IN"):
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise ConfigError(f"where=({brief(name)}, {brief(op)}, {brief(value)}): IN needs a list of values.")
        return _negated(word == "NOT IN", _in(column, list(value)))
    if word in ("LIKE", "NOT LIKE") and isinstance(value, str):
        return _negated(word == "NOT LIKE", Like(column, value))
    if word in ("IS NULL", "IS NOT NULL") and value is None:
        return _negated(word == "IS NOT NULL", IsNull(column))
    if word in ("BETWEEN", "NOT BETWEEN") and isinstance(value, Sequence) and len(value) == 2:
        return _negated(word == "NOT BETWEEN", _between(column, value[0], value[1]))
    raise ConfigError(
        f"where=({brief(name)}, {brief(op)}, {brief(value)}) is not understood; operators: = <> < <= > >= "
        "IN, NOT IN, LIKE, BETWEEN (each with its value), IS NULL, IS NOT NULL."
    )


def _negated(negate: bool, predicate: Predicate) -> Predicate:
    return Not(predicate) if negate else predicate


def _in(column: Operand, values: Sequence[Value]) -> In:
    non_null = tuple(value for value in values if value is not None)
    return In(column, non_null, has_null=len(non_null) < len(values))


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
    if isinstance(left, str) != isinstance(right, str) or isinstance(left, bool) != isinstance(right, bool):
        raise NotUnderstood(f"where compares the literals {brief(left)} and {brief(right)}, which are of two types.")
    try:
        outcomes = {"=": left == right, "<>": left != right}
        if op not in outcomes:
            outcomes |= {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}
    except TypeError as error:
        raise ConfigError(
            f"where compares the literals {brief(left)} and {brief(right)}, which have no order."
        ) from error
    return Constant(bool(outcomes[op]))


class _Builder:
    """Builds a predicate from sqlglot's tree. It recurses only for brackets, not for the terms of a chain."""

    def __init__(self, where: WhereText) -> None:
        self.where = where

    def call_alone(self) -> Call:
        from sqlglot import exp

        tree = self.where.tree()
        if not isinstance(tree, exp.Anonymous):
            raise self.error("expected one function of a column", tree)
        return self.call(tree)

    def predicate(self, node: exp.Expr, negate: bool = False) -> Predicate:
        """Read a condition. Unknown remains unknown, so NOT of NOT is the condition itself."""
        from sqlglot import exp

        while isinstance(node, exp.Paren | exp.Not):
            negate ^= isinstance(node, exp.Not)
            node = node.this
        if isinstance(node, exp.And | exp.Or):
            terms = _terms(node)
            children = []
            for term in terms:
                children.append(self.predicate(term))
            return _negated(negate, And(tuple(children)) if isinstance(node, exp.And) else Or(tuple(children)))
        return _negated(negate, self.test(node))

    def test(self, node: exp.Expr) -> Predicate:
        """Read a condition without AND, OR and NOT."""
        from sqlglot import exp

        match node:
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                op = _OPERATORS[type(node).__name__]
                return _compare(self.operand(node.this), op, self.operand(node.expression))
            case exp.NullSafeEQ():
                left, right = self.operand(node.this), self.operand(node.expression)
                column, value = (left, right) if isinstance(left, Column | Call) else (right, left)
                if not isinstance(column, Column | Call) or isinstance(value, Column | Call):
                    raise self.error("<=> needs a column and a literal", node)
                return IsNull(column) if value is None else And((Compare(column, "=", value), Not(IsNull(column))))
            case exp.Is() if isinstance(node.expression, exp.Null):
                left = self.operand(node.this)
                return IsNull(left) if isinstance(left, Column | Call) else Constant(left is None)
            case exp.In():
                return self.membership(node)
            case exp.Between():
                left = self.operand(node.this)
                low, high = self.operand(node.args.get("low")), self.operand(node.args.get("high"))
                return And((_compare(left, ">=", low), _compare(left, "<=", high)))
            case exp.Like():
                left, pattern = self.operand(node.this), self.operand(node.expression)
                if not isinstance(left, Column | Call) or not isinstance(pattern, str):
                    raise self.error("LIKE needs a column and a text pattern", node)
                return _negated(bool(node.args.get("negate")), Like(left, pattern))
        left = self.operand(node)
        if isinstance(left, Column):
            return Compare(left, "=", True)
        if left is None or isinstance(left, bool):
            return Constant(left)
        raise self.error("expected a comparison", node)

    def membership(self, node: exp.In) -> Predicate:
        column = self.operand(node.this)
        if not isinstance(column, Column | Call):
            raise self.error("IN needs a column on its left", node)
        items = node.expressions
        if not items:
            raise ConfigError(str(self.where.error("expected '(' and values behind IN", _places(node.this)[1])))
        values = self.where.lists.get(items[0].name) if len(items) == 1 else None
        return _in(column, [self.literal(value) for value in items] if values is None else values)

    def operand(self, node: exp.Expr | None) -> Operand | Value:
        """A Column or a Call, or the Python value of a literal (None for NULL)."""
        from sqlglot import exp

        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Anonymous) and node.name.upper() not in _FLOATS:
            return self.call(node)
        if isinstance(node, exp.Column | exp.Dot):
            return self.column(node)
        return self.literal(node)

    def call(self, node: exp.Anonymous) -> Call:
        first, *rest = node.expressions or [None]
        column = self.column(first)
        return call_with(node.name, column, [self.literal(argument) for argument in rest])

    def column(self, node: exp.Expr | None) -> Column:
        from sqlglot import exp

        if not isinstance(node, exp.Column | exp.Dot):
            raise self.error("expected a column name", node)
        parts = node.parts
        if not all(isinstance(part, exp.Identifier) for part in parts):
            raise self.error("expected a column name", node)
        return Column(tuple(part.name for part in parts))

    def literal(self, node: exp.Expr | None) -> Value:
        from sqlglot import exp

        match node:
            case exp.Neg(this=exp.Literal(is_string=False)):
                return negative(number_of(node.name))
            case exp.Literal() | exp.RawString():
                return node.name if node.is_string or isinstance(node, exp.RawString) else number_of(node.name)
            case exp.HexString() if len(node.name) % 2 == 0:
                return bytes.fromhex(node.name)
            case exp.Null():
                return None
            case exp.Boolean():
                return bool(node.this)
            case exp.Cast(this=exp.Literal(is_string=True)):
                return self.moment(node)
            case exp.Anonymous() if node.name.upper() in _FLOATS and len(node.expressions) == 1:
                try:
                    return float(self.literal(node.expressions[0]))
                except (TypeError, ValueError, OverflowError):
                    raise self.error("expected a number in text", node) from None
            case exp.Concat():  # adjacent texts are one text
                return "".join(str(self.literal(part)) for part in node.expressions)
        places = _places(node)
        if not places:
            raise self.where.error("expected a column or a value", 0)
        raise self.where.not_understood(*places)

    def moment(self, node: exp.Cast) -> date | datetime:
        """DATE '...' or TIMESTAMP '...'."""
        from sqlglot import exp

        text = node.this.name
        is_date = node.to.this is exp.DataType.Type.DATE
        try:
            return date.fromisoformat(text) if is_date else timestamp_of(text)
        except ValueError:
            what = f"{brief(text)} is not an ISO {'date' if is_date else 'timestamp'}"
            raise ConfigError(str(self.error(what, node.parent))) from None

    def error(self, what: str, node: exp.Expr | None) -> ConfigError:
        """The error for a part of the text."""
        return self.where.error(what, _places(node)[0] if _places(node) else 0)


def _places(node: exp.Expr | None) -> tuple[int, ...]:
    """Start and end of a part of the text, from the names in it: sqlglot knows only the positions of names."""
    from sqlglot import exp

    names = [] if node is None else [name.meta for name in node.find_all(exp.Identifier) if "start" in name.meta]
    return (min(name["start"] for name in names), max(name["end"] for name in names) + 1) if names else ()


def _terms(node: exp.Expr) -> list[exp.Expr]:
    """The terms of a chain of ANDs, or of ORs, in their order."""
    kind = type(node)
    terms: list[exp.Expr] = []
    while isinstance(node, kind):
        terms.append(node.expression)
        node = node.this
    return [node, *reversed(terms)]
