"""What is not a table's path, and what is not a commit's time, gets an error that says what to write, or is taken."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable, StorageError, TableError, TableNotFound, UnsupportedTable, write_hudi
from pyhudi.errors import ConfigError, HudiError
from pyhudi.model.instant import parse_instant_time
from pyhudi.storage import open_storage
from pyhudi.storage.local import LocalStorage
from pyhudi.timeline.table_properties import update_table_config

ROWS = [{"id": "a", "p": "x", "v": 1}]


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    write_hudi(tmp_path / "t", ROWS, record_key="id", partition_by="p")
    return HudiTable.open(tmp_path / "t")


def values(table: HudiTable) -> dict[str, int]:
    return {row["id"]: row["v"] for row in table.to_arrow(["id", "v"]).to_pylist()}


# ---- paths


@pytest.mark.parametrize("kind", [str, Path, lambda path: f"file://{path}"])
def test_a_table_is_opened_by_its_name(table: HudiTable, kind: Callable[[str], Any]) -> None:
    opened = HudiTable(kind(table.path))
    opened.upsert([{"id": "b", "p": "y", "v": 2}])
    assert values(opened) == values(table) == {"a": 1, "b": 2}
    with pytest.raises(ConfigError, match="of type int"):
        HudiTable(5)  # type: ignore[arg-type]
    with pytest.raises(TableNotFound):
        HudiTable(f"{table.path}-lost")


def test_a_path_object_of_a_store_has_its_two_slashes_again() -> None:
    assert open_storage(Path("memory://paths/of/objects")).root == "memory://paths/of/objects"
    assert open_storage(Path("s3://lake/t"), {"region": "r"}).root == "s3://lake/t"


def delta(folder: Path) -> Path:
    (folder / "d" / "_delta_log").mkdir(parents=True)
    return folder / "d"


def iceberg(folder: Path) -> Path:
    (folder / "i" / "metadata").mkdir(parents=True)
    (folder / "i" / "metadata" / "v1.metadata.json").write_text("{}")
    return folder / "i"


def parquet(folder: Path) -> Path:
    (folder / "f").mkdir()
    (folder / "f" / "part-0.parquet").write_bytes(b"")
    return folder / "f"


def file(folder: Path) -> Path:
    (folder / "file.parquet").write_bytes(b"")
    return folder / "file.parquet"


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (lambda folder: folder, "such as .*/t: give the path of one"),
        (lambda folder: folder / "t" / "x", "is a partition of a table"),
        (lambda folder: folder / "t" / ".hoodie", "give the folder above it"),
        (delta, "Delta table"),
        (iceberg, "Iceberg table"),
        (parquet, "files without a table"),
        (file, "a part of this path is a file"),
        (lambda folder: file(folder) / "below", "a part of this path is a file"),
        (lambda folder: folder / "lost", "Check the path"),
    ],
)
def test_what_lies_at_a_path_without_a_table_is_named(
    table: HudiTable, tmp_path: Path, place: Callable[[Path], Path], says: str
) -> None:
    path = place(tmp_path)
    with pytest.raises(TableNotFound, match=says):
        HudiTable.open(path)
    assert not HudiTable.exists(path)


def test_no_table_is_made_in_a_file_or_in_a_partition(table: HudiTable, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="a part of this path is a file"):
        write_hudi(file(tmp_path), ROWS, record_key="id")
    with pytest.raises(ConfigError, match="is a partition of a table"):
        write_hudi(Path(table.path) / "x", ROWS, record_key="id")
    assert values(table) == {"a": 1}


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("s3:/x", "write s3://bucket/x, with two slashes"),
        ("s3a:lake/t", "write s3a://bucket/lake/t"),
        ("gs:///x", "names no bucket"),
        ("abfss:/x", "names no container"),
        ("hdfs:/x", "write hdfs://host:port/x"),
        ("s33://x/y", "Did you mean s3"),
        ("hdsf://x/y", "Did you mean hdfs"),
    ],
)
def test_a_path_of_a_store_that_is_written_wrong_is_corrected(path: str, says: str) -> None:
    for call in (HudiTable.open, HudiTable.exists, open_storage):
        with pytest.raises(ConfigError, match=says):
            call(path)


def test_hdfs_without_its_libraries_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyhudi.storage.stores import connection

    def refuse(*_: object) -> None:
        raise OSError("Unable to load libjvm")

    monkeypatch.setattr(connection.pafs, "HadoopFileSystem", refuse)
    with pytest.raises(ConfigError, match="Install Hadoop's client, and set JAVA_HOME"):
        open_storage("hdfs://h:1/x")


# ---- tables of other kinds


def test_a_table_whose_files_are_a_merge_tree_is_refused_for_reading_and_writing(table: HudiTable) -> None:
    update_table_config(LocalStorage(table.path), {"hoodie.table.storage.layout": "lsm_tree"})
    for call in (
        lambda: HudiTable.open(table.path).scan().to_arrow(),
        lambda: table.scan().to_arrow(),
        lambda: table.upsert(ROWS),
        lambda: write_hudi(table.path, ROWS, mode="overwrite"),
        lambda: table.delete(where="v = 1"),
        table.compact,
    ):
        with pytest.raises(UnsupportedTable, match=r"storage layout 'lsm_tree' \(hoodie.table.storage.layout\)"):
            call()
    update_table_config(LocalStorage(table.path), {"hoodie.table.storage.layout": "DEFAULT"})
    assert values(HudiTable.open(table.path)) == {"a": 1}


# ---- moments in the place of commits


def after(table: HudiTable) -> datetime:
    """A moment after the newest commit."""
    commit = table.state().timeline.last_commit()
    assert commit is not None
    return parse_instant_time(commit.completion_time or "", table.state().config.timeline_zone) + timedelta(
        milliseconds=1
    )


@pytest.mark.thorough
@pytest.mark.parametrize("version", [6, 9])
def test_a_table_goes_back_to_a_moment(tmp_path: Path, version: int) -> None:
    write_hudi(tmp_path, ROWS, record_key="id", table_version=version)
    table = HudiTable.open(tmp_path)
    moment = after(table)
    for undo in (
        lambda: table.restore(moment),
        lambda: table.restore(moment.isoformat(timespec="milliseconds")),
        lambda: table.rollback(to=moment),
    ):
        table.upsert([{"id": "a", "p": "x", "v": 2}])
        table.upsert([{"id": "b", "p": "x", "v": 3}])
        undo()
        assert values(table) == {"a": 1}
    first = table.history()[-1].instant_time
    assert table.savepoints.create(moment).instant_time == first
    table.savepoints.delete(moment)
    assert list(table.savepoints.list()) == []


def test_the_completion_time_of_a_commit_names_it_too(table: HudiTable) -> None:
    first = table.history()[0]
    table.upsert([{"id": "a", "p": "x", "v": 2}])
    assert table.restore(first.completion_time or "").restored_to == first.instant_time
    assert values(table) == {"a": 1}


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda table: table.restore("2001-11-25"), TableError, "no commit as of '2001-11-25'"),
        (lambda table: table.restore("banana"), ConfigError, "'banana' is no moment"),
        (lambda table: table.restore(None), ConfigError, "is no moment"),
        (lambda table: table.restore("20010101000000000"), TableError, "no completed commit 20010101000000000"),
        (lambda table: table.rollback("2026-11-25"), ConfigError, r"rollback\(to=...\) or restore"),
        (lambda table: table.savepoints.create("soon"), ConfigError, "is no moment"),
        (lambda table: table.savepoints.delete("2100-01-01"), TableError, "has no savepoint"),
    ],
)
def test_a_time_that_means_no_commit_is_refused(
    table: HudiTable, call: Callable[[HudiTable], object], error: type[HudiError], says: str
) -> None:
    with pytest.raises(error, match=says):
        call(table)
    assert values(table) == {"a": 1}


# ---- all columns


def test_a_star_in_a_merge_means_all_columns(table: HudiTable) -> None:
    source = [{"id": "a", "p": "x", "v": 7}, {"id": "b", "p": "x", "v": 8}]
    table.merge(source).when_matched_update("*").when_not_matched_insert("*").execute()
    assert values(table) == {"a": 7, "b": 8}
    for call in (
        lambda: table.merge(source).when_matched_update("v = 1"),
        lambda: table.merge(source).when_not_matched_insert(["v"]),  # type: ignore[arg-type]
        lambda: table.merge(source).when_not_matched_by_source_update("*"),  # type: ignore[arg-type]
        lambda: table.update(set="v = 1"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConfigError, match=r"expected a mapping, \{'column': value\}"):
            call()
