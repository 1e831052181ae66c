"""A check says how far exports to Delta and Iceberg are behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.sync.check.result import SyncFinding
from tests.support.exports.iceberg import Lake

OFF = {"hoodie.metadata.enable": "false"}


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    write_hudi(str(tmp_path / "t"), [{"id": 1}], record_key="id", options=OFF)
    return HudiTable.open(tmp_path / "t")


def commits(table: HudiTable) -> list[str]:
    return [one.requested_time for one in table.state().timeline.commits()]


def ages(table: HudiTable) -> list[SyncFinding]:
    return [one for one in table.sync_check().findings if one.about == "age of the export"]


def test_an_export_that_lacks_commits_is_a_problem_until_the_next_export(table: HudiTable, tmp_path: Path) -> None:
    Lake(tmp_path).export(table)
    table.export_metadata("delta")
    assert ages(table) == []
    for id in (2, 3):
        table.upsert([{"id": id}], options=OFF)
    first, second, _ = commits(table)

    delta, iceberg = sorted(ages(table), key=lambda one: one.engine)

    assert (delta.engine, iceberg.engine) == ("delta", "iceberg")
    assert delta.is_problem
    assert delta.since == second
    assert f"as of {first}: it is 2 commits behind, since {second}" in delta.text
    assert "table.export_metadata('delta')" in delta.run
    assert ".hoodie/.aux/pyhudi_exports/delta" in delta.run
    table.export_metadata("delta")
    assert [one.engine for one in ages(table)] == ["iceberg"]


def test_a_check_of_one_engine_says_nothing_of_exports(table: HudiTable) -> None:
    table.export_metadata("delta")
    table.upsert([{"id": 2}], options=OFF)

    assert all(one.engine == "duckdb" for one in table.sync_check("duckdb").findings)


def test_an_export_of_before_the_active_timeline_lacks_at_least_so_many(table: HudiTable, tmp_path: Path) -> None:
    table.export_metadata("delta")
    note = tmp_path / "t" / ".hoodie" / ".aux" / "pyhudi_exports" / "delta"
    note.write_text("20200101000000000")

    (found,) = ages(table)

    assert "it is at least 1 commit behind" in found.text
