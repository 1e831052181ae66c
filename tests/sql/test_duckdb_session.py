"""SQL without Spark: what DuckDB makes of queries on tables of ours, and what statements write."""

from __future__ import annotations

import warnings
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import pyhudi
from pyhudi import ConfigError, DuckDbSession, HudiError, HudiTable, TableNotFound
from pyhudi.sql.session import TableName
from pyhudi.sql.table_functions import metadata_records
from tests.support.golden.folder import Golden
from tests.support.sweeps import SAMPLED

ROWS = pa.table(
    {
        "id": ["a", "b", "c"],
        "city": ["x", "y", "x"],
        "fare": [1.0, 2.0, 3.5],
        "who": [{"name": "Ann", "tags": ["p"]}, None, {"name": "Cy", "tags": []}],
    }
)


@pytest.fixture
def rides(tmp_path: Path) -> Path:
    path = tmp_path / "rides"
    pyhudi.write_hudi(path, ROWS, "bulk_insert", record_key="id", partition_by="city")
    return path


@pytest.fixture
def session(rides: Path) -> DuckDbSession:
    return DuckDbSession({"rides": rides, "sales.rides": rides})


def test_a_query_finds_a_table_by_its_path_its_name_and_a_name_in_a_database(session: DuckDbSession, rides: Path):
    for name in ("rides", "RIDES", "sales.rides", f"hudi.`{rides}`"):
        assert session.sql(f"SELECT sum(fare) AS s FROM {name} AS r").to_arrow().to_pylist() == [{"s": 6.5}]


def test_quotations_and_operators_mean_what_they_mean_in_spark(session: DuckDbSession):
    text = 'SELECT `id`, "it\'s" AS a, \'x\\ty\' AS b FROM rides WHERE city == "x" AND NULL <=> NULL ORDER BY id -- x'
    assert session.sql(text).to_arrow().to_pylist() == [
        {"id": "a", "a": "it's", "b": "x\ty"},
        {"id": "c", "a": "it's", "b": "x\ty"},
    ]


def test_a_query_reads_the_columns_and_rows_that_it_names(session: DuckDbSession, monkeypatch: pytest.MonkeyPatch):
    from pyhudi.table.scan import Scan

    asked: list[tuple[object, str]] = []
    narrowed = Scan.narrowed

    def noting(scan: Scan, columns: object = None, where: object = None) -> Scan:
        asked.append((columns, str(where)))
        return narrowed(scan, columns, where)

    monkeypatch.setattr(Scan, "narrowed", noting)
    assert session.sql("SELECT id FROM rides WHERE fare > 1.5 AND city = 'x'").to_arrow().to_pylist() == [{"id": "c"}]
    ((columns, where),) = asked
    assert "who" not in columns
    assert "city ==" in where


def test_structs_and_lists_come_whole_also_out_of_the_middle_of_a_file(session: DuckDbSession):
    found = session.sql("SELECT id, who.name AS n, who.tags AS t FROM rides WHERE id <> 'a' ORDER BY id").to_arrow()
    assert found.to_pylist() == [{"id": "b", "n": None, "t": None}, {"id": "c", "n": "Cy", "t": []}]


@pytest.mark.thorough
def test_time_travel_shows_the_table_as_it_was(session: DuckDbSession, rides: Path):
    table = HudiTable.open(rides)
    before = table.state().timeline.last_commit()
    assert before is not None
    table.delete(where="id = 'a'")
    for clause in ("TIMESTAMP AS OF", "VERSION AS OF", "FOR SYSTEM_TIME AS OF"):
        text = f"SELECT count(*) AS n FROM rides {clause} '{before.requested_time}' AS r"
        assert session.sql(text).to_arrow().to_pylist() == [{"n": 3}]
    assert session.sql("SELECT count(*) AS n FROM rides").to_arrow().to_pylist() == [{"n": 2}]


def test_table_functions_are_used_like_tables(session: DuckDbSession, rides: Path):
    HudiTable.open(rides).upsert(ROWS.slice(0, 1))
    changed = session.sql(
        "SELECT DISTINCT _hoodie_commit_time AS t FROM hudi_table_changes(rides, 'latest_state', 'earliest')"
    )
    assert changed.to_arrow().num_rows == 2
    joined = session.sql(
        "SELECT t.Action FROM hudi_query_timeline('rides') t JOIN rides r ON t.Timestamp = r._hoodie_commit_time"
    )
    assert joined.to_arrow().column("Action").to_pylist() == ["commit"] * 3


def test_a_frame_is_written_as_a_stream_without_its_meta_columns(session: DuckDbSession, rides: Path):
    named = session.find_table(TableName(("rides",)))
    assert named is not None
    frame = session.query(
        "SELECT *, fare AS _hoodie_commit_time FROM (SELECT id, city, fare + 1 AS fare, who FROM rides)"
    )
    result = session.write(named, frame, "upsert", {})
    assert result.updated == 3
    assert HudiTable.open(rides).to_arrow(["fare"]).column("fare").to_pylist() == [2.0, 4.5, 3.0]


def test_what_was_made_of_a_named_frame_can_be_taken_later(session: DuckDbSession):
    with session.view_of(session.query("SELECT id FROM rides")) as one:
        found = session.query(f"SELECT id FROM {one}")
        with session.view_of(found) as other:
            assert one != other
    assert session.columns_of(found).names == ["id"]


def test_settings_are_of_one_session_and_come_with_its_writes(session: DuckDbSession, rides: Path):
    assert session.sql("SET hoodie.parquet.compression.codec = snappy").to_arrow().to_pylist() == [
        {"key": "hoodie.parquet.compression.codec", "value": "snappy"}
    ]
    assert session.settings == {"hoodie.parquet.compression.codec": "snappy"}
    assert DuckDbSession().settings == {}
    session.sql("RESET hoodie.parquet.compression.codec")
    assert session.settings == {}


def test_settings_say_how_queries_read(tmp_path: Path):
    for fare in (1.0, 2.0):
        rows = [{"id": "a", "fare": fare}]
        pyhudi.write_hudi(tmp_path / "t", rows, record_key="id", ordering="fare", table_type="MERGE_ON_READ")
    session = DuckDbSession(catalog=tmp_path)
    assert session.sql("SELECT fare FROM t").to_arrow().to_pylist() == [{"fare": 2.0}]
    session.sql("SET hoodie.datasource.query.type = read_optimized")
    for name in ("t", f"hudi.`{tmp_path}/t`"):
        assert session.sql(f"SELECT fare FROM {name}").to_arrow().to_pylist() == [{"fare": 1.0}]


def test_what_duckdb_cannot_evaluate_is_reported_in_its_own_words(session: DuckDbSession):
    for text, message in (("SELECT frobnicate(id) FROM rides", "frobnicate"), ("SELECT * FROM nowhere", "nowhere")):
        with pytest.raises(ConfigError, match=message):
            session.sql(text).to_arrow()
    with pytest.raises(TableNotFound, match="/nowhere"):
        session.sql("SELECT * FROM hudi.`/nowhere`")


def test_an_error_of_a_table_comes_through_a_query_as_itself(session: DuckDbSession, rides: Path):
    result = session.sql("SELECT * FROM rides")
    for file in rides.glob("*/*.parquet"):
        file.write_bytes(b"no parquet")
    with pytest.raises(pyhudi.HudiError, match=r"\.parquet"):
        result.to_arrow()


GLOBAL = pa.table({"id": ["g"], "fare": [9.0]})


def test_names_that_are_no_tables_are_variables_of_the_caller(session: DuckDbSession, tmp_path: Path):
    frame = pd.DataFrame({"id": ["a", "z"], "fare": [5.0, 6.0]})
    batches = GLOBAL.to_reader()
    pyhudi.write_hudi(tmp_path / "other", GLOBAL, record_key="id")
    table = HudiTable.open(tmp_path / "other")
    scan = table.scan(["id"])

    def ids(text: str) -> list[str]:
        return sorted(session.sql(text).to_arrow()["id"].to_pylist())

    assert pyhudi.sql("SELECT id FROM frame WHERE fare > 5").to_arrow().to_pylist() == [{"id": "z"}]
    assert pyhudi.sql("SELECT id FROM GLOBAL").to_arrow().to_pylist() == [{"id": "g"}]
    assert pyhudi.sql("SELECT id FROM batches").to_arrow().to_pylist() == [{"id": "g"}]
    assert pyhudi.sql("SELECT id, fare FROM table").to_arrow().to_pylist() == [{"id": "g", "fare": 9.0}]
    assert pyhudi.sql("SELECT * FROM scan").to_arrow().to_pylist() == [{"id": "g"}]
    result = session.sql("SELECT r.id FROM rides r JOIN frame f ON r.id = f.id")
    assert result.to_arrow().to_pylist() == [{"id": "a"}]
    assert (len(frame), table.count(), scan.count(), batches.schema) == (2, 1, 1, GLOBAL.schema)
    assert ids("WITH frame AS (SELECT 'cte' AS id) SELECT id FROM frame") == ["cte"]


def test_a_table_comes_before_a_variable_of_its_name_and_a_variable_is_looked_up_at_each_statement(
    session: DuckDbSession,
):
    rides = pa.table({"id": ["variable"]})
    assert session.sql("SELECT count(*) AS n FROM rides").to_arrow().to_pylist() == [{"n": 3}]
    assert rides.num_rows == 1
    session.sql("CREATE TEMP TABLE own AS SELECT 'duckdb' AS id")
    own, mine = rides, rides
    assert session.sql("SELECT id FROM own").to_arrow().to_pylist() == [{"id": "duckdb"}]
    assert session.sql("SELECT id FROM mine").to_arrow().to_pylist() == [{"id": "variable"}]
    mine = pa.table({"id": ["new"]})
    assert session.sql("SELECT id FROM mine").to_arrow().to_pylist() == [{"id": "new"}]
    del own, mine
    with pytest.raises(ConfigError, match="mine"):
        session.sql("SELECT id FROM mine")


def test_lists_texts_and_variables_of_the_librarys_own_functions_are_no_tables():
    words = [{"id": 1}]
    assert words
    for name in ("words", "text", "statement", "tables", "session"):
        with pytest.raises(ConfigError, match=name):
            pyhudi.sql(f"SELECT * FROM {name}")


def test_a_statement_that_writes_takes_rows_of_variables(session: DuckDbSession, rides: Path):
    more = pa.table({"id": ["d"], "city": ["x"], "fare": [4.0]})
    assert more.num_rows == 1
    session.sql("INSERT INTO rides (id, city, fare) SELECT id, city, fare FROM more")
    merge = "MERGE INTO rides t USING (SELECT * FROM more) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    assert HudiTable.open(rides).count() == 4
    session.sql(merge)
    assert HudiTable.open(rides).count() == 3


def test_a_result_shows_its_rows(session: DuckDbSession, capsys: pytest.CaptureFixture[str]):
    result = session.sql("SELECT id, fare FROM rides ORDER BY id")
    text = "id  fare\n--  ----\na    1.0\nb    2.0\nc    3.5"
    assert repr(result) == text
    result.show(2)
    assert capsys.readouterr().out.splitlines()[2:] == ["a    1.0", "b    2.0", "and more; these are the first 2 rows"]
    assert "<td>3.5</td>" in result._repr_html_()
    assert result.df()["id"].tolist() == ["a", "b", "c"]
    assert result.to_arrow().num_rows == 3
    assert repr(session.sql("SET hoodie.metadata.enable = true")).splitlines()[-1].split()[-1] == "true"
    assert '[{"name": "Ann", "tags": ["p"]}]' in repr(session.sql("SELECT array(who) AS w FROM rides WHERE id = 'a'"))


def test_a_result_is_a_polars_frame(session: DuckDbSession):
    pytest.importorskip("polars")
    assert session.sql("SELECT id FROM rides ORDER BY id").pl()["id"].to_list() == ["a", "b", "c"]


def test_meta_columns_are_not_shown_unless_the_query_names_them(session: DuckDbSession):
    whole = session.sql("SELECT * FROM rides")
    assert repr(whole).splitlines()[0].split() == ["id", "city", "fare", "who"]
    assert "_hoodie_commit_time" in whole.to_arrow().column_names
    named = session.sql("SELECT _hoodie_record_key, id FROM rides WHERE id = 'a'")
    assert repr(named).splitlines()[-1].split() == ["a", "a"]


@pytest.mark.thorough
def test_one_statement_needs_no_session_of_its_own(rides: Path):
    assert pyhudi.sql("SELECT max(fare) AS m FROM r", {"r": rides}).to_pandas()["m"].tolist() == [3.5]
    assert pyhudi.sql("SELECT max(fare) AS m FROM rides", catalog=rides.parent).to_arrow().to_pylist() == [{"m": 3.5}]


def test_tables_are_made_named_filled_and_dropped_in_a_folder(tmp_path: Path):
    session = DuckDbSession(catalog=tmp_path)
    session.sql(
        "CREATE TABLE IF NOT EXISTS days (id STRING NOT NULL, n STRUCT<a: INT, b: ARRAY<STRING>>, day DATE) "
        "USING hudi PARTITIONED BY (day) TBLPROPERTIES (primaryKey = 'id')"
    )
    table = HudiTable.open(tmp_path / "days")
    assert table.state().config.record_key_fields == ("id",)
    assert table.state().config.partition_fields == ("day",)
    session.sql("CREATE TABLE two USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT 'a' AS id, 1 AS n")
    assert session.sql("SELECT id, n FROM two").to_arrow().to_pylist() == [{"id": "a", "n": 1}]
    session.sql("DROP TABLE two")
    assert not HudiTable.exists(tmp_path / "two")
    with pytest.raises(ConfigError, match="two does not exist"):
        session.sql("SELECT * FROM two").to_arrow()


def test_a_table_without_a_place_is_refused():
    with pytest.raises(ConfigError, match="Say LOCATION"):
        DuckDbSession().sql("CREATE TABLE t (id INT) USING hudi")


def test_names_do_not_lead_out_of_the_folder(tmp_path: Path, rides: Path):
    inner = tmp_path / "inner"
    inner.mkdir()
    session = DuckDbSession(catalog=inner)
    assert session.find_table(TableName(("..", "rides"))) is None
    assert session.find_table(TableName(("../rides",))) is None


def test_without_duckdb_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    import sys

    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ConfigError, match=r'pip install "pyhudi\[sql\]"'):
        DuckDbSession()


@pytest.mark.thorough
def test_records_of_the_metadata_table_come_whole_with_their_structs(golden: Golden):
    path, _ = golden("1.2.0", "mdt_all_cow")
    found = pyhudi.sql("SELECT * FROM hudi_metadata(t)", {"t": path}).to_arrow()
    assert found.num_rows == metadata_records(HudiTable.open(path)).num_rows


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["types_insert", "g2_merge_event_time", "mdt_all_mor"])
def test_a_query_returns_the_rows_of_a_table_of_real_hudi(golden: Golden, name: str):
    path, _ = golden("1.2.0", name)
    expected = HudiTable.open(path).to_arrow()
    found = pyhudi.sql("SELECT * FROM t", {"t": path}).to_arrow()
    assert found.num_rows == expected.num_rows
    assert found.schema.names == expected.schema.names
    key = "_hoodie_record_key"
    assert found.sort_by(key).column(key).to_pylist() == expected.sort_by(key).column(key).to_pylist()


@pytest.mark.thorough
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_statements_that_put_a_null_into_a_column_that_is_not_null_are_refused(tmp_path: Path, table_type: str):
    session = DuckDbSession(catalog=tmp_path)
    session.sql(
        "CREATE TABLE t (id STRING, v BIGINT NOT NULL, w BIGINT) USING hudi "
        f"TBLPROPERTIES (primaryKey='id', type='{table_type}')"
    )
    session.sql("INSERT INTO t VALUES ('a', 1, 1)")
    rows = "(SELECT 'a' AS id, CAST(NULL AS BIGINT) AS v UNION ALL SELECT 'b', NULL) u"
    for statement in (
        "INSERT INTO t VALUES ('b', NULL, 1)",
        "INSERT INTO t (id, w) VALUES ('b', 1)",
        "INSERT INTO t SELECT 'b', nullif(v, 1), w FROM t",
        "INSERT OVERWRITE t VALUES ('b', NULL, 1)",
        "UPDATE t SET v = NULL",
        "UPDATE t SET v = nullif(v, 1)",
        f"MERGE INTO t USING {rows} ON t.id = u.id WHEN MATCHED THEN UPDATE SET v = u.v",
        f"MERGE INTO t USING {rows} ON t.id = u.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (u.id, u.v)",
        f"MERGE INTO t USING {rows} ON t.id = u.id WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id)",
    ):
        with pytest.raises(pyhudi.HudiError, match=r"'v' is NOT NULL.*'[ab]'"):
            session.sql(statement)
    session.sql("UPDATE t SET w = v + 1")
    assert session.sql("SELECT id, v, w FROM t").to_arrow().to_pylist() == [{"id": "a", "v": 1, "w": 2}]


@pytest.mark.thorough
def test_a_table_is_altered_and_keeps_its_properties_while_the_session_lasts(tmp_path: Path):
    session = DuckDbSession(catalog=tmp_path)
    session.sql("CREATE TABLE t (id STRING, s STRUCT<a: INT>) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    session.sql("INSERT INTO t VALUES ('a', NULL)")
    session.sql("ALTER TABLE t ADD COLUMNS (x INT)")
    session.sql("ALTER TABLE t ALTER COLUMN x TYPE BIGINT")
    session.sql("ALTER TABLE t RENAME COLUMN x TO y")
    session.sql("ALTER TABLE t DROP COLUMN s")
    assert session.sql("SELECT id, y FROM t").to_arrow().to_pylist() == [{"id": "a", "y": None}]
    assert HudiTable.open(tmp_path / "t").schema().field("y").type == pa.int64()

    session.sql("ALTER TABLE t SET TBLPROPERTIES ('note' = 'mine', 'hoodie.parquet.compression.codec' = 'zstd')")
    session.sql("ALTER TABLE t RENAME TO u")
    shown = session.sql("SHOW TBLPROPERTIES u").to_arrow().to_pylist()
    assert {"key": "note", "value": "mine"} in shown
    session.sql("ALTER TABLE u UNSET TBLPROPERTIES ('note')")
    assert session.sql("SHOW TBLPROPERTIES u ('note')").to_arrow()["value"].to_pylist() != ["mine"]
    session.sql("INSERT INTO u VALUES ('b', 1)")
    (path,) = HudiTable.open(tmp_path / "t").inspect.files()["path"].to_pylist()
    (file,) = ds.dataset(tmp_path / "t" / path, format="parquet").get_fragments()
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


@pytest.mark.thorough
def test_nothing_but_the_users_own_names_shows_and_views_do_not_pile_up(session: DuckDbSession, rides: Path):
    path = f"hudi.`{rides}`"
    first = pyhudi.HudiTable.open(rides).state().timeline.commits().instants[0].requested_time
    results = []
    for number in range(120):
        results.append(session.sql(f"SELECT id FROM rides WHERE fare > {number}"))
        session.sql(f"SELECT count(*) FROM {path} TIMESTAMP AS OF '{int(first) + number}'").to_arrow()
        if number % 12 == 0 or not SAMPLED:
            session.sql("SELECT count(*) FROM sales.rides").to_arrow()
    session.sql("UPDATE rides SET fare = fare + 1 WHERE id = 'a'")
    session.sql("CALL show_commits(table => 'rides')").to_arrow()
    assert [row["name"] for row in session.sql("SHOW TABLES").to_arrow().to_pylist() if "as of" not in row["name"]] == [
        "rides", "sales.rides"
    ]  # fmt: skip
    views = session.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").to_arrow()["view_name"].to_pylist()
    assert len(views) <= 110
    assert [name for name in views if name.startswith("__")] == []
    assert sorted(results[0].to_arrow()["id"].to_pylist()) == ["a", "b", "c"]
    with pytest.raises(ConfigError) as refused:
        session.sql("UPDATE rides SET fare = nope WHERE id = 'a'")
    assert "__hudi" not in str(refused.value)


@pytest.mark.thorough
def test_changes_answer_with_counts(session: DuckDbSession):
    def counts(text: str) -> list[int]:
        (row,) = session.sql(text).to_arrow().to_pylist()
        return [row["inserted"], row["updated"], row["deleted"]]

    assert counts("INSERT INTO rides (id, city, fare) VALUES ('d', 'x', 1), ('e', 'x', 2)") == [2, 0, 0]
    assert counts("UPDATE rides SET fare = 0 WHERE city = 'x'") == [0, 4, 0]
    assert counts("DELETE FROM rides WHERE id IN ('d', 'none')") == [0, 0, 1]
    merge = "MERGE INTO rides t USING (SELECT 'e' AS id, 'x' AS city UNION ALL SELECT 'f', 'x') s ON t.id = s.id "
    merge += "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, city) VALUES (s.id, s.city)"
    assert counts(merge) == [1, 0, 1]


def test_a_table_of_duckdbs_own_comes_with_a_warning(session: DuckDbSession, tmp_path: Path):
    for text in ("CREATE TABLE own (id INT)", "create or replace table own AS SELECT id FROM rides"):
        with pytest.warns(UserWarning, match="ends with the session"):
            session.sql(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session.sql("CREATE TEMP TABLE passing AS SELECT id FROM rides")
        session.sql(f"CREATE TABLE lasting USING hudi LOCATION '{tmp_path / 'rides'}'")


@pytest.mark.thorough
def test_duckdbs_errors_are_of_the_family_wherever_they_come_up(session: DuckDbSession, rides: Path):
    for text in (
        "SELECT nope FROM rides", "SELEC", "SELECT * FROM nobody", "SELECT CAST(id AS INT) FROM rides",
        "INSERT INTO rides SELECT CAST(id AS INT), city, fare, who FROM rides", "DROP VIEW nobody",
        "UPDATE rides SET fare = CAST(city AS DOUBLE)", "CREATE VIEW a.b.c AS SELECT 1",
    ):  # fmt: skip
        for take in ("to_arrow", "to_pandas", "to_batches"):
            with pytest.raises(HudiError):
                list(getattr(session.sql(text), take)())
    assert HudiTable.open(rides).scan().count() == 3


@pytest.mark.thorough
def test_a_session_takes_a_table_for_a_name(rides: Path):
    session = DuckDbSession({"u": HudiTable.open(rides)})
    assert session.sql("SELECT count(*) AS n FROM u").to_arrow().to_pylist() == [{"n": 3}]
    session.sql("DELETE FROM u WHERE id = 'a'")
    assert pyhudi.sql("SELECT count(*) AS n FROM u", {"u": HudiTable.open(rides)}).to_arrow().to_pylist() == [{"n": 2}]


def test_a_table_that_a_session_takes_is_read_with_its_own_options(tmp_path: Path):
    made = pyhudi.HudiTable.create(tmp_path / "t", ROWS.schema, record_key="id", table_type="MERGE_ON_READ")
    made.upsert(ROWS)
    made.update("true", set={"fare": "0.5"})
    given = HudiTable.open(tmp_path / "t", options={"hoodie.datasource.query.type": "read_optimized"})
    session = DuckDbSession({"t": given, "whole": tmp_path / "t"})
    session.sql("ALTER TABLE t RENAME TO u")
    answer = session.sql("SELECT (SELECT sum(fare) FROM u) AS files, (SELECT sum(fare) FROM whole) AS merged")
    assert answer.to_arrow().to_pylist() == [{"files": 6.5, "merged": 1.5}]


def test_partitions_are_shown_as_their_paths(tmp_path: Path):
    path = tmp_path / "plain"
    pyhudi.write_hudi(path, ROWS.append_column("d", pa.array(["a/b", "c", "a/b"])), record_key="id", partition_by="d")
    shown = DuckDbSession({"t": path}).sql("SHOW PARTITIONS t").to_arrow()["partition"].to_pylist()
    assert shown == ["a/b", "c"]
