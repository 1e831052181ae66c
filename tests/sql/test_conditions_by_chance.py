"""Conditions with functions such as rand() are refused by name wherever they would choose rows: nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyhudi import ConfigError, HudiTable, sql, write_hudi

pytest.importorskip("duckdb")

ROWS = [{"id": number, "v": float(number)} for number in range(9)]


def _sql(table: HudiTable, text: str) -> Any:
    return sql(text, {"t": str(table.path)}).to_arrow()


CHOOSING: dict[str, Callable[[HudiTable], object]] = {
    "scan": lambda table: table.count(where="rand() < 0.5"),
    "delete": lambda table: table.delete(where="v > 1 AND random() < 0.5"),
    "update": lambda table: table.update("v < rand(7)", set={"v": "0.0"}),
    "overwrite": lambda table: table.overwrite(ROWS[:1], where="uuid() > 'a'"),
    "constraint": lambda table: table.constraints.add("c", "v < rand()"),
    "constraint of no column": lambda table: table.constraints.add("c", "rand() < 2"),
    "merge": lambda table: table.merge(ROWS[:1]).when_matched_delete("Rand () < 0.5").execute(),
    "merge on a condition": lambda table: (
        table.merge(ROWS[:1], on="source.id = target.id AND rand() < 0.5").when_matched_delete().execute()
    ),
    "DELETE": lambda table: _sql(table, "DELETE FROM t WHERE monotonically_increasing_id() > 3"),
    "UPDATE": lambda table: _sql(table, "UPDATE t SET v = 0 WHERE randn() > 0"),
    "MERGE, ON": lambda table: _sql(
        table,
        "MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id AND shuffle(array(1))[0] = 1 WHEN MATCHED THEN DELETE",
    ),
    "MERGE, WHEN": lambda table: _sql(
        table, "MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED AND rand() < 1 THEN DELETE"
    ),
}


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    write_hudi(tmp_path / "t", ROWS, record_key="id")
    return HudiTable.open(tmp_path / "t")


@pytest.mark.parametrize("door", CHOOSING)
def test_a_function_of_chance_chooses_no_rows(table: HudiTable, door: str) -> None:
    with pytest.raises(
        ConfigError, match=r"(?s)calls \w+\(\).*chance.*Expected a condition that depends on the row alone"
    ):
        CHOOSING[door](table)

    assert table.scan(meta_columns=False).to_arrow().to_pylist() == ROWS
    assert table.constraints.list() == {}


def test_moments_columns_of_these_names_and_queries_of_their_own_are_no_chance(tmp_path: Path) -> None:
    write_hudi(tmp_path / "t", {"id": [1, 2], "rand": [0.1, 0.9], "at": ["x", "rand("]}, record_key="id")
    table = HudiTable.open(tmp_path / "t")

    assert table.count(where="rand + 0 < 0.5 AND now() IS NOT NULL AND upper(at) <> 'rand('") == 1
    assert _sql(table, "SELECT count(*) AS n FROM t WHERE random() < 2").to_pylist() == [{"n": 2}]
    _sql(table, "UPDATE t SET at = 'y' WHERE id IN (SELECT id FROM t ORDER BY (random()) LIMIT 1)")
    assert sorted(table.to_arrow(["at"])["at"].to_pylist()).count("y") == 1
