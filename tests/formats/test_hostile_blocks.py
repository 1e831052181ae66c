"""A few bytes that claim a lot: magics without blocks, runs of positions, pages of zeros, filters of many rows."""

from __future__ import annotations

import base64
import io
import json
import struct

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from pyhudi.errors import CorruptFile
from pyhudi.filegroup.read.log_blocks import BlockRules, blocks_of
from pyhudi.formats.avro.decode import AvroDecoder
from pyhudi.formats.bloom import DYNAMIC_V0, BloomFilter
from pyhudi.formats.damage import check_inflated
from pyhudi.formats.hfile import HFileReader, HFileWriter
from pyhudi.formats.hfile.entries import decode_entries, encode_entry
from pyhudi.formats.log.blocks import delete, hfile_data, parquet_data
from pyhudi.formats.log.blocks.command import rollback_block
from pyhudi.formats.log.envelope import MAGIC, BlockType, HeaderKey, encode_block
from pyhudi.formats.log.positions import encode_positions, positions_of
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.storage.memory import MemoryStorage
from tests.support.values.limits import output_within

KEYED = json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "string"]}]})
HERE = "from tests.formats.test_hostile_blocks import *"


def run_of_positions(count: int) -> str:
    bitmap = BitMap64(range(count))
    bitmap.run_optimize()
    return base64.b64encode(bitmap.serialize()).decode()


def hfile_of(body: bytes, blocks: int = 1) -> bytes:
    """An HFile whose data blocks have this body, well or badly formed."""
    sink = io.BytesIO()
    writer = HFileWriter(sink, block_bytes=1)
    for number in range(blocks):
        writer.append([(struct.pack(">i", number), b"")])
        writer._waiting = [body]
    writer.close()
    return sink.getvalue()


def parquet_of(rows: int, text: str) -> bytes:
    """A Parquet file with one text in all of its rows: a dictionary of one entry, and a run."""
    sink = io.BytesIO()
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))
    pq.write_table(pa.table({"a": column}), sink, store_schema=False)
    return sink.getvalue()


def bloom_of(rows: int, hashes: int, bits: int = 2000) -> str:
    """A filter with nearly all bits set in its rows, so that keys are rejected late or not at all."""
    row = struct.pack(">iibi", -1, hashes, 1, bits) + b"\xff" * (bits // 8 - 1) + b"\x7f"
    head = struct.pack(">iibiiii", -1, hashes, 1, bits, 5, 0, rows)
    return base64.b64encode(head + row * rows).decode()


def test_magics_without_blocks_are_read_once() -> None:
    """They were searched for a megabyte each: 3 MB took 27 seconds, and took a terabyte of reading."""

    class Counted(MemoryStorage):
        read_bytes = 0

        def open_input(self, path: str) -> pa.NativeFile:
            return pa.PythonFile(Reader(self.read(path)), mode="r")

    class Reader(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            Counted.read_bytes += len(data)
            return data

    storage = Counted()
    magics = 20_000
    storage.write("log", MAGIC * magics)

    found = list(scan_log(storage, "log"))

    assert len(found) == magics
    assert Counted.read_bytes < 4 * len(MAGIC) * magics


def test_many_rollback_commands_are_not_each_held_against_all_blocks() -> None:
    count = 2_000

    class Asked(str):
        times = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Asked.times += 1
            return str.__eq__(self, other)

    storage = MemoryStorage()
    storage.write("data", encode_block(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: "1"}, b""))
    storage.write("command", rollback_block("2", "3"))
    (data,), (command,) = (list(scan_log(storage, path)) for path in ("data", "command"))
    assert isinstance(data, LogBlock)
    assert isinstance(command, LogBlock)
    object.__setattr__(data.frame, "header", {HeaderKey.INSTANT_TIME: Asked("1")})

    kept = blocks_of([data] * count + [command] * count, BlockRules(8, lambda _: True))

    assert len(kept) == count
    assert Asked.times < 3 * count


def test_a_rollback_takes_back_only_what_stands_before_it() -> None:
    storage = MemoryStorage()
    block = lambda time: encode_block(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: time}, b"")  # noqa: E731
    storage.write("log", block("1") + block("2") + block("1") + rollback_block("3", "1") + block("1") + block("2"))

    kept = blocks_of(scan_log(storage, "log"), BlockRules(8, lambda _: True))

    assert [found.instant_time for found in kept] == ["2", "1", "2"]


@pytest.mark.parametrize("count", [0, 1, 2, 70_000])
def test_positions_count_for_a_block_of_as_many_records(count: int) -> None:
    wide = np.arange(count, dtype=np.int64) << 32  # each in a bitmap of its own
    for text in (run_of_positions(count), encode_positions(np.arange(count)), *([encode_positions(wide[:2000])])):
        records = min(count, 2000) if text == encode_positions(wide[:2000]) else count
        found = positions_of(records, text, "header")
        assert found is not None
        assert len(found) == records
        assert positions_of(records + 1, text, "header") is None


def test_positions_are_counted_before_they_take_memory() -> None:
    text = run_of_positions(1 << 31)
    assert len(text) < 700_000
    output = output_within(
        HERE,
        "text = run_of_positions(1 << 31)\nprint(positions_of(1000, text, 'x'), positions_of(10**6, text, 'x'))",
        memory_mb=100, cpu_s=5,
    )  # fmt: skip
    assert output.split() == ["None", "None"]


def test_an_hfile_that_inflates_takes_a_bounded_part_of_memory() -> None:
    """A file of 600 kB was 4 million rows, a gigabyte and half a minute."""
    output = output_within(
        HERE,
        "data = hfile_of(encode_entry(b'a', b'\\x00') * 4_000_000)\n"
        "assert len(data) < 1_000_000\n"
        "try: hfile_data.decode(data, KEYED)\n"
        "except CorruptFile as error: print(error)\n",
        memory_mb=600, cpu_s=20,
    )  # fmt: skip
    assert "become 92000000 or more; at most 67108864 are read" in output


def test_blocks_of_an_hfile_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_inflated, "__kwdefaults__", {"free_bytes": 100_000, "ratio": 10})
    body = encode_entry(b"a", b"\x00") * 1000
    data = hfile_of(body, blocks=50)

    assert len(hfile_data.decode(hfile_of(body), KEYED)) == 1000
    with pytest.raises(CorruptFile, match=r"or more; at most 1[0-9]{5} are read"):
        hfile_data.decode(data, KEYED)


def test_a_value_of_megabytes_of_zeros_is_read() -> None:
    value = bytes(20 << 20)
    data = hfile_of(encode_entry(b"k", value))
    assert len(data) < 100_000
    (entries,) = HFileReader(pa.BufferReader(data), "x").scan()
    assert entries.value(0) == value


@pytest.mark.parametrize(
    "body",
    [
        b"\x00",
        encode_entry(b"a", b"b")[:-1],
        encode_entry(b"a", b"b") + b"\x00" * 9,
        struct.pack(">iih", 2**31 - 1, 0, 0) + bytes(30),
        struct.pack(">iih", 2**31 - 1, 2**31 - 1, 0) + bytes(30),
        struct.pack(">iih", -1, 0, 0) + bytes(30),
        struct.pack(">iih", 12, -1, 0) + bytes(30),
        struct.pack(">iih", 12, 0, -1) + bytes(30),
        struct.pack(">iih", 12, 0, 300) + bytes(30),
    ],
)
def test_entries_that_do_not_fit_into_their_block_are_refused(body: bytes) -> None:
    with pytest.raises(CorruptFile, match="entry"):
        decode_entries(encode_entry(b"a", b"b") * 3 + body, "x")
    with pytest.raises(CorruptFile, match="entry"):
        decode_entries(body, "x")


def test_a_parquet_block_of_one_long_text_in_all_rows_is_refused_on_the_way() -> None:
    data = parquet_of(1000, "x" * 10_000)
    assert parquet_data.decode(data, "").column("a").to_pylist() == ["x" * 10_000] * 1000
    output = output_within(
        HERE,
        "data = parquet_of(2_000_000, 'x' * 1_000)\n"
        "assert len(data) < 300_000\n"
        "try: parquet_data.decode(data, '', where='f at byte 9')\n"
        "except CorruptFile as error: print(error)\n",
        memory_mb=1500, cpu_s=20,
    )  # fmt: skip
    assert output.startswith("f at byte 9: ")
    assert "at most 536870912 are read" in output


def test_parquet_blocks_keep_the_notes_in_their_metadata() -> None:
    batch = pa.record_batch({"a": ["x"], "b": [1]}).replace_schema_metadata({"pyhudi.record_positions": "p"})
    data = parquet_data.encode(batch, "")
    for columns in (None, {"b"}, set[str]()):
        rows = parquet_data.decode(data, "", columns)
        assert rows.schema.metadata == {b"pyhudi.record_positions": b"p"}
        assert rows.num_rows == 1
    assert parquet_data.decode(data, "", {"b"}).to_pylist() == [{"b": 1}]


def test_a_filter_that_costs_more_than_reading_the_keys_is_not_asked() -> None:
    """19 kB of filter were half a minute of hashing for a few thousand keys."""
    text = bloom_of(rows=50, hashes=1000)
    assert len(text) < 19_000
    output = output_within(
        HERE,
        "keys = pa.array([f'key-{n:030d}' for n in range(100_000)])\n"
        "print(BloomFilter.from_base64(bloom_of(50, 1000), DYNAMIC_V0).might_contain(keys).all())\n",
        memory_mb=300, cpu_s=5,
    )  # fmt: skip
    assert output.strip() == "True"
    few = BloomFilter.from_base64(bloom_of(rows=2, hashes=30), DYNAMIC_V0)
    assert not few.might_contain(pa.array([f"k{n}" for n in range(100)])).all()


@pytest.mark.parametrize("empty", ["null", {"type": "record", "name": "e", "fields": []}])
def test_items_without_bytes_are_not_more_than_the_bytes_of_their_record(empty: object) -> None:
    """Four bytes claimed as many items as the record has bytes, again and again."""
    array = {"name": "a", "type": {"type": "array", "items": empty}}
    decoder = AvroDecoder(json.dumps({"type": "record", "name": "r", "fields": [array]}))
    decode = lambda data: decoder.decode(data, np.array([0]), np.array([len(data)]))  # noqa: E731

    assert len(decode(b"\x04\x00").column("a")[0].as_py()) == 2
    with pytest.raises(CorruptFile, match="more items than its record has bytes"):
        decode(b"\x04" * 100 + b"\x00")


def test_a_long_list_is_read_in_order() -> None:
    """Only a limited number of its items are held separately."""
    array = {"name": "a", "type": {"type": "array", "items": "int"}}
    decoder = AvroDecoder(json.dumps({"type": "record", "name": "r", "fields": [array]}))
    item = lambda n: bytes([n % 50 << 1])  # noqa: E731
    one = struct.pack("BB", 0xB8, 0x17) + b"".join(item(n) for n in range(1500)) + b"\x00"  # 1500 as a varint
    two = b"\x04\x02\x04\x00"
    content = one + two
    rows = decoder.decode(content, np.array([0, len(one)]), np.array([len(one), len(content)]))

    assert rows.column("a").to_pylist() == [[n % 50 for n in range(1500)], [1, 2]]


def test_a_delete_list_that_counts_more_than_its_bytes_hold_is_refused_before_it_is_decoded() -> None:
    def content(count: int) -> bytes:
        rows = io.BytesIO()
        fastavro.schemaless_writer(rows, "long", count)
        rows.write(bytes(3 * 1000) + b"\0")
        return struct.pack(">ii", 3, rows.tell()) + rows.getvalue()

    assert delete.decode(content(1000)).keys.num_rows == 1000
    for count in (1002, 1 << 40, -(1 << 40)):
        with pytest.raises(CorruptFile, match=f"f: a delete list of .* can't hold {abs(count)} deletes"):
            delete.decode(content(count), "f")
