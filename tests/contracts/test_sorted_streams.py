"""Streams that are larger than memory are sorted range by range: the same rows in the same order as in memory."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi import HudiTable, StorageError, write_hudi
from pyhudi.engine import local, sorted_ranges
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.sorted_ranges import SortedRanges
from tests.support.sweeps import examples

SCHEMA = pa.schema([("p", pa.string()), ("n", pa.float64()), ("came", pa.int64())])
ROWS = st.lists(st.tuples(st.sampled_from([None, "", "a", "b", "ü"]), st.none() | st.floats(width=16)), max_size=60)


def batches_of(table: pa.Table, rows: int) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=rows))


def numbered(rows: list[tuple[Any, Any]]) -> pa.Table:
    return pa.table([[p for p, _ in rows], [n for _, n in rows], range(len(rows))], schema=SCHEMA)


@settings(deadline=None, max_examples=examples(60))
@given(ROWS, st.sampled_from([["p"], ["p", "n"], ["n"], []]), st.integers(1, 9), st.sampled_from([1, 50, 400]))
def test_ranges_hold_what_a_stable_sort_in_memory_gives(
    rows: list[tuple[Any, Any]], keys: list[str], batch_rows: int, range_bytes: int
) -> None:
    table = numbered(rows)
    expected = table.sort_by([(name, "ascending") for name in [*keys, "came"]])

    ranges = SortedRanges(SCHEMA, keys, len(keys[:1]), 0, range_bytes)
    taken = ranges.load(batches_of(table, batch_rows))

    if not rows:
        assert taken == table
        return
    assert taken is None
    shares = [list(ranges.share(number, 3, 7)) for number in range(3)]
    found = pa.Table.from_batches([batch for share in shares for batch in share], SCHEMA)
    assert found["came"].to_pylist() == expected["came"].to_pylist()
    if keys:
        first_keys = [
            {row for batch in share for row in batch.column(keys[0]).to_pylist()} for share in map(named, shares)
        ]
        assert sum(map(len, first_keys)) == len(set().union(*first_keys)), "equal first keys are in one share"


@pytest.mark.thorough
def test_ranges_of_a_stream_whose_sample_was_thinned_are_about_equally_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_ranges, "_SAMPLE_STEP", 2)
    monkeypatch.setattr(sorted_ranges, "_SAMPLED_ROWS", 100)
    numbers = np.random.default_rng(2).permutation(10_000)
    table = pa.table({"n": numbers.astype(np.float64), "came": numbers})
    ranges = SortedRanges(table.schema, ["n"], 0, 0, table.nbytes // 10)

    assert ranges.load(batches_of(table, 70)) is None

    assert pa.Table.from_batches(ranges.share(0, 1, 500))["came"].to_pylist() == list(range(10_000))
    assert len(ranges.ranges) == 10
    assert max(found.bytes for found in ranges.ranges) < 1.8 * table.nbytes / 10


def named(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The batches with floats as text: NaN is no equal of itself."""
    return [batch.set_column(1, "n", batch.column("n").cast(pa.string())) for batch in batches]


def large_stream(rows: int) -> Iterator[pa.RecordBatch]:
    random = np.random.default_rng(1)
    for _ in range(rows // 10_000):
        numbers = random.integers(0, 1 << 40, 10_000)
        yield pa.record_batch(
            {"p": pa.array(np.where(numbers % 3, "much", "little")), "k": numbers, "x": random.random(10_000)}
        )


@pytest.mark.thorough
@pytest.mark.parametrize(
    "order", [{"sort_by": ["p", "k"], "scope": "global"}, {"partition_by": ["p"]}, {"sort_by": ["k"]}]
)
def test_a_large_stream_is_sorted_in_bounded_memory(order: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "SORT_BYTES", 2 << 20)
    rows, first = 1_000_000, next(large_stream(10_000))
    engine = LocalEngine(2)
    frame = engine.arrange(pa.RecordBatchReader.from_batches(first.schema, large_stream(rows)), **order)

    gc.collect()
    before, peak, found = pa.total_allocated_bytes(), 0, 0
    for part in frame.parts:
        for batch in part():
            peak = max(peak, pa.total_allocated_bytes() - before)
            found += len(batch)

    assert found == rows
    assert peak < rows * first.nbytes / len(first) / 3


@pytest.mark.thorough
def test_the_files_go_with_the_frame(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(local, "SORT_BYTES", 100)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = LocalEngine(2)
    frame = engine.arrange(batches_of(numbered([("a", 1.0)] * 50), 5), sort_by=["p"])

    assert engine.collect(frame).num_rows == 50
    assert engine.collect(frame)["came"].to_pylist() == list(range(50)), "once more, from the same files"
    del frame
    gc.collect()
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
def test_a_folder_without_room_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ranges = SortedRanges(SCHEMA, ["p"], 1, 0, 10)
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: str(tmp_path / "gone"))
    with pytest.raises(StorageError, match=r"gone.*TMPDIR"):
        ranges.load(batches_of(numbered([("a", 1.0)] * 50), 5))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "sort_mode", ["GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"]
)
def test_a_sorted_bulk_insert_of_a_large_stream_stores_what_one_of_a_table_stores(
    sort_mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(2)
    ids = random.permutation(3000)
    rows = pa.table({"id": [f"{n:05d}" for n in ids], "p": [f"p{n % 4}" for n in ids], "v": ids})
    write_hudi(
        tmp_path / "table",
        rows,
        "bulk_insert",
        record_key="id",
        partition_by="p",
        options={"hoodie.bulkinsert.sort.mode": sort_mode},
    )

    monkeypatch.setattr(local, "SORT_BYTES", 20_000)
    stream = batches_of(rows, 100)
    write_hudi(
        tmp_path / "stream",
        stream,
        "bulk_insert",
        record_key="id",
        partition_by="p",
        options={"hoodie.bulkinsert.sort.mode": sort_mode},
    )

    of_table, of_stream = (HudiTable.open(tmp_path / name) for name in ("table", "stream"))
    assert of_stream.to_arrow(["id", "p", "v"]).sort_by("id") == of_table.to_arrow(["id", "p", "v"]).sort_by("id")
    for file in of_stream.inspect.files()["path"].to_pylist():
        stored = pq.read_table(tmp_path / "stream" / file, columns=["id"])["id"].to_pylist()
        if sort_mode != "PARTITION_PATH_REPARTITION":
            assert stored == sorted(stored)
    if "REPARTITION" in sort_mode:
        assert of_stream.inspect.files().num_rows == 4, "a partition is one task's"
