"""Avro: containers, schemas, and records that log blocks hold."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from fuzz.golden import golden_files
from fuzz.mutation import Mutator, json_shape
from fuzz.target import Target
from pyhudi.errors import HudiError
from pyhudi.formats.avro.container import encode_container
from pyhudi.formats.avro.decode import AvroDecoder
from pyhudi.formats.avro.encode import AvroEncoder
from pyhudi.formats.avro.schema import arrow_from_avro, avro_from_arrow
from pyhudi.formats.protobuf import varint
from pyhudi.formats.timeline.instant_files import decode_avro_record

__all__ = ["HOSTILE_SCHEMAS", "ROWS", "SCHEMA", "container_of"]

_COLUMNS = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int32()),
        ("ts", pa.int64()),
        ("x", pa.float64()),
        ("ok", pa.bool_()),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.field("element", pa.string()))),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("place", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
    ]
)
SCHEMA = avro_from_arrow(_COLUMNS, "trips", with_meta=True)


def _rows() -> pa.RecordBatch:
    full = {
        "n": 1, "ts": 2, "x": 1.5, "ok": True, "day": 3, "raw": b"\x00\xff", "tags": ["a", None, "ü"], "m": [("k", 1)],
        "place": {"city": "c", "zip": 5},
    }  # fmt: skip
    rows = [{"_hoodie_record_key": f"k{n}", "_hoodie_partition_path": "p", "id": f"k{n}", **full} for n in range(3)]
    rows.append({"_hoodie_record_key": "k3", "_hoodie_partition_path": "p", "id": "k3"})
    return pa.RecordBatch.from_pylist(rows, arrow_from_avro(SCHEMA))


ROWS = _rows()


def _record(name: str, *fields: object) -> dict[str, object]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": f"f{i}", "type": kind} for i, kind in enumerate(fields)],
    }


def _doubling(levels: int) -> dict[str, object]:
    inner: object = "string"
    for level in range(levels):
        record = _record(f"L{level}", inner, f"L{level - 1}" if level else "string")
        inner = record
    return _record("Root", inner)


def _deep(levels: int) -> object:
    inner: object = "string"
    for _ in range(levels):
        inner = {"type": "array", "items": inner}
    return inner


HOSTILE_SCHEMAS: tuple[str, ...] = tuple(
    json.dumps(schema)
    for schema in (
        _record("R", "R"),
        _record("R", ["null", "R"]),
        _record("R", {"type": "array", "items": "R"}),
        _record("A", _record("B", "A")),
        _doubling(8),
        _doubling(24),
        _record("R", _deep(90)),
        _record("R", _deep(900)),
        _record("R", {"type": "array", "items": _record("E")}),
        _record("R", {"type": "array", "items": "null"}),
        _record("R", {"type": "fixed", "name": "F", "size": 2**31 - 1}),
        _record("R", {"type": "fixed", "name": "F", "size": -1}),
        _record("R", {"type": "bytes", "logicalType": "decimal", "precision": 10**9, "scale": 10**9}),
        _record("R", {"type": "enum", "name": "E", "symbols": []}),
        _record("R", ["string", "int", "null", "long"]),
        _record("R", {"type": {"type": {"type": "string"}}}),
        _record("R", *["string"] * 3000),
        {**_record("R", "string"), "name": "\ud800"},
        {**_record("R", "string"), "namespace": 5},
    )
)


def container_of(schema: str, record: bytes) -> bytes:
    """A container with one record, whatever the schema is."""
    sync = bytes(range(16))
    text = schema.encode()
    head = b"".join((b"Obj\x01", varint(2), varint(22), b"avro.schema", varint(len(text) * 2), text, varint(0), sync))
    return b"".join((head, varint(2), varint(len(record) * 2), record, sync))


def _schema(data: bytes) -> None:
    """A schema, and records of zeros under it."""
    text = data.decode("utf-8", "replace")
    arrow_from_avro(text)
    for content in (b"\x00" * 64, b"\x02" * 64):
        try:
            AvroDecoder(text).decode(content, np.array([0]), np.array([len(content)]))
        except HudiError:
            continue


def _schema_shape(data: bytes, mutator: Mutator) -> bytes:
    if mutator.random.random() < 0.2:
        return mutator.random.choice(HOSTILE_SCHEMAS).encode()
    return json_shape(data, mutator)


def _records(data: bytes) -> None:
    """One record under a schema that is right."""
    AvroDecoder(SCHEMA).decode(data, np.array([0]), np.array([len(data)]))
    AvroDecoder(SCHEMA, ["ts", "m"]).decode(data, np.array([0]), np.array([len(data)]))


def _record_seeds() -> list[bytes]:
    return [value.as_py() for value in AvroEncoder(SCHEMA).encode(ROWS)]


def _containers() -> list[bytes]:
    small = json.dumps(_record("R", "string", "long", {"type": "array", "items": "string"}))
    return [encode_container(small, {"f0": "a", "f1": 5, "f2": ["b", "c"]}), *golden_files(r"\.hoodie/.*\.clean")]


def _container_shape(data: bytes, mutator: Mutator) -> bytes:
    record = data[-30:-16]
    return container_of(mutator.random.choice((*HOSTILE_SCHEMAS, SCHEMA)), mutator.damaged(record))


_WORDS = (
    b'"null"',
    b'{"type":"array","items":"null"}',
    b'"fields":[]',
    b"[" * 3000,
    b"9" * 5000,
    b"\\ud800",
    b'"logicalType":',
)

TARGETS = (
    Target(
        "avro-containers", decode_avro_record, _containers, (_container_shape,), (b"Obj\x01", b"avro.codec", b"deflate")
    ),
    Target("avro-schemas", _schema, lambda: [SCHEMA.encode()], (_schema_shape,), _WORDS),
    Target(
        "avro-records",
        _records,
        _record_seeds,
        words=(b"\x80" * 10, b"\xff" * 9 + b"\x01", b"\x01", b"\xfe\xff\xff\xff\x0f"),
    ),
)
