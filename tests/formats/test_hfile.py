"""HFiles: all of real Hudi's are read, ours are read back, and damaged ones are refused."""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile, SchemaMismatch
from pyhudi.formats.hfile import HFileReader, HFileWriter
from pyhudi.formats.hfile.block import CODECS, DATA, FILE_INFO, INDEX, INTERMEDIATE, LEAF, encode_block
from pyhudi.formats.hfile.entries import encode_entry, full_key
from pyhudi.formats.hfile.index import IndexEntry, encode_root_index, hadoop_vint, read_hadoop_vint, row_of
from pyhudi.formats.hfile.trailer import Trailer, decode_file_info, encode_file_info
from pyhudi.formats.log.envelope import BlockType
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.formats.protobuf import bytes_field, number_field, varint
from pyhudi.storage.memory import MemoryStorage
from tests.support.golden.folder import shared_folder
from tests.support.sweeps import examples, stride
from tests.support.values.damage import assert_refused_or_read

Entry = tuple[bytes, bytes]


def opened(data: bytes) -> HFileReader:
    return HFileReader(pa.BufferReader(data), "test.hfile")


def entries_of(reader: HFileReader) -> list[Entry]:
    return [e for part in reader.scan() for e in zip(part.keys, part.values().to_pylist(), strict=True)]


def written(entries: list[Entry], **how: Any) -> bytes:
    sink = io.BytesIO()
    writer = HFileWriter(sink, **how)
    writer.append(entries)
    assert writer.close() == len(sink.getvalue())
    return sink.getvalue()


# ---- real Hudi's


def hfiles_in(archive: zipfile.ZipFile) -> Iterator[tuple[str, HFileReader]]:
    """Name → reader of all HFiles of a metadata table, those in log blocks too."""
    for name in archive.namelist():
        if ".hoodie/metadata/" not in name or "__MACOSX" in name or name.endswith("/"):
            continue
        if name.endswith(".hfile"):
            yield name, opened(archive.read(name))
        elif ".log." in name:
            data = archive.read(name)
            storage = MemoryStorage()
            storage.write("log", data)
            for block in scan_log(storage, "log"):
                if isinstance(block, LogBlock) and block.frame.block_type is BlockType.HFILE_DATA:
                    place = (block.frame.content_offset, block.frame.content_size)
                    yield name, HFileReader(pa.BufferReader(data), name, *place)


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.2.0"])
@pytest.mark.parametrize("name", ["hfile_blocks", "mdt_all_cow"])
def test_every_hfile_of_real_hudi_is_read_in_order_and_by_key(version: str, name: str) -> None:
    files = entries = 0
    with zipfile.ZipFile(shared_folder() / "golden" / version / f"{name}.zip") as archive:
        for path, reader in hfiles_in(archive):
            found = entries_of(reader)
            keys = [key for key, _ in found]
            assert len(found) == reader.entry_count, path
            assert keys == sorted(set(keys)), path
            assert reader.schema_json, path
            some = found[:: max(1, len(found) // 10)]
            assert list(reader.lookup([key + b"\x00" for key, _ in some] + [key for key, _ in some])) == some, path
            for prefix in {key[:4] for key, _ in some}:
                wanted = [e for e in found if e[0].startswith(prefix)]
                assert list(reader.with_prefixes([prefix, prefix + b"0"])) == wanted, path
            files, entries = files + 1, entries + len(found)
    assert files >= 9
    assert entries > (16_000 if name == "hfile_blocks" else 50)


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.2.0"])
def test_the_record_index_holds_what_real_hudi_returns(version: str) -> None:
    path = shared_folder() / "golden" / version / "hfile_blocks.zip"
    expected = json.loads(path.with_suffix(".json").read_text())["expected"]["metadata"]["record_index"]
    found: dict[bytes, Any] = {}
    with zipfile.ZipFile(path) as archive:
        for _, reader in sorted(((in_order(n), r) for n, r in hfiles_in(archive) if "/record_index/" in n), key=first):
            schema = fastavro.parse_schema(json.loads(reader.schema_json or ""))
            for key, value in entries_of(reader):
                row = fastavro.schemaless_reader(io.BytesIO(value), schema, None)
                plain = {name: cell for name, cell in without_nulls(row).items() if not name.startswith("_hoodie")}
                found[key] = {**plain, "key": key.decode()}
    lines = sorted(json.dumps(row, sort_keys=True) for row in found.values())
    assert len(lines) == expected["count"]
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == expected["sha256_of_sorted_json_lines"]


def in_order(name: str) -> tuple[str, bool, str]:
    """Base files before log files of their instant."""
    time = re.search(r"_(\d{17,20})", name.rpartition("/")[2])
    return (time[1] if time else "", ".log." in name, name)


def first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def without_nulls(value: Any) -> Any:
    return {k: without_nulls(v) for k, v in value.items() if v is not None} if isinstance(value, dict) else value


# ---- ours


@settings(max_examples=examples(40), deadline=None)
@given(
    entries=st.dictionaries(st.binary(max_size=40), st.binary(max_size=200), max_size=60),
    codec=st.sampled_from(sorted(CODECS)),
    block_bytes=st.sampled_from([1, 100, 1000, 1 << 20]),
    asked=st.lists(st.binary(max_size=3), max_size=8),
)
def test_what_is_written_is_read_back(
    entries: dict[bytes, bytes], codec: str, block_bytes: int, asked: list[bytes]
) -> None:
    ordered = sorted(entries.items())
    reader = opened(written(ordered, codec=codec, block_bytes=block_bytes, info={"schema": b"{}"}))
    assert entries_of(reader) == ordered
    assert list(reader.lookup([*asked, *entries])) == ordered
    prefixed = [e for e in ordered if any(e[0].startswith(prefix) for prefix in asked)]
    assert list(reader.with_prefixes(asked)) == prefixed
    assert reader.info["schema"] == b"{}"


LAST_KEY = b"4i8Jtz0s5E8=SiSLHm+EznQaFVDiKpSZgg=="  # of a metadata table of Hudi 0.15.0
LAST_KEY_INFO = bytes.fromhex("0024") + LAST_KEY + bytes.fromhex("007fffffffffffffff04")  # and what its file info says


def test_the_last_key_stands_in_the_file_info_with_all_that_hbase_puts_around_a_key() -> None:
    """Hudi's readers stop a lookup at it: if they parse it wrongly, it hides keys."""
    assert opened(written([(b"0", b""), (LAST_KEY, b"v")])).info["hfile.LASTKEY"] == LAST_KEY_INFO
    assert "hfile.LASTKEY" not in opened(written([])).info


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2"])
def test_lengths_and_last_key_are_those_of_real_hudi(version: str) -> None:
    names = ("hfile.LASTKEY", "hfile.AVG_KEY_LEN", "hfile.AVG_VALUE_LEN")
    last_keys = set()
    with zipfile.ZipFile(shared_folder() / "golden" / version / "mdt_all_cow.zip") as archive:
        for path, reader in hfiles_in(archive):
            again = opened(written(entries_of(reader)))
            assert [again.info.get(name) for name in names] == [reader.info.get(name) for name in names], path
            last_keys.add(reader.info.get("hfile.LASTKEY"))
    assert len(last_keys) > 9
    assert LAST_KEY_INFO in last_keys or version != "0.15.0"


def test_keys_ascend_and_have_a_limit() -> None:
    with pytest.raises(SchemaMismatch, match="ascend"):
        written([(b"b", b""), (b"a", b"")])
    with pytest.raises(SchemaMismatch, match="ascend"):
        written([(b"a", b""), (b"a", b"")])
    with pytest.raises(SchemaMismatch, match="32767"):
        written([(bytes(32768), b"")])
    assert entries_of(opened(written([(bytes(32767), b"v")]))) == [(bytes(32767), b"v")]


def test_bytes_are_kept_under_names() -> None:
    sink = io.BytesIO()
    writer = HFileWriter(sink)
    writer.put_meta("bloomFilter", b"bits")
    writer.close()
    assert opened(sink.getvalue()).meta_block("bloomFilter") == b"bits"
    assert opened(sink.getvalue()).meta_block("other") is None


@pytest.mark.parametrize(
    ("value", "data"), [(29, "1d"), (127, "7f"), (128, "8f80"), (255, "8fff"), (256, "8e0100"), (65536, "8d010000")]
)
def test_numbers_of_hadoop(value: int, data: str) -> None:
    assert hadoop_vint(value).hex() == data
    assert read_hadoop_vint(bytes.fromhex(data), 0, "") == (value, len(data) // 2)


def test_an_index_of_three_levels_is_followed() -> None:
    """As HBase makes it: leaf and intermediate indexes, made-up separators as keys, bytes behind the root's entries."""
    entries = [(f"key-{n:04d}".encode(), f"v{n}".encode()) for n in range(64)]
    reader = opened(three_levels(entries))
    assert entries_of(reader) == entries
    assert list(reader.lookup([key for key, _ in entries[::7]])) == entries[::7]
    assert list(reader.lookup([b"a", b"key-0003x", b"z"])) == []
    assert list(reader.with_prefixes([b"key-001"])) == entries[10:20]


def three_levels(entries: list[Entry]) -> bytes:
    sink, places = io.BytesIO(), []

    def put(magic: bytes, body: bytes) -> tuple[int, int]:
        block = encode_block(magic, body, -1, CODECS["gz"])
        at = sink.tell()
        sink.write(block)
        return at, len(block)

    def inner(magic: bytes, parts: list[tuple[bytes, tuple[int, int]]]) -> tuple[bytes, tuple[int, int]]:
        packed = [struct.pack(">qi", *place) + key for key, place in parts]
        ends = [0]
        for part in packed:
            ends.append(ends[-1] + len(part))
        head = struct.pack(f">{len(ends) + 1}i", len(parts), *ends)
        return parts[0][0], put(magic, head + b"".join(packed))

    for start in range(0, len(entries), 4):
        part = entries[start : start + 4]
        # A separator that is no key: smaller than the block's first, greater than the last one before.
        separator = full_key(part[0][0][:-1] + bytes((part[0][0][-1] - 1,)) + b"\xff" if start else part[0][0])
        places.append((separator, put(DATA, b"".join(encode_entry(*entry) for entry in part))))
        last_data = places[-1][1][0]
    leaves = [inner(LEAF, places[n : n + 4]) for n in range(0, len(places), 4)]
    middle = [inner(INTERMEDIATE, leaves[n : n + 2]) for n in range(0, len(leaves), 2)]
    root = encode_root_index(IndexEntry(key, *place) for key, place in middle)
    load_on_open, _ = put(INDEX, root + bytes(16))
    put(INDEX, b"")
    info, _ = put(FILE_INFO, encode_file_info({}))
    trailer = Trailer(info, load_on_open, len(root), 0, len(middle), 0, len(entries), 3, 0, last_data, CODECS["gz"])
    return sink.getvalue() + trailer.encode()


def test_a_length_as_hudi_1_1_wrote_it_is_understood() -> None:
    """Releases 1.1.0 and 1.1.1 wrote the length of long index keys as Protobuf does."""
    key = b"k" * 200
    data = written([(key, b"v")], codec="none")
    wrong = data.replace(hadoop_vint(212) + full_key(key), b"\xd4\x01" + full_key(key))
    assert wrong != data
    assert list(opened(wrong).lookup([key])) == [(key, b"v")]


# ---- damage


def read_all(data: bytes) -> None:
    reader = opened(data)
    found = entries_of(reader)
    list(reader.lookup([b"key-0003", *(key for key, _ in found[:3])]))
    list(reader.with_prefixes([b"key-001"]))
    reader.meta_block("bloomFilter")


@pytest.mark.parametrize("codec", ["gz", "none"])
def test_a_damaged_hfile_is_refused_or_read(codec: str) -> None:
    entries = [(f"key-{n:04d}".encode(), b"value") for n in range(12)]
    data = written(entries, codec=codec, block_bytes=150, info={"schema": b"{}"})
    head = len(data) - 4096
    assert_refused_or_read(data, read_all, 23)
    for at in range(head, head + 120, stride(3)):  # the part of the trailer that says something
        for change in (0xFF, 0x01):
            damaged = data[:at] + bytes((data[at] ^ change,)) + data[at + 1 :]
            assert_refused_or_read(damaged, read_all, len(damaged))


@pytest.mark.slow
@pytest.mark.parametrize("levels", [1, 3])
def test_every_byte_of_an_hfile(levels: int) -> None:
    entries = [(f"key-{n:04d}".encode(), b"value") for n in range(32)]
    assert_refused_or_read(three_levels(entries) if levels == 3 else written(entries, block_bytes=150), read_all)


def test_a_checksum_of_hbase_is_checked(tmp_path: Path) -> None:
    data = bytearray(written([(b"a", b"v")], codec="none"))
    data[24] = 1  # CRC32, where the writer left zeros
    with pytest.raises(CorruptFile, match="checksum"):
        entries_of(opened(bytes(data)))


@pytest.mark.parametrize(("fitting", "blocks"), [(0, 6), (1, 6), (2, 3), (3, 2), (6, 1)])
def test_a_block_is_full_at_its_size_and_not_before(fitting: int, blocks: int) -> None:
    entries = [(f"key{n}".encode(), b"value") for n in range(6)]
    block_bytes = fitting * len(encode_entry(*entries[0]))
    assert written(entries, codec="none", block_bytes=block_bytes).count(DATA) == blocks
    if fitting > 1:
        assert written(entries, codec="none", block_bytes=block_bytes - 1).count(DATA) > blocks


# ---- single pieces


def test_an_entry_of_the_file_info_that_is_no_bytes_is_passed_over() -> None:
    good = bytes_field(1, bytes_field(1, b"a") + bytes_field(2, b"x"))
    number = bytes_field(1, bytes_field(1, b"n") + number_field(2, 5))
    nameless = bytes_field(1, number_field(1, 5) + bytes_field(2, b"x"))
    message = good + number + nameless

    assert decode_file_info(b"PBUF" + varint(len(message)) + message, "x") == {"a": b"x"}


@pytest.mark.parametrize(
    ("key", "says"), [(b"a", "of 1 bytes has no row"), (b"\0\x04abc", "of 5 bytes can't hold a row of 4")]
)
def test_an_index_key_that_can_t_hold_its_row_is_refused(key: bytes, says: str) -> None:
    assert row_of(b"\0\x03abc", "x") == b"abc"
    assert row_of(b"\0\x02abc", "x") == b"ab"
    with pytest.raises(CorruptFile, match=f"x: an index key {says}"):
        row_of(key, "x")


def test_large_entries_are_written_before_all_of_them_were_taken() -> None:
    sink, written_before = io.BytesIO(), []

    def entries() -> Iterator[Entry]:
        for key in (b"a", b"b", b"c"):
            written_before.append(len(sink.getvalue()) > 0)
            yield key, bytes(4 << 20)

    HFileWriter(sink).append(entries())

    assert written_before == [False, False, True]


@pytest.mark.parametrize("codec", ["none", "gz"])
def test_the_index_says_where_each_block_begins_and_ends(codec: str) -> None:
    reader = opened(written([(b"%03d" % n, bytes(30)) for n in range(9)], block_bytes=100, codec=codec))
    places = [(entry.offset, entry.size_bytes) for entry in reader._index.root]

    assert len(places) > 2
    assert [offset + size for offset, size in places[:-1]] == [offset for offset, _ in places[1:]]
