"""Log files with blocks of every kind, HFiles, bloom filters, record positions, Protobuf."""

from __future__ import annotations

import base64
import contextlib
import io

import numpy as np
import pyarrow as pa

from fuzz.golden import golden_files
from fuzz.mutation import Mutator, json_shape
from fuzz.target import Target
from fuzz.targets.avro import HOSTILE_SCHEMAS, ROWS, SCHEMA
from pyhudi.errors import HudiError
from pyhudi.formats.bloom import DYNAMIC_V0, SIMPLE, BloomFilter
from pyhudi.formats.hfile.reader import HFileReader
from pyhudi.formats.hfile.trailer import decode_file_info, encode_file_info
from pyhudi.formats.hfile.writer import HFileWriter
from pyhudi.formats.log.blocks import avro_data, delete
from pyhudi.formats.log.envelope import BlockFrame, BlockType, CorruptRange, HeaderKey, encode_block, scan_frames
from pyhudi.formats.log.positions import decode_positions, encode_positions
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.formats.log.writer import data_block
from pyhudi.formats.protobuf import bytes_field, message_fields, number_field
from pyhudi.storage import MemoryStorage

__all__ = ["TARGETS", "block_shape"]

_TIME = "20240101000000000"
_KEYS = pa.RecordBatch.from_pylist([{"_hoodie_record_key": f"k{n}", "_hoodie_partition_path": "p"} for n in range(3)])


def _log(data: bytes) -> None:
    """All that readers ask of a log file; a block that is refused does not hide those behind it."""
    storage = MemoryStorage()
    storage.write("log", data)
    for found in scan_log(storage, "log"):
        if not isinstance(found, CorruptRange):
            try:
                _block(found)
            except HudiError:
                continue


def _block(block: LogBlock) -> None:
    _ = block.instant_time, block.is_partial, block.compacted_instants, block.rollback_target
    if block.is_data:
        rows = block.rows()
        block.rows(["ts"])
        block.positions(_TIME, rows)
    elif block.is_delete:
        block.positions(_TIME, block.deletes().keys)


def _logs() -> list[bytes]:
    header = {
        HeaderKey.INSTANT_TIME: _TIME,
        HeaderKey.RECORD_POSITIONS: encode_positions(np.arange(4)),
        HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: _TIME,
    }
    schema = {HeaderKey.SCHEMA: SCHEMA}
    blocks = [data_block(ROWS, SCHEMA, kind, header) for kind in ("avro", "parquet", "hfile")]
    for ordering in (pa.array([5, None, 7]), pa.array(["a", "b", None])):
        blocks.append(encode_block(BlockType.DELETE, header | schema, delete.encode(_KEYS, [ordering])))
    command = {HeaderKey.TARGET_INSTANT_TIME: _TIME, HeaderKey.COMMAND_BLOCK_TYPE: "0", HeaderKey.INSTANT_TIME: _TIME}
    blocks.append(encode_block(BlockType.COMMAND, command, b""))
    blocks.append(encode_block(BlockType.CDC_DATA, header | schema, avro_data.encode(ROWS, SCHEMA)))
    return [*blocks, blocks[0] + blocks[3] + blocks[5], *golden_files(r"(.*/)?\.[^/]*\.log\.\d+_[^/]*")]


def block_shape(data: bytes, mutator: Mutator) -> bytes:
    """A whole frame around a changed header or content."""
    frames = [f for f in scan_frames(pa.BufferReader(data), "log") if isinstance(f, BlockFrame)]
    if not frames:
        return mutator.damaged(data)
    frame = mutator.random.choice(frames)
    header, content = dict(frame.header), data[frame.content_offset : frame.content_offset + frame.content_size]
    if mutator.random.random() < 0.5 and header:
        key = mutator.random.choice(list(header))
        header[key] = _header_text(key, header[key], mutator)
    else:
        content = mutator.damaged(content)
    kind = mutator.random.choice(list(BlockType)) if mutator.random.random() < 0.1 else frame.block_type
    return data[: frame.offset] + encode_block(kind, header, content) + data[frame.end :]


def _header_text(key: HeaderKey, text: str, mutator: Mutator) -> str:
    if key is HeaderKey.SCHEMA:
        if mutator.random.random() < 0.3:
            return mutator.random.choice(HOSTILE_SCHEMAS)
        return json_shape(text.encode(), mutator).decode("utf-8", "replace")
    if key is HeaderKey.RECORD_POSITIONS:
        return base64.b64encode(mutator.damaged(base64.b64decode(text))).decode()
    return mutator.text(text).encode("utf-8", "replace").decode()


def _hfile(data: bytes) -> None:
    file = HFileReader(pa.BufferReader(data), "x.hfile")
    _ = file.entry_count, file.schema_json, file.info
    for read in (
        lambda: sum(len(entries.keys) for entries in file.scan()),
        lambda: list(file.lookup([b"k1", b"k5", b"zz"])),
        lambda: list(file.with_prefixes([b"k", b"k2"])),
        lambda: file.meta_block("bloomFilter"),
    ):
        try:
            read()
        except HudiError:
            continue


def _hfiles() -> list[bytes]:
    made = []
    for codec, block_bytes in (("none", 64), ("gz", 64), ("none", 1 << 20)):
        sink = io.BytesIO()
        writer = HFileWriter(sink, info={"schema": b"{}"}, codec=codec, block_bytes=block_bytes)
        writer.append((b"k%d" % n, b"value %d" % n) for n in range(9))
        writer.put_meta("bloomFilter", b"\x00" * 40)
        writer.close()
        made.append(sink.getvalue())
    return [*made, *golden_files(r"(.*/)?[^/]*\.hfile")]


def _bloom(data: bytes) -> None:
    """The first byte says of which kind the filter is, and whether the rest is its text or the bytes in it."""
    if not data:
        return
    kind = (None, DYNAMIC_V0, SIMPLE, "OTHER")[data[0] & 3]
    text = data[1:].decode("latin-1") if data[0] & 4 else base64.b64encode(data[1:]).decode()
    found = BloomFilter.from_base64(text, kind)
    keys = pa.array(["a", "b", "é" * 20])
    found.might_contain(keys)
    found.add(keys)
    _ = found.num_rows, found.keys_added
    found.to_base64()


def _blooms() -> list[bytes]:
    made = []
    for number, kind in ((1, DYNAMIC_V0), (2, SIMPLE)):
        bloom = BloomFilter.build(pa.array([f"k{n}" for n in range(30)]), 10, 1e-3, kind, 100)
        made.append(bytes((number,)) + base64.b64decode(bloom.to_base64()))
        made.append(bytes((number | 4,)) + bloom.to_base64().encode())
    return made


def _positions(data: bytes) -> None:
    """Of bytes, and of a text that may be no Base64."""
    with contextlib.suppress(HudiError):
        decode_positions(data.decode("utf-8", "replace"), "block")
    decode_positions(base64.b64encode(data).decode(), "block")


def _position_seeds() -> list[bytes]:
    lists = (np.arange(4), np.arange(100_000), np.array([1, 5, 2**33]), np.arange(0, 200_000, 3))
    return [base64.b64decode(encode_positions(positions)) for positions in lists]


def _protobuf(data: bytes) -> None:
    with contextlib.suppress(HudiError):
        decode_file_info(data, "file info")
    list(message_fields(data, "message"))


def _protobuf_seeds() -> list[bytes]:
    return [encode_file_info({"a": b"b", "schema": b"{}"}), number_field(1, 5) + bytes_field(2, b"abc")]


TARGETS = (
    Target(
        "logs", _log, _logs, (block_shape, block_shape), (b"#HUDI#", b"#HUDI#" * 1000, b"\x00\x00\x00\x01", b"PAR1")
    ),
    Target(
        "hfiles", _hfile, _hfiles, words=(b"DATABLK*", b"IDXROOT2", b"IDXINTE2", b"IDXLEAF2", b"FILEINF2", b"METABLKc")
    ),
    Target(
        "bloom-filters", _bloom, _blooms, words=(b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00\x00\x03\xe8", b"=")
    ),
    Target("positions", _positions, _position_seeds, words=(b"\x3a\x30\x00\x00", b"\x3b\x30", b"\xff\xff\xff\xff")),
    Target("protobuf", _protobuf, _protobuf_seeds, words=(b"\xff" * 10, b"\x80" * 10, b"\x0a", b"\x7a")),
)
