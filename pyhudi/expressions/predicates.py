"""Predicates: a query's condition on a row, as a small tree.

    Predicate = Compare | CompareColumns | In | IsNull | Like | And | Or | Not | Constant | Opaque | SqlText

The logic is SQL's with three values: a comparison with null is unknown, and a row passes only if the predicate is true.
NaN is equal to itself and greater than every other number, as in Spark. `where.py` reads SQL text, `where_text.py`
prints it, and `statistics/ranges.py` tests whether a range of values can hold a match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pyhudi.lazy_property import lazy_property

if TYPE_CHECKING:
    import pyarrow.compute as pc

__all__ = [
    "OPPOSITE",
    "And",
    "Call",
    "Column",
    "Compare",
    "CompareColumns",
    "Constant",
    "In",
    "IsNull",
    "Like",
    "Not",
    "Opaque",
    "Operand",
    "Or",
    "Predicate",
    "SqlText",
    "Value",
    "calls_of",
    "column_of",
    "columns_of",
    "conjunction",
    "conjuncts",
    "is_opaque",
    "operands_of",
    "split_texts",
    "without_not",
]

Value: TypeAlias = Any  # a Python value of a column: it compares with those of the same type

OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column by its path: ("a",) or ("address", "city"). Names are exact and case-sensitive, as in Hudi's files."""

    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of a column: `from_unixtime(ts, 'yyyy-MM-dd')`. `options`: the arguments after the column, by their
    names in Hudi's expression indexes, in order of the names.
    """

    function: str
    column: Column
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.function}({', '.join([str(self.column), *(text for _, text in self.options)])})"


Operand: TypeAlias = Column | Call  # the side of a comparison that differs from row to row


@dataclass(frozen=True, slots=True)
class Compare:
    """`column op value`; op is one of `=`, `<>`, `<`, `<=`, `>`, `>=`; the value is not None."""

    column: Operand
    op: str
    value: Value


@dataclass(frozen=True, slots=True)
class CompareColumns:
    """`left op right` between two columns."""

    left: Operand
    op: str
    right: Operand


@dataclass(frozen=True)
class In:
    """`column IN (values)`. `has_null`: the list has a NULL, so a miss is unknown and NOT IN is never true."""

    column: Operand
    values: tuple[Value, ...]
    has_null: bool = False

    @lazy_property
    def ordered(self) -> list[Value]:
        """The values in ascending order, without not-a-number; it is searched for each of many files.

        Raises: TypeError if they can't be compared with each other.
        """
        return sorted(value for value in self.values if value == value)

    @lazy_property
    def has_nan(self) -> bool:
        """True if not-a-number is one of the values."""
        return any(value != value for value in self.values)

    def __reduce__(self) -> tuple[type[In], tuple[object, ...]]:
        return In, (self.column, self.values, self.has_null)  # computed attributes are not pickled


@dataclass(frozen=True, slots=True)
class IsNull:
    """`column IS NULL`; never unknown."""

    column: Operand


@dataclass(frozen=True, slots=True)
class Like:
    """`column LIKE pattern`: `%` is any characters, `_` is one character, a backslash escapes the next one."""

    column: Operand
    pattern: str

    @property
    def prefix(self) -> str:
        """The fixed prefix of every match."""
        return "".join(_literal(token) for token in _leading_literals(self.pattern))

    def regex(self) -> str:
        """The pattern as a regular expression for both RE2 and Python, to match a whole text."""
        parts = []
        for token in _like_tokens(self.pattern):
            parts.append(".*" if token == "%" else "." if token == "_" else re.escape(_literal(token)))
        return "(?s)^" + "".join(parts) + "$"


@dataclass(frozen=True, slots=True)
class And:
    """All terms hold."""

    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one term holds."""

    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; unknown remains unknown."""

    child: Predicate


@dataclass(frozen=True, slots=True)
class Constant:
    """True, false, or None for SQL's unknown."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Opaque:
    """A filter that only Arrow can evaluate (`pyarrow.compute.Expression`), with Arrow's meaning of NaN, which is not
    greater than any number. It prunes nothing.
    """

    expression: pc.Expression

    def __str__(self) -> str:
        return str(self.expression)


@dataclass(frozen=True, slots=True)
class SqlText:
    """A condition in Spark's SQL that the tree can't express: an SQL engine evaluates it for each row.

    If it is bound: `columns`: the top-level columns that it names; `zone`: that of its times; `implied`: a predicate
    that is true for every row that passes, with which statistics and indexes skip files.
    """

    text: str
    columns: tuple[str, ...] = ()
    zone: str = "UTC"
    implied: Predicate = Constant(True)

    def __str__(self) -> str:
        return self.text


Predicate = Compare | CompareColumns | In | IsNull | Like | And | Or | Not | Constant | Opaque | SqlText


def columns_of(predicate: Predicate) -> tuple[Column, ...]:
    """The columns that a predicate compares, each once, in order, except those inside functions; `Opaque` has none."""
    return tuple(operand for operand in operands_of(predicate) if isinstance(operand, Column))


def column_of(operand: Operand) -> Column:
    """The column itself, or the function's column."""
    return operand if isinstance(operand, Column) else operand.column


def calls_of(predicate: Predicate) -> tuple[Call, ...]:
    """The functions of columns that a predicate compares, each once."""
    return tuple(operand for operand in operands_of(predicate) if isinstance(operand, Call))


def operands_of(predicate: Predicate) -> tuple[Operand, ...]:
    """Columns and functions of columns, each once, in order."""
    operands: dict[Operand, None] = {}
    _collect(predicate, operands)
    return tuple(operands)


def is_opaque(predicate: Predicate) -> bool:
    """True if only Arrow can evaluate some part. The tree does not know that part's columns."""
    match predicate:
        case Opaque():
            return True
        case And(children) | Or(children):
            return any(is_opaque(child) for child in children)
        case Not(child):
            return is_opaque(child)
    return False


def conjunction(predicates: tuple[Predicate, ...]) -> Predicate:
    """The AND of predicates; true without predicates."""
    if not predicates:
        return Constant(True)
    return predicates[0] if len(predicates) == 1 else And(predicates)


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """The terms of an AND, in their order; a constant true has none."""
    if isinstance(predicate, And):
        return tuple(part for child in predicate.children for part in conjuncts(child))
    return () if predicate == Constant(True) else (predicate,)


def split_texts(predicate: Predicate) -> tuple[Predicate, tuple[SqlText, ...]]:
    """Split a condition into a part without SQL texts, and the texts that an SQL engine evaluates: all must hold."""
    parts = conjuncts(predicate)
    texts = tuple(part for part in parts if isinstance(part, SqlText))
    if not texts:
        return predicate, ()
    plain = tuple(part for part in parts if not isinstance(part, SqlText))
    return conjunction(plain), texts


def without_not(predicate: Predicate, negate: bool = False) -> Predicate:
    """The same predicate with NOT pushed to the leaves (De Morgan) and comparisons reversed."""
    match predicate:
        case Not(child):
            return without_not(child, not negate)
        case And(children):
            inner = tuple(without_not(child, negate) for child in children)
            return Or(inner) if negate else And(inner)
        case Or(children):
            inner = tuple(without_not(child, negate) for child in children)
            return And(inner) if negate else Or(inner)
        case Constant(value) if negate:
            return Constant(None if value is None else not value)
        case Compare(column, op, value) if negate:
            return Compare(column, OPPOSITE[op], value)
        case CompareColumns(left, op, right) if negate:
            return CompareColumns(left, OPPOSITE[op], right)
    return Not(predicate) if negate else predicate


def _collect(predicate: Predicate, operands: dict[Operand, None]) -> None:
    match predicate:
        case And(children) | Or(children):
            for child in children:
                _collect(child, operands)
        case Not(child):
            _collect(child, operands)
        case SqlText() as text:
            _collect(text.implied, operands)
        case CompareColumns(left, _, right):
            operands[left] = operands[right] = None
        case Compare(column, _, _) | In(column, _, _) | IsNull(column) | Like(column, _):
            operands[column] = None


def _like_tokens(pattern: str) -> list[str]:
    return re.findall(r"\\.|.", pattern, flags=re.DOTALL)


def _leading_literals(pattern: str) -> list[str]:
    tokens = _like_tokens(pattern)
    end = next((i for i, token in enumerate(tokens) if token in ("%", "_")), len(tokens))
    return tokens[:end]


def _literal(token: str) -> str:
    return token[1:] if len(token) == 2 else token
