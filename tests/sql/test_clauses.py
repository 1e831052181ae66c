"""Clauses are cut out of a statement in the user's own characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import ConfigError
from pyhudi.sql.columns import literal, quoted
from pyhudi.sql.tokens import Reader, tokens_of


def reader(text: str) -> Reader:
    return Reader(text, tokens_of(text))


def test_names_have_parts_with_and_without_backticks() -> None:
    name = reader("spark_catalog . `my db`.`a``b` AS x").table_name()

    assert name.parts == ("spark_catalog", "my db", "a`b")
    assert str(name) == "spark_catalog.`my db`.`a`b`"
    assert reader("hudi.`/lake/trips`").table_name().path == "/lake/trips"
    assert reader("hudi.trips").table_name().path is None


def test_properties_are_written_in_all_of_sparks_ways() -> None:
    text = "('a' = 'x', \"b\"=\"it's\", k.x.y = 1, flag=true, OPT 'v', n = -2.5, two = 'it''s', joined = 'a' 'b')"

    assert reader(text).properties() == {
        "a": "x",
        "b": "it's",
        "k.x.y": "1",
        "flag": "true",
        "OPT": "v",
        "n": "-2.5",
        "two": "it's",
        "joined": "ab",
    }


def test_a_property_is_given_once() -> None:
    with pytest.raises(ConfigError, match="'a' is given twice"):
        reader("(a = 1, 'a' = 2)").properties()


def test_clauses_keep_their_comments_and_blanks() -> None:
    text = "MERGE  cond ( a /* WHEN */,  b) -- x\n + CASE WHEN q THEN 1 END WHEN MATCHED"
    cursor = reader(text)
    cursor.expect("MERGE")

    assert cursor.until("WHEN").words() == "cond ( a /* WHEN */,  b) -- x\n + CASE WHEN q THEN 1 END"
    assert cursor.sees("WHEN MATCHED")


def test_lists_are_cut_outside_parentheses_only() -> None:
    cursor = reader("(a, f(b, c), [d, e]) rest")

    assert [part.words() for part in cursor.parts()] == ["a", "f(b, c)", "[d, e]"]
    assert cursor.words() == "rest"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE\n  VIEW v", r"line 2, character 3: expected TABLE, found 'VIEW v'"),
        ("CREATE", r"expected TABLE, found the end of: 'CREATE'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, message: str) -> None:
    cursor = reader(text)
    cursor.expect("CREATE")
    with pytest.raises(ConfigError, match=message):
        cursor.expect("TABLE")


def test_parentheses_that_do_not_end_are_an_error() -> None:
    with pytest.raises(ConfigError, match=r"expected '\)', found the end"):
        reader("(a, (b)").parenthesised()


@given(st.text(max_size=40))
def test_every_text_comes_back_from_a_quotation(text: str) -> None:
    assert reader(literal(text)).value() == text


@given(st.text(min_size=1, max_size=40))
def test_every_name_comes_back_from_its_backticks(text: str) -> None:
    assert reader(quoted(text)).identifier() == text
