"""Conditions that name no column, `length('a') = 2`, mean the same on every road: all rows, or none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi import ConfigError, HudiTable, SchemaMismatch, write_hudi
from pyhudi.actions.constraints import CONSTRAINT_PREFIX
from pyhudi.cli.main import main
from pyhudi.timeline.table_properties import update_table_config

TRUE = ["length('a') = 1", "1 = 1", "'a' in ('a')"]
FALSE = ["length('a') = 2", "1 = 2", "'a' in ('b')", "length(null) = 2", "p is not null and length('a') = 2"]
ARROW = [
    (pc.scalar(1) == pc.scalar(1), 4),
    (pc.scalar(1) == pc.scalar(2), 0),
    (pc.scalar(False), 0),
    (pc.scalar(pa.scalar(None, pa.bool_())), 0),
]
ROWS = pa.table({"id": list("abcd"), "p": list("xxyy"), "v": [1, 2, 3, 4]})
ROADS: dict[str, Callable[[HudiTable, str], int]] = {
    "count": lambda table, where: table.count(where=where),
    "count of a scan without columns": lambda table, where: table.scan([], where=where).count(),
    "scan without columns": lambda table, where: table.scan([], where=where).to_arrow().num_rows,
    "count of a moment": lambda table, where: table.at("2199-01-01").count(where=where),
    "count of a range": lambda table, where: table.changes("earliest", where=where).count(),
    "scan": lambda table, where: table.scan(where=where).to_arrow().num_rows,
    "head": lambda table, where: table.scan(where=where).head(9).num_rows,
    "dataset": lambda table, where: table.scan(where=where).to_dataset().count_rows(),
    "fragments": lambda table, where: sum(f.count_rows() for f in table.to_dataset(where=where).get_fragments()),
    "polars": lambda table, where: table.scan(where=where).to_polars(lazy=True).select("id").collect().height,
    "DuckDB": lambda table, where: len(table.scan(where=where).to_duckdb().fetchall()),
}


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    """Four rows in two partitions; one of them was updated."""
    return made(tmp_path_factory.mktemp("t") / "t", request.param)


def made(path: Path, table_type: str = "COPY_ON_WRITE") -> HudiTable:
    options = {"hoodie.metadata.enable": False}
    write_hudi(path, ROWS, record_key="id", partition_by="p", table_type=table_type, options=options)
    write_hudi(path, ROWS.slice(0, 1).set_column(2, "v", pa.array([9])))
    return HudiTable.open(path)


def rows(table: HudiTable) -> dict[str, int]:
    return {row["id"]: row["v"] for row in table.scan(["id", "v"]).to_arrow().to_pylist()}


@pytest.mark.parametrize("road", ROADS)
def test_each_way_to_read_gives_all_rows_or_none(table: HudiTable, road: str) -> None:
    answers = {where: ROADS[road](table, where) for where in [*TRUE, *FALSE]}

    assert answers == {**dict.fromkeys(TRUE, 4), **dict.fromkeys(FALSE, 0)}


@pytest.mark.parametrize(("condition", "count"), ARROW, ids=str)
def test_expressions_of_arrow_without_a_field_give_all_rows_or_none(
    table: HudiTable, condition: pc.Expression, count: int
) -> None:
    dataset = table.to_dataset()

    assert table.count(where=condition) == count
    assert table.scan(where=condition).to_arrow().num_rows == count
    assert dataset.count_rows(filter=condition) == count
    assert dataset.filter(condition).count_rows() == count
    assert dataset.to_table(filter=condition).num_rows == count


@pytest.mark.parametrize("where", ["length('a') = 2", "1 = 2", "'a' in ('b')"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_what_no_row_fulfils_changes_none(tmp_path: Path, table_type: str, where: str) -> None:
    table = made(tmp_path / "t", table_type)
    before = rows(table)

    assert table.update(where, set={"v": 0}).updated == 0
    assert table.delete(where=where).deleted == 0
    with pytest.raises(pyhudi.ConfigError, match="don't pass the filter"):
        table.overwrite(ROWS, where=where)
    pyhudi.sql(f"DELETE FROM hudi.`{table.path}` WHERE {where}")
    pyhudi.sql(f"UPDATE hudi.`{table.path}` SET v = 0 WHERE {where}")
    merge = table.merge(ROWS, on="target.id = source.id").when_matched_delete(where).when_not_matched_insert_all(where)
    merged = merge.execute()
    assert (merged.inserted, merged.deleted) == (0, 0)
    assert rows(table) == before


@pytest.mark.parametrize("where", ["length('a') = 1", "1 = 1"])
def test_what_all_rows_fulfil_changes_each(tmp_path: Path, where: str) -> None:
    table = made(tmp_path / "t")

    assert table.update(where, set={"v": "v + length('ab')"}).updated == 4
    assert rows(table) == {"a": 11, "b": 4, "c": 5, "d": 6}
    table.overwrite(ROWS.slice(3), where=where)
    assert rows(table) == {"d": 4}
    assert table.delete(where=where).deleted == 1
    assert rows(table) == {}


@pytest.mark.parametrize("condition", ["length('a') = 2", "1 = 2"])
def test_a_constraint_that_no_row_fulfils_is_broken_by_every_row(tmp_path: Path, condition: str) -> None:
    table = made(tmp_path / "t")
    with pytest.raises(ConfigError, match="names no column"):
        table.constraints.add("none", condition)

    table = stored(table, "none", condition)

    with pytest.raises(SchemaMismatch, match="4 rows break the constraint 'none'"):
        table.upsert(ROWS)


def stored(table: HudiTable, name: str, condition: str) -> HudiTable:
    """The table with a constraint of an earlier release, which took conditions without a column."""
    update_table_config(table.state().storage, {CONSTRAINT_PREFIX + name: condition})
    return HudiTable.open(table.path)


@pytest.mark.parametrize("condition", ["length('a') = 1", "1 = 1", "length(null) = 2"])
def test_a_constraint_that_every_row_fulfils_or_that_is_unknown_lets_rows_pass(tmp_path: Path, condition: str) -> None:
    table = made(tmp_path / "t")

    table = stored(table, "all", condition)

    assert table.upsert(ROWS.slice(3)).updated == 1


def test_the_command_line_counts_and_shows_no_row(table: HudiTable, capsys: pytest.CaptureFixture[str]) -> None:
    statement = f"SELECT count(*) AS n FROM hudi.`{table.path}` WHERE length('a') = 2"
    assert main(["query", statement, "--json"]) == 0
    assert '"n": 0' in capsys.readouterr().out.replace('"n":0', '"n": 0')
