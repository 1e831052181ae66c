"""The refusals of each codec and their messages; for every bound, a value that is still read."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

import pyarrow as pa
import pytest

from pyhudi.errors import ConfigError, CorruptFile, HudiError, SchemaMismatch, UnsupportedTable
from pyhudi.formats.avro.schema import arrow_from_avro
from pyhudi.formats.base.base import BaseFileOptions, fit
from pyhudi.formats.base.orc import OrcWriter
from pyhudi.formats.base.parquet_writer import ParquetWriter
from pyhudi.formats.hash_ring import MAX_HASH, decode_nodes, initial_ring
from pyhudi.formats.hfile.block import CODECS, DATA, META, encode_block, read_block
from pyhudi.formats.hfile.entries import MAX_KEY_BYTES
from pyhudi.formats.hfile.writer import HFileWriter
from pyhudi.formats.protobuf import message_fields, read_varint
from pyhudi.formats.timeline.bodies import Fields
from pyhudi.formats.timeline.schemas import body_schema
from pyhudi.storage.memory import MemoryStorage

ONE_COLUMN = pa.schema([("a", pa.int64())])
NONE = CODECS["none"]


def avro_column(kind: object) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": "c", "type": kind}]})


def decimal_type(precision: int, scale: int) -> dict[str, object]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def node(**fields: object) -> str:
    return json.dumps([{"value": 5, "fileIdPrefix": "00000000-aaaa", "tag": "NORMAL", **fields}])


def hfile_with_key(length: int) -> None:
    HFileWriter(io.BytesIO()).append([(b"k" * length, b"")])


def written_as(writer: Callable[..., object], codec: str) -> object:
    return writer(MemoryStorage(), "f", ONE_COLUMN, BaseFileOptions(codec=codec))


Call = Callable[[], object]
REFUSED: dict[str, tuple[Call, type[HudiError], str]] = {
    "a decimal of 39 digits": (
        partial(arrow_from_avro, avro_column(decimal_type(39, 0))), UnsupportedTable, "'c' is decimal.39, 0",
    ),
    "a decimal without digits": (partial(arrow_from_avro, avro_column(decimal_type(0, 0))), CorruptFile, "l.0, 0"),
    "a scale above the digits": (partial(arrow_from_avro, avro_column(decimal_type(5, 6))), CorruptFile, "l.5, 6"),
    "a scale below zero": (partial(arrow_from_avro, avro_column(decimal_type(5, -1))), CorruptFile, "decimal.5, -1"),
    "a union of two types": (
        partial(arrow_from_avro, avro_column(["int", "string"])), UnsupportedTable, "'c' is a union of 2 Avro types",
    ),
    "a union of three": (
        partial(arrow_from_avro, avro_column(["null", "int", "string"])), UnsupportedTable, "is a union of 3",
    ),
    "a node below the ring": (partial(decode_nodes, node(value=-1), "r"), CorruptFile, "r: a node has value -1"),
    "a node beyond the ring": (
        partial(decode_nodes, node(value=MAX_HASH + 1), "r"), CorruptFile, f"a node has value {MAX_HASH + 1}",
    ),
    "a node of another kind": (partial(decode_nodes, node(tag="ODD"), "r"), CorruptFile, "and tag 'ODD'"),
    "a node with a path": (partial(decode_nodes, node(fileIdPrefix="../a"), "r"), CorruptFile, "file id '../a'"),
    "a node with a number": (partial(decode_nodes, node(fileIdPrefix=7), "r"), CorruptFile, "file id 7"),
    "a node that is none": (partial(decode_nodes, "[5]", "r"), CorruptFile, "expected a node, found int"),
    "nodes that are no list": (partial(decode_nodes, "{}", "r"), CorruptFile, "expected a list of at most"),
    "no buckets": (partial(initial_ring, "p", 0), ConfigError, "found 0"),
    "more buckets than a ring has": (partial(initial_ring, "p", 1_000_001), ConfigError, "found 1000001"),
    "a codec that Parquet lacks": (partial(written_as, ParquetWriter, "lz5"), ConfigError, "Parquet codec 'lz5'"),
    "a codec that ORC lacks": (partial(written_as, OrcWriter, "lz5"), ConfigError, "ORC codec 'lz5'"),
    "a text as a number": (
        partial(fit, pa.chunked_array([["x"]]), pa.int64(), "c"), SchemaMismatch, "string can't be stored as int64",
    ),
    "a list where a map is": (lambda: [*Fields({"m": [1]}, "w").list_map("m")], CorruptFile, "a map under 'm', found"),
    "a map of numbers where lists are": (lambda: [*Fields({"m": {"a": 1}}, "w").list_map("m")], CorruptFile, "lists"),
    "a key that HBase can't hold": (partial(hfile_with_key, MAX_KEY_BYTES + 1), SchemaMismatch, "A key of 32768 bytes"),
    "a field of Protobuf of kind 3": (lambda: [*message_fields(b"\x0b", "w")], CorruptFile, "field of kind 3"),
    "a field of Protobuf that is cut off": (
        lambda: [*message_fields(b"\x0a\x02a", "w")], CorruptFile, "field of 2 bytes, where 1 are left",
    ),
    "a number of Protobuf of eleven bytes": (
        partial(read_varint, b"\x80" * 10 + b"\x01", 0, "w"), CorruptFile, "cut off or too long",
    ),
    "a number of Protobuf that is cut off": (partial(read_varint, b"\x80", 0, "w"), CorruptFile, "cut off"),
    "a body that nobody knows": (partial(body_schema, "HoodieOdd"), ConfigError, "Unknown record 'HoodieOdd'"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_can_not_be_is_refused_by_what_is_wrong_with_it(what: str) -> None:
    call, kind, message = REFUSED[what]
    with pytest.raises(kind, match=message):
        call()


READ: dict[str, tuple[Call, object]] = {
    "38 digits": (lambda: arrow_from_avro(avro_column(decimal_type(38, 38))).field("c").type, pa.decimal128(38, 38)),
    "one digit": (lambda: arrow_from_avro(avro_column(decimal_type(1, 0))).field("c").type, pa.decimal128(1, 0)),
    "the first place of a ring": (lambda: decode_nodes(node(value=0), "r")[0].value, 0),
    "the last place of a ring": (lambda: decode_nodes(node(value=MAX_HASH), "r")[0].value, MAX_HASH),
    "a node without a file id": (lambda: decode_nodes(node(fileIdPrefix=None), "r")[0].file_id_prefix, None),
    "one bucket": (lambda: [one.value for one in initial_ring("p", 1).nodes], [MAX_HASH]),
    "the longest key": (lambda: hfile_with_key(MAX_KEY_BYTES), None),
    "the longest number": (lambda: read_varint(b"\xff" * 9 + b"\x01", 0, "w"), (2**64 - 1, 10)),
    "a number in the middle": (lambda: read_varint(b"\x00\xac\x02\x07", 1, "w"), (300, 3)),
    "fields of every kind": (
        lambda: [*message_fields(b"\x08\x05\x12\x01a\x19" + bytes(8) + b"\x25" + bytes(4), "w")],
        [(1, 5), (2, b"a"), (3, bytes(8)), (4, bytes(4))],
    ),
}


@pytest.mark.parametrize("what", READ)
def test_what_is_just_within_the_bounds_is_read(what: str) -> None:
    call, value = READ[what]

    assert call() == value


HEADER = struct.Struct(">8siiqbii")  # magic, size, inflated size, previous, kind of checksum, chunk, size with header
SIZES = {"size": 1, "inflated": 2, "with header": 6}


@pytest.mark.parametrize(
    ("field", "more", "message"),
    [
        ("size", 0, None),
        ("size", 1, "does not fit before"),
        ("size", -100, "does not fit before"),
        ("inflated", -1000, "a block of -9.. bytes; at most"),
        ("with header", 5, "does not fit before"),
        ("with header", 4, None),
        ("with header", -43, "does not fit before"),
    ],
)
def test_sizes_in_the_header_of_a_block_agree_with_what_is_there(field: str, more: int, message: str | None) -> None:
    block = encode_block(META, b"x" * 42, -1, NONE)
    fields = [*HEADER.unpack(block[: HEADER.size])]
    fields[SIZES[field]] += more
    data = HEADER.pack(*fields) + block[HEADER.size :]

    with nullcontext() if message is None else pytest.raises(CorruptFile, match=message):
        found = read_block(pa.BufferReader(data), 0, len(data), NONE, "f")
        assert (found.magic, found.offset, found.next_offset) == (META, 0, len(data))


@pytest.mark.parametrize(("offset", "limit"), [(-1, 200), (200 - HEADER.size + 1, 200)])
def test_a_block_begins_where_its_header_has_room(offset: int, limit: int) -> None:
    with pytest.raises(CorruptFile, match="no block of an HFile can begin here; its blocks end at 200"):
        read_block(pa.BufferReader(bytes(300)), offset, limit, NONE, "f")


def test_a_block_of_another_kind_than_expected_is_refused() -> None:
    block = encode_block(META, b"x", -1, NONE)
    with pytest.raises(CorruptFile, match=r"f at byte 0: expected an HFile block b'DATABLK.*found b'METABLK"):
        read_block(pa.BufferReader(block), 0, len(block), NONE, "f", expected=DATA)
