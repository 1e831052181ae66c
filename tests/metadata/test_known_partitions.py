"""Statistics of partitions from what the process knows: the same as those read from the metadata table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi import HudiTable, write_hudi
from pyhudi.formats.column_stats import ColumnRange
from pyhudi.formats.stored_ranges import (
    StoredRange,
    ranges_from_bytes,
    ranges_of_rows,
    ranges_to_bytes,
    rows_of_files,
    stored_ranges,
)
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.partitions import partition_stats
from pyhudi.metadata.partitions.known_partitions import KnownPartitions, partition_stats_of
from pyhudi.metadata.partitions.stats_updates import NewFileRanges, partition_stats_update
from pyhudi.metadata.table import MetadataTable
from pyhudi.storage import open_storage
from pyhudi.storage.file_cache import FILES

COLUMNS = ("a", "b")
STATS = "ColumnStatsMetadata"
OPTIONS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.table.ordering.fields": "n",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}

KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int32(), st.integers(-5, 5)),
    (pa.int64(), st.integers(-(2**40), 2**40)),
    (pa.float64(), st.sampled_from([-1.5, 0.0, 0.25])),
    (pa.string(), st.text(max_size=3)),
    (pa.binary(), st.binary(max_size=3)),
    (pa.bool_(), st.booleans()),
    (pa.date32(), st.integers(0, 9)),
    (pa.decimal128(10, 2), st.integers(-(10**9), 10**9)),
    (pa.decimal128(12, 2), st.integers(-(10**9), 10**9)),
    (pa.timestamp("us", "UTC"), st.integers(0, 99)),
]


@st.composite
def _ranges(draw: st.DrawFn, name: str, kinds: list[int]) -> ColumnRange:
    kind, bounds = KINDS[draw(st.sampled_from(kinds))]
    values = draw(st.integers(0, 3))
    nulls = draw(st.integers(0, values))
    ends = sorted([draw(bounds), draw(bounds)]) if nulls < values and draw(st.booleans()) else [None, None]
    return ColumnRange(name, kind, *ends, values, nulls, 10, 20)


@st.composite
def _files(draw: st.DrawFn) -> list[tuple[StoredRange, ...]]:
    kinds = draw(st.sampled_from([[n] for n in range(len(KINDS))] + [[0, 1], [7, 8]]))
    columns = st.sampled_from([("a",), ("b",), COLUMNS, COLUMNS])
    return [
        stored_ranges(9, [draw(_ranges(name, kinds)) for name in draw(columns)]) for _ in range(draw(st.integers(1, 4)))
    ]


def _plain(records: pa.Table) -> dict[str, Any]:
    return {row["key"]: row[STATS] for row in records.to_pylist()}


@given(_files())
def test_ranges_survive_bytes_and_rows(files: list[tuple[StoredRange, ...]]) -> None:
    assert [ranges_from_bytes(ranges_to_bytes(ranges)) for ranges in files] == files
    named = [(f"f{number}", ranges) for number, ranges in enumerate(files)]
    expected = [(name, one) for name, ranges in named for one in ranges]
    assert list(ranges_of_rows(rows_of_files(9, named))) == expected


@pytest.mark.thorough
@given(_files(), st.integers(0, 3))
def test_ranges_joined_one_by_one_are_those_that_arrow_joins(files: list[tuple[StoredRange, ...]], known: int) -> None:
    FILES.clear()
    storage = open_storage("/nowhere")
    new = [NewFileRanges("p", f"f{number}", ranges_to_bytes(ranges)) for number, ranges in enumerate(files)]
    names = [file.name for file in new]
    partitions = KnownPartitions(storage, 9, COLUMNS)
    if known:
        partitions.joined(new[:known], {"p": names[:known]})
        new = new[known:]
    joined = partition_stats_of(9, COLUMNS, partitions.joined(new, {"p": names}))
    rows = rows_of_files(9, list(zip(names, files, strict=True)))
    by_arrow = partition_stats_update(9, COLUMNS, {"p": (rows, names)})
    assert set(joined.deleted.to_pylist()) >= set(by_arrow.deleted.to_pylist()) - set(_plain(joined.records))
    theirs = _plain(by_arrow.records)
    for key, stats in _plain(joined.records).items():
        if key in theirs:
            assert stats == theirs[key]
        else:  # one file in between does not tell its bounds, so that the forms of the others are not compared
            assert stats["minValue"] is None
    assert set(theirs) <= set(_plain(joined.records))


def test_a_partition_is_looked_up_unless_all_its_older_files_are_known() -> None:
    FILES.clear()
    partitions = KnownPartitions(open_storage("/nowhere"), 9, ("a",))
    one = ranges_to_bytes(stored_ranges(9, [ColumnRange("a", pa.int32(), 1, 2, 3, 0)]))
    first, second = NewFileRanges("p", "f1", one), NewFileRanges("p", "f2", one)
    assert partitions.joined([second], {"p": ["f1", "f2"]}) == {}
    assert partitions.joined([first], {"p": ["f1"]})["p"]["a"].values == 3
    assert partitions.joined([second], {"p": ["f1", "f2"]})["p"]["a"].values == 6
    assert partitions.joined([second], {"p": ["f0", "f1", "f2", "f3"]}) == {}
    assert partitions.joined([second], {"p": ["f2"]})["p"]["a"].values == 3
    other_columns = KnownPartitions(partitions.storage, 9, ("a", "b"))
    assert other_columns.joined([second], {"p": ["f1", "f2"]}) == {}


@pytest.mark.thorough
def test_upserts_of_a_process_write_the_statistics_that_a_new_process_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[int] = []
    existing_stats = partition_stats._existing_stats

    def counted(table: MetadataTable, paths: Any, columns: Any) -> Any:
        looked_up.append(len(paths))
        return existing_stats(table, paths, columns)

    monkeypatch.setattr(partition_stats, "_existing_stats", counted)
    written: dict[str, Any] = {}
    for name in ("warm", "cold"):
        path = str(tmp_path / name)
        rows = [{"id": f"k{n}", "p": f"p{n % 3}", "n": n, "x": n * 1.5} for n in range(300)]
        write_hudi(path, pa.Table.from_pylist(rows), options={**OPTIONS, "hoodie.table.name": "t"})
        looked_up.clear()
        for turn in range(1, 4):
            if name == "cold":
                FILES.clear()
            more = [{**row, "n": turn * 1000 + row["n"], "x": -float(turn)} for row in rows[:9]]
            HudiTable.open(path).upsert(pa.Table.from_pylist(more))
        assert sum(looked_up) == (0 if name == "warm" else 9)
        table = MetadataTable.open(MetaClient.load(open_storage(path)))
        assert table is not None
        assert HudiTable.open(path).metadata.validate() == ()
        stats = _plain(table.records("partition_stats"))
        varying = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name")
        written[name] = {
            key: {**one, "totalSize": None, "totalUncompressedSize": None}
            for key, one in stats.items()
            if one["columnName"] not in varying
        }
    assert written["warm"] == written["cold"]
