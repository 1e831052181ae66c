"""A patched HFile has the entries of the old one, except for the changed ones."""

from __future__ import annotations

import io
import random
import re
import zipfile
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile
from pyhudi.formats.bloom import DYNAMIC_V0, BloomFilter
from pyhudi.formats.hfile import HFileReader, HFileWriter, patching
from pyhudi.formats.hfile.index import IndexTree
from pyhudi.formats.hfile.patching import HFilePatch
from tests.support.golden.folder import shared_folder
from tests.support.sweeps import examples

INFO = {"schema": b'"bytes"'}
Entries = Mapping[bytes, bytes]
Changes = Mapping[bytes, bytes | None]


def new_filter(keys: int = 1000) -> BloomFilter:
    return BloomFilter(keys, 1e-9, DYNAMIC_V0, 100_000)


def written(entries: Entries, block_bytes: int | None = 200, codec: str = "gz") -> bytes:
    sink = io.BytesIO()
    writer = HFileWriter(sink, info=INFO, codec=codec, block_bytes=block_bytes, bloom_filter=new_filter())
    writer.append(sorted(entries.items()))
    writer.close()
    return sink.getvalue()


def opened(data: bytes) -> HFileReader:
    return HFileReader(pa.BufferReader(data), "test.hfile")


def patch_of(data: bytes, changes: Changes, info: Mapping[str, bytes] = INFO) -> HFilePatch | None:
    keys = pa.array(sorted(changes), pa.binary())
    values = pa.array([changes[key] for key in sorted(changes)], pa.binary())
    return HFilePatch.of(opened(data), info, new_filter(), keys, values)


def patched(data: bytes, changes: Changes) -> bytes:
    patch = patch_of(data, changes)
    assert patch is not None
    sink = io.BytesIO()
    size_bytes, count = patch.write(sink)
    assert size_bytes == len(sink.getvalue())
    assert count == opened(sink.getvalue()).entry_count
    return sink.getvalue()


def entries_of(data: bytes) -> dict[bytes, bytes]:
    pairs = [(key, entries.value(row)) for entries in opened(data).scan() for row, key in enumerate(entries.keys)]
    assert [key for key, _ in pairs] == sorted({key for key, _ in pairs})
    return dict(pairs)


def after(entries: Entries, changes: Changes) -> dict[bytes, bytes]:
    return {key: value for key, value in sorted({**entries, **changes}.items()) if value is not None}


KEYS = st.text("abc\x00", max_size=4).map(str.encode)
NUMBERED = {b"key-%04d" % number: random.Random(number).randbytes(50) for number in range(0, 400, 2)}


@settings(max_examples=examples(150), deadline=None)
@given(
    entries=st.dictionaries(KEYS, st.binary(max_size=90), min_size=1, max_size=60),
    changes=st.dictionaries(KEYS, st.one_of(st.none(), st.binary(max_size=400)), max_size=20),
    block_bytes=st.sampled_from([1, 100, 1000]),
)
def test_a_patched_file_has_the_changed_entries_and_all_others(
    entries: dict[bytes, bytes], changes: dict[bytes, bytes | None], block_bytes: int
) -> None:
    share, patching._CHANGED_SHARE = patching._CHANGED_SHARE, 1000.0
    try:
        data, expected = written(entries, block_bytes), after(entries, changes)
        patch = patch_of(data, changes)
        blocks = opened(data).first_rows or ()
        if patch is None:  # of the first or the last block nothing stays
            ends = [*opened(data).entries_at([0]), *opened(data).entries_at([len(blocks) - 1])]
            assert any(all(changes.get(key, b"") is None for key in end.keys) for end in ends)
            return
        found = patched(data, changes)
        assert entries_of(found) == expected
        reader = opened(found)
        asked = sorted({*expected, *changes})
        assert dict(reader.lookup(asked)) == {key: expected[key] for key in asked if key in expected}
        again: Changes = {b"zzzz": b"1"}
        if patch_of(found, again) is not None:  # unless too many deleted keys are in its filter
            assert entries_of(patched(found, again)) == after(expected, again)
    finally:
        patching._CHANGED_SHARE = share


def test_what_a_patched_file_says_of_itself_is_what_one_rewritten_says() -> None:
    changes: Changes = {
        b"a": b"first",
        b"key-0011": b"new",
        b"key-0020": b"longer" * 9,
        b"key-0030": None,
        b"z": b"last",
    }
    found, anew = opened(patched(written(NUMBERED), changes)), opened(written(after(NUMBERED, changes)))
    differ = {"hfile.AVG_KEY_LEN", "hfile.AVG_VALUE_LEN"}  # of whole averages
    assert {k: v for k, v in found.info.items() if k not in differ} == {
        k: v for k, v in anew.info.items() if k not in differ
    }
    for name in differ:
        one, other = (int.from_bytes(reader.info[name], "big") for reader in (found, anew))
        assert abs(one - other) <= 1, name
    assert found._trailer.total_bytes == anew._trailer.total_bytes


def test_blocks_without_a_changed_key_are_copied_as_they_are_stored() -> None:
    data = written(NUMBERED)
    found = patched(data, {b"key-0101": b"new"})
    old, new = ([stored for stored, _ in opened(one).stored_blocks()] for one in (data, found))
    assert len(old) == len(new) > 50
    without_place = [[block[:16] + block[24:] for block in blocks] for blocks in (old, new)]
    assert sum(one != other for one, other in zip(*without_place, strict=True)) == 1
    previous = [int.from_bytes(block[16:24], "big", signed=True) for block in new]
    offsets = np.cumsum([0, *map(len, new)]).tolist()
    assert previous == [-1, *offsets[: len(new) - 1]]


def test_a_block_that_grows_much_becomes_several() -> None:
    small = {b"key-%05d" % number: b"v" * 100 for number in range(3000)}
    data = written(small, None)
    many: Changes = {b"key-00100-%04d" % number: b"w" * 9000 for number in range(5)}
    found = patched(data, many)
    assert entries_of(found) == after(small, many)
    assert len(opened(found).first_rows or ()) == len(opened(data).first_rows or ()) + 1


def test_new_keys_are_in_the_filter_with_the_old_ones() -> None:
    found = opened(patched(written(NUMBERED), {b"key-0011": b"new", b"key-0012": b"other"}))
    bloom = found.bloom_filter(100_000)
    assert bloom is not None
    assert bloom.keys_added == len(NUMBERED) + 1
    assert bloom.might_contain(pa.array([key.decode() for key in (*NUMBERED, b"key-0011")])).all()
    assert not bloom.might_contain(pa.array(["key-0013"])).any()


def test_damage_in_any_block_is_reported_and_not_copied() -> None:
    data = written(NUMBERED)
    top = opened(data)._index.top
    for number in (0, 7, len(top.rows) - 1):
        damaged = bytearray(data)
        damaged[top.offsets[number] + top.sizes[number] // 2] ^= 0xFF
        with pytest.raises(CorruptFile):
            patched(bytes(damaged), {b"key-0101": b"new"})


@pytest.mark.parametrize(
    ("data", "changes", "info"),
    [
        (written(NUMBERED), dict.fromkeys(list(NUMBERED)[:60], b""), INFO),
        (written(NUMBERED), {b"a": b"1"}, {"schema": b'"string"'}),
        (written(NUMBERED, codec="none"), {b"a": b"1"}, INFO),
        (written({}), {b"a": b"1"}, INFO),
        (written(NUMBERED), dict.fromkeys(list(NUMBERED)[-4:]), INFO),
        (written(NUMBERED), dict.fromkeys(list(NUMBERED)[:4]), INFO),
    ],
    ids=["many keys", "another schema", "not compressed", "empty", "the last block goes", "the first block goes"],
)
def test_what_cannot_be_patched_is_rewritten(data: bytes, changes: Changes, info: Mapping[str, bytes]) -> None:
    assert patch_of(data, changes, info) is None


def test_a_file_whose_index_leaves_a_block_out_is_not_patched() -> None:
    reader = opened(written(NUMBERED))
    assert reader.first_rows is not None
    for number in (0, 7, len(reader.first_rows) - 1):
        root = [entry for at, entry in enumerate(opened(written(NUMBERED))._index.root) if at != number]
        reader._index = IndexTree(root, 1, "x", lambda _: ())
        keys, values = (pa.array([text], pa.binary()) for text in (b"key-0101", b"new"))
        assert HFilePatch.of(reader, INFO, new_filter(), keys, values) is None


def test_a_file_without_a_filter_or_with_one_of_many_deleted_keys_is_rewritten() -> None:
    sink = io.BytesIO()
    plain = HFileWriter(sink, info=INFO, block_bytes=200)
    plain.append(sorted(NUMBERED.items()))
    plain.close()
    assert patch_of(sink.getvalue(), {b"a": b"1"}) is None

    data = written(NUMBERED)
    for number in range(40, 78, 2):
        data = patched(data, {b"key-%04d" % number: None})
    assert patch_of(data, {b"a": b"1"}) is None  # 19 of 200 keys in it are no more


@pytest.mark.parametrize("release", ["0.15.0", "1.0.2", "1.2.0"])
def test_base_files_of_real_hudi_are_patched(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patching, "_CHANGED_SHARE", 1000.0)
    files = 0
    with zipfile.ZipFile(shared_folder() / "golden" / release / "hfile_blocks.zip") as archive:
        for name in (n for n in archive.namelist() if re.search(r"metadata/.*\.hfile$", n) and "__MACOSX" not in n):
            data = archive.read(name)
            reader, entries = opened(data), entries_of(data)
            if len(entries) < 3:
                continue
            changes: Changes = {sorted(entries)[1]: b"changed", b"~new": b"value"}
            like = reader.bloom_filter(100_000)
            assert like is not None
            keys, values = (pa.array(column, pa.binary()) for column in zip(*sorted(changes.items()), strict=True))
            patch = HFilePatch.of(reader, {"schema": reader.info["schema"]}, like, keys, values)
            assert patch is not None, name
            sink = io.BytesIO()
            patch.write(sink)
            assert entries_of(sink.getvalue()) == after(entries, changes), name
            files += 1
    assert files
