"""Platforms without wheels of `pyroaring` and `isal`: NumPy and zlib in their place read and write the same."""

from __future__ import annotations

import base64
import io
import random
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isal import isal_zlib

from pyhudi.errors import CorruptFile
from pyhudi.formats.hfile import block
from pyhudi.formats.hfile.block import CODECS, DATA, encode_block, read_block
from pyhudi.formats.log import roaring
from pyhudi.formats.log.positions import decode_positions
from pyhudi.formats.log.roaring import NumpyBitmap, _numpy_bytes, bitmap_bytes, read_bitmap
from tests.support.sweeps import examples

RUNS = st.lists(st.tuples(st.integers(0, 1 << 18) | st.integers(0, 1 << 40), st.integers(1, 6000), st.integers(1, 3)))


@settings(max_examples=examples(100), deadline=None)
@given(RUNS)
def test_numpy_writes_and_reads_the_bitmaps_of_pyroaring(runs: list[tuple[int, int, int]]) -> None:
    parts = [np.arange(first, first + step * count, step) for first, count, step in runs]
    positions = np.unique(np.concatenate([np.zeros(0, np.int64), *parts]))
    data = bitmap_bytes(positions)
    assert roaring.BitMap64 is not None
    assert _numpy_bytes(positions) == data
    for bitmap in (read_bitmap(data), NumpyBitmap(data)):
        assert bitmap.positions().tolist() == positions.tolist()
        assert (len(bitmap), bitmap.size_bytes) == (len(positions), len(data))
        assert not len(bitmap) or bitmap.max() == positions[-1]


def read_or_refused(data: bytes) -> list[int] | None:
    try:
        return decode_positions(base64.b64encode(data).decode(), "x").tolist()
    except CorruptFile:
        return None


@pytest.mark.thorough
def test_of_damaged_bitmaps_numpy_reads_none_otherwise_than_pyroaring(monkeypatch: pytest.MonkeyPatch) -> None:
    some, count = random.Random(1), {True: 0, False: 0}
    for positions in (np.array([5, 70000, 70001, 70002, 1 << 33]), np.arange(0, 9000, 2), np.arange(9000)):
        data = bitmap_bytes(positions)
        for _ in range(200):
            damaged = bytearray(data)
            damaged[some.randrange(min(len(data), 60))] ^= 1 << some.randrange(8)
            by_pyroaring = read_or_refused(bytes(damaged))
            with monkeypatch.context() as patch:
                patch.setattr(roaring, "BitMap64", None)
                by_numpy = read_or_refused(bytes(damaged))
            count[by_numpy is None] += 1
            assert by_numpy in (None, by_pyroaring)  # a count that contradicts the runs is refused by NumPy alone
    assert min(count.values()) > 100, count


@pytest.fixture(params=["isal", "zlib"])
def writer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    use(request.param, monkeypatch)
    return str(request.param)


def use(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block, "deflate", {"isal": isal_zlib, "zlib": zlib}[name])


@pytest.mark.thorough
@pytest.mark.parametrize("reader", ["isal", "zlib"])
def test_blocks_of_each_are_read_by_the_other_and_damage_is_reported(
    writer: str, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for body in (b"", b"a", b"key-17" * 9000, random.Random(2).randbytes(50_000)):
        stored = encode_block(DATA, body, -1, CODECS["gz"])
        with monkeypatch.context() as patch:
            use(reader, patch)
            read = read_block(io.BytesIO(stored), 0, len(stored), CODECS["gz"], "x")
            assert (read.body, read.next_offset) == (body, len(stored))
            damaged = bytearray(stored)
            damaged[len(stored) // 2 if len(body) > 1 else 34] ^= 0xFF
            with pytest.raises(CorruptFile, match="x at byte 0"):
                read_block(io.BytesIO(bytes(damaged)), 0, len(stored), CODECS["gz"], "x")


WITHOUT = """
import sys
sys.modules["pyroaring"] = sys.modules["isal"] = None
"""
WORK = """
import pyarrow as pa
from pyhudi import HudiTable, write_hudi
from pyhudi.formats.hfile import block
from pyhudi.formats.log import roaring
options = {
    "hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id", "hoodie.metadata.enable": "true",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.table.ordering.fields": "v",
    "hoodie.metadata.global.record.level.index.enable": "true", "hoodie.write.record.positions": "true",
}
table = lambda numbers, v: pa.table({"id": [f"k{n:03d}" for n in numbers], "v": [v] * len(numbers)})
path, version = sys.argv[1], int(sys.argv[2])
if version == 1:
    write_hudi(path, table(range(300), 1), options=options)
HudiTable.open(path).upsert(table(range(0, 100 * version, 3), version), options=options)
assert HudiTable.open(path).metadata.validate() == ()
print(sum(HudiTable.open(path).scan().to_arrow().column("v").to_pylist()), block.deflate.__name__, roaring.BitMap64)
"""


def run(code: str, path: Path, version: int) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(path), str(version)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    return done.stdout.split(maxsplit=2)


@pytest.mark.thorough
def test_a_table_is_written_by_turns_with_them_and_without(tmp_path: Path) -> None:
    total, *used = run(WITHOUT + WORK, tmp_path / "t", 1)
    assert (total, used) == ("300", ["zlib", "None\n"])
    total, *used = run("import sys" + WORK, tmp_path / "t", 2)
    assert (total, used[0]) == (str(300 + 67), "isal.isal_zlib")
    assert run(WITHOUT + WORK, tmp_path / "t", 3)[0] == str(300 + 2 * 100)
