"""Looking at a table: its first rows, how many there are, and the same rows in other libraries."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import ConfigError, HudiTable, write_hudi
from pyhudi.actions.writes import preparation
from pyhudi.errors import MissingLibrary
from pyhudi.filegroup.write.spec import BaseFileOptions
from pyhudi.model.keys import META_COLUMNS
from pyhudi.queries import count, snapshot
from pyhudi.queries.plan import ReadPlan


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    """Three partitions of a hundred rows each."""
    rows = pa.table({"id": range(300), "city": ["bern", "oslo", "rome"] * 100, "n": range(300)})
    write_hudi(tmp_path / "t", rows, record_key="id", partition_by="city")
    return HudiTable.open(tmp_path / "t")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Paths of the base files whose rows are read."""
    paths = list[str]()
    read_slice = snapshot.read_slice

    def noted(*arguments: object, **options: object) -> Iterator[pa.RecordBatch]:
        paths.append(arguments[2].base_file.path)  # type: ignore[attr-defined]
        return read_slice(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(snapshot, "read_slice", noted)
    monkeypatch.setattr(count, "read_slice", noted)
    return paths


def test_head_reads_one_file_of_three_and_no_more_than_its_rows(table: HudiTable, opened: list[str]) -> None:
    head = table.head(3, columns=["id", "city"])
    assert (head.num_rows, head.column_names) == (3, ["id", "city"])
    assert len(opened) == 1
    assert (table.head().num_rows, table.head().column_names) == (5, ["id", "city", "n"])


def test_a_limit_goes_on_to_the_next_file_only_as_far_as_it_must(table: HudiTable, opened: list[str]) -> None:
    assert table.scan(limit=150).to_arrow().num_rows == 150
    assert len(opened) == 2
    assert table.scan(limit=0).to_arrow().num_rows == 0
    assert len(opened) == 2


def test_a_limit_stops_within_a_file_at_the_row_group_that_has_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"id": range(50_000)})
    write_hudi(tmp_path / "t", rows, "bulk_insert", record_key="id")
    groups = list[int]()
    read = pq.ParquetFile.iter_batches

    def noted(file: pq.ParquetFile, *arguments: object, **options: object) -> Iterator[pa.RecordBatch]:
        for batch in read(file, *arguments, **options):  # type: ignore[arg-type]
            groups.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    assert HudiTable.open(tmp_path / "t").head(10, ["id"]).num_rows == 10
    assert 10 <= sum(groups) < 1_000


def test_a_limit_holds_for_rows_that_pass_a_filter_and_for_merged_rows(tmp_path: Path) -> None:
    rows = pa.table({"id": range(100), "n": range(100)})
    options = {"hoodie.compact.inline": "false"}
    for _ in range(2):
        write_hudi(tmp_path / "t", rows, record_key="id", table_type="MERGE_ON_READ", options=options)
    table = HudiTable.open(tmp_path / "t")
    assert sorted(table.scan(["n"], where="n >= 90", limit=4).to_arrow()["n"].to_pylist())[0] >= 90
    assert table.scan(["n"], where="n >= 90", limit=4).count() == 4
    assert table.scan(["n"], where="n >= 90", limit=40).count() == 10
    assert table.head(7).num_rows == 7
    assert len(table) == 100


def test_a_limit_is_shown_and_takes_no_filter_afterwards(table: HudiTable) -> None:
    scan = table.scan(["id"], limit=3)
    assert repr(scan).endswith("columns=['id'], limit=3)")
    assert "limit       3 rows" in scan.explain()
    assert scan.narrowed(["id"]).to_arrow().num_rows == 3
    assert scan.head(10).num_rows == 3
    with pytest.raises(ConfigError, match="no further filter"):
        scan.narrowed(where="id = 1")
    for wrong in (-1, 1.5, True, "3"):
        with pytest.raises(ConfigError, match="expected a number of rows"):
            table.scan(limit=wrong)  # type: ignore[arg-type]


def test_rows_are_counted_by_footers_without_a_filter_and_with_one_of_partitions(
    table: HudiTable, opened: list[str]
) -> None:
    assert table.count() == len(table) == len(table.scan()) == 300
    assert table.count(where="city = 'oslo'") == 100
    assert table.count(where="city IN ('oslo', 'rome') AND city <> 'rome'") == 100
    assert table.count(where="city LIKE '%o%'") == 200
    assert opened == []


def test_counting_with_a_filter_reads_its_columns_alone(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = set[str]()
    filtered = count.filtered

    def noted(plan: ReadPlan, source: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        columns.update(plan.read_schema.names)
        return filtered(plan, source)

    monkeypatch.setattr(count, "filtered", noted)
    assert table.count(where="n < 10") == 10
    assert columns == {"n"}
    assert table.count(where="n < 10 AND city = 'oslo'") == 3
    assert columns == {"n", "city"}


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def grouped(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HudiTable:
    """One file of ten row groups: ids in order, of which every 7th row of the upper half is null or not a number."""
    monkeypatch.setattr(preparation, "BaseFileOptions", partial(BaseFileOptions, row_group_rows=5_000))
    gap = [i >= 25_000 and i % 7 == 0 for i in range(50_000)]
    rows = {
        "id": list(range(50_000)),
        "n": [None if is_gap else i // 100 for i, is_gap in enumerate(gap)],
        "x": [math.nan if is_gap else i / 2 for i, is_gap in enumerate(gap)],
        "s": [f"k{i // 1000:03}" for i in range(50_000)],
    }
    write_hudi(tmp_path / "t", pa.table(rows), "bulk_insert", record_key="id", table_type=request.param)
    return HudiTable.open(tmp_path / "t")


WHERES = [
    "id < 20000", "id >= 12345 AND id < 43210", "NOT id < 49999", "id <> 7", "id IN (1, 2, 49)", "id NOT IN (3, 400)",
    "n < 100", "n >= 0", "n IS NULL", "n IS NOT NULL", "n = 3 OR id > 100", "n <> 3", "NOT (n > 20 AND id < 30000)",
    "x < 1000.5", "x >= 0", "x > 5000", "x <= 1e9", "x <> 3.5", "s < 'k020'", "s = 'k003'", "s >= 'k'", "s LIKE 'k01%'",
    "id + 1 < 500", "id < 20000 AND s LIKE '%7'", "id BETWEEN 10 AND 30000 AND n IS NOT NULL", "id > 60000", "id >= 0",
]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("where", WHERES)
def test_counting_by_statistics_finds_as_many_rows_as_a_read(grouped: HudiTable, where: str) -> None:
    assert grouped.count(where=where) == grouped.to_arrow(["id"], where=where).num_rows


def test_counting_reads_only_row_groups_that_statistics_leave_open(
    grouped: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows_read = list[int]()
    read = pq.ParquetFile.iter_batches

    def noted(file: pq.ParquetFile, *arguments: object, **options: object) -> Iterator[pa.RecordBatch]:
        for batch in read(file, *arguments, **options):  # type: ignore[arg-type]
            rows_read.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    assert grouped.count(where="id >= 0 AND s < 'z'") == 50_000
    assert rows_read == []
    assert grouped.count(where="id < 30000") == 30_000
    assert sum(rows_read) < 10_000  # one group of ten


def test_a_log_file_is_merged_before_rows_are_counted(tmp_path: Path) -> None:
    table = HudiTable.create(
        tmp_path / "t", pa.schema([("id", pa.int64()), ("n", pa.int64())]), record_key="id", table_type="MERGE_ON_READ"
    )
    table.upsert([{"id": i, "n": i} for i in range(10)])
    table.upsert([{"id": 3, "n": 100}])
    assert (table.count(where="n < 50"), table.count(where="n >= 50")) == (9, 1)


def test_counting_a_table_of_before_and_an_empty_one(table: HudiTable) -> None:
    first = table.state().timeline.commits().instants[0].requested_time
    table.delete_partitions(matching="*")
    assert (len(table), table.at(first).count()) == (0, 300)
    assert table  # an empty table is a table
    assert table.scan()
    assert table.head().num_rows == 0


def test_a_table_is_a_frame_of_polars_and_pandas_and_a_stream(table: HudiTable) -> None:
    pl = pytest.importorskip("polars")
    frame = table.to_polars(["id", "city"], where="id < 3")
    assert isinstance(frame, pl.DataFrame)
    assert sorted(frame.rows()) == [(0, "bern"), (1, "oslo"), (2, "rome")]
    assert table.to_pandas(["id"]).shape == (300, 1)
    assert table.to_batches(["id"]).read_all().num_rows == 300


def test_a_table_is_a_relation_of_duckdb_that_is_read_again_each_time(table: HudiTable) -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = table.to_duckdb(["id", "city"])
    assert relation.aggregate("city, count(*)", "city").order("city").fetchall() == [
        ("bern", 100), ("oslo", 100), ("rome", 100),
    ]  # fmt: skip
    assert relation.filter("id = 7").fetchall() == relation.filter("id = 7").fetchall() == [(7, "oslo")]
    with duckdb.connect() as connection:
        assert table.scan(["id"], limit=4).to_duckdb(connection=connection).count("*").fetchall() == [(4,)]


@pytest.mark.parametrize(
    ("module", "call", "package"),
    [
        ("polars", "to_polars", "polars"),
        ("duckdb", "to_duckdb", "pyhudi[sql]"),
        ("pyspark", "to_spark", "pyhudi[spark]"),
    ],
)
def test_without_the_library_the_error_says_what_to_install(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch, module: str, call: str, package: str
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingLibrary, match="pip install") as caught:
        getattr(table, call)()
    assert package in str(caught.value)
    assert isinstance(caught.value, ImportError)


_DOORS: dict[str, Callable[..., Any]] = {
    "scan": lambda table, **more: table.scan(**more).schema.names,
    "changes": lambda table, **more: table.changes(**more).to_arrow().column_names,
    "to_arrow": lambda table, **more: table.to_arrow(**more).column_names,
    "to_batches": lambda table, **more: table.to_batches(**more).read_all().column_names,
    "to_pandas": lambda table, **more: list(table.to_pandas(**more).columns),
    "to_polars": lambda table, **more: table.to_polars(**more).columns,
    "to_polars(lazy=True)": lambda table, **more: table.to_polars(**more, lazy=True).collect().columns,
    "to_duckdb": lambda table, **more: table.to_duckdb(**more).columns,
    "to_dataset": lambda table, **more: table.to_dataset(**more).to_table().column_names,
    "at": lambda table, **more: table.at(table.history()[0].instant_time).to_arrow(**more).column_names,
}


@pytest.mark.parametrize("door", _DOORS)
def test_every_door_has_the_meta_columns_by_default(table: HudiTable, door: str) -> None:
    for name in ("pandas", "polars", "duckdb"):
        if name in door:
            pytest.importorskip(name)
    names = _DOORS[door]
    assert names(table) == [*META_COLUMNS, "id", "city", "n"]
    assert names(table, meta_columns=False) == ["id", "city", "n"]
    assert names(table, columns=["_hoodie_record_key", "n"], meta_columns=False) == ["_hoodie_record_key", "n"]


def test_head_shows_the_data_columns_by_default(table: HudiTable) -> None:
    at = table.at(table.history()[0].instant_time)
    for head in (table.head, at.head):
        assert head(2).column_names == ["id", "city", "n"]
        assert head(2, meta_columns=True).column_names == [*META_COLUMNS, "id", "city", "n"]
    assert "all data columns" in table.scan(meta_columns=False)._repr_html_()
    assert "meta_columns=False" in repr(table.scan(meta_columns=False))
