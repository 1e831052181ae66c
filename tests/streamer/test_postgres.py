"""JdbcSource at a real PostgreSQL: types, zones, rows that are committed late, and errors of the server."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Streamer
from pyhudi.errors import ConfigError
from tests.support.servers.shared import shared_service

pytestmark = pytest.mark.servers
psycopg = pytest.importorskip("psycopg")
JDBC = "hoodie.streamer.jdbc."


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with shared_service("postgres") as address:
        yield address["dsn"]


def sql(dsn: str, text: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(text)


def config(dsn: str, tmp_path: Path, table: str, column: str, **more: object) -> dict[str, Any]:
    pull = {f"{JDBC}incr.pull": True, f"{JDBC}table.incr.column.name": column, f"{JDBC}table.name": table}
    url = {f"{JDBC}url": f"jdbc:{dsn.replace('shop@', '')}", f"{JDBC}user": "shop", f"{JDBC}password": "hush"}
    places = {"target-base-path": str(tmp_path / table), "record_key": "id", "op": "INSERT"}
    return {**places, "source-class": "JdbcSource", **pull, **url, **more}


def run(settings: dict[str, Any]) -> Any:
    streamer = Streamer(settings)
    try:
        return streamer.run(until_empty=True)
    finally:
        streamer.close()


def test_columns_of_postgresql_come_in_their_types(dsn: str, tmp_path: Path) -> None:
    columns = (
        "id int, big bigint, price numeric(12,3), free numeric, at timestamp, seen timestamptz, day date, ok boolean, "
        "f4 real, f8 double precision, note text, code char(3), key uuid, doc jsonb, raw bytea, tags text[], hour time"
    )
    sql(dsn, f"create table kinds ({columns})")
    sql(dsn, "insert into kinds (id, seen) values (1, '2026-08-10 12:00:00.25+02')")
    settings = config(dsn, tmp_path, "kinds", "seen")

    assert run(settings).checkpoint == "2026-08-10 10:00:00.25+00:00"
    sql(
        dsn,
        "insert into kinds values (2, 9000000000, 1.5, 2.25, '2026-08-10 12:00', '2026-08-10 12:00+00', '2026-08-10', "
        "true, 0.5, 0.25, 'ä', 'abc', '12345678-1234-5678-1234-567812345678', '{\"a\": [1, null]}', '\\x00ff', "
        "array['x', null], '12:30')",
    )
    assert (run(settings).rows, run(settings).rows) == (1, 0)

    rows = HudiTable.open(tmp_path / "kinds").scan(meta_columns=False).to_arrow().sort_by("id")
    types = {field.name: field.type for field in rows.schema}
    assert types["at"] == pa.timestamp("us")
    assert types["seen"] == pa.timestamp("us", "UTC")
    assert (types["price"], types["free"]) == (pa.decimal128(12, 3), pa.decimal128(38, 18))
    assert (types["id"], types["big"], types["f4"], types["f8"]) == (
        pa.int32(), pa.int64(), pa.float32(), pa.float64()
    )  # fmt: skip
    first, second = rows.to_pylist()
    assert {name for name, value in first.items() if value is not None} == {"id", "seen"}
    assert second["price"] == Decimal("1.500")
    assert second["at"] == datetime.datetime(2026, 8, 10, 12)
    assert second["seen"] == datetime.datetime(2026, 8, 10, 12, tzinfo=datetime.timezone.utc)
    assert (second["code"], second["key"]) == ("abc", "12345678-1234-5678-1234-567812345678")
    assert (second["doc"], second["raw"], second["tags"]) == ('{"a": [1, null]}', b"\0\xff", ["x", None])
    assert second["hour"] == datetime.time(12, 30)


def test_a_transaction_that_commits_after_a_later_one_is_found_by_a_lookback(dsn: str, tmp_path: Path) -> None:
    sql(dsn, "create table late (id bigserial primary key, v text)")
    settings = config(dsn, tmp_path, "late", "id", **{"hoodie.pyhudi.streamer.jdbc.lookback": 100})
    with psycopg.connect(dsn) as slow:
        slow.execute("insert into late (v) values ('slow')")
        sql(dsn, "insert into late (v) values ('fast')")
        assert (run(settings).rows, run(settings).checkpoint) == (1, None)

    assert (run(settings).rows, run(settings).rows) == (1, 0)
    found = HudiTable.open(tmp_path / "late").scan(meta_columns=False).to_arrow().to_pylist()
    assert sorted(row["v"] for row in found) == ["fast", "slow"]


def test_batches_of_texts_in_the_order_of_the_database_lose_nothing(dsn: str, tmp_path: Path) -> None:
    sql(dsn, 'create schema "In"; create table "In"."Keys" (id int, k text collate "und-x-icu")')
    sql(dsn, """insert into "In"."Keys" select i, chr(65 + i % 7) || chr(97 + i % 5) from generate_series(1, 500) i""")
    settings = config(dsn, tmp_path, "In.Keys", "k", **{"source-limit": 37})

    assert run(settings).rows == 500
    found = HudiTable.open(tmp_path / "In.Keys").scan(meta_columns=False).to_arrow()
    assert sorted(found.column("id").to_pylist()) == list(range(1, 501))


def test_errors_of_the_server_say_where_and_never_the_password(dsn: str, tmp_path: Path) -> None:
    sql(dsn, "create table spans (id int, t interval); create role reader login; create table closed (id int)")
    reader = {f"{JDBC}user": "reader"}
    for table, more, words in [
        ("spans", {}, r"column 't' has the type INTERVAL.*Make a view"),
        ("closed", reader, r"PostgreSQL shop at 127\.0\.0\.1:\d+: permission denied for table closed"),
    ]:
        with pytest.raises(ConfigError, match=words) as caught:
            run(config(dsn, tmp_path, table, "id", **more))
        assert "hush" not in f"{caught.value} {caught.value.__cause__}"
