"""What every source keeps, by the rows of the registry: a batch is read again from its checkpoint, and ends there."""

from __future__ import annotations

import json
import pickle
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from pyhudi import write_hudi
from pyhudi.storage import MemoryStorage, open_storage
from pyhudi.storage.clock import SystemClock
from pyhudi.streamer.checkpoints import Start
from pyhudi.streamer.json_messages import RowColumns
from pyhudi.streamer.settings import load_settings
from pyhudi.streamer.sources.cloud_events import files as event_files
from pyhudi.streamer.sources.cloud_events import s3_queue as s3_events
from pyhudi.streamer.sources.kinesis import source as kinesis
from pyhudi.streamer.sources.registry import SOURCES, open_source
from pyhudi.streamer.sources.source import SourceSetting, SplitSource
from tests.support.kinesis import Kinesis
from tests.support.sqs import Queue, s3_event

ROWS = pa.table({"id": [1, 2, 3]})
NOTHING = RowColumns(pa.schema([]))


def avro(path: str) -> None:
    fields = [{"name": "id", "type": "long"}]
    with open(path, "wb") as out:
        fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, ROWS.to_pylist())


FILES: dict[str, Callable[[str], object]] = {
    "JsonDFSSource": lambda path: Path(path).write_text('{"id": 1}\n{"id": 2}\n{"id": 3}'),
    "CsvDFSSource": lambda path: Path(path).write_text("id\n1\n2\n3\n"),
    "ParquetDFSSource": lambda path: pq.write_table(ROWS, path),
    "ORCDFSSource": lambda path: orc.write_table(ROWS, path),
    "AvroDFSSource": avro,
}
QUERY = "SELECT explode(array(1, 2, 3)) AS id"
SQL = {"SqlSource": QUERY, "SqlFileBasedSource": f"{QUERY};"}
EVENT_FILES: dict[str, Callable[[str, int], dict[str, object]]] = {
    "S3EventsHoodieIncrSource": lambda bucket, size: {"s3": s3_event("a.json", bucket=bucket, size=size)["s3"]},
    "GcsEventsHoodieIncrSource": lambda bucket, size: {"bucket": bucket, "name": "a.json", "size": str(size)},
}
# Values of Avro and Protobuf have their own tests.
KAFKA = ("JsonKafkaSource", "TextKafkaSource", "AvroKafkaSource", "ProtoKafkaSource")
CHANGES = ("PostgresDebeziumSource", "MysqlDebeziumSource")  # changes, too


def settings_of(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    if name in FILES:
        (tmp_path / "in").mkdir()
        FILES[name](str(tmp_path / "in" / "a"))
        return {"hoodie.streamer.source.dfs.root": str(tmp_path / "in"), "hoodie.streamer.csv.header": True}
    if name == "HoodieIncrSource":
        write_hudi(tmp_path / "s", ROWS, record_key="id")
        strategy = {"hoodie.streamer.source.hoodieincr.missing.checkpoint.strategy": "READ_UPTO_LATEST_COMMIT"}
        return {"hoodie.streamer.source.hoodieincr.path": str(tmp_path / "s"), **strategy}
    if name == "JsonKinesisSource":
        stream = Kinesis()
        stream.put(stream.opened(), *ROWS.to_pylist())
        monkeypatch.setattr(kinesis, "aws_client", lambda *given: stream)
        keys = "hoodie.streamer.source.kinesis."
        return {f"{keys}stream.name": "s", f"{keys}starting.position": "EARLIEST"}
    if name == "JdbcSource":
        pytest.importorskip("sqlalchemy")
        with sqlite3.connect(tmp_path / "s.db") as database:
            database.execute("CREATE TABLE s (id INTEGER)")
            database.execute("INSERT INTO s VALUES (1), (2), (3)")
        pull = {"hoodie.streamer.jdbc.incr.pull": True, "hoodie.streamer.jdbc.table.incr.column.name": "id"}
        url = {"hoodie.streamer.jdbc.url": f"jdbc:sqlite:{tmp_path}/s.db", "hoodie.streamer.jdbc.table.name": "s"}
        return {**url, **pull}
    if name in SQL:
        pytest.importorskip("duckdb")
        (tmp_path / "q.sql").write_text(SQL[name])
        return {
            "hoodie.streamer.source.sql.sql.query": SQL[name],
            "hoodie.streamer.source.sql.file": str(tmp_path / "q.sql"),
        }
    if name == "S3EventsSource":
        queue = Queue()
        queue.send(s3_event("a"), s3_event("b", 1))
        queue.send(s3_event("c"), s3_event("d", name="ObjectRemoved:Delete"))
        monkeypatch.setattr(s3_events, "aws_client", lambda *given: queue)
        return {"hoodie.streamer.s3.source.queue.url": "https://sqs.eu-west-1.amazonaws.com/1/events"}
    if name in EVENT_FILES:
        data = "\n".join(map(json.dumps, ROWS.to_pylist())).encode()
        MemoryStorage(f"bucket-{tmp_path.name}").write("a.json", data)
        event = EVENT_FILES[name](f"bucket-{tmp_path.name}", len(data))
        write_hudi(tmp_path / "s", pa.Table.from_pylist([{"n": 1, **event}]), record_key="n")
        monkeypatch.setattr(
            event_files, "open_storage", lambda path, store: open_storage(re.sub(r"^\w+://", "memory://", path), store)
        )
        kind = {"hoodie.streamer.source.cloud.data.datafile.format": "json"}
        return {"hoodie.streamer.source.hoodieincr.path": str(tmp_path / "s"), **kind}
    assert name in (*KAFKA, *CHANGES), "a new source: say here how it gets three rows"
    kafka = pytest.importorskip("confluent_kafka")
    producer = kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "x:1"})
    broker = next(iter(producer.list_topics("t", timeout=10).brokers.values()))
    for row in ROWS.to_pylist():
        producer.produce("t", json.dumps(row), partition=0)
    producer.flush(10)
    settings_of.keeps = producer  # type: ignore[attr-defined]  # the cluster lives as long as its client
    message = {"hoodie.streamer.schemaprovider.proto.class.name": "shop.Order"}
    client = {**message, "bootstrap.servers": f"{broker.host}:{broker.port}", "auto.offset.reset": "earliest"}
    return {"hoodie.streamer.source.kafka.topic": "t", "schema.registry.url": "http://127.0.0.1:1", **client}


@pytest.mark.parametrize("name", sorted(SOURCES.entries))
def test_a_batch_is_the_same_from_the_same_checkpoint_and_nothing_is_behind_its_own(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"target-base-path": str(tmp_path / "t"), "source-class": name, **settings_of(name, tmp_path, monkeypatch)}
    source = open_source(SourceSetting(load_settings(given), SystemClock()))

    first = source.read(Start(None), None, NOTHING)
    again = source.read(Start(None), None, NOTHING)
    assert first is not None
    assert again is not None
    assert first.rows.equals(again.rows)
    assert (first.checkpoint, first.notes) == (again.checkpoint, again.notes)
    assert first.rows.num_rows + len(first.rejected) == 3
    if source.reads_all:
        assert (first.checkpoint, first.notes) == (None, {})
        return
    behind = source.read(Start(first.checkpoint, is_v2=source.writes_v2, notes=first.notes), None, NOTHING)
    # Messages that were not deleted yet come again, and bring nothing.
    assert behind is None or (name == "S3EventsSource" and behind.rows.num_rows == 0)
    assert behind is None or (behind.checkpoint, behind.notes) == (first.checkpoint, first.notes)
    source.close()


@pytest.mark.parametrize("name", sorted(SOURCES.entries))
def test_the_parts_of_a_batch_are_together_what_it_is_whole_also_when_another_process_fetches_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"target-base-path": str(tmp_path / "t"), "source-class": name, **settings_of(name, tmp_path, monkeypatch)}
    setting = SourceSetting(load_settings(given), SystemClock())
    source = open_source(setting)
    if not isinstance(source, SplitSource):
        pytest.skip("its rows are read by one process")
    assert type(source).read is SplitSource.read, "what one process reads is planned and fetched, too"

    whole = source.read(Start(None), None, NOTHING)
    plan = source.plan(Start(None), None)
    assert whole is not None
    assert plan is not None
    splits = source.splits(plan, 3)
    there = open_source(pickle.loads(pickle.dumps(setting)))
    parts = [(split, there.fetch(pickle.loads(pickle.dumps(split)), NOTHING)) for split in splits]  # type: ignore[attr-defined]
    together = source.batch(plan, parts, NOTHING)

    assert len(splits) == (4 if name in (*KAFKA, *CHANGES) else 1)  # empty partitions are one more
    assert together.rows.equals(whole.rows)
    assert (together.checkpoint, together.notes) == (whole.checkpoint, whole.notes)
    assert [one.position for one in together.rejected] == [one.position for one in whole.rejected]
    source.close()
    there.close()
