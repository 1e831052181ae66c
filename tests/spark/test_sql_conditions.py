"""Filters beyond the predicate tree mean in every engine what they mean to Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi import HudiTable, write_hudi
from pyhudi.expressions.binding import bind
from pyhudi.expressions.engines import passes
from pyhudi.expressions.predicates import Predicate, SqlText
from pyhudi.spark.filters import to_spark
from pyhudi.spark.sql_values import evaluate
from tests.support.spark.sessions import FLAVOUR
from tests.support.sweeps import SAMPLED, examples
from tests.support.values.conditions import ANSWERS, ROWS
from tests.support.values.predicates import PREDICATES, SCHEMA, VALUES, keeps


@pytest.mark.thorough
def test_spark_keeps_the_rows_that_we_keep(spark: Any, tmp_path: Path) -> None:
    """The answers that the tests without Spark go by are Spark's own; and `to_spark` leaves the conditions to Spark."""
    write_hudi(tmp_path / "t", ROWS, record_key="id", partition_by="City")
    table = HudiTable.open(tmp_path / "t", spark=spark)
    whole = table.to_spark()
    answers = list(ANSWERS.items())
    if SAMPLED:  # each session half of them
        answers = answers[FLAVOUR == "connect" :: 2]
    for where, ids in answers:
        assert sorted(row["id"] for row in whole.where(where).select("id").collect()) == ids, where
        assert sorted(row["id"] for row in table.to_spark(["id"], where=where).collect()) == ids, where


@pytest.fixture(scope="module")
def of_every_type(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    """Rows of all values next to nulls, each type in a rhythm of its own."""
    columns = {name: [*values, None] for name, values in VALUES.items()}
    rows = [{name: values[row % len(values)] for name, values in columns.items()} for row in range(24)]
    data = pa.Table.from_pylist(rows, schema=SCHEMA).append_column("row", pa.array(range(len(rows))))
    path = tmp_path_factory.mktemp("of_every_type") / "t"
    write_hudi(path, data, record_key="row")
    return HudiTable.open(path, spark=spark)


@settings(deadline=None, max_examples=examples(30), suppress_health_check=list(HealthCheck))
@given(predicates=st.lists(PREDICATES, min_size=20, max_size=30))
def test_a_condition_is_true_false_or_unknown_to_spark_as_it_is_to_plain_python(
    of_every_type: HudiTable, predicates: list[Predicate]
) -> None:
    answers = [to_spark(bind(predicate, SCHEMA), SCHEMA).alias(f"p{n}") for n, predicate in enumerate(predicates)]
    frame = of_every_type.to_spark().select("row", *answers)

    stored = {row["row"]: row for row in of_every_type.to_arrow([*SCHEMA.names, "row"]).to_pylist()}
    for row in frame.collect():
        for number, predicate in enumerate(predicates):
            assert row[f"p{number}"] == keeps(predicate, stored[row["row"]]), (predicate, stored[row["row"]])


def test_spark_answers_where_duckdb_is_not_installed(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    values = evaluate("n + 1 > 5", ROWS.select(["n"]), "UTC")
    assert values.to_pylist() == [None if n is None else n + 1 > 5 for n in ROWS["n"].to_pylist()]
    from pyhudi.errors import MissingLibrary
    from pyhudi.expressions import engines

    def missing(*_: object) -> None:
        raise MissingLibrary("no DuckDB")

    load = engines.ENGINES.load
    monkeypatch.setattr(type(engines.ENGINES), "load", lambda _, name: missing if name == "DUCKDB" else load(name))
    assert passes(SqlText("n % 7 + 1 > 6", ("n",)), ROWS).to_pylist().count(True) == 2
    assert bind(SqlText("soundex(city) = 'O240'"), ROWS.schema) == SqlText("soundex(city) = 'O240'", ("City",))
