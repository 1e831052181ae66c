"""The pipelines of docs/streamer.md, of the pages of its sources and of HoodieStreamer's page run as they are."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Streamer, write_hudi
from pyhudi.storage import MemoryStorage
from pyhudi.streamer.settings import load_settings
from pyhudi.streamer.sources.cloud_events import s3_queue as s3_events
from pyhudi.streamer.sources.kinesis import source as kinesis
from pyhudi.streamer.sources.registry import SOURCES
from tests.support.kinesis import Kinesis
from tests.support.pages import examples
from tests.support.registry import registry_of
from tests.support.source import ROOT
from tests.support.sqs import Queue, s3_event

PAGES = sorted((ROOT / "docs" / "streamer").glob("*.md"))
OF_DEBEZIUM = "debezium.md"  # whose pipelines run in test_debezium.py
PIPELINES = [
    pipeline
    for page in [ROOT / "docs" / "streamer.md", *PAGES]
    if page.name != OF_DEBEZIUM
    for pipeline in re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.M | re.S)
]
SEVERAL = [PIPELINES.pop(at) for at, text in reversed(list(enumerate(PIPELINES))) if "[tables." in text]
OTHER = (ROOT / "docs" / "coming-from" / "hoodiestreamer.md").read_text()
PARCELS = [b"\0\0\0\0\1\0" + b"\x08" + bytes([number]) for number in (1, 2)]  # schema 1, first message, field 1
ORDERS = [{"id": 1, "ts": 1, "price": 2}, {"id": 2, "ts": 1, "price": 0}]


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """The folders that the pages name."""
    for name in ("orders", "rides", "trips"):
        (tmp_path / "incoming" / name).mkdir(parents=True)
    (tmp_path / "incoming" / "orders" / "a.json").write_text("\n".join(map(json.dumps, ORDERS)))
    (tmp_path / "incoming" / "rides" / "a.csv").write_text("id,city\n1,rome\n2,oslo\n")
    (tmp_path / "incoming" / "trips" / "a.json").write_text('{"id": 1, "city": "rome", "ts": 1}\n')
    return tmp_path


@pytest.fixture
def registry() -> Iterator[str]:
    """The address of a registry that has the message of the page."""
    descriptors = pytest.importorskip("google.protobuf.descriptor_pb2")
    file = descriptors.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.message_type.add(name="Parcel").field.add(name="id", number=1, type=3, label=1)
    with registry_of({"/schemas/ids/1": {"schema": b64encode(file.SerializeToString()).decode()}}) as found:
        yield found.url


def sent(topic: str, values: Sequence[str | bytes]) -> tuple[Any, str]:
    """A client with a mock broker, which lives as long, and the broker's address; the topic has the values."""
    kafka = pytest.importorskip("confluent_kafka")
    producer = kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "x:1"})
    broker = next(iter(producer.list_topics(topic, timeout=10).brokers.values()))
    for value in values:
        producer.produce(topic, value)
    producer.flush(10)
    return producer, f"{broker.host}:{broker.port}"


def placed(text: str, places: Path) -> str:
    return text.replace("/lake", f"{places}/lake").replace("/incoming", f"{places}/incoming")


@pytest.mark.parametrize("text", PIPELINES, ids=lambda text: re.search(r"base-path = \"/lake/(\w+)", text)[1])  # type: ignore[index]
def test_a_pipeline_of_the_page_takes_at_most_15_lines_and_brings_its_rows(
    text: str, places: Path, registry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(text.splitlines()) <= 15
    if "transformer.sql" in text or "SqlSource" in text:
        pytest.importorskip("duckdb")
    if "KafkaSource" in text:
        topic = re.search(r'kafka\.topic = "(\w+)"', text)[1]  # type: ignore[index]
        _producer, address = sent(topic, PARCELS if "Proto" in text else [json.dumps(order) for order in ORDERS])
        text = text.replace("localhost:9092", address).replace("http://localhost:8081", registry)
    if "JsonKinesisSource" in text:
        pytest.importorskip("boto3")
        stream = Kinesis()
        stream.put(stream.opened(), *ORDERS)
        monkeypatch.setattr(kinesis, "aws_client", lambda *given: stream)
    if "JdbcSource" in text:
        pytest.importorskip("sqlalchemy")
        with sqlite3.connect(places / "incoming" / "shop.db") as database:
            database.execute("CREATE TABLE customers (id INTEGER, updated_at TIMESTAMP)")
            database.execute("INSERT INTO customers VALUES (1, '2026-08-10 12:00:00'), (2, '2026-08-10 12:00:00')")
    if "S3EventsSource" in text:
        pytest.importorskip("boto3")
        queue = Queue()
        queue.send(s3_event("invoices/a.json"), s3_event("invoices/b.json"))
        monkeypatch.setattr(s3_events, "aws_client", lambda *given: queue)
    if "S3EventsHoodieIncrSource" in text:
        MemoryStorage("invoices").write("invoices/a.json", "\n".join(map(json.dumps, ORDERS)).encode())
        event = {"n": 1, "s3": s3_event("invoices/a.json", bucket="invoices")["s3"]}
        write_hudi(places / "lake" / "s3_events", pa.Table.from_pylist([event]), record_key="n")
        text += 'hoodie.streamer.source.s3incr.fs.prefix = "memory"'
    write_hudi(places / "lake" / "orders", pa.Table.from_pylist(ORDERS), record_key="id")
    if '"/lake/orders"\n' in text.partition("record_key")[0]:
        text = text.replace("/lake/orders", "/lake/new_orders")
    (places / "p.toml").write_text(placed(text, places))
    streamer = Streamer(places / "p.toml")

    assert streamer.check().waiting == (1 if "price > 0" in text else 2)
    assert streamer.run(until_empty=True).rows == (1 if "price > 0" in text else 2)
    streamer.close()


def test_each_source_has_a_page_with_a_pipeline_that_the_overview_names() -> None:
    overview = (ROOT / "docs" / "streamer.md").read_text()
    names = set(re.findall(r'^source-class = "(\w+)"', "\n".join(page.read_text() for page in PAGES), re.M))

    assert set(re.findall(r"\]\(streamer/([\w-]+\.md)\)", overview)) >= {page.name for page in PAGES}
    assert [name for name in names if f"`{name}`" not in overview] == []
    assert sorted(name for name in SOURCES.entries if f"`{name}`" not in overview) == []
    assert [page.name for page in PAGES if not re.search(r"^```(toml|python)$", page.read_text(), re.M)] == []


def test_the_configuration_of_several_tables_takes_at_most_15_lines_and_fills_all_of_them(places: Path) -> None:
    (text,) = SEVERAL
    assert len(text.splitlines()) <= 15
    (places / "p.toml").write_text(placed(text, places))

    assert Streamer(places / "p.toml").check().waiting == 4
    assert {name: one.rows for name, one in Streamer(places / "p.toml").run().tables.items()} == {
        "new_orders": 2,
        "shop.rides": 2,
    }
    assert HudiTable.open(places / "lake" / "shop" / "rides").scan().count() == 2


def test_the_source_of_ones_own_on_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("page_of_pipelines")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    page = ROOT / "docs" / "streamer" / "own-source.md"
    (code,) = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    assert examples("docs/streamer/own-source")
    exec(compile(code.replace("/tmp/", f"{tmp_path}/"), str(page), "exec"), vars(module))

    assert HudiTable.open(tmp_path / "numbers").scan().count() == 90
    assert "# → 90" in code


def test_the_properties_file_of_hoodiestreamer_runs_as_it_is(places: Path) -> None:
    (text,) = re.findall(r"^```properties\n(.*?)^```", OTHER, re.M | re.S)
    (places / "trips.properties").write_text(placed(text, places))

    assert Streamer(places / "trips.properties").run().rows == 1
    described = HudiTable.open(places / "lake" / "trips").inspect.describe()
    assert "city" in str(described)


@pytest.mark.parametrize("line", re.findall(r"`([\w.-]+ = [^`]+)`", OTHER))
def test_each_line_of_the_table_is_taken(line: str, tmp_path: Path) -> None:
    insert = 'op = "INSERT"\n' if line.startswith("filter-dupes") else ""
    (tmp_path / "p.toml").write_text(f'target-base-path = "{tmp_path}/t"\n{insert}{line}\n')
    settings = load_settings(tmp_path / "p.toml")

    assert settings != load_settings({"target-base-path": f"{tmp_path}/t"})
