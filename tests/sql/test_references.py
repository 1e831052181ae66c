"""Names of tables are found where they are in a query, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import ConfigError
from pyhudi.sql.references import references
from pyhudi.sql.statement import may_be_statement
from pyhudi.sql.tokens import tokens_of


def found(text: str) -> list[str]:
    return [str(reference.name) for reference in references(text, tokens_of(text))]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT * FROM a", ["a"]),
        ("SELECT a FROM x.y.a, b AS c JOIN (d x CROSS JOIN e), f", ["x.y.a", "b", "d", "e", "f"]),
        ("SELECT extract(year FROM x), trim(both ' ' FROM y) FROM a WHERE a.x IS NOT DISTINCT FROM b", ["a"]),
        ("SELECT 'FROM x', `FROM y` /* FROM z */ FROM a -- FROM b\nWHERE c", ["a"]),
        ("SELECT * FROM a WHERE x IN (SELECT y FROM b) ORDER BY c, d", ["a", "b"]),
        ("SELECT * FROM t LATERAL VIEW explode(q) z AS a, b", ["t"]),
        ("SELECT * FROM LATERAL (SELECT * FROM q), range(10), w", ["q", "w"]),
        ("SELECT * FROM (VALUES (1), (2)) AS v(a), t", ["t"]),
        ("SELECT * FROM a UNION ALL SELECT * FROM b c, d", ["a", "b", "d"]),
        ("FROM a SELECT x", ["a"]),
        ("INSERT INTO o SELECT * FROM t", ["t"]),
        ("INSERT INTO TABLE o VALUES (1)", []),
        ("CREATE TABLE z USING parquet AS SELECT * FROM t", ["t"]),
        ("(TABLE a UNION TABLE b)", ["a", "b"]),
        ("MERGE INTO o USING t s ON o.id = s.id WHEN MATCHED THEN DELETE", ["t"]),
        ("SELECT * FROM a JOIN b USING (id)", ["a", "b"]),
        ("SELECT * FROM hudi.`/lake/t`", ["hudi.`/lake/t`"]),
    ],
)
def test_relations_are_found(text: str, names: list[str]) -> None:
    assert found(text) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("WITH a AS (SELECT * FROM a), b (x) AS (SELECT * FROM a, z) SELECT * FROM a JOIN b JOIN k", ["a", "z", "k"]),
        ("WITH x AS (WITH y AS (SELECT 1) SELECT * FROM y) SELECT * FROM y", ["y"]),
        ("WITH RECURSIVE r AS (SELECT 1 FROM r) SELECT * FROM r", []),
        ("SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t) JOIN t", ["t"]),
        ("WITH t AS (SELECT 1) SELECT * FROM db.t", ["db.t"]),
    ],
)
def test_names_of_with_hide_tables_where_they_hold(text: str, names: list[str]) -> None:
    assert found(text) == names


@pytest.mark.parametrize(
    ("text", "as_of"),
    [
        ("SELECT * FROM t TIMESTAMP AS OF '2024-01-01' x", "'2024-01-01'"),
        ("SELECT * FROM t FOR SYSTEM_TIME AS OF current_timestamp() - INTERVAL 3 DAYS WHERE a", None),
        ("SELECT * FROM t VERSION AS OF 20240101000000000", "20240101000000000"),
        ("SELECT * FROM t TIMESTAMP AS OF date_sub(current_date(), 1)", "date_sub(current_date(), 1)"),
    ],
)
def test_time_travel_belongs_to_its_table(text: str, as_of: str | None) -> None:
    (reference,) = references(text, tokens_of(text))

    assert reference.as_of == (as_of or "current_timestamp() - INTERVAL 3 DAYS")
    assert text[reference.start : reference.end].endswith(reference.as_of)


def test_an_alias_goes_behind_a_sample_and_only_where_there_is_none() -> None:
    text = "SELECT * FROM a JOIN b x JOIN c AS y JOIN d TABLESAMPLE (10 PERCENT) LEFT JOIN e"

    ends = [reference.alias_at for reference in references(text, tokens_of(text))]

    assert [None if at is None else text[:at].split()[-1] for at in ends] == ["a", None, None, "PERCENT)", "e"]


def test_hudis_table_functions_come_with_their_arguments() -> None:
    text = "SELECT * FROM hudi_table_changes('db.t', 'cdc', concat('a', 'b')) c JOIN explode(x)"

    (reference,) = references(text, tokens_of(text))

    assert reference.arguments == ("'db.t'", "'cdc'", "concat('a', 'b')")


WORDS = ["SELECT", "*", "FROM", "t", "db.t", ",", "(", ")", "WITH", "AS", "JOIN", "ON", "TABLE", "AS OF", "TIMESTAMP"]


@given(st.lists(st.sampled_from([*WORDS, "'x'", "1", "hudi_query(", "LATERAL", "VIEW", "UNION", ";"]), max_size=25))
def test_references_lie_in_the_text_and_in_order_whatever_it_is(words: list[str]) -> None:
    text = " ".join(words)
    try:
        tokens = tokens_of(text)
        all_found = references(text, tokens)
    except ConfigError:
        return
    ends = [0]
    for reference in all_found:
        assert reference.start >= ends[-1]
        assert text[reference.start : reference.end].startswith(reference.name.parts[0])
        ends.append(reference.end)


@given(st.text(alphabet=st.characters(exclude_characters="'\"`*"), max_size=60))
def test_no_text_is_too_strange_to_be_recognised(text: str) -> None:
    assert may_be_statement(text) in (True, False)


def test_only_the_beginning_of_a_long_statement_is_looked_at() -> None:
    assert not may_be_statement("SELECT " + "x, " * 100_000 + "'not closed")
    assert may_be_statement("/* a */ create\n  or REPLACE table t " + "x, " * 100_000)
