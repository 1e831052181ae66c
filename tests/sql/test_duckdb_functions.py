"""Spark's functions without Spark: what DuckDB answers is what Spark answers, or an error that names the function."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any

import pytest

from pyhudi import ConfigError, DuckDbSession
from tests.support.sql.functions import FUNCTIONS, is_same, plain

# docs/sql-without-spark.md names these.
REFUSED = {
    "arrays_zip", "conv", "cot", "crc32", "DATE", "elt", "expm1", "format_number", "from_json", "hash", "inline",
    "log1p", "make_interval", "map_concat", "map_filter", "months_between", "percentile", "regexp_count", "round",
    "skewness", "soundex", "stack", "str_to_map", "to_json", "transform_values", "typeof", "width_bucket", "xxhash64",
    "zip_with",
}  # fmt: skip


@pytest.fixture(scope="module")
def session() -> DuckDbSession:
    return DuckDbSession()


def rows_of(session: DuckDbSession, expression: str) -> list[Any]:
    return [plain(list(row.values())) for row in session.sql(f"SELECT {expression}").to_arrow().to_pylist()]


@pytest.mark.parametrize("expression", FUNCTIONS)
def test_an_expression_has_sparks_answer_or_is_refused(session: DuckDbSession, expression: str) -> None:
    name = re.match(r"\w*", expression)
    assert name is not None
    try:
        found = rows_of(session, expression)
    except ConfigError:
        assert name[0] in REFUSED
        return
    assert is_same(found, FUNCTIONS[expression]), found


def test_the_table_has_the_functions_that_are_used_most() -> None:
    called = {name for expression in FUNCTIONS for name in re.findall(r"(\w+)\(", expression)}

    assert len(FUNCTIONS) > 350
    assert len(called) > 250


@pytest.mark.parametrize(
    ("expression", "rows"),
    [
        ("CAST(x AS INT) FROM VALUES (1.9D), (-1.9D) AS t(x)", [[1], [-1]]),
        ("CAST(x AS INT) FROM VALUES ('12'), (NULL) AS t(x)", [[12], [None]]),
        ("try_cast(x AS INT) FROM VALUES ('12'), ('1.9'), ('x') AS t(x)", [[12], [None], [None]]),
        ("CAST(x AS STRING) FROM VALUES (1.5E-7D), (123456.5D), (1E7D), (0.001D), (-0.0D) AS t(x)",
         [["1.5E-7"], ["123456.5"], ["1.0E7"], ["0.001"], ["-0.0"]]),
        ("array_distinct(array(3, NULL, 1, 3, NULL))", [[[3, None, 1]]]),
        ("array_union(array(3, NULL), array(1, 3, NULL))", [[[3, None, 1]]]),
        ("array_except(array(3, NULL, 1, 3), array(1, NULL))", [[[3]]]),
        ("arrays_overlap(array(1, NULL), array(2))", [[None]]),
        ("substring_index('a.b.c', '.', -2)", [["b.c"]]),
        ("url_decode('a+b%2A~')", [["a b*~"]]),
        ("url_encode('a*b~é')", [["a*b%7E%C3%A9"]]),
        ("x LIKE y FROM VALUES ('a_b', 'a\\\\_b'), ('axb', 'a\\\\_b') AS t(x, y)", [[True], [False]]),
        ("'a%b' NOT LIKE 'a\\\\%_'", [[False]]),
        ("trunc(DATE '2024-05-09', 'week')", [["date 2024-05-06"]]),
        ("pmod(x, -3) FROM VALUES (-7), (7) AS t(x)", [[-1], [1]]),
        ("7 / x FROM VALUES (2), (NULL) AS t(x)", [[3.5], [None]]),
        ("exists(array(1, NULL), x -> x > 1), EXISTS (SELECT 1)", [[None, True]]),
        ("forall(array(1, NULL), x -> x > 0), forall(array(0, NULL), x -> x > 0)", [[None, False]]),
    ],
)  # fmt: skip
def test_the_far_corners_are_as_in_spark(session: DuckDbSession, expression: str, rows: list[Any]) -> None:
    assert rows_of(session, expression) == rows


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("1 / x FROM VALUES (0) AS t(x)", "Division by zero"),
        ("CAST(x AS INT) FROM VALUES ('1.9') AS t(x)", "'1.9'"),
        ("CAST(x AS INT) FROM VALUES (3e9D) AS t(x)", "3000000000"),
        ("hash(1)", "hash"),
        ("typeof(1)", "typeof"),
    ],
)
def test_what_spark_refuses_or_has_another_meaning_is_an_error(
    session: DuckDbSession, expression: str, says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        rows_of(session, expression)


def test_columns_without_a_name_are_called_as_in_spark(session: DuckDbSession) -> None:
    found = session.sql("SELECT count(*), sum(x), CAST(x AS STRING), 'a', x + 1 FROM VALUES (1) AS t(x) GROUP BY x")

    assert found.to_arrow().schema.names == ["count(1)", "sum(x)", "CAST(x AS STRING)", "a", "(x + 1)"]


def test_nulls_come_first_and_lists_begin_at_zero(session: DuckDbSession) -> None:
    assert rows_of(session, "x FROM VALUES (2), (NULL), (1) AS t(x) ORDER BY x") == [[None], [1], [2]]
    assert rows_of(session, "array(1, 2)[0]") == [[1]]


def test_a_statement_that_spark_does_not_know_is_duckdbs(session: DuckDbSession) -> None:
    assert session.sql("SUMMARIZE SELECT 1 AS x").to_arrow().column("column_name").to_pylist() == ["x"]
    with pytest.raises(ConfigError, match="SELEC"):
        session.sql("SELEC 1").to_arrow()


@pytest.mark.thorough
def test_brackets_in_brackets_are_computed_or_refused(session: DuckDbSession) -> None:
    assert rows_of(session, "(" * 150 + "1" + ")" * 150) == [[1]]
    with pytest.raises(ConfigError):
        rows_of(session, "(" * 50_000 + "1" + ")" * 50_000)
    with pytest.raises(ConfigError):
        rows_of(session, "(" * 50_000)
    with pytest.raises(ConfigError):
        rows_of(session, "+".join(["1"] * 50_000))


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("collect_list(CAST(v AS STRING))", ["1", "2"]),
        ("collect_list(v / 1)", [1.0, 2.0]),
        ("max(add_months(CAST(DATE '2024-01-31' AS STRING), 1))", date(2024, 2, 29)),
        ("max(try_divide(8, v / 1))", 8.0),
        ("max(try_divide(8, 4 / 2))", 4.0),
        ("max(upper(CAST(v AS INT)))", "2"),
    ],
)
def test_a_translated_part_is_to_the_function_around_it_what_it_was(
    session: DuckDbSession, expression: str, answer: object
) -> None:
    """sqlglot drops nulls of columns, puts operators in brackets and casts texts by what it sees in the part."""
    query = f"SELECT {expression} AS answer FROM VALUES (1), (2), (NULL) AS t(v)"
    value = session.sql(query).to_arrow()["answer"][0].as_py()
    assert (value.date() if isinstance(value, datetime) else value) == answer
