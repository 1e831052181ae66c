"""Two pipelines over one source, one of them on Spark in turns: each round brings the same rows and checkpoint."""

from __future__ import annotations

import json
import os
import struct
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import pyhudi.spark.engine
from pyhudi import HudiTable, Streamer
from pyhudi.errors import SchemaMismatch, StorageError
from pyhudi.streamer.results import StreamerRun
from tests.support.change_events import Message, MockTopics, postgres_event
from tests.support.kafka import no_topic_ids  # noqa: F401  (a fixture for all tests here)
from tests.support.registry import registry_of

BY_TASKS = {"hoodie.pyhudi.engine": "spark"}
SQL = {"transformer-class": "SqlQueryBasedTransformer"}
APPLY = "hoodie.pyhudi.streamer.apply.changes."


@pytest.fixture(autouse=True)
def in_new_york(spark: SparkSession) -> Iterator[None]:
    """Times don't depend on the zone of the session."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    assert zone is not None
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")  # `setting` would hold the lock of the product
    yield
    spark.conf.set("spark.sql.session.timeZone", zone)


def put(tmp_path: Path, name: str, *rows: object, second: int) -> None:
    path = tmp_path / "in" / name
    path.parent.mkdir(exist_ok=True)
    if len(rows) == 1 and isinstance(rows[0], pa.Table):
        pq.write_table(rows[0], path)
    else:
        path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    os.utime(path, (1_700_000_000 + second,) * 2)


def files(tmp_path: Path, source: str = "JsonDFSSource", **more: object) -> dict[str, Any]:
    root = {"hoodie.streamer.source.dfs.root": str(tmp_path / "in")}
    return {"record_key": "id", "source-class": source, **root, **more}


def stored(path: Path) -> tuple[pa.Schema, list[str]]:
    """The columns of a table, and its rows in some order."""
    found = HudiTable.open(path).scan(meta_columns=False).to_arrow()
    return HudiTable.open(path).schema(), sorted(map(repr, found.to_pylist()))


class Turns:
    """Rounds of two pipelines: one by this process alone, the other on Spark and by this process in turns."""

    def __init__(self, tmp_path: Path, spark: SparkSession, settings: Mapping[str, Any], **on_spark: Any) -> None:
        self.tmp_path, self._spark, self._on_spark = tmp_path, spark, on_spark
        aside = {"hoodie.errortable.enable": True, "hoodie.pyhudi.streamer.quarantine.max.share": 1}
        self._settings = {**aside, **settings}
        self._rounds = 0

    def round(self, *, is_cut: bool = False) -> StreamerRun:
        """A round of both, whose answers are the same. `is_cut`: on Spark, batches end where types change."""
        one = self._run("one", None)
        other = self._run("other", None if self._rounds % 2 else self._spark, **self._on_spark)
        self._rounds += 1
        assert (other.rows, other.rejected, other.checkpoint) == (one.rows, one.rejected, one.checkpoint)
        assert (other.commits, other.lag) == (one.commits + is_cut, one.lag)
        return one

    def rows(self, *, has_sparks_types: bool = False) -> list[dict[str, Any]]:
        """The rows of both tables, by their `id` and begin. `has_sparks_types`: the columns differ as the page says."""
        (columns, rows), other = (stored(self.tmp_path / name) for name in ("one", "other"))
        assert other[1] == rows
        assert has_sparks_types or other[0] == columns
        found = HudiTable.open(self.tmp_path / "other").scan(meta_columns=False).to_arrow().to_pylist()
        return sorted(found, key=lambda row: (str(row["id"]), str(row.get("__START_AT"))))

    def aside(self) -> list[tuple[str, str]]:
        """The places and reasons of what does not fit, in both quarantines."""
        names = ["position", "source", "text", "reason"]  # the others are of the table
        one, other = (
            sorted(HudiTable.open(self.tmp_path / f"{name}-aside").scan(names).to_arrow().to_pylist(), key=repr)
            for name in ("one", "other")
        )
        assert one == other
        return sorted((row["position"], row["reason"]) for row in one)

    def _run(self, table: str, spark: SparkSession | None, **more: object) -> StreamerRun:
        paths = {
            "target-base-path": str(self.tmp_path / table),
            "hoodie.errortable.base.path": str(self.tmp_path / f"{table}-aside"),
        }
        streamer = Streamer({**self._settings, **paths, **more}, spark=spark)
        try:
            return streamer.run(until_empty=True)
        finally:
            streamer.close()


# ---- formats


@pytest.fixture
def topics() -> MockTopics:
    pytest.importorskip("confluent_kafka")
    return MockTopics()


def kafka(topics: MockTopics, source: str, **more: object) -> dict[str, object]:
    topic = {"hoodie.streamer.source.kafka.topic": "t", "auto.offset.reset": "earliest"}
    return {"record_key": "id", "source-class": source, "bootstrap.servers": topics.address, **topic, **more}


def test_avro_of_two_schemas_in_one_batch_is_the_same_on_spark(
    spark: SparkSession, tmp_path: Path, topics: MockTopics
) -> None:
    fastavro = pytest.importorskip("fastavro")
    types: dict[str, Any] = {
        "id": "long",
        "v": "int",
        "at": {"type": "long", "logicalType": "timestamp-micros"},
        "local": {"type": "long", "logicalType": "local-timestamp-micros"},
        "price": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 3},
        "raw": "bytes",
    }
    line = {"type": "record", "name": "line", "fields": [{"name": "sku", "type": "string"}]}
    more = {**types, "v": "long", "lines": {"type": "array", "items": line}}
    schemas = {
        number: {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in one.items()]}
        for number, one in ((1, types), (2, more))
    }
    row = {"at": 1_741_415_400_000_000, "local": -1, "price": Decimal("123456789.125"), "raw": b"\xff\0"}

    def value(number: int, **fields: Any) -> Message:
        out = BytesIO()
        fastavro.schemaless_writer(out, schemas[number], {**row, **fields})
        return Message(struct.pack(">bI", 0, number) + out.getvalue())

    answers = {f"/schemas/ids/{number}": {"schema": json.dumps(schema)} for number, schema in schemas.items()}
    with registry_of(answers) as registry:
        turns = Turns(tmp_path, spark, kafka(topics, "AvroKafkaSource", **{"schema.registry.url": registry.url}))
        topics.send("t", [value(1, id=1, v=1), value(2, id=2, v=1 << 40, lines=[{"sku": "x"}]), value(1, id=2, v=7)])
        topics.send("t", [value(2, id=3, v=3, lines=[])], partition=2)
        assert turns.round().rows == 4
        topics.send("t", [value(1, id=4, v=4), Message(b"no avro"), Message(None), value(2, id=1, v=9, lines=[])])
        assert turns.round().rejected == 1
        topics.send("t", [value(1, id=5, v=5)], partition=1)
        assert turns.round().checkpoint == "t,0:7,1:1,2:1,3:0"

    found = turns.rows()
    assert [(one["id"], one["v"], one["lines"]) for one in found] == [
        (1, 9, []), (2, 7, None), (3, 3, []), (4, 4, None), (5, 5, None)
    ]  # fmt: skip
    assert (found[4]["at"].isoformat(), found[4]["local"].isoformat()) == (
        "2025-03-08T06:30:00+00:00",
        "1969-12-31T23:59:59.999999",
    )
    assert (found[4]["price"], found[4]["raw"]) == (row["price"], row["raw"])
    assert turns.aside()[0][0] == "t/0@4"


def test_protobuf_of_two_schemas_in_one_batch_is_the_same_on_spark(
    spark: SparkSession, tmp_path: Path, topics: MockTopics
) -> None:
    pytest.importorskip("google.protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

    def schema(*names: str) -> bytes:
        file = descriptor_pb2.FileDescriptorProto(name="o.proto", package="shop", syntax="proto3")
        file.dependency.append("google/protobuf/timestamp.proto")
        order = file.message_type.add(name="Order")
        line = order.nested_type.add(name="Line")
        line.field.add(name="sku", number=1, type=9, label=1)
        for number, (name, kind) in enumerate([("id", 9), ("big", 4), ("raw", 12), *((one, 9) for one in names)], 1):
            order.field.add(name=name, number=number, type=kind, label=1)
        order.field.add(name="lines", number=20, type=11, label=3, type_name=".shop.Order.Line")
        order.field.add(name="at", number=21, type=11, label=1, type_name=".google.protobuf.Timestamp")
        return bytes(file.SerializeToString())

    def value(number: int, **fields: Any) -> Message:
        pool = descriptor_pool.DescriptorPool()
        pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
        pool.AddSerializedFile(schemas[number])
        message: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))(**fields)
        message.at.seconds = 1_741_415_400
        return Message(b"\0" + number.to_bytes(4, "big") + b"\0" + message.SerializeToString())

    schemas = {1: schema(), 2: schema("note")}
    answers = {f"/schemas/ids/{number}": {"schema": b64encode(one).decode()} for number, one in schemas.items()}
    name = {"hoodie.streamer.schemaprovider.proto.class.name": "shop.Order"}
    with registry_of(answers) as registry:
        turns = Turns(
            tmp_path, spark, kafka(topics, "ProtoKafkaSource", **name, **{"schema.registry.url": registry.url})
        )
        topics.send("t", [value(1, id="a", big=2**64 - 1, raw=b"\xff"), value(2, id="b", note="new")])
        topics.send("t", [value(2, id="a2", lines=[{"sku": "x"}, {}])], partition=1)
        assert turns.round().rows == 3
        topics.send("t", [Message(b"{}"), value(1, id="b")])
        assert turns.round().rejected == 1
        topics.send("t", [value(1, id="c")], partition=3)
        assert turns.round().rows == 1

    found = {row["id"]: row for row in turns.rows()}
    assert {key: row["note"] for key, row in found.items()} == {"a": None, "a2": "", "b": None, "c": None}
    assert (found["a"]["big"], found["a"]["raw"]) == (Decimal(2**64 - 1), b"\xff")
    assert found["a2"]["lines"] == [{"sku": "x"}, {"sku": ""}]
    assert found["c"]["at"].isoformat() == "2025-03-08T06:30:00+00:00"


def test_times_of_debezium_mean_the_same_on_spark(spark: SparkSession, tmp_path: Path, topics: MockTopics) -> None:
    deserializer = "org.apache.kafka.common.serialization.StringDeserializer"
    text = {"hoodie.streamer.source.kafka.value.deserializer.class": deserializer}
    turns = Turns(tmp_path, spark, kafka(topics, "PostgresDebeziumSource", **text), **BY_TASKS)
    row = {"at": 1_741_415_400_000_001, "zoned": "2025-03-09T02:30:00.5Z", "day": 20_000, "raw": "/w=="}
    amount = {"amount": b64encode((125).to_bytes(2, "big")).decode()}
    for number, op in enumerate("cuc", 1):
        topics.send("t", [postgres_event(op, number, {"id": str(number // 2), **row, **amount}, tx=number)])
        assert turns.round().rows == 1

    first, second = turns.rows()
    assert (first["_event_lsn"], second["_event_lsn"]) == (1, 3)
    assert (second["at"].isoformat(), second["zoned"].isoformat()) == (
        "2025-03-08T06:30:00.000001",
        "2025-03-09T02:30:00.500000+00:00",
    )
    assert (second["amount"], second["raw"], second["day"].isoformat()) == (Decimal("1.25"), b"\xff", "2024-10-04")


# ---- operations


@pytest.mark.parametrize("scd_type", [1, 2])
def test_change_events_are_applied_on_spark_as_by_one_process(
    spark: SparkSession, tmp_path: Path, scd_type: int
) -> None:
    left_out = "op" if scd_type == 1 else "op,ts"
    words = {"keys": "id", "sequence.by": "ts", "as.deletes": "op = 'd'", "except.column.list": left_out}
    more: dict[str, object] = {APPLY + name: text for name, text in words.items()}
    settings = {**files(tmp_path), **more, f"{APPLY}scd.type": scd_type}
    settings.pop("record_key")
    turns = Turns(tmp_path, spark, settings, **BY_TASKS)

    put(tmp_path, "a", {"id": 1, "v": "a", "ts": 1, "op": "u"}, {"id": 2, "v": "b", "ts": 5, "op": "d"}, second=1)
    put(tmp_path, "b", {"id": 3, "v": "x", "ts": 1, "op": "u"}, {"id": 3, "v": "y", "ts": 1, "op": "u"}, second=2)
    assert turns.round().rows == 4
    put(tmp_path, "c", {"id": 1, "v": "c", "ts": 4}, {"id": 2, "v": "late", "ts": 3}, second=3)
    assert turns.round().rows == 2
    put(tmp_path, "d", "{broken", second=4)  # no row at all
    assert turns.round().rejected == 1
    put(tmp_path, "e", {"id": 1, "v": "late", "ts": 2, "op": "u"}, {"id": None, "v": "x", "ts": 9, "op": "u"}, second=5)
    assert turns.round().rejected == 1
    put(tmp_path, "f", {"id": 4, "v": "no sequence"}, second=6)
    put(tmp_path, "g", {"id": 3, "ts": 2, "op": "d"}, {"id": 5, "v": "e", "ts": 6, "late": 1.5}, second=7)
    assert turns.round().rows == 2

    found = turns.rows()
    if scd_type == 1:
        assert [(row["id"], row["v"], row["ts"], row["late"]) for row in found] == [(1, "c", 4, None), (5, "e", 6, 1.5)]
    else:
        history = sorted((row["id"], row["__START_AT"], row["__END_AT"], row["v"]) for row in found)
        assert history == [
            (1, 1, 2, "a"), (1, 2, 4, "late"), (1, 4, None, "c"), (2, 3, 5, "late"), (3, 1, 2, "y"), (5, 6, None, "e"),
        ]  # fmt: skip
    assert len(turns.aside()) == 3


def test_queries_that_leave_rows_out_and_add_some_are_those_of_one_process(spark: SparkSession, tmp_path: Path) -> None:
    query = (
        "SELECT id * 10 + n AS id, n, CAST(at AS TIMESTAMP) AS at, price * 2 AS price FROM "
        "(SELECT id, at, CAST(p AS DECIMAL(9, 2)) AS price, explode(v) AS n FROM <SRC> WHERE p > 0) "
        "UNION ALL SELECT id, 0, NULL, NULL FROM <SRC>"
    )
    settings = files(tmp_path, **SQL, op="INSERT", **{"hoodie.streamer.transformer.sql": query})
    turns = Turns(tmp_path, spark, settings, **BY_TASKS)
    at = "2025-03-09T02:30:00Z"
    put(tmp_path, "a", {"id": 1, "at": at, "p": 1.5, "v": [1, 2]}, {"id": 2, "at": at, "p": 2.5, "v": []}, second=1)
    put(tmp_path, "b", {"id": 3, "at": at, "p": -1.5, "v": [7]}, {"id": None, "at": at, "p": 1.0, "v": [7]}, second=2)
    done = turns.round()
    put(tmp_path, "c", {"id": 4, "at": at, "p": 1.5, "v": [1]}, second=3)
    turns.round()

    assert (done.rows, done.rejected) == (5, 2)
    assert [row["id"] for row in turns.rows()] == [1, 11, 12, 2, 3, 4, 41]
    assert (turns.rows()[1]["at"].isoformat(), turns.rows()[1]["price"]) == (
        "2025-03-09T02:30:00+00:00",
        Decimal("3.00"),
    )
    assert len(turns.aside()) == 2


# ---- rows and columns


def test_a_table_with_columns_of_types_that_spark_lacks_goes_on_in_turns(spark: SparkSession, tmp_path: Path) -> None:
    def typed(*ids: int) -> pa.Table:
        inner = pa.struct([pa.field("x", pa.decimal128(9, 2), nullable=False)])
        return pa.table({
            "id": list(ids),
            "ms": pa.array([1, None], pa.timestamp("ms", "UTC")),
            "s": pa.array([-1, None], pa.timestamp("s")),
            "fixed": pa.array([b"ab", None], pa.binary(2)),
            "byte": pa.array([255, None], pa.uint8()),
            "pairs": pa.array([[("k", {"x": Decimal("1.50")})], None], pa.map_(pa.string(), inner)),
            "list": pa.array([[{"x": Decimal("-1.50")}, None], []], pa.list_(inner)),
        })  # fmt: skip

    turns = Turns(tmp_path, spark, files(tmp_path, "ParquetDFSSource"), **BY_TASKS)
    for number in range(3):
        put(tmp_path, f"f{number}", typed(2 * number, 2 * number + 1), second=number)
        assert turns.round().rows == 2

    found = turns.rows(has_sparks_types=True)
    assert [row["fixed"] for row in found] == [b"ab", None] * 3
    kinds = {name: HudiTable.open(tmp_path / name).schema() for name in ("one", "other")}
    assert [str(kinds[name].field("fixed").type) for name in kinds] == ["fixed_size_binary[2]", "binary"]
    # A table that this process made goes on, too.
    turns = Turns(tmp_path / "again", spark, {**files(tmp_path, "ParquetDFSSource")})
    turns._rounds = 1
    turns.round()
    put(tmp_path, "f3", typed(6, 7), second=3)
    assert turns.round().rows == 2
    assert len(turns.rows()) == 8


def test_what_does_not_fit_has_the_same_places_whatever_columns_other_parts_have(
    spark: SparkSession, tmp_path: Path
) -> None:
    turns = Turns(tmp_path, spark, files(tmp_path))
    put(tmp_path, "a", "{broken", "[]", second=1)  # there is no table yet
    done = turns.round()
    assert (done.rows, done.rejected, done.commits) == (0, 2, 0)
    put(tmp_path, "b", {"v": 3, "w": "x"}, second=2)
    put(tmp_path, "c", {"id": 1, "v": 2.5, "late": {"deep": 1}}, second=3)
    put(tmp_path, "d", {"id": None, "late": {"deep": 2, "other": 1.5}, "tags": ["a"]}, second=4)
    turns.round()
    assert [position[:4] for position, _ in turns.aside()] == ["Json", "Json", "a:1", "a:2"]


def test_parts_with_other_types_in_a_column_that_the_table_lacks_bring_the_rows_of_the_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    turns = Turns(tmp_path, spark, files(tmp_path))
    put(tmp_path, "c", {"id": 1}, second=3)
    turns.round()
    turns._rounds = 0
    for name, value in (("e", [1]), ("f", "text")):
        put(tmp_path, name, {"id": 2, "new": value}, second=5)
    done = turns.round(is_cut=True)

    assert (done.rows, done.rejected, done.checkpoint) == (1, 1, "1700000005000")
    assert [(row["id"], row["new"]) for row in turns.rows()] == [(1, None), (2, [1])]
    for name in ("one-aside", "other-aside"):  # the whole file, or its line as the table has the column by then
        aside = HudiTable.open(tmp_path / name).scan(["position"]).to_arrow().to_pylist()
        assert [row["position"][:1] for row in aside] == ["f"]


def test_the_order_of_rows_is_that_of_the_source_however_many_parts_there_are(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyhudi.spark.engine, "_PICKLED_BYTES", 0)
    for number in range(12):
        put(tmp_path, f"f{number:02}", {"id": 1, "v": number}, {"id": 2, "v": -number}, second=number)
    mode = {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}
    for more in ({}, BY_TASKS):
        turns = Turns(tmp_path / str(len(more)), spark, files(tmp_path, **mode), **more)
        turns.round()
        assert turns.rows() == [{"id": 1, "v": 11}, {"id": 2, "v": -11}]


lost: list[Callable[[], object]] = []


def losing(frame: Any) -> Any:
    frame.sparkSession.catalog.clearCache()
    for call in lost:
        call()
    return frame.repartition(3)


@pytest.mark.parametrize("more", [{}, BY_TASKS], ids=["here", "by tasks"])
def test_rows_that_spark_loses_are_fetched_again_and_must_be_as_many(
    spark: SparkSession, tmp_path: Path, more: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "a", *({"id": number} for number in range(5)), second=1)
    put(tmp_path, "b", {"id": 7}, second=2)
    settings = {**files(tmp_path), **more, "target-base-path": str(tmp_path / "t"), "op": "INSERT"}
    settings["transformer-class"] = f"{__name__}:losing"

    assert Streamer(settings, spark=spark).run().rows == 6
    assert len(stored(tmp_path / "t")[1]) == 6
    put(tmp_path, "c", {"id": 8}, {"id": 9}, second=3)
    monkeypatch.setattr(f"{__name__}.lost", [lambda: put(tmp_path, "c", {"id": 8}, second=3)])
    with pytest.raises((StorageError, SchemaMismatch), match="Spark had lost its rows, and has 0 rows instead of 2"):
        Streamer(settings, spark=spark).run()
    assert len(stored(tmp_path / "t")[1]) == 6
    monkeypatch.setattr(f"{__name__}.lost", [])
    assert Streamer(settings, spark=spark).run().rows == 1


def twice(frame: Any) -> Any:
    return frame.selectExpr("*", "v AS V", "v AS v")


def test_a_transformer_that_gives_a_column_twice_is_refused_by_its_name(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, "a", {"id": 1, "v": 1}, second=1)
    settings = {**files(tmp_path), "target-base-path": str(tmp_path / "t"), "transformer-class": f"{__name__}:twice"}

    with pytest.raises(SchemaMismatch, match="several columns called v"):
        Streamer(settings, spark=spark).run()
