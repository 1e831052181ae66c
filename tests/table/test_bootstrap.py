"""A folder of files becomes a table: skeletons, copies, or both; and what reads and writes do then."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import ConfigError, CorruptFile, HudiTable, KeyGenError, SchemaMismatch, TableExists
from pyhudi.formats.bootstrap import FILE_INDEX_PATH, read_index, write_index
from pyhudi.storage import open_storage

COLUMNS = ["id", "v", "tags", "city"]


def saved(path: Path, first: int, last: int, **more: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    numbers = range(first, last)
    rows = {"id": [f"k{n:02}" for n in numbers], "v": [n * 1.5 for n in numbers], "tags": [[str(n)] for n in numbers]}
    if path.suffix == ".orc":
        orc.write_table(pa.table(rows), str(path))
    else:
        pq.write_table(pa.table({**rows, **more}), path, row_group_size=4)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    saved(tmp_path / "in" / "city=rome" / "a.parquet", 0, 10)
    saved(tmp_path / "in" / "city=oslo" / "a.parquet", 10, 15)
    saved(tmp_path / "in" / "city=oslo" / "b.parquet", 15, 20)
    (tmp_path / "in" / "_SUCCESS").touch()
    return tmp_path / "in"


def expected(source: Path) -> list[dict[str, Any]]:
    rows = ds.dataset(source, partitioning="hive").to_table(COLUMNS).sort_by("id").to_pylist()
    assert len(rows) == 20
    return list(rows)


def rows(table: HudiTable, columns: list[str] = COLUMNS, **query: Any) -> list[dict[str, Any]]:
    return list(HudiTable.open(table.path).scan(columns, **query).to_arrow().sort_by("id").to_pylist())


def assert_served(table: HudiTable, table_type: str, changed: list[dict[str, Any]], source: Path) -> None:
    """Services keep the changed rows, and reads of the past those of the source."""
    assert rows(table) == changed
    if table_type == "MERGE_ON_READ":
        table.compact()
        assert rows(table) == changed
    assert rows(table, as_of="00000000000001") == expected(source)
    table.cluster()
    assert rows(table) == changed


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_stay_in_their_files_and_are_read_from_there(
    source: Path, tmp_path: Path, version: int, table_type: str
) -> None:
    before = {file: file.read_bytes() for file in source.rglob("*.parquet")}
    options = {"hoodie.write.table.version": version}

    result = pyhudi.bootstrap(source, tmp_path / "t", record_key="id", table_type=table_type, options=options)

    table = HudiTable.open(tmp_path / "t")
    assert (result.instant_time, result.inserted) == ("00000000000001", 20)
    assert rows(table) == expected(source)
    assert {file: file.read_bytes() for file in source.rglob("*.parquet")} == before
    meta = rows(table, ["id", "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_commit_time"])
    assert meta[0] == {
        "id": "k00", "_hoodie_record_key": "k00", "_hoodie_partition_path": "city=rome",
        "_hoodie_commit_time": "00000000000001",
    }  # fmt: skip
    assert rows(table, where="v > 20 AND city = 'oslo'") == [row for row in expected(source) if row["v"] > 20]
    assert table.scan(where="city = 'rome'").count() == 10


@pytest.mark.thorough
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_writes_change_rows_of_a_bootstrapped_table(source: Path, tmp_path: Path, table_type: str) -> None:
    pyhudi.bootstrap(source, tmp_path / "t", record_key="id", table_type=table_type)
    table = HudiTable.open(tmp_path / "t")
    changed = expected(source)
    changed[11] = {"id": "k11", "v": -1.0, "tags": None, "city": "oslo"}
    del changed[3]

    table.upsert([changed[10]], options={"hoodie.compact.inline": "false"})
    table.delete(where="id = 'k03'", options={"hoodie.compact.inline": "false"})
    if table_type == "MERGE_ON_READ":
        assert rows(table, query_type="read_optimized") == expected(source), "the base files are skeletons still"
    assert_served(table, table_type, changed, source)
    assert HudiTable.open(table.path).changes("00000000000001").to_arrow()["id"].to_pylist() == ["k11"]
    assert len(HudiTable.open(table.path).changes("00000000000000").to_arrow()) == len(changed)


def test_partitions_whose_path_matches_are_left_where_they_are_and_others_are_copied(
    source: Path, tmp_path: Path
) -> None:
    pyhudi.bootstrap(source, tmp_path / "t", record_key="id", mode="METADATA_ONLY", regex="city=r.*")
    table = HudiTable.open(tmp_path / "t")
    assert [instant.requested_time for instant in table.state().timeline] == ["00000000000001"]
    assert rows(table) == expected(source)
    assert [file.source_partition for file in read_index(open_storage(tmp_path / "t"))] == ["city=rome"]
    shutil.rmtree(source / "city=oslo")
    assert table.scan(where="city = 'oslo'").count() == 10


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_writes_and_services_change_a_bootstrap_of_both_kinds(source: Path, tmp_path: Path, table_type: str) -> None:
    pyhudi.bootstrap(source, tmp_path / "t", record_key="id", table_type=table_type, regex="city=rome")
    table = HudiTable.open(tmp_path / "t")
    changed = expected(source)
    changed[3] = {"id": "k03", "v": -3.0, "tags": None, "city": "rome"}
    changed[13] = {"id": "k13", "v": -13.0, "tags": None, "city": "oslo"}

    table.upsert([changed[3], changed[13]], options={"hoodie.compact.inline": "false"})
    assert_served(table, table_type, changed, source)


def test_full_records_need_no_source_afterwards(source: Path, tmp_path: Path) -> None:
    known = expected(source)
    selector = {
        "hoodie.bootstrap.mode.selector": "org.apache.hudi.client.bootstrap.selector.FullRecordBootstrapModeSelector"
    }
    pyhudi.bootstrap(source, tmp_path / "t", record_key="id", options=selector)
    shutil.rmtree(source)
    assert rows(HudiTable.open(tmp_path / "t")) == known


def test_orc_files_and_folders_without_partitions_are_bootstrapped(tmp_path: Path) -> None:
    saved(tmp_path / "in" / "a.orc", 0, 5)
    pyhudi.bootstrap(tmp_path / "in", tmp_path / "t", record_key="id")
    table = HudiTable.open(tmp_path / "t")
    table.upsert([{"id": "k01", "v": 7.0, "tags": None}])
    assert [row["v"] for row in rows(table, ["id", "v"])] == [0.0, 7.0, 3.0, 4.5, 6.0]


@pytest.mark.parametrize("mode", ["METADATA_ONLY", "FULL_RECORD"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_partitions_of_orc_files_are_written_and_served(tmp_path: Path, mode: str, table_type: str) -> None:
    for city, first, last in (("rome", 0, 10), ("oslo", 10, 15)):
        saved(tmp_path / "in" / f"city={city}" / "a.orc", first, last)
    pyhudi.bootstrap(tmp_path / "in", tmp_path / "t", record_key="id", table_type=table_type, mode=mode)
    table = HudiTable.open(tmp_path / "t")
    known = [
        {"id": f"k{n:02}", "v": n * 1.5, "tags": [str(n)], "city": "rome" if n < 10 else "oslo"} for n in range(15)
    ]
    assert table.state().config.base_file_format == "ORC"
    assert rows(table) == known
    assert rows(table, where="city = 'oslo' AND v > 16") == known[11:]

    known[3] = {"id": "k03", "v": -1.0, "tags": None, "city": "rome"}
    table.upsert([known[3]], options={"hoodie.compact.inline": "false"})
    assert rows(table) == known
    if table_type == "MERGE_ON_READ":
        table.compact()
        assert rows(table) == known
    table.cluster()
    assert rows(table) == known


def test_an_index_that_leads_out_of_the_source_folder_is_refused(source: Path, tmp_path: Path) -> None:
    pyhudi.bootstrap(source, tmp_path / "t", record_key="id")
    (tmp_path / "secret.parquet").write_bytes((source / "city=rome" / "a.parquet").read_bytes())
    storage = open_storage(tmp_path / "t")
    files = [replace(file, path="secret.parquet") for file in read_index(storage)]
    write_index(storage, str(tmp_path), files, 0)
    with pytest.raises(CorruptFile, match="not in the source folder"):
        HudiTable.open(tmp_path / "t").scan().to_arrow()


def test_a_source_that_changed_or_went_away_is_reported(source: Path, tmp_path: Path) -> None:
    pyhudi.bootstrap(source, tmp_path / "t", record_key="id")
    saved(source / "city=rome" / "a.parquet", 0, 9)
    with pytest.raises(CorruptFile, match=r"10 rows, but its source file .* has 9"):
        HudiTable.open(tmp_path / "t").scan().to_arrow()
    (source / "city=rome" / "a.parquet").unlink()
    with pytest.raises(CorruptFile, match="has the columns of the bootstrapped file"):
        HudiTable.open(tmp_path / "t").scan().to_arrow()
    (tmp_path / "t" / FILE_INDEX_PATH).unlink()
    with pytest.raises(CorruptFile, match="is missing"):
        HudiTable.open(tmp_path / "t").scan().to_arrow()


def test_what_cannot_stay_is_refused_before_anything_is_written(source: Path, tmp_path: Path) -> None:
    def refused(error: type[Exception], words: str, **arguments: Any) -> None:
        with pytest.raises(error, match=words):
            pyhudi.bootstrap(arguments.pop("source", source), tmp_path / "t", **{"record_key": "id", **arguments})
        assert not (tmp_path / "t" / ".hoodie" / "hoodie.properties").exists()

    refused(ConfigError, "needs the key fields", record_key=None)
    refused(ConfigError, "no column for", record_key="nothing")
    refused(ConfigError, "makes a file group of each file", options={"hoodie.index.type": "BUCKET"})
    refused(ConfigError, "METADATA_ONLY or FULL_RECORD", mode="half")
    refused(ConfigError, "no Parquet or ORC files", source=tmp_path / "none")
    refused(ConfigError, "contain one another", source=tmp_path)
    refused(SchemaMismatch, "make the partition path", partition_by="id")
    pq.write_table(pa.table({"v": [0.5]}), source / "city=rome" / "c.parquet")
    refused(KeyGenError, "field 'id' is null")
    pq.write_table(pa.table({"id": ["k40"], "v": [2**53 + 1]}), source / "city=rome" / "c.parquet")
    refused(SchemaMismatch, "9007199254740993", mode="FULL_RECORD")
    saved(source / "city=rome" / "c.parquet", 30, 31, city=["oslo"])
    refused(SchemaMismatch, "make the partition path 'city=oslo'")
    refused(SchemaMismatch, "whose city is 'oslo', and lies in a folder that says 'rome'", mode="FULL_RECORD")
    saved(source / "city=rome" / "c.parquet", 30, 31, V=[3])
    refused(SchemaMismatch, "'v' and 'V' differ only by case")
    saved(source / "city=rome" / "c.parquet", 30, 31, at=[[pa.scalar(7, pa.timestamp("ns"))]])
    refused(SchemaMismatch, "the column 'at' has nanoseconds")
    saved(source / "city=rome" / "c.parquet", 30, 31, v=[3])
    refused(SchemaMismatch, "different types for the column 'v'")
    pyhudi.bootstrap(source, tmp_path / "t", record_key="id", mode="FULL_RECORD")
    with pytest.raises(TableExists):
        pyhudi.bootstrap(source, tmp_path / "t", record_key="id")
