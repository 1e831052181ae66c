"""The mock cluster of Kafka's client, and a pipeline from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["Broker", "config"]


class Broker:
    """A mock cluster: four partitions a topic."""

    def __init__(self) -> None:
        import confluent_kafka

        self._producer = confluent_kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "x:1"})
        broker = next(iter(self._producer.list_topics("orders", timeout=10).brokers.values()))
        self.address = f"{broker.host}:{broker.port}"

    def send(
        self, *values: object, partition: int = 0, topic: str = "orders", key: str | None = None, **more: Any
    ) -> None:
        for value in values:
            data = value if isinstance(value, bytes | None) else json.dumps(value).encode()
            self._producer.produce(topic, data, key=key, partition=partition, **more)
        assert self._producer.flush(10) == 0


def config(
    tmp_path: Path, cluster: Broker, topic: str, source: str = "JsonKafkaSource", **more: object
) -> Mapping[str, Any]:
    """A pipeline from a topic into the table `t`."""
    return {
        "target-base-path": str(tmp_path / "t"),
        "record_key": "id",
        "source-class": source,
        "hoodie.streamer.source.kafka.topic": topic,
        "bootstrap.servers": cluster.address,
        "auto.offset.reset": "earliest",
        **more,
    }
