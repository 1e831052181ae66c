"""Snapshots of Iceberg and Delta tables become Hudi tables; rows that were deleted there don't come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import ConfigError, HudiTable, StorageError, TableExists

ROWS = pa.table(
    {"id": ["a", "b", "c"], "city": ["rome", "oslo", "rome"], "v": [1.5, None, 3.0], "tags": [["x"], [], None]}
)


def rows(path: Path) -> list[dict[str, Any]]:
    return list(HudiTable.open(path).scan(ROWS.column_names).to_arrow().sort_by("id").to_pylist())


def test_a_delta_table_comes_without_its_deleted_rows_and_with_its_partitions(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(str(tmp_path / "d"), ROWS, partition_by=["city"])
    deltalake.DeltaTable(str(tmp_path / "d")).delete("id = 'c'")

    result = pyhudi.import_table(tmp_path / "d", tmp_path / "t", record_key="id")

    assert (result.operation, result.inserted) == ("BULK_INSERT", 2)
    assert rows(tmp_path / "t") == ROWS.slice(0, 2).to_pylist()
    assert HudiTable.open(tmp_path / "t").inspect.partitions()["partition_path"].to_pylist() == ["oslo", "rome"]
    with pytest.raises(TableExists):
        pyhudi.import_table(tmp_path / "d", tmp_path / "t", "delta")


def test_an_iceberg_table_comes_as_its_newest_metadata_says(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    transforms = pytest.importorskip("pyiceberg.transforms")
    catalog = sql.SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", ROWS.schema, location=str(tmp_path / "i"))
    with table.update_spec() as spec:
        spec.add_field("city", transforms.IdentityTransform())
    table.append(ROWS)
    table.delete("id = 'c'")

    pyhudi.import_table(tmp_path / "i", tmp_path / "t", record_key="id")

    assert rows(tmp_path / "t") == ROWS.slice(0, 2).to_pylist()
    assert HudiTable.open(tmp_path / "t").inspect.partitions()["partition_path"].to_pylist() == ["oslo", "rome"]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_that_lacks_a_file_is_refused_and_nothing_is_written(tmp_path: Path, kind: str) -> None:
    if kind == "delta":
        pytest.importorskip("deltalake").write_deltalake(str(tmp_path / "s"), ROWS, partition_by=["city"])
    else:
        sql = pytest.importorskip("pyiceberg.catalog.sql")
        catalog = sql.SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
        catalog.create_namespace("n")
        catalog.create_table("n.t", ROWS.schema, location=str(tmp_path / "s")).append(ROWS)
    next((tmp_path / "s").rglob("*.parquet")).unlink()
    with pytest.raises(StorageError, match=r"can't read it .*Nothing was written"):
        pyhudi.import_table(tmp_path / "s", tmp_path / "t", record_key="id")
    assert not (tmp_path / "t" / ".hoodie").exists()


def test_what_is_no_table_of_a_known_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="neither like an Iceberg table"):
        pyhudi.import_table(tmp_path, tmp_path / "t")
    with pytest.raises(ConfigError, match="kinds iceberg, delta"):
        pyhudi.import_table(tmp_path, tmp_path / "t", "paimon")


def test_a_missing_library_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "deltalake", None)
    with pytest.raises(ConfigError, match=r"pip install 'pyhudi\[delta\]'"):
        pyhudi.import_table(tmp_path, tmp_path / "t", "delta")
