"""Filters keep exactly the rows that plain Python keeps, and pruning never loses one of them."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from pyhudi.errors import ConfigError
from pyhudi.expressions.binding import bind
from pyhudi.expressions.filters import to_arrow, top_level_columns
from pyhudi.expressions.predicates import Column, Predicate
from pyhudi.expressions.statistics.ranges import ValueRange, may_match
from pyhudi.expressions.where import parse_where
from pyhudi.expressions.where_text import to_sql
from tests.support.values.predicates import (
    PREDICATES,
    ROWS,
    SCHEMA,
    VALUES,
    keeps,
    utc,
)


@settings(deadline=None)
@given(ROWS, PREDICATES)
def test_a_filter_keeps_what_plain_python_keeps(rows: list[dict[str, Any]], predicate: Predicate) -> None:
    data = pa.Table.from_pylist(rows, schema=SCHEMA)

    kept = data.append_column("row", pa.array(range(len(rows)), pa.int64())).filter(
        to_arrow(bind(predicate, SCHEMA), SCHEMA)
    )

    assert kept["row"].to_pylist() == [i for i, row in enumerate(rows) if keeps(predicate, row) is True]


@settings(deadline=None)
@given(ROWS, PREDICATES)
def test_pruning_by_ranges_never_drops_a_row_that_the_filter_keeps(
    rows: list[dict[str, Any]], predicate: Predicate
) -> None:
    ranges = {Column((name,)): value_range([row[name] for row in rows]) for name in VALUES}

    if not may_match(bind(predicate, SCHEMA), ranges):
        assert [row for row in rows if keeps(predicate, row) is True] == []


def value_range(values: list[Any]) -> ValueRange:
    """What Parquet statistics say of these values: NaN is left out of the bounds."""
    present = [value for value in values if value is not None and value == value]
    nulls = any(value is None for value in values)
    if not present:
        return ValueRange(may_be_null=nulls, only_null=all(v is None for v in values), may_be_nan=True)
    may_be_nan = isinstance(present[0], float)
    return ValueRange(min(present), max(present), may_be_null=nulls, may_be_nan=may_be_nan)


@settings(deadline=None)
@given(ROWS, PREDICATES)
def test_a_predicate_written_as_sql_and_read_again_means_the_same(
    rows: list[dict[str, Any]], predicate: Predicate
) -> None:
    again = parse_where(to_sql(predicate))

    assert [keeps(again, row) for row in rows] == [keeps(predicate, row) for row in rows]


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("i = 7 OR s LIKE 'a%'", [0, 1]),
        ("i BETWEEN 6 AND 8", [0]),
        ("NOT (i BETWEEN 6 AND 8)", [2]),
        ("i IN (7, NULL)", [0]),
        ("i NOT IN (7, NULL)", []),
        ("i IS NULL AND s IS NOT NULL", [1]),
        ("8 > i", [0, 2]),
        ("b", [0]),
        ("NOT b", [1]),
        ("`day` >= DATE '2024-01-01'", [0]),
        ('`day` >= "2024-01-01"', [0]),  # double quotes are text, as in Spark
        ('s = "s"', []),
        ('s = "a"', [0]),
        ("s IN (\"a\", 'ab')", [0, 1]),
        ('s LIKE "a%" AND "it\'s ""so""" = \'it\\\'s "so"\'', [0, 1]),
        ("at < TIMESTAMP '2024-01-01 00:00:00'", [1]),
        ("i <=> NULL", [1]),
        ("i <=> 7", [0]),
        ("NOT (i <=> 7)", [1, 2]),
        ("bin = X'ff'", [1]),
        ("f = DOUBLE('inf')", [1]),
        ("l = i", [0]),
        ("i < DOUBLE('nan')", [0, 2]),
        ("d >= DOUBLE('nan')", []),
        ("f <> DOUBLE('nan')", [1]),
        ("i < 6.5", [2]),
        ("i > -3.5", [0, 2]),
        ("i <> 0.5", [0, 2]),
        ("i < 99999999999999999999", [0, 2]),
        ("d < 1.105", [0, 2]),
        ("d > 1e-2 and d < 2.5", [0]),
        ([("i", ">", 1), ("s", "=", "a")], [0]),
        (("i", "in", [7, 3]), [0]),
        (("i", "is null"), [1]),
        (("i", "between", (6, 8)), [0]),
        (None, [0, 1, 2]),
    ],
)
def test_where_means_what_sql_says(where: Any, rows: list[int]) -> None:
    data = pa.Table.from_pylist(
        [
            {"i": 7, "l": 7, "s": "a", "b": True, "day": date(2024, 1, 1), "at": utc(2024, 1, 1), "d": Decimal("1.10")},
            {"i": None, "l": 1, "s": "ab", "b": False, "at": utc(2023, 1, 1), "bin": b"\xff", "f": math.inf},
            {"i": -3, "l": 4, "s": None, "d": Decimal("0.00")},
        ],
        schema=SCHEMA,
    ).append_column("row", pa.array([0, 1, 2]))

    assert data.filter(to_arrow(bind(parse_where(where), SCHEMA), SCHEMA))["row"].to_pylist() == rows


def test_a_field_of_a_struct_is_named_with_dots_and_a_column_with_dots_in_its_name_wins() -> None:
    schema = pa.schema(
        [("a", pa.struct([("b", pa.int32())])), ("c.d", pa.int32()), ("c", pa.struct([("d", pa.int32())]))]
    )
    data = pa.Table.from_pylist(
        [{"a": {"b": 1}, "c.d": 1, "c": {"d": 2}}, {"a": None, "c.d": 2, "c": {"d": 1}}], schema=schema
    )

    def ids(where: str) -> list[Any]:
        return data.filter(to_arrow(bind(parse_where(where), schema), schema))["c.d"].to_pylist()

    assert ids("a.b = 1") == [1]
    assert ids("a.b is null") == [2]
    assert ids("c.d = 1") == [1]
    assert top_level_columns(bind(parse_where("a.b = 1 or c.d = 2"), schema), schema) == {"a", "c.d"}


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("name = 1", "which the table does not have"),
        ("i = 'seven'", "is no value of that type"),
        ("s = 5", "is no value of that type"),
        ("day = 'tomorrow'", "is no value of that type"),
        ("i LIKE 'a%'", "LIKE needs text"),
        ("i =", "expected a column or a value at character 4"),
        ("i = 1 AND", "found the end"),
        ("(i = 1", "expected '\\)'"),
        ("i = 1; DROP TABLE t", "not understood"),
        ("i IN 5", "expected '\\('"),
        ("", "empty text"),
        ("(" * 300 + "i = 1" + ")" * 300, "nested"),
        (7, "expected SQL text"),
        (("i", "~", 1), "not understood"),
        (("i", "in", "abc"), "list of values"),
    ],
)
def test_a_where_that_cannot_be_meant_is_refused_with_what_to_do(where: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        bind(parse_where(where), SCHEMA)


def test_an_unknown_column_is_named_together_with_its_neighbour() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'local'"):
        bind(parse_where("locl is null"), SCHEMA)


def test_unsigned_numbers_of_64_bits_are_compared_with_signed_ones() -> None:
    rows = pa.table({"u": pa.array([1 << 63, 1, None], pa.uint64()), "i": pa.array([-1, 1, 1], pa.int64())})
    found = [rows.filter(to_arrow(bind(parse_where(f"u {op} i"), rows.schema), rows.schema)) for op in (">", "=")]

    assert [table["i"].to_pylist() for table in found] == [[-1], [1]]
