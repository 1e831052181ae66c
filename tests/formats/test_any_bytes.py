"""Every decoder, given any bytes or a changed valid input, returns a value or raises a HudiError."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi.errors import HudiError
from pyhudi.filegroup.read.log_blocks import BlockRules, blocks_of
from pyhudi.formats.avro.container import decode_container
from pyhudi.formats.avro.decode import AvroDecoder
from pyhudi.formats.avro.schema import arrow_from_avro, avro_from_arrow
from pyhudi.formats.base import BaseFileOptions, Footer, new_base_file, open_base_file
from pyhudi.formats.bloom import DYNAMIC_V0, SIMPLE, BloomFilter
from pyhudi.formats.hash_ring import decode_nodes, decode_ring, encode_ring, initial_ring
from pyhudi.formats.hfile import HFileReader, HFileWriter
from pyhudi.formats.hfile.trailer import decode_file_info, encode_file_info
from pyhudi.formats.log.blocks import avro_data, delete, hfile_data, parquet_data
from pyhudi.formats.log.envelope import BlockType, CorruptRange, HeaderKey, encode_block
from pyhudi.formats.log.positions import encode_positions, positions_of
from pyhudi.formats.log.reader import scan_log
from pyhudi.formats.log.writer import data_block
from pyhudi.formats.protobuf import message_fields
from pyhudi.formats.timeline.instant_files import encode_commit
from pyhudi.formats.timeline.schemas import body_schema
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import ActionKind
from pyhudi.schema.internal import decode_history
from pyhudi.storage.memory import MemoryStorage
from tests.support.sweeps import examples

KIND = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])
COLUMNS = pa.schema(
    [
        ("_hoodie_record_key", pa.string()), ("n", pa.int64()), ("d", pa.decimal128(9, 2)),
        ("t", pa.timestamp("us", "UTC")), ("s", KIND), ("m", pa.map_(pa.string(), pa.float64())),
        ("b", pa.binary()), ("day", pa.date32()),
    ]
)  # fmt: skip
SCHEMA = avro_from_arrow(COLUMNS, "trips", with_meta=True)


@cache
def rows() -> pa.RecordBatch:
    row = {
        "n": 5, "d": None, "s": {"x": 1, "y": ["a", None]}, "m": [("k", 1.5)], "b": b"\x00", "day": None, "t": None,
    }  # fmt: skip
    data = [{**row, "_hoodie_record_key": f"k{n}"} if n else {"_hoodie_record_key": "k"} for n in range(3)]
    return pa.RecordBatch.from_pylist(data, arrow_from_avro(SCHEMA))


def delete_content() -> bytes:
    keys = pa.RecordBatch.from_pylist(
        [{"_hoodie_record_key": f"k{n}", "_hoodie_partition_path": "p"} for n in range(3)]
    )
    return delete.encode(keys, [pa.array([5, None, 7]), pa.array(["a", None, "b"])])


def log_file() -> bytes:
    header = {HeaderKey.INSTANT_TIME: "20240101000000000", HeaderKey.RECORD_POSITIONS: encode_positions(np.arange(3))}
    blocks = [data_block(rows(), SCHEMA, kind, header) for kind in ("avro", "parquet", "hfile")]
    return b"".join([*blocks, encode_block(BlockType.DELETE, header, delete_content())])


def read_log(data: bytes) -> None:
    storage = MemoryStorage()
    storage.write("log", data)
    found = list(scan_log(storage, "log"))
    for block in blocks_of(found, BlockRules(8, lambda _: True)):
        records = block.deletes().keys if block.is_delete else block.rows()
        block.positions("", records)
    assert sum(isinstance(block, CorruptRange) for block in found) <= len(data) // 6 + 1


def base_file(name: str) -> bytes:
    storage = MemoryStorage()
    columns = rows().select([n for n in rows().schema.names if n not in {"m", "t"}])
    file_format = "ORC" if name.endswith("orc") else "PARQUET"
    writer = new_base_file(storage, name, columns.schema, BaseFileOptions(format=file_format))
    writer.write(pa.Table.from_batches([columns]).cast(writer._schema))  # type: ignore[attr-defined]
    writer.close(Footer("a", "b", "AAAA", DYNAMIC_V0, SCHEMA))
    return storage.read(name)


def read_base(name: str) -> Callable[[bytes], object]:
    def read(data: bytes) -> None:
        storage = MemoryStorage()
        storage.write(name, data)
        with open_base_file(storage, name) as reader:
            _ = (
                reader.footer,
                reader.num_rows,
                reader.plain_bytes,
                reader.low_cardinality_columns(),
                reader.plain_columns(),
            )
            for batch in reader.batches(["_hoodie_record_key", "n", "s"], may_match=lambda ranges: bool(ranges)):
                batch.validate()

    return read


def hfile() -> bytes:
    sink = io.BytesIO()
    writer = HFileWriter(sink, info={"schema": SCHEMA.encode()}, block_bytes=50)
    writer.append((f"k{n:03d}".encode(), b"v") for n in range(20))
    writer.put_meta("bloomFilter", b"x" * 30)
    writer.close()
    return sink.getvalue()


def read_hfile(data: bytes) -> None:
    reader = HFileReader(pa.BufferReader(data), "x")
    _ = reader.schema_json, reader.meta_block("bloomFilter")
    list(reader.lookup([b"k003", b"k019", b""]))
    list(reader.with_prefixes([b"k00", b"k01"]))
    for entries in reader.scan():
        _ = entries.keys, entries.values()


def bloom(kind: str) -> bytes:
    return base64.b64decode(BloomFilter.build(pa.array(["a", "b", "c"]), 2, 0.1, kind, 10).to_base64())


def read_bloom(kind: str) -> Callable[[bytes], object]:
    keys = pa.array(["a", "xyz"])
    return lambda data: BloomFilter.from_base64(base64.b64encode(data).decode(), kind).might_contain(keys)


def avro_record(data: bytes) -> None:
    AvroDecoder(SCHEMA).decode(data, np.array([0]), np.array([len(data)])).validate(full=True)


ELEMENTS = {"type": "array", "element_id": 2, "element": "fixed[3]"}
FIELDS = [
    {"id": 0, "name": "a", "optional": True, "type": "decimal(9, 2)"},
    {"id": 1, "name": "b", "optional": False, "type": ELEMENTS},
]
HISTORY = json.dumps({"schemas": [{"max_column_id": 2, "version_id": 1, "type": "record", "fields": FIELDS}]}).encode()


@dataclass(frozen=True)
class Decoder:
    """A decoder under test: how a valid input is made, and everything that a reader does with it."""

    make: Callable[[], bytes]
    read: Callable[[bytes], object]


def _history(data: bytes) -> None:
    for schema in decode_history(data):
        schema.to_arrow()


DECODERS = {
    "container": Decoder(
        lambda: encode_commit(CommitMetadata({}, {"schema": SCHEMA}), ActionKind.COMMIT, 9),
        lambda data: decode_container(data, "x", body_schema("HoodieCommitMetadata")),
    ),
    "schema": Decoder(SCHEMA.encode, lambda data: AvroDecoder(data.decode("utf-8", "replace"))),
    "record": Decoder(lambda: avro_data.encode(rows().slice(1, 1), SCHEMA)[12:], avro_record),
    "avro block": Decoder(lambda: avro_data.encode(rows(), SCHEMA), lambda data: avro_data.decode(data, SCHEMA)),
    "parquet block": Decoder(
        lambda: parquet_data.encode(rows(), SCHEMA), lambda data: parquet_data.decode(data, SCHEMA)
    ),
    "hfile block": Decoder(lambda: hfile_data.encode(rows(), SCHEMA), lambda data: hfile_data.decode(data, SCHEMA)),
    "delete block": Decoder(delete_content, delete.decode),
    "log": Decoder(log_file, read_log),
    "positions": Decoder(
        lambda: base64.b64decode(encode_positions(np.array([1, 5, 70_000, 1 << 33]))),
        lambda data: positions_of(4, base64.b64encode(data).decode(), "x"),
    ),
    "positions as text": Decoder(
        lambda: encode_positions(np.array([1, 5])).encode(), lambda data: positions_of(2, data.decode("latin-1"), "x")
    ),
    "hfile": Decoder(hfile, read_hfile),
    "file info": Decoder(lambda: encode_file_info({"a": b"b", "c": b""}), lambda data: decode_file_info(data, "x")),
    "protobuf": Decoder(lambda: b"\x08\x01\x12\x03abc", lambda data: list(message_fields(data, "x"))),
    "bloom": Decoder(lambda: bloom(DYNAMIC_V0), read_bloom(DYNAMIC_V0)),
    "simple bloom": Decoder(lambda: bloom(SIMPLE), read_bloom(SIMPLE)),
    "ring": Decoder(lambda: encode_ring(initial_ring("p", 3)), lambda data: encode_ring(decode_ring(data, "x"))),
    "nodes": Decoder(
        lambda: b'[{"value":3,"fileIdPrefix":"a","tag":"NORMAL"}]',
        lambda data: decode_nodes(data.decode("utf-8", "replace"), "x"),
    ),
    "schema history": Decoder(lambda: HISTORY, _history),
    "parquet": Decoder(lambda: base_file("a.parquet"), read_base("a.parquet")),
    "orc": Decoder(lambda: base_file("a.orc"), read_base("a.orc")),
}  # fmt: skip

INTERESTING = (b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x00" * 8, b"\xff" * 9,
               b'"\\ud800"', b"null", b"[", b"{}", b"1e999", b"-1", b"9" * 5000)  # fmt: skip
# Where, how many bytes go, what comes instead.
CHANGES = st.lists(
    st.tuples(
        st.integers(0, 1 << 16), st.sampled_from([0, 1, 1, 1, 2, 4, 8, 100]),
        st.one_of(st.sampled_from(INTERESTING), st.binary(max_size=4)),
    ),
    min_size=1, max_size=4,
)  # fmt: skip
MANY = settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))


def changed(data: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    for place, gone, instead in changes:
        at = place % (len(data) + 1)
        data = data[:at] + instead + data[at + gone :]
    return data


def assert_of_the_family(decoder: Decoder, data: bytes) -> None:
    try:
        decoder.read(data)
    except HudiError as error:
        str(error).encode()  # a message that can't be printed is a foreign error elsewhere


@cache
def valid(name: str) -> bytes:
    return DECODERS[name].make()


@pytest.mark.parametrize("name", DECODERS)
def test_the_valid_input_is_read(name: str) -> None:
    DECODERS[name].read(valid(name))


@pytest.mark.parametrize("name", DECODERS)
@MANY
@given(changes=CHANGES)
def test_a_changed_input_is_read_or_refused(name: str, changes: list[tuple[int, int, bytes]]) -> None:
    assert_of_the_family(DECODERS[name], changed(valid(name), changes))


@pytest.mark.parametrize("name", DECODERS)
@MANY
@given(data=st.binary(max_size=300), head=st.integers(0, 40))
def test_any_bytes_are_read_or_refused(name: str, data: bytes, head: int) -> None:
    assert_of_the_family(DECODERS[name], valid(name)[:head] + data)
