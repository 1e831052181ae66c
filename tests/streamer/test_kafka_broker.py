"""Kafka as a source beside a real broker: what the mock cluster of the client can't do."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable, Streamer
from tests.support.servers.shared import shared_service

pytestmark = pytest.mark.servers
kafka = pytest.importorskip("confluent_kafka")


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with shared_service("kafka") as address:
        yield address["bootstrap"]


def sent(bootstrap: str, topic: str, *numbers: int) -> None:
    producer = kafka.Producer({"bootstrap.servers": bootstrap})
    for number in numbers:
        producer.produce(topic, json.dumps({"id": number}), partition=0)
    assert producer.flush(30) == 0


def made(bootstrap: str, topic: str, *, again: bool = False) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    if again:
        admin.delete_topics([topic])[topic].result(30)
    for _ in range(100):
        try:
            admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(30)
            return
        except kafka.KafkaException:  # it is not gone yet
            time.sleep(0.1)


def config(tmp_path: Path, bootstrap: str, topic: str) -> dict[str, Any]:
    return {
        "target-base-path": str(tmp_path / "t"), "record_key": "id", "source-class": "JsonKafkaSource", "op": "INSERT",
        "hoodie.streamer.source.kafka.topic": topic, "bootstrap.servers": bootstrap, "auto.offset.reset": "earliest",
    }  # fmt: skip


def ids(tmp_path: Path) -> list[int]:
    return sorted(HudiTable.open(tmp_path / "t").scan(["id"]).to_arrow().column("id").to_pylist())


def test_a_topic_that_was_recreated_is_noticed_by_its_id_and_a_poll_that_finds_nothing_is_quick(
    bootstrap: str, tmp_path: Path
) -> None:
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    settings = config(tmp_path, bootstrap, topic)
    made(bootstrap, topic)
    sent(bootstrap, topic, 1, 2)
    assert Streamer(settings).run(until_empty=True).rows == 2
    made(bootstrap, topic, again=True)
    sent(bootstrap, topic, 3, 4, 5)

    lines: list[str] = []
    streamer = Streamer(settings)
    assert streamer.run(told=lines.append).rows == 3
    assert "was recreated since the checkpoint" in lines[0]
    took_s = []
    for _ in range(5):
        began_s = time.perf_counter()
        assert streamer.run().rounds == 0
        took_s.append(time.perf_counter() - began_s)
    assert min(took_s) < 0.05
    assert ids(tmp_path) == [1, 2, 3, 4, 5]


def test_events_of_transactions_come_when_they_are_committed_and_aborted_ones_never(
    bootstrap: str, tmp_path: Path
) -> None:
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    made(bootstrap, topic)
    producer = kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    settings = config(tmp_path, bootstrap, topic)

    def send(*numbers: int) -> None:
        producer.begin_transaction()
        for number in numbers:
            producer.produce(topic, json.dumps({"id": number}), partition=0)
        assert producer.flush(30) == 0

    send(1, 2)
    producer.commit_transaction(30)
    send(3, 4)
    producer.abort_transaction(30)
    send(5)
    assert Streamer(settings).run(until_empty=True).rows == 2
    producer.commit_transaction(30)
    assert Streamer(settings).run(until_empty=True).rows == 1
    assert Streamer(settings).run(until_empty=True).rounds == 0
    assert ids(tmp_path) == [1, 2, 5]
