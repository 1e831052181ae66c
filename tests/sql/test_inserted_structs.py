"""Fields of structs in an INSERT, in arrays and maps too: by name or by place, as the columns go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.model.keys import META_COLUMNS

pytest.importorskip("duckdb")

PERSON = pa.struct([("name", pa.string()), ("code", pa.string())])
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("s", PERSON),
        ("people", pa.list_(PERSON)),
        ("m", pa.map_(pa.string(), pa.list_(PERSON))),
        ("n", pa.list_(pa.int32())),
    ]
)
GIVEN = "named_struct('code', 'C1', 'name', 'Anna')"
VALUES = f"{GIVEN}, array({GIVEN}, NULL), map('k', array({GIVEN})), array(1L)"
NAMED = f"{GIVEN} AS s, array({GIVEN}, NULL) AS people, map('k', array({GIVEN})) AS m, array(1L) AS n"
WRONG = "array(named_struct('code', 'C', 'nme', 'A'))"
BY_NAME = {"name": "Anna", "code": "C1"}
BY_PLACE = {"name": "C1", "code": "Anna"}


@pytest.fixture
def place(tmp_path: Path) -> str:
    place = str(tmp_path / "t")
    pyhudi.HudiTable.create(place, SCHEMA, record_key="id", options={"hoodie.metadata.enable": "false"})
    return place


def rows(place: str) -> list[dict[str, Any]]:
    return pyhudi.HudiTable.open(place).to_arrow(SCHEMA.names).sort_by("id").to_pylist()


def filled(number: int, person: dict[str, str]) -> dict[str, Any]:
    return {"id": number, "s": person, "people": [person, None], "m": [("k", [person])], "n": [1]}


def test_fields_go_by_name_where_the_columns_do_and_by_place_elsewhere_at_every_depth(place: str) -> None:
    session = pyhudi.DuckDbSession({"t": place})
    for statement in (
        f"INSERT INTO t BY NAME SELECT 1 AS id, {NAMED}",
        f"INSERT INTO t SELECT {NAMED}, 2 AS id",
        f"INSERT INTO t VALUES (3, {VALUES})",
        f"INSERT INTO t (id, s, people, m, n) VALUES (4, {VALUES})",
        "INSERT INTO t SELECT 5 AS id, " + NAMED.replace("'name'", "'other'"),
    ):
        session.sql(statement)
    by = [BY_NAME, BY_NAME, BY_PLACE, BY_PLACE, BY_PLACE]
    assert rows(place) == [filled(number, person) for number, person in enumerate(by, 1)]
    assert pyhudi.HudiTable.open(place).schema().equals(SCHEMA)


def test_overwrite_follows_the_rules_of_insert(place: str) -> None:
    session = pyhudi.DuckDbSession({"t": place})
    session.sql(f"INSERT OVERWRITE t BY NAME SELECT 1 AS id, {NAMED}")
    assert rows(place) == [filled(1, BY_NAME)]
    session.sql(f"INSERT OVERWRITE t VALUES (2, {VALUES})")
    assert rows(place) == [filled(2, BY_PLACE)]


def test_names_of_fields_have_no_case_and_empty_arrays_and_maps_take_the_types_of_the_column(place: str) -> None:
    session = pyhudi.DuckDbSession({"t": place})
    session.sql("INSERT INTO t VALUES (1, NULL, array(), map(), array()), (2, NULL, array(NULL), NULL, array(NULL, 7))")
    session.sql("INSERT INTO t BY NAME SELECT array(named_struct('CODE', 'C', 'Name', NULL)) AS people, 3 AS ID")
    assert [(row["people"], row["m"], row["n"]) for row in rows(place)] == [
        ([], [], []),
        ([None], None, [None, 7]),
        ([{"name": None, "code": "C"}], None, None),
    ]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("BY NAME SELECT 1 AS id, named_struct('code', 'C', 'nmae', 'A') AS s", "s has no field 'nmae'.*mean 'name'"),
        (
            "BY NAME SELECT 1 AS id, array(named_struct('name', 'A', 'code', 'C', 'x', 1)) AS people",
            "people.element has no field 'x'. Its fields are name, code",
        ),
        (
            "BY NAME SELECT 1 AS id, map('k', array(named_struct('nme', 'A', 'code', 'C'))) AS m",
            "m.value.element has no field 'nme'",
        ),
        (
            "VALUES (1, NULL, array(named_struct('a', 'A', 'b', 'B', 'c', 'C')), NULL, NULL)",
            r"people.element has 3 fields \(a, b, c\), the table's has 2 \(name, code\).*say BY NAME",
        ),
        ("VALUES (1, NULL, NULL, NULL, array('7'))", "gives string for the column n.element, which is of type int32"),
        ("VALUES (1, array('A'), NULL, NULL, NULL)", "for the column s, which is of type struct"),
        (
            "SELECT named_struct('code', 'C', 'nmae', 'A') AS s, 1 AS id, NULL AS people, NULL AS m, NULL AS n",
            "in another order, and structs of s have other fields.*Say BY NAME",
        ),
    ],
)
def test_fields_that_the_table_does_not_have_are_refused(place: str, statement: str, message: str) -> None:
    for verb in ("INTO", "OVERWRITE"):
        with pytest.raises(ConfigError, match=message):
            pyhudi.DuckDbSession({"t": place}).sql(f"INSERT {verb} t {statement}")
    assert rows(place) == []


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE t SET people = {WRONG}",
        f"MERGE INTO t USING (SELECT 1 AS id, {WRONG} AS people) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET *",
        f"MERGE INTO t USING (SELECT 9 AS id, {WRONG} AS people) q ON t.id = q.id WHEN NOT MATCHED THEN INSERT *",
    ],
)
def test_update_and_merge_go_by_name_and_refuse_an_unknown_field(place: str, statement: str) -> None:
    session = pyhudi.DuckDbSession({"t": place})
    session.sql(f"INSERT INTO t BY NAME SELECT 1 AS id, {NAMED}")
    with pytest.raises(SchemaMismatch, match=r"no field 'people\.element\.nme'"):
        session.sql(statement)
    assert rows(place) == [filled(1, BY_NAME)]
    session.sql(f"UPDATE t SET people = array({GIVEN})")
    assert rows(place)[0]["people"] == [BY_NAME]


def test_an_update_in_python_refuses_a_struct_with_an_unknown_field(place: str) -> None:
    pyhudi.DuckDbSession({"t": place}).sql(f"INSERT INTO t BY NAME SELECT 1 AS id, {NAMED}")
    table = pyhudi.HudiTable.open(place)
    strange = pa.array([{"nme": "A", "code": "C"}], pa.struct([("nme", pa.string()), ("code", pa.string())]))
    with pytest.raises(SchemaMismatch, match=r"no field 's\.nme'"):
        table.update(set={"s": lambda batch: strange})
    assert rows(place) == [filled(1, BY_NAME)]


def test_meta_columns_of_another_table_are_left_out_of_every_form(place: str, tmp_path: Path) -> None:
    meta = ", ".join(f"'x' AS {name}" for name in META_COLUMNS)
    session = pyhudi.DuckDbSession({"t": place})
    session.sql(f"INSERT INTO t SELECT {meta}, 1 AS id, {NAMED}")
    session.sql(f"INSERT INTO t BY NAME SELECT {NAMED}, {meta}, 2 AS id")
    session.sql(f"INSERT INTO t (id, s, people, m, n) SELECT {meta}, 3 AS id, {NAMED}")
    assert rows(place) == [filled(1, BY_NAME), filled(2, BY_NAME), filled(3, BY_PLACE)]
    session.sql(f"INSERT OVERWRITE t SELECT {meta}, 4 AS id, {NAMED}")
    assert rows(place) == [filled(4, BY_NAME)]
    assert pyhudi.HudiTable.open(place).to_arrow(list(META_COLUMNS[:1])).column(0).to_pylist() != ["x"]


def test_a_meta_column_that_is_selected_alone_is_a_value(tmp_path: Path) -> None:
    place = str(tmp_path / "log")
    pyhudi.write_hudi(place, [{"id": 1, "since": "a"}], record_key="id")
    session = pyhudi.DuckDbSession({"log": place})
    session.sql("INSERT INTO log SELECT 2, '20240101' AS _hoodie_commit_time")
    found = pyhudi.HudiTable.open(place).to_arrow(["id", "since"]).sort_by("id").to_pylist()
    assert found == [{"id": 1, "since": "a"}, {"id": 2, "since": "20240101"}]


def test_a_failed_write_says_its_own_error_and_the_session_goes_on(place: str) -> None:
    session = pyhudi.DuckDbSession({"t": place})
    with pytest.raises(SchemaMismatch, match=r"'s\.name'.*missing in the data"):
        session.sql("INSERT INTO t BY NAME SELECT 1 AS id, named_struct('code', 'C') AS s")
    session.sql(f"INSERT INTO t BY NAME SELECT 1 AS id, {NAMED}")
    assert rows(place) == [filled(1, BY_NAME)]
