"""The lists of statements, and what is recorded of real Hudi's answers, belong together."""

from __future__ import annotations

import pytest

from tests.support.sql.recorded import TOPICS, is_recorded, problem, recorded
from tests.support.sql.statements import Case, cases

LISTED = [(topic, case) for topic in TOPICS for case in cases(f"{topic}.sql")]


def test_real_hudis_answer_to_each_statement_is_recorded():
    answers = {topic: recorded(topic) for topic in TOPICS}
    assert [case.name for topic, case in LISTED if not is_recorded(case, answers[topic])] == []
    assert {topic: list(kept) for topic, kept in answers.items()} == {
        topic: [case.name for other, case in LISTED if other == topic] for topic in TOPICS
    }


def test_the_lists_have_hundreds_of_different_statements_and_no_name_twice():
    statements = [text for _, case in LISTED for text, _ in case.statements if not text.startswith("CREATE TABLE")]
    assert len(set(statements)) >= 250
    names = [case.name for _, case in LISTED]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("ours", "differs", "wrong"),
    [
        ({"columns": [["a", "int"]], "rows": [[1]]}, "", False),
        ({"columns": [["a", "bigint"]], "rows": [[1]]}, "", True),
        ({"columns": [["a", "int"]], "rows": [[2]]}, "", True),
        ({"refused": "why"}, "", True),
        ({"columns": [["a", "int"]], "rows": [[1]]}, "a reason that is no more", True),
        ({"columns": [["a", "int"]], "rows": [[2]]}, "a reason", False),
        ({"columns": [["a", "int"]], "rows": [[3]]}, "a reason", True),
    ],
)
def test_an_answer_is_compared_by_columns_rows_and_what_the_list_says(ours, differs: str, wrong: bool):
    expected = [{"a": 2}] if differs else None
    case = Case("a case", (("SELECT a FROM t", expected),), differing={0: differs} if differs else {})
    found = problem(case, 0, ours, {"columns": [["a", "int"]], "rows": [[1]]})
    assert (found is not None) == wrong
