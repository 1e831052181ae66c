"""Random changes of a live database arrive through Debezium: the tables equal `SELECT *` at the end.

PYHUDI_CHANGES_SECONDS says how long the database changes (20), PYHUDI_CHANGES_SEED how. The statements are in
`changes.sql` of the folder, which stays after a failure.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Streamer
from tests.support.servers.shared_services import service

pytest.importorskip("confluent_kafka")
pytestmark = pytest.mark.servers

SECONDS = float(os.environ.get("PYHUDI_CHANGES_SECONDS", "20"))
SEED = int(os.environ.get("PYHUDI_CHANGES_SEED", str(random.SystemRandom().randrange(10**6))))
KINDS = [(kind, version) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ") for version in (6, 9)]
IDS = 150
_EQUAL = "equal"  # a file: the tables are
LAST = -1  # the key of the row that comes last


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that the database's user can enter; it stays where the tables differ."""
    path = Path(tempfile.mkdtemp(prefix="pyhudi-changes-"))
    path.chmod(0o755)
    yield path
    if (path / _EQUAL).exists():
        shutil.rmtree(path)


class Changes:
    """Random statements, a transaction after the other, of a table `items` with the key `id`."""

    def __init__(self, seed: int, dialect: Dialect) -> None:
        self._random = random.Random(seed)
        self._dialect = dialect
        self._added = 0

    def first_rows(self) -> str:
        """Rows that are there before Debezium is."""
        return "".join(self._dialect.upsert(key, self._values()) for key in range(0, IDS, 3))

    def transaction(self) -> str:
        """The text of one; now and then it is undone."""
        if self._added < 2 and self._random.random() < 0.005:
            self._added += 1
            return f"alter table items add column more{self._added} {self._dialect.text} default 'm{self._added}';\n"
        body = "".join(self._statement() for _ in range(self._random.choice((1, 1, 2, 3, 8))))
        return f"begin;\n{body}{'rollback' if self._random.random() < 0.05 else 'commit'};\n"

    def _statement(self) -> str:
        pick, key, other = self._random.random(), self._random.randrange(IDS), self._random.randrange(IDS)
        if pick < 0.25:
            return self._dialect.upsert(key, self._values())
        if pick < 0.6:
            return f"update items set {self._some()} where id = {key};\n"
        if pick < 0.7:
            return f"update items set {self._some()} where id between {key} and {key + 5};\n"
        if pick < 0.8:
            return self._dialect.moved(key, other)
        if pick < 0.85:
            return f"delete from items where id = {key};\n{self._dialect.upsert(key, self._values())}"
        if pick < 0.9:
            return f"{self._dialect.moved(key, other)}update items set {self._some()} where id = {other};\n"
        return f"delete from items where id = {key};\n"

    def _some(self) -> str:
        values = self._values()
        names = self._random.sample(sorted(values), self._random.choice((1, 1, 2, 4)))
        return ", ".join(f"{name} = {values[name]}" for name in names)

    def _values(self) -> dict[str, str]:
        number = self._random.randrange(10**6)
        values = {
            "v": str(number),
            "big": self._dialect.long_text(number) if self._random.random() < 0.7 else f"'short {number}'",
            "note": f"'n{number}'",
            "amount": f"{self._random.choice(('', '-'))}{number}.{number % 1000:03}",
            "day": f"'20{number % 60 + 10}-0{number % 9 + 1}-1{number % 10}'",
            "at": f"'20{number % 60 + 10}-03-04 05:06:{number % 60:02}.{number:06}'",
            "zoned": f"'20{number % 60 + 10}-11-04 05:06:{number % 60:02}.{number:06}+00:00'",
            "flag": self._random.choice(("true", "false")),
            "ratio": str(number / 8),
            **self._dialect.more(number),
        }
        return {name: "null" if self._random.random() < 0.1 else text for name, text in values.items()}


class Dialect:
    """PostgreSQL's words."""

    text = "text"
    create = """create table items (id bigint primary key, v int, big text, note varchar(40), amount numeric(12,3),
        day date, at timestamp, zoned timestamptz, flag boolean, ratio double precision, raw bytea, tags text[]);
        alter table items alter column big set storage external, alter column raw set storage external,
        alter column tags set storage external;\n"""
    select = """select json_build_array(id, v, big, note, amount::text, day::text,
        to_char(at, 'YYYY-MM-DD HH24:MI:SS.US'), to_char(zoned at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'), flag,
        ratio, encode(raw, 'hex'), '[' || array_to_string(tags, ', ', 'null') || ']')
        from items"""
    columns: tuple[str, ...] = (
        "id",
        "v",
        "big",
        "note",
        "amount",
        "day",
        "at",
        "zoned",
        "flag",
        "ratio",
        "raw",
        "tags",
    )

    def long_text(self, number: int) -> str:
        """So long that it is stored beside the row."""
        return f"(select string_agg(md5(i::text), '') from generate_series({number}, {number + 90}) i)"

    def more(self, number: int) -> dict[str, str]:
        """Columns that PostgreSQL alone has."""
        return {
            "raw": f"decode({self.long_text(number + 7)}, 'hex') || decode({self.long_text(number)}, 'hex')",
            "tags": f"(select array_agg(md5(i::text)) from generate_series({number}, {number + 90}) i)",
        }

    def upsert(self, key: int, values: dict[str, str]) -> str:
        """A row, new or not."""
        sets = ", ".join(f"{name} = excluded.{name}" for name in values)
        return (
            f"insert into items (id, {', '.join(values)}) values ({key}, {', '.join(values.values())}) "
            f"on conflict (id) do update set {sets};\n"
        )

    def moved(self, key: int, other: int) -> str:
        """Another key for a row, if it is free."""
        return (
            f"update items set id = {other} where id = {key} and not exists (select 1 from items where id = {other});\n"
        )


class MariaDialect(Dialect):
    """MariaDB's words."""

    text = "varchar(9)"
    create = """create table items (id bigint primary key, v int, big longtext, note varchar(40), amount decimal(12,3),
        day date, at datetime(6), zoned timestamp(6) null, flag tinyint, ratio double, raw longblob);\n"""
    select = """select json_array(id, v, big, note, cast(amount as char), cast(day as char),
        date_format(at, '%Y-%m-%d %H:%i:%s.%f'), date_format(zoned, '%Y-%m-%d %H:%i:%s.%f'), flag, ratio,
        lower(hex(raw))) from items"""
    columns = ("id", "v", "big", "note", "amount", "day", "at", "zoned", "flag", "ratio", "raw")

    def long_text(self, number: int) -> str:
        """A long one."""
        return f"repeat(md5({number}), 90)"

    def more(self, number: int) -> dict[str, str]:
        """Columns that are written in another way."""
        zoned = f"'20{number % 60 + 10}-11-04 05:06:{number % 60:02}.{number:06}'" if number % 60 < 27 else "null"
        return {"raw": f"unhex(md5({number}))", "zoned": zoned}

    def upsert(self, key: int, values: dict[str, str]) -> str:
        """A row, new or not."""
        sets = ", ".join(f"{name} = values({name})" for name in values)
        return (
            f"insert into items (id, {', '.join(values)}) values ({key}, {', '.join(values.values())}) "
            f"on duplicate key update {sets};\n"
        )

    def moved(self, key: int, other: int) -> str:
        """Another key for a row, if it is free."""
        return f"update ignore items set id = {other} where id = {key};\n"


class Client:
    """The database's client program, which gets a transaction after the other until `end`."""

    def __init__(self, command: list[str], changes: Changes, seconds: float, log: Path) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
        self._changes, self._seconds, self._log = changes, seconds, log
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @property
    def is_changing(self) -> bool:
        """Does it still send changes?"""
        return self._thread.is_alive()

    def end(self, last: str) -> None:
        """Send the last statement, and wait until all are done."""
        self._ends.set()
        self._thread.join()
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(last)
            self._process.stdin.close()
        assert self._process.wait(60) == 0

    def _run(self) -> None:
        assert self._process.stdin is not None
        end_s = time.monotonic() + self._seconds
        with self._log.open("w") as log, suppress(BrokenPipeError):
            while time.monotonic() < end_s and not self._ends.wait(0.02):
                text = self._changes.transaction()
                log.write(text)
                self._process.stdin.write(text)
                self._process.stdin.flush()


def as_texts(table: pa.Table) -> dict[int, list[Any]]:
    """The rows as the database's client shows them, by their key."""

    def shown(value: object) -> object:
        if isinstance(value, datetime):
            return f"{value:%Y-%m-%d %H:%M:%S}.{value.microsecond:06}"
        if isinstance(value, bytes):
            return value.hex()
        return value if value is None or isinstance(value, bool | int | float | str) else str(value)

    return {row["id"]: [shown(value) for value in row.values()] for row in table.to_pylist()}


def test_random_changes_of_postgresql_make_equal_tables_of_both_kinds_and_of_versions_6_and_9(folder: Path) -> None:
    with service("postgres", folder / "p") as dsn:
        psql = ["psql", "-q", "-tA", "-v", "ON_ERROR_STOP=1", dsn]
        play(folder, dsn, psql, Dialect(), "PostgresDebeziumSource", "shop.public.items")


def test_random_changes_of_mariadb_make_equal_tables_of_both_kinds_and_of_versions_6_and_9(folder: Path) -> None:
    with service("mariadb", folder / "m") as dsn:
        port = dsn.rpartition(":")[2].partition("/")[0]
        client = ["mariadb", "--no-defaults", "-h127.0.0.1", "-P", port, "-ushop", "-pshop", "--batch", "--raw"]
        client += ["--skip-column-names", "--init-command=set time_zone = '+00:00'", "shop"]
        play(folder, dsn, client, MariaDialect(), "MysqlDebeziumSource", "shop.shop.items")


def play(folder: Path, dsn: str, client: list[str], dialect: Dialect, source: str, name: str) -> None:
    """Change the database at random, and compare the tables that follow it."""
    with service("kafka", folder / "k") as bootstrap, service("schema-registry", folder / "r") as registry:
        changes = Changes(SEED, dialect)
        subprocess.run(client, input=dialect.create + changes.first_rows(), text=True, check=True)
        pipelines = [
            {
                **topic(bootstrap, registry),
                "source-class": source,
                "hoodie.streamer.source.kafka.topic": name,
                "target-base-path": f"{folder}/{kind}_{version}",
                "table-type": kind,
                "hoodie.write.table.version": version,
            }
            for kind, version in KINDS
        ]
        with service("debezium", folder / "d", bootstrap, dsn, registry):
            commits = in_turns(pipelines, Client(client, changes, SECONDS, folder / "changes.sql"))
    selected = subprocess.run(client, input=f"{dialect.select};", text=True, check=True, capture_output=True).stdout
    rows = {row[0]: row for row in map(json.loads, selected.splitlines())}
    for pipeline in pipelines:
        assert differences(pipeline["target-base-path"], dialect.columns, rows) == {}, SEED
    (folder / _EQUAL).touch()
    print(f"seed {SEED}: {len(rows)} rows, {commits} commits, statements of {SECONDS} s")


def topic(bootstrap: str, registry: str) -> dict[str, Any]:
    """What all pipelines have."""
    return {
        "bootstrap.servers": bootstrap,
        "schema.registry.url": registry,
        "auto.offset.reset": "earliest",
        "retry-on-source-failures": True,
        "retry-interval-seconds": 1,
        "record_key": "id",
        "hoodie.compact.inline.max.delta.commits": 3,
    }


def in_turns(pipelines: Sequence[dict[str, Any]], client: Client) -> int:
    """Run one or the other, each time with another limit, while the database changes; then each to the end. How many
    commits that took.
    """
    choices = random.Random(SEED)
    commits = 0
    try:
        while client.is_changing:
            limit = {"hoodie.streamer.kafka.source.maxEvents": choices.choice((5, 40, 400, 5000))}
            with closing(Streamer({**choices.choice(pipelines), **limit})) as streamer:
                commits += streamer.run().commits
    finally:
        client.end(f"insert into items (id, v) values ({LAST}, 0);\n")
    for pipeline in pipelines:
        end_s = time.monotonic() + 300
        with closing(Streamer(pipeline)) as streamer:
            while not is_there(pipeline["target-base-path"]):
                assert time.monotonic() < end_s, "the last change does not come"
                commits += streamer.run(until_empty=True).commits
    return commits


def is_there(path: str) -> bool:
    """Has the table the last row?"""
    return Path(path, ".hoodie").exists() and HudiTable.open(path).scan(["id"], where=f"id = {LAST}").count() == 1


def differences(path: str, columns: Sequence[str], rows: Mapping[int, list[Any]]) -> dict[int, Any]:
    """Key → the row here and the row of the database, where they differ: a few of them."""
    found = as_texts(HudiTable.open(path).scan(list(columns)).to_arrow())
    keys = sorted(key for key in found.keys() | rows if found.get(key) != rows.get(key))
    return {
        key: [(a, b) for a, b in zip(found.get(key) or [], rows.get(key) or [], strict=False) if a != b]
        or (found.get(key), rows.get(key))
        for key in keys[:5]
    }
