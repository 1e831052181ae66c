"""Filters beyond the predicate tree mean in every engine what they mean to Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.model.predicate import SqlText
from pyhudi.queries.sql_engine import passes
from pyhudi.spark.sql_values import evaluate
from tests.support.spark.sessions import FLAVOUR
from tests.support.sweeps import SAMPLED
from tests.support.values.conditions import ANSWERS, ROWS


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


def test_spark_answers_where_duckdb_is_not_installed(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    values = evaluate("n + 1 > 5", ROWS.select(["n"]), "UTC")
    assert values.to_pylist() == [None if n is None else n + 1 > 5 for n in ROWS["n"].to_pylist()]
    from pyhudi.errors import MissingLibrary
    from pyhudi.queries import sql_engine

    def missing(*_: object) -> None:
        raise MissingLibrary("no DuckDB")

    load = sql_engine.ENGINES.load
    monkeypatch.setattr(type(sql_engine.ENGINES), "load", lambda _, name: missing if name == "DUCKDB" else load(name))
    assert passes(SqlText("n + 1 > 18", ("n",)), ROWS).to_pylist().count(True) == 2
