"""Rows of Parquet files become rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import ConfigError, HudiTable, SchemaMismatch

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("day", pa.int32()), ("fare", pa.float64())])


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

    result = table.add_files(tmp_path / "in")

    assert (result.inserted, len(table.timeline.commits())) == (3, 1)
    assert rows(table) == [(1, "new york", 7, 1.0), (2, "new york", 7, 2.0), (3, "rome", 8, 3.0)]
    assert table.partitions()["partition_path"].to_pylist() == ["new york/7", "rome/8"]
    assert {file: file.read_bytes() for file in (tmp_path / "in").rglob("*.parquet")} == kept


def test_files_may_hold_the_partition_columns_and_lie_anywhere(table: HudiTable, tmp_path: Path) -> None:
    one = saved(tmp_path / "x=1" / "a.parquet", id=[1], city=["rome"], day=[3], fare=[1.0])
    inside = saved(Path(table.path) / "rome" / "old.parquet", id=[2], city=["rome"], day=[4], fare=[None])
    table.add_files([one, str(inside)])
    assert rows(table) == [(1, "rome", 3, 1.0), (2, "rome", 4, None)]


def test_files_with_new_columns_bring_them_along(table: HudiTable, tmp_path: Path) -> None:
    saved(tmp_path / "in" / "a.parquet", id=[1], city=["rome"], day=[3], fare=[1.0])
    saved(tmp_path / "in" / "b.parquet", id=[2], city=["rome"], day=[3], fare=[2.0], tip=[5])
    table.add_files(tmp_path / "in")
    assert table.to_arrow(["id", "tip"]).sort_by("id").to_pylist() == [{"id": 1, "tip": None}, {"id": 2, "tip": 5}]


def test_an_upsert_makes_it_safe_to_add_files_again(table: HudiTable, tmp_path: Path) -> None:
    file = saved(tmp_path / "a.parquet", id=[1], city=["rome"], day=[3], fare=[1.0])
    for _ in range(2):
        table.add_files(file, operation="upsert")
    assert rows(table) == [(1, "rome", 3, 1.0)]
    table.add_files(file)
    assert len(rows(table)) == 2


@pytest.mark.parametrize(
    ("paths", "error", "says"),
    [
        ("nothing", ConfigError, "there is no file or folder"),
        ([], ConfigError, "no Parquet files are named"),
        ("s3://bucket/x", ConfigError, "files of this machine"),
        ("text.parquet", SchemaMismatch, "can't be read as one table"),
        ("wrong.parquet", SchemaMismatch, "fare"),
        ("t", ConfigError, "is a base file of a Hudi table"),
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
        table.add_files(paths)
    assert rows(table) == [(9, "oslo", 1, 1.0)]
    with pytest.raises(ConfigError, match="found operation='delete'"):
        table.add_files(tmp_path / "wrong.parquet", operation="delete")
