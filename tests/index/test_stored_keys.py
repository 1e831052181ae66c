"""Stored keys of base files whose columns are not what a table's are."""

from __future__ import annotations

import io
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.engine.base import TaskContext
from pyhudi.errors import CorruptFile
from pyhudi.index import key_lookup
from pyhudi.index.stored_keys import Candidate, StoredKeys, in_shares
from pyhudi.model.file_group import BaseFile
from pyhudi.storage.memory import MemoryStorage

NAME = "f-0_0-1-2_20240101000000000.parquet"


def keys_of(columns: Mapping[str, pa.Array], ordering: pa.Schema) -> list[pa.RecordBatch]:
    storage, sink = MemoryStorage(), io.BytesIO()
    pq.write_table(pa.table(dict(columns)), sink)
    storage.write(f"p/{NAME}", sink.getvalue())
    base = BaseFile(f"p/{NAME}", "p", "f-0", "20240101000000000", 1)
    return list(StoredKeys(storage, None, ordering, None).every_key(Candidate(base)))


def test_record_keys_that_are_no_text_are_refused_with_the_files_name() -> None:
    with pytest.raises(CorruptFile, match=rf"{NAME}: the record keys, of type list<.*can't be read"):
        keys_of({"_hoodie_record_key": pa.array([["a"]])}, pa.schema([]))
    with pytest.raises(CorruptFile, match=f"{NAME}: the record keys, of type binary, can't be read"):
        keys_of({"_hoodie_record_key": pa.array([b"\xff"])}, pa.schema([]))


@pytest.mark.thorough
def test_ordering_values_that_do_not_fit_the_tables_type_are_refused_with_the_files_name() -> None:
    columns = {"_hoodie_record_key": pa.array(["a"]), "ts": pa.array([2**40])}
    assert keys_of(columns, pa.schema([("ts", pa.int64())]))[0].num_rows == 1
    with pytest.raises(CorruptFile, match=f"{NAME}: the ordering values can't be read"):
        keys_of(columns, pa.schema([("ts", pa.int32())]))


@pytest.mark.thorough
def test_a_base_file_without_record_keys_is_refused_with_its_name() -> None:
    with pytest.raises(CorruptFile, match=f"{NAME}: expected record keys in the column _hoodie_record_key, found none"):
        keys_of({"ts": pa.array([1])}, pa.schema([]))


@pytest.mark.thorough
@pytest.mark.parametrize("compared_max", [1, 100], ids=["by the ends", "key by key"])
@pytest.mark.parametrize("wanted", [(0, 15, 29), (15,), (9, 10), (5, 40), (40, 41)])
def test_keys_are_found_in_whichever_row_group_they_stand(
    wanted: tuple[int, ...], compared_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_lookup, "_KEYS_COMPARED_MAX", compared_max)
    storage, sink = MemoryStorage(), io.BytesIO()
    keys = pa.array([f"k{n:02}" for n in range(30)])
    pq.write_table(pa.table({"_hoodie_record_key": keys}), sink, row_group_size=10)
    storage.write(f"p/{NAME}", sink.getvalue())
    base = BaseFile(f"p/{NAME}", "p", "f-0", "20240101000000000", len(sink.getvalue()))
    asked = {"p": pa.array([f"k{n:02}" for n in wanted])}
    find = key_lookup.FindKeys(StoredKeys(storage, None, pa.schema([]), None), asked, uses_bloom=False)

    found = [key for batch in find(TaskContext(0, 0, 0), [Candidate(base)]) for key in batch.column(0).to_pylist()]
    assert found == [f"k{n:02}" for n in wanted if n < 30]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("sizes", "most", "shares"),
    [
        ([], 3, []),
        ([9, 5, 4], 0, [[9, 5, 4]]),
        ([9, 5, 4], 1, [[9, 5, 4]]),
        ([4, 9, 5], 2, [[9], [5, 4]]),
        ([4, 9, 5, 1], 2, [[9, 1], [5, 4]]),
        ([4, 9, 5], 7, [[9], [5], [4]]),
    ],
)
def test_files_are_shared_out_by_their_sizes(sizes: list[int], most: int, shares: list[list[int]]) -> None:
    files = [Candidate(BaseFile(f"p/{n}", "p", f"f{n}", "1", size << 20)) for n, size in enumerate(sizes)]

    assert [[one.size_bytes >> 20 for one in share] for share in in_shares(files, most)] == shares


@pytest.mark.thorough
def test_of_many_small_files_each_task_opens_as_many() -> None:
    files = [Candidate(BaseFile(f"p/{n}", "p", f"f{n}", "1", 0)) for n in range(9)]

    assert [[one.file.path for one in share] for share in in_shares(files, 3)] == [
        [f"p/{n}" for n in range(first, 9, 3)] for first in range(3)
    ]
