"""The recorded answers of Spark's functions are those of the session."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pyspark
import pytest

from tests.support.sql.functions import FUNCTIONS, is_same, plain

_RELEASE = (4, 3)  # the record's; others lack functions, or word values in another way
_MAKES_ROWS = re.compile(r" FROM VALUES |^(?:explode|posexplode|inline|stack)\(")
SCALARS = [expression for expression in FUNCTIONS if not _MAKES_ROWS.search(expression)]

pytestmark = pytest.mark.skipif(
    tuple(map(int, pyspark.__version__.split(".")[:2])) != _RELEASE, reason="recorded of PySpark 4.3"
)


def test_spark_answers_what_is_recorded_of_it(spark: Any) -> None:
    columns = ", ".join(f"{expression} AS c{number}" for number, expression in enumerate(SCALARS))

    (row,) = spark.sql(f"SELECT {columns}").collect()

    wrong = [text for text, found in zip(SCALARS, row, strict=True) if not is_same([[answer(found)]], FUNCTIONS[text])]
    assert len(SCALARS) > 280
    assert wrong == []


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("expression", [text for text in FUNCTIONS if text not in SCALARS])
def test_spark_answers_what_is_recorded_of_aggregates_and_generators(spark: Any, expression: str) -> None:
    found = [answer(list(row)) for row in spark.sql(f"SELECT {expression}").collect()]

    assert is_same(found, FUNCTIONS[expression])


def answer(value: Any) -> Any:
    """A value that `collect` gave: its times are in this machine's zone, its maps are dicts."""
    if isinstance(value, datetime):
        return plain(value.astimezone())
    if isinstance(value, dict):
        return [[answer(key), answer(one)] for key, one in value.items()]
    return [answer(part) for part in value] if type(value) is list else plain(value)
