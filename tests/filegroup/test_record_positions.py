"""Record positions: real Hudi's bitmaps are read, ours are the same bytes, damaged ones are refused."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from pyhudi.errors import CorruptFile
from pyhudi.filegroup.write.append import BasePositions
from pyhudi.formats.log import roaring
from pyhudi.formats.log.envelope import HeaderKey
from pyhudi.formats.log.positions import decode_positions, encode_positions
from pyhudi.model.keys import RECORD_KEY
from pyhudi.storage.memory import MemoryStorage
from pyhudi.view.file_system_view import FileSystemView
from tests.support.golden.folder import shared_folder
from tests.support.sweeps import examples
from tests.support.tables.merge_on_read import MergeOnRead
from tests.support.values.damage import assert_refused_or_read
from tests.support.values.positions import blocks_with_positions, check_positions


@pytest.fixture(params=["pyroaring", "numpy"], autouse=True)
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numpy":
        monkeypatch.setattr(roaring, "BitMap64", None)


SOME = [[3], [0, 1, 2, 3], [0, 2, 4], [5, 70000, 70001, 70002, 1 << 33], list(range(0, 20000, 2)), list(range(100_000))]


@pytest.mark.parametrize("positions", SOME)
def test_positions_come_back(positions: list[int]) -> None:
    assert decode_positions(encode_positions(np.array(positions, np.int64)), "header").tolist() == positions


def test_real_hudis_text_is_ours() -> None:
    assert encode_positions(np.arange(4)) == "AQAAAAAAAAAAAAAAOzAAAAEAAAMAAQAAAAMA"
    assert encode_positions(np.array([3])) == "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAAAEAAAAAMA"


@pytest.mark.parametrize(("count", "digest"), [
    (4096, "b95d4872f8923293f43ea169957925c6a83c9679e3d012c4c93c4c8b66248c6c"),
    (4097, "9edcbcd1a21f69ad5b5d6488a655669c1c19e26a3ee9003910a52ecee72cfdbd"),
])  # fmt: skip
def test_the_last_container_of_values_and_the_first_of_bits_are_those_of_roaring(count: int, digest: str) -> None:
    """Both are of 8192 bytes: only the number of values says which of the two a reader has before it. The digests are
    of what CRoaring writes, by `pyroaring.BitMap64(range(0, 2 * count, 2)).serialize()`.
    """
    positions = np.arange(0, 2 * count, 2)
    data = base64.b64decode(encode_positions(positions))

    assert hashlib.sha256(data).hexdigest() == digest
    assert (data[-8192:] == positions.astype("<u2").tobytes()) == (count == 4096)
    assert decode_positions(base64.b64encode(data).decode(), "header").tolist() == positions.tolist()


@settings(max_examples=examples(60), deadline=None)
@given(st.sets(st.one_of(st.integers(0, 300), st.integers(65500, 66000), st.integers(0, 1 << 40)), max_size=300))
def test_any_positions_come_back(positions: set[int]) -> None:
    given_positions = np.array(sorted(positions), np.int64)
    assert decode_positions(encode_positions(given_positions), "header").tolist() == sorted(positions)


@pytest.mark.parametrize("positions", SOME[:5])
def test_damaged_positions_are_refused(positions: list[int]) -> None:
    data = base64.b64decode(encode_positions(np.array(positions, np.int64)))
    read = lambda variant: decode_positions(base64.b64encode(variant).decode(), "header")  # noqa: E731
    assert_refused_or_read(data[:200], read, 1)
    assert_refused_or_read(data, read, 331)
    assert_refused_or_read(
        encode_positions(np.array([3])).encode(), lambda v: decode_positions(v.decode("latin-1"), "")
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("", "found 0"),
        ("0000000000000000 00", "found 9"),
        ("0100000000000000", "not a Roaring bitmap"),
        ("0100000000000000 00000000 3a300000 01000000 0000 0000 10000000 0300 ff", "found 31"),
        ("0100000000000000 00000080 3a300000 01000000 0000 0000 10000000 0300", "below 2"),
        ("0100000000000000 00000000 3a300000 01000000 0000 0100 10000000 0300 0300", "not a Roaring bitmap"),
    ],
)
def test_what_is_no_bitmap_of_positions_is_refused(data: str, words: str) -> None:
    with pytest.raises(CorruptFile, match=rf"header: .*{words}"):
        decode_positions(base64.b64encode(bytes.fromhex(data)).decode(), "header")


def test_positions_of_more_rows_than_a_file_has_are_refused_before_they_take_memory() -> None:
    bitmap = BitMap64(range(1 << 33))
    bitmap.run_optimize()
    forged = base64.b64encode(bitmap.serialize()).decode()
    with pytest.raises(CorruptFile, match="at most 2147483648 record positions, found 8589934592"):
        decode_positions(forged, "header")


@pytest.mark.parametrize(
    ("version", "name"),
    [("1.0.2", "g2_merge_event_time"), ("1.2.0", "g2_merge_event_time"), ("1.2.0", "g2_logs_parquet")],
)
def test_real_hudis_positions_are_rows_of_base_files(version: str, name: str) -> None:
    path = shared_folder() / "golden" / version / f"{name}.zip"
    storage = MemoryStorage()
    with zipfile.ZipFile(path) as archive:
        for entry in archive.namelist():
            if not entry.endswith("/"):
                storage.write(entry.partition("/")[2], archive.read(entry))
    assert check_positions(storage) > 0


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("block_format", ["avro", "parquet"])
def test_written_positions_are_rows_of_base_files(version: str, block_format: str) -> None:
    given_options = {"write_record_positions": "true", "logfile_data_block_format": block_format}
    table = MergeOnRead(version, **given_options)
    table.bulk_insert(*((f"k{n:02d}", "x", 1, n) for n in range(30)))
    table.upsert(*((f"k{n:02d}", "x", 2, n + 100) for n in (17, 3, 4, 5, 29)))
    table.delete(("k04", "x"), ("k01", "x"))
    table.mark_deleted(("k07", "x", 5, 0))
    assert check_positions(table.memory) == 3
    values = {key: v for key, _, _, v in table.rows()}
    assert {"k01", "k04", "k07"}.isdisjoint(values)
    assert [values[key] for key in ("k17", "k03", "k05", "k29", "k00")] == [117, 103, 105, 129, 0]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A line for each time that a write reads keys of a base file only to say where they are."""
    paths: list[str] = []
    original = BasePositions._looked_up

    def looked_up(self: BasePositions, keys: pa.Array) -> Any:
        paths.append(self._base_file.path)
        return original(self, keys)

    monkeypatch.setattr(BasePositions, "_looked_up", looked_up)
    return paths


def changed(**options: str) -> MergeOnRead:
    """Two partitions of 30 keys each; updates and deletes in both."""
    table = MergeOnRead("9", **options)
    table.bulk_insert(*((f"k{n:02d}", p, 1, n) for n in range(30) for p in ("x", "y")))
    table.upsert(*((f"k{n:02d}", p, 2, n + 100) for n, p in ((17, "x"), (3, "y"), (4, "x"), (5, "y"), (29, "x"))))
    table.delete(("k04", "x"), ("k01", "y"))
    return table


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM"])
def test_an_index_that_has_seen_the_rows_says_where_they_stand_without_another_look(
    index: str, looks: list[str]
) -> None:
    table = changed(index_type=index)
    assert check_positions(table.memory) == 4
    assert not looks


@pytest.mark.parametrize("wanted", [False, True])
def test_a_bucket_index_sees_no_rows_so_blocks_name_none_unless_asked_to_look(wanted: bool, looks: list[str]) -> None:
    more = {"write_record_positions": "true"} if wanted else {}
    table = MergeOnRead("9", index_type="BUCKET", bucket_index_num_buckets="1", **more)
    table.upsert(("a", "x", 1, 1), ("b", "x", 1, 2))
    table.compact_now()
    table.upsert(("b", "x", 2, 3))
    assert check_positions(table.memory) == len(looks) == int(wanted)


def test_no_positions_are_written_when_they_are_not_wanted_or_the_table_is_older() -> None:
    assert check_positions(changed(write_record_positions="false").memory) == 0
    older = MergeOnRead("6")
    older.bulk_insert(("a", "x", 1, 1))
    older.upsert(("a", "x", 2, 3))
    assert check_positions(older.memory) == 0


def test_a_key_that_the_base_file_lacks_leaves_a_block_without_positions() -> None:
    table = MergeOnRead("9")
    table.bulk_insert(("a", "x", 1, 1), ("b", "x", 1, 2))
    (file_slice,) = FileSystemView.load(table.meta).all_slices()
    assert file_slice.base_file is not None
    positions = BasePositions(table.storage, file_slice.base_file)
    rows = pa.table({RECORD_KEY: ["b", "z"]})
    assert positions.in_order(rows) == (rows, {})
    ordered, header = positions.in_order(pa.table({RECORD_KEY: ["b", "a"]}))
    assert ordered.column(0).to_pylist() == ["a", "b"]
    assert decode_positions(header[HeaderKey.RECORD_POSITIONS], "").tolist() == [0, 1]


@pytest.mark.parametrize(("block_format", "given", "in_header"), [
    ("parquet", None, False), ("parquet", "true", True), ("avro", None, True),
])  # fmt: skip
def test_blocks_of_parquet_name_positions_where_hudi_does_not_look_unless_asked(
    block_format: str, given: str | None, in_header: bool
) -> None:
    more = {} if given is None else {"write_record_positions": given}
    table = changed(logfile_data_block_format=block_format, **more).memory

    blocks = [block for _, block in blocks_with_positions(table) if block.is_data]
    assert len(blocks) == 2
    assert [HeaderKey.RECORD_POSITIONS in block.frame.header for block in blocks] == [in_header] * 2
    assert check_positions(table) == 4
