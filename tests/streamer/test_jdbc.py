"""Databases as a source: which rows a round takes, types, URLs and errors. SQLite; PostgreSQL in test_postgres.py."""

from __future__ import annotations

import datetime
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Streamer
from pyhudi.errors import ConfigError, MissingLibrary, SchemaMismatch, StorageError
from pyhudi.streamer.settings import load_settings
from pyhudi.streamer.sources.jdbc.client import open_database

pytest.importorskip("sqlalchemy")
JDBC = "hoodie.streamer.jdbc."


def sql(tmp_path: Path, *statements: str) -> None:
    connection = sqlite3.connect(tmp_path / "s.db")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def config(tmp_path: Path, column: str | None = "n", **more: object) -> dict[str, Any]:
    pull = {} if column is None else {f"{JDBC}incr.pull": True, f"{JDBC}table.incr.column.name": column}
    places = {"target-base-path": str(tmp_path / "t"), "record_key": "id", "op": "INSERT", "source-class": "JdbcSource"}
    return {**places, f"{JDBC}url": f"jdbc:sqlite:{tmp_path}/s.db", f"{JDBC}table.name": "s", **pull, **more}


def ids(tmp_path: Path) -> list[int]:
    table = HudiTable.open(tmp_path / "t").scan(meta_columns=False).to_arrow()
    return sorted(table.column("id").to_pylist())


def run(settings: dict[str, Any]) -> Any:
    streamer = Streamer(settings)
    try:
        return streamer.run(until_empty=True)
    finally:
        streamer.close()


def test_a_limited_batch_ends_behind_all_rows_of_a_value_so_none_of_them_is_lost(tmp_path: Path) -> None:
    values = ", ".join(f"({number}, {number // 4})" for number in range(10))
    sql(tmp_path, "CREATE TABLE s (id INTEGER, n INTEGER)", f"INSERT INTO s VALUES {values}")

    done = run(config(tmp_path, **{"source-limit": 3}))

    assert (done.rows, done.commits, done.checkpoint) == (10, 3, "2")
    assert ids(tmp_path) == list(range(10))


def test_rows_that_are_committed_late_with_the_value_of_the_checkpoint_come_once(tmp_path: Path) -> None:
    sql(tmp_path, "CREATE TABLE s (id INTEGER, n INTEGER, x TEXT)", "INSERT INTO s (id, n) VALUES (1, 5), (2, 7)")
    assert run(config(tmp_path)).checkpoint == "7"
    sql(tmp_path, "INSERT INTO s (id, n) VALUES (3, 7)", "ALTER TABLE s ADD COLUMN later TEXT")

    assert (run(config(tmp_path)).rows, run(config(tmp_path)).rows) == (1, 0)
    sql(tmp_path, "INSERT INTO s (id, n, later) VALUES (4, 7, 'new'), (5, 8, 'new')")
    assert run(config(tmp_path)).rows == 2
    assert ids(tmp_path) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("kind", "first", "late", "checkpoint"),
    [
        ("INTEGER", "100", "95", "100"),
        ("DECIMAL(10,2)", "100.25", "90.5", "100.25"),
        ("TIMESTAMP", "'2026-08-10 12:00:09'", "'2026-08-10 12:00:01'", "2026-08-10 12:00:09"),
        ("DATE", "'2026-08-10'", "'2026-08-01'", "2026-08-10"),
    ],
)
def test_a_lookback_finds_rows_that_were_committed_late_with_smaller_values(
    kind: str, first: str, late: str, checkpoint: str, tmp_path: Path
) -> None:
    sql(tmp_path, f"CREATE TABLE s (id INTEGER, n {kind})", f"INSERT INTO s VALUES (1, {late}), (2, {first})")
    settings = config(tmp_path, **{"hoodie.pyhudi.streamer.jdbc.lookback": 10})
    assert run(settings).checkpoint == checkpoint
    sql(tmp_path, f"INSERT INTO s VALUES (3, {late})")

    assert (run(settings).rows, run(settings).rows) == (1, 0)
    assert ids(tmp_path) == [1, 2, 3]
    assert run(config(tmp_path, **{"hoodie.pyhudi.streamer.jdbc.lookback": 50})).rows == 0


def test_behind_a_checkpoint_of_hudi_rows_have_greater_values_and_from_then_on_late_ones_are_found(
    tmp_path: Path,
) -> None:
    sql(tmp_path, "CREATE TABLE s (id INTEGER, n INTEGER)", "INSERT INTO s VALUES (1, 5), (2, 6), (3, 7)")
    settings = config(tmp_path, checkpoint="5", **{"hoodie.pyhudi.streamer.jdbc.lookback": 10})

    assert run(settings).rows == 2
    sql(tmp_path, "INSERT INTO s VALUES (4, 7), (5, 6), (6, 5)")
    assert run(settings).rows == 2
    assert ids(tmp_path) == [2, 3, 4, 5]


def test_texts_are_an_incrementing_column_in_the_order_of_the_database(tmp_path: Path) -> None:
    sql(tmp_path, "CREATE TABLE s (id INTEGER, n VARCHAR(9) COLLATE NOCASE)", "INSERT INTO s VALUES (1, 'a'), (2, 'B')")
    assert run(config(tmp_path)).checkpoint == "B"
    sql(tmp_path, "INSERT INTO s VALUES (3, 'b'), (4, 'C'), (5, 'c')")

    assert run(config(tmp_path, **{"source-limit": 1})).rows == 3
    assert ids(tmp_path) == [1, 2, 3, 4, 5]


def test_rows_without_a_value_in_the_incrementing_column_come_with_the_first_ones(tmp_path: Path) -> None:
    sql(tmp_path, "CREATE TABLE s (id INTEGER, n INTEGER)", "INSERT INTO s VALUES (1, NULL)")
    assert run(config(tmp_path)).rows == 0
    sql(tmp_path, "INSERT INTO s VALUES (2, 1)")

    assert run(config(tmp_path)).rows == 2
    assert run(config(tmp_path)).rows == 0


def test_columns_have_the_types_that_the_database_declares_also_when_all_is_null(tmp_path: Path) -> None:
    declared = "id INTEGER, n BIGINT, price DECIMAL(10,2), at TIMESTAMP, day DATE, ok BOOLEAN, f DOUBLE, raw BLOB"
    sql(tmp_path, f"CREATE TABLE s ({declared}, note TEXT)", "INSERT INTO s (id, n) VALUES (1, 1)")
    run(config(tmp_path))
    values = "2, 2, 12.5, '2026-08-10 12:00:00.25', '2026-08-10', 1, 0.5, x'00ff', NULL"
    sql(tmp_path, f"INSERT INTO s VALUES ({values})")
    run(config(tmp_path))

    rows = HudiTable.open(tmp_path / "t").scan(meta_columns=False).to_arrow().sort_by("id")
    types = [pa.int64(), pa.int64(), pa.decimal128(10, 2), pa.timestamp("us"), pa.date32(), pa.bool_(), pa.float64()]
    assert [field.type for field in rows.schema] == [*types, pa.binary(), pa.string()]
    at = datetime.datetime(2026, 8, 10, 12, 0, 0, 250_000)
    expected = [2, 2, Decimal("12.50"), at, at.date(), True, 0.5, b"\0\xff", None]
    assert list(rows.to_pylist()[1].values()) == expected


def test_without_a_pull_each_run_reads_the_whole_table_once_and_notes_no_checkpoint(tmp_path: Path) -> None:
    sql(tmp_path, "CREATE TABLE s (id INTEGER, n INTEGER)", "INSERT INTO s VALUES (1, 1), (2, 1)")
    settings = config(tmp_path, None, op="UPSERT")

    assert (run(settings).rows, run(settings).checkpoint) == (2, None)
    assert ids(tmp_path) == [1, 2]
    with pytest.raises(ConfigError, match=r"source-limit would leave rows out.*incr\.pull=true"):
        Streamer({**settings, "source-limit": 5})
    with pytest.raises(ConfigError, match=r"ignore-checkpoint: JdbcSource reads all rows"):
        Streamer({**settings, "ignore-checkpoint": "x"})


def test_a_checkpoint_of_another_column_is_refused_or_all_is_read_again(tmp_path: Path) -> None:
    sql(tmp_path, "CREATE TABLE s (id INTEGER, n INTEGER)", "INSERT INTO s VALUES (1, 1)")
    settings = config(tmp_path, checkpoint="2026-08-10", op="UPSERT")
    with pytest.raises(ConfigError, match=r"checkpoint '2026-08-10' is no value of the column 'n'.* int64"):
        run(settings)

    told: list[str] = []
    streamer = Streamer({**settings, f"{JDBC}incr.fallback.to.full.fetch": True})
    assert streamer.run(told=told.append).rows == 1
    assert "started over with the first row" in told[0]


def test_too_many_rows_of_one_value_are_said_to_hide_later_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyhudi.streamer.sources.jdbc.source._NOTED_MAX", 2)
    sql(tmp_path, "CREATE TABLE s (id INTEGER, n INTEGER)", "INSERT INTO s VALUES (1, 1), (2, 1), (3, 1)")
    told: list[str] = []

    assert Streamer(config(tmp_path)).run(told=told.append).rows == 3
    assert "more than 2 rows have the newest values of 'n'" in told[0]
    assert run(config(tmp_path)).rows == 0


def test_a_check_shows_the_first_rows_and_writes_nothing(tmp_path: Path) -> None:
    sql(tmp_path, "CREATE TABLE s (id INTEGER, n INTEGER)", "INSERT INTO s VALUES (1, 1), (2, 2)")

    assert Streamer(config(tmp_path)).check().waiting == 2
    assert Streamer(config(tmp_path, None)).check().waiting == 2
    assert not (tmp_path / "t").exists()


def test_equal_rows_that_are_committed_late_come_each(tmp_path: Path) -> None:
    sql(tmp_path, "CREATE TABLE s (id INTEGER, n INTEGER)", "INSERT INTO s VALUES (1, 5)")
    keyless = {key: value for key, value in config(tmp_path).items() if key != "record_key"}
    assert run(keyless).rows == 1
    sql(tmp_path, "INSERT INTO s VALUES (1, 5), (1, 5)")

    assert (run(keyless).rows, run(keyless).rows) == (2, 0)
    assert ids(tmp_path) == [1, 1, 1]


WRONG = [
    ({f"{JDBC}url": None}, ConfigError, r"jdbc\.url is missing"),
    ({f"{JDBC}table.name": None}, ConfigError, r"table\.name is missing"),
    ({f"{JDBC}table.incr.column.name": None}, ConfigError, r"table\.incr\.column\.name is missing"),
    ({f"{JDBC}table.incr.column.name": "m"}, ConfigError, r"column\.name=m: the table s has the columns id, n, ok"),
    ({f"{JDBC}table.incr.column.name": "ok"}, ConfigError, r"column\.name=ok: its type BOOLEAN\(\) is none that grows"),
    ({f"{JDBC}table.name": "gone"}, ConfigError, r"SQLite .*s\.db: there is no table gone"),
    ({f"{JDBC}table.name": "(select 1) x"}, ConfigError, r"expected the name of a table or view\. Make a view"),
    ({f"{JDBC}url": "jdbc:oracle:thin:@h"}, ConfigError, r"postgresql, mysql, mariadb, sqlite; found 'oracle'"),
    ({f"{JDBC}url": "jdbc:sqlite:/no/such.db"}, ConfigError, r"there is no SQLite file '/no/such\.db'"),
    ({f"{JDBC}extra.options.numPartitions": 4}, ConfigError, r"numPartitions: there is no such key"),
]


@pytest.mark.parametrize(("more", "kind", "words"), WRONG, ids=lambda one: str(one)[:40])
def test_a_wrong_setting_is_refused_by_name(
    more: dict[str, Any], kind: type[Exception], words: str, tmp_path: Path
) -> None:
    sql(tmp_path, "CREATE TABLE s (id INTEGER, n INTEGER, ok BOOLEAN)")
    settings = {key: value for key, value in {**config(tmp_path), **more}.items() if value is not None}
    with pytest.raises(kind, match=words):
        Streamer(settings).run()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("jdbc:postgresql://h/db?loglevel=2&password=hush", r"parameter 'loglevel' is of Java's driver.*sslmode"),
        ("jdbc:postgresql://a,b/db?password=hush", r"expected jdbc:postgresql://host:port/database, with one host"),
        ("jdbc:postgresql://me:hush@h:port/db", r"one host and a port as a number"),
    ],
)
def test_a_url_that_is_not_understood_is_refused_without_its_password(url: str, words: str, tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(ConfigError, match=words) as caught:
        Streamer(config(tmp_path, **{f"{JDBC}url": url}))
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("driver", ["psycopg", "pymysql"])
def test_a_database_that_is_away_may_come_back_and_no_message_has_the_password(driver: str, tmp_path: Path) -> None:
    pytest.importorskip(driver)
    kind = {"psycopg": "postgresql", "pymysql": "mysql"}[driver]
    (tmp_path / "word").write_text("hush\n")
    url = {
        f"{JDBC}url": f"jdbc:{kind}://127.0.0.1:1/shop",
        f"{JDBC}user": "me",
        f"{JDBC}password.file": f"{tmp_path}/word",
    }
    settings = config(tmp_path, **url)
    with pytest.raises(
        StorageError, match=r"SQL shop at 127\.0\.0\.1:1 can't be read: .*Nothing was written"
    ) as caught:
        Streamer(settings).run()
    given = load_settings({**settings, f"{JDBC}password": "hush"})
    assert "hush" not in f"{caught.value!r} {caught.value.__cause__} {given!r} {open_database(given)!r}"


def test_a_driver_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(MissingLibrary, match=r"psycopg is not installed: pip install \"pyhudi\[jdbc\]\""):
        Streamer(config(tmp_path, **{f"{JDBC}url": "jdbc:postgresql://h/db"}))


def test_a_value_that_its_column_does_not_declare_is_an_error_that_names_it(tmp_path: Path) -> None:
    sql(tmp_path, "CREATE TABLE s (id INTEGER, n INTEGER)", "INSERT INTO s VALUES ('one', 1)")
    with pytest.raises(SchemaMismatch, match=r"column 'id' is declared as int64, .*'one'"):
        run(config(tmp_path))
