"""Bloom filters, against real Hudi's footers and Hadoop's own classes."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import ConfigError, CorruptFile
from pyhudi.formats.base.ranges import KeyRange
from pyhudi.formats.bloom import DYNAMIC_V0, SIMPLE, BloomFilter
from tests.support.sweeps import examples

Golden = Callable[[str, str], tuple[Path, dict[str, Any]]]

# org.apache.hadoop.util.bloom.BloomFilter(1918, 14, MURMUR) and DynamicBloomFilter(101, 7, MURMUR, 4) of these keys, as
# their `write` prints them: all tail lengths, bytes above 0x7f, an astral character, a NUL.
HADOOP_KEYS = [
    "é", "日本", "😀x", "ключ-1", "a", "ab", "abc", "abcd", "ab\u00ff", "ÿÿÿÿÿ", "x" * 40 + "ü", "naïve", "\u0000z",
]  # fmt: skip
HADOOP_SIMPLE = (
    "/////wAAAA4BAAAHfhpAAAAAIxEAACAABAASCAAACgAAAACMAQAgAAAEAIAAAACAAAAABAAAAAFEAAAQgABAMAAgGAMFABAAYRIB"
    "AAAAAIggAEAICAAAAAAQgAQAAACgAGCQAAAASAIgYCBMAgAAIgBQAAAQAUEAIAKQAAAACACYAECAABAEGBABQAAAACAAAAAABCAE"
    "AIIAALEAACACAKAABAAAAAEAAIBgAAAAwSEAACAAAJAAIFIABIAAIJBBIgQAACAQAAAAgGgAAgAAAIAAAAAAAAgKBACAAgAAAAAA"
    "AAAAAMiAAABAECAAAAgAAMAQAEABAADAQEAGAA=="
)
HADOOP_DYNAMIC = (
    "/////wAAAAcBAAAAZQAAAAQAAAABAAAABP////8AAAAHAQAAAGWgk8AIAkBCM0IUAYAA/////wAAAAcBAAAAZaYMz2qICARMASAA"
    "AAD/////AAAABwEAAABlNIIRGQSBCSCUCJjAAP////8AAAAHAQAAAGUCACIAEAQAIABAAAAA"
)

FOOTERS = [
    # version, table, entries, probability, kind: the options that the table was written with
    ("0.15.0", "cow_operations", 60_000, 1e-9, DYNAMIC_V0),
    ("1.0.2", "cow_operations", 60_000, 1e-9, DYNAMIC_V0),
    ("1.2.0", "cow_operations", 60_000, 1e-9, DYNAMIC_V0),
    ("1.2.0", "keys_typed_bulk_insert", 60_000, 1e-9, DYNAMIC_V0),
    ("1.2.0", "keys_complex_two", 60_000, 1e-9, DYNAMIC_V0),
    ("0.15.0", "hfile_blocks", 1000, 1e-9, DYNAMIC_V0),  # 17 rows
    ("1.2.0", "hfile_blocks", 1000, 1e-9, DYNAMIC_V0),
    ("1.0.2", "index_bloom", 100, 1e-4, SIMPLE),
    ("1.2.0", "index_bloom", 100, 1e-4, SIMPLE),
]


@pytest.mark.parametrize(("version", "name", "entries", "fpp", "kind"), FOOTERS)
def test_the_filter_of_a_files_keys_is_the_one_in_its_footer(
    golden: Golden, version: str, name: str, entries: int, fpp: float, kind: str
) -> None:
    folder, _ = golden(version, name)
    files = [path for path in folder.rglob("*.parquet") if ".hoodie" not in path.parts]
    assert files
    for path in files:
        file = pq.ParquetFile(path)
        footer = file.metadata.metadata
        bloom = BloomFilter(entries, fpp, kind, 100_000)
        keys = file.read(columns=["_hoodie_record_key"]).column(0)
        bloom.add(keys)
        assert bloom.to_base64().encode() == footer[b"org.apache.hudi.bloomfilter"], path.name
        assert footer.get(b"hoodie_bloom_filter_type_code") == (None if kind == SIMPLE else kind.encode())
        ends = KeyRange()
        ends.add(keys)
        assert (ends.least, ends.greatest) == tuple(
            text.decode() if (text := footer.get(key)) is not None else None
            for key in (b"hoodie_min_record_key", b"hoodie_max_record_key")
        )


def test_bits_are_those_of_hadoops_filter_for_text_of_all_scripts() -> None:
    bloom = BloomFilter(100, 1e-4, SIMPLE)
    bloom.add(pa.array(HADOOP_KEYS))

    assert (bloom.num_bits, bloom.num_hashes) == (1918, 14)
    assert bloom.to_base64() == HADOOP_SIMPLE


def test_a_filter_of_hadoop_with_four_rows_goes_on_as_hadoops_does() -> None:
    whole = BloomFilter.from_base64(HADOOP_DYNAMIC, DYNAMIC_V0)
    assert whole.num_rows == 4
    assert whole.might_contain(pa.array(HADOOP_KEYS)).all()

    rows = [BloomFilter.from_base64(HADOOP_DYNAMIC, DYNAMIC_V0)]
    empty = bytearray(base64.b64decode(HADOOP_DYNAMIC))[: 25 + 26]
    empty[21:25] = struct.pack(">i", 1)
    empty[17:21] = struct.pack(">i", 0)
    empty[25 + 13 :] = bytes(13)
    rows[0] = BloomFilter.from_base64(base64.b64encode(empty).decode(), DYNAMIC_V0)
    rows[0].add(pa.array(HADOOP_KEYS))
    assert rows[0].to_base64() == HADOOP_DYNAMIC


def test_a_full_dynamic_filter_deals_keys_over_its_rows_like_hudis() -> None:
    keys = [f"key-{number}" for number in range(23)]
    bloom = BloomFilter(5, 0.01, DYNAMIC_V0, 10)
    bloom.add(pa.array(keys))

    # Rows fill with 5 and 5; the first key after that goes to row 0, and so does the next, which starts the round.
    expected = [[*keys[:5], keys[10], *keys[11::2]], [*keys[5:10], *keys[12::2]]]
    single = [BloomFilter(5, 0.01, SIMPLE) for _ in expected]
    for row, of_row in zip(single, expected, strict=True):
        row.add(pa.array(of_row))
    tail = b"".join(base64.b64decode(row.to_base64()) for row in single)
    data = base64.b64decode(bloom.to_base64())
    assert data[25:] == tail
    assert struct.unpack(">ii", data[17:25]) == (18, 2)  # the last row's counter goes on counting


@settings(max_examples=examples(60), deadline=None)
@given(
    keys=st.lists(st.text(max_size=70), max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=4),
    kind=st.sampled_from([SIMPLE, DYNAMIC_V0]),
    entries=st.integers(1, 12),
)
def test_no_key_is_ever_denied_and_batches_do_not_matter(
    keys: list[str], cuts: list[int], kind: str, entries: int
) -> None:
    keys = [key for key in keys if not any("\ud800" <= char <= "\udfff" for char in key)]
    at_once = BloomFilter.build(pa.array(keys, pa.string()), entries, 0.01, kind, 30)
    piecewise = BloomFilter(entries, 0.01, kind, 30)
    bounds = [0, *sorted(min(cut, len(keys)) for cut in cuts), len(keys)]
    for first, last in pairwise(bounds):
        piecewise.add(pa.array(keys, pa.string()).slice(first, last - first))

    assert piecewise.to_base64() == at_once.to_base64()
    assert at_once.might_contain(pa.array(keys, pa.string())).all()
    again = BloomFilter.from_base64(at_once.to_base64(), None if kind == SIMPLE else kind, 30)
    assert again.to_base64() == at_once.to_base64()


def test_a_decoded_filter_takes_further_keys_as_if_it_had_never_been_away() -> None:
    keys = pa.array([f"k{number}" for number in range(64)])
    for cut in range(65):
        first = BloomFilter.build(keys.slice(0, cut), 7, 0.01, DYNAMIC_V0, 20)
        second = BloomFilter.from_base64(first.to_base64(), DYNAMIC_V0, 20)
        second.add(keys.slice(cut))
        first.add(keys.slice(cut))
        assert second.to_base64() == first.to_base64(), cut


def test_the_count_of_a_full_filter_ends_at_javas_greatest_int() -> None:
    stored = bytearray(base64.b64decode(BloomFilter(10, 0.1).to_base64()))
    stored[17:21] = (2**31 - 1).to_bytes(4, "big")
    bloom = BloomFilter.from_base64(base64.b64encode(bytes(stored)).decode(), DYNAMIC_V0, max_entries=1)
    bloom.add(pa.array(["a", "b"]))

    again = base64.b64decode(bloom.to_base64())
    assert again[17:21] == stored[17:21]
    assert BloomFilter.from_base64(bloom.to_base64(), DYNAMIC_V0).might_contain(pa.array(["a", "b"])).all()


def test_most_absent_keys_are_denied() -> None:
    bloom = BloomFilter.build(pa.array([f"in-{n}" for n in range(1000)]), 1000, 0.01, SIMPLE, 0)

    hits = bloom.might_contain(pa.array([f"out-{n}" for n in range(20_000)])).mean()

    assert 0.003 < hits < 0.02


def test_null_keys_are_refused() -> None:
    with pytest.raises(ConfigError, match="must not be null"):
        BloomFilter(10, 0.1).add(pa.array(["a", None]))


@pytest.mark.parametrize(
    ("entries", "fpp", "kind"), [(0, 0.1, SIMPLE), (1, 0.0, SIMPLE), (1, 1.0, SIMPLE), (1, 0.1, "CUCKOO")]
)
def test_parameters_that_give_no_filter_are_refused(entries: int, fpp: float, kind: str) -> None:
    with pytest.raises(ConfigError):
        BloomFilter(entries, fpp, kind)


SIMPLE_ROW = struct.pack(">iibi", -1, 3, 1, 16) + b"\x00\x00"
DYNAMIC = struct.pack(">iibiiii", -1, 3, 1, 16, 5, 0, 1) + SIMPLE_ROW


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", None),
        (SIMPLE_ROW[:-1], None),
        (SIMPLE_ROW + b"\x00", None),
        (struct.pack(">iibi", -1, 3, 1, 2**31 - 1) + b"\x00\x00", None),
        (struct.pack(">iibi", -1, 2**30, 1, 16) + b"\x00\x00", None),
        (struct.pack(">iibi", -1, 3, 0, 16) + b"\x00\x00", None),
        (struct.pack(">iibi", -1, 3, 1, -16) + b"\x00\x00", None),
        (struct.pack(">iibi", 7, 3, 1, 16) + b"\x00\x00", None),
        (struct.pack(">iibiiii", -1, 3, 1, 16, 5, 0, 2**31 - 1) + SIMPLE_ROW, DYNAMIC_V0),
        (struct.pack(">iibiiii", -1, 3, 1, 16, 5, 0, -1) + SIMPLE_ROW, DYNAMIC_V0),
        (struct.pack(">iibiiii", -1, 3, 1, 16, 0, 0, 1) + SIMPLE_ROW, DYNAMIC_V0),
        (struct.pack(">iibiiii", -1, 3, 1, 24, 5, 0, 1) + SIMPLE_ROW + b"\x00", DYNAMIC_V0),
        (DYNAMIC[:30], DYNAMIC_V0),
        (DYNAMIC, "DYNAMIC_V7"),
    ],
)
def test_forged_filters_are_corrupt_files(data: bytes, code: str | None) -> None:
    with pytest.raises(CorruptFile):
        BloomFilter.from_base64(base64.b64encode(data).decode(), code)


def test_text_that_is_not_base64_is_a_corrupt_file() -> None:
    with pytest.raises(CorruptFile, match="base64"):
        BloomFilter.from_base64("!!!", None)


def test_key_ranges_are_in_javas_order_also_beyond_the_basic_plane() -> None:
    ends = KeyRange()
    ends.add(pa.array(["\ufffd", "\U00010000", "a"]))

    assert (ends.least, ends.greatest) == ("a", "\ufffd")  # UTF-8 bytes would put the astral character last


def units(text: str) -> list[int]:
    """The UTF-16 units that Java's `String.compareTo` compares."""
    data = text.encode("utf-16-le")
    return [low | high << 8 for low, high in zip(data[::2], data[1::2], strict=True)]


# Both sides of the surrogates, in UTF-8 bytes E.. against F0..: here the two orders part.
SCRIPTS = st.text(st.sampled_from("az\u0000é\ud7ff\ue000\uffff\U00010000\U0001f600\U0010ffff"), max_size=3)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.lists(SCRIPTS, max_size=4), max_size=4), st.integers(0, 2))
def test_a_key_range_has_the_ends_that_utf_16_units_say_however_the_keys_are_parted(
    parts: list[list[str]], skipped: int
) -> None:
    ends, added = KeyRange(), []
    for keys in parts:
        rest = pa.array(keys, pa.string()).slice(skipped)  # a part of a longer array, as batches hand them over
        ends.add(pa.chunked_array([rest[:1], rest[1:]], pa.string()))
        added += keys[skipped:]

    assert (ends.least, ends.greatest) == (min(added, key=units, default=None), max(added, key=units, default=None))
