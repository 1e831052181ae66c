"""Change events of Debezium: recorded ones, small hand-made ones, and a broker of the client's own with a registry."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from tests.support.golden.folder import shared_folder

__all__ = [
    "Message",
    "MockTopics",
    "decimal_bytes",
    "postgres_event",
    "recorded_avro",
    "recorded_json",
    "schema_registry",
]

_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "id": {"type": "string"},
    "v": {"type": "int32"},
    "big": {"type": "string"},
    "tags": {"type": "array", "items": {"type": "string", "optional": True}},
    "amount": {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2", "connect.decimal.precision": "10"},
    },
    "raw": {"type": "bytes"},
    "day": {"type": "int32", "name": "io.debezium.time.Date"},
    "at": {"type": "int64", "name": "io.debezium.time.MicroTimestamp"},
    "short_at": {"type": "int64", "name": "io.debezium.time.Timestamp"},
    "zoned": {"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
}


@dataclass(frozen=True)
class Message:
    """A message of Kafka."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = field(default_factory=list)


class MockTopics:
    """A broker of the client's own, with four partitions a topic."""

    def __init__(self) -> None:
        import confluent_kafka

        self._producer = confluent_kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "x:1"})
        broker = next(iter(self._producer.list_topics("first", timeout=10).brokers.values()))
        self.address = f"{broker.host}:{broker.port}"

    def send(self, topic: str, messages: Sequence[Message], partition: int = 0) -> None:
        """Append them."""
        for one in messages:
            self._producer.produce(topic, one.value, one.key, partition, headers=list(one.headers))
        assert self._producer.flush(10) == 0


@contextmanager
def schema_registry(schemas: Mapping[str, str]) -> Iterator[str]:
    """The URL of a registry with these schemas by their ids, or by the end of their path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            schema = schemas.get(self.path.rpartition("/")[2])
            self.send_response(404 if schema is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps({"schema": schema}).encode())

        def log_message(self, *arguments: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def recorded_json(name: str) -> list[Message]:
    """The events of a file in shared/services/debezium/events, as plain JSON; skips the test without it."""
    path = shared_folder() / "services" / "debezium" / "events" / f"{name}-json.jsonl"
    events = [json.loads(line) for line in path.read_text().splitlines()]
    return [_message(event["key"], event["value"]) for event in events]


def recorded_avro() -> tuple[list[Message], dict[str, str]]:
    """The events of PostgreSQL as they were in Kafka, and the registry's schemas."""
    path = shared_folder() / "services" / "debezium" / "events" / "postgres-avro.json"
    recorded = json.loads(path.read_text())
    messages = [
        Message(one["value"] and base64.b64decode(one["value"]), one["key"] and base64.b64decode(one["key"]))
        for one in recorded["messages"]
    ]
    return messages, recorded["schemas"]


def postgres_event(
    op: str,
    lsn: int,
    row: Mapping[str, Any],
    *,
    old_key: str | None = None,
    new_key: str | None = None,
    has_schema: bool = True,
    tx: int = 1,
) -> Message:
    """A change of a table with the columns of `row`, keyed by its `id`."""
    side = "before" if op == "d" else "after"
    source = {"name": "shop", "schema": "public", "ts_ms": 7, "txId": tx, "lsn": lsn, "xmin": None}
    event = {"before": None, "after": None, side: row, "source": source, "op": op, "ts_ms": 8}
    headers = [
        (f"__debezium.{name}", json.dumps({"id": key}).encode())
        for name, key in (("oldkey", old_key), ("newkey", new_key))
        if key is not None
    ]
    if not has_schema:
        return _message({"id": row.get("id")}, event, headers)
    sides = [
        {"type": "struct", "field": name, "fields": [{"field": one, "optional": True, **_FIELDS[one]} for one in row]}
        for name in ("before", "after")
    ]
    schema = {"type": "struct", "fields": [*sides, {"field": "op", "type": "string"}]}
    return _message({"id": row.get("id")}, {"schema": schema, "payload": event}, headers)


def decimal_bytes(unscaled: int) -> str:
    """A decimal as JSON has it."""
    return base64.b64encode(unscaled.to_bytes(8, "big", signed=True)).decode()


def _message(key: Any, value: Any, headers: Sequence[tuple[str, bytes]] = ()) -> Message:
    return Message(None if value is None else json.dumps(value).encode(), json.dumps(key).encode(), headers)
