"""Kafka as a source, beside the mock cluster of the client: each event once, in the words of Hudi's checkpoints."""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from pyhudi import HudiTable, Streamer, metrics
from pyhudi.errors import ConfigError, SchemaMismatch, StorageError
from pyhudi.storage.clock import SystemClock
from pyhudi.streamer.checkpoints import Start
from pyhudi.streamer.json_messages import RowColumns
from pyhudi.streamer.settings import load_settings
from pyhudi.streamer.sources.kafka.client import ClientSettings
from pyhudi.streamer.sources.kafka.formats import Events, JsonValues
from pyhudi.streamer.sources.kafka.offsets import OffsetRanges, cut, dealt, offsets_of, text_of_offsets
from pyhudi.streamer.sources.kafka.source import KafkaSource
from pyhudi.streamer.sources.kafka.topic_id import TopicId
from pyhudi.streamer.sources.registry import open_source
from pyhudi.streamer.sources.source import SourceSetting
from tests.support.mock_kafka import Broker, config

kafka = pytest.importorskip("confluent_kafka")
TOPIC = "orders"


@pytest.fixture(scope="module")
def cluster() -> Broker:
    return Broker()


@pytest.fixture
def topic(cluster: Broker, request: pytest.FixtureRequest) -> str:
    name = request.node.name[:60].replace("[", "-").replace("]", "")
    cluster.send({"id": 0, "v": 0}, topic=name)
    return name


def rows(tmp_path: Path) -> list[dict[str, Any]]:
    found = HudiTable.open(tmp_path / "t").scan(meta_columns=False).to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["id"])


def test_events_of_all_partitions_come_once_and_the_checkpoint_is_hudis_text(
    tmp_path: Path, cluster: Broker, topic: str
) -> None:
    cluster.send({"id": 1, "v": 1}, {"id": 2, "v": 2}, partition=1, topic=topic)
    settings = config(tmp_path, cluster, topic, op="INSERT")

    done = Streamer(settings).run()
    assert (done.rows, done.checkpoint) == (3, f"{topic},0:1,1:2,2:0,3:0")
    assert Streamer(settings).run().rounds == 0
    cluster.send({"id": 3, "v": 3}, partition=3, topic=topic)
    assert Streamer(settings).run().checkpoint == f"{topic},0:1,1:2,2:0,3:1"
    assert rows(tmp_path) == [{"id": number, "v": number} for number in range(4)]


def test_the_limit_is_dealt_over_the_partitions_and_the_backlog_is_read_in_batches(
    tmp_path: Path, cluster: Broker, topic: str
) -> None:
    cluster.send(*({"id": number, "v": 1} for number in range(1, 20)), topic=topic)
    cluster.send({"id": 30, "v": 1}, partition=2, topic=topic)
    settings = config(tmp_path, cluster, topic, op="INSERT", **{"hoodie.streamer.kafka.source.maxEvents": 8})
    streamer = Streamer(settings)

    assert streamer.run().checkpoint == f"{topic},0:7,1:0,2:1,3:0"
    done = streamer.run(until_empty=True)
    assert (done.rows, done.commits) == (13, 2)
    assert len(rows(tmp_path)) == 21


def test_a_poisoned_message_and_a_wrong_type_go_into_quarantine_with_their_offsets(
    tmp_path: Path, cluster: Broker, topic: str
) -> None:
    quarantine = {"hoodie.errortable.enable": True, "hoodie.errortable.base.path": str(tmp_path / "q")}
    offsets = {"hoodie.streamer.source.kafka.append.offsets": True, "hoodie.pyhudi.streamer.quarantine.max.share": 0.7}
    settings = config(tmp_path, cluster, topic, **quarantine, **offsets)
    Streamer(settings).run()
    cluster.send(b"{broken", None, {"id": 1, "v": "text"}, b'{"id": 2,\n "v": 2}', b"\xff{}", topic=topic)
    cluster.send({"id": 3, "v": 3}, topic=topic, key="k", timestamp=1764000000000)

    done = Streamer(settings).run()

    assert (done.rows, done.rejected) == (2, 3)
    aside = HudiTable.open(tmp_path / "q").scan(meta_columns=False).to_arrow().to_pylist()
    assert sorted(row["position"] for row in aside) == [f"{topic}/0@1", f"{topic}/0@3", f"{topic}/0@5"]
    assert [(row["id"], row["_hoodie_kafka_source_offset"]) for row in rows(tmp_path)] == [(0, 0), (2, 4), (3, 6)]
    assert rows(tmp_path)[2]["_hoodie_kafka_source_timestamp"] == 1764000000000
    assert rows(tmp_path)[2]["_hoodie_kafka_source_key"] == "k"


def test_events_with_a_column_that_offsets_would_take_are_refused_by_its_name(
    tmp_path: Path, cluster: Broker, topic: str
) -> None:
    cluster.send({"id": 9, "v": 1, "_hoodie_kafka_source_offset": 77}, topic=topic)
    settings = config(tmp_path, cluster, topic, **{"hoodie.streamer.source.kafka.append.offsets": True})
    with pytest.raises(SchemaMismatch, match="have the column _hoodie_kafka_source_offset themselves"):
        Streamer(settings).run()
    assert Streamer(config(tmp_path, cluster, topic)).run().rejected == 0
    assert [row["_hoodie_kafka_source_offset"] for row in rows(tmp_path) if row["id"] == 9] == [77]


def test_a_partition_whose_offsets_are_gone_goes_on_alone_and_the_loss_is_counted_or_refused(
    tmp_path: Path, cluster: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.send({"id": 1, "v": 1}, partition=1, topic=topic)
    settings = config(tmp_path, cluster, topic, op="INSERT")
    Streamer(settings).run()
    cluster.send(*({"id": number, "v": 1} for number in range(10, 16)), topic=topic)
    cluster.send({"id": 2, "v": 2}, partition=1, topic=topic)
    bounds = KafkaSource._bounds
    monkeypatch.setattr(KafkaSource, "_bounds", lambda self: {**bounds(self), 0: (4, 7)})

    with pytest.raises(ConfigError, match=r"partition 0: the checkpoint is 1, the events there are 4 to 6: 3 events"):
        Streamer({**settings, "hoodie.streamer.source.kafka.enable.failOnDataLoss": True}).run()
    lines: list[str] = []
    done = Streamer(settings).run(told=lines.append)

    assert (done.rows, done.lost) == (4, 3)
    assert "3 events are gone" in lines[0]
    assert "3 lost at the source" in lines[1]
    assert HudiTable.open(tmp_path / "t").history()[0].extra["pyhudi.streamer.lost.events"] == "3"
    assert [row["id"] for row in rows(tmp_path)] == [0, 1, 2, 13, 14, 15]


def test_a_topic_that_was_recreated_is_read_from_its_first_event(tmp_path: Path, cluster: Broker, topic: str) -> None:
    settings = config(tmp_path, cluster, topic)
    lines: list[str] = []

    done = Streamer({**settings, "checkpoint": f"{topic},0:77"}).run(told=lines.append)
    assert (done.rows, done.checkpoint) == (1, f"{topic},0:1,1:0,2:0,3:0")
    assert "the topic was recreated, or cut" in lines[0]


def test_a_topic_that_was_recreated_and_has_grown_past_the_checkpoint_is_read_from_its_first_event(
    tmp_path: Path, cluster: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(tmp_path, cluster, topic, op="INSERT")
    monkeypatch.setattr(TopicId, "now", lambda self: "first")
    assert Streamer(settings).run().rows == 1
    cluster.send({"id": 1, "v": 1}, topic=topic)
    monkeypatch.setattr(TopicId, "now", lambda self: "second")

    with pytest.raises(ConfigError, match=r"was recreated since the checkpoint.*failOnDataLoss=true"):
        Streamer({**settings, "hoodie.streamer.source.kafka.enable.failOnDataLoss": True}).run()
    lines: list[str] = []
    assert Streamer(settings).run(told=lines.append).rows == 2
    assert "was recreated since the checkpoint, and is read from its first event on" in lines[0]
    cluster.send({"id": 2, "v": 2}, topic=topic)
    monkeypatch.setattr(TopicId, "now", lambda self: None)  # the broker gives none for a while
    assert Streamer(settings).run().rows == 1
    assert HudiTable.open(tmp_path / "t").history()[0].extra["pyhudi.streamer.topic.id"] == "second"


def test_a_broker_that_does_not_name_a_partition_of_the_checkpoint_brings_no_row_twice(
    tmp_path: Path, cluster: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TopicId, "now", lambda self: "one")
    cluster.send({"id": 1, "v": 1}, partition=1, topic=topic)
    settings = config(tmp_path, cluster, topic, op="INSERT")
    assert Streamer(settings).run().rows == 2
    bounds = KafkaSource._bounds
    monkeypatch.setattr(KafkaSource, "_bounds", lambda self: {n: at for n, at in bounds(self).items() if n != 1})

    with pytest.raises(StorageError, match=r"does not name partition 1 of the checkpoint.*Nothing was written"):
        Streamer(settings).run()
    monkeypatch.setattr(KafkaSource, "_bounds", bounds)
    cluster.send({"id": 2, "v": 2}, partition=1, topic=topic)
    assert Streamer(settings).run().rows == 1
    assert [row["id"] for row in rows(tmp_path)] == [0, 1, 2]


def test_a_partition_of_the_same_topic_that_ends_before_the_checkpoint_brings_no_row_twice(
    tmp_path: Path, cluster: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TopicId, "now", lambda self: "one")
    cluster.send({"id": 1, "v": 1}, {"id": 2, "v": 1}, topic=topic)
    settings = config(tmp_path, cluster, topic, op="INSERT")
    assert Streamer(settings).run().rows == 3
    bounds = KafkaSource._bounds
    monkeypatch.setattr(KafkaSource, "_bounds", lambda self: {**bounds(self), 0: (0, 1)})

    with pytest.raises(StorageError, match=rf"the checkpoint is 3, and the broker ends at 1.*{topic},0:1,1:0,2:0,3:0"):
        Streamer(settings).run()
    monkeypatch.setattr(KafkaSource, "_bounds", bounds)
    cluster.send({"id": 3, "v": 2}, topic=topic)
    assert Streamer(settings).run().rows == 1
    assert [row["id"] for row in rows(tmp_path)] == [0, 1, 2, 3]


def test_a_topic_that_is_recreated_while_it_is_read_brings_nothing(
    tmp_path: Path, cluster: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = iter(["first", "second"])
    monkeypatch.setattr(TopicId, "now", lambda self: next(ids))

    with pytest.raises(StorageError, match=r"was recreated as it was read\. Nothing was written"):
        Streamer(config(tmp_path, cluster, topic)).run()
    assert not (tmp_path / "t").exists()


def test_a_broker_that_gives_no_id_of_a_topic_is_not_asked_again_soon(
    cluster: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr("pyhudi.streamer.sources.kafka.topic_id._TIMEOUT_S", 0.1)
    client = {"bootstrap.servers": cluster.address, "group.id": "x", "enable.partition.eof": True}
    topic_id = TopicId(TOPIC, ClientSettings(client, False, {}))

    assert topic_id.now() is None
    monkeypatch.setattr(TopicId, "_asked", lambda self: pytest.fail("asked again"))
    assert topic_id.now() is None


def test_events_become_rows_some_at_a_time_and_the_batch_is_the_same(
    tmp_path: Path, cluster: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.send(*({"id": number, "v": number / 2} for number in range(1, 30)), b"broken", topic=topic)
    cluster.send({"id": 40, "w": "x"}, partition=2, topic=topic)
    quarantine = {"hoodie.errortable.enable": True, "hoodie.errortable.base.path": str(tmp_path / "q")}
    monkeypatch.setattr("pyhudi.streamer.sources.kafka.source._EVENTS_A_CALL", 4)
    monkeypatch.setattr("pyhudi.streamer.sources.kafka.source._EVENTS_AT_ONCE", 7)
    decoded: list[int] = []
    decode = JsonValues.decode

    def counted(self: JsonValues, events: Events, columns: RowColumns) -> Any:
        decoded.append(len(events.values))
        return decode(self, events, columns)

    monkeypatch.setattr(JsonValues, "decode", counted)
    done = Streamer(config(tmp_path, cluster, topic, **quarantine)).run()

    assert (done.rows, done.rejected) == (31, 1)
    assert max(decoded) < 12
    assert [(row["id"], row["v"], row["w"]) for row in rows(tmp_path)][-2:] == [(29, 14.5, None), (40, None, "x")]


def test_what_waits_behind_a_round_is_in_its_line_its_answer_and_the_metrics(
    tmp_path: Path, cluster: Broker, topic: str
) -> None:
    cluster.send(*({"id": number, "v": 1} for number in range(1, 5)), topic=topic)
    cluster.send({"id": 9, "v": 1}, partition=3, topic=topic)
    on = {"hoodie.metrics.on": True, "hoodie.metrics.reporter.type": "INMEMORY", "hoodie.table.name": topic}
    streamer = Streamer(config(tmp_path, cluster, topic, **on, **{"hoodie.streamer.kafka.source.maxEvents": 3}))
    lines: list[str] = []

    done = streamer.run(told=lines.append)
    assert done.lag == {"0": 3, "1": 0, "2": 0, "3": 0}
    assert ", 3 wait (0: 3), at" in lines[-1]
    assert ", 3 wait (0: 3)" in str(done)
    numbers = {name.removeprefix(f"{topic}.deltastreamer."): number for name, number in metrics().items()}
    assert (numbers["kafkaMessageInCount"], numbers["kafkaDelayCount"]) == (3, 6)
    assert (numbers["kafkaLag.0"], numbers["kafkaLag.3"]) == (3, 0)

    assert set(streamer.run(until_empty=True).lag.values()) == {0}
    numbers = {name.removeprefix(f"{topic}.deltastreamer."): number for name, number in metrics().items()}
    assert (numbers["kafkaMessageInCount"], numbers["kafkaDelayCount"], numbers["kafkaLag.0"]) == (0, 0, 0)


def test_latest_begins_with_what_comes_later_also_before_there_is_a_table(
    tmp_path: Path, cluster: Broker, topic: str
) -> None:
    streamer = Streamer(config(tmp_path, cluster, topic, **{"auto.offset.reset": "latest"}))

    assert streamer.run().rows == 0
    cluster.send({"id": 5, "v": 5}, topic=topic)
    assert streamer.run().rows == 1
    assert [row["id"] for row in rows(tmp_path)] == [5]


@pytest.mark.parametrize(
    ("checkpoint", "kind", "words"),
    [
        ("12345", "string", r"not one of Kafka, topic,partition:offset"),
        ("others,0:1", "string", r"is of the topic 'others'"),
        ("7", "single_offset", r"4 partitions; single_offset is for one"),
        ("soon", "timestamp", r"checkpoint\.type=timestamp: expected digits"),
    ],
)
def test_a_checkpoint_of_another_kind_is_refused(
    tmp_path: Path, cluster: Broker, topic: str, checkpoint: str, kind: str, words: str
) -> None:
    more = {"checkpoint": checkpoint, "hoodie.streamer.source.kafka.checkpoint.type": kind}
    with pytest.raises(ConfigError, match=words):
        Streamer(config(tmp_path, cluster, topic, **more)).run()
    assert not (tmp_path / "t").exists()


def test_a_broker_that_is_away_is_one_error_and_what_is_of_java_is_named(tmp_path: Path, cluster: Broker) -> None:
    away = config(tmp_path, cluster, TOPIC, **{"bootstrap.servers": "127.0.0.1:1"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyhudi.streamer.sources.kafka.source._TIMEOUT_S", 0.5)
        with pytest.raises(StorageError, match=r"Kafka topic 'orders' at 127\.0\.0\.1:1 can't be read"):
            Streamer(away).run()
    for key, words in {
        "ssl.truststore.location": "ssl.ca.location",
        "sasl.jaas.config": "sasl.username",
        "bootstrap.server": "No such configuration property",
    }.items():
        with pytest.raises(ConfigError, match=words):
            Streamer(config(tmp_path, cluster, TOPIC, **{key: "x"}))
    with pytest.raises(ConfigError, match="a group's offsets are not read"):
        Streamer(config(tmp_path, cluster, TOPIC, **{"auto.offset.reset": "group"}))


def test_text_comes_as_a_column_and_what_is_no_text_is_refused(tmp_path: Path, cluster: Broker) -> None:
    topic = "texts"
    cluster.send(b"one", b"two", topic=topic)
    settings = config(tmp_path, cluster, topic, "TextKafkaSource", record_key="value")
    assert Streamer(settings).run().rows == 2
    cluster.send(b"\xff\xfe", topic=topic)
    with pytest.raises(SchemaMismatch, match=r"1 of 1 rows don't fit the table; the first is texts/0@2"):
        Streamer(settings).run()


# ---- Avro of a registry

OLD = {"type": "record", "name": "o", "fields": [{"name": "id", "type": "long"}, {"name": "v", "type": "int"}]}
NEW = {
    "type": "record",
    "name": "o",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "v", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}


RENAMED = {
    "type": "record",
    "name": "o",
    "fields": [{"name": "id", "type": "long"}, {"name": "remark", "type": "string"}],
}


@pytest.fixture
def registry() -> Iterator[str]:
    schemas = {"1": OLD, "2": NEW, "3": RENAMED}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            schema = schemas.get(self.path.rpartition("/")[2])
            self.send_response(404 if schema is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps({"schema": json.dumps(schema)}).encode())

        def log_message(self, *arguments: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def avro(schema_id: int, schema: dict[str, Any], row: dict[str, Any]) -> bytes:
    out = BytesIO(struct.pack(">bI", 0, schema_id))
    out.seek(5)
    fastavro.schemaless_writer(out, schema, row)
    return out.getvalue()


def test_avro_of_both_schemas_in_one_batch_keeps_its_order_and_widens_the_table(
    tmp_path: Path, cluster: Broker, registry: str
) -> None:
    topic, more = "avro", {"schema.registry.url": registry}
    settings = config(tmp_path, cluster, topic, "AvroKafkaSource", **more)
    cluster.send(avro(1, OLD, {"id": 1, "v": 1}), topic=topic)
    Streamer(settings).run()
    cluster.send(
        avro(2, NEW, {"id": 2, "v": 1 << 40, "note": "n"}),
        avro(1, OLD, {"id": 2, "v": 7}),
        avro(2, NEW, {"id": 1, "v": 2, "note": "x"}),
        topic=topic,
    )

    assert Streamer(settings).run().rows == 3
    assert rows(tmp_path) == [{"id": 1, "v": 2, "note": "x"}, {"id": 2, "v": 7, "note": None}]
    cluster.send(
        b"no avro", avro(9, NEW, {"id": 3, "v": 3, "note": None}), avro(1, OLD, {"id": 4, "v": 4}), topic=topic
    )
    left_out = {"commit-on-errors": True, "hoodie.pyhudi.streamer.quarantine.max.share": 0.9}
    done = Streamer({**settings, **left_out}).run()
    assert (done.rows, done.rejected) == (1, 2)


def test_a_column_that_is_renamed_in_the_registry_is_a_new_one_and_the_old_one_is_null(
    tmp_path: Path, cluster: Broker, registry: str
) -> None:
    topic, more = "renamed", {"schema.registry.url": registry}
    settings = config(tmp_path, cluster, topic, "AvroKafkaSource", **more)
    cluster.send(avro(2, NEW, {"id": 1, "v": 1, "note": "n"}), topic=topic)
    Streamer(settings).run()
    cluster.send(avro(3, RENAMED, {"id": 1, "remark": "r"}), topic=topic)
    Streamer(settings).run()

    assert rows(tmp_path) == [{"id": 1, "v": None, "note": None, "remark": "r"}]


# ---- texts of offsets


def test_offsets_are_written_and_read_as_hudi_does() -> None:
    assert text_of_offsets("a.b", {1: 34, 0: 12}) == "a.b,0:12,1:34"
    assert offsets_of("a.b,0:12,1:34", "a.b") == {0: 12, 1: 34}


def test_a_limit_is_dealt_so_that_no_partition_starves() -> None:
    assert dealt({0: 0, 1: 0, 2: 5}, {0: 100, 1: 2, 2: 5}, 10) == {0: 8, 1: 2, 2: 5}
    assert dealt({0: 0, 1: 0}, {0: 9, 1: 9}, 1) == {0: 1, 1: 0}
    assert dealt({0: 3}, {0: 3}, 5) == {0: 3}


def test_ranges_are_cut_into_parts_of_about_the_same_size_and_small_partitions_stay_whole() -> None:
    ranges = OffsetRanges({0: 10, 1: 0, 2: 5, 3: 7}, {0: 110, 1: 3, 2: 9, 3: 7})

    parts = cut(ranges, 4)

    assert [(dict(part.starts), dict(part.ends)) for part in parts] == [
        ({0: 10}, {0: 35}),
        ({0: 35}, {0: 60}),
        ({0: 60}, {0: 85}),
        ({0: 85}, {0: 110}),
        ({1: 0, 2: 5, 3: 7}, {1: 3, 2: 9, 3: 7}),
    ]
    assert cut(OffsetRanges({0: 4}, {0: 4}), 3) == [OffsetRanges({0: 4}, {0: 4})]


def test_parts_behind_one_that_broke_off_are_of_a_later_batch_and_other_partitions_go_on(
    tmp_path: Path, cluster: Broker, topic: str
) -> None:
    cluster.send(*({"id": number} for number in range(1, 9)), topic=topic)
    cluster.send({"id": 20}, {"id": 21}, partition=1, topic=topic)
    source = open_source(SourceSetting(load_settings(config(tmp_path, cluster, topic)), SystemClock()))
    assert isinstance(source, KafkaSource)
    plan = source.plan(Start(None), None)
    assert plan is not None
    nothing = RowColumns(pa.schema([]))
    splits = source.splits(plan, 3)
    parts = [(split, source.fetch(split, nothing)) for split in splits]
    assert [part.rows.num_rows for _, part in parts] == [3, 3, 3, 2]

    cut_short = replace(parts[1][1], rows=parts[1][1].rows.slice(0, 1), end=f"{topic},0:4")
    batch = source.batch(plan, [parts[0], (splits[1], cut_short), *parts[2:]], nothing)

    assert batch.splits == [0, 1, 3]
    assert batch.checkpoint == f"{topic},0:4,1:2,2:0,3:0"
    assert batch.rows.column("id").to_pylist() == [0, 1, 2, 3, 20, 21]
    source.close()
