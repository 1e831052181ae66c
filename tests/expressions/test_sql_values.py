"""Values as SQL text: which of them Arrow computes, which DuckDB, and what is refused."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import ConfigError
from pyhudi.expressions.engines import projected
from pyhudi.expressions.values import EngineValue, Literal, UnknownName, sql_value

ROWS = pa.table(
    {
        "n": pa.array([1, 2, None], pa.int64()),
        "i": pa.array([1, 2, 3], pa.int32()),
        "f": pa.array([1.5, -2.7, 2.0]),
        "s": ["Ab", " x ", None],
        "d": pa.array([Decimal("1.10"), Decimal("2.00"), None], pa.decimal128(10, 2)),
        "b": [True, False, None],
        "source": [{"x": 1, "T": "q"}] * 3,
    }
)
BY_ARROW = {
    "n + 1": [2, 3, None],
    "N * 2 - i": [1, 2, None],
    "-n": [-1, -2, None],
    "i / 2": [0.5, 1.0, 1.5],
    "f * 2": [3.0, -5.4, 4.0],
    "d + 1": [Decimal("2.10"), Decimal("3.00"), None],
    "d * 1.5": [Decimal("1.650"), Decimal("3.000"), None],
    "upper(s)": ["AB", " X ", None],
    "trim(s)": ["Ab", "x", None],
    "s || '-' || i": ["Ab-1", " x -2", None],
    "concat(s, 'x')": ["Abx", " x x", None],
    "length(s)": [2, 3, None],
    "abs(-n)": [1, 2, None],
    "coalesce(n, 0)": [1, 2, 0],
    "CASE WHEN n > 1 THEN 'a' WHEN b THEN 'b' END": ["b", "a", None],
    "CASE s WHEN 'Ab' THEN 1 ELSE 2 END": [1, 2, 2],
    "if(b, n, NULL)": [1, None, None],
    "CAST(f AS INT)": [1, -2, 2],
    "CAST(n AS STRING)": ["1", "2", None],
    "source.x + n": [2, 3, None],
    "source.t": ["q", "q", "q"],
    "n > 1 OR b": [True, True, None],
    "s LIKE 'A%'": [True, False, None],
}
BY_DUCKDB = {
    "substring(s, 1, 1)": ["A", " ", None],
    "n % 2": [1, 0, None],
    "nullif(n, 1)": [None, 2, None],
    "date_add(DATE '2024-01-31', 1)": [date(2024, 2, 1)] * 3,
    "s RLIKE 'A.*'": [True, False, None],
    "greatest(n, i)": [1, 2, 3],
    "CAST(f AS STRING)": ["1.5", "-2.7", "2.0"],
}


@pytest.mark.parametrize("text", BY_ARROW)
def test_arrow_computes_what_it_computes_as_spark_does(text: str) -> None:
    value = sql_value(text, ROWS.schema, "set=")
    assert isinstance(value, pc.Expression)
    assert projected(value, ROWS, "set=").to_pylist() == BY_ARROW[text]


@pytest.mark.parametrize("text", BY_DUCKDB)
def test_duckdb_computes_the_rest(text: str) -> None:
    pytest.importorskip("duckdb")
    value = sql_value(text, ROWS.schema, "set=")
    assert isinstance(value, EngineValue)
    assert value(ROWS).to_pylist() == BY_DUCKDB[text]


@pytest.mark.parametrize(
    ("text", "value"),
    [("'rome'", "rome"), ("5", 5), ("-1.5", Decimal("-1.5")), ("true", True), ("NULL", None), ("'it''s'", "it's")],
)
def test_a_constant_is_a_python_value(text: str, value: object) -> None:
    assert sql_value(text, ROWS.schema, "set=") == Literal(value)


@pytest.mark.parametrize(
    "text", ["", "a b c", "(SELECT 1)", "sum(n)", "n, i", "n; DROP TABLE t", "n FROM t", "n AS m", "*", "'open"]
)
def test_what_is_no_expression_of_a_row_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="set="):
        sql_value(text, ROWS.schema, "set=")


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(UnknownName, match="names the column 'late', which is not there"):
        sql_value("late", ROWS.schema, "set=")
    with pytest.raises(UnknownName, match="which is not there"):
        sql_value("substring(source.nothing, 1)", ROWS.schema, "set=")


@pytest.mark.parametrize("text", ["n + 9223372036854775807", "i / 0"])
def test_overflows_and_divisions_by_zero_are_errors(text: str) -> None:
    with pytest.raises(ConfigError, match="can't be computed"):
        projected(sql_value(text, ROWS.schema, "set="), ROWS, "set=")  # type: ignore[arg-type]


def test_now_is_the_moment_when_the_text_is_read() -> None:
    before = datetime.now(timezone.utc).replace(microsecond=0)
    value = sql_value("current_timestamp()", ROWS.schema, "set=")
    assert isinstance(value, pc.Expression)
    (now,) = set(projected(value, ROWS, "set=").to_pylist())
    assert before <= now <= datetime.now(timezone.utc)


def test_duckdb_sees_the_rows_and_no_files() -> None:
    pytest.importorskip("duckdb")
    from pyhudi.sql.duckdb_values import evaluate

    assert evaluate("n % 2", ROWS).to_pylist() == [1, 0, None]
    with pytest.raises(ConfigError):
        evaluate("(SELECT content FROM read_text('/etc/hostname'))", ROWS)
