"""Typed expressions: types and refusals that the list of Spark's answers does not have."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi import ConfigError, DuckDbSession, sql
from pyhudi.expressions.text import typed_value

pytest.importorskip("duckdb")
SCHEMA = pa.schema([("n", pa.int32()), ("l", pa.int64()), ("x", pa.float64()), ("s", pa.string()), ("d", pa.date32())])
ROWS = pa.table({"n": pa.array([7, None], pa.int32()), "s": ["a.b", None], "x": [0.1, None]})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("n + l", pa.int64()),
        ("n / 2", pa.float64()),
        ("n + 1.5", pa.decimal128(12, 1)),
        ("coalesce(n, '7')", pa.int64()),
        ("d + 1", pa.date32()),
        ("if(n > 1, NULL, s)", pa.string()),
        ("array(n, l)", pa.list_(pa.int64())),
        ("named_struct('a', n, 'b', s)", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ],
)
def test_an_expression_has_the_type_that_spark_gives_it(text: str, kind: pa.DataType) -> None:
    assert typed_value(text, SCHEMA).type == kind


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("soundex(s)", "the function soundex is not among those that mean the same without Spark"),
        ("uper(s)", "Did you mean upper"),
        ("d + 0.5", "DATE \\+ DECIMAL"),
        ("n = 1 = x", "write brackets around one of the two comparisons"),
        ("1 | 2 & n", "write brackets around one of the two operators"),
        ("s || 1 + 2", "write brackets around one of the two operators"),
        ("split(s, '(?=a)')", "needs Spark"),
        ("regexp_replace(s, 'a*', 'b')", "matches an empty text"),
        ("date_format(d, 'YYYY')", "'YYYY'"),
        ("5L + 1.5", "write 5"),
        ("greatest(n, s)", "greatest takes values of one type, found INT, STRING"),
        ("cast(d as int)", "DATE is not cast to INT"),
        ("d - date'2024-01-01'", "INTERVAL DAY, which no column holds"),
    ],
)
def test_what_may_mean_something_else_is_refused_by_name(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        typed_value(text, SCHEMA)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("try_cast(n * 1000000000 as string)", "overflow"),
        ("split(concat(s, chr(10)), 'b$')", "need Spark"),
        ("try_cast('0x1p3' as double)", "need Spark"),
    ],
)
def test_a_row_that_may_mean_something_else_is_an_error_and_no_null(text: str, value: str) -> None:
    rows = ROWS
    with pytest.raises(ConfigError, match=f"(?i){value}"):
        sql(f"SELECT {text} FROM rows").to_arrow()
    assert rows.num_rows == 2


def test_nulls_stay_nulls_where_a_function_has_an_answer_for_the_rest() -> None:
    rows = ROWS
    texts = "left(s, -1) a, locate('', s) b, split_part(s, '.', 1) c, date_format(NULL, 'G') d, n % 0 IS NULL e"
    with pytest.raises(ConfigError, match="zero"):
        sql(f"SELECT {texts} FROM rows").to_arrow()
    texts = texts.replace("n % 0", "n % 2")
    found = sql(f"SELECT {texts} FROM rows WHERE s IS NULL").to_arrow().to_pylist()
    assert found == [{"a": None, "b": None, "c": None, "d": None, "e": True}]
    assert rows.num_rows == 2


def test_a_query_in_duckdbs_own_words_says_so() -> None:
    with pytest.raises(ConfigError, match="dialect='duckdb'"):
        sql("SELECT [1, 2, 3][1]")
    session = DuckDbSession()
    assert session.sql("SELECT [1, 2, 3][1] AS n", dialect="duckdb").to_arrow().to_pylist() == [{"n": 1}]
    with pytest.raises(ConfigError, match="expected 'spark' or 'duckdb'"):
        session.sql("SELECT 1", dialect="hive")


def test_a_statement_that_is_no_query_is_duckdbs_and_windows_leave_nulls_out() -> None:
    rows = ROWS
    session = DuckDbSession()
    session.sql("CREATE MACRO twice(x) AS 2 * x")
    assert session.sql("SELECT twice(4) AS n", dialect="duckdb").to_arrow().to_pylist() == [{"n": 8}]
    found = session.sql("SELECT first_value(n, true) OVER (ORDER BY n NULLS FIRST) AS f FROM rows").to_arrow()
    assert sorted(map(str, found["f"].to_pylist())) == ["7", "None"]
    assert rows.num_rows == 2


def test_letters_of_ascii_and_of_others_are_mapped_as_java_maps_them() -> None:
    texts = pa.table({"s": ["abC", None]}), pa.table({"s": ["abC", "straße", "İ", None]})
    for rows in texts:
        found = sql("SELECT upper(s) u, lower(s) l FROM rows").to_arrow()
        expected = [None if text is None else text.upper() for text in rows["s"].to_pylist()]
        assert found["u"].to_pylist() == expected
    assert found["l"].to_pylist() == ["abc", "straße", "i̇", None]


def test_a_decimal_below_one_as_text_has_its_zero() -> None:
    found = sql("SELECT 0.1 || '' AS a, cast(-0.25 AS STRING) AS b").to_arrow().to_pylist()
    assert found == [{"a": "0.1", "b": "-0.25"}]
