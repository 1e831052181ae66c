"""Rows of Parquet files become rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import ConfigError, HudiError, HudiTable, SchemaMismatch, bootstrap
from pyhudi.storage import open_storage
from pyhudi.table.imports import rows as imports
from tests.support.servers.object_stores import ObjectStoreServer, object_store_server

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("day", pa.int32()), ("fare", pa.float64())])


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStoreServer]:
    with object_store_server("s3", tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    return HudiTable.create(tmp_path / "t", SCHEMA, record_key="id", partition_by=["city", "day"])


def saved(path: Path, **columns: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    typed = {name: pa.array(values, pa.int32() if name == "day" else None) for name, values in columns.items()}
    pq.write_table(pa.table(typed), path, row_group_size=1)
    return path


def rows(table: HudiTable) -> list[Any]:
    return [tuple(row.values()) for row in table.to_arrow(SCHEMA.names).sort_by("id").to_pylist()]


def test_partition_columns_come_from_the_names_of_folders(table: HudiTable, tmp_path: Path) -> None:
    saved(tmp_path / "in" / "city=new york" / "day=7" / "a.parquet", id=[1, 2], fare=[1.0, 2.0])
    saved(tmp_path / "in" / "city=rome" / "day=8" / "b.parquet", fare=[3], id=[3])
    kept = {file: file.read_bytes() for file in (tmp_path / "in").rglob("*.parquet")}

    result = table.maintenance.add_files(tmp_path / "in")

    assert (result.inserted, len(table.state().timeline.commits())) == (3, 1)
    assert rows(table) == [(1, "new york", 7, 1.0), (2, "new york", 7, 2.0), (3, "rome", 8, 3.0)]
    assert table.inspect.partitions()["partition_path"].to_pylist() == ["new york/7", "rome/8"]
    assert {file: file.read_bytes() for file in (tmp_path / "in").rglob("*.parquet")} == kept


def test_files_may_hold_the_partition_columns_and_lie_anywhere(table: HudiTable, tmp_path: Path) -> None:
    one = saved(tmp_path / "x=1" / "a.parquet", id=[1], city=["rome"], day=[3], fare=[1.0])
    inside = saved(Path(table.path) / "rome" / "old.parquet", id=[2], city=["rome"], day=[4], fare=[None])
    table.maintenance.add_files([one, str(inside)])
    assert rows(table) == [(1, "rome", 3, 1.0), (2, "rome", 4, None)]


def test_files_with_new_columns_bring_them_along(table: HudiTable, tmp_path: Path) -> None:
    saved(tmp_path / "in" / "a.parquet", id=[1], city=["rome"], day=[3], fare=[1.0])
    saved(tmp_path / "in" / "b.parquet", id=[2], city=["rome"], day=[3], fare=[2.0], tip=[5])
    table.maintenance.add_files(tmp_path / "in")
    assert table.to_arrow(["id", "tip"]).sort_by("id").to_pylist() == [{"id": 1, "tip": None}, {"id": 2, "tip": 5}]


def test_an_upsert_makes_it_safe_to_add_files_again(table: HudiTable, tmp_path: Path) -> None:
    file = saved(tmp_path / "a.parquet", id=[1], city=["rome"], day=[3], fare=[1.0])
    for _ in range(2):
        table.maintenance.add_files(file, operation="upsert")
    assert rows(table) == [(1, "rome", 3, 1.0)]
    table.maintenance.add_files(file)
    assert len(rows(table)) == 2


WHOLE: dict[str, list[Any]] = {"id": [1], "city": ["rome"], "day": [3], "fare": [1.0], "ts": [1]}


@pytest.mark.parametrize(
    ("operation", "lacks", "says"),
    [
        ("bulk_insert", "id", "lacks the column id.*would get null as key, partition or ordering value"),
        ("bulk_insert", "city", "lacks the column city"),
        ("insert", "ts", "lacks the column ts"),
        ("upsert", "fare", "lacks the column fare.*would get null in place of stored values"),
    ],
)
def test_files_that_lack_a_column_that_others_fill_are_refused(
    operation: str, lacks: str, says: str, tmp_path: Path
) -> None:
    schema = pa.schema([*SCHEMA, ("ts", pa.int64())])
    table = HudiTable.create(tmp_path / "t", schema, record_key="id", partition_by=["city", "day"], ordering="ts")
    table.upsert([{"id": 2, "city": "rome", "day": 3, "fare": 9.0, "ts": 0}])
    saved(tmp_path / "in" / "a.parquet", **WHOLE)
    lone = saved(tmp_path / "in" / "b.parquet", **{k: v for k, v in (WHOLE | {"id": [2]}).items() if k != lacks})

    with pytest.raises(SchemaMismatch, match=f"b.parquet {says}"):
        table.maintenance.add_files(tmp_path / "in", operation=operation)
    assert rows(table) == [(2, "rome", 3, 9.0)]
    if operation == "upsert":
        table.maintenance.add_files(lone, operation=operation)
        assert rows(table) == [(2, "rome", 3, 9.0)], "by a call of its own it keeps the stored value"


@pytest.mark.parametrize(
    ("whole", "part", "place"),
    [({"x": 1, "y": 2}, {"x": 3}, "s.y"), ([{"x": 1, "y": 2}], [{"y": 3}], r"s\..*\.x")],
)
def test_upserts_of_files_that_lack_fields_of_others_are_refused(
    table: HudiTable, tmp_path: Path, whole: Any, part: Any, place: str
) -> None:
    columns = {name: values for name, values in WHOLE.items() if name != "ts"}
    saved(tmp_path / "in" / "a.parquet", **columns, s=[whole])
    saved(tmp_path / "in" / "b.parquet", **columns | {"id": [2]}, s=[part])
    with pytest.raises(SchemaMismatch, match=f"b.parquet lacks the column {place}"):
        table.maintenance.add_files(tmp_path / "in", operation="upsert")
    table.maintenance.add_files(tmp_path / "in")
    assert len(rows(table)) == 2


def test_numbers_of_files_of_several_types_keep_their_digits(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", pa.schema([("id", pa.int64())]), record_key="id")
    saved(tmp_path / "in" / "a.parquet", id=[1], n=[2**53 + 1])
    b = saved(tmp_path / "in" / "b.parquet", id=[2], n=[0.5])
    with pytest.raises(SchemaMismatch, match="9007199254740993"):
        table.maintenance.add_files(tmp_path / "in")
    saved(tmp_path / "in" / "a.parquet", id=[1], n=[2**53])
    table.maintenance.add_files([tmp_path / "in" / "a.parquet", b])
    assert table.to_arrow(["id", "n"]).sort_by("id").to_pylist() == [{"id": 1, "n": 2.0**53}, {"id": 2, "n": 0.5}]


def test_folders_name_what_each_file_lacks(table: HudiTable, tmp_path: Path) -> None:
    saved(tmp_path / "in" / "city=oslo" / "day=7" / "a.parquet", id=[1], fare=[1.0])
    saved(tmp_path / "in" / "b.parquet", id=[2], city=["rome"], day=[3], fare=[2.0])
    saved(tmp_path / "in" / "fare=2.5" / "city=a%2Fb" / "c.parquet", id=[3], city=["a/b"], day=[3])
    table.maintenance.add_files(tmp_path / "in")
    assert rows(table) == [(1, "oslo", 7, 1.0), (2, "rome", 3, 2.0), (3, "a/b", 3, 2.5)]


@pytest.mark.parametrize(
    ("kind", "folder", "value"),
    [
        (pa.timestamp("us", "UTC"), "2024-01-01 10%3A00%3A00", datetime(2024, 1, 1, 10, tzinfo=UTC)),
        (pa.timestamp("us", "UTC"), "2024-01-01T10%3A00%3A00%2B02%3A00", datetime(2024, 1, 1, 8, tzinfo=UTC)),
        (pa.timestamp("us"), "2024-01-01 10%3A00%3A00.5", datetime(2024, 1, 1, 10, 0, 0, 500_000)),
        (pa.date32(), "2024-01-01", date(2024, 1, 1)),
        (pa.bool_(), "true", True),
        (pa.decimal128(6, 2), "1.50", Decimal("1.50")),
        (pa.float64(), "1.5", 1.5),
        (pa.int64(), "__HIVE_DEFAULT_PARTITION__", None),
    ],
)
def test_folders_give_values_of_the_columns_type(tmp_path: Path, kind: pa.DataType, folder: str, value: object) -> None:
    table = HudiTable.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("k", kind)]), record_key="id")
    saved(tmp_path / "in" / f"k={folder}" / "a.parquet", id=[1])
    table.maintenance.add_files(tmp_path / "in")
    assert table.to_arrow(["id", "k"]).to_pylist() == [{"id": 1, "k": value}]


@pytest.mark.parametrize(
    ("folder", "columns", "says"),
    [
        ("city=oslo", {"city": ["rome"], "day": [3]}, "has rows whose city is 'rome', and lies in a folder that says"),
        ("day=4", {"city": ["rome"], "day": [None]}, "whose day is None, and lies in a folder that says 4"),
        ("day=x", {"city": ["rome"]}, "the folder's day=x is no value of the column, which is int32"),
    ],
)
def test_folders_that_contradict_their_files_are_refused(
    table: HudiTable, tmp_path: Path, folder: str, columns: dict[str, Any], says: str
) -> None:
    saved(tmp_path / "in" / folder / "a.parquet", id=[1], fare=[1.0], **columns)
    with pytest.raises(SchemaMismatch, match=says):
        table.maintenance.add_files(tmp_path / "in")
    assert rows(table) == []


def test_a_file_that_two_paths_name_is_refused(table: HudiTable, tmp_path: Path) -> None:
    file = saved(tmp_path / "in" / "a.parquet", id=[1], city=["rome"], day=[3], fare=[1.0])
    with pytest.raises(ConfigError, match=r"a.parquet is named by several paths"):
        table.maintenance.add_files([tmp_path / "in", file])
    assert rows(table) == []


@pytest.mark.parametrize(
    ("paths", "error", "says"),
    [
        ("nothing", ConfigError, "there is no file or folder"),
        ([], ConfigError, "no Parquet files are named"),
        ("s9://bucket/x", ConfigError, "Unknown scheme"),
        ("text.parquet", SchemaMismatch, "text.parquet can't be read as Parquet"),
        ("wrong.parquet", SchemaMismatch, "fare"),
        ("t", ConfigError, "t is, or holds, a Hudi table"),
        ("t/oslo", ConfigError, "is a base file of a Hudi table"),
    ],
)
def test_what_can_t_be_added_is_refused(
    table: HudiTable, tmp_path: Path, paths: Any, error: type[Exception], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.parquet").write_text("no Parquet")
    saved(tmp_path / "wrong.parquet", id=[1], city=["rome"], day=[3], fare=["much"])
    table.upsert([{"id": 9, "city": "oslo", "day": 1, "fare": 1.0}])
    with pytest.raises(error, match=says):
        table.maintenance.add_files(paths)
    assert rows(table) == [(9, "oslo", 1, 1.0)]
    with pytest.raises(ConfigError, match="found operation='delete'"):
        table.maintenance.add_files(tmp_path / "wrong.parquet", operation="delete")


HIDDEN = (
    "_temporary/0/_temporary/attempt_1/part-0.parquet",
    ".spark-staging-1/day=8/part-0.parquet",
    "_change_data/part-0.parquet",
    "city=rome/day=3/.part-0.parquet",
    "city=rome/day=3/_part-0.parquet",
    "part-0.parquet._COPYING_",
)


def test_hidden_files_of_a_folder_are_left_out(table: HudiTable, tmp_path: Path) -> None:
    for hidden in HIDDEN:
        saved(tmp_path / "in" / hidden, id=[-1], city=["rome"], day=[3], fare=[0.0])
    saved(tmp_path / "in" / "city=rome" / "day=3" / "a.PARQUET", id=[1], fare=[1.0])
    saved(tmp_path / "in" / "city=rome" / "day=3" / "_x=1" / "b.parquet", id=[2], fare=[2.0])

    table.maintenance.add_files(tmp_path / "in")
    assert rows(table) == [(1, "rome", 3, 1.0), (2, "rome", 3, 2.0)]
    table.maintenance.add_files(tmp_path / "in" / HIDDEN[4])
    assert rows(table)[0] == (-1, "rome", 3, 0.0), "what is named is meant"


@pytest.mark.parametrize("named", ["", "data", "data/city=rome", "data/city=rome/day=3", "data/city=rome/a.parquet"])
@pytest.mark.parametrize("kind", ["Delta", "Iceberg"])
def test_files_of_other_tables_are_refused(kind: str, named: str, table: HudiTable, tmp_path: Path) -> None:
    log = {"Delta": "_delta_log/0.checkpoint.parquet", "Iceberg": "metadata/v1.metadata.json"}[kind]
    for file in (log, "data/city=rome/a.parquet", "data/city=rome/day=3/b.parquet"):
        saved(tmp_path / "in" / file, id=[1], city=["rome"], day=[3], fare=[1.0])

    with pytest.raises(ConfigError, match=f"{kind} table, and its files have rows that don't count") as raised:
        table.maintenance.add_files(tmp_path / "in" / named)
    assert "import_table" in str(raised.value)
    assert rows(table) == []
    if not named.endswith(".parquet"):
        with pytest.raises(ConfigError, match=f"{kind} table, and its files have rows that don't count"):
            bootstrap(tmp_path / "in" / named, tmp_path / "new", record_key="id")


@pytest.mark.thorough
def test_files_of_a_bucket_are_added_with_its_options(table: HudiTable, tmp_path: Path, s3: ObjectStoreServer) -> None:
    saved(tmp_path / "in" / "city=new york" / "day=7" / "a.parquet", id=[1, 2], fare=[1.0, 2.0])
    saved(tmp_path / "in" / "city=rome" / "day=8" / "b.parquet", fare=[3], id=[3])
    saved(tmp_path / "c.parquet", id=[4], city=["oslo"], day=[9], fare=[4.0])
    bucket = open_storage("s3://lake", s3.options)
    for file in [*(tmp_path / "in").rglob("*.parquet"), tmp_path / "c.parquet"]:
        bucket.write(f"add/{file.relative_to(tmp_path)}", file.read_bytes())

    table.maintenance.add_files("s3://lake/add/in", storage_options=s3.options)
    table.maintenance.add_files(["s3a://lake/add/c.parquet"], storage_options=s3.options)

    assert rows(table) == [
        (1, "new york", 7, 1.0),
        (2, "new york", 7, 2.0),
        (3, "rome", 8, 3.0),
        (4, "oslo", 9, 4.0),
    ]
    assert len(table.state().timeline.commits()) == 2
    with pytest.raises(ConfigError, match="there is no file or folder 's3://lake/other'"):
        table.maintenance.add_files("s3://lake/other", storage_options=s3.options)


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["local", "s3"])
def test_a_file_that_breaks_in_the_middle_leaves_the_table_as_it_was(
    table: HudiTable, tmp_path: Path, request: pytest.FixtureRequest, place: str
) -> None:
    table.upsert([{"id": 9, "city": "oslo", "day": 1, "fare": 1.0}])
    source, options = str(tmp_path / "in"), {}
    if place == "s3":
        source, options = "s3://lake/broken", request.getfixturevalue("s3").options
    ids = list(range(1000))
    whole = saved(tmp_path / "x.parquet", id=ids, city=["rome"] * 1000, day=[1] * 1000, fare=[1.0] * 1000).read_bytes()
    at = pq.read_metadata(tmp_path / "x.parquet").row_group(500).column(0).data_page_offset
    broken = whole[:at] + b"\xff" * 40 + whole[at + 40 :]
    for name, data in (("a", whole), ("b", broken)):
        open_storage(source, options).write(f"{name}.parquet", data)

    with pytest.raises(HudiError, match=r"b\.parquet can't be read"):
        table.maintenance.add_files(source, storage_options=options)

    assert rows(table) == [(9, "oslo", 1, 1.0)]
    assert len(table.state().timeline.commits()) == 1
    open_storage(source, options).write("b.parquet", whole)
    assert table.maintenance.add_files(source, storage_options=options).inserted == 2000


@pytest.mark.thorough
def test_row_groups_are_read_some_at_a_time(table: HudiTable, tmp_path: Path) -> None:
    group_rows, groups = 250_000, 16
    ids = pa.array(np.random.default_rng(1).integers(0, 1 << 60, group_rows * groups))
    file = pa.table(
        {"id": ids, "city": pa.repeat("rome", len(ids)), "day": pa.repeat(pa.scalar(1, pa.int32()), len(ids))}
    )
    pq.write_table(file, tmp_path / "large.parquet", row_group_size=group_rows)
    del file
    opened = imports._rows_of(imports._files(tmp_path / "large.parquet", {}), table._handle.fresh(), "bulk_insert")
    before, most, count = pa.total_allocated_bytes(), 0, 0

    for batch in opened():
        most = max(most, pa.total_allocated_bytes() - before)
        count += batch.num_rows

    assert count == len(ids)
    assert most < ids.nbytes / 2
