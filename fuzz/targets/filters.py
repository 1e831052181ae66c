"""Filters: `where` text, from the parser to Arrow's answer, to SQL and back."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa

from fuzz.mutation import Mutator
from fuzz.target import Target
from pyhudi.errors import HudiError
from pyhudi.expressions.binding import bind
from pyhudi.expressions.filters import to_arrow, top_level_columns
from pyhudi.expressions.predicates import Column, Predicate, columns_of
from pyhudi.expressions.statistics.ranges import ValueRange, may_match
from pyhudi.expressions.where import parse_where
from pyhudi.expressions.where_text import to_sql

__all__ = ["TARGETS"]

_DAY, _AT = date(2024, 2, 29), datetime(2024, 2, 29, 12, tzinfo=timezone.utc)
_TABLE = pa.table(
    {
        "i": pa.array([1, None, -5], pa.int32()),
        "l": pa.array([2**62, None, 0], pa.int64()),
        "u": pa.array([2**63, None, 0], pa.uint64()),
        "f": pa.array([1.5, None, float("nan")], pa.float64()),
        "g": pa.array([1.5, None, -0.0], pa.float32()),
        "d": pa.array([Decimal("1.50"), None, Decimal("-9.99")], pa.decimal128(9, 2)),
        "s": pa.array(["a", None, "ü%_"], pa.string()),
        "b": pa.array([True, None, False], pa.bool_()),
        "day": pa.array([_DAY, None, date(1, 1, 1)], pa.date32()),
        "at": pa.array([_AT, None, _AT], pa.timestamp("us", "UTC")),
        "ms": pa.array([_AT, None, _AT], pa.timestamp("ms", "UTC")),
        "local": pa.array([_AT.replace(tzinfo=None), None, None], pa.timestamp("us")),
        "bin": pa.array([b"a", None, b""], pa.binary()),
        "st": pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int64())])),
        "tags": pa.array([["a"], None, []], pa.list_(pa.string())),
        "nothing": pa.nulls(3),
    }
)
_RANGES = {
    Column(("i",)): ValueRange(-5, 1),
    Column(("s",)): ValueRange("a", "ü%_"),
    Column(("day",)): ValueRange(_DAY, _DAY),
}


def _where(data: bytes) -> None:
    """The predicate, its answer, and the same answer from its SQL."""
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    predicate = parse_where(text)
    columns_of(predicate)
    answer = _answer(predicate)
    try:
        again = parse_where(to_sql(predicate))
    except HudiError as error:
        raise AssertionError(f"its own SQL is refused: {error}") from error
    if _answer(again) != answer:
        raise AssertionError(f"its own SQL gives other rows: {to_sql(predicate)[:300]}")


def _answer(predicate: Predicate) -> list[object]:
    bound = bind(predicate, _TABLE.schema)
    top_level_columns(bound, _TABLE.schema)
    may_match(bound, _RANGES)
    rows: list[object] = (
        _TABLE.append_column("row", pa.array([0, 1, 2])).filter(to_arrow(bound, _TABLE.schema))["row"].to_pylist()
    )
    return rows


_TOKENS = (
    "(",
    ")",
    ",",
    ".",
    "+",
    "-",
    "=",
    "==",
    "<>",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "<=>",
    " AND ",
    " OR ",
    " NOT ",
    " IN ",
    " IS ",
    " NULL ",
    " LIKE ",
    " BETWEEN ",
    " TRUE ",
    " FALSE ",
    "DATE '2024-02-29'",
    "DATE '0000-00-00'",
    "TIMESTAMP '2024-02-29 12:00:00'",
    "TIMESTAMP '0001-01-01T00:00:00+23:59'",
    "TIMESTAMP '9999-12-31T23:59:59-23:59'",
    "X'00ff'",
    "X'0'",
    "DOUBLE('NaN')",
    "DOUBLE('1e999')",
    "FLOAT(1)",
    "DOUBLE(NULL)",
    "1",
    "1.5",
    "1e5",
    "1e999",
    "-1",
    "1L",
    "1.5L",
    "1e400L",
    "5BD",
    "1e99999999BD",
    "1e99999999L",
    "1e5D",
    "9" * 20,
    "9" * 400,
    "9" * 5000,
    "0." + "9" * 5000,
    "٣",
    "'a'",
    "''",
    "'a''b'",
    "'\\'",
    "'%'",
    "'_%\\%'",
    "'\ud800'",
    "'2024-02-29'",
    "'x" + "y" * 5000 + "'",
    "`i`",
    "`a``b`",
    '"s"',
    "i",
    "l",
    "u",
    "f",
    "g",
    "d",
    "s",
    "b",
    "day",
    "at",
    "ms",
    "local",
    "bin",
    "st.x",
    "st",
    "tags",
    "nothing",
    "missing",
    "x.y.z",
    "\x00",
    "/*",
    "--",
    ";",
    "\ud800",
    "ª",
    "İ",
    "ſ",
)
_SEEDS = (
    "i = 1 AND s LIKE 'a%' OR NOT (f > 1.5)",
    "day >= DATE '2024-01-01' AND at < TIMESTAMP '2024-03-01 00:00:00Z'",
    "i IN (1, 2, NULL) OR l NOT IN (5) AND d BETWEEN 1 AND 2.5",
    "s IS NOT NULL AND b AND st.x <=> NULL",
    "`s` = 'it''s' AND bin = X'61' AND f <> DOUBLE('NaN')",
    "d = 1.50BD OR g < 1.5F OR u > 9223372036854775808 OR ms = '2024-02-29'",
)


def _tokens_changed(data: bytes, mutator: Mutator) -> bytes:
    random, text = mutator.random, data.decode("utf-8", "replace")
    parts = text.split(" ")
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(parts))
        change = random.randrange(5)
        if change == 0:
            parts[at] = random.choice(_TOKENS)
        elif change == 1:
            parts.insert(at, random.choice(_TOKENS))
        elif change == 2:
            parts[at : at + 1] = [parts[at]] * random.choice((2, 5, 300))
        elif change == 3:
            parts[at], parts[random.randrange(len(parts))] = parts[random.randrange(len(parts))], parts[at]
        else:
            parts[at : at + random.randint(1, 3)] = [random.choice(_TOKENS)]
    return " ".join(parts).encode("utf-8", "surrogatepass")


def _comparison_made(data: bytes, mutator: Mutator) -> bytes:
    """Column, operator, literal: any with any."""
    random = mutator.random
    words = [random.choice(_TOKENS[-32:-9]), random.choice(_TOKENS[6:15]), random.choice(_TOKENS[25:62])]
    return " ".join(words).encode("utf-8", "surrogatepass")


def _grown(data: bytes, mutator: Mutator) -> bytes:
    """Many terms, deep brackets, long lists and literals."""
    random, text = mutator.random, data.decode("utf-8", "replace")
    times = random.choice((2, 2, 5, 20, 20, 65, 150, 250, random.choice((1000, 5000))))
    grown = {
        "or": lambda: " OR ".join([text] * min(times, 2000)),
        "and": lambda: " AND ".join([f"({text})"] * min(times, 2000)),
        "brackets": lambda: "(" * times + text + ")" * times,
        "not": lambda: "NOT " * times + text,
        "not brackets": lambda: "NOT (" * times + text + ")" * times,
        "in": lambda: f"i IN ({', '.join(map(str, range(times * 5)))})",
        "in floats": lambda: f"f NOT IN ({', '.join(f'{n}.5' for n in range(times))})",
        "column": lambda: ".".join(["st"] * times) + " = 1",
        "digits": lambda: f"d < {'9' * times}.{'9' * times}",
        "text": lambda: f"s LIKE '{'a%' * times}'",
    }
    return grown[random.choice(list(grown))]().encode("utf-8", "surrogatepass")


TARGETS = (
    Target(
        "where",
        _where,
        lambda: [text.encode() for text in _SEEDS],
        (_tokens_changed, _comparison_made, _grown),
        tuple(token.encode("utf-8", "surrogatepass") for token in _TOKENS),
    ),
)
