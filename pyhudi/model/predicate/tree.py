"""Predicates: what a query asks of a row, as a small tree, and whether a range of values can hold such a row.

    Predicate = Compare | CompareColumns | In | IsNull | Like | And | Or | Not | Constant | Opaque

The logic is SQL's with three values: a comparison with null is unknown, a row is kept only when the predicate is true.
Not-a-number is what it is to Spark: equal to itself, and greater than every other number.
`may_match` looks at ranges (partition values, Parquet statistics, later column statistics) and never drops
a range that could hold a matching row. The SQL text form is read by `sql.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

__all__ = [
    "And",
    "Column",
    "Compare",
    "CompareColumns",
    "Constant",
    "In",
    "IsNull",
    "Like",
    "Not",
    "Opaque",
    "Or",
    "Predicate",
    "ValueRange",
    "columns_of",
    "conjunction",
    "is_opaque",
    "may_match",
    "to_sql",
    "without_not",
]

OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column by its path: ("a",) or ("address", "city"). Names are exact, case matters as in Hudi's files."""

    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Compare:
    """`column op value`; op is one of `=`, `<>`, `<`, `<=`, `>`, `>=`; the value is not None."""

    column: Column
    op: str
    value: Any


@dataclass(frozen=True, slots=True)
class CompareColumns:
    """`left op right` between two columns."""

    left: Column
    op: str
    right: Column


@dataclass(frozen=True, slots=True)
class In:
    """`column IN (values)`. `has_null`: the list held NULL, so a miss is unknown and NOT IN is never true."""

    column: Column
    values: tuple[Any, ...]
    has_null: bool = False


@dataclass(frozen=True, slots=True)
class IsNull:
    column: Column


@dataclass(frozen=True, slots=True)
class Like:
    """`column LIKE pattern`: `%` any characters, `_` one character, backslash takes the next one as it stands."""

    column: Column
    pattern: str

    @property
    def prefix(self) -> str:
        """The fixed text that every match begins with."""
        return "".join(_literal(token) for token in _leading_literals(self.pattern))

    def regex(self) -> str:
        """The pattern as a regular expression of RE2's and Python's common ground, to match a whole text."""
        parts = []
        for token in _like_tokens(self.pattern):
            parts.append(".*" if token == "%" else "." if token == "_" else re.escape(_literal(token)))
        return "(?s)^" + "".join(parts) + "$"


@dataclass(frozen=True, slots=True)
class And:
    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not:
    child: Predicate


@dataclass(frozen=True, slots=True)
class Constant:
    """True, false, or None for SQL's unknown."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Opaque:
    """A filter that only Arrow can evaluate (`pyarrow.compute.Expression`): with Arrow's meaning of not-a-number, which
    is greater than nothing. Nothing is pruned by it.
    """

    expression: Any

    def __str__(self) -> str:
        return str(self.expression)


Predicate = Compare | CompareColumns | In | IsNull | Like | And | Or | Not | Constant | Opaque


@dataclass(frozen=True, slots=True)
class ValueRange:
    """What is known of a column in a partition, file or row group.

    `low` and `high` bound the values that are not null (None: no bound known). `may_be_null`: a null may occur;
    `only_null`: nothing else does. `may_be_nan`: values outside of the bounds that compare with nothing may occur.
    """

    low: Any = None
    high: Any = None
    may_be_null: bool = True
    only_null: bool = False
    may_be_nan: bool = False


Ranges = Callable[[Column], "ValueRange | None"]


def columns_of(predicate: Predicate) -> tuple[Column, ...]:
    """The columns that a predicate looks at, each once, in the order they appear. Empty for `Opaque`."""
    found: dict[Column, None] = {}
    _collect(predicate, found)
    return tuple(found)


def is_opaque(predicate: Predicate) -> bool:
    """True when some part can only be evaluated by Arrow, so that its columns are not known from the tree."""
    match predicate:
        case Opaque():
            return True
        case And(children) | Or(children):
            return any(is_opaque(child) for child in children)
        case Not(child):
            return is_opaque(child)
    return False


def conjunction(predicates: tuple[Predicate, ...]) -> Predicate:
    """All of them; no predicate at all is true."""
    if not predicates:
        return Constant(True)
    return predicates[0] if len(predicates) == 1 else And(predicates)


def without_not(predicate: Predicate, negate: bool = False) -> Predicate:
    """The same predicate with NOT pushed to the leaves (De Morgan) and comparisons turned round."""
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
            return Compare(column, _OPPOSITE[op], value)
        case CompareColumns(left, op, right) if negate:
            return CompareColumns(left, _OPPOSITE[op], right)
    return Not(predicate) if negate else predicate


def may_match(predicate: Predicate, ranges: Ranges | Mapping[Column, ValueRange]) -> bool:
    """False only when no row within these ranges can make the predicate true.

    Args:    ranges: what is known per column; an unknown column (None or absent) may hold anything.
    """
    lookup = ranges.get if isinstance(ranges, Mapping) else ranges
    return _may_match(without_not(predicate), lookup)


def _may_match(predicate: Predicate, ranges: Ranges) -> bool:
    match predicate:
        case And(children):
            return all(_may_match(child, ranges) for child in children)
        case Or(children):
            return any(_may_match(child, ranges) for child in children)
        case Constant(value):
            return value is True
        case Compare(column, op, value):
            return _range_allows(ranges(column), lambda r: _compare_possible(r, op, value))
        case In(column, values, _):
            return _range_allows(ranges(column), lambda r: any(_compare_possible(r, "=", value) for value in values))
        case Not(In(column, values, has_null)):
            if has_null:
                return False
            return _range_allows(ranges(column), lambda r: all(_compare_possible(r, "<>", value) for value in values))
        case IsNull(column):
            known = ranges(column)
            return known is None or known.may_be_null or known.only_null
        case Not(IsNull(column)):
            known = ranges(column)
            return known is None or not known.only_null
        case Like(column, _) as like:
            return _range_allows(ranges(column), lambda r: _prefix_possible(r, like.prefix))
    return True  # Opaque, comparisons of two columns, NOT LIKE: nothing is known


def _range_allows(known: ValueRange | None, test: Callable[[ValueRange], bool]) -> bool:
    if known is None:
        return True
    if known.only_null:
        return False
    try:
        return test(known)
    except TypeError:  # bounds and value do not compare (another type): no pruning
        return True


def _compare_possible(r: ValueRange, op: str, value: Any) -> bool:
    low, high = r.low, r.high
    if value != value:  # NaN: equal to itself, greater than all others
        return r.may_be_nan if op in ("=", ">=") else op != ">"
    if r.may_be_nan and op in ("<>", ">", ">="):
        return True
    match op:
        case "=":
            return (low is None or low <= value) and (high is None or high >= value)
        case "<>":
            return low is None or high is None or not (low == high == value)
        case "<":
            return low is None or low < value
        case "<=":
            return low is None or low <= value
        case ">":
            return high is None or high > value
        case _:
            return high is None or high >= value


def _prefix_possible(r: ValueRange, prefix: str) -> bool:
    if not prefix:
        return True
    if r.high is not None and r.high < prefix:
        return False
    return r.low is None or r.low <= prefix or r.low.startswith(prefix)


def _collect(predicate: Predicate, found: dict[Column, None]) -> None:
    match predicate:
        case And(children) | Or(children):
            for child in children:
                _collect(child, found)
        case Not(child):
            _collect(child, found)
        case CompareColumns(left, _, right):
            found[left] = found[right] = None
        case Compare(column, _, _) | In(column, _, _) | IsNull(column) | Like(column, _):
            found[column] = None


def _like_tokens(pattern: str) -> list[str]:
    return re.findall(r"\\.|.", pattern, flags=re.DOTALL)


def _leading_literals(pattern: str) -> list[str]:
    tokens = _like_tokens(pattern)
    end = next((i for i, token in enumerate(tokens) if token in ("%", "_")), len(tokens))
    return tokens[:end]


def _literal(token: str) -> str:
    return token[1:] if len(token) == 2 else token


def to_sql(predicate: Predicate) -> str:
    """The predicate as SQL text that Spark and `parse_where` read alike. An `Opaque` part shows Arrow's own text."""
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
    return f"({text})" if isinstance(predicate, And | Or) else text


def _quoted(column: Column) -> str:
    return ".".join(
        part if re.fullmatch(r"[A-Za-z_]\w*", part) else "`" + part.replace("`", "``") + "`" for part in column.path
    )


def _sql_literal(value: Any) -> str:
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
