"""`CALL` and indexes through `spark.sql`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi import HudiTable


@pytest.fixture
def sql(spark: Any) -> Iterator[Any]:
    pyhudi.enable(spark)
    yield spark
    pyhudi.disable(spark)


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    for ts in range(2):
        pyhudi.write_hudi(tmp_path / "t", [{"id": f"k{n}", "ts": ts} for n in range(4)], record_key="id", ordering="ts")
    return HudiTable.open(tmp_path / "t")


def test_a_call_returns_a_frame_of_hudis_columns(sql: Any, table: HudiTable) -> None:
    found = sql.sql(f"CALL show_commits(table => '{table.path}', limit => 5)")
    times = [instant.requested_time for instant in table.state().timeline.commits()]
    assert [row["commit_time"] for row in found.collect()] == times[::-1]
    assert dict(found.dtypes)["total_errors"] == "bigint"
    by_function = f"CALL system.show_commits('{table.path}', 5)"
    assert sql.sql(by_function).count() == 2
    key = "upper(key) = 'HOODIE.TABLE.NAME'"
    properties = sql.sql(f"CALL show_table_properties(path => '{table.path}', limit => -1, filter => \"{key}\")")
    assert [tuple(row) for row in properties.collect()] == [("hoodie.table.name", "t")]


@pytest.mark.thorough
def test_a_call_names_a_query_in_the_session(sql: Any, table: HudiTable) -> None:
    first = table.state().timeline.commits().instants[0].requested_time
    ask = f"CALL copy_to_temp_view(table => '{table.path}', view_name => 'as_it_was', as_of_instant => '{first}')"
    assert sql.sql(ask).collect()[0]["status"] == 0
    try:
        assert [row["ts"] for row in sql.sql("SELECT DISTINCT ts FROM as_it_was").collect()] == [0]
    finally:
        sql.catalog.dropTempView("as_it_was")


@pytest.mark.thorough
def test_indexes_are_made_and_shown(sql: Any, table: HudiTable) -> None:
    name = f"hudi.`{table.path}`"
    sql.sql(f"CREATE INDEX record_index ON {name} (id)")
    assert ("record_index", "record_index", "") in [
        tuple(row) for row in sql.sql(f"SHOW INDEXES FROM {name}").collect()
    ]
    sql.sql(f"DROP INDEX record_index ON {name}")
    assert "record_index" not in table.metadata.partitions
