"""SQL text is read by sqlglot in one place, in Spark's words, and only where there is one."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi import ConfigError
from pyhudi.expressions.predicates import And, Column, Compare, In, split_texts
from pyhudi.expressions.where import parse_where, plain_predicate
from pyhudi.model.sql_text import MisreadSql, spark_tokens
from tests.support.source import ROOT


def words(text: str) -> list[tuple[str, str]]:
    return [(token.token_type.name, token.text) for token in spark_tokens(text)]


def test_writes_and_reads_without_sql_do_not_import_sqlglot() -> None:
    code = """
import sys, pyhudi
pyhudi.write_hudi("memory://no-sqlglot", [{"id": 1, "v": 2}], record_key="id")
table = pyhudi.HudiTable.open("memory://no-sqlglot")
assert table.scan(["v"], ("id", "=", 1)).to_arrow().to_pylist() == [{"v": 2}]
assert "sqlglot" not in sys.modules
assert table.scan(["v"], "id = 1").to_arrow().to_pylist() == [{"v": 2}]
assert "sqlglot" in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


_COMPILED = """
import pyhudi
from sqlglot import exp
from sqlglot.generator import Generator
from sqlglot.parser import Parser
from sqlglot.dialects import duckdb, spark

def refuse(cls, **_):
    raise TypeError(f"{cls} is derived")

for compiled in (Parser, Generator, exp.Expr):
    compiled.__init_subclass__ = classmethod(refuse)
pyhudi.write_hudi("memory://compiled", [{"id": 1, "v": 25, "s": "ab"}], record_key="id")
table = pyhudi.HudiTable.open("memory://compiled")
"""
_WHERE = """
assert table.scan(["v"], "lower(concat('V', CAST(v AS STRING))) = 'v25' AND id < 2").count() == 1
assert table.scan(["v"], "v IN (25, 26) AND s LIKE 'a%'").count() == 1
"""
_QUERY = """
query = "SELECT CAST(v AS STRING) AS t, v / 2 AS half, weekday(DATE '2024-01-02') AS d FROM t WHERE s LIKE 'a%'"
rows = pyhudi.DuckDbSession(tables={"t": table}).sql(query).to_arrow().to_pylist()
assert rows == [{"t": "25", "half": 12.5, "d": 1}], rows
"""


@pytest.mark.parametrize("code", [_WHERE, _QUERY], ids=["where", "query"])
def test_no_class_is_derived_from_those_that_sqlglot_compiles(code: str) -> None:
    """Its compiled build (`sqlglot[c]`), which other tools bring along, refuses that."""
    if code is _QUERY:
        pytest.importorskip("duckdb", reason="DuckDB is not installed")
    done = subprocess.run(
        [sys.executable, "-c", _COMPILED + code], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_tokens_mean_what_they_mean_to_spark() -> None:
    assert words("a.`b``c` >= 1.5BD -- d\n AND .5L<>r'\\n'/* e /* f */ */") == [
        ("VAR", "a"), ("DOT", "."), ("IDENTIFIER", "b`c"), ("GTE", ">="), ("NUMBER", "1.5BD"), ("VAR", "AND"),
        ("NUMBER", ".5L"), ("NEQ", "<>"), ("RAW_STRING", "\\n"),
    ]  # fmt: skip
    assert words("'it''s \\'x\\' \\u0041\\101\\n\\%'") == [("STRING", "it's 'x' AA\n\\%")]
    assert words('"a ""b"" \'c\'"') == [("STRING", "a \"b\" 'c'")]


@pytest.mark.parametrize(
    ("text", "at"), [("a = 'x", 4), ('a = r"x', 5), ("a /* x */ /* y", 10), ("`a", 0), ("1 + X'ab", 5)]
)
def test_what_does_not_end_is_said_with_its_place(text: str, at: int) -> None:
    with pytest.raises(MisreadSql, match=f"character {at + 1} ") as caught:
        spark_tokens(text)

    assert caught.value.at == at


@given(st.text(max_size=40))
def test_any_text_is_tokens_or_an_error_of_ours(text: str) -> None:
    try:
        tokens = spark_tokens(text)
    except ConfigError:
        return
    ends = [-1]
    for token in tokens:
        assert token.start > ends[-1]
        ends.append(token.end)
    assert ends[-1] < len(text)


@pytest.mark.parametrize(
    "name", ["date", "timestamp", "order", "group", "show", "interval", "end", "case", "any", "if"]
)
def test_a_column_may_have_the_name_of_a_keyword_in_a_where(name: str) -> None:
    assert parse_where(f"{name} = 1 AND {name} IN (2)") == And(
        (Compare(Column((name,)), "=", 1), In(Column((name,)), (2,)))
    )


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("a = 'x' AND b is true", "'b' at character 13 is not understood"),
        ("a = 1 AND (b + 1) = 2", "'b' at character 12 is not understood"),
        ("a IN (1, )", "expected a value at character 10"),
        ("a IN (SELECT b)", r"expected '\)' at character 14, found 'b'"),
        ("a = 0x1F", "'0x1F' at character 5 is not understood"),
        ("CAST(a AS INT) = 1", r"expected '\)' at character 8, found 'AS'"),
        ("d = DATE 'today'", "'today' is not an ISO date"),
        ("a = b = c", "'a = b' at character 1 is not understood"),
    ],
)
def test_what_a_where_can_not_say_is_named_with_its_place(where: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        plain_predicate(where)


@pytest.mark.parametrize("where", ["a IN (1, )", "a IN (SELECT b)", "a = 0x1F", "d = DATE 'today'", "a = 1 AND", "a ="])
def test_what_spark_does_not_know_either_is_refused_with_its_place(where: str) -> None:
    with pytest.raises(ConfigError, match=r"at character \d+|not an ISO date"):
        parse_where(where)


@pytest.mark.parametrize(
    "where",
    [
        "sum(a) > 1",
        "a IN (SELECT b FROM c) AND a + 1 = 2",
        "row_number() OVER (ORDER BY a) = 1",
        "a = 1; DROP TABLE t",
        "a + 1 = 2 ORDER BY a",
        "a + 1 = 2 LIMIT 5",
        "a + 1 = 2 GROUP BY a",
        "a + 1 = 2 UNION SELECT 1",
        "a + 1 = :b",
    ],
)
def test_what_is_more_than_a_condition_of_a_row_is_refused(where: str) -> None:
    with pytest.raises(ConfigError):
        parse_where(where)


@pytest.mark.parametrize(
    ("where", "texts"),
    [
        ("a = 1 AND b + 1 = 2", ["b + 1 = 2"]),
        ("b + 1 = 2 and a BETWEEN 1 AND 2 And c RLIKE 'x AND y'", ["b + 1 = 2", "c RLIKE 'x AND y'"]),
        ("CASE WHEN a = 1 AND b = 2 THEN c ELSE d END AND a = 1", ["CASE WHEN a = 1 AND b = 2 THEN c ELSE d END"]),
        ("(b + 1 = 2 AND a = 1) AND d = 1", ["(b + 1 = 2 AND a = 1)"]),
        ("a = 1 OR b + 1 = 2 AND c = 1", ["a = 1 OR b + 1 = 2 AND c = 1"]),
        ("a BETWEEN b + 1 AND 2 AND c = 1", ["a BETWEEN b + 1 AND 2"]),
        ("l[0] = 1 AND a = 1 -- AND b + 1 = 2", ["l[0] = 1"]),
        ("NOT a + 1 = 2 AND a = 1", ["NOT a + 1 = 2"]),
    ],
)
def test_the_terms_that_an_engine_evaluates_are_parted_from_those_that_skip_files(where: str, texts: list[str]) -> None:
    assert [text.text for text in split_texts(parse_where(where))[1]] == texts


def test_texts_in_a_row_are_one() -> None:
    assert parse_where("a = 'x' \"y\"") == Compare(Column(("a",)), "=", "xy")
