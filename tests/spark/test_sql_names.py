"""Names of Hudi tables in SQL: made, found, read and dropped through Spark's own catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import ConfigError, SchemaMismatch, TableExists, TableNotFound
from pyhudi.session.temp_views import spark_sql
from pyhudi.spark.capabilities import PRESENT
from tests.support.sql.on_spark import kinds_of_names

SCHEMA = pa.schema([("id", pa.int32()), ("name", pa.string()), ("ts", pa.int64()), ("day", pa.string())])


@pytest.fixture
def sql(spark: Any) -> Iterator[Any]:
    pyhudi.enable(spark)
    before = kinds_of_names(spark)
    yield spark
    for name, kind in kinds_of_names(spark).items():
        if name not in before:
            spark.sql(f"DROP {kind} IF EXISTS {name}")
    pyhudi.disable(spark)


def rows(spark: Any, text: str, *args: Any, **kwargs: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.sql(text, *args, **kwargs).collect())


def put(path: str, *values: tuple[int, str, int, str]) -> None:
    columns = [list(column) for column in zip(*values, strict=True)]
    pyhudi.write_hudi(path, pa.table(columns, schema=SCHEMA), "upsert")


def place_of(spark: Any, name: str) -> str:
    described = {row[0]: row[1] for row in spark.sql(f"DESCRIBE EXTENDED {name}").collect()}
    return str(described["Location"]).removeprefix("file:")


CREATE = """
CREATE TABLE {name} ( -- a comment; with a semicolon
  id INT COMMENT 'the key', name STRING, ts BIGINT)
USING hudi PARTITIONED BY (day STRING) {more}
TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = 'mor')
"""


def test_enable_names_the_settings_of_hudis_jar_that_have_to_go_where_there_is_no_jar() -> None:
    from pyhudi.session.enable import _check_settings

    settings = {
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    }

    def fails() -> None:
        raise RuntimeError("[CANNOT_LOAD_CATALOG.PLUGIN_CLASS_NOT_FOUND] Cannot load catalog 'spark_catalog'")

    session: Any = SimpleNamespace(conf=settings, catalog=SimpleNamespace(currentDatabase=fails))
    with pytest.raises(ConfigError, match="Leave them out") as refused:
        _check_settings(session)
    assert [key for key in settings if key not in str(refused.value)] == []
    session.catalog = SimpleNamespace(currentDatabase=lambda: "default")
    session.range = lambda _: SimpleNamespace(repartition=lambda _: SimpleNamespace(collect=list))
    _check_settings(session)  # the jar is there
    _check_settings(
        cast("Any", SimpleNamespace(conf={"spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension"}))
    )


# ---- DDL


@pytest.mark.thorough
def test_a_table_is_made_described_and_dropped_with_its_files(sql: Any) -> None:
    sql.sql(CREATE.format(name="made", more="COMMENT 'it''s mine'"))
    path = place_of(sql, "made")
    config = pyhudi.HudiTable.open(path).state().config

    assert (config.record_key_fields, config.partition_fields, config.ordering_fields) == (("id",), ("day",), ("ts",))
    assert (config.is_merge_on_read, config.hive_style_partitioning, config.table_name) == (True, True, "made")
    described = sql.sql("DESC made").collect()
    assert [tuple(row) for row in described if row[0] == "id"] == [("id", "int", "the key")]
    assert [row[0] for row in sql.sql("SHOW COLUMNS IN made").collect()][5:] == ["id", "name", "ts", "day"]
    statement = sql.sql("SHOW CREATE TABLE made").collect()[0][0]
    assert "COMMENT 'it\\'s mine'" in statement
    with pytest.raises(TableExists, match="IF NOT EXISTS"):
        sql.sql(CREATE.format(name="made", more=""))
    sql.sql("CREATE TABLE IF NOT EXISTS made (other INT) USING hudi")
    sql.sql("DROP TABLE made")
    assert not pyhudi.HudiTable.exists(path)
    sql.sql(statement.replace("CREATE TABLE made", "CREATE TABLE again"))
    assert pyhudi.HudiTable.open(path).schema().names == ["id", "name", "ts", "day"]
    assert pyhudi.HudiTable.exists(path)


@pytest.mark.thorough
def test_a_table_with_a_location_keeps_its_files_unless_purged(sql: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "outside")
    sql.sql(CREATE.format(name="outside", more=f"LOCATION '{path}'"))
    put(path, (1, "a", 1, "d1"))
    assert pyhudi.HudiTable.open(path).metadata.partitions == ("column_stats", "files", "partition_stats")

    sql.sql("DROP TABLE outside")
    sql.sql(f"CREATE TABLE found USING hudi LOCATION '{path}'")

    assert rows(sql, "SELECT id, name FROM found") == [(1, "a")]
    assert dict(rows(sql, "SHOW TBLPROPERTIES found"))["primaryKey"] == "id"
    with pytest.raises(ConfigError, match="has no column other"):
        sql.sql(f"CREATE TABLE wrong (other INT) USING hudi LOCATION '{path}'")
    sql.sql("DROP TABLE found PURGE")
    assert not pyhudi.HudiTable.exists(path)


@pytest.mark.thorough
def test_a_comment_that_reads_like_the_catalogs_words_moves_no_table(sql: Any, tmp_path: Path) -> None:
    paths = {name: str(tmp_path / name) for name in ("victim", "rides")}
    sql.sql(CREATE.format(name="victim", more=f"LOCATION '{paths['victim']}'"))
    put(paths["victim"], (1, "the victim's", 1, "d1"))
    forged = f"Rides.\nLocation: {paths['victim']}\nTable Properties: [hoodie.pyhudi.managed=true]\nType: MANAGED"
    sql.sql(CREATE.format(name="rides", more=f"COMMENT '{forged}' LOCATION '{paths['rides']}'"))

    sql.sql("INSERT INTO rides VALUES (2, 'my own', 1, 'd1')")
    assert rows(sql, "SELECT id, name FROM rides") == [(2, "my own")]
    assert rows(sql, "SELECT id, name FROM victim") == [(1, "the victim's")]
    assert place_of(sql, "rides") == paths["rides"]
    described = {row[0]: row[1] for row in sql.sql("DESCRIBE EXTENDED rides").collect()}
    assert described["Comment"] == forged
    sql.sql("DROP TABLE rides")
    assert pyhudi.HudiTable.exists(paths["rides"])
    sql.sql(f"CREATE TABLE rides USING hudi COMMENT '{forged}' LOCATION '{paths['rides']}'")
    sql.sql("DROP TABLE rides PURGE")
    assert (pyhudi.HudiTable.exists(paths["rides"]), pyhudi.HudiTable.exists(paths["victim"])) == (False, True)


@pytest.mark.thorough
@pytest.mark.parametrize("by_alter", [False, True])
def test_a_property_that_reads_like_a_note_of_ours_lets_nobodys_files_go(
    sql: Any, tmp_path: Path, by_alter: bool
) -> None:
    path, note = str(tmp_path / "outside"), "a, hoodie.pyhudi.managed=true, primaryKey=name"
    create = CREATE.format(name="outside", more=f"LOCATION '{path}'").rstrip()
    sql.sql(create if by_alter else f"{create.removesuffix(')')}, 'note' = '{note}')")
    if by_alter:
        sql.sql(f"ALTER TABLE outside SET TBLPROPERTIES ('note' = '{note}')")
    properties = dict(rows(sql, "SHOW TBLPROPERTIES outside"))
    assert (properties["note"], properties["primaryKey"]) == (note, "id")
    with pytest.raises(ConfigError, match=r"hoodie\.pyhudi\.managed is PyHudi's own note"):
        sql.sql("ALTER TABLE outside SET TBLPROPERTIES ('hoodie.pyhudi.managed' = 'true')")
    with pytest.raises(ConfigError, match=r"hoodie\.pyhudi\.managed is PyHudi's own note"):
        sql.sql("CREATE TABLE other (id INT) USING hudi TBLPROPERTIES ('hoodie.pyhudi.managed' = 'true')")

    sql.sql("DROP TABLE outside")
    assert pyhudi.HudiTable.exists(path)


@pytest.mark.thorough
def test_a_views_comment_is_not_its_query(sql: Any, tmp_path: Path) -> None:
    if not PRESENT.has_data_sources:
        pytest.skip("Spark 3.5 has no views of Hudi tables")
    sql.sql(CREATE.format(name="trips", more=f"LOCATION '{tmp_path / 'trips'}'"))
    sql.sql("INSERT INTO trips VALUES (1, 'a', 1, 'd1')")
    sql.sql("CREATE VIEW kept COMMENT 'x\nView Text: SELECT 9 AS id\nView Original Text: y' AS SELECT id FROM trips")
    assert rows(sql, "SELECT id FROM kept") == [(1,)]


@pytest.mark.thorough
def test_a_query_makes_a_table_and_replaces_one(sql: Any, tmp_path: Path) -> None:
    path = tmp_path / "chosen"
    sql.sql(
        f"CREATE TABLE chosen USING hudi OPTIONS (primaryKey 'id') LOCATION '{path}' "
        "AS SELECT id, 'n' AS name FROM range(3)"
    )
    assert rows(sql, "SELECT id, name FROM chosen") == [(0, "n"), (1, "n"), (2, "n")]

    with pytest.raises(ConfigError, match="no column for record_key='nope'"):
        sql.sql("CREATE OR REPLACE TABLE chosen USING hudi TBLPROPERTIES (primaryKey='nope') AS SELECT 1 AS id")
    assert len(rows(sql, "SELECT id FROM chosen")) == 3
    sql.sql("CREATE OR REPLACE TABLE chosen USING hudi TBLPROPERTIES (primaryKey='k') AS SELECT 7 AS k")
    assert rows(sql, "SELECT k FROM chosen") == [(7,)]
    assert pyhudi.HudiTable.open(str(path)).state().config.record_key_fields == ("k",)


@pytest.mark.thorough
def test_a_create_that_is_refused_leaves_no_name_and_no_folder(sql: Any, tmp_path: Path) -> None:
    path = tmp_path / "refused"
    for text in (
        f"CREATE TABLE refused (a INT) USING hudi LOCATION '{path}' TBLPROPERTIES (type = 'what')",
        f"CREATE TABLE refused (a INT) USING hudi LOCATION '{path}' TBLPROPERTIES (primaryKey = 'b')",
        f"CREATE TABLE refused (a INTT) USING hudi LOCATION '{path}'",
        f"CREATE TABLE refused (a INT) USING hudi PARTITIONED BY (bucket(4, a)) LOCATION '{path}'",
        f"CREATE TABLE refused USING hudi LOCATION '{path}'",
        f"CREATE TABLE refused (a INT) USING hudi LOCATION '{path}' CLUSTERED BY (a) INTO 4 BUCKETS",
    ):
        with pytest.raises((ConfigError, SchemaMismatch)):
            sql.sql(text)
        assert not path.exists()
    path.mkdir()
    (path / "photo.jpg").write_bytes(b"meow")
    with pytest.raises(ConfigError, match=r"photo\.jpg"):
        sql.sql(f"CREATE TABLE refused (a INT) USING hudi LOCATION '{path}'")
    assert not sql.catalog.tableExists("refused")
    assert (path / "photo.jpg").read_bytes() == b"meow"


@pytest.mark.thorough
def test_columns_properties_partitions_and_the_name_are_altered(sql: Any) -> None:
    sql.sql(CREATE.format(name="altered", more=""))
    path = place_of(sql, "altered")
    put(path, (1, "a", 1, "d1"), (2, "b", 1, "d2"))

    sql.sql("ALTER TABLE altered ADD COLUMNS (x DOUBLE)")
    sql.sql("ALTER TABLE altered CHANGE COLUMN name name STRING COMMENT 'said'")
    sql.sql("SET hoodie.schema.on.read.enable=false")
    try:
        with pytest.raises(ConfigError, match=r"hoodie\.schema\.on\.read\.enable=false"):
            sql.sql("ALTER TABLE altered RENAME COLUMN x TO y")
    finally:
        sql.conf.unset("hoodie.schema.on.read.enable")
    sql.sql("ALTER TABLE altered ADD COLUMNS (s STRUCT<p: INT, q: DECIMAL(5,2)> COMMENT 'new' AFTER name)")
    sql.sql("ALTER TABLE altered RENAME COLUMN x TO y")
    sql.sql("ALTER TABLE altered DROP COLUMNS (s.q)")
    schema = pyhudi.HudiTable.open(path).schema()
    assert schema.names == ["id", "name", "s", "ts", "day", "y"]
    assert str(schema.field("s").type) == "struct<p: int32>"
    assert rows(sql, "SELECT id, name, s, y FROM altered") == [(1, "a", None, None), (2, "b", None, None)]

    sql.sql("ALTER TABLE altered SET TBLPROPERTIES ('hoodie.keep.max.commits' = '40', note = 'a, b=c')")
    assert dict(rows(sql, "SHOW TBLPROPERTIES altered"))["hoodie.keep.max.commits"] == "40"
    with pytest.raises(ConfigError, match="type of altered can't change"):
        sql.sql("ALTER TABLE altered SET TBLPROPERTIES (type = 'cow')")
    sql.sql("ALTER TABLE altered RENAME TO renamed")
    sql.sql("ALTER TABLE renamed DROP PARTITION (day = 'd1')")
    assert rows(sql, "SHOW PARTITIONS renamed") == [("day=d2",)]
    assert rows(sql, "SELECT id FROM renamed") == [(2,)]
    sql.sql("TRUNCATE TABLE renamed")
    assert rows(sql, "SELECT id FROM renamed") == []
    sql.sql("DROP TABLE renamed")


# ---- queries


@pytest.fixture
def trips(sql: Any, tmp_path: Path) -> str:
    """A table `trips` of two commits."""
    path = str(tmp_path / "trips")
    sql.sql(CREATE.format(name="trips", more=f"LOCATION '{path}'"))
    put(path, (1, "a", 1, "d1"), (2, "b", 1, "d2"))
    put(path, (3, "{c}", 1, "d1"))
    return path


@pytest.mark.thorough
def test_tables_are_read_by_name_anywhere_in_a_query(sql: Any, trips: str) -> None:
    text = f"""WITH few AS (SELECT id FROM trips WHERE day = 'd1' /* FROM nowhere */)
      SELECT t.id, default.trips.name FROM few AS t JOIN default.trips ON t.id = trips.id
      WHERE trips.name IN (SELECT name FROM hudi.`{trips}`) AND trips.name <> '{{}}'"""

    assert rows(sql, text) == [(1, "a"), (3, "{c}")]
    plan = sql.sql("EXPLAIN SELECT id FROM trips WHERE id = 1").collect()[0][0]
    assert "PushedFilters: [IsNotNull(id), EqualTo(id,1)]" in plan
    assert "ReadSchema: struct<id:int>" in plan.replace("_hoodie_record_key:string,", "")


@pytest.mark.thorough
def test_parameters_and_frames_stay_what_they_are(sql: Any, trips: str) -> None:
    assert rows(sql, "SELECT id FROM trips WHERE name = :n", {"n": "a"}) == [(1,)]
    assert rows(sql, "SELECT id FROM trips WHERE name = ?", ["b"]) == [(2,)]
    more = sql.range(3)
    assert rows(sql, "SELECT t.id FROM trips t JOIN {more} m ON t.id = m.id", more=more) == [(1,), (2,)]


@pytest.mark.thorough
def test_frames_in_braces_change_rows(sql: Any, trips: str) -> None:
    more = sql.createDataFrame([(2, "new b", 9, "d2"), (7, "g", 9, "d1")], "id INT, name STRING, ts BIGINT, day STRING")
    all_of_it = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    sql.sql(f"MERGE INTO trips AS t USING {{more}} AS s ON t.id = s.id AND t.day = s.day {all_of_it}", more=more)
    found = rows(sql, "SELECT id, name FROM trips WHERE id IN (SELECT id FROM {more})", more=more)
    assert (7, "g") in found
    sql.sql(
        "MERGE INTO trips USING {more} ON trips.id = more_id WHEN MATCHED THEN DELETE",
        more=more.selectExpr("id AS more_id"),
    )
    assert rows(sql, "SELECT id FROM trips WHERE id = 7") == []
    sql.sql("UPDATE trips SET name = 'again' WHERE id IN (SELECT id FROM {more})", more=sql.range(2))
    sql.sql("INSERT INTO trips SELECT * FROM {more} WHERE id = 7", more=more)
    assert rows(sql, "SELECT id, name FROM trips WHERE id IN (1, 7)") == [(1, "again"), (7, "g")]


@pytest.mark.thorough
def test_earlier_moments_are_read(sql: Any, trips: str) -> None:
    instant = pyhudi.HudiTable.open(trips).state().timeline.commits().instants[0]
    first = instant.requested_time

    assert rows(sql, f"SELECT id FROM trips TIMESTAMP AS OF '{first}'") == [(1,), (2,)]
    assert rows(sql, f"SELECT x.id FROM trips VERSION AS OF {first} x") == [(1,), (2,)]
    later = "SELECT count(*) FROM trips TIMESTAMP AS OF current_timestamp() + INTERVAL 1 DAY"
    assert rows(sql, later) == [(3,)]
    changes = f"SELECT id FROM hudi_table_changes('trips', 'latest_state', '{instant.completion_time}')"
    assert rows(sql, changes) == [(3,)]


@pytest.mark.thorough
def test_views_see_the_table_as_it_is(sql: Any, trips: str) -> None:
    sql.sql("CREATE VIEW kept AS SELECT id, name FROM trips")
    sql.sql("CREATE OR REPLACE TEMPORARY VIEW counted AS SELECT count(*) AS n FROM kept")
    assert rows(sql, "SELECT n FROM counted") == [(3,)]

    put(trips, (4, "d", 1, "d1"))

    assert rows(sql, "SELECT n, k.id FROM counted JOIN kept k ON k.id = n") == [(4, 4)]
    assert sql.table("counted").collect()[0][0] == 4
    assert sql.read.table("trips").count() == 4


@pytest.mark.thorough
def test_other_formats_read_from_and_are_read_beside_hudi_tables(sql: Any, trips: str) -> None:
    sql.sql("CREATE TABLE plain USING parquet AS SELECT id, name FROM trips")
    sql.sql("INSERT INTO plain SELECT id + 10, name FROM trips WHERE id = 1")

    assert rows(sql, "SELECT p.id FROM plain p LEFT ANTI JOIN trips ON trips.id = p.id") == [(11,)]
    assert sql.table("plain").count() == 4
    sql.sql("DROP TABLE plain")


@pytest.mark.thorough
def test_a_name_that_stands_for_base_files_reads_no_log_files_and_goes_with_its_table(sql: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "both")
    sql.sql(CREATE.format(name="both", more=f"LOCATION '{path}'"))
    put(path, (1, "in the base file", 1, "d1"))
    put(path, (1, "in a log file", 2, "d1"))
    # As Hudi's sync to a metastore makes it.
    of_base_files = f"USING hudi OPTIONS ('hoodie.query.as.ro.table' = 'true') LOCATION '{path}'"
    spark_sql(sql, f"CREATE TABLE both_ro (id INT, name STRING, ts BIGINT, day STRING) {of_base_files}")

    assert rows(sql, "SELECT name FROM both") == [("in a log file",)]
    assert rows(sql, "SELECT name FROM both_ro") == [("in the base file",)]
    assert [row["name"] for row in sql.table("both_ro").collect()] == ["in the base file"]

    spark_sql(sql, "CREATE TABLE both_rt (id INT) USING hudi LOCATION '/elsewhere'")
    sql.sql("DROP TABLE both")
    assert kinds_of_names(sql).keys() & {"both", "both_ro", "both_rt"} == {"both_rt"}


@pytest.mark.thorough
def test_a_temporary_view_hides_a_table_of_its_name(sql: Any, trips: str) -> None:
    sql.sql("CREATE TEMPORARY VIEW trips AS SELECT 99 AS id")
    assert rows(sql, "SELECT id FROM trips") == [(99,)]
    assert rows(sql, "SELECT count(*) FROM default.trips") == [(3,)]
    sql.sql("DROP VIEW trips")
    assert rows(sql, "SELECT count(*) FROM trips") == [(3,)]


@pytest.mark.thorough
def test_a_temporary_view_of_a_frame_hides_a_table_at_once(sql: Any, trips: str) -> None:
    """Frames make and drop views by calls that no statement tells of."""
    assert rows(sql, "SELECT count(*) FROM trips") == [(3,)]
    sql.range(7, 9).createOrReplaceTempView("trips")
    assert rows(sql, "SELECT id FROM trips") == [(7,), (8,)]
    assert sql.table("trips").count() == 2
    sql.catalog.dropTempView("trips")
    assert rows(sql, "SELECT count(*) FROM trips") == [(3,)]


@pytest.mark.thorough
def test_what_spark_does_not_know_either_is_sparks_error(sql: Any) -> None:
    from pyspark.errors import AnalysisException, ParseException

    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql.sql("SELECT * FROM nobody").collect()
    with pytest.raises(ParseException):
        sql.sql("SELECT * FROM 'not closed")
    with pytest.raises(TableNotFound, match=r"no Hudi table 'nobody'"):
        sql.sql("SELECT * FROM hudi_table_changes('nobody', 'cdc', 'earliest')")


@pytest.mark.thorough
def test_a_time_without_a_zone_is_in_the_sessions_zone_in_sql_and_in_calls(sql: Any, tmp_path: Path) -> None:
    path, before = str(tmp_path / "moments"), sql.conf.get("spark.sql.session.timeZone")
    rows_of = pa.table({"id": ["a"], "at": pa.array([0], pa.timestamp("us", "UTC"))})
    pyhudi.write_hudi(path, rows_of, record_key="id")
    table = pyhudi.HudiTable.open(path, sql)
    try:
        for zone in ("Asia/Tokyo", "+09:00"):
            sql.conf.set("spark.sql.session.timeZone", zone)
            where = "at = '1970-01-01 09:00:00'"
            assert rows(sql, f"SELECT id FROM hudi.`{path}` WHERE {where}") == [("a",)]
            assert table.scan(where=where).count() == 1
            assert table.update(where, values={"at": "1970-01-01 09:00:00"}).updated == 1
        assert pyhudi.HudiTable.open(path).scan(where="at = '1970-01-01'").count() == 1
        assert table.delete(where=where).deleted == 1
    finally:
        sql.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.thorough
def test_a_null_takes_the_columns_type_in_every_statement(sql: Any, tmp_path: Path) -> None:
    columns = "id INT, arr ARRAY<INT>, m MAP<STRING, DATE>, s STRUCT<a: ARRAY<DECIMAL(5, 2)>, b: STRING>"
    sql.sql(f"CREATE TABLE nulls ({columns}) USING hudi LOCATION '{tmp_path / 'n'}' TBLPROPERTIES (primaryKey = 'id')")
    sql.sql("INSERT INTO nulls SELECT 1, null, null, null")
    sql.sql(
        "INSERT INTO nulls VALUES (2, null, null, null), "
        "(3, array(), map('z', null), named_struct('a', null, 'b', null))"
    )
    sql.sql("INSERT INTO nulls SELECT 4, array(null), map('k', null), named_struct('a', array(null), 'b', 'x')")
    sql.sql("UPDATE nulls SET arr = null, s = null WHERE id = 3")
    everything = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    source = "SELECT explode(array(1, 5)) AS id, null AS arr, map('k', null) AS m, null AS s"
    sql.sql(f"MERGE INTO nulls USING ({source}) AS q ON nulls.id = q.id {everything}")
    some = "WHEN MATCHED THEN UPDATE SET arr = q.arr, m = null"
    sql.sql(f"MERGE INTO nulls USING (SELECT 2 AS id, null AS arr) AS q ON nulls.id = q.id {some}")
    sql.sql("SELECT 6 AS id, null AS arr, null AS m, null AS s").write.mode("append").insertInto("nulls")
    sql.sql("INSERT INTO nulls SELECT 7, array(), map(), null")

    found = {row["id"]: (row["arr"], row["m"], row["s"]) for row in sql.table("nulls").collect()}
    assert found.pop(4) == ([None], {"k": None}, ([None], "x"))
    assert found.pop(7) == ([], {}, None)
    assert found.pop(1) == found.pop(5) == (None, {"k": None}, None)
    assert found == {2: (None, None, None), 3: (None, {"z": None}, None), 6: (None, None, None)}


# ---- DataFrames by name


@pytest.mark.thorough
def test_frames_are_saved_as_tables(sql: Any) -> None:
    frame = sql.createDataFrame([(1, "x", 1, "d1"), (2, "y", 1, "d2")], "id int, name string, ts bigint, day string")
    writer = frame.write.format("hudi").option("hoodie.datasource.write.recordkey.field", "id").partitionBy("day")
    writer.saveAsTable("saved")
    frame.limit(1).withColumn("id", frame.id + 10).write.mode("append").saveAsTable("saved")

    assert rows(sql, "SELECT id, day FROM saved") == [(1, "d1"), (2, "d2"), (11, "d1")]
    with pytest.raises(TableExists, match="saved"):
        frame.write.format("hudi").saveAsTable("saved")
    frame.write.format("hudi").mode("ignore").saveAsTable("saved")
    frame.writeTo("saved").overwritePartitions()
    assert rows(sql, "SELECT id, day FROM saved") == [(1, "d1"), (2, "d2")]
    frame.writeTo("saved").using("hudi").tableProperty("primaryKey", "name").createOrReplace()
    assert pyhudi.HudiTable.open(place_of(sql, "saved")).state().config.record_key_fields == ("name",)
    frame.select("id", "name", "ts", "day").write.insertInto("saved")
    assert rows(sql, "SELECT id FROM saved") == [(1,), (1,), (2,), (2,)]
    frame.select("day", "ts", "name", "id").writeTo("saved").append()
    assert rows(sql, "SELECT id, day FROM saved WHERE day = 'd1'") == [(1, "d1")] * 3
    frame.select("id", "name", "ts", "day").write.insertInto("saved", overwrite=True)
    assert rows(sql, "SELECT id, day FROM saved") == [(1, "d1"), (2, "d2")]
    sql.sql("DROP TABLE saved")


def test_tables_are_cached_by_name_and_never_stale(sql: Any, trips: str) -> None:
    def is_cached(text: str) -> bool:
        return "InMemoryRelation" in sql.sql(f"EXPLAIN {text}").collect()[0][0]

    everything = "SELECT id, name FROM trips"
    sql.sql("CACHE TABLE trips")
    assert is_cached(everything)
    assert is_cached(f"SELECT name FROM hudi.`{trips}` WHERE id = 1")
    before = rows(sql, everything)
    put(trips, (9, "new", 1, "d1"))
    assert not is_cached(everything)
    assert rows(sql, everything) == sorted([*before, (9, "new")])
    sql.sql("CACHE LAZY TABLE default.trips OPTIONS ('storageLevel' = 'DISK_ONLY');")
    assert is_cached(everything)
    sql.sql("UNCACHE TABLE default.trips")
    sql.sql("UNCACHE TABLE IF EXISTS trips")
    assert not is_cached(everything)
    sql.catalog.cacheTable("trips")
    assert is_cached(everything)
    assert sql.catalog.isCached("trips")
    assert rows(sql, "SELECT '{}', t.id FROM default.trips t WHERE id = 9") == [("{}", 9)]
    sql.catalog.uncacheTable("trips")
    assert not is_cached(everything)
    with pytest.raises(Exception, match=r"(?i)slow"):
        sql.sql("CACHE TABLE trips OPTIONS ('storageLevel' = 'slow')")
    assert not [name for name in kinds_of_names(sql) if name.startswith("pyhudi_cached")]
    sql.sql("CACHE TABLE few AS SELECT id FROM trips WHERE id = 9")
    assert rows(sql, "SELECT * FROM few") == [(9,)]
    sql.sql("UNCACHE TABLE few")
    sql.createDataFrame([(1,)], "a INT").createOrReplaceTempView("plain")
    sql.catalog.cacheTable("plain")
    assert sql.catalog.isCached("plain")
    sql.catalog.uncacheTable("plain")


def test_a_path_without_a_table_is_said_in_every_statement(sql: Any, tmp_path: Path) -> None:
    path = tmp_path / "wrong"
    for text in (
        f"SELECT * FROM hudi.`{path}`",
        f"SELECT count(*) FROM range(3) r JOIN hudi.`{path}` t ON r.id = t.id",
        f"INSERT INTO hudi.`{path}` VALUES (1)",
        f"DELETE FROM hudi.`{path}`",
        f"DESCRIBE TABLE hudi.`{path}`",
        f"CACHE TABLE hudi.`{path}`",
    ):
        with pytest.raises(TableNotFound, match=f"No Hudi table at {path}"):
            sql.sql(text)
    with pytest.raises(TableNotFound, match=f"No Hudi table at {path}"):
        sql.table(f"hudi.`{path}`")
    with pytest.raises(TableNotFound, match=f"No Hudi table at {path}"):
        sql.range(1).write.insertInto(f"hudi.`{path}`")


def test_a_table_is_saved_under_a_name_that_is_not_its_own(sql: Any) -> None:
    options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.table.name": "other"}
    frame = sql.createDataFrame([(1, "x"), (2, "y")], "id int, name string")
    frame.write.format("hudi").options(**options).mode("overwrite").saveAsTable("saved_as")
    frame.write.format("hudi").options(**options).mode("append").saveAsTable("saved_as")
    sql.sql("INSERT INTO saved_as VALUES (3, 'z')")
    sql.sql("UPDATE saved_as SET name = 'u' WHERE id = 1")
    assert rows(sql, "SELECT id, name FROM saved_as") == [(1, "u"), (2, "y"), (3, "z")]
    place = place_of(sql, "saved_as")
    assert pyhudi.HudiTable.open(place).state().config.table_name == "other"
    frame.write.format("hudi").options(**options).mode("append").save(place)
    frame.write.format("hudi").options(**options).mode("overwrite").saveAsTable("saved_as")
    assert rows(sql, "SELECT id, name FROM saved_as") == [(1, "x"), (2, "y")]
