"""Change events of Debezium: the table holds what the database's does, whatever the format and the table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable, Streamer
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.streamer.sources.debezium.unavailable import UNAVAILABLE
from tests.support.change_events import (
    Message,
    MockTopics,
    decimal_bytes,
    postgres_event,
    recorded_avro,
    recorded_json,
    schema_registry,
)
from tests.support.source import ROOT

pytest.importorskip("confluent_kafka")

DESERIALIZER = "hoodie.streamer.source.kafka.value.deserializer.class"
SERIALIZATION = "org.apache.kafka.common.serialization"
JSON = {DESERIALIZER: f"{SERIALIZATION}.StringDeserializer"}
KINDS = [(kind, version) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ") for version in (6, 9)]
MERGING = [{}, {"merge-mode": "COMMIT_TIME_ORDERING"}, {"merge-mode": "EVENT_TIME_ORDERING"}]


@pytest.fixture(scope="module")
def topics() -> MockTopics:
    return MockTopics()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return "".join(c if c.isalnum() else "-" for c in request.node.name)[-100:]


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    with schema_registry(recorded_avro()[1]) as url:
        yield url


def config(
    tmp_path: Path, topics: MockTopics, topic: str, source: Any = "PostgresDebeziumSource", **more: object
) -> dict[str, Any]:
    return {
        "target-base-path": str(tmp_path / "t"),
        "record_key": "id",
        "source-class": f"org.apache.hudi.utilities.sources.debezium.{source}",
        "hoodie.streamer.source.kafka.topic": topic,
        "bootstrap.servers": topics.address,
        "auto.offset.reset": "earliest",
        **more,
    }


def rows(tmp_path: Path, *names: str) -> list[tuple[Any, ...]]:
    found = HudiTable.open(tmp_path / "t").scan(list(names)).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


# ---- recorded events


@pytest.mark.parametrize(("kind", "version"), KINDS)
@pytest.mark.parametrize("events_a_batch", [1, 100])
def test_recorded_events_of_postgresql_in_avro_make_its_table(
    tmp_path: Path, topics: MockTopics, topic: str, registry: str, kind: str, version: int, events_a_batch: int
) -> None:
    topics.send(topic, recorded_avro()[0])
    more = {"table-type": kind, "hoodie.write.table.version": version, "schema.registry.url": registry}
    limit = {"hoodie.streamer.kafka.source.maxEvents": events_a_batch}

    done = Streamer(config(tmp_path, topics, topic, **more, **limit)).run(until_empty=True)

    assert (done.rows, done.rejected) == (8, 0)
    assert rows(tmp_path, "id", "ts", "big", "note") == [
        ("c", 3, "short", None),
        ("d", 4, None, "x"),
        ("early", 0, None, None),
    ]


def test_the_columns_of_an_event_have_hudis_names_and_the_types_of_the_database(
    tmp_path: Path, topics: MockTopics, topic: str, registry: str
) -> None:
    topics.send(topic, recorded_avro()[0][:2])
    Streamer(config(tmp_path, topics, topic, **{"schema.registry.url": registry})).run()

    row = HudiTable.open(tmp_path / "t").scan(meta_columns=False, where="id = 'a'").to_arrow().to_pylist()[0]
    big = row.pop("big")
    assert list(row.items()) == [
        ("_change_operation_type", "c"),
        ("_upstream_event_processed_ts_ms", row["_upstream_event_processed_ts_ms"]),
        ("db_shard_source_partition", "shop"),
        ("db_schema_source_partition", "public"),
        ("_event_origin_ts_ms", row["_event_origin_ts_ms"]),
        ("_event_tx_id", 728),
        ("_event_lsn", 26369808),
        ("_event_xmin", None),
        ("id", "a"),
        ("ts", 1),
        ("amount", Decimal("1.25")),
        ("at", datetime(2026, 1, 2, 3, 4, 5, 678901, timezone.utc)),
        ("tags", "[x, y]"),
        ("day", date(2026, 1, 2)),
        ("extra", '{"k": 1}'),
    ]
    assert len(big) == 3200


def test_recorded_events_of_mysql_make_its_table(tmp_path: Path, topics: MockTopics, topic: str) -> None:
    topics.send(topic, recorded_json("mysql")[:3])
    settings = config(tmp_path, topics, topic, "MysqlDebeziumSource", **JSON)

    assert Streamer(settings).run().rows == 3
    assert rows(tmp_path, "id", "ts", "_event_seq", "_event_bin_file", "_event_pos", "_event_row") == [
        ("a", 2, "000001.2051", "binlog.000001", 2051, 0),
        ("early", 0, "000001.1596", "binlog.000001", 1596, 0),
    ]
    topics.send(topic, recorded_json("mysql")[3:])
    assert Streamer(settings).run().rows == 1
    assert rows(tmp_path, "id") == [("early",)]


def test_plain_json_says_no_types_so_decimals_of_the_table_are_refused_by_name(
    tmp_path: Path, topics: MockTopics, topic: str, registry: str
) -> None:
    topics.send(topic, recorded_avro()[0][:2])
    settings = config(tmp_path, topics, topic, **{"schema.registry.url": registry})
    Streamer(settings).run()
    topics.send(topic, recorded_json("postgres")[3:4])

    with pytest.raises(SchemaMismatch, match=r"amount: plain JSON does not say .*schemas\.enable=true"):
        Streamer({**settings, **JSON}).run()


def test_a_schema_of_the_registry_says_the_types_of_plain_json(tmp_path: Path, topics: MockTopics, topic: str) -> None:
    topics.send(topic, recorded_json("postgres"))
    with schema_registry({"latest": recorded_avro()[1]["7"]}) as url:
        subject = {"hoodie.streamer.schemaprovider.registry.url": f"{url}/subjects/x-value/versions/latest"}
        provider = {"schemaprovider-class": "SchemaRegistryProvider"}
        limit = {"hoodie.streamer.kafka.source.maxEvents": 4}
        settings = config(tmp_path, topics, topic, **JSON, **subject, **provider, **limit)
        Streamer(settings).run()

        assert rows(tmp_path, "id", "amount", "day") == [
            ("a", Decimal("2.50"), date(2026, 1, 2)),
            ("b", None, None),
            ("early", None, None),
        ]
        assert Streamer(settings).run(until_empty=True).rows == 4
    assert [row[0] for row in rows(tmp_path, "id")] == ["c", "d", "early"]


# ---- types

MICROS = 1767323045123456


def test_json_with_schemas_says_decimals_bytes_and_times(tmp_path: Path, topics: MockTopics, topic: str) -> None:
    row = {
        "id": "a", "v": 1, "tags": ["x", None], "amount": decimal_bytes(-125), "raw": "AP8=", "day": 20455,
        "at": MICROS, "short_at": MICROS // 1000, "zoned": "2026-01-02T03:04:05.678901Z",
    }  # fmt: skip
    topics.send(topic, [postgres_event("c", 1, row), postgres_event("c", 2, {**dict.fromkeys(row), "id": "b"})])
    Streamer(config(tmp_path, topics, topic, **JSON)).run()

    typed = (
        "a", 1, "[x, null]", Decimal("-1.25"), b"\0\xff", date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5, 123456),
        datetime(2026, 1, 2, 3, 4, 5, 123000), datetime(2026, 1, 2, 3, 4, 5, 678901, timezone.utc),
    )  # fmt: skip
    assert rows(tmp_path, *row) == [typed, ("b", *[None] * 8)]


def test_times_stay_numbers_by_an_option_and_where_the_table_has_numbers(
    tmp_path: Path, topics: MockTopics, topic: str
) -> None:
    row = {"id": "a", "day": 20455, "at": MICROS}
    topics.send(topic, [postgres_event("c", 1, row)])
    settings = config(tmp_path, topics, topic, **JSON)
    Streamer({**settings, "hoodie.pyhudi.streamer.source.debezium.typed.times": False}).run()
    topics.send(topic, [postgres_event("c", 2, {**row, "id": "b"})])
    Streamer(settings).run()

    assert rows(tmp_path, "id", "day", "at") == [("a", 20455, MICROS), ("b", 20455, MICROS)]


def test_both_schemas_of_an_altered_table_are_in_one_batch(tmp_path: Path, topics: MockTopics, topic: str) -> None:
    topics.send(
        topic,
        [
            postgres_event("c", 1, {"id": "a", "short_at": 1000}),
            postgres_event("c", 2, {"id": "b", "short_at": 2000, "big": "x"}),
            postgres_event("u", 3, {"id": "a", "short_at": 3000}),
        ],
    )
    Streamer(config(tmp_path, topics, topic, **JSON)).run()

    seconds = [datetime(1970, 1, 1, 0, 0, second) for second in (3, 2)]
    assert rows(tmp_path, "id", "short_at", "big") == [("a", seconds[0], None), ("b", seconds[1], "x")]


# ---- what is no change


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"op": "t", "before": None, "after": None}, r"op=t: a truncate.*skipped\.operations=t"),
        ({"op": "m", "before": None, "after": None}, r"op=m: a message of PostgreSQL"),
        ({"op": "c", "after": {"id": "x"}, "source": {"name": "s"}}, r"lacks lsn in its source"),
        ({"id": 1, "v": 2}, r"op=None: no change of a row"),
        ([1], r"no JSON of an event"),
        ({"op": "c", "after": {"id": "x", "_event_lsn": 4}, "source": {"lsn": 1}}, r"'_event_lsn' of the database"),
        ({"op": "u", "after": {"v": 4}, "source": {"lsn": 1}}, r"without a value in its key id"),
    ],
)
def test_what_is_no_change_of_a_row_is_refused_by_its_place_and_goes_into_quarantine(
    tmp_path: Path, topics: MockTopics, topic: str, value: object, words: str
) -> None:
    if isinstance(value, dict) and value.get("op") in ("t", "m"):
        value["source"] = {"lsn": 9}
    topics.send(topic, [postgres_event("c", 1, {"id": "a", "v": 1}, has_schema=False)])
    settings = config(tmp_path, topics, topic, **JSON)
    Streamer(settings).run()
    topics.send(topic, [Message(json.dumps(value).encode(), b"k")])
    topics.send(topic, [postgres_event("c", 10, {"id": "b", "v": 1}, has_schema=False)])

    with pytest.raises(SchemaMismatch, match=words):
        Streamer(settings).run()
    quarantine = {"hoodie.errortable.enable": True, "hoodie.errortable.base.path": str(tmp_path / "q")}
    share = {"hoodie.pyhudi.streamer.quarantine.max.share": 0.5}
    done = Streamer({**settings, **quarantine, **share}).run()
    assert (done.rows, done.rejected) == (1, 1)
    assert rows(tmp_path, "id") == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"op": "INSERT"}, r"op=insert: changes and deletes reach rows by an upsert"),
        ({"schemaprovider-class": "FilebasedSchemaProvider"}, r"have their schemas with them"),
        ({"partition_by": "v"}, r"partitions of v, which may change and is not in the key: .*GLOBAL_SIMPLE"),
        ({DESERIALIZER: "com.x.Own"}, r"expected one of .*StringDeserializer"),
        ({DESERIALIZER: f"{SERIALIZATION}.ByteArrayDeserializer"}, r"are Avro .* or JSON \(StringDeserializer\)"),
    ],
)
def test_a_pipeline_by_which_changes_would_not_reach_the_table_is_refused(
    tmp_path: Path, topics: MockTopics, more: Mapping[str, object], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        Streamer(config(tmp_path, topics, "x", **{**JSON, **more}))


# ---- deletes and order


@pytest.mark.parametrize(("kind", "version"), KINDS)
@pytest.mark.parametrize("merging", [{}, {"merge-mode": "COMMIT_TIME_ORDERING"}, {"merge-mode": "EVENT_TIME_ORDERING"}])
def test_deletes_and_updates_reach_every_table_in_the_databases_order(
    tmp_path: Path, topics: MockTopics, topic: str, kind: str, version: int, merging: Mapping[str, str]
) -> None:
    more = {"table-type": kind, "hoodie.write.table.version": version, **merging}
    settings = config(tmp_path, topics, topic, **JSON, **more)
    keys = ("kept", "gone", "back", "short")
    topics.send(topic, [postgres_event("r", 1, {"id": key, "v": 1}) for key in keys])
    Streamer(settings).run()
    topics.send(
        topic,
        [
            postgres_event("u", 2, {"id": "kept", "v": 2}),
            postgres_event("d", 3, {"id": "gone", "v": None}),
            Message(None, b'{"id": "gone"}'),
            postgres_event("d", 4, {"id": "back", "v": None}),
            postgres_event("c", 5, {"id": "back", "v": 5}),
            postgres_event("c", 6, {"id": "new", "v": 6}),
            postgres_event("d", 7, {"id": "short", "v": None}),
        ],
    )
    Streamer(settings).run()
    assert rows(tmp_path, "id", "v") == [("back", 5), ("kept", 2), ("new", 6)]
    topics.send(topic, [postgres_event("c", 8, {"id": "gone", "v": 8}), postgres_event("d", 9, {"id": "new"})])
    Streamer(settings).run()

    assert rows(tmp_path, "id", "v") == [("back", 5), ("gone", 8), ("kept", 2)]


@pytest.mark.parametrize(("kind", "version"), KINDS)
def test_a_row_changes_its_partition_and_is_deleted_by_its_key_alone(
    tmp_path: Path, topics: MockTopics, topic: str, kind: str, version: int
) -> None:
    more = {"table-type": kind, "hoodie.write.table.version": version, "merge-mode": "EVENT_TIME_ORDERING"}
    partitions = {"partition_by": "v", "hoodie.index.type": "GLOBAL_SIMPLE"}
    settings = config(tmp_path, topics, topic, **JSON, **more, **partitions)
    for batch in (
        [whole("c", 1, "a", 1, "x"), whole("c", 2, "b", 1, "y"), whole("c", 3, "c", 1, "z")],
        [deleted(4, "b"), lacking("u", 5, "c", 2)],
        [deleted(6, "a"), whole("c", 7, "a", 3, "again")],
    ):
        topics.send(topic, batch)
        Streamer(settings).run()

    assert rows(tmp_path, "id", "v", "big") == [("a", 3, "again"), ("c", 2, "z")]
    del settings["partition_by"], settings["hoodie.index.type"]
    with pytest.raises(ConfigError, match=r"/t: partitions of v, which may change"):
        Streamer(settings).run()


# ---- values that were not sent


def lacking(op: str, lsn: int, key: str, v: int, **more: Any) -> Message:
    return postgres_event(op, lsn, {"id": key, "v": v, "big": UNAVAILABLE, "tags": [UNAVAILABLE]}, tx=lsn, **more)


def whole(op: str, lsn: int, key: str, v: int, big: str | None) -> Message:
    return postgres_event(op, lsn, {"id": key, "v": v, "big": big, "tags": [big]}, tx=lsn)


def deleted(lsn: int, key: str, **more: Any) -> Message:
    return postgres_event("d", lsn, {"id": key, "v": None, "big": None, "tags": None}, tx=lsn, **more)


@pytest.mark.parametrize(("kind", "version"), [*KINDS, ("MERGE_ON_READ", 8), ("COPY_ON_WRITE", 8)])
@pytest.mark.parametrize("merging", MERGING)
def test_a_value_that_was_not_sent_stays_what_it_was_across_log_files_and_within_a_batch(
    tmp_path: Path, topics: MockTopics, topic: str, kind: str, version: int, merging: Mapping[str, str]
) -> None:
    more = {"table-type": kind, "hoodie.write.table.version": version, **merging}
    settings = config(tmp_path, topics, topic, **JSON, **more)
    batches = [
        [
            whole("c", 1, "a", 1, "one"),
            whole("c", 2, "b", 1, None),
            whole("c", 3, "c", 1, "x"),
            lacking("u", 4, "c", 2),
        ],
        [whole("u", 5, "a", 2, "two"), lacking("u", 6, "b", 2), lacking("u", 7, "c", 3)],
        [lacking("u", 8, "a", 3), lacking("u", 9, "a", 4), lacking("u", 10, "c", 4), whole("u", 11, "c", 5, "y")],
        [lacking("u", 12, "a", 5), lacking("u", 13, "c", 6)],
    ]
    for batch in batches:
        topics.send(topic, batch)
        Streamer(settings).run()

    assert rows(tmp_path, "id", "v", "big", "tags") == [
        ("a", 5, "two", "[two]"),
        ("b", 2, None, "[null]"),
        ("c", 6, "y", "[y]"),
    ]


def changed_key(lsn: int, old: str, new: str, v: int) -> list[Message]:
    """What an update of the key sends."""
    gone = deleted(lsn, old, new_key=new)
    return [gone, Message(None, gone.key, gone.headers), lacking("c", lsn, new, v, old_key=old)]


@pytest.mark.parametrize(("kind", "version"), KINDS)
@pytest.mark.parametrize("events_a_batch", [3, 100])
def test_a_changed_key_takes_the_values_that_were_not_sent_from_its_old_row(
    tmp_path: Path, topics: MockTopics, topic: str, kind: str, version: int, events_a_batch: int
) -> None:
    more = {"table-type": kind, "hoodie.write.table.version": version}
    limit = {"hoodie.streamer.kafka.source.maxEvents": events_a_batch}
    topics.send(topic, [whole("c", 1, "a", 1, "of a"), whole("c", 2, "b", 1, "of b"), whole("c", 3, "c", 1, "of c")])
    topics.send(topic, [lacking("u", 4, "a", 2), *changed_key(5, "a", "moved", 3)[:2]])
    topics.send(topic, [changed_key(5, "a", "moved", 3)[2], lacking("u", 6, "moved", 4), lacking("u", 7, "b", 2)])
    # The key of a row that went is taken by another row, which changes it once more.
    topics.send(topic, changed_key(8, "c", "a", 5))
    topics.send(topic, [*changed_key(9, "a", "last", 6), *changed_key(10, "b", "a", 7), lacking("u", 11, "a", 8)])

    Streamer(config(tmp_path, topics, topic, **JSON, **more, **limit)).run(until_empty=True)

    assert rows(tmp_path, "id", "v", "big") == [("a", 8, "of b"), ("last", 6, "of c"), ("moved", 4, "of a")]


def test_a_delete_of_a_changed_key_waits_for_its_row_unless_that_does_not_come(
    tmp_path: Path, topics: MockTopics, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics.send(topic, [whole("c", 1, "a", 1, "x"), *changed_key(2, "a", "b", 2)[:2]])
    settings = config(tmp_path, topics, topic, **JSON)

    assert Streamer(settings).run().checkpoint == f"{topic},0:1,1:0,2:0,3:0"
    assert Streamer(settings).run().rows == 0
    assert rows(tmp_path, "id", "big") == [("a", "x")]
    monkeypatch.setattr("pyhudi.streamer.sources.debezium.source._ROW_COMES_MS", -1)
    assert Streamer(settings).run().rows == 1
    assert rows(tmp_path, "id", "big") == []
    topics.send(topic, changed_key(2, "a", "b", 2)[2:])
    Streamer(settings).run()
    assert rows(tmp_path, "id", "big") == [("b", UNAVAILABLE)]


def test_a_value_that_is_nowhere_is_said(tmp_path: Path, topics: MockTopics, topic: str) -> None:
    topics.send(topic, [lacking("u", 1, "a", 1), whole("c", 2, "b", 1, "x")])
    lines: list[str] = []
    Streamer(config(tmp_path, topics, topic, **JSON)).run(told=lines.append)

    assert "1 rows have values that PostgreSQL did not send and the table lacks" in lines[0]
    assert rows(tmp_path, "id", "big", "tags") == [("a", UNAVAILABLE, UNAVAILABLE), ("b", "x", "[x]")]


def test_a_transformer_gets_the_rows_and_what_was_not_sent_is_filled_behind_it(
    tmp_path: Path, topics: MockTopics, topic: str
) -> None:
    pytest.importorskip("duckdb")
    query = {
        "transformer-class": "SqlQueryBasedTransformer",
        "hoodie.streamer.transformer.sql": "SELECT *, v * 10 AS ten FROM <SRC>",
    }
    settings = config(
        tmp_path, topics, topic, **JSON, **query, **{"hoodie.write.table.version": 6, "table-type": "mor"}
    )
    for batch in ([whole("c", 1, "a", 1, "x")], changed_key(2, "a", "b", 2), [lacking("u", 3, "b", 3)]):
        topics.send(topic, batch)
        Streamer(settings).run()

    assert rows(tmp_path, "id", "v", "big", "ten") == [("b", 3, "x", 30)]


# ---- the page

PAGE = (ROOT / "docs" / "streamer" / "debezium.md").read_text()


@pytest.mark.parametrize("language", ["toml", "properties"])
def test_the_pipelines_of_the_page_take_at_most_15_lines_and_make_their_tables(
    tmp_path: Path, topics: MockTopics, language: str
) -> None:
    pipelines = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)
    assert len(pipelines) == (3 if language == "toml" else 1)
    messages, schemas = recorded_avro()
    with schema_registry({**schemas, "latest": schemas["7"]}) as url:
        for number, pipeline in enumerate(pipelines):
            assert len(pipeline.splitlines()) <= 15
            (name,) = re.findall(r"shop\.public\.(\w+)", pipeline)[-1:]
            is_json = "StringDeserializer" in pipeline
            topics.send(f"shop.public.{name}", recorded_json("postgres") if is_json else messages)
            text = pipeline.replace("/lake", str(tmp_path)).replace("localhost:9092", topics.address)
            text = text.replace("http://localhost:8081", url).replace('"city"', '"ts"')
            (tmp_path / f"{number}.{language}").write_text(text)
            with closing(Streamer(tmp_path / f"{number}.{language}")) as streamer:
                assert streamer.check().rejected == []
                assert streamer.run(until_empty=True).rows == 8
            found = HudiTable.open(tmp_path / name).scan(["id"]).to_arrow()["id"].to_pylist()
            assert sorted(found) == ["c", "d", "early"]
