"""Lookups in HFiles: in columns, through the index, with few reads; and columns that are written."""

from __future__ import annotations

import io
import random
import re
import zipfile
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile, SchemaMismatch
from pyhudi.formats.bloom import BloomFilter
from pyhudi.formats.hfile import Entries, HFileReader, HFileWriter, gathered
from pyhudi.formats.hfile import reader as hfile_reader
from pyhudi.formats.hfile.entries import (
    _of_one_length,
    _one_by_one,
    decode_entries,
    decode_together,
    encode_entry,
    joined,
)
from pyhudi.formats.hfile.keys import key_column, ranges_of, rows_in, sorted_keys
from pyhudi.formats.hfile.reader import CachedBlocks
from pyhudi.storage.file_cache import FileCache
from tests.support.golden.folder import shared_folder
from tests.support.sweeps import examples

Entry = tuple[bytes, bytes]
ENTRIES = [(b"key-%06d" % (2 * n), random.Random(n).randbytes(300)) for n in range(6000)]


class Counted:
    """A file that records where it was read."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.reads: list[tuple[int, int]] = []

    def size(self) -> int:
        return len(self.data)

    def seek(self, position: int) -> None:
        self.at = position

    def read(self, nbytes: int) -> bytes:
        self.reads.append((self.at, nbytes))
        self.at += nbytes
        return self.data[self.at - nbytes : self.at]


def written(entries: list[Entry], bloom: BloomFilter | None = None, **how: Any) -> bytes:
    sink = io.BytesIO()
    writer = HFileWriter(sink, bloom_filter=bloom, **how)
    writer.append_columns(
        pa.array([k for k, _ in entries], pa.binary()), pa.array([v for _, v in entries], pa.binary())
    )
    writer.close()
    return sink.getvalue()


def opened(data: bytes) -> HFileReader:
    return HFileReader(pa.BufferReader(data), "test.hfile")


def counted(data: bytes) -> tuple[HFileReader, Counted]:
    source = Counted(data)
    return HFileReader(cast("pa.NativeFile", source), "test.hfile"), source


def pairs(parts: Iterable[Entries]) -> list[Entry]:
    return [e for part in parts for e in zip(part.keys, part.values().to_pylist(), strict=True)]


@settings(max_examples=examples(60), deadline=None)
@given(
    entries=st.one_of(
        st.dictionaries(st.binary(max_size=6), st.binary(max_size=30), max_size=120),
        st.dictionaries(st.binary(min_size=3, max_size=3), st.binary(max_size=30), max_size=120),
    ),
    asked=st.lists(st.binary(max_size=4), max_size=40),
    block_bytes=st.sampled_from([1, 200, 1 << 20]),
    cache_bytes=st.sampled_from([0, 500, 1 << 20]),
)
def test_any_batch_of_keys_and_prefixes_gives_what_is_there_and_nothing_else(
    entries: dict[bytes, bytes], asked: list[bytes], block_bytes: int, cache_bytes: int
) -> None:
    ordered = sorted(entries.items())
    reader = HFileReader(pa.BufferReader(written(ordered, block_bytes=block_bytes)), "x", cache_bytes=cache_bytes)
    for wanted in (asked, [*asked, *entries], [*entries][::3]):
        there = [(key, entries[key]) for key in sorted(set(wanted)) if key in entries]
        assert pairs(reader.lookup_columns(pa.array(wanted, pa.binary()))) == there
        assert pairs(gathered(reader.lookup_columns(pa.array(wanted, pa.binary())), 40)) == there
    begins = [e for e in ordered if any(e[0].startswith(prefix) for prefix in asked)]
    assert pairs(reader.prefix_columns(asked)) == begins
    assert pairs(gathered(reader.prefix_columns(asked))) == begins


@pytest.mark.parametrize("release", ["0.15.0", "1.0.2", "1.2.0"])
def test_every_key_of_real_base_files_is_found_in_one_batch_and_others_are_not(release: str) -> None:
    keys = 0
    with zipfile.ZipFile(shared_folder() / "golden" / release / "hfile_blocks.zip") as archive:
        for name in (n for n in archive.namelist() if re.search(r"metadata/.*\.hfile$", n) and "__MACOSX" not in n):
            reader = opened(archive.read(name))
            all_ = pairs(reader.scan())
            column = pa.array([key for key, _ in all_], pa.binary())
            absent = pa.array([key + b"0" for key, _ in all_], pa.binary())
            assert pairs(gathered(reader.lookup_columns(pa.concat_arrays([absent, column])))) == all_, name
            for key, value in all_[:: max(1, len(all_) // 20)]:  # one at a time, with the bloom filter
                fresh = opened(archive.read(name))
                assert list(fresh.lookup([key])) == [(key, value)], name
                assert list(fresh.lookup([key + b"0"])) == [], name
            keys += len(all_)
    assert keys > 1000


def test_one_key_takes_the_end_of_the_file_and_one_block() -> None:
    reader, source = counted(written(ENTRIES, block_bytes=1 << 16))
    assert len(source.reads) == 1  # trailer and what is loaded with it
    assert list(reader.lookup([ENTRIES[100][0]])) == [ENTRIES[100]]
    assert len(source.reads) == 2
    assert source.reads[1][1] < 1 << 17


def test_a_block_that_was_read_is_not_read_again() -> None:
    reader, source = counted(written(ENTRIES, block_bytes=1 << 16))
    list(reader.lookup([ENTRIES[0][0], ENTRIES[3000][0]]))
    before = len(source.reads)
    assert list(reader.lookup([ENTRIES[1][0], ENTRIES[3001][0]])) == [ENTRIES[1], ENTRIES[3001]]
    assert list(reader.with_prefixes([ENTRIES[1][0]])) == [ENTRIES[1]]
    assert len(source.reads) == before


def test_neighbouring_blocks_are_fetched_by_one_read_and_distant_ones_are_left_out() -> None:
    data = written(ENTRIES, block_bytes=1 << 16)
    reader, source = counted(data)
    assert pairs(reader.lookup_columns(pa.array([key for key, _ in ENTRIES[:600]]))) == ENTRIES[:600]
    assert len(source.reads) == 2
    assert sum(size for _, size in source.reads) < len(data) // 4
    reader, source = counted(data)
    assert len(pairs(reader.scan())) == len(ENTRIES)
    assert len(source.reads) == 2


def test_blocks_grow_with_a_large_file() -> None:
    entries = [(b"key-%06d" % n, bytes(1 << 10)) for n in range(70_000)]
    sizes = [len(block.body) for block in opened(written(entries))._scanned()]
    assert max(sizes[:1000]) <= 32 << 10
    assert max(sizes) > 60 << 10
    assert 1000 < len(sizes) < 2000
    keys = pa.array([key for key, _ in entries[::100]])
    assert pairs(opened(written(entries)).lookup_columns(keys)) == entries[::100]


def test_an_entry_over_the_end_of_its_block_is_damage_also_among_many_blocks() -> None:
    entries = [(b"key-%04d" % n, b"v" * 100) for n in range(100)]
    whole = b"".join(encode_entry(*entry) for entry in entries)
    middle = 50 * len(encode_entry(*entries[0]))
    bodies = [whole[:middle], whole[middle:]]
    found = decode_together(bodies)
    assert found is not None
    assert pairs([found]) == entries == pairs([joined([decode_entries(body, "x") for body in bodies])])
    assert decode_together([whole[: middle + 70], whole[middle + 70 :]]) is None


def test_a_key_before_the_first_reads_no_block() -> None:
    reader, source = counted(written(ENTRIES, block_bytes=1 << 16))
    assert list(reader.lookup([b"a"])) == []
    assert len(source.reads) == 1


def test_absent_keys_cost_the_filter_and_no_block() -> None:
    data = written(ENTRIES, BloomFilter(10_000, 1e-9), block_bytes=1 << 20)
    reader, source = counted(data)
    assert reader.info["bloomFilterTypeCode"] == b"DYNAMIC_V0"
    assert list(reader.lookup([b"key-000001", b"key-004321"])) == []
    assert sum(size for _, size in source.reads[1:]) < 1 << 17
    assert list(reader.lookup([b"key-000001", b"key-000002"])) == [ENTRIES[1]]


def test_a_damaged_filter_is_refused() -> None:
    sink = io.BytesIO()
    writer = HFileWriter(sink, info={"bloomFilterTypeCode": b"DYNAMIC_V0"})
    writer.append(ENTRIES)
    writer.put_meta("bloomFilter", b"no filter")
    writer.close()
    with pytest.raises(CorruptFile, match="Bloom filter"):
        list(opened(sink.getvalue()).lookup([b"key-000002"]))


def test_keys_that_are_no_text_are_found_beside_a_filter() -> None:
    reader = opened(written(ENTRIES, BloomFilter(10_000, 1e-9)))
    assert list(reader.lookup([b"\xff", ENTRIES[5][0]])) == [ENTRIES[5]]


def test_a_base_file_says_its_least_and_greatest_key() -> None:
    reader = opened(written(ENTRIES, BloomFilter(10_000, 1e-9)))
    assert (reader.info["minRecordKey"], reader.info["maxRecordKey"]) == (ENTRIES[0][0], ENTRIES[-1][0])
    assert "minRecordKey" not in opened(written([], BloomFilter(10_000, 1e-9))).info
    assert "minRecordKey" not in opened(written(ENTRIES)).info


def test_the_cache_keeps_what_was_used_last_within_its_bytes() -> None:
    block = decode_entries(b"".join(encode_entry(*entry) for entry in ENTRIES[:10]), "x")
    memory = FileCache(4 * (block.size_bytes + 500))
    cache = CachedBlocks("x", memory)
    for offset in (1, 2, 3, 4):
        cache.put(offset, block)
    assert cache.get(1) is block
    cache.put(5, block)
    assert [offset in cache for offset in (1, 2, 3, 4, 5)] == [True, False, True, True, True]
    assert 1 not in CachedBlocks("y", memory)
    assert memory.size_bytes == 4 * (block.size_bytes + 500)
    small = CachedBlocks("x", FileCache(block.size_bytes - 1))
    small.put(1, block)
    assert 1 not in small


# ---- columns


@settings(max_examples=examples(60), deadline=None)
@given(
    values=st.lists(st.one_of(st.binary(max_size=30), st.just(encode_entry(b"key1", b"x"))), min_size=1, max_size=40),
    damage=st.one_of(st.none(), st.tuples(st.integers(0, 10_000), st.integers(1, 255))),
)
def test_entries_of_one_key_length_are_taken_apart_as_by_the_loop(
    values: list[bytes], damage: tuple[int, int] | None
) -> None:
    content = bytearray(b"".join(encode_entry(b"%04d" % n, value) for n, value in enumerate(values)))
    if damage is not None:
        content[damage[0] % len(content)] ^= damage[1]
    fast = _of_one_length(bytes(content))
    if damage is None:
        assert fast is not None or any(values)
    if fast is not None:
        slow = _one_by_one(bytes(content), "x")
        for one, other in zip(
            (fast.key_starts, fast.key_ends, fast.value_starts, fast.value_ends),
            (slow.key_starts, slow.key_ends, slow.value_starts, slow.value_ends),
            strict=True,
        ):
            assert np.array_equal(one, other)


def test_a_block_of_usual_size_needs_no_loop() -> None:
    content = b"".join(encode_entry(*entry) for entry in ENTRIES)
    assert _of_one_length(content) is not None
    assert pairs([decode_entries(content, "x")]) == ENTRIES


@pytest.mark.parametrize("prefixes", [[b"key-"], [b"key-00%02d" % n for n in range(0, 120, 3)], [b"key-0119", b"z"]])
@pytest.mark.parametrize("kept_blocks", [0, 32, 10_000])
def test_prefixes_of_many_blocks_give_each_entry_once(
    prefixes: list[bytes], kept_blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hfile_reader, "_KEPT_BLOCKS", kept_blocks)
    monkeypatch.setattr(hfile_reader, "_TOGETHER_BYTES", 100_000)
    reader = opened(written(ENTRIES))
    assert len(reader._index.root) > 32
    wanted = [entry for entry in ENTRIES if entry[0].startswith(tuple(prefixes))]
    assert pairs(reader.prefix_columns(prefixes)) == wanted
    assert wanted


@pytest.mark.parametrize("codec", ["gz", "none"])
@pytest.mark.parametrize("block_bytes", [1, 1000, 1 << 20])
def test_columns_and_pairs_make_the_same_bytes_in_whatever_portions(codec: str, block_bytes: int) -> None:
    entries = [(b"k%05d" % n * (1 + n % 3), b"v" * (n % 50)) for n in range(500)]
    entries.sort()
    whole = written(entries, codec=codec, block_bytes=block_bytes)
    sink = io.BytesIO()
    writer = HFileWriter(sink, codec=codec, block_bytes=block_bytes)
    writer.append(entries[:7])
    keys, values = (pa.array(column, pa.binary()) for column in zip(*entries, strict=True))
    writer.append_columns(keys[7:300], values[7:300])
    writer.append(entries[300:])
    writer.close()
    assert sink.getvalue() == whole
    assert pairs(opened(whole).scan()) == entries
    bodies = [len(block.body) for block in opened(whole)._scanned()]
    assert all(size <= block_bytes for size in bodies) or block_bytes == 1


@settings(max_examples=examples(40), deadline=None)
@given(
    keys=st.sets(st.binary(max_size=9), min_size=1),
    values=st.lists(st.binary(max_size=9), min_size=1, max_size=3),
    block_bytes=st.sampled_from([1, 50, None]),
)
def test_values_of_a_dictionary_make_the_same_bytes_as_each_of_them(
    keys: set[bytes], values: list[bytes], block_bytes: int | None
) -> None:
    ordered = sorted(keys)
    numbers = [at % len(values) for at in range(len(ordered))]
    sink = io.BytesIO()
    writer = HFileWriter(sink, block_bytes=block_bytes)
    coded = pa.DictionaryArray.from_arrays(pa.array([0, *numbers], pa.int32()), pa.array(values, pa.binary()))
    writer.append_columns(pa.array([b"before", *ordered], pa.binary()).slice(1), coded.slice(1))
    writer.close()
    entries = [(key, values[number]) for key, number in zip(ordered, numbers, strict=True)]
    assert sink.getvalue() == written(entries, block_bytes=block_bytes)


@pytest.mark.parametrize(
    ("keys", "values", "message"),
    [
        (["b", "a"], ["", ""], "ascend; b'a' came after b'b'"),
        (["a", "a"], ["", ""], "ascend"),
        (["a", None], ["", ""], "1 null"),
        (["a"], [None], "1 null"),
        (["a"], ["", ""], "each key has a value"),
        (["k" * 32768], [""], "32767"),
    ],
)
def test_columns_that_are_no_sorted_keys_are_refused_and_leave_nothing(
    keys: list[str | None], values: list[str | None], message: str
) -> None:
    sink = io.BytesIO()
    writer = HFileWriter(sink)
    with pytest.raises(SchemaMismatch, match=message):
        writer.append_columns(pa.array(keys, pa.string()), pa.array(values, pa.binary()))
    writer.append_columns(pa.array(["A"]), pa.array([b"v"]))
    with pytest.raises(SchemaMismatch, match="ascend"):
        writer.append_columns(pa.array(["A"]), pa.array([b"v"]))
    writer.close()
    assert pairs(opened(sink.getvalue()).scan()) == [(b"A", b"v")]


def test_keys_to_look_up_are_sorted_by_bytes_and_distinct_whatever_their_type() -> None:
    keys = ["é", "b", None, "", "a", "b"]
    for column in (pa.array(keys), pa.chunked_array([keys[:2], keys[2:]]), pa.array(keys, pa.large_string())[0:]):
        assert list(sorted_keys(column)) == [b"", b"a", b"b", "é".encode()]
    assert list(sorted_keys(pa.array(["x", "a", "b"])[1:])) == [b"a", b"b"]
    assert list(sorted_keys(pa.array([], pa.string()))) == []


def test_a_meta_block_has_no_block_of_its_kind_before_it() -> None:
    """Java follows this number from block to block."""
    data = written(ENTRIES[:50], bloom=BloomFilter(50, 1e-3))
    at = data.index(b"METABLKc")
    assert int.from_bytes(data[at + 16 : at + 24], "big", signed=True) == -1


def test_the_first_data_block_has_none_before_it_and_others_say_where_theirs_begins() -> None:
    data = written(ENTRIES[:50], block_bytes=200)
    starts = [found.start() for found in re.finditer(rb"DATABLK\*", data)]
    before = [int.from_bytes(data[at + 16 : at + 24], "big", signed=True) for at in starts]
    assert len(starts) > 2
    assert before == [-1, *starts[:-1]]


KEYS = ["", "a", "ab1", "ab2", "ac1", "b", "ba9"]


@pytest.mark.parametrize(
    "prefixes",
    [[], [""], ["ab"], ["ab", "ba"], ["a", "b"], ["ab1", "ac", "b"], ["ab1x"], ["aa", "zz"], ["a", "ba"]],
)
def test_rows_with_prefixes_are_those_whose_keys_begin_with_one(prefixes: list[str]) -> None:
    wanted = [number for number, key in enumerate(KEYS) if prefixes and key.startswith(tuple(prefixes))]
    ranges = ranges_of(prefix.encode() for prefix in prefixes)
    assert rows_in(key_column(pa.array(KEYS)), ranges).tolist() == wanted
    assert rows_in(key_column(pa.array(["skipped", *KEYS]).slice(1)), ranges).tolist() == wanted


def test_rows_with_keys_are_those_that_there_are() -> None:
    assert key_column(pa.array(KEYS)).rows_of(sorted_keys(pa.array(["b", "ab2", "no"]))).tolist() == [3, 5]
    assert not len(key_column(pa.array(KEYS)).rows_of(sorted_keys(pa.array([], pa.string()))))
    assert not len(key_column(pa.array([], pa.string())).rows_of(sorted_keys(pa.array(["b"]))))
