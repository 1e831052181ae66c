"""Predicates over columns of every kind, and the rows that plain Python keeps."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from pyhudi.expressions.predicates import (
    And,
    Column,
    Compare,
    CompareColumns,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
)

SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float64()),
        ("g", pa.float32()),
        ("d", pa.decimal128(9, 2)),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("bin", pa.binary()),
    ]
)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=timezone.utc)  # type: ignore[arg-type,misc]


VALUES: dict[str, list[Any]] = {
    "i": [-(2**31), -1, 0, 1, 7, 2**31 - 1],
    "l": [-(2**63), -1, 0, 2**53 + 1, 2**63 - 1],
    "f": [-math.inf, -1.5, -0.0, 0.0, 0.1, math.inf, math.nan],
    "g": [-2.5, 0.0, 1.5, math.nan],
    "d": [Decimal("-1.50"), Decimal("0.00"), Decimal("9999999.99")],
    "s": ["", "a", "ab", "a_b", "b%", "Ü", "\U0001f600", "a\nb", "it's $\\"],
    "b": [True, False],
    "day": [date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)],
    "at": [utc(1900, 1, 1), utc(1970, 1, 1), utc(2024, 2, 29, 12, 30, 1, 5)],
    "local": [datetime(1900, 1, 1), datetime(2024, 2, 29, 12)],
    "bin": [b"", b"\x00", b"\xff"],
}
# Literals that a column cannot hold, or that are spelled in another type.
STRANGERS: dict[str, list[Any]] = {
    "i": [0.5, Decimal("-1.5"), 2**40, -(2**70), math.inf, math.nan, "7"],
    "l": [2**70, 1e300, -math.inf, Decimal("0.1")],
    "f": [0, 1, Decimal("0.1"), "2.5"],
    "g": [0.1, 1],
    "d": [0, 0.005, Decimal("1e30"), Decimal("-1.501"), math.nan],
    "s": ["zz"],
    "b": ["true"],
    "day": ["2024-02-29", datetime(2024, 2, 29)],
    "at": ["2024-02-29T12:30:01.000005Z", date(1970, 1, 1), "1970-01-01 00:00:00"],
    "local": ["2024-02-29 12:00:00", date(1900, 1, 1)],
    "bin": ["a"],
}


@st.composite
def leaves(draw: Any) -> Predicate:
    name = draw(st.sampled_from(sorted(VALUES)))
    column = Column((name,))
    literal = st.sampled_from(VALUES[name] + STRANGERS[name])
    kind = draw(st.sampled_from(["compare", "in", "null", "like", "constant", "columns"]))
    if kind == "columns":
        left, right = draw(
            st.sampled_from([("f", "g"), ("g", "f"), ("i", "l"), ("l", "i"), ("i", "f"), ("f", "i"), ("s", "s")])
        )
        return CompareColumns(
            Column((left,)), draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="])), Column((right,))
        )
    if kind == "compare":
        return Compare(column, draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="])), draw(literal))
    if kind == "in":
        return In(column, tuple(draw(st.lists(literal, max_size=3))), draw(st.booleans()))
    if kind == "like":
        return Like(Column(("s",)), draw(st.sampled_from(["a%", "%b", "a\\_b", "_", "", "%", "a_b", "Ü%", "b\\%"])))
    if kind == "constant":
        return Constant(draw(st.sampled_from([True, False, None])))
    return IsNull(column)


PREDICATES = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(lambda parts: And(tuple(parts)), st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: Or(tuple(parts)), st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=6,
)

ROWS = st.lists(
    st.fixed_dictionaries({name: st.one_of(st.none(), st.sampled_from(values)) for name, values in VALUES.items()}),
    max_size=8,
)


def plain_literal(name: str, value: Any) -> Any:
    """The literal as one would write it for Python's own comparison."""
    if name in ("i", "l", "d", "f", "g") and isinstance(value, str):
        return Decimal(value)
    if name in ("f", "g") and isinstance(value, Decimal):
        return float(value)
    if name == "b" and isinstance(value, str):
        return value == "true"
    if name == "day":
        if isinstance(value, str):
            return date.fromisoformat(value)
        return value.date() if isinstance(value, datetime) else value
    if name in ("at", "local"):
        if isinstance(value, str):
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        elif not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        return value.replace(tzinfo=timezone.utc) if name == "at" else value
    return value.encode() if name == "bin" and isinstance(value, str) else value


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def compared(value: Any, op: str, literal: Any) -> bool:
    """Spark's order: NaN equals itself and is greater than every other number."""
    nan = [isinstance(x, Decimal | float) and x != x for x in (value, literal)]
    if any(nan):
        return COMPARE[op](*nan)
    if isinstance(literal, float) and isinstance(value, Decimal):
        literal = Decimal(repr(literal)) if math.isfinite(literal) else literal
    return COMPARE[op](value, literal)


def keeps(predicate: Predicate, row: dict[str, Any]) -> bool | None:
    """SQL's answer for one row in plain Python: true, false or None for unknown."""
    match predicate:
        case And(children):
            answers = [keeps(child, row) for child in children]
            return False if False in answers else None if None in answers else True
        case Or(children):
            answers = [keeps(child, row) for child in children]
            return True if True in answers else None if None in answers else False
        case Not(child):
            answer = keeps(child, row)
            return None if answer is None else not answer
        case Constant(value):
            return value
        case IsNull(column):
            return row[column.path[0]] is None
        case Compare(column, op, value):
            stored = row[column.path[0]]
            return None if stored is None else compared(stored, op, plain_literal(column.path[0], value))
        case CompareColumns(left, op, right):
            pair = (row[left.path[0]], row[right.path[0]])
            return None if None in pair else compared(pair[0], op, pair[1])
        case In(column, values, has_null):
            stored = row[column.path[0]]
            if stored is None:
                return None
            hit = any(compared(stored, "=", plain_literal(column.path[0], value)) for value in values)
            return True if hit else None if has_null else False
        case Like(_, pattern):
            return None if row["s"] is None else like(row["s"], pattern)
    raise AssertionError(predicate)


def like(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(like(text[i:], pattern[1:]) for i in range(len(text) + 1))
    token, rest = (pattern[1], pattern[2:]) if pattern[0] == "\\" else (pattern[0], pattern[1:])
    if not text or (pattern[0] != "_" and text[0] != token):
        return False
    return like(text[1:], rest)
