"""MERGE never makes two rows of a key, and never takes the order of the source's rows for an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import ConfigError, HudiTable

pytest.importorskip("duckdb")

SCHEMA = pa.schema([("id", pa.int64()), ("a", pa.int64()), ("dt", pa.string())])
ROWS = [(1, 1, "x"), (1, 7, "y"), (2, 2, "y")]


def merged(tmp_path: Path, statement: str, table_type: str = "COPY_ON_WRITE") -> list[tuple[Any, ...]]:
    place = tmp_path / "t"
    HudiTable.create(place, SCHEMA, record_key="id", partition_by="dt", table_type=table_type)
    rows = [dict(zip(SCHEMA.names, row, strict=True)) for row in ROWS]
    HudiTable.open(place).upsert(pa.Table.from_pylist(rows, SCHEMA))
    try:
        pyhudi.sql(f"MERGE INTO t USING {statement}", {"t": place})
    finally:
        stored = HudiTable.open(place).to_arrow(SCHEMA.names).to_pylist()
        answer = sorted(tuple(row.values()) for row in stored)
    return answer


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("condition", "clauses"),
    [
        ("t.dt = 'x'", "WHEN MATCHED THEN UPDATE SET dt = 'y'"),
        ("true", "WHEN MATCHED THEN UPDATE SET dt = 'y'"),
        ("true", "WHEN MATCHED THEN UPDATE SET dt = 'z'"),
        ("true", "WHEN MATCHED THEN UPDATE SET dt = CASE WHEN t.dt = 'x' THEN 'y' ELSE 'x' END"),
        ("true", "WHEN MATCHED AND t.dt = 'y' THEN DELETE WHEN MATCHED THEN UPDATE SET dt = 'y'"),
    ],
    ids=["one that stays", "one that is set to the same", "two move there", "they change places", "a deleted one"],
)
def test_a_row_does_not_move_to_a_partition_that_has_its_key(
    tmp_path: Path, table_type: str, condition: str, clauses: str
) -> None:
    with pytest.raises(ConfigError, match=r"moves the row of key '1' to the partition '[xyz]'.* another row"):
        merged(tmp_path, f"(SELECT 1 AS id) s ON t.id = s.id AND {condition} {clauses}", table_type)
    stored = HudiTable.open(tmp_path / "t").to_arrow(SCHEMA.names).to_pylist()
    assert sorted(tuple(row.values()) for row in stored) == ROWS


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_row_moves_and_another_takes_its_key_where_it_was(tmp_path: Path, table_type: str) -> None:
    source = "(SELECT * FROM VALUES (1, 'x', 1), (1, 'x', 2) AS v(id, dt, n)) s"
    clauses = "WHEN MATCHED THEN UPDATE SET dt = 'z' WHEN NOT MATCHED THEN INSERT (id, a, dt) VALUES (s.id, 5, s.dt)"
    answer = merged(tmp_path, f"{source} ON t.id = s.id AND t.dt = 'x' AND s.n = 1 {clauses}", table_type)
    assert answer == [(1, 1, "z"), (1, 5, "x"), (1, 7, "y"), (2, 2, "y")]


CLAUSES = "WHEN MATCHED AND s.op = 'd' THEN DELETE WHEN MATCHED THEN UPDATE SET a = s.a"


@pytest.mark.parametrize("more", ["", " AND t.a < 99"], ids=["by the key", "by a join"])
@pytest.mark.parametrize("ops", ["du", "ud"])
def test_a_delete_and_an_update_of_one_row_are_refused_in_any_order(tmp_path: Path, more: str, ops: str) -> None:
    source = f"(SELECT * FROM VALUES (2, 'y', 5, '{ops[0]}'), (2, 'y', 6, '{ops[1]}') AS v(id, dt, a, op)) s"
    with pytest.raises(ConfigError, match="Several rows of the source have the key '2'"):
        merged(tmp_path, f"{source} ON t.id = s.id AND t.dt = s.dt{more} {CLAUSES}")


@pytest.mark.parametrize(("key", "fails"), [(2, False), (9, True)])
def test_rows_that_all_delete_a_stored_row_may_not_all_insert_a_new_one(tmp_path: Path, key: int, fails: bool) -> None:
    source = f"(SELECT * FROM VALUES ({key}, 'y', 5), ({key}, 'y', 6) AS v(id, dt, a)) s ON t.id = s.id AND t.dt = s.dt"
    statement = f"{source} WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    if fails:
        with pytest.raises(ConfigError, match="Several rows of the source have the key '9'"):
            merged(tmp_path, statement)
    else:
        assert merged(tmp_path, statement) == [(1, 1, "x"), (1, 7, "y")]


def test_a_delete_and_an_insert_if_new_of_one_key_are_refused(tmp_path: Path) -> None:
    source = "(SELECT * FROM VALUES (2, 'y', 5, 'd'), (2, 'y', 6, 'i') AS v(id, dt, a, op)) s"
    clauses = "WHEN MATCHED AND s.op = 'd' THEN DELETE WHEN NOT MATCHED AND s.op = 'i' THEN INSERT *"
    with pytest.raises(ConfigError, match="Several rows of the source have the key '2'"):
        merged(tmp_path, f"{source} ON t.id = s.id AND t.dt = s.dt {clauses}")
