"""Protobuf values of Kafka: columns as Hudi has them, schemas of a registry as bytes and as text, classes by name."""

from __future__ import annotations

import datetime
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Streamer
from pyhudi.errors import ConfigError, MissingLibrary, SchemaMismatch
from pyhudi.model.options.streamer.protobuf import ProtobufOptions
from tests.support.registry import registry_of

pytest.importorskip("google.protobuf")
kafka = pytest.importorskip("confluent_kafka")
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2, wrappers_pb2  # noqa: E402

from pyhudi.streamer.sources.kafka.protobuf_columns import MessageColumns  # noqa: E402

CLASS = "hoodie.streamer.schemaprovider.proto.class.name"
DESCRIPTORS = "hoodie.pyhudi.streamer.proto.descriptor.file"
TEXT = """
syntax = "proto3";
package shop;
option java_package = "com.acme";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Order {
  string id = 1; int64 ts = 2; uint32 count = 3; uint64 big = 4; fixed32 f32 = 5; bool ok = 6; double price = 7;
  bytes raw = 8;
  enum Kind { UNKNOWN = 0; SALE = 1; }
  Kind kind = 9;
  google.protobuf.Timestamp at = 10;
  google.protobuf.Int64Value maybe = 11;
  google.protobuf.UInt64Value maybe_big = 12;
  message Line { string sku = 1; int32 n = 2; }
  repeated Line lines = 13;
  Line first = 14;
  oneof pay { string card = 15; Line voucher = 16; }
  optional int32 rank = 17;
  map<string, Line> by_name = 18;
  repeated string tags = 19;
  Order parent = 20;
  repeated Kind kinds = 21;
}
message Refund { string id = 1; }
"""
# The text as protoc makes a file of it: a test compares them.
COMPILED = (
    "CgxzY2hlbWEucHJvdG8SBHNob3AaH2dvb2dsZS9wcm90b2J1Zi90aW1lc3RhbXAucHJvdG8aHmdvb2dsZS9wcm90b2J1Zi93cmFw"
    "cGVycy5wcm90byK9BgoFT3JkZXISDgoCaWQYASABKAlSAmlkEg4KAnRzGAIgASgDUgJ0cxIUCgVjb3VudBgDIAEoDVIFY291bnQS"
    "EAoDYmlnGAQgASgEUgNiaWcSEAoDZjMyGAUgASgHUgNmMzISDgoCb2sYBiABKAhSAm9rEhQKBXByaWNlGAcgASgBUgVwcmljZRIQ"
    "CgNyYXcYCCABKAxSA3JhdxIkCgRraW5kGAkgASgOMhAuc2hvcC5PcmRlci5LaW5kUgRraW5kEioKAmF0GAogASgLMhouZ29vZ2xl"
    "LnByb3RvYnVmLlRpbWVzdGFtcFICYXQSMQoFbWF5YmUYCyABKAsyGy5nb29nbGUucHJvdG9idWYuSW50NjRWYWx1ZVIFbWF5YmUS"
    "OQoJbWF5YmVfYmlnGAwgASgLMhwuZ29vZ2xlLnByb3RvYnVmLlVJbnQ2NFZhbHVlUghtYXliZUJpZxImCgVsaW5lcxgNIAMoCzIQ"
    "LnNob3AuT3JkZXIuTGluZVIFbGluZXMSJgoFZmlyc3QYDiABKAsyEC5zaG9wLk9yZGVyLkxpbmVSBWZpcnN0EhQKBGNhcmQYDyAB"
    "KAlIAFIEY2FyZBIsCgd2b3VjaGVyGBAgASgLMhAuc2hvcC5PcmRlci5MaW5lSABSB3ZvdWNoZXISFwoEcmFuaxgRIAEoBUgBUgRy"
    "YW5riAEBEjAKB2J5X25hbWUYEiADKAsyFy5zaG9wLk9yZGVyLkJ5TmFtZUVudHJ5UgZieU5hbWUSEgoEdGFncxgTIAMoCVIEdGFn"
    "cxIjCgZwYXJlbnQYFCABKAsyCy5zaG9wLk9yZGVyUgZwYXJlbnQSJgoFa2luZHMYFSADKA4yEC5zaG9wLk9yZGVyLktpbmRSBWtp"
    "bmRzGiYKBExpbmUSEAoDc2t1GAEgASgJUgNza3USDAoBbhgCIAEoBVIBbhpLCgtCeU5hbWVFbnRyeRIQCgNrZXkYASABKAlSA2tl"
    "eRImCgV2YWx1ZRgCIAEoCzIQLnNob3AuT3JkZXIuTGluZVIFdmFsdWU6AjgBIh0KBEtpbmQSCwoHVU5LTk9XThAAEggKBFNBTEUQ"
    "AUIFCgNwYXlCBwoFX3JhbmsiGAoGUmVmdW5kEg4KAmlkGAEgASgJUgJpZEIKCghjb20uYWNtZWIGcHJvdG8z"
)


def message_of(name: str, data: bytes) -> Any:
    """The class of a message of a serialised file."""
    pool = descriptor_pool.DescriptorPool()
    for module in (timestamp_pb2, wrappers_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(data)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def file_of(text: str = COMPILED) -> descriptor_pb2.FileDescriptorProto:
    return descriptor_pb2.FileDescriptorProto.FromString(b64decode(text))


Order = message_of("shop.Order", file_of().SerializeToString())
FULL: Mapping[str, Any] = {
    "id": "a", "ts": 5, "count": 4_000_000_000, "big": 2**64 - 1, "f32": 7, "ok": True, "price": 0.5, "raw": b"\0\xff",
    "kind": 1, "maybe": {"value": 0}, "maybe_big": {"value": 2**63}, "lines": [{"sku": "x", "n": 1}, {}],
    "first": {"sku": "y"}, "voucher": {"n": 3}, "rank": 0, "by_name": {"b": {"n": 2}, "a": {"n": 1}}, "tags": ["t", ""],
    "parent": {"id": "p"}, "kinds": [1, 7],
}  # fmt: skip


def order(**fields: Any) -> Any:
    made = Order(**fields)
    if fields is not FULL and "at" not in fields and "id" in fields:
        made.at.seconds, made.at.nanos = 1764000000, 123456789
    return made


def one(message: Any, **options: Any) -> dict[str, Any]:
    columns = MessageColumns(Order.DESCRIPTOR, ProtobufOptions(**options))
    (row,) = columns.decode([message.SerializeToString()]).to_pylist()
    return row


def test_columns_are_those_of_hudis_conversion() -> None:
    types = {field.name: field.type for field in MessageColumns(Order.DESCRIPTOR, ProtobufOptions()).schema}
    line = pa.struct([("sku", pa.string()), ("n", pa.int32())])

    expected = {
        "id": pa.string(), "ts": pa.int64(), "count": pa.int64(), "big": pa.decimal128(21, 0), "f32": pa.int32(),
        "ok": pa.bool_(), "price": pa.float64(), "raw": pa.binary(), "kind": pa.string(), "rank": pa.int32(),
        "at": pa.timestamp("us", "UTC"), "maybe": pa.int64(), "maybe_big": pa.decimal128(21, 0), "first": line,
        "lines": pa.list_(line), "card": pa.string(), "voucher": line, "tags": pa.list_(pa.string()),
        "by_name": pa.list_(pa.struct([("key", pa.string()), ("value", line)])), "kinds": pa.list_(pa.string()),
    }  # fmt: skip
    assert {name: kind for name, kind in types.items() if name != "parent"} == expected


def test_values_are_those_of_the_message() -> None:
    row = one(order(**FULL))
    at = datetime.datetime(2025, 11, 24, 16, 0, 0, 123456, tzinfo=datetime.timezone.utc)

    assert (row["count"], row["big"], row["f32"]) == (4_000_000_000, Decimal(2**64 - 1), 7)
    assert (row["maybe"], row["maybe_big"], row["at"]) == (0, Decimal(2**63), at)
    assert (row["kind"], row["kinds"]) == ("SALE", ["SALE", "UNKNOWN_ENUM_VALUE_Kind_7"])
    assert row["lines"] == [{"sku": "x", "n": 1}, {"sku": "", "n": 0}]
    assert (row["first"], row["card"], row["voucher"], row["rank"]) == (
        {"sku": "y", "n": 0},
        None,
        {"sku": "", "n": 3},
        0,
    )
    assert row["by_name"] == [{"key": "a", "value": {"sku": "", "n": 1}}, {"key": "b", "value": {"sku": "", "n": 2}}]
    assert row["parent"]["id"] == "p"
    assert row["parent"]["parent"] is None


def test_a_message_without_values_has_defaults_and_nulls_for_messages_oneofs_and_optional_fields() -> None:
    row = one(Order())
    nulls = {name for name, value in row.items() if value is None}

    assert nulls == {"at", "maybe", "maybe_big", "first", "card", "voucher", "rank", "parent"}
    assert (row["id"], row["ts"], row["kind"], row["raw"], row["lines"]) == ("", 0, "UNKNOWN", b"", [])


def test_wrappers_and_timestamps_are_structs_where_the_options_say_so() -> None:
    row = one(order(**FULL), wrappers_as_records=True, timestamps_as_records=True)

    assert row["maybe"] == {"value": 0}
    assert row["at"] == {"seconds": 1764000000, "nanos": 123456789}


def test_a_message_inside_itself_ends_as_bytes_at_the_depth_of_the_options() -> None:
    inner = Order(id="deep")
    row = one(Order(id="top", parent=Order(id="mid", parent=inner)), recursion_max=2)

    below = row["parent"]["parent"]
    assert (row["parent"]["id"], below["descriptor_full_name"]) == ("mid", "shop.Order")
    assert Order.FromString(below["proto_bytes"]).id == "deep"


def test_a_fixed_number_that_javas_int_would_turn_negative_is_no_row() -> None:
    with pytest.raises((pa.ArrowInvalid, OverflowError, ValueError), match="4000000000"):
        one(Order(f32=4_000_000_000))


@pytest.fixture
def send(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """A function that sends values to a topic of a mock broker and returns the configuration that reads them."""
    producer = kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "x:1"})
    broker = next(iter(producer.list_topics("orders", timeout=10).brokers.values()))

    def sent(*values: bytes, **more: object) -> dict[str, Any]:
        for value in values:
            producer.produce("orders", value, partition=0)
        assert producer.flush(10) == 0
        places = {"target-base-path": str(tmp_path / "t"), "record_key": "id", "source-class": "ProtoKafkaSource"}
        topic = {"hoodie.streamer.source.kafka.topic": "orders", "auto.offset.reset": "earliest"}
        return {**places, **topic, "bootstrap.servers": f"{broker.host}:{broker.port}", **more}

    return sent


def rows(tmp_path: Path) -> list[dict[str, Any]]:
    found = HudiTable.open(tmp_path / "t").scan(meta_columns=False).to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["id"])


def framed(schema_id: int, message: Any, place: bytes = b"\0") -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + place + message.SerializeToString()


def test_a_class_of_a_python_module_reads_messages_alone_and_the_provider_has_its_columns(
    send: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("shop_pb2_of_test")
    module.Order = Order  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    quarantine = {"hoodie.errortable.enable": True, "hoodie.errortable.base.path": str(tmp_path / "q")}
    offsets = {"hoodie.streamer.source.kafka.append.offsets": True, "hoodie.pyhudi.streamer.quarantine.max.share": 0.5}
    provider = {"schemaprovider-class": "org.apache.hudi.utilities.schema.ProtoClassBasedSchemaProvider"}
    values = [order(id="a", ts=1).SerializeToString(), b"\xffbroken", order(id="b").SerializeToString()]

    settings = send(*values, **{CLASS: f"{module.__name__}:Order"}, **quarantine, **offsets)
    done = Streamer(settings).run()
    assert (done.rows, done.rejected) == (2, 1)
    assert [(row["id"], row["ts"], row["_hoodie_kafka_source_offset"]) for row in rows(tmp_path)] == [
        ("a", 1, 0), ("b", 0, 2)
    ]  # fmt: skip
    aside = HudiTable.open(tmp_path / "q").scan(meta_columns=False).to_arrow().to_pylist()
    assert [(row["position"], row["reason"][:15]) for row in aside] == [("orders/0@1", "no such message")]
    other = {**settings, **provider, "target-base-path": str(tmp_path / "u")}
    assert "lines" in Streamer(other).check().columns


@pytest.mark.parametrize("name", ["shop.Order", "com.acme.Order", "com.acme.ShopProtos$Order"])
@pytest.mark.parametrize("kind", ["bytes", "text"])
def test_values_behind_a_schemas_id_are_read_by_the_registrys_schema_of_each(
    kind: str, name: str, send: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    newer = file_of()
    newer.message_type[0].field.add(name="note", number=22, type=9, label=1)
    NewOrder = message_of("shop.Order", newer.SerializeToString())  # noqa: N806
    schemas: dict[str, Any] = {"/schemas/ids/2": {"schema": b64encode(newer.SerializeToString()).decode()}}
    if kind == "text":
        pytest.importorskip("grpc_tools")
        schemas["/schemas/ids/1"] = {"schema": TEXT, "schemaType": "PROTOBUF"}
    else:
        schemas["/schemas/ids/1"] = {"schema": COMPILED}
    with registry_of(schemas) as registry:
        values = [framed(1, order(id="a")), framed(2, NewOrder(id="b", note="new")), framed(1, order(id="c"))]
        settings = send(*values, **{CLASS: name, "schema.registry.url": registry.url})
        assert Streamer(settings).run().rows == 3
    assert [(row["id"], row["note"]) for row in rows(tmp_path)] == [("a", None), ("b", "new"), ("c", None)]
    assert len([path for path in registry.asked if path.startswith("/schemas/ids/1")]) == 1


def test_a_schemas_references_are_fetched_and_the_place_of_a_nested_message_is_followed(
    send: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    inner = descriptor_pb2.FileDescriptorProto(name="any.proto", package="base")
    inner.message_type.add(name="Money").field.add(name="cents", number=1, type=3, label=1)
    outer = descriptor_pb2.FileDescriptorProto(name="o.proto", package="shop", dependency=["base/money.proto"])
    outer.message_type.add(name="First").field.add(name="x", number=1, type=3, label=1)
    sale = outer.message_type.add(name="Outer").nested_type.add(name="Sale")
    sale.field.add(name="id", number=1, type=9, label=1)
    sale.field.add(name="price", number=2, type=11, label=1, type_name=".base.Money")
    reference = {"name": "base/money.proto", "subject": "base/money", "version": 3}
    schemas = {
        "/schemas/ids/1": {"schema": b64encode(outer.SerializeToString()).decode(), "references": [reference]},
        "/subjects/base%2Fmoney/versions/3": {"schema": b64encode(inner.SerializeToString()).decode()},
    }
    value = b"\0\0\0\0\1" + b"\x04\x02\x00" + b"\n\x01k" + b"\x12\x02\x08\x07"  # two numbers: 1, 0
    with registry_of(schemas) as registry:
        settings = send(value, **{CLASS: "shop.Outer.Sale", "schema.registry.url": registry.url})
        assert Streamer(settings).run().rows == 1
    assert rows(tmp_path) == [{"id": "k", "price": {"cents": 7}}]


def test_what_is_no_message_of_the_class_is_set_aside_with_its_reason(
    send: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    schemas = {"/schemas/ids/1": {"schema": COMPILED}}
    quarantine = {"hoodie.errortable.enable": True, "hoodie.errortable.base.path": str(tmp_path / "q")}
    with registry_of(schemas) as registry:
        values = [
            framed(1, order(id="a")), b"{}", framed(1, Order(), b"\x02\x02"), framed(1, Order(), b"\x02\x08"),
            framed(5, Order()), b"\0\0\0\0\1\x06\x02",
        ]  # fmt: skip
        more = {"schema.registry.url": registry.url, "hoodie.pyhudi.streamer.quarantine.max.share": 1}
        settings = send(*values, **{CLASS: "shop.Order"}, **quarantine, **more)
        assert Streamer(settings).run().rejected == 5
    aside = HudiTable.open(tmp_path / "q").scan(meta_columns=False).to_arrow().to_pylist()
    reasons = {row["position"]: row["reason"] for row in aside}
    assert "no Protobuf of a Confluent registry" in reasons["orders/0@1"]
    assert f"the message is shop.Refund, and {CLASS} is shop.Order" in reasons["orders/0@2"]
    assert "has no message at [4]" in reasons["orders/0@3"]
    assert "answers 404" in reasons["orders/0@4"]
    assert "a place in it" in reasons["orders/0@5"]


def test_a_file_of_descriptors_has_classes_of_java(send: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    files = descriptor_pb2.FileDescriptorSet(file=[file_of()])
    (tmp_path / "shop.desc").write_bytes(files.SerializeToString())
    settings = send(order(id="a").SerializeToString(), **{DESCRIPTORS: str(tmp_path / "shop.desc")})

    assert Streamer({**settings, CLASS: "com.acme.Shop$Order"}).run().rows == 1
    with pytest.raises(
        ConfigError, match=r"com\.acme\.Gone: .*shop\.desc has the messages shop\.Order, shop\.Order\.Line"
    ):
        Streamer({**settings, CLASS: "com.acme.Gone"})


def test_what_cannot_be_read_is_refused_by_name(
    send: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for more, words in [
        ({}, r"proto\.class\.name is missing"),
        ({CLASS: "com.acme.Order"}, r"com\.acme\.Order: a class of Java can't be loaded.*module:Message"),
        ({CLASS: "json:dumps"}, r"expected a class of a message that protoc made"),
        ({CLASS: "x.Y", "hoodie.streamer.source.kafka.proto.value.deserializer.class": "io.confluent.kafka.serializers."
          "protobuf.KafkaProtobufDeserializer"}, r"schema\.registry\.url is missing"),
    ]:  # fmt: skip
        with pytest.raises(ConfigError, match=words):
            Streamer(send(**more))
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(MissingLibrary, match=r"pip install \"pyhudi\[protobuf\]\""):
        Streamer(send(**{CLASS: "shop.Order"}))


def test_a_schema_that_protoc_cannot_read_is_refused_with_its_reason(
    send: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("grpc_tools")
    with registry_of({"/schemas/ids/1": {"schema": 'syntax = "proto3"; message A { nonsense }'}}) as registry:
        settings = send(framed(1, Order()), **{CLASS: "A", "schema.registry.url": registry.url})
        with pytest.raises(SchemaMismatch, match=r"schema 1: protoc can't read the schema: schema\.proto"):
            Streamer(settings).run()


def test_the_compiled_text_of_this_file_is_that_of_protoc() -> None:
    pytest.importorskip("grpc_tools")
    from pyhudi.streamer.sources.kafka.protobuf_messages import _compiled

    assert _compiled({"schema.proto": TEXT})["schema.proto"] == file_of()
