"""Properties of a named table: what may be set, and what a write says of those that another writer has set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import ConfigError, TableNotFound
from pyhudi.sql.session import TableName

pytest.importorskip("duckdb")

MAX, MIN = "hoodie.keep.max.commits", "hoodie.keep.min.commits"


@pytest.fixture
def session(tmp_path: Path) -> pyhudi.DuckDbSession:
    session = pyhudi.DuckDbSession(catalog=str(tmp_path), options={"hoodie.metadata.enable": "false"})
    session.sql("CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    return session


def properties(session: pyhudi.DuckDbSession) -> dict[str, str]:
    return {row["key"]: row["value"] for row in session.sql("SHOW TBLPROPERTIES t").to_arrow().to_pylist()}


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (f"{MAX} = '10'", rf"{MAX}=10 must be greater than {MIN}=20.*changed nothing.*in one statement"),
        (f"{MAX} = 'x'", rf"{MAX}.*'x'.*changed nothing"),
        ("hoodie.kep.max.commits = '40'", rf"Unknown option 'hoodie.kep.max.commits'. Did you mean '{MAX}'"),
        ("hoodie.datasource.write.recordkey.field = 'v'", "recordkey.field=v, but the table 't' was made with 'id'"),
        (f"note = 'kept', {MIN} = '50'", f"{MAX}=30 must be greater than {MIN}=50"),
    ],
)
def test_a_property_with_which_no_write_works_is_refused_when_it_is_set(
    session: pyhudi.DuckDbSession, pairs: str, message: str
) -> None:
    before = properties(session)
    with pytest.raises(ConfigError, match=message):
        session.sql(f"ALTER TABLE t SET TBLPROPERTIES ({pairs})")
    assert properties(session) == before
    session.sql("INSERT INTO t VALUES (1, 'a')")


def test_a_name_for_a_table_that_is_there_takes_no_such_property(tmp_path: Path) -> None:
    place = str(tmp_path / "there")
    pyhudi.write_hudi(place, [{"id": 1}], record_key="id")
    session = pyhudi.DuckDbSession()
    with pytest.raises(ConfigError, match=f"{MAX}=10 must be greater.*CREATE TABLE named changed nothing"):
        session.sql(f"CREATE TABLE named USING hudi LOCATION '{place}' TBLPROPERTIES ({MAX} = '10')")
    session.sql(f"CREATE TABLE named USING hudi LOCATION '{place}' TBLPROPERTIES ({MAX} = '40')")
    assert session.sql("SELECT id FROM named").to_arrow().num_rows == 1


def test_options_that_depend_on_each_other_are_set_and_unset_together(session: pyhudi.DuckDbSession) -> None:
    session.sql(f"ALTER TABLE t SET TBLPROPERTIES ({MAX} = '60', {MIN} = '40', 'owner.team' = 'x')")
    session.sql("INSERT INTO t VALUES (1, 'a')")
    with pytest.raises(ConfigError, match=f"{MAX}=30 must be greater than {MIN}=40"):
        session.sql(f"ALTER TABLE t UNSET TBLPROPERTIES ('{MAX}')")
    assert properties(session)[MAX] == "60"
    session.sql(f"ALTER TABLE t UNSET TBLPROPERTIES ('{MAX}', '{MIN}')")
    assert not {MAX, MIN} & set(properties(session))


def test_a_write_names_the_property_that_another_writer_has_set_and_unset_takes_it_out(
    session: pyhudi.DuckDbSession,
) -> None:
    session.sql("INSERT INTO t VALUES (1, 'a')")
    catalog = session.catalog
    entry = catalog.find(TableName(("t",)))
    assert entry is not None
    broken = {**entry.properties, MAX: "10", "hoodie.clean.hours.retained": "soon", "hoodie.metadata.enable": "false"}
    catalog.register(replace(entry, properties=broken), pa.schema([]), ())
    for statement in (
        "INSERT INTO t VALUES (2, 'b')",
        "INSERT OVERWRITE t VALUES (2, 'b')",
        "UPDATE t SET v = 'c'",
        "DELETE FROM t",
        "MERGE INTO t USING (SELECT 1 AS id, 'c' AS v) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET *",
        "ALTER TABLE t ADD COLUMNS (w INT)",
    ):
        with pytest.raises(ConfigError, match=r"hours.retained.*property of t in the catalog.*UNSET TBLPROPERTIES \('"):
            session.sql(statement)
    session.sql("ALTER TABLE t UNSET TBLPROPERTIES ('hoodie.clean.hours.retained')")
    with pytest.raises(ConfigError, match=rf"{MAX}=10 must be.*UNSET TBLPROPERTIES \('{MAX}'\)"):
        session.sql("UPDATE t SET v = 'c'")
    session.sql(f"ALTER TABLE t UNSET TBLPROPERTIES ('{MAX}')")
    session.sql("UPDATE t SET v = 'c'")
    assert session.sql("SELECT id, v FROM t").to_arrow().to_pylist() == [{"id": 1, "v": "c"}]


def test_a_statement_may_give_the_table_a_name_that_is_not_the_catalogs(
    session: pyhudi.DuckDbSession, tmp_path: Path
) -> None:
    session.sql(
        "CREATE TABLE named (id INT) USING hudi TBLPROPERTIES (primaryKey = 'id', hoodie.table.name = 'other') "
    )
    session.sql("INSERT INTO named VALUES (1)")
    session.sql("DELETE FROM named WHERE id = 2")
    assert session.sql("SELECT id FROM named").to_arrow().to_pylist() == [{"id": 1}]
    assert pyhudi.HudiTable.open(tmp_path / "named").state().config.table_name == "other"


@pytest.mark.parametrize(
    "statement", ["SELECT * FROM {}", "INSERT INTO {} VALUES (1)", "DELETE FROM {}", "DESCRIBE {}"]
)
def test_a_path_without_a_table_is_said_in_every_statement(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "wrong"
    with pytest.raises(TableNotFound, match=f"No Hudi table at {path}"):
        pyhudi.sql(statement.format(f"hudi.`{path}`"))
