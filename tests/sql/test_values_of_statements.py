"""Values of INSERT, UPDATE and MERGE: fields of structs, WITH before INSERT, DEFAULT, columns by their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import ConfigError

pytest.importorskip("duckdb")

INNER = pa.struct([("d", pa.int32()), ("Ee", pa.string())])
SCHEMA = pa.schema(
    [("id", pa.int32()), ("s", pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", INNER)])), ("n", pa.int32())]
)
ROWS = [
    {"id": 1, "s": {"a": 1, "b": "x", "c": {"d": 5, "Ee": "q"}}, "n": 1},
    {"id": 2, "s": None, "n": 2},
    {"id": 3, "s": {"a": 3, "b": None, "c": None}, "n": 3},
]


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    place = str(tmp_path / "t")
    pyhudi.write_hudi(place, pa.Table.from_pylist(ROWS, SCHEMA), record_key="id", table_type=request.param)
    return place


def structs(place: str) -> dict[int, Any]:
    return {row["id"]: row["s"] for row in pyhudi.HudiTable.open(place).to_arrow(["id", "s"]).to_pylist()}


def test_update_sets_fields_and_leaves_the_others_as_they_are(place: str) -> None:
    session = pyhudi.DuckDbSession({"t": place})
    session.sql("UPDATE t SET s.a = s.a + n, t.s.c.D = 7, s.c.`Ee` = 'it''s' WHERE id < 3")
    assert structs(place) == {
        1: {"a": 2, "b": "x", "c": {"d": 7, "Ee": "it's"}},
        2: {"a": None, "b": None, "c": {"d": 7, "Ee": "it's"}},
        3: {"a": 3, "b": None, "c": None},
    }


def test_merge_sets_fields_of_rows_that_are_there(place: str) -> None:
    session = pyhudi.DuckDbSession({"t": place})
    session.sql(
        "MERGE INTO t USING (SELECT 1 AS id, 10 AS v UNION ALL SELECT 3, 30) q ON t.id = q.id "
        "WHEN MATCHED AND q.v > 20 THEN UPDATE SET s.c = named_struct('d', q.v, 'Ee', 'new'), s.a = 0 "
        "WHEN MATCHED THEN UPDATE SET s.a = q.v"
    )
    assert structs(place) == {
        1: {"a": 10, "b": "x", "c": {"d": 5, "Ee": "q"}},
        2: None,
        3: {"a": 0, "b": None, "c": {"d": 30, "Ee": "new"}},
    }


@pytest.mark.parametrize(
    ("assigned", "message"),
    [
        ("s.nope = 1", "s has no field 'nope'; its fields are a, b, c"),
        ("s.a.b = 1", "s.a has no field 'b'; it is no struct"),
        ("s = NULL, s.a = 1", "sets the column s.a twice"),
        ("s.c.d = 1, s.c = NULL", "sets the column s.c twice"),
        ("s.a = 1, S.A = 2", "sets the column s.a twice"),
        ("id.a = 1", "id has no field 'a'"),
    ],
)
def test_fields_that_are_not_there_or_set_twice_are_refused(place: str, assigned: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        pyhudi.DuckDbSession({"t": place}).sql(f"UPDATE t SET {assigned}")
    assert structs(place)[1] == ROWS[0]["s"]


@pytest.mark.thorough
def test_with_may_come_before_insert_and_default_is_null(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    pyhudi.write_hudi(place, [{"id": 1, "v": "a"}], record_key="id")
    session = pyhudi.DuckDbSession({"t": place})
    session.sql(
        "WITH s AS (SELECT id + 1 AS a FROM t), r (b) AS (SELECT 'insert into') INSERT INTO t SELECT a, b FROM s, r"
    )
    session.sql(
        "WITH s AS (SELECT 5 AS a) INSERT INTO t (v, id) WITH q AS (SELECT a + 1 AS b FROM s) SELECT 'q', b FROM q"
    )
    found = session.sql("WITH q AS (SELECT id, v FROM t) SELECT * FROM q ORDER BY id").to_arrow()
    assert [tuple(row.values()) for row in found.to_pylist()] == [(1, "a"), (2, "insert into"), (6, "q")]

    session.sql("INSERT INTO t VALUES (8, DEFAULT), ((9), ('DEFAULT'))")
    session.sql("UPDATE t SET v = DEFAULT WHERE id = 1")
    found = pyhudi.HudiTable.open(place).to_arrow(["id", "v"])
    assert sorted(tuple(row.values()) for row in found.to_pylist() if row["id"] in (1, 8, 9)) == [
        (1, None),
        (8, None),
        (9, "DEFAULT"),
    ]

    session.sql("WITH s AS (SELECT 7 AS a) INSERT OVERWRITE t SELECT a, 'only' FROM s")
    assert pyhudi.HudiTable.open(place).to_arrow(["id", "v"]).to_pylist() == [{"id": 7, "v": "only"}]


@pytest.mark.thorough
def test_a_query_with_the_names_of_all_columns_is_inserted_by_them(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    pyhudi.write_hudi(place, [{"id": "k", "a": "a", "b": "b"}], record_key="id")
    session = pyhudi.DuckDbSession({"t": place})
    session.sql("INSERT INTO t SELECT 'my b' AS b, 'my a' AS A, '1' AS id")
    session.sql("INSERT INTO t SELECT '2' AS id, 'by place' AS b, 'too' AS c")
    session.sql("INSERT OVERWRITE t SELECT b, a, id FROM t WHERE id <> 'k'")
    found = pyhudi.HudiTable.open(place).to_arrow(["id", "a", "b"]).to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [("1", "my a", "my b"), ("2", "by place", "too")]


@pytest.mark.thorough
def test_schema_on_read_may_be_set_while_rows_are_written(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    pyhudi.write_hudi(place, [{"id": 1, "v": "a"}], record_key="id")
    session = pyhudi.DuckDbSession({"t": place})
    session.sql("SET hoodie.schema.on.read.enable = true")
    session.sql("INSERT INTO t VALUES (2, 'b')")
    session.sql("UPDATE t SET v = 'c' WHERE id = 2")
    session.sql("CALL run_clean(table => 't')")
    assert len(pyhudi.HudiTable.open(place).to_arrow(["id"])) == 2
