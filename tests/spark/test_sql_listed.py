"""Statements of Hudi's SQL by `spark.sql`, classic and Connect: rows, columns and refusals are real Hudi's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi.errors import HudiError
from tests.support.sql.in_session import run_statements
from tests.support.sql.recorded import TOPICS, masked, problem, recorded
from tests.support.sql.statements import Case, cases

# A case of each kind; the whole list takes ten minutes.
QUICK = (
    "create with OPTIONS without the sign of equality",
    "create with url encoded partitions",
    "insert of a query that has the table's names in another order",
    "WITH before INSERT",
    "overwrite partitions in Spark's own dynamic mode",
)
LISTED = [
    pytest.param(topic, case, id=case.name, marks=() if case.name in QUICK else (pytest.mark.slow,))
    for topic in TOPICS
    for case in cases(f"{topic}.sql")
]


@pytest.fixture(scope="module")
def enabled(spark: Any) -> Iterator[Any]:
    pyhudi.enable(spark)
    yield spark
    pyhudi.disable(spark)


@pytest.mark.parametrize(("topic", "case"), LISTED)
def test_a_statement_does_what_real_hudi_does(enabled: Any, tmp_path: Path, topic: str, case: Case) -> None:
    from pyspark.errors import PySparkException

    theirs = recorded(topic)[case.name]
    statements = [text for text, _ in case.statements]
    found = run_statements(enabled, statements, tmp_path, (HudiError, PySparkException))
    ours = [masked(answer, str(tmp_path)) for answer in found]
    problems = [problem(case, number, ours[number], theirs[number]) for number in range(len(statements))]
    assert not any(problems), "\n".join(filter(None, problems))
