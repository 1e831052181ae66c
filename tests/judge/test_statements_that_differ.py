"""What real Hudi does with statements that PyHudi refuses or takes another way. Source: docs/sql-dml.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.support.judge.real_hudi import Judge

pytestmark = pytest.mark.slow
PAIR = pa.struct([("a", pa.int64()), ("b", pa.int64())])


def after(judge: Judge, path: Path, statement: str) -> tuple[bool, list[tuple[Any, ...]]]:
    """Did real Hudi take the statement, and the rows of the table (1, 10, (1, 2)), (2, 20, (1, 2)) afterwards."""
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("s", PAIR)])
    table = HudiTable.create(path / "t", schema, record_key="id")
    table.upsert([{"id": number, "v": 10 * number, "s": {"a": 1, "b": 2}} for number in (1, 2)])
    answer = judge.ask(command="sql", sql=statement, table=table.path, hudi="1.2.0")
    rows = HudiTable(table.path).to_arrow(["id", "v", "s"]).to_pylist()
    return answer["ok"], sorted((row["id"], row["v"], tuple(row["s"].values())) for row in rows)


ROWS = [(1, 10, (1, 2)), (2, 20, (1, 2))]
MERGE = "MERGE INTO {table} t USING (SELECT %s) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET %s"


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("INSERT INTO {table} VALUES (1.4, 9, named_struct('a', 1L, 'b', 2L))", [(1, 9, (1, 2)), *ROWS]),
        ("DELETE FROM {table} WHERE id = '1.5'", ROWS[1:]),
        ("UPDATE {table} SET s = named_struct('b', 7L, 'a', 8L) WHERE id = 1", [(1, 10, (7, 8)), ROWS[1]]),
        (MERGE % ("1L AS id, named_struct('b', 7L, 'a', 8L) AS x", "s = s.x"), [(1, 10, (7, 8)), ROWS[1]]),
    ],
)
def test_real_hudi_casts_keys_and_sets_structs_by_place(
    judge: Judge, tmp_path: Path, statement: str, rows: list[tuple[Any, ...]]
) -> None:
    assert after(judge, tmp_path, statement) == (True, rows)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {table} SET s = named_struct('a', 7L)",
        MERGE % ("1L AS id, named_struct('a', 7L) AS x", "s = s.x"),
        MERGE % ("'1' AS id, 9L AS v", "v = s.v"),
        MERGE % ("1.0 AS id, 9L AS v", "v = s.v"),
        "INSERT INTO {table} BY NAME SELECT 3L AS id, 9L AS v, named_struct('a', 7L) AS s",
    ],
)
def test_real_hudi_refuses_structs_that_lack_fields_and_source_keys_of_another_type(
    judge: Judge, tmp_path: Path, statement: str
) -> None:
    assert after(judge, tmp_path, statement) == (False, ROWS)
